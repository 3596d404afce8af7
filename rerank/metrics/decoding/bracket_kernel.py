"""The brackets of a list's trees by number, how much weight is behind each, and the tree of those that have enough."""

from typing import NamedTuple

import numpy as np

from rerank.data.symbols import mix
from rerank.kernels.compile import kernel
from rerank.metrics.parseval_kernel import BracketLabels, Sentence, count_kept, read_brackets, read_words
from rerank.readers.trees.trees import Trees

ROUNDING = 1e-9  # of a weight: the brackets kept have this much more than the threshold, so that no two can cross


class Brackets(NamedTuple):
    """B different brackets and, for every tree in preorder, which it has; a bracket that a tree repeats is another one.

    ``slot`` is the hash table: bracket, or -1 where it is free; a power of two in size, twice the brackets at least.
    """

    first: np.ndarray  # int64 [T + 1]: those of tree t are bracket[first[t]:first[t + 1]]
    bracket: np.ndarray  # int32 [n]
    label: np.ndarray  # int32 [n], as are the next five; B of each are used
    start: np.ndarray
    end: np.ndarray
    copy: np.ndarray  # how many equal ones are above it in its tree
    last: np.ndarray  # the last tree that has it
    slot: np.ndarray  # int32


@kernel
def _find(found: Brackets, label: int, start: int, end: int, copy: int) -> int:
    """The slot of a bracket, or the free one where it belongs."""
    h = mix((np.uint64(label) << np.uint64(32)) ^ np.uint64(copy))
    h = mix(h ^ (np.uint64(start) << np.uint64(32)) ^ np.uint64(end))
    mask = found.slot.shape[0] - 1
    at = np.int64(h & np.uint64(mask))
    while found.slot[at] >= 0:
        b = found.slot[at]
        if found.start[b] == start and found.end[b] == end and found.label[b] == label and found.copy[b] == copy:
            break
        at = (at + 1) & mask
    return int(at)


@kernel
def number_brackets(
    trees: Trees, used: np.ndarray, table: BracketLabels, keep: np.ndarray, space: Sentence, found: Brackets
) -> int:
    """Number the brackets of the trees ``used``; returns B. keep: the words that count, by default each tree's own."""
    found.slot[:] = -1
    B, at = 0, 0
    for t in range(used.shape[0]):
        found.first[t] = at
        if not used[t]:
            continue
        words = read_words(trees, t, table, space)
        if keep.shape[0]:
            for k in range(words):
                space.keep[k] = keep[k]
        count_kept(trees, t, table, space)
        for b in range(read_brackets(trees, t, table, space)):
            copy = 0
            slot = _find(found, space.label[b], space.start[b], space.end[b], copy)
            while found.slot[slot] >= 0 and found.last[found.slot[slot]] == t:
                copy += 1
                slot = _find(found, space.label[b], space.start[b], space.end[b], copy)
            if found.slot[slot] < 0:
                found.slot[slot] = B
                found.label[B], found.start[B], found.end[B] = space.label[b], space.start[b], space.end[b]
                found.copy[B] = copy
                B += 1
            number = found.slot[slot]
            found.last[number], found.bracket[at] = t, number
            at += 1
    found.first[used.shape[0]] = at
    return B


@kernel
def read_leaves(
    trees: Trees, table: BracketLabels, space: Sentence, counts: np.ndarray, leaves: np.ndarray, keep: np.ndarray
) -> None:
    """The numbers of words, their nodes, and which their own tags keep; words beyond the room are only counted."""
    for t in range(counts.shape[0]):
        counts[t] = read_words(trees, t, table, space)
        for k in range(min(counts[t], leaves.shape[1])):
            leaves[t, k], keep[t, k] = space.node[k], space.keep[k]


@kernel
def add_weights(first: np.ndarray, bracket: np.ndarray, weights: np.ndarray, total: np.ndarray) -> None:
    """Add to total[a, b] (float64 [A, B]) the weights[a, t] (float64 [A, T]) of the trees that have bracket b."""
    for a in range(weights.shape[0]):
        for t in range(first.shape[0] - 1):
            for i in range(first[t], first[t + 1]):
                total[a, bracket[i]] += weights[a, t]


@kernel
def heaviest(labels: np.ndarray, used: np.ndarray, weights: np.ndarray, sums: np.ndarray) -> int:
    """The first of those ``used`` whose label has the most weight; ``sums`` (float64 [T]) is scratch."""
    best = -1
    for t in range(labels.shape[0]):
        if used[t]:
            same = 0
            while not used[same] or labels[same] != labels[t]:
                same += 1
            sums[t] = 0.0
            sums[same] += weights[t]
    for t in range(labels.shape[0]):
        if used[t] and (best < 0 or sums[t] > sums[best] + ROUNDING):
            best = t
    return best


@kernel
def _above(found: Brackets, weights: np.ndarray, upper: int, lower: int) -> float:
    """The weight of trees that have bracket ``upper`` above ``lower``, less that of those with it below."""
    total = 0.0
    for t in range(weights.shape[0]):
        seen = -1
        for i in range(found.first[t], found.first[t + 1]):
            if found.bracket[i] == upper or found.bracket[i] == lower:
                if seen >= 0:
                    total += weights[t] if seen == upper else -weights[t]
                seen = found.bracket[i]
    return total


@kernel
def _choose(
    found: Brackets, order: np.ndarray, total: np.ndarray, weights: np.ndarray, threshold: float, kept: np.ndarray
) -> int:
    """Brackets of more weight than ``threshold`` in preorder → ``kept``; of equal spans first what is above in most."""
    count = 0
    for i in range(order.shape[0]):
        b = order[i]
        if not total[b] > threshold + ROUNDING:
            continue
        at = count
        while at > 0 and found.start[kept[at - 1]] == found.start[b] and found.end[kept[at - 1]] == found.end[b]:
            if not _above(found, weights, b, kept[at - 1]) > ROUNDING:
                break
            kept[at] = kept[at - 1]
            at -= 1
        kept[at] = b
        count += 1
    return count


@kernel
def _open(out: Trees, node: int, parent: int, label: int, start: int) -> None:
    """Begin a node of a tree."""
    out.label[node], out.word[node], out.parent[node], out.start[node] = label, -1, parent, start


@kernel
def _whole(found: Brackets, total: np.ndarray, words: int) -> int:
    """The label of the heaviest bracket over all words, the first of equal ones; -1 if there is none."""
    best = -1
    for b in range(total.shape[0]):
        if found.start[b] == 0 and found.end[b] == words and (best < 0 or total[b] > total[best] + ROUNDING):
            best = b
    return -1 if best < 0 else int(found.label[best])


@kernel
def _build(
    found: Brackets, kept: np.ndarray, count: int, root: int, tags: np.ndarray, words: np.ndarray, node: int, out: Trees
) -> int:
    """Write the tree of ``count`` brackets in preorder from ``node`` on; returns the node after it."""
    W, current, b = words.shape[0], -1, 0
    if root >= 0:
        _open(out, node, -1, root, 0)
        out.end[node] = W
        current, node = node, node + 1
    for w in range(W):
        while b < count and found.start[kept[b]] == w:
            _open(out, node, current, found.label[kept[b]], w)
            out.end[node] = found.end[kept[b]]
            current, node, b = node, node + 1, b + 1
        _open(out, node, current, tags[w], w)
        out.word[node], out.end[node], out.size[node] = words[w], w + 1, 1
        node += 1
        while current >= 0 and out.end[current] == w + 1:
            out.size[current] = node - current
            current = out.parent[current]
    return node


@kernel
def fuse_trees(
    found: Brackets, order: np.ndarray, used: np.ndarray, roots: np.ndarray, tags: np.ndarray, words: np.ndarray,
    weights: np.ndarray, total: np.ndarray, thresholds: np.ndarray, sums: np.ndarray, chosen: np.ndarray,
    kept: np.ndarray, out: Trees,
) -> None:  # fmt: skip
    """A tree for each of A weightings (float64 [A, T]) and each of H thresholds: A · H trees → ``out``.

    order: int64 [B], brackets by start and falling end; roots: int32 [T], the label of every tree's root if it is no
    bracket, else -1; tags: int32 [W, T]; words: int32 [W]; total: float64 [A, B], the weight of every bracket; sums
    (float64 [T]), chosen (int32 [W]) and kept (int32 [B]) are scratch.
    """
    node, W = 0, words.shape[0]
    for a in range(weights.shape[0]):
        for w in range(W):
            chosen[w] = tags[w, heaviest(tags[w], used, weights[a], sums)]
        root = roots[heaviest(roots, used, weights[a], sums)]
        for h in range(thresholds.shape[0]):
            out.first[a * thresholds.shape[0] + h] = node
            count = _choose(found, order, total[a], weights[a], thresholds[h], kept)
            top = root
            if top < 0 and not (count and found.start[kept[0]] == 0 and found.end[kept[0]] == W):
                top = _whole(found, total[a], W)
            node = _build(found, kept, count, top, chosen, words, node, out)
    out.first[weights.shape[0] * thresholds.shape[0]] = node


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
    """Write the children of bracket ``own`` (-1: the tree) that are new; found.bracket[place:stop] come after it."""
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
    """Fill ``out`` from candidates in the ``order`` in which they count; above: as long as ``found.bracket``."""
    for rank in range(order.shape[0]):
        t = order[rank]
        first, stop = found.first[t], found.first[t + 1]
        _read_children(found, -1, first, stop, tags[t], above, out)
        for place in range(first, stop):
            _read_children(found, found.bracket[place], place + 1, stop, tags[t], above, out)


@kernel
def drop_crossing(
    found: Brackets, order: np.ndarray, first: int, last: int, total: np.ndarray, kept: np.ndarray, count: int
) -> int:
    """Set ``total`` to 0 for those of order[first:last] that cross a ``kept`` one; returns how many are kept now."""
    for i in range(first, last):
        b, free = order[i], True
        for j in range(count):
            if crossing(found, b, kept[j]):
                free = False
                break
        if free:
            kept[count] = b
            count += 1
        else:
            total[b] = 0.0
    return count


@kernel
def crossing(found: Brackets, a: int, b: int) -> bool:
    """Whether two brackets share words, though neither holds the other."""
    if found.start[a] < found.start[b]:
        return bool(found.start[b] < found.end[a] < found.end[b])
    return bool(found.start[a] < found.end[b] < found.end[a] and found.start[b] < found.start[a])
