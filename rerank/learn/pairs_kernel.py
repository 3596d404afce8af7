"""The two candidates of a list that are compared, by every pair source (see ``pairs``)."""

import numpy as np

from rerank.data.symbols import mix
from rerank.kernels.compile import kernel
from rerank.learn.losses import rivals
from rerank.learn.workspace import SAMPLED, ListArrays, PairRule

GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # the counter's step of splitmix64 (Steele et al. 2014)
LOW, HALF, ONE = np.uint64(0xFFFFFFFF), np.uint64(32), np.uint64(1)


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
    rival = hope(first, last, scores, gain, star, -tilt)
    return rival if rival != star else -1


@kernel
def draw(seed: np.uint64, number: int, size: int) -> tuple[int, int]:
    """Two different places of a list of this many candidates (≥ 2): splitmix64 of a counter."""
    bits = mix(seed + np.uint64(number + 1) * GOLDEN)
    x = ((bits >> HALF) * np.uint64(size)) >> HALF
    y = ((bits & LOW) * np.uint64(size - 1)) >> HALF
    return int(x), int(y + ONE if y >= x else y)


@kernel
def comes_before(gap: float, x: int, y: int, other: float, a: int, b: int) -> bool:
    """Whether the pair (x, y), whose gains differ by ``gap``, comes before (a, b), whose gains differ by ``other``."""
    return gap > other or (gap == other and (x < a or (x == a and y < b)))


@kernel
def sampled(
    i: int, first: int, last: int, gain: np.ndarray, rule: PairRule, after: int, after_rival: int
) -> tuple[int, int]:
    """The drawn pair with the largest difference of gains, of equals the first by (y*, y'); (-1, -1) for none.

    Only pairs that come after (``after``, ``after_rival``) count: -1 and -1 where list i is asked for its first one.
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
def pick_pair(data: ListArrays, i: int, scores: np.ndarray, any_ties: bool) -> tuple[int, int]:
    """(y*, y') of list i under ``scores``, y' = -1 where there is nothing to compare."""
    first, last = data.lists[i], data.lists[i + 1]
    if len(data.pairs.others) == 0:
        return rivals(first, last, scores, data.gain, data.oracle[i], any_ties, 0.0)
    return chosen_pair(i, first, last, scores, data.gain, data.oracle[i], data.pairs)


@kernel
def next_pair(data: ListArrays, i: int, scores: np.ndarray, any_ties: bool, star: int, rival: int) -> tuple[int, int]:
    """The pair of list i after (``star``, ``rival``), y' = -1 for none; the rival is struck out of ``scores``."""
    first, last = data.lists[i], data.lists[i + 1]
    if data.pairs.source == SAMPLED:
        return sampled(i, first, last, data.gain, data.pairs, star, rival)
    scores[rival - first] = -np.inf
    if len(data.pairs.others) == 0:
        _, rival = rivals(first, last, scores, data.gain, data.oracle[i], any_ties, 0.0)
        return star, rival if scores[rival - first] > -np.inf else -1
    return star, fear(first, last, scores, data.gain, star, data.pairs.tilt)
