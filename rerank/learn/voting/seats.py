"""Seats: a list as differences between its candidates.

The columns of a list that have the same values on all its candidates form a *pattern*. A candidate is stored as its
differences from the earlier candidate that it is most like: on parse lists, a fifth of its own nonzeros.

Where the values are small whole numbers (counts, indicators), levels can be summed before they are multiplied: rounding
makes no difference. With other values it does: a column that has such a value is a *real* pattern of its own, whose
values are stored as they are.
"""

from typing import NamedTuple

import numpy as np

from rerank.data.corpus import Corpus
from rerank.kernels.compile import kernel

WINDOW = 64  # earlier candidates that one is compared with: all of them would take quadratic time
LARGEST_WHOLE = 127.0  # the largest |value| that is multiplied as a whole number


class Seats(NamedTuple):
    """A list of N candidates in *places*: by falling base score, then by index, so that the first of a tie wins.

    The columns of pattern p are column[members[p]]..column[members[p + 1]]; whole patterns come first. The edges
    edges[y]..edges[y + 1] of place y, by rising pattern: the values of whole patterns less those of the place that it
    is like, where these differ, and those of real patterns.
    """

    candidate: np.ndarray  # int64 [N]: the candidate at a place
    base: np.ndarray  # float64 [N]: its base score
    like: np.ndarray  # int64 [N]: the place that it is stored as differences from; -1 for none, that is, zeros
    whole: int  # how many patterns are
    members: np.ndarray  # int64 [P + 1]
    column: np.ndarray  # int32
    largest: np.ndarray  # float64 [P]: largest |value|
    edges: np.ndarray  # int64 [N + 1]
    pattern: np.ndarray  # int64
    value: np.ndarray  # float64


@kernel
def find_like(rows: np.ndarray, like: np.ndarray) -> None:
    """like[y] ← the earlier row that differs least from row y, the first of these; -1 if y has no more nonzeros."""
    for y in range(rows.shape[0]):
        least = 0
        for p in range(rows.shape[1]):
            least += rows[y, p] != 0.0
        for x in range(max(0, y - WINDOW), y):
            count = 0
            for p in range(rows.shape[1]):
                count += rows[x, p] != rows[y, p]
            if count < least:
                like[y], least = x, count


def seats_of(corpus: Corpus, i: int, name: np.ndarray) -> Seats:
    """List i of ``corpus``, with the columns that have a ``name`` (int32 [D]; -1 for none)."""
    first, last = corpus.lists[i], corpus.lists[i + 1]
    begin, end = corpus.rows[first], corpus.rows[last]
    order = np.argsort(-corpus.base[first:last], kind="stable")
    place = np.empty(order.size, np.int64)
    place[order] = np.arange(order.size)
    names = name[corpus.columns[begin:end]]
    owner = np.repeat(place, np.diff(corpus.rows[first : last + 1]))[names >= 0]
    column, where = np.unique(names[names >= 0], return_inverse=True)
    values = np.zeros((order.size, column.size), np.float32)
    values[owner, where] = corpus.values[begin:end][names >= 0]
    real = ((values != np.rint(values)) | (np.abs(values) > LARGEST_WHOLE)).any(axis=0)
    _, kept, pattern = np.unique(hashes_of(values, column, real), return_index=True, return_inverse=True)
    values, whole = values[:, kept], kept.size - int(np.count_nonzero(real))
    like = np.full(order.size, -1)
    find_like(np.ascontiguousarray(values[:, :whole]), like)
    others = np.vstack([values, np.zeros((1, kept.size), np.float32)])[like]
    others[:, whole:] = 0.0
    y, p = np.nonzero(values != others)
    return Seats(
        candidate=first + order,
        base=corpus.base[first:last][order],
        like=like,
        whole=whole,
        members=np.cumsum(np.bincount(pattern + 1, minlength=kept.size + 1)),
        column=column[np.argsort(pattern, kind="stable")],
        largest=np.abs(values).max(axis=0, initial=0.0).astype(np.float64),
        edges=np.cumsum(np.bincount(y + 1, minlength=order.size + 1)),
        pattern=p,
        value=(values - others)[y, p].astype(np.float64),
    )


def hashes_of(values: np.ndarray, column: np.ndarray, real: np.ndarray) -> np.ndarray:
    """uint64 [columns]: the same for columns with the same values (float32 [N, columns]); real ones follow, each apart.

    With 63 bits, values need not be compared.
    """
    factor, shift = np.uint64(0x9E3779B97F4A7C15), np.uint64(29)
    hashes = np.zeros(column.size, np.uint64)
    for row in values.view(np.uint32):
        hashes = (hashes ^ row) * factor
        hashes ^= hashes >> shift
    return np.where(real, ~column.astype(np.uint64), hashes >> np.uint64(1))
