"""Losses: the cost of a list under its scores, and how a lower cost would change them; each is a type of its own.

A loss of pairs looks at the margin m of y* over y' alone, one of lists at the scores of all candidates. Kernels take it
as the type of an argument, so that a run compiles the loss that it uses, and no other.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rerank.base.registry import Registry
from rerank.kernels.compile import KernelPart, body, by_type, kernel
from rerank.learn.pairs import aim, costlier, pick, rivals
from rerank.learn.workspace import ListArrays, Scratch, append, base_of, merge, subgradient
from rerank.learn.workspace import sum_subgradient as sum_subgradient

LINEAR_BELOW = 30.0  # the exponential loss is linear for margins below −LINEAR_BELOW: its slope stays finite


@dataclass(frozen=True)
class Loss(KernelPart, ABC):
    """The common part of losses; see ``PairLoss`` and ``ListLoss``, from which all are derived.

    sources: the pair sources that it takes notice of; () for all.
    """

    sources: ClassVar[tuple[str, ...]] = ()


losses: Registry[type[Loss]] = Registry("loss", Loss)


@by_type
def judge(data: ListArrays, i: int, scratch: Scratch, always: bool, any_ties: bool, tally: Any, loss: Any) -> int:
    """Compute the loss of list i under ``scratch.scores`` and its subgradient; count the list, its mistake and loss.

    Returns the number of candidates in the subgradient (``scratch.who``, with coefficients ``scratch.a``), 0 where
    nothing is to be updated: without a mistake, or with ``always`` without a loss.
    """
    return 0


@by_type
def value_and_slope(m: float, cost: float, loss: Any) -> tuple[float, float]:
    """``PairLoss.of`` a margin m between candidates whose gains, times the tilt, differ by ``cost``."""
    return 0.0, 0.0


@by_type
def value_of_list(scores: np.ndarray, gain: np.ndarray, right: np.ndarray, a: np.ndarray, loss: Any) -> float:
    """``ListLoss.of_list``."""
    return 0.0


@by_type
def costliest(
    data: ListArrays, i: int, scores: np.ndarray, net: np.ndarray, any_ties: bool, rival: int, loss: Any
) -> int:  # fmt: skip
    """The rival of list i that the loss looks at in place of the best-scoring one, by which mistakes are judged.

    Where that is another, the net scores, less the worth of gains, go to ``net``.
    """
    return rival


class PairLoss(Loss):
    """A loss of the margin m = score(y*) − score(y') alone.

    It is written as ``of``: from m to the loss's value and its slope −∂value/∂m, both from 0. On a mistake, that is
    m ≤ 0, the slope is above 0; where it is 0, there is no update.

    >>> Hinge.of(0.25)
    (0.75, 1.0)
    """

    @staticmethod
    @abstractmethod
    def of(m: float) -> tuple[float, float]:
        """(value, slope)."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "of" in vars(cls):
            of = kernel(cls.of)

            @body(value_and_slope, cls)
            def at_margin(m: float, cost: float, loss: Any) -> tuple[float, float]:
                return of(m)

    @staticmethod
    def judge(
        data: ListArrays, i: int, scratch: Scratch, always: bool, any_ties: bool, tally: Any, loss: Any
    ) -> int:  # fmt: skip
        """−slope on y* and +slope on y' (Gao et al. 2013, eqs. 5-7)."""
        first, last = data.lists[i], data.lists[i + 1]
        scores, gain = scratch.scores[: last - first], data.gain[first:last]
        tally.lists += 1
        star, rival = pick(scores, gain, data.oracle[i] - first, any_ties, i, data.pairs)
        if rival < 0:
            return 0
        mistake = not scores[star] > scores[rival]
        rival = costliest(data, i, scratch.scores, scratch.a, any_ties, rival, loss)
        m, cost = scores[star] - scores[rival], data.pairs.tilt * (gain[star] - gain[rival])
        value, slope = value_and_slope(m, cost, loss)
        scratch.who[0], scratch.a[0] = first + star, -slope
        scratch.who[1], scratch.a[1] = first + rival, slope
        tally.mistakes += mistake
        tally.loss += value
        return 2 if slope != 0.0 and (mistake or (always and value > 0.0)) else 0

    @staticmethod
    def sum_subgradient(data: ListArrays, scratch: Scratch, n: int, last: int, loss: Any, params: Any) -> int:
        (x, y), (a, b) = (scratch.who[0], scratch.who[1]), (scratch.a[0], scratch.a[1])
        count = merge(data, x, a, y, b, scratch.column, scratch.value)
        return append(scratch, count, last, params.base_rate * (a * data.base[x] + b * data.base[y]))


class ListLoss(Loss):
    """A loss of the scores of all candidates of a list.

    It is written as ``of_list``, which is given scores and gains, and ``right``, 1 for the oracles and 0 for others (an
    array that may be written); it leaves the loss's gradient by the scores in ``a`` and returns its value.
    """

    sources: ClassVar[tuple[str, ...]] = ("oracle",)  # gains say what is right, whatever the oracle

    @staticmethod
    @abstractmethod
    def of_list(scores: np.ndarray, gain: np.ndarray, right: np.ndarray, a: np.ndarray) -> float:
        """The value; ∂value/∂score(y) goes to ``a``."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "of_list" in vars(cls):
            of_list = kernel(cls.of_list)

            @body(value_of_list, cls)
            def at_scores(scores: np.ndarray, gain: np.ndarray, right: np.ndarray, a: np.ndarray, loss: Any) -> float:
                return of_list(scores, gain, right, a)

    @staticmethod
    def judge(
        data: ListArrays, i: int, scratch: Scratch, always: bool, any_ties: bool, tally: Any, loss: Any
    ) -> int:  # fmt: skip
        """∂value/∂score(y) on every candidate y."""
        first, n = data.lists[i], data.lists[i + 1] - data.lists[i]
        scores, gain, right, a = scratch.scores[:n], data.gain[first : first + n], scratch.who[:n], scratch.a[:n]
        tally.lists += 1
        star, rival = rivals(scores, gain, aim(scores, gain, data.oracle[i] - first, data.pairs), any_ties)
        if rival < 0:
            return 0
        mistake = not scores[star] > scores[rival]
        for y in range(n):
            right[y] = y == star or (any_ties and gain[y] == gain[star])
        tally.mistakes += mistake
        tally.loss += value_of_list(scores, gain, right, a, loss)
        for y in range(n):
            scratch.who[y] = first + y
        return int(n) if mistake or always else 0

    @staticmethod
    def sum_subgradient(data: ListArrays, scratch: Scratch, n: int, last: int, loss: Any, params: Any) -> int:
        count = subgradient(data, scratch, n)
        return append(scratch, count, last, params.base_rate * base_of(data, scratch, n))


class PerceptronLoss(PairLoss):
    """max(0, −m)."""

    name = "perceptron"

    @staticmethod
    def of(m: float) -> tuple[float, float]:
        return max(0.0, -m), 1.0


class Hinge(PairLoss):
    """max(0, 1 − m)."""

    name = "hinge"

    @staticmethod
    def of(m: float) -> tuple[float, float]:
        return max(0.0, 1.0 - m), 1.0


class Cost(PerceptronLoss):
    """max(0, tilt·(gain(y*) − gain(y')) − m), y' being the candidate with the highest score − tilt·gain."""

    name = "cost"

    @staticmethod
    def value_and_slope(m: float, cost: float, loss: Any) -> tuple[float, float]:
        return max(0.0, cost - m), 1.0

    @staticmethod
    def costliest(
        data: ListArrays, i: int, scores: np.ndarray, net: np.ndarray, any_ties: bool, rival: int, loss: Any
    ) -> int:  # fmt: skip
        first, n = data.lists[i], data.lists[i + 1] - data.lists[i]
        gain, oracle = data.gain[first : first + n], data.oracle[i] - first
        return costlier(scores[:n], net[:n], gain, oracle, any_ties, rival, data.pairs)


class Logistic(PairLoss):
    """log(1 + e^−m)."""

    name = "logistic"

    @staticmethod
    def of(m: float) -> tuple[float, float]:
        value = max(0.0, -m) + math.log1p(math.exp(-abs(m)))
        return value, 1.0 / (1.0 + math.exp(m)) if m < 0 else math.exp(-m) / (1.0 + math.exp(-m))


class Exponential(PairLoss):
    """e^−m, and linear for m < −30."""

    name = "exponential"

    @staticmethod
    def of(m: float) -> tuple[float, float]:
        slope = math.exp(min(-m, LINEAR_BELOW))
        return slope * (1.0 + max(0.0, -m - LINEAR_BELOW)), slope


@kernel
def ends(x: np.ndarray) -> tuple[float, float]:
    """The least and the greatest of some numbers."""
    low = high = x[0]
    for y in range(1, x.shape[0]):
        low, high = min(low, x[y]), max(high, x[y])
    return low, high


@kernel
def softmax(scores: np.ndarray, p: np.ndarray) -> float:
    """p_y = e^{score(y)} / Z; returns log Z."""
    top, Z = scores[0], 0.0
    for y in range(1, scores.shape[0]):
        if scores[y] > top:
            top = scores[y]
    for y in range(scores.shape[0]):
        p[y] = math.exp(scores[y] - top)
        Z += p[y]
    for y in range(scores.shape[0]):
        p[y] /= Z
    return float(top + math.log(Z))


class Log(ListLoss):
    """−log P(O), with P the softmax of the scores and O the right candidates (Charniak & Johnson 2005, section 3).

    No right candidate is a rival of another: they share what P(O) gains as they share P(O).
    """

    name = "log"
    sources: ClassVar[tuple[str, ...]] = ("oracle", "hope-fear")

    @staticmethod
    def of_list(scores: np.ndarray, gain: np.ndarray, right: np.ndarray, a: np.ndarray) -> float:
        log_z, best, Z = softmax(scores, a), -math.inf, 0.0
        for y in range(scores.shape[0]):
            if right[y] and scores[y] > best:
                best = scores[y]
        for y in range(scores.shape[0]):
            if right[y]:
                Z += math.exp(scores[y] - best)  # of the right ones, in units of the best of them
        for y in range(scores.shape[0]):
            if right[y]:
                a[y] -= math.exp(scores[y] - best) / Z
        value = log_z - best - math.log(Z)
        return float(value) if value > 0.0 else 0.0


class BayesRisk(ListLoss):
    """−Σ P(y)·gain(y), P being the softmax of the scores."""

    name = "bayes"

    @staticmethod
    def of_list(scores: np.ndarray, gain: np.ndarray, right: np.ndarray, a: np.ndarray) -> float:
        softmax(scores, a)
        (low, high), mean_gain = ends(gain), 0.0
        for y in range(scores.shape[0]):
            mean_gain += a[y] * gain[y]
        mean_gain = min(max(mean_gain, low), high)  # undoes rounding: gains all alike teach nothing
        for y in range(scores.shape[0]):
            a[y] *= mean_gain - gain[y]
        return -mean_gain


class ListNet(ListLoss):
    """Σ q(y)·log(q(y)/P(y)), with q the softmax of gains and P that of scores: every candidate is to be chosen as its
    gain says (Cao et al. 2007, with the divergence for their cross entropy)."""

    name = "listnet"

    @staticmethod
    def of_list(scores: np.ndarray, gain: np.ndarray, right: np.ndarray, a: np.ndarray) -> float:
        log_z, top, Z, total = softmax(scores, a), ends(gain)[1], 0.0, 0.0
        for y in range(scores.shape[0]):
            Z += math.exp(gain[y] - top)
        for y in range(scores.shape[0]):
            q = math.exp(gain[y] - top) / Z
            total += q * ((gain[y] - top - math.log(Z)) - (scores[y] - log_z))
            a[y] -= q
        return float(max(0.0, total))


class ListMLE(ListLoss):
    """−log P(order by gains), where P is Plackett & Luce's: each candidate in turn is chosen among those whose gain is
    no higher (Xia et al. 2008; equal gains as in Breslow 1974). Those with the lowest gain are left, and come last."""

    name = "listmle"

    @staticmethod
    def of_list(scores: np.ndarray, gain: np.ndarray, right: np.ndarray, a: np.ndarray) -> float:
        n, (lowest, level), total = scores.shape[0], ends(gain), 0.0
        a[:] = 0.0
        while level > lowest:
            top, below, size, Z = -math.inf, lowest, 0, 0.0
            for y in range(n):
                if gain[y] <= level:
                    top = max(top, scores[y])
            for y in range(n):
                if gain[y] == level:
                    total -= scores[y]
                    a[y] -= 1.0
                    size += 1
                elif gain[y] < level:
                    below = max(below, gain[y])
                if gain[y] <= level:
                    Z += math.exp(scores[y] - top)
            total += size * (top + math.log(Z))
            for y in range(n):
                if gain[y] <= level:
                    a[y] += size * (math.exp(scores[y] - top) / Z)
            level = below
        return float(max(0.0, total))


logistic = kernel(Logistic.of)


class LambdaRank(ListLoss):
    """Σ |ΔNDCG|·log(1 + e^−m) over pairs of different gain, m the margin of the better and ΔNDCG what NDCG changes by
    if the two change places, which are held fixed (Burges et al. 2006; Burges 2010, section 4). A gain g is worth
    2^g − 1."""

    name = "lambdarank"

    @staticmethod
    def of_list(scores: np.ndarray, gain: np.ndarray, right: np.ndarray, a: np.ndarray) -> float:
        n, rank, ideal, total = scores.shape[0], right, 0.0, 0.0
        for y in range(n):
            rank[y], ideal_rank, a[y] = 1, 1, 0.0
            for z in range(n):
                rank[y] += scores[z] > scores[y] or (scores[z] == scores[y] and z < y)
                ideal_rank += gain[z] > gain[y] or (gain[z] == gain[y] and z < y)
            ideal += (2.0 ** gain[y] - 1.0) / math.log2(1.0 + ideal_rank)
        if not ideal > 0.0:
            return 0.0
        for y in range(n):
            worth, discount = 2.0 ** gain[y], 1.0 / math.log2(1.0 + rank[y])
            for z in range(n):
                if gain[y] > gain[z]:
                    change = discount - 1.0 / math.log2(1.0 + rank[z])
                    size = abs((worth - 2.0 ** gain[z]) * change) / ideal
                    value, slope = logistic(scores[y] - scores[z])
                    total += size * value
                    a[y] -= size * slope
                    a[z] += size * slope
        return float(total)
