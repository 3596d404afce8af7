"""What is above, beside and below each bracket of a list, in the best candidate that has it."""

from typing import NamedTuple

import numpy as np

from rerank.kernels.compile import kernel
from rerank.metrics.decoding.bracket_kernel import Brackets

NONE, UNSEEN = -1, -2


class Kin(NamedTuple):
    """For each of B brackets, the symbols (int32 [B], UNSEEN at first) of what is around it in a tree: labels of
    brackets, tags of words that no smaller bracket holds, NONE where there is nothing."""

    parent: np.ndarray
    grandparent: np.ndarray
    before: np.ndarray  # the child of its parent that ends where it begins
    after: np.ndarray  # and the one that begins where it ends
    first: np.ndarray  # its own first child
    last: np.ndarray
    children: np.ndarray  # how many it has


@kernel
def _read_children(
    found: Brackets, own: int, place: int, stop: int, tags: np.ndarray, above: np.ndarray, out: Kin
) -> None:
    """Fill what ``out`` lacks of bracket ``own`` (-1: the whole tree) by its children, and of those by their siblings.

    The tree's brackets after it are found.bracket[place:stop]; tags: int32 [W]. above: int32, the label above the
    bracket at every place; that of the first one's is NONE, of others it is written with their parent's children.
    """
    label_above, higher = NONE, NONE
    word, end = np.int64(0), np.int64(tags.shape[0])
    if own >= 0:
        label_above, higher = found.label[own], above[place - 1]
        word, end = np.int64(found.start[own]), np.int64(found.end[own])
    fresh = own >= 0 and out.children[own] == UNSEEN
    count, symbol, waiting = 0, np.int32(NONE), -1
    while word < end:
        child, before = -1, symbol
        if place < stop and found.start[found.bracket[place]] == word:
            child = found.bracket[place]
            above[place] = label_above
            symbol, word = found.label[child], np.int64(found.end[child])
            while place < stop and found.start[found.bracket[place]] < word:
                place += 1
        else:
            symbol = tags[word]
            word += 1
        if waiting >= 0:
            out.after[waiting] = symbol
        waiting = -1
        if child >= 0 and out.parent[child] == UNSEEN:
            out.parent[child], out.grandparent[child] = label_above, higher
            out.before[child], out.after[child] = before, NONE
            waiting = child
        if fresh and count == 0:
            out.first[own] = symbol
        count += 1
    if fresh:
        out.last[own], out.children[own] = symbol, count


@kernel
def read_kin(found: Brackets, order: np.ndarray, tags: np.ndarray, above: np.ndarray, out: Kin) -> None:
    """Fill ``out`` from candidates in the ``order`` (int64) in which they count.

    tags: int32 [T, W]; above (int32, as long as ``found.bracket``) is scratch.
    """
    for rank in range(order.shape[0]):
        t = order[rank]
        first, stop = found.first[t], found.first[t + 1]
        _read_children(found, -1, first, stop, tags[t], above, out)
        for place in range(first, stop):
            _read_children(found, found.bracket[place], place + 1, stop, tags[t], above, out)
