from mylearner import Harmonic

from rerank.contrib.sklearn.classifiers import OnlineClassifier


class HarmonicClassifier(OnlineClassifier, learner=Harmonic):
    """The perceptron with shorter and shorter steps."""
