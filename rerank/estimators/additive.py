"""Classifiers whose weights move by multiples of the examples: perceptron, passive-aggressive, gradient steps."""

from __future__ import annotations

from typing import Any

from rerank.estimators.base import OnlineClassifier
from rerank.learn.rules.pa import PassiveAggressive
from rerank.learn.rules.perceptron import Perceptron
from rerank.learn.rules.sgd import SGD
from rerank.learn.rules.truncated import TruncatedGradient


class PerceptronClassifier(OnlineClassifier):
    """The perceptron (Rosenblatt 1958; averaged and voted: Freund & Schapire 1999): a mistake adds the example.

    Parameters
    ----------
    epochs, shuffle, average, fit_intercept, random_state: see OnlineClassifier.
    """

    _rule = Perceptron

    def __init__(
        self,
        *,
        epochs: int = 10,
        shuffle: bool = True,
        average: str = "average",
        fit_intercept: bool = True,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            epochs=epochs, shuffle=shuffle, average=average, fit_intercept=fit_intercept, random_state=random_state
        )


class PassiveAggressiveClassifier(OnlineClassifier):
    """Passive-aggressive: the smallest step that gives the example a margin of 1 (Crammer et al. 2006).

    Parameters
    ----------
    C: > 0; limit on the step.
    variant: "hard" (no limit), "1" (PA-I, the step is at most C) or "2" (PA-II, a quadratic penalty).
    epochs, shuffle, average, fit_intercept, random_state: see OnlineClassifier.
    """

    _rule = PassiveAggressive

    def __init__(
        self,
        C: float = PassiveAggressive.C,
        variant: str = PassiveAggressive.variant,
        *,
        epochs: int = 10,
        shuffle: bool = True,
        average: str = "average",
        fit_intercept: bool = True,
        random_state: Any = None,
    ) -> None:
        self.C = C
        self.variant = variant
        super().__init__(
            epochs=epochs, shuffle=shuffle, average=average, fit_intercept=fit_intercept, random_state=random_state
        )


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

    def __init__(
        self,
        loss: str = SGD.loss,
        eta: float = SGD.eta,
        schedule: str = SGD.schedule,
        *,
        epochs: int = 10,
        shuffle: bool = True,
        average: str = "average",
        fit_intercept: bool = True,
        random_state: Any = None,
    ) -> None:
        self.loss = loss
        self.eta = eta
        self.schedule = schedule
        super().__init__(
            epochs=epochs, shuffle=shuffle, average=average, fit_intercept=fit_intercept, random_state=random_state
        )


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

    def __init__(
        self,
        loss: str = TruncatedGradient.loss,
        eta: float = TruncatedGradient.eta,
        l1: float = TruncatedGradient.l1,
        theta: float | None = TruncatedGradient.theta,
        every: int = TruncatedGradient.every,
        *,
        epochs: int = 10,
        shuffle: bool = True,
        average: str = "average",
        fit_intercept: bool = True,
        random_state: Any = None,
    ) -> None:
        self.loss = loss
        self.eta = eta
        self.l1 = l1
        self.theta = theta
        self.every = every
        super().__init__(
            epochs=epochs, shuffle=shuffle, average=average, fit_intercept=fit_intercept, random_state=random_state
        )
