"""Pair sources: which two candidates (y*, y') of a list a learner compares.

* ``oracle``: y* is the oracle, y' the best-scoring candidate that is not (Collins 2002).
* ``hope-fear``: y* = argmax score + tilt·gain, good and within reach, and y' = argmax score − tilt·gain, bad and
  tempting (Chiang 2012, section 3; Cherry & Foster 2012, section 2.4). Where y' is y* there is nothing to learn. Among
  equals, y* is the oracle if that is one of them, and y' likewise is y*.
* ``sampled``: of ``draws`` random pairs, those whose gains differ by more than ``threshold``, the largest difference
  first (Hopkins & May 2011, Fig. 4); y* is the better of the two. Draws depend on seed, epoch and list alone.

Losses of whole lists compare no pairs: ``bayes`` uses gains only, and ``log`` takes the hope as its oracle where the
source is ``hope-fear``, and the oracle itself otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rerank.base.errors import RecipeError
from rerank.data.symbols import mix
from rerank.kernels.compile import kernel
from rerank.learn.base import Learner, require, require_choice, require_count
from rerank.learn.losses import rivals
from rerank.learn.workspace import ORACLE, SAMPLED, SOURCES, ListArrays, PairRule

GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # the counter's step of splitmix64 (Steele et al. 2014)
LOW, HALF, ONE = np.uint64(0xFFFFFFFF), np.uint64(32), np.uint64(1)


@dataclass(frozen=True)
class PairSource:
    """Where the pairs of a training come from.

    Parameters
    ----------
    name: "oracle", "hope-fear" or "sampled".
    tilt: > 0; how much a gain of 1 counts compared with scores: in hope and fear, and in the margin that the loss
        ``cost`` asks for, tilt·(gain(y*) − gain(y')).
    draws: ≥ 1; how many pairs of a list are drawn (``sampled``).
    threshold: ≥ 0; pairs whose gains differ by no more than this are left out (``sampled``).
    """

    name: str = "oracle"
    tilt: float = 1.0
    draws: int = 50
    threshold: float = 0.05

    def __post_init__(self) -> None:
        require_choice("name", self.name, SOURCES)
        require("tilt", self.tilt, low=0.0, strict=True)
        require_count("draws", self.draws, high=1_000_000)
        require("threshold", self.threshold, low=0.0)

    def rule(self, seed: int, epoch: int, part: int = 0) -> PairRule:
        """The source for kernels, in an epoch over a part of the lists of a training with ``seed``."""
        key = np.random.SeedSequence([seed, epoch, part]).generate_state(1, np.uint64)[0]
        source, tilt, threshold = SOURCES.index(self.name), float(self.tilt), float(self.threshold)
        others = () if source == ORACLE else (0,)
        return PairRule(others, source, tilt, self.draws, threshold, np.uint64(key))


def require_source(learner: Learner, pairs: PairSource) -> None:
    """Refuse a pair source that ``learner`` cannot learn from.

    Raises
    ------
    RecipeError: names source, learner and the sources that it takes.
    """
    if pairs.name not in learner.sources:
        raise RecipeError(
            f"found {pairs.name!r}; expected {' or '.join(learner.sources)} for the learner {learner.name!r}",
            key="name",
        )


@kernel
def hope(first: int, last: int, scores: np.ndarray, gain: np.ndarray, oracle: int, tilt: float) -> int:
    """argmax score + tilt·gain; of equals the oracle, then the first. ``scores`` counts from ``first``."""
    star = oracle
    for y in range(first, last):
        if scores[y - first] + tilt * gain[y] > scores[star - first] + tilt * gain[star]:
            star = y
    return star


@kernel
def fear(first: int, last: int, scores: np.ndarray, gain: np.ndarray, star: int, tilt: float) -> int:
    """argmax score − tilt·gain, of equals ``star``, then the first; -1 where this is ``star``."""
    rival = star
    for y in range(first, last):
        if scores[y - first] - tilt * gain[y] > scores[rival - first] - tilt * gain[rival]:
            rival = y
    return rival if rival != star else -1


@kernel
def draw(seed: np.uint64, number: int, size: int) -> tuple[int, int]:
    """Two different places of a list of so many candidates (≥ 2): splitmix64 of a counter."""
    bits = mix(seed + np.uint64(number + 1) * GOLDEN)
    x = ((bits >> HALF) * np.uint64(size)) >> HALF
    y = ((bits & LOW) * np.uint64(size - 1)) >> HALF
    return int(x), int(y + ONE if y >= x else y)


@kernel
def comes_before(gap: float, x: int, y: int, other: float, a: int, b: int) -> bool:
    """Does the pair (x, y), whose gains differ by ``gap``, come before (a, b), whose gains differ by ``other``?"""
    return gap > other or (gap == other and (x < a or (x == a and y < b)))


@kernel
def sampled(
    i: int, first: int, last: int, gain: np.ndarray, rule: PairRule, after: int, after_rival: int
) -> tuple[int, int]:
    """The drawn pair with the largest difference of gains, of equals the first by (y*, y'); (-1, -1) for none.

    ``after``, ``after_rival``: only pairs that come after this one count, so that list i can be asked for its next
    pair; -1 and -1 for the first.
    """
    star, rival, largest = -1, -1, 0.0
    bound = gain[after] - gain[after_rival] if after >= 0 else np.inf
    seed = mix(rule.key + np.uint64(i + 1) * GOLDEN)
    for number in range(rule.draws if last - first > 1 else 0):
        x, y = draw(seed, number, last - first)
        x, y = first + x, first + y
        if gain[x] < gain[y]:
            x, y = y, x
        gap = gain[x] - gain[y]
        if gap > rule.threshold and comes_before(bound, after, after_rival, gap, x, y):
            if star < 0 or comes_before(gap, x, y, largest, star, rival):
                star, rival, largest = x, y, gap
    return star, rival


@kernel
def chosen_pair(
    i: int, first: int, last: int, scores: np.ndarray, gain: np.ndarray, oracle: int, rule: PairRule
) -> tuple[int, int]:
    """(y*, y') of list i by a source that is not the oracle, y' = -1 where there is nothing to compare."""
    if rule.source == SAMPLED or first == last:
        return sampled(i, first, last, gain, rule, -1, -1)
    star = hope(first, last, scores, gain, oracle, rule.tilt)
    return star, fear(first, last, scores, gain, star, rule.tilt)


@kernel
def confront(data: ListArrays, i: int, scores: np.ndarray, any_ties: bool) -> tuple[int, int]:
    """(y*, y') of list i under ``scores``, y' = -1 where there is nothing to compare."""
    first, last = data.lists[i], data.lists[i + 1]
    if len(data.pairs.others) == 0:
        return rivals(first, last, scores, data.gain, data.oracle[i], any_ties, 0.0)
    return chosen_pair(i, first, last, scores, data.gain, data.oracle[i], data.pairs)


@kernel
def confront_next(
    data: ListArrays, i: int, scores: np.ndarray, any_ties: bool, star: int, rival: int
) -> tuple[int, int]:
    """The pair of list i that comes after (``star``, ``rival``), y' = -1 where there is none.

    The rival, or fear, is struck out of ``scores``; further fears follow while one is above the hope.
    """
    first, last = data.lists[i], data.lists[i + 1]
    if data.pairs.source == SAMPLED:
        return sampled(i, first, last, data.gain, data.pairs, star, rival)
    scores[rival - first] = -np.inf
    if len(data.pairs.others) == 0:
        _, rival = rivals(first, last, scores, data.gain, data.oracle[i], any_ties, 0.0)
        return star, rival if scores[rival - first] > -np.inf else -1
    return star, fear(first, last, scores, data.gain, star, data.pairs.tilt)
