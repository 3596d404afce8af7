"""Metrics as sums of statistics."""

from rerank.base.registry import Add

METRICS = {
    "bleu": "bleu:Bleu",
    "cer": "wer:Cer",
    "chrf": "chrf:Chrf",
    "counts": "gain:Counts",
    "err": "order:ExpectedReciprocalRank",
    "gain": "gain:Gain",
    "map": "order:AveragePrecision",
    "match": "wer:Match",
    "mrr": "order:ReciprocalRank",
    "ndcg": "order:Ndcg",
    "parseval": "parseval:Parseval",
    "precision": "order:Precision",
    "recall": "order:Recall",
    "spans": "spans:SpanScore",
    "tags": "spans:TagAccuracy",
    "ter": "ter:Ter",
    "wer": "wer:Wer",
}


def register(add: Add) -> None:
    """Make the metrics known."""
    for name, place in METRICS.items():
        add("metric", name, f"{__name__}.{place}")
