"""The order in which a fit visits its examples, and how often: sample weights as repeated visits.

An example of weight s is visited ⌈s⌉ times per pass with importance s/⌈s⌉, so a whole weight is the same as so many
equal rows. Above ``MOST`` it is visited ``MOST`` times, and importance, by which every rule scales its steps, does the
rest: a million visits would take too long.

In a shuffled fit equal rows are one example, whose weight is the sum of theirs, and examples are sorted by their
content before the seed shuffles their visits: neither the order of the rows nor their repetition changes the result.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rerank.data.labelled import Labelled
from rerank.data.symbols import combine, mix
from rerank.kernels.compile import kernel

LIMIT = 10**8  # visits in a pass
MOST = 1000  # visits of a row in a pass
ROUNDING = 1e-9  # sums of weights this close to a whole number are meant to be one


class Visits(NamedTuple):
    """One pass over n examples before it is shuffled."""

    sequence: np.ndarray  # int64 [V]: examples
    weight: np.ndarray  # float64 [n]: of all equal rows together; 0 for examples that are not visited
    importance: np.ndarray  # float64 [n]: of a visit

    def order(self, shuffle: bool, seed: int, epoch: int) -> np.ndarray:
        """int64 [V]: the visits of an epoch, from seed and epoch alone."""
        return np.random.default_rng([seed, epoch]).permutation(self.sequence) if shuffle else self.sequence


@kernel
def hash_examples(
    rows: np.ndarray, columns: np.ndarray, bits: np.ndarray, label: np.ndarray, hashes: np.ndarray
) -> None:
    """hashes[i] (uint64) ← a hash of the columns, values (``bits``: as uint32) and label of example i."""
    for i in range(hashes.shape[0]):
        h = mix(np.uint64(label[i] + 1))
        for p in range(rows[i], rows[i + 1]):
            h = combine(h, (np.uint64(columns[p]) << np.uint64(32)) | np.uint64(bits[p]))
        hashes[i] = h


@kernel
def mark_new(
    rows: np.ndarray, columns: np.ndarray, bits: np.ndarray, label: np.ndarray, order: np.ndarray, new: np.ndarray
) -> None:
    """new[r] (bool) ← does example order[r] differ from order[r − 1]?"""
    for r in range(order.shape[0]):
        if r == 0:
            new[r] = True
            continue
        i, before = order[r], order[r - 1]
        size, p, q = rows[i + 1] - rows[i], rows[i], rows[before]
        new[r] = label[i] != label[before] or size != rows[before + 1] - q
        for t in range(size):
            if new[r]:
                break
            new[r] = columns[p + t] != columns[q + t] or bits[p + t] != bits[q + t]


def visits_of(examples: Labelled, shuffle: bool) -> Visits:
    """The visits of a pass over ``examples``: as they are, or (``shuffle``) with equal ones joined, sorted by content.

    Raises
    ------
    ValueError: the weights ask for more than ``LIMIT`` visits.
    """
    weight, n = examples.weight, examples.label.size
    kept, equal = np.arange(n), np.ones(n, np.int64)
    if shuffle:
        bits = np.ascontiguousarray(examples.values).view(np.uint32)
        bits.flags.writeable = False
        content = examples.rows, examples.columns, bits, examples.label
        hashes, new = np.empty(n, np.uint64), np.empty(n, np.bool_)
        hash_examples(*content, hashes)
        order = np.lexsort((weight, hashes))  # by weight too, so that sums have the same bits in any order of rows
        mark_new(*content, order, new)
        starts = np.flatnonzero(new)
        equal = np.diff(np.append(starts, n))
        kept, weight = order[starts], np.add.reduceat(weight[order], starts)
    times = np.minimum(np.ceil(weight * (1.0 - ROUNDING)), MOST * equal).astype(np.int64)
    if times.sum() > LIMIT:
        raise ValueError(
            f"the sample weights ask for {times.sum():.3g} visits per pass, more than {LIMIT:.0e}; "
            "divide them by a constant"
        )
    total, importance = np.zeros((2, n))
    total[kept], importance[kept] = weight, weight / np.maximum(times, 1)
    return Visits(np.repeat(kept, times), total, importance)
