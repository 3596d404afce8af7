"""scikit-learn classifiers over the learners, one per family; needs the extra ``rerank[estimators]``."""

try:
    import sklearn  # noqa: F401
except ImportError as error:
    raise ImportError("rerank.estimators needs scikit-learn: pip install 'rerank[estimators]'") from error

from rerank.estimators.additive import (
    PassiveAggressiveClassifier,
    PerceptronClassifier,
    SGDClassifier,
    TruncatedGradientClassifier,
)
from rerank.estimators.dual import FTRLClassifier, RDAClassifier
from rerank.estimators.gaussian import (
    AROWClassifier,
    CWClassifier,
    NHERDClassifier,
    SCWClassifier,
    SecondOrderPerceptronClassifier,
)
from rerank.estimators.winnow import WinnowClassifier

__all__ = [
    "AROWClassifier",
    "CWClassifier",
    "FTRLClassifier",
    "NHERDClassifier",
    "PassiveAggressiveClassifier",
    "PerceptronClassifier",
    "RDAClassifier",
    "SCWClassifier",
    "SGDClassifier",
    "SecondOrderPerceptronClassifier",
    "TruncatedGradientClassifier",
    "WinnowClassifier",
]
