"""Search: documents with grades, runs of search engines, metrics of an order, and boosted trees."""

import re

from rerank.base.registry import Add

METRICS = {
    "map": "AveragePrecision",
    "mrr": "ReciprocalRank",
    "ndcg": "Ndcg",
    "precision": "Precision",
    "recall": "Recall",
}


def register(add: Add) -> None:
    """Make the readers known, the metrics, the learner and the command."""
    add("reader", "letor", f"{__name__}.letor:LetorReader")
    add("reader", "trec", f"{__name__}.trec:TrecReader")
    for name, of in METRICS.items():
        add("metric", name, f"{__name__}.order:{of}")
    add("command", "fuse", f"{__name__}.command")
    add("files", "letor", re.compile(r"\.(letor|svm|svmlight|libsvm)(\.\w+)?$"))
    add("recommended", "lambdamart", "learner")
    add("learner", "lambdamart", f"{__name__}.lambdamart:LambdaMart")
    add("trees", "lambdamart", f"{__name__}.lambdamart:read_trees")
    add("vote", "LambdaMART", f"{__name__}.lambdamart:vote_by_trees")
