"""The order in which a fit visits its examples, and how often: sample weights as repeated visits.

An example of weight s is visited ⌈s⌉ times per pass with importance s/⌈s⌉, so a whole weight is the same as so many
equal rows. Above ``MOST`` it is visited ``MOST`` times, and importance, by which every rule scales its steps, does the
rest: a million visits would take too long.

In a shuffled fit equal rows are one example, whose weight is the sum of theirs, and examples are sorted by their
content before the seed shuffles their visits: neither the order of the rows nor their repetition changes the result.
"""

from typing import Any, NamedTuple

import numpy as np

from rerank.data.labelled import Labelled
from rerank.data.symbols import combine, mix
from rerank.kernels.compile import kernel

LIMIT = 10**8  # visits in a pass
MOST = 1000  # visits of a row in a pass
ROUNDING = 1e-9  # sums of weights this close to a whole number are meant to be one
ONE, HALF = np.uint64(np.float32(1.0).view(np.uint32)), np.uint64(32)


class Visits(NamedTuple):
    """One pass over n examples before it is shuffled."""

    sequence: np.ndarray  # int64 [V]: examples
    weight: np.ndarray  # float64 [n]: of all equal rows together; 0 for examples that are not visited
    importance: np.ndarray  # float64 [n]: of a visit

    def order(self, shuffle: bool, seed: int, epoch: int) -> np.ndarray:
        """int64 [V]: the visits of an epoch, from seed and epoch alone."""
        return np.random.default_rng([seed, epoch]).permutation(self.sequence) if shuffle else self.sequence


@kernel
def symbol(columns: np.ndarray, values: np.ndarray, p: Any) -> np.uint64:
    """The column, and the value as a float32, of nonzero p."""
    return (np.uint64(columns[p]) << HALF) | np.uint64(np.float32(values[p]).view(np.uint32))


@kernel
def hash_rest(h: np.uint64, columns: np.ndarray, values: np.ndarray, first: Any, last: Any, constant: int) -> np.uint64:
    """A hash ``h`` of the nonzeros before ``first``, continued up to ``last`` and with the ``constant``."""
    for p in range(np.uint64(first), np.uint64(last)):
        h = combine(h, symbol(columns, values, p))
    return combine(h, (np.uint64(constant) << HALF) | ONE) if constant >= 0 else h


@kernel
def hash_examples(
    rows: np.ndarray, columns: np.ndarray, values: np.ndarray, label: np.ndarray, constant: int, hashes: np.ndarray
) -> None:
    """hashes[i] (uint64) ← a hash of the columns, values and label of example i.

    Every nonzero waits for the one before it, so two rows at a time take hardly longer than one. constant: a column of
    ones that all rows end with although they do not hold it; -1 for none.
    """
    n = hashes.shape[0]
    for i in range(0, n - 1, 2):
        p, q = np.uint64(rows[i]), np.uint64(rows[i + 1])
        both = min(rows[i + 1] - rows[i], rows[i + 2] - rows[i + 1])
        one, other = mix(np.uint64(label[i] + 1)), mix(np.uint64(label[i + 1] + 1))
        for r in range(np.uint64(both)):
            one = combine(one, symbol(columns, values, p + r))
            other = combine(other, symbol(columns, values, q + r))
        hashes[i] = hash_rest(one, columns, values, rows[i] + both, rows[i + 1], constant)
        hashes[i + 1] = hash_rest(other, columns, values, rows[i + 1] + both, rows[i + 2], constant)
    if n % 2 == 1:
        hashes[n - 1] = hash_rest(mix(np.uint64(label[n - 1] + 1)), columns, values, rows[n - 1], rows[n], constant)


@kernel
def mark_new(
    rows: np.ndarray, columns: np.ndarray, values: np.ndarray, label: np.ndarray, order: np.ndarray, new: np.ndarray
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
            new[r] = symbol(columns, values, p + t) != symbol(columns, values, q + t)


def visits_of(examples: Labelled, shuffle: bool, *, constant: bool = False) -> Visits:
    """The visits of a pass over ``examples``: as they are, or (``shuffle``) with equal ones joined, sorted by content.

    constant: sort them as if they had a last column of ones.
    """
    weight, n = examples.weight, examples.label.size
    kept, equal = np.arange(n), np.ones(n, np.int64)
    if shuffle:
        values = np.ascontiguousarray(examples.values)
        values.flags.writeable = False
        content = examples.rows, examples.columns, values, examples.label
        hashes = np.empty(n, np.uint64)
        hash_examples(*content, examples.width if constant else -1, hashes)
        kept = np.argsort(hashes)
        if (hashes[kept[1:]] != hashes[kept[:-1]]).all():
            weight = weight[kept]
        else:
            order = np.lexsort((weight, hashes))  # by weight too, so that sums have the same bits in any order of rows
            new = np.empty(n, np.bool_)
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
