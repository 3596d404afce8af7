"""What learners whose weights shrink without being touched share: counters, lazy sums of predictors, free columns.

The average Σ c_k w_k is summed up when a column's state changes: what it weighed under all predictors since the last
change follows from prefix sums over the predictors (see ``rda``).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from rerank.data.corpus import Corpus
from rerank.kernels.compile import kernel
from rerank.learn.base import Weights
from rerank.learn.workspace import ListArrays

# Indices of a state's counts: k; lists the current predictor survived, and those not in total yet; Σ c_k; how many
# columns are free. Indices of its base: s and Σ c_k β_k.
K, ALIVE, PENDING, TOTAL, FREE = range(5)
DUAL, SUM = range(2)


class Prefix(NamedTuple):
    """Prefix sums over the predictors of an epoch, k0 being the first: P_k, Q_k and F_k are at k − k0 + 1, 0 at 0."""

    P: np.ndarray  # float64 [updates + 2]
    Q: np.ndarray  # float64 [updates + 2]
    F: np.ndarray  # float64 [updates + 2]
    since: np.ndarray  # int64 [D]: the first predictor that is not in total yet
    k0: int


@kernel
def first_penalised(data: ListArrays, y: int) -> int:
    """Where candidate y's nonzeros in columns that are not free begin; columns rise within a row."""
    p, end = data.rows[y], data.rows[y + 1]
    while p < end and data.columns[p] < data.free:
        p += 1
    return int(p)


@kernel
def summed_weight(x: float, l1: float, a: int, b: int, prefix: Prefix) -> float:
    """Σ_{k=a..b} c_k w_kj while s_j = x."""
    size = abs(x)
    if not size > 0.0:
        return float(size)  # 0, or not a number: there is no last predictor to look up
    e = b if b * l1 < size else math.ceil(size / l1) - 1
    if e < a:
        return 0.0
    dP = prefix.P[e - prefix.k0 + 1] - prefix.P[a - prefix.k0]
    dQ = prefix.Q[e - prefix.k0 + 1] - prefix.Q[a - prefix.k0]
    total = size * dP - l1 * dQ
    return float(-total if x > 0 else total)


@kernel
def summed_free(x: float, a: int, b: int, prefix: Prefix) -> float:
    """Σ_{k=a..b} c_k w_kj of a free column while s_j = x."""
    return float(-x * (prefix.F[b - prefix.k0 + 1] - prefix.F[a - prefix.k0]))


@kernel
def close_predictor(state: Any, prefix: Prefix, d: float, f: float, beta: float) -> None:
    """Enter the current predictor, with what it has survived since it was last entered, into the prefix sums."""
    k, c = state.counts[K], state.counts[PENDING]
    at = k - prefix.k0 + 1
    prefix.P[at] = prefix.P[at - 1] + c * d
    prefix.Q[at] = prefix.Q[at - 1] + c * d * k
    prefix.F[at] = prefix.F[at - 1] + c * f
    state.base[SUM] += c * beta
    state.counts[TOTAL] += c
    state.counts[PENDING] = 0


@kernel
def count_active(s: np.ndarray, threshold: float, free: int) -> int:
    """How many coordinates have a weight."""
    count = 0
    for j in range(free):
        count += s[j] != 0.0
    for j in range(free, s.shape[0]):
        count += abs(s[j]) > threshold
    return count


def lazy_sums(corpus: Corpus, order: np.ndarray, k0: int) -> Prefix:
    """The prefix sums of an epoch over ``order`` whose first predictor is k0."""
    P, Q, F = np.zeros((3, order.size + 2))
    return Prefix(P, Q, F, np.full(corpus.width, k0, np.int64), k0)


def summed_average(state: Any, base: float, base_rate: float) -> Weights:
    """Σ c_k w_k / Σ c_k of a state that keeps both sums: ``total``, counts[TOTAL] and, for β, base[SUM]."""
    seen = int(state.counts[TOTAL])
    if seen == 0:
        return Weights(np.zeros(state.total.size), float(base))
    return Weights(state.total / seen, float(state.base[SUM] / seen) if base_rate else float(base))


def set_free(counts: np.ndarray, corpus: Corpus) -> None:
    """Note the free columns of ``corpus`` in counts[FREE].

    Raises
    ------
    ValueError: the state was trained with others; what it keeps for a column depends on whether it is free.
    """
    if counts[K] > 0 and counts[FREE] != corpus.free:
        raise ValueError(
            f"the state was trained with {counts[FREE]} free columns, the corpus has {corpus.free}; "
            "train on corpora of one feature table"
        )
    counts[FREE] = corpus.free


def penalty(value: float, columns: int, free: int) -> np.ndarray:
    """float64 [D]: ``value`` in the columns that are not free, else 0."""
    return np.where(np.arange(columns) < free, 0.0, value)
