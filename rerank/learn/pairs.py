"""Pair sources: the two candidates (y*, y') of a list that a learner compares.

* `oracle`: y* is the oracle, y' the best-scoring candidate that is not (Collins 2002).
* `hope-fear`: y* = argmax score + tilt·gain, good and within reach, and y' = argmax score − tilt·gain, bad and
  tempting (Chiang 2012, section 3; Cherry & Foster 2012, section 2.4). Where y' is y* there is nothing to learn. Among
  equals, y* is the oracle if that is one of them, and y' likewise is y*.
* `sampled`: of ``draws`` random pairs, those whose gains differ by more than ``threshold``, the largest difference
  first (Hopkins & May 2011, Fig. 4); y* is the better of the two. Draws depend on seed, epoch and list alone.

Losses of whole lists have no use for a source: ``bayes``, ``listnet``, ``listmle`` and ``lambdarank`` use the gains of
all candidates; ``log`` takes the hope as its oracle where the source is ``hope-fear``, else the oracle itself.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from rerank.base.ranges import NotNegative, Positive, Range
from rerank.base.registry import Registry
from rerank.data.symbols import mix
from rerank.kernels.compile import KernelPart, by_type, kernel, settings_of

GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # the counter's step of splitmix64 (Steele et al. 2014)
LOW, HALF, ONE = np.uint64(0xFFFFFFFF), np.uint64(32), np.uint64(1)


@by_type
def pick(scores: np.ndarray, gain: np.ndarray, oracle: int, any_ties: bool, number: int, pairs: Any) -> tuple[int, int]:
    """See ``PairSource``."""
    return -1, -1


@by_type
def pick_next(
    scores: np.ndarray, gain: np.ndarray, oracle: int, any_ties: bool, number: int, star: int, rival: int, pairs: Any
) -> tuple[int, int]:  # fmt: skip
    """The pair after (``star``, ``rival``): y* with the rival that is picked when the last one is struck out."""
    scores[rival] = -np.inf
    _, rival = pick(scores, gain, oracle, any_ties, number, pairs)
    return star, rival if rival >= 0 and scores[rival] > -np.inf else -1


@by_type
def aim(scores: np.ndarray, gain: np.ndarray, oracle: int, pairs: Any) -> int:
    """The candidate that a loss of lists takes for the oracle."""
    return oracle


@by_type
def costlier(
    scores: np.ndarray, net: np.ndarray, gain: np.ndarray, oracle: int, any_ties: bool, rival: int, pairs: Any
) -> int:  # fmt: skip
    """The rival in place of the best-scoring one where gains have a part in the margin; see ``losses.costliest``."""
    return rival


@by_type
def compares_oracle(pairs: Any) -> bool:
    """Whether (y*, y') are the oracle and another candidate, so that of a list of two nothing else can be picked."""
    return False


@dataclass(frozen=True)
class PairSource(KernelPart, ABC):
    """The source of the pairs of a training.

    It is written as ``pick``, which is given the scores and gains of a list, the index of its oracle (-1 in an empty
    one), whether any candidate with the oracle's gain is right too, the list's number, and the source's parameters,
    with ``key``, of which every epoch has another. It returns the indices of y* and y', -1 for y' where there is
    nothing to compare.

    Parameters
    ----------
    tilt: > 0; how much a gain of 1 counts compared with scores: in hope and fear, and in the margin that the loss
        ``cost`` asks for, tilt·(gain(y*) − gain(y')).
    """

    extra: ClassVar[tuple[str, ...]] = ("key",)

    tilt: Positive = 1.0

    @staticmethod
    @abstractmethod
    def pick(
        scores: np.ndarray, gain: np.ndarray, oracle: int, any_ties: bool, number: int, pairs: Any
    ) -> tuple[int, int]:  # fmt: skip
        """(y*, y')."""

    def rule(self, seed: int, epoch: int) -> Any:
        """The source for kernels, in an epoch of a training with ``seed``."""
        key = np.random.SeedSequence([seed, epoch, 0]).generate_state(1, np.uint64)[0]
        return settings_of(self, {"key": np.uint64(key)})


pairs: Registry[type[PairSource]] = Registry("pair source", PairSource)


@kernel
def rivals(scores: np.ndarray, gain: np.ndarray, oracle: int, any_ties: bool) -> tuple[int, int]:
    """(y*, y'): the oracle, and the best-scoring candidate that is not one; -1 if there is none.

    With ``any_ties`` every candidate with the oracle's gain is an oracle, and the best-scoring of them plays y*. Among
    equals the first candidate is taken.
    """
    star, rival, highest = oracle, -1, 0.0
    for y in range(scores.shape[0]):
        if y == oracle:
            continue
        if any_ties and gain[y] == gain[oracle]:
            if scores[y] > scores[star]:
                star = y
            continue
        if rival < 0 or scores[y] > highest:
            rival, highest = y, scores[y]
    return star, rival


class Oracle(PairSource):
    """The oracle, and the best-scoring candidate that is not one."""

    name = "oracle"

    @staticmethod
    def pick(
        scores: np.ndarray, gain: np.ndarray, oracle: int, any_ties: bool, number: int, pairs: Any
    ) -> tuple[int, int]:  # fmt: skip
        return rivals(scores, gain, oracle, any_ties)

    @staticmethod
    def costlier(
        scores: np.ndarray, net: np.ndarray, gain: np.ndarray, oracle: int, any_ties: bool, rival: int, pairs: Any
    ) -> int:  # fmt: skip
        """The rival of the highest score − tilt·gain."""
        for y in range(scores.shape[0]):
            net[y] = scores[y] - pairs.tilt * gain[y]
        return rivals(net, gain, oracle, any_ties)[1]

    @staticmethod
    def compares_oracle(pairs: Any) -> bool:
        return True


@kernel
def hope(scores: np.ndarray, gain: np.ndarray, oracle: int, tilt: float) -> int:
    """argmax score + tilt·gain; of equals the oracle, then the first."""
    star = oracle
    for y in range(scores.shape[0]):
        if scores[y] + tilt * gain[y] > scores[star] + tilt * gain[star]:
            star = y
    return star


class HopeFear(PairSource):
    """A good candidate within reach, and a bad one that is tempting."""

    name = "hope-fear"

    @staticmethod
    def pick(
        scores: np.ndarray, gain: np.ndarray, oracle: int, any_ties: bool, number: int, pairs: Any
    ) -> tuple[int, int]:  # fmt: skip
        star = hope(scores, gain, oracle, pairs.tilt)
        rival = hope(scores, gain, star, -pairs.tilt)
        return star, rival if rival != star else -1

    @staticmethod
    def aim(scores: np.ndarray, gain: np.ndarray, oracle: int, pairs: Any) -> int:
        return hope(scores, gain, oracle, pairs.tilt)


@kernel
def draw(seed: np.uint64, number: int, size: int) -> tuple[Any, Any]:
    """Two different indices in a list of this many candidates (≥ 2): splitmix64 of a counter."""
    bits = mix(seed + np.uint64(number + 1) * GOLDEN)
    x = ((bits >> HALF) * np.uint64(size)) >> HALF
    y = ((bits & LOW) * np.uint64(size - 1)) >> HALF
    return np.int64(x), np.int64(y + ONE if y >= x else y)


@kernel
def comes_before(gap: float, x: int, y: int, other: float, a: int, b: int) -> bool:
    """Whether the pair (x, y), whose gains differ by ``gap``, comes before (a, b), whose gains differ by ``other``."""
    return gap > other or (gap == other and (x < a or (x == a and y < b)))


@dataclass(frozen=True)
class Sampled(PairSource):
    """Random pairs, the largest difference of gains first.

    Parameters
    ----------
    draws: ≥ 1; how many pairs of a list are drawn.
    threshold: ≥ 0; pairs whose gains differ by no more than this are left out.
    tilt: see PairSource.
    """

    name: ClassVar[str] = "sampled"

    draws: Annotated[int, Range(1, 1_000_000)] = 50
    threshold: NotNegative = 0.05

    @staticmethod
    def pick(
        scores: np.ndarray, gain: np.ndarray, oracle: int, any_ties: bool, number: int, pairs: Any
    ) -> tuple[int, int]:  # fmt: skip
        return pick_next(scores, gain, oracle, any_ties, number, -1, -1, pairs)

    @staticmethod
    def pick_next(
        scores: np.ndarray, gain: np.ndarray, oracle: int, any_ties: bool, number: int, last_star: int, last_rival: int,
        pairs: Any,
    ) -> tuple[int, int]:  # fmt: skip
        """The first of the drawn pairs that come after (``last_star``, ``last_rival``), if that is one."""
        star, rival, largest = -1, -1, 0.0
        bound = gain[last_star] - gain[last_rival] if last_star >= 0 else np.inf
        seed = mix(pairs.key + np.uint64(number + 1) * GOLDEN)
        for count in range(pairs.draws if gain.shape[0] > 1 else 0):
            x, y = draw(seed, count, gain.shape[0])
            if gain[x] < gain[y]:
                x, y = y, x
            gap = gain[x] - gain[y]
            if gap > pairs.threshold and comes_before(bound, last_star, last_rival, gap, x, y):
                if star < 0 or comes_before(gap, x, y, largest, star, rival):
                    star, rival, largest = x, y, gap
        return star, rival


ORACLES = Oracle().rule(0, 0)  # the usual ones, for kernels
