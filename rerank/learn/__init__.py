"""Online learners over lists."""

from typing import Any

from rerank.base.registry import Add, Registry

LEARNERS = {
    "arda": "rules.arda:AdaptiveRDA",
    "arow": "rules.arow:AROW",
    "cw": "rules.cw:CW",
    "ftrl": "rules.ftrl:FTRL",
    "maxent": "rules.maxent:Maxent",
    "nherd": "rules.nherd:NormalHerd",
    "nwin": "rules.uwin:NWin",
    "pa": "rules.pa:PassiveAggressive",
    "perceptron": "rules.perceptron:Perceptron",
    "rda": "rules.rda:RDA",
    "scw": "rules.scw:SoftCW",
    "sgd": "rules.sgd:SGD",
    "sop": "rules.sop:SecondOrderPerceptron",
    "tg": "rules.tg:TruncatedGradient",
    "uwin": "rules.uwin:UWin",
    "vrda": "rules.rda:VotedRDA",
}

RECOMMENDED = "arda", "arow", "maxent", "perceptron", "vrda"  # see docs/choosing.md
# By the names of learners whose predictors are trees, and no sums of weights: what reads these from a text (bytes) over
# a number of columns, see ``rerank.learn.scoring.TreePredictor``.
trees: Registry[Any] = Registry("trees")


LOSSES = {
    "perceptron": "PerceptronLoss",
    "hinge": "Hinge",
    "cost": "Cost",
    "logistic": "Logistic",
    "exponential": "Exponential",
    "log": "Log",
    "bayes": "BayesRisk",
    "listnet": "ListNet",
    "listmle": "ListMLE",
    "lambdarank": "LambdaRank",
}
PAIRS = {"oracle": "Oracle", "hope-fear": "HopeFear", "sampled": "Sampled"}


def register(add: Add) -> None:
    """Make the learners, losses and pair sources known."""
    for name, place in LEARNERS.items():
        add("learner", name, f"{__name__}.{place}")
    for name in RECOMMENDED:
        add("recommended", name, "learner")
    for name, place in LOSSES.items():
        add("loss", name, f"{__name__}.losses:{place}")
    for name, place in PAIRS.items():
        add("pair source", name, f"{__name__}.pairs:{place}")
