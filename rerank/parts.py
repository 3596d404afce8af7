"""The parts of this program but those in ``rerank.contrib``: a line for each, by kind, name and import path."""

from typing import Any

from rerank.base.registry import Add, Registry

READERS = {
    "charniak": "trees.charniak:CharniakReader",
    "joined": "combined:JoinedReader",
    "jsonl": "texts.jsonl:JsonlReader",
    "merged": "combined:MergedReader",
    "moses": "moses:Moses",
    "table": "texts.jsonl:TableReader",
    "trees": "trees.charniak:BareReader",
}
TEMPLATES = {  # by module; they are called like their classes
    "parse.heads": "Heads LexFunHeads SynSemHeads SubjVerbAgr CoPar CoLenPar",
    "parse.local": "Rule NGram Word WProj NGramTree HeadTree",
    "parse.spans": "Edges WordEdges Neighbours Heavy RightBranch LeftBranchLength RightBranchLength LogCondP",
    "scores": "Dense BaseScore Within SameAnswer",
    "text.consensus": "ConsensusNGram ConsensusEdits EditOps",
    "text.words": "TargetNGram WordPair Unaligned CoOccurrence PhrasePair SourcePhrase TargetPhrase PhraseLengths "
    "PhraseBoundary Jump LengthRatio Length Copy Punctuation Given",
}
METRICS = {
    "bleu": "ngrams:Bleu",
    "cer": "wer:Cer",
    "chrf": "chrf:Chrf",
    "counts": "gain:Counts",
    "gain": "gain:Gain",
    "match": "wer:Match",
    "parseval": "parseval:Parseval",
    "ter": "text:Ter",
    "wer": "wer:Wer",
}
LEARNERS = {
    "arda": "dual_averaging:AdaptiveRDA",
    "arow": "gaussian:AROW",
    "cw": "confidence:CW",
    "ftrl": "dual_averaging:FTRL",
    "maxent": "maxent:Maxent",
    "nherd": "gaussian:NormalHerd",
    "nwin": "winnow:NWin",
    "pa": "additive:PassiveAggressive",
    "perceptron": "additive:Perceptron",
    "rda": "dual_averaging:RDA",
    "scw": "confidence:SoftCW",
    "sgd": "additive:SGD",
    "sop": "gaussian:SecondOrderPerceptron",
    "tg": "additive:TruncatedGradient",
    "uwin": "winnow:UWin",
    "vrda": "dual_averaging:VotedRDA",
}
RECOMMENDED = "arda", "arow", "maxent", "perceptron", "vrda"  # see docs/choosing.md
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
TASKS = "ranking", "speech", "translation", "parse"
COMMANDS = {  # by module
    "choosing": "rank vote weigh", "evaluating": "evaluate oracle", "running": "compare run tune",
    "looking": "explain export import inspect list look new",
}  # fmt: skip
# By the names of learners whose predictors are trees, and no sums of weights: what reads these from a text (bytes) over
# a number of columns, see ``rerank.learn.scoring.TreePredictor``.
trees: Registry[Any] = Registry("trees")


def register(add: Add) -> None:
    """Make them known."""
    for kind, folder, paths in (
        ("reader", "readers.", READERS), ("metric", "metrics.", METRICS), ("learner", "learn.rules.", LEARNERS),
        ("loss", "learn.losses:", LOSSES), ("pair source", "learn.pairs:", PAIRS),
    ):  # fmt: skip
        for name, path in paths.items():
            add(kind, name, f"rerank.{folder}{path}")
    for module, names in TEMPLATES.items():
        for name in names.split():
            add("template", name, f"rerank.features.{module}:{name}")
    for module, names in COMMANDS.items():
        for name in names.split():
            add("command", name, f"rerank.cli.{module}")
    for name in RECOMMENDED:
        add("recommended", name, "learner")
    for name in TASKS:
        add("task", name, f"rerank.recipes.loading:{name.upper()}")
    add("files", "table", "rerank.readers.detection:TABLE")
