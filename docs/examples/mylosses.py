# file: mylosses.py
"""A loss of pairs, a loss of lists, and a source of pairs."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from rerank.base.ranges import NotNegative
from rerank.learn.losses import ListLoss, PairLoss
from rerank.learn.pairs import PairSource


class SquaredHinge(PairLoss):
    """max(0, 1 − m)²."""

    @staticmethod
    def of(m: float) -> tuple[float, float]:
        missing = max(0.0, 1.0 - m)
        return missing * missing, 2.0 * missing


class Regression(ListLoss):
    """Σ (score − gain)²/2."""

    @staticmethod
    def of_list(scores: np.ndarray, gain: np.ndarray, right: np.ndarray, a: np.ndarray) -> float:
        total = 0.0
        for y in range(scores.shape[0]):
            a[y] = scores[y] - gain[y]
            total += a[y] * a[y] / 2.0
        return total


@dataclass(frozen=True)
class FarBehind(PairSource):
    """The oracle, and the best-scoring candidate whose gain is at least ``gap`` lower."""

    gap: NotNegative = 0.1

    @staticmethod
    def pick(
        scores: np.ndarray, gain: np.ndarray, oracle: int, any_ties: bool, number: int, pairs: Any
    ) -> tuple[int, int]:
        rival = -1
        for y in range(scores.shape[0]):
            if y != oracle and gain[y] <= gain[oracle] - pairs.gap and (rival < 0 or scores[y] > scores[rival]):
                rival = y
        return oracle, rival
