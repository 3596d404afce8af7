"""The classifiers: one class for every family of learners, with the parameters of its learner."""

from rerank.contrib.sklearn.base import OnlineClassifier, Predictor
from rerank.contrib.sklearn.probability import GaussianClassifier
from rerank.learn.base import Learner
from rerank.learn.rules.arda import AdaptiveRDA
from rerank.learn.rules.arow import AROW
from rerank.learn.rules.cw import CW
from rerank.learn.rules.ftrl import FTRL
from rerank.learn.rules.lm_nwin import LMNWin
from rerank.learn.rules.lm_uwin import LMUWin
from rerank.learn.rules.nherd import NormalHerd
from rerank.learn.rules.nwin import NWin
from rerank.learn.rules.pa import PassiveAggressive
from rerank.learn.rules.perceptron import Perceptron
from rerank.learn.rules.rda import RDA
from rerank.learn.rules.scw import SoftCW
from rerank.learn.rules.sgd import SGD
from rerank.learn.rules.sop import SecondOrderPerceptron
from rerank.learn.rules.tg import TruncatedGradient
from rerank.learn.rules.uwin import UWin


class PerceptronClassifier(OnlineClassifier, learner=Perceptron):
    """The perceptron (Rosenblatt 1958; averaged and voted: Freund & Schapire 1999): a mistake adds the example."""

    base_like_feature = True


class PassiveAggressiveClassifier(OnlineClassifier, learner=PassiveAggressive):
    """Passive-aggressive: the smallest step that gives the example a margin of 1 (Crammer et al. 2006)."""

    base_like_feature = True


class SGDClassifier(OnlineClassifier, learner=SGD):
    """Stochastic gradient descent."""

    base_like_feature = True
    average: Predictor = "last"


class TruncatedGradientClassifier(OnlineClassifier, learner=TruncatedGradient):
    """Gradient descent whose weights are shrunk towards 0 now and then (Langford et al. 2009)."""

    average: Predictor = "last"


class RDAClassifier(OnlineClassifier, learner=RDA):
    """Regularised dual averaging (Xiao 2010); with ``update="mistakes"`` its voted form (Xu et al. 2013)."""


class ARDAClassifier(OnlineClassifier, learner=AdaptiveRDA):
    """Dual averaging with a step size for every weight, whatever the units of the features (Duchi et al. 2011)."""


class FTRLClassifier(OnlineClassifier, learner=FTRL):
    """Follow the proximally regularised leader: a rate of its own for every weight (McMahan et al. 2013)."""


class SecondOrderPerceptronClassifier(OnlineClassifier, learner=SecondOrderPerceptron):
    """The second-order perceptron (Cesa-Bianchi et al. 2005)."""

    base_like_feature = True


class CWClassifier(GaussianClassifier, learner=CW):
    """Confidence-weighted learning (Crammer et al. 2008): an update makes the example right with a probability."""

    average: Predictor = "last"


class AROWClassifier(GaussianClassifier, learner=AROW):
    """Adaptive regularisation of weights (Crammer et al. 2009): confidence-weighted learning that tolerates noise."""


class SCWClassifier(GaussianClassifier, learner=SoftCW):
    """Soft confidence-weighted learning (Wang et al. 2012)."""


class NHERDClassifier(GaussianClassifier, learner=NormalHerd):
    """Normal herd: a Gaussian over weights that moves and shrinks with every margin below 1 (Crammer & Lee 2010)."""

    C = 0.01  # the learner's own default is for lists with base scores


class WinnowClassifier(OnlineClassifier, learner=LMUWin):
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
        if self.margin:
            return LMNWin if self.normalized else LMUWin
        return NWin if self.normalized else UWin
