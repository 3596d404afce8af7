"""Classifiers whose weights move by multiples of the examples: perceptron, passive-aggressive, gradient steps."""

from __future__ import annotations

from dataclasses import dataclass

from rerank.estimators.base import OnlineClassifier
from rerank.learn.rules.pa import PassiveAggressive
from rerank.learn.rules.perceptron import Perceptron
from rerank.learn.rules.sgd import SGD
from rerank.learn.rules.tg import TruncatedGradient


@dataclass(eq=False, repr=False)
class PerceptronClassifier(OnlineClassifier):
    """The perceptron (Rosenblatt 1958; averaged and voted: Freund & Schapire 1999): a mistake adds the example.

    Parameters
    ----------
    epochs, shuffle, average, fit_intercept, random_state: see OnlineClassifier.
    """

    _rule = Perceptron


@dataclass(eq=False, repr=False)
class PassiveAggressiveClassifier(OnlineClassifier):
    """Passive-aggressive: the smallest step that gives the example a margin of 1 (Crammer et al. 2006).

    Parameters
    ----------
    C: > 0; limit on the step.
    variant: "hard" (no limit), "1" (PA-I, the step is at most C) or "2" (PA-II, a quadratic penalty).
    epochs, shuffle, average, fit_intercept, random_state: see OnlineClassifier.
    """

    _rule = PassiveAggressive

    C: float = PassiveAggressive.C
    variant: str = PassiveAggressive.variant


@dataclass(eq=False, repr=False)
class SGDClassifier(OnlineClassifier):
    """Stochastic gradient descent.

    Parameters
    ----------
    loss: one of rerank.learn.losses.LOSSES.
    eta: > 0; size of the steps.
    schedule: "constant", or "sqrt" for steps of eta/√k.
    epochs, shuffle, average, fit_intercept, random_state: see OnlineClassifier.
    """

    _rule = SGD

    loss: str = SGD.loss
    eta: float = SGD.eta
    schedule: str = SGD.schedule


@dataclass(eq=False, repr=False)
class TruncatedGradientClassifier(OnlineClassifier):
    """Gradient descent whose weights are shrunk towards 0 now and then (Langford et al. 2009).

    Parameters
    ----------
    loss: one of rerank.learn.losses.LOSSES.
    eta: > 0; size of the first step, that of the k-th is eta/√k.
    l1: ≥ 0; strength of the regulariser λ₁‖w‖₁.
    theta: > 0; larger weights are not shrunk; None for no limit.
    every: ≥ 1; updates from one shrinking to the next.
    epochs, shuffle, average, fit_intercept, random_state: see OnlineClassifier.
    """

    _rule = TruncatedGradient

    loss: str = TruncatedGradient.loss
    eta: float = TruncatedGradient.eta
    l1: float = TruncatedGradient.l1
    theta: float | None = TruncatedGradient.theta
    every: int = TruncatedGradient.every
