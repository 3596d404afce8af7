"""The n-grams of references in a hash table, and how many of them a text has."""

from typing import NamedTuple

import numpy as np

from rerank.data.symbols import combine, find_slot
from rerank.kernels.compile import kernel

FREE = np.uint64(0)


class NgramTable(NamedTuple):
    """N-grams by hash (open addressing), a power of two in size; of these arrays, ``keys`` alone begins with zeros."""

    keys: np.ndarray  # uint64: the n-gram's hash, 0: free
    limit: np.ndarray  # int32: how often it is in the reference that has it most often
    seen: np.ndarray  # int32: how often it was counted in the text ``stamp``
    stamp: np.ndarray  # int32: the number of the last text that has it, from 0


def ngram_table(ngrams: int) -> NgramTable:
    """A table with room for ``ngrams`` n-grams at a load of at most one half."""
    capacity = 1 << int(2 * ngrams + 1).bit_length()
    return NgramTable(np.zeros(capacity, np.uint64), *(np.empty(capacity, np.int32) for _ in range(3)))


@kernel
def _slot(table: NgramTable, h: np.uint64) -> int:
    """The slot of an n-gram by its hash, or the free one where it belongs; no hash is that of a free slot."""
    return int(find_slot(table.keys, h if h != FREE else np.uint64(1)))


@kernel
def enter_ngrams(symbols: np.ndarray, order: int, seed: np.uint64, text: int, table: NgramTable) -> None:
    """Add the n-grams of up to ``order`` symbols of reference ``text``; a hash continues that of one symbol less."""
    for i in range(symbols.shape[0]):
        h = seed
        for j in range(i, min(i + order, symbols.shape[0])):
            h = combine(h, np.uint64(symbols[j]))
            slot = _slot(table, h)
            if table.keys[slot] == FREE:
                table.keys[slot] = h if h != FREE else np.uint64(1)
                table.limit[slot], table.stamp[slot] = 0, -1
            if table.stamp[slot] != text:
                table.stamp[slot], table.seen[slot] = text, 0
            table.seen[slot] += 1
            table.limit[slot] = max(table.limit[slot], table.seen[slot])


@kernel
def match_ngrams(
    symbols: np.ndarray, order: int, seed: np.uint64, text: int, table: NgramTable, row: np.ndarray, step: int
) -> None:
    """Add to row[step * (n - 1)] how many n-grams of a text are in a reference; none longer than one that is not."""
    L = symbols.shape[0]
    for i in range(L):
        h = seed
        for n in range(min(order, L - i)):
            h = combine(h, np.uint64(symbols[i + n]))
            slot = _slot(table, h)
            if table.keys[slot] == FREE:
                break
            if table.stamp[slot] != text:
                table.stamp[slot], table.seen[slot] = text, 0
            if table.seen[slot] < table.limit[slot]:
                table.seen[slot] += 1
                row[step * n] += 1
