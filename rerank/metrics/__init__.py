"""Metrics as sums of statistics."""

from rerank.base.registry import Add

METRICS = {
    "bleu": "bleu:Bleu",
    "cer": "wer:Cer",
    "chrf": "chrf:Chrf",
    "counts": "gain:Counts",
    "gain": "gain:Gain",
    "match": "wer:Match",
    "parseval": "parseval:Parseval",
    "ter": "text:Ter",
    "wer": "wer:Wer",
}


def register(add: Add) -> None:
    """Make the metrics known."""
    for name, place in METRICS.items():
        add("metric", name, f"{__name__}.{place}")
