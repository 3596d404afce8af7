"""The classifiers: one class for every family of learners, with the parameters of its learner."""

from rerank.contrib.sklearn.base import OnlineClassifier, Predictor
from rerank.learn.base import Learner, learners


class PerceptronClassifier(OnlineClassifier, learner=learners.get("perceptron")):
    """The perceptron (Rosenblatt 1958; averaged and voted: Freund & Schapire 1999): a mistake adds the example."""

    base_like_feature = True


class PassiveAggressiveClassifier(OnlineClassifier, learner=learners.get("pa")):
    """Passive-aggressive: the smallest step that gives the example a margin of 1 (Crammer et al. 2006)."""

    base_like_feature = True


class SGDClassifier(OnlineClassifier, learner=learners.get("sgd")):
    """Stochastic gradient descent."""

    base_like_feature = True
    average: Predictor = "last"


class TruncatedGradientClassifier(OnlineClassifier, learner=learners.get("tg")):
    """Gradient descent whose weights are shrunk towards 0 now and then (Langford et al. 2009)."""

    average: Predictor = "last"


class RDAClassifier(OnlineClassifier, learner=learners.get("rda")):
    """Regularised dual averaging (Xiao 2010); with ``update="mistakes"`` its voted form (Xu et al. 2013)."""


class ARDAClassifier(OnlineClassifier, learner=learners.get("arda")):
    """Dual averaging with a step size for every weight, whatever the units of the features (Duchi et al. 2011)."""


class FTRLClassifier(OnlineClassifier, learner=learners.get("ftrl")):
    """Follow the proximally regularised leader: a rate of its own for every weight (McMahan et al. 2013)."""


class SecondOrderPerceptronClassifier(OnlineClassifier, learner=learners.get("sop")):
    """The second-order perceptron (Cesa-Bianchi et al. 2005)."""

    base_like_feature = True


class CWClassifier(OnlineClassifier, learner=learners.get("cw")):
    """Confidence-weighted learning (Crammer et al. 2008): an update makes the example right with a probability."""

    base_like_feature = True
    average: Predictor = "last"


class AROWClassifier(OnlineClassifier, learner=learners.get("arow")):
    """Adaptive regularisation of weights (Crammer et al. 2009): confidence-weighted learning that tolerates noise."""

    base_like_feature = True


class SCWClassifier(OnlineClassifier, learner=learners.get("scw")):
    """Soft confidence-weighted learning (Wang et al. 2012)."""

    base_like_feature = True


class NHERDClassifier(OnlineClassifier, learner=learners.get("nherd")):
    """Normal herd: a Gaussian over weights that moves and shrinks with every margin below 1 (Crammer & Lee 2010)."""

    base_like_feature = True
    C = 0.01  # the learner's own default is for lists with base scores


class WinnowClassifier(OnlineClassifier, learner=learners.get("lm-uwin")):
    """Regularised Winnow (Zhang 2001), balanced: weights may have both signs.

    Parameters
    ----------
    normalized: the parts of all weights keep their sum, 2·mu for every column.
    margin: update until the margin is 1, with one dual variable per example, instead of on mistakes.
    """

    average: Predictor = "last"
    normalized: bool = False
    margin: bool = True

    def _rule(self) -> type[Learner]:
        name = "nwin" if self.normalized else "uwin"
        return learners.get(f"lm-{name}" if self.margin else name)
