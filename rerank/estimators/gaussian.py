"""Classifiers with a variance for every weight: second-order perceptron, confidence-weighted, herd."""

from __future__ import annotations

from dataclasses import dataclass

from rerank.estimators.base import OnlineClassifier
from rerank.learn.rules.arow import AROW
from rerank.learn.rules.cw import CW
from rerank.learn.rules.nherd import NormalHerd
from rerank.learn.rules.scw import SoftCW
from rerank.learn.rules.sop import SecondOrderPerceptron


@dataclass(eq=False, repr=False)
class SecondOrderPerceptronClassifier(OnlineClassifier):
    """The second-order perceptron (Cesa-Bianchi et al. 2005).

    Parameters
    ----------
    a: > 0; the larger, the nearer to the perceptron.
    covariance: "diagonal" or "full".
    epochs, shuffle, average, fit_intercept, random_state: see OnlineClassifier.
    """

    _rule = SecondOrderPerceptron

    a: float = SecondOrderPerceptron.a
    covariance: str = SecondOrderPerceptron.covariance


@dataclass(eq=False, repr=False)
class CWClassifier(OnlineClassifier):
    """Confidence-weighted learning (Crammer et al. 2008): an update makes the example right with a probability.

    Parameters
    ----------
    phi: > 0; Φ⁻¹ of that probability.
    form: the constraint, on the variance ("var") or the standard deviation ("stdev").
    covariance: how a diagonal is kept, "kl", "l2" or "exact", or "full".
    epochs, shuffle, average, fit_intercept, random_state: see OnlineClassifier.
    """

    _rule = CW

    phi: float = CW.phi
    form: str = CW.form
    covariance: str = CW.covariance


@dataclass(eq=False, repr=False)
class AROWClassifier(OnlineClassifier):
    """Adaptive regularisation of weights (Crammer et al. 2009): confidence-weighted learning that tolerates noise.

    Parameters
    ----------
    r: > 0; the larger, the smaller the steps.
    covariance: how a diagonal is kept, "kl" or "l2", or "full".
    epochs, shuffle, average, fit_intercept, random_state: see OnlineClassifier.
    """

    _rule = AROW

    r: float = AROW.r
    covariance: str = AROW.covariance


@dataclass(eq=False, repr=False)
class SCWClassifier(OnlineClassifier):
    """Soft confidence-weighted learning (Wang et al. 2012).

    Parameters
    ----------
    phi: > 0; Φ⁻¹ of the probability with which every example is to become right.
    C: > 0; price of an example that does not.
    variant: "1" (linear) or "2" (quadratic).
    covariance: how a diagonal is kept, "kl" or "l2", or "full".
    epochs, shuffle, average, fit_intercept, random_state: see OnlineClassifier.
    """

    _rule = SoftCW

    phi: float = SoftCW.phi
    C: float = SoftCW.C
    variant: str = SoftCW.variant
    covariance: str = SoftCW.covariance


@dataclass(eq=False, repr=False)
class NHERDClassifier(OnlineClassifier):
    """Normal herd: a Gaussian over weights that moves and shrinks with every margin below 1 (Crammer & Lee 2010).

    Parameters
    ----------
    C: > 0; the larger, the larger the steps. The learner's own default is larger, for lists with base scores.
    covariance: how a diagonal is kept, "kl", "l2" or "exact", or "full".
    epochs, shuffle, average, fit_intercept, random_state: see OnlineClassifier.
    """

    _rule = NormalHerd

    C: float = 0.01
    covariance: str = NormalHerd.covariance
