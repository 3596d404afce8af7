"""Metrics as sums of statistics; importing this package registers them all."""

from rerank.metrics import parseval  # noqa: F401 - registers itself
