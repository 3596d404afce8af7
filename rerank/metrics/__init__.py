"""Metrics as sums of statistics; importing this package registers them all."""

from rerank.metrics import bleu, chrf, classification, gain, parseval, ter, wer  # noqa: F401 - they register themselves
