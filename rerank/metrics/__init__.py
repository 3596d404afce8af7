"""Metrics as sums of statistics; importing this package registers them all."""

from rerank.metrics import classification, parseval  # noqa: F401 - they register themselves
