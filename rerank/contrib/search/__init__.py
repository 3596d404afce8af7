"""Search: documents with grades, runs of search engines, metrics of an order, and boosted trees."""

from rerank.base.registry import Add

METRICS = {
    "err": "ExpectedReciprocalRank",
    "map": "AveragePrecision",
    "mrr": "ReciprocalRank",
    "ndcg": "Ndcg",
    "precision": "Precision",
    "recall": "Recall",
}


def register(add: Add) -> None:
    """Make the readers known, the metrics and the learner."""
    add("reader", "letor", f"{__name__}.letor:LetorReader")
    add("reader", "trec", f"{__name__}.trec:TrecReader")
    for name, of in METRICS.items():
        add("metric", name, f"{__name__}.order:{of}")
    add("learner", "lambdamart", f"{__name__}.lambdamart:LambdaMart")
