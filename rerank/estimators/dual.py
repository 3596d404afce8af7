"""Classifiers that read their weights off sums of gradients: regularised dual averaging, FTRL-proximal."""

from __future__ import annotations

from dataclasses import dataclass

from rerank.estimators.base import OnlineClassifier
from rerank.learn.rules.ftrl import FTRL
from rerank.learn.rules.rda import RDA


@dataclass(eq=False, repr=False)
class RDAClassifier(OnlineClassifier):
    """Regularised dual averaging (Xiao 2010); with ``update="mistakes"`` its voted form (Xu et al. 2011).

    Parameters
    ----------
    loss: one of rerank.learn.losses.LOSSES.
    eta: > 0; larger means smaller weights.
    l1, l2: ≥ 0; strength of the regularisers λ₁‖w‖₁ and (λ₂/2)‖w‖².
    update: "always" (on every loss) or "mistakes".
    epochs, shuffle, average, fit_intercept, random_state: see OnlineClassifier.
    """

    _rule = RDA

    loss: str = RDA.loss
    eta: float = RDA.eta
    l1: float = RDA.l1
    l2: float = RDA.l2
    update: str = RDA.update


@dataclass(eq=False, repr=False)
class FTRLClassifier(OnlineClassifier):
    """Follow the proximally regularised leader: a rate of its own for every weight (McMahan et al. 2013).

    Parameters
    ----------
    loss: one of rerank.learn.losses.LOSSES.
    alpha, beta: > 0 and ≥ 0; a weight's rate is alpha/(beta + √Σ g²) over its gradients g.
    l1, l2: ≥ 0; strength of the regularisers λ₁‖w‖₁ and (λ₂/2)‖w‖².
    normalized: make learning independent of the unit of every feature.
    epochs, shuffle, average, fit_intercept, random_state: see OnlineClassifier.
    """

    _rule = FTRL

    loss: str = FTRL.loss
    alpha: float = FTRL.alpha
    beta: float = FTRL.beta
    l1: float = FTRL.l1
    l2: float = FTRL.l2
    normalized: bool = FTRL.normalized
