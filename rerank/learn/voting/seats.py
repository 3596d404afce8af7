"""Seats: a list as differences between its candidates.

The columns of a list that have the same values on all its candidates form a *pattern*. A candidate is stored as its
differences from the earlier candidate that it is most like: on parse lists, a fifth of its own nonzeros.

Where the values are small whole numbers (counts, indicators), levels can be summed before they are multiplied: rounding
makes no difference. With other values it does: a column that has such a value is a *real* pattern of its own, whose
values are stored as they are.
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from rerank.data.corpus import Corpus
from rerank.data.symbols import mix
from rerank.kernels.compile import kernel

WINDOW = 64  # earlier candidates that one is compared with: all of them would take quadratic time
HALF = np.uint64(32)
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
def find_like(first: np.ndarray, pattern: np.ndarray, value: np.ndarray, row: np.ndarray, like: np.ndarray) -> None:
    """like[y] ← the earlier row that differs least from row y, the first of these; -1 if y has no more nonzeros.

    Row y has the nonzeros first[y]..first[y + 1]; ``row`` (float32 [patterns]) is room for one, 0 before and after.
    """
    for y in range(like.shape[0]):
        least = first[y + 1] - first[y]
        for e in range(first[y], first[y + 1]):
            row[pattern[e]] = value[e]
        for x in range(max(0, y - WINDOW), y):
            count = first[y + 1] - first[y]
            for e in range(first[x], first[x + 1]):  # what y has too was counted already
                same = row[pattern[e]]
                count += (same != value[e]) - (same != 0.0)
            if count < least:
                like[y], least = x, count
        for e in range(first[y], first[y + 1]):
            row[pattern[e]] = 0.0


def seats_of(corpus: Corpus, i: int, name: np.ndarray) -> Seats:
    """List i of ``corpus``, with the columns that have a ``name`` (int32 [D]; -1 for none)."""
    first, last = corpus.lists[i], corpus.lists[i + 1]
    begin, end = corpus.rows[first], corpus.rows[last]
    order = np.argsort(-corpus.base[first:last], kind="stable")
    place = np.empty(order.size, np.int64)
    place[order] = np.arange(order.size)
    names, values = name[corpus.columns[begin:end]], np.asarray(corpus.values[begin:end], np.float32)
    kept = (names >= 0) & (values != 0.0)
    owner, value = np.repeat(place, np.diff(corpus.rows[first : last + 1]))[kept], values[kept]
    column, where = np.unique(names[kept], return_inverse=True)
    real = np.zeros(column.size, np.bool_)
    real[where[(value != np.rint(value)) | (np.abs(value) > LARGEST_WHOLE)]] = True
    hashes = np.zeros(column.size, np.uint64)
    add_hashes(owner, where, value.view(np.uint32), hashes)
    hashes = np.where(real, ~column.astype(np.uint64), hashes >> np.uint64(1))  # real columns follow, each apart
    _, sample, pattern = np.unique(hashes, return_index=True, return_inverse=True)
    chosen = sample[pattern[where]] == where  # the nonzeros of one column of each pattern
    rows = csr_matrix((value[chosen], (owner[chosen], pattern[where[chosen]])), (order.size, sample.size))
    whole = sample.size - int(np.count_nonzero(real))
    others, like = rows[:, :whole], np.full(order.size, -1)
    find_like(others.indptr, others.indices, others.data, np.zeros(whole, np.float32), like)
    others.resize(order.size + 1, sample.size)  # the last row, which is that of -1, is 0
    edges = (rows - others[like]).sorted_indices()
    largest = np.zeros(sample.size, np.float32)
    np.maximum.at(largest, rows.indices, np.abs(rows.data))
    return Seats(
        candidate=first + order,
        base=corpus.base[first:last][order],
        like=like,
        whole=whole,
        members=np.cumsum(np.bincount(pattern + 1, minlength=sample.size + 1)),
        column=column[np.argsort(pattern, kind="stable")],
        largest=largest.astype(np.float64),
        edges=edges.indptr.astype(np.int64),
        pattern=edges.indices.astype(np.int64),
        value=edges.data.astype(np.float64),
    )


@kernel
def add_hashes(owner: np.ndarray, where: np.ndarray, bits: np.ndarray, hashes: np.ndarray) -> None:
    """Add hashes of a list's nonzeros to those of their columns: of columns with the same values they are the same.

    With 63 bits, values need not be compared.
    """
    for e in range(owner.shape[0]):
        hashes[where[e]] += mix((np.uint64(owner[e]) << HALF) | np.uint64(bits[e]))
