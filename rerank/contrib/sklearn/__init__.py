"""scikit-learn estimators: a ranker, a tagger, a classifier per family of learners; needs ``rerank[estimators]``."""

try:
    import sklearn  # noqa: F401
except ImportError as error:
    raise ImportError("rerank.contrib.sklearn needs scikit-learn: pip install 'rerank-nbest[estimators]'") from error

from typing import Any

from rerank.base.registry import Registry
from rerank.contrib.sklearn.classifiers import (
    ARDAClassifier,
    AROWClassifier,
    CWClassifier,
    FTRLClassifier,
    NHERDClassifier,
    PassiveAggressiveClassifier,
    PerceptronClassifier,
    RDAClassifier,
    SCWClassifier,
    SecondOrderPerceptronClassifier,
    SGDClassifier,
    TruncatedGradientClassifier,
    WinnowClassifier,
)
from rerank.contrib.sklearn.ranker import ListRanker

__all__ = [
    "ARDAClassifier", "AROWClassifier", "CWClassifier", "FTRLClassifier", "ListRanker", "NHERDClassifier",
    "PassiveAggressiveClassifier", "PerceptronClassifier", "RDAClassifier", "SCWClassifier", "SGDClassifier",
    "SecondOrderPerceptronClassifier", "SequenceTagger", "TruncatedGradientClassifier", "WinnowClassifier",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Estimators that other parts register."""
    estimators: Registry[type] = Registry("estimator")
    if name not in estimators:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return estimators.get(name)
