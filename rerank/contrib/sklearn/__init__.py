"""scikit-learn estimators: a ranker, a tagger, a classifier per family of learners; needs ``rerank[estimators]``."""

try:
    import sklearn  # noqa: F401
except ImportError as error:
    raise ImportError("rerank.contrib.sklearn needs scikit-learn: pip install 'rerank-nbest[estimators]'") from error

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
from rerank.contrib.structures.sequence_tagger import SequenceTagger

__all__ = [
    "ARDAClassifier", "AROWClassifier", "CWClassifier", "FTRLClassifier", "ListRanker", "NHERDClassifier",
    "PassiveAggressiveClassifier", "PerceptronClassifier", "RDAClassifier", "SCWClassifier", "SGDClassifier",
    "SecondOrderPerceptronClassifier", "SequenceTagger", "TruncatedGradientClassifier", "WinnowClassifier",
]  # fmt: skip
