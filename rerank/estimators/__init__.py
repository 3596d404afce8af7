"""scikit-learn classifiers over the learners, one per family; needs the extra ``rerank[estimators]``."""

try:
    import sklearn  # noqa: F401
except ImportError as error:
    raise ImportError("rerank.estimators needs scikit-learn: pip install 'rerank-nbest[estimators]'") from error

from rerank.estimators.classifiers import (
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
