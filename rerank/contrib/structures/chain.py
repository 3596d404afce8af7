"""Chains of first order: sequences of tokens, each with attributes and one of K labels.

The score of labels y_0 … y_n is Σ_t Σ_a x_ta·w(a, y_t) + Σ_t w(y_{t−1}, y_t). Columns of the weights are the K·K
transitions (from, to) and then, for every attribute, its K labels side by side, so that a token's scores are sums of a
few rows of a dense table. A mask says which labels may follow each other, begin and end an example.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rerank.base.errors import DataError
from rerank.data.corpus import frozen, offsets, ranges_of
from rerank.kernels.by_type import by_type
from rerank.kernels.compile import kernel
from rerank.learn.predictor import shrink
from rerank.learn.scoring import single

UNKNOWN = -1  # a label that is not known


class Chains(NamedTuple):
    """Examples for kernels, frozen: L of them with T tokens and A attributes; made by ``chains_of``.

    Learners take them for a corpus of this many columns, D = ``width``.
    """

    starts: np.ndarray  # int64 [L + 1]: example i has the tokens starts[i] … starts[i + 1] − 1
    rows: np.ndarray  # int64 [T + 1]: where the attributes of each token begin
    attributes: np.ndarray  # uint32 [nnz]: 0 … A − 1
    values: np.ndarray  # float32 [nnz], or [0] where all are 1
    gold: np.ndarray  # int32 [T]: the right labels, ``UNKNOWN`` where there are none
    allowed: np.ndarray  # uint8 [K + 2, K]: may this label follow that; row K: may it begin, row K + 1: may it end?
    attribute_count: int  # A

    @property
    def example_count(self) -> int:
        """L."""
        return self.starts.size - 1

    @property
    def labels(self) -> int:
        """K."""
        return int(self.allowed.shape[1])

    @property
    def width(self) -> int:
        """D = K·K + A·K, the number of columns."""
        return self.labels * (self.labels + self.attribute_count)

    @property
    def free(self) -> int:
        """The number of columns without a penalty: none."""
        return 0

    @property
    def candidate_count(self) -> int:
        """Outputs are not counted."""
        return 0

    @property
    def nonzeros(self) -> int:
        """The number of stored attributes."""
        return int(self.attributes.size)

    @property
    def longest(self) -> int:
        """Tokens of the longest example."""
        return int(np.diff(self.starts).max(initial=0))

    def take(self, examples: np.ndarray) -> "Chains":
        """The ``examples`` (int64) alone, in this order, with the attributes and labels of all."""
        tokens = ranges_of(self.starts, examples)
        entries = ranges_of(self.rows, tokens)
        return self._replace(
            starts=frozen(offsets(np.diff(self.starts)[examples])), rows=frozen(offsets(np.diff(self.rows)[tokens])),
            attributes=frozen(self.attributes[entries]), gold=frozen(self.gold[tokens]),
            values=frozen(self.values[entries]) if self.values.size else self.values,
        )  # fmt: skip


def chains_of(
    starts: ArrayLike,
    rows: ArrayLike,
    attributes: ArrayLike,
    gold: ArrayLike | None,
    allowed: ArrayLike | int,
    *,
    attribute_count: int,
    values: ArrayLike | None = None,
    names: Sequence[str] = (),
) -> Chains:
    """Check arrays and freeze them as ``Chains``, which describes them.

    gold: None where no label is known; allowed: K where every label may follow every other; names: of the labels, for
    messages.

    Raises
    ------
    DataError: names the example (from 1) whose labels the mask forbids, or that is so long or short that the mask
        allows it no labels at all.
    ValueError: arrays that do not belong together.
    """
    mask = np.ones((allowed + 2, allowed), np.uint8) if isinstance(allowed, int) else np.asarray(allowed) != 0
    starts, rows = np.asarray(starts, np.int64), np.asarray(rows, np.int64)
    tokens, K = rows.size - 1, mask.shape[1]
    chains = Chains(
        starts=starts, rows=rows, attributes=np.asarray(attributes, np.uint32),
        values=np.zeros(0, np.float32) if values is None else np.asarray(values, np.float32),
        gold=np.full(tokens, UNKNOWN, np.int32) if gold is None else np.asarray(gold, np.int32),
        allowed=mask.astype(np.uint8),
        attribute_count=int(attribute_count),
    )  # fmt: skip
    fits = mask.shape[0] == K + 2 and K > 0 and starts[0] == rows[0] == 0 and starts[-1] == tokens
    fits &= chains.gold.size == tokens and chains.width < 2**32
    fits &= rows[-1] == chains.attributes.size and chains.values.size in (0, chains.attributes.size)
    if not (fits and (np.diff(starts) >= 0).all() and (np.diff(rows) >= 0).all()):
        raise ValueError("the arrays of these chains do not belong together; see Chains")
    if chains.attributes.max(initial=0) >= max(1, attribute_count) or chains.gold.max(initial=0) >= K:
        raise ValueError(f"found an attribute from {attribute_count} on, or a label from {K} on; both count from 0")
    _require_allowed(chains, names)
    for array in chains[:-1]:
        np.asarray(array).flags.writeable = False
    return chains


def _require_allowed(chains: Chains, names: Sequence[str]) -> None:
    """Refuse examples to which the mask allows no labels, or not their own."""
    mask, K, starts, gold = chains.allowed, chains.labels, chains.starts, chains.gold
    lengths, reached, possible = np.diff(starts), mask[K] > 0, [True]
    for _ in range(chains.longest):
        possible.append(bool((reached & (mask[K + 1] > 0)).any()))
        reached = (mask[:K][reached] > 0).any(axis=0)
    for i in np.flatnonzero(~np.array(possible)[lengths]):
        raise DataError(f"example {i + 1}: its transitions allow no labels for {lengths[i]} tokens")
    begins, ends = np.zeros((2, gold.size), bool)
    begins[starts[:-1][lengths > 0]] = ends[starts[1:][lengths > 0] - 1] = True
    before = np.where(begins, K, np.roll(gold, 1))
    bad = (mask[before, gold] == 0) | (ends & (mask[K + 1, gold] == 0))
    for t in np.flatnonzero(bad & (gold >= 0) & (before >= 0)):
        number = int(np.searchsorted(starts, t, "right"))  # from 1
        label = names[gold[t]] if names else f"label {gold[t]}"
        at = "at the start" if begins[t] else f"after {names[gold[t - 1]] if names else f'label {gold[t - 1]}'}"
        if mask[before[t], gold[t]]:
            at = "at the end"
        raise DataError(
            f"example {number}, token {t - starts[number - 1] + 1}: found {label} {at}, which is not allowed"
        )


class ChainRoom(NamedTuple):
    """Space that kernels write, for M tokens of the longest example; all scores are of one type."""

    transitions: np.ndarray  # [K, K] (to, from): what it adds to the score, −∞ where it is not allowed
    highest: np.ndarray  # [K]: the greatest of a row of them
    stamp: np.ndarray  # int64 [1]: the number of updates after which ``transitions`` were read
    emissions: np.ndarray  # [M, K]: scores of a token's labels, −∞ where they may not begin or end
    best: np.ndarray  # [M, K]: score of the best labels from here on, for each label here
    output: np.ndarray  # int32 [M]: the labels that were found
    slots: np.ndarray  # int32, a power of two of them, all −1: places of columns, see ``differing_columns``


def room_for(chains: Chains, kind: Any = np.float64) -> ChainRoom:
    """Space for ``chains`` with scores of this type."""
    M, K = max(1, chains.longest), chains.labels
    slots = 2 << max(1, (entries_of(chains) - 1).bit_length())
    return ChainRoom(
        np.empty((K, K), kind), np.empty(K, kind), np.full(1, -1, np.int64), np.empty((M, K), kind),
        np.empty((M, K), kind), np.empty(M, np.int32), np.full(slots, -1, np.int32),
    )  # fmt: skip


def entries_of(chains: Chains) -> int:
    """The most columns in which two outputs of an example can differ."""
    nonzeros = np.diff(chains.rows[chains.starts]) if chains.example_count else np.zeros(1, np.int64)
    return 2 * (int(nonzeros.max(initial=0)) + chains.longest) + 1


@by_type
def read_transitions(chains: Chains, state: Any, room: ChainRoom) -> None:
    """The weights of transitions, if an update has changed them since they were last read."""
    if room.stamp[0] == state.counts.updates:
        return
    room.stamp[0] = state.counts.updates
    K, now = room.highest.shape[0], state.now
    for y in range(K):
        room.highest[y] = -np.inf
    for x in range(K):
        for y in range(K):
            w = -np.inf
            if chains.allowed[x, y]:
                slope = state.v[x * K + y] if state.v.shape[0] > 0 else now.slope
                w = now.d * shrink(state.a[x * K + y], now.tau * slope)
            room.transitions[y, x] = w
            room.highest[y] = max(room.highest[y], room.transitions[y, x])


@kernel
def add_row(a: np.ndarray, first: int, value: float, out: np.ndarray) -> None:
    """Add the weights of an attribute's labels, times its value."""
    j = np.uint64(first)
    for y in range(np.uint64(out.shape[0])):
        out[y] += a[j + y] * value


@kernel
def add_shrunk_row(
    a: np.ndarray, v: np.ndarray, first: int, value: float, tau: float, slope: float, out: np.ndarray
) -> None:
    """``add_row`` under a threshold."""
    j: Any = np.uint64(first)
    for y in range(np.uint64(out.shape[0])):
        threshold = tau * (v[j + y] if v.shape[0] > 0 else slope)
        out[y] += shrink(a[j + y], threshold) * value


@by_type
def score_tokens(chains: Chains, i: int, state: Any, room: ChainRoom) -> int:
    """The scores of all labels of the tokens of example i; returns how many tokens there are."""
    K, first, end = room.highest.shape[0], chains.starts[i], chains.starts[i + 1]
    d, tau, slope = room.highest.dtype.type(state.now.d), state.now.tau, state.now.slope
    one = room.highest.dtype.type(1.0)
    for t in range(first, end):
        out = room.emissions[t - first]
        for y in range(K):
            out[y] = 0.0
        for p in range(np.uint64(chains.rows[t]), np.uint64(chains.rows[t + 1])):
            j = K * (K + np.int64(chains.attributes[p]))
            value = one if chains.values.shape[0] == 0 else room.highest.dtype.type(single(chains.values[p]))
            if tau > 0.0:
                add_shrunk_row(state.a, state.v, j, value, tau, slope, out)
            else:
                add_row(state.a, j, value, out)
        for y in range(K):
            out[y] *= d
    if first < end:
        for y in range(K):
            if not chains.allowed[K, y]:
                room.emissions[0, y] = -np.inf
            if not chains.allowed[K + 1, y]:
                room.emissions[end - first - 1, y] = -np.inf
    return int(end - first)


@kernel
def add_cost(chains: Chains, i: int, tilt: float, room: ChainRoom) -> None:
    """Add ``tilt`` to the scores of all labels that are wrong."""
    first = chains.starts[i]
    for t in range(chains.starts[i + 1] - first):
        for y in range(room.highest.shape[0]):
            if y != chains.gold[first + t]:
                room.emissions[t, y] += room.highest.dtype.type(tilt)
