"""The order in which a fit visits its examples, and how often: sample weights as repeated visits.

An example of weight s is visited ⌈s⌉ times per pass with importance s/⌈s⌉, so a whole weight is the same as so many
equal rows. Above ``MOST`` it is visited ``MOST`` times, and importance, by which every rule scales its steps, does the
rest: a million visits would take too long.

In a shuffled fit equal rows are one example, whose weight is the sum of theirs, and examples are sorted by their
content before the seed shuffles their visits: neither the order of the rows nor their repetition changes the result.
"""

from typing import NamedTuple

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


@kernel
def hash_examples(
    rows: np.ndarray, columns: np.ndarray, values: np.ndarray, label: np.ndarray, constant: int, hashes: np.ndarray
) -> None:
    """hashes[i] (uint64) ← a hash of the columns, values and label of example i.

    constant: a column of ones that all rows end with although they do not hold it; -1 for none.
    """
    for i in range(hashes.shape[0]):
        h = mix(np.uint64(label[i] + 1))
        for p in range(np.uint64(rows[i]), np.uint64(rows[i + 1])):
            h = combine(h, (np.uint64(columns[p]) << HALF) | np.uint64(np.float32(values[p]).view(np.uint32)))
        hashes[i] = combine(h, (np.uint64(constant) << HALF) | ONE) if constant >= 0 else h


def visits_of(examples: Labelled, shuffle: bool, *, constant: bool = False) -> Visits:
    """The visits of a pass over ``examples``: as they are, or (``shuffle``) with equal ones joined, sorted by content.

    constant: sort them as if they had a last column of ones.
    """
    weight, n = examples.weight, examples.label.size
    kept, equal = np.arange(n), np.ones(n, np.int64)
    if shuffle:
        values = np.ascontiguousarray(examples.values)
        values.flags.writeable = False
        hashes = np.empty(n, np.uint64)
        last = examples.width if constant else -1
        hash_examples(examples.rows, examples.columns, values, examples.label, last, hashes)
        kept = np.argsort(hashes)
        if (hashes[kept[1:]] != hashes[kept[:-1]]).all():
            weight = weight[kept]
        else:
            order = np.lexsort((weight, hashes))  # by weight too, so that sums have the same bits in any order of rows
            # different rows of a million have the same 64 bits with a probability of 3e-8
            starts = np.flatnonzero(np.append(True, hashes[order[1:]] != hashes[order[:-1]]))
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
