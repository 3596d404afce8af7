"""Places: where templates look, without repetition among a list's candidates.

A *place* stands for all nodes of a list at which a template of its scope sees the same; it is one representative
node and the candidates in which it occurs, with counts. A template runs once a place and its features count in all
of the place's candidates.

Scopes, from the smallest view to the largest:

* INSIDE: a node and what is below it, and whether it is the head of its parent;
* UPWARD: that, with the labels and flags of its ancestors up to ``depth``;
* EDGES: a span with its label, its place in the sentence and the tagged words beside its two edges;
* TREE: a candidate as a whole.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rerank.compile import kernel
from rerank.features.forest import SEM_HEAD, SYN_HEAD, Forest
from rerank.symbols import combine, find_slot

INSIDE, UPWARD, EDGES, TREE = 0, 1, 2, 3
EDGE_REACH = 2  # words that templates of scope EDGES may look at on either side of an edge


class Places(NamedTuple):
    """P places of one scope; occurrence entries are in candidate order."""

    node: np.ndarray  # int32 [P]: representative node
    first: np.ndarray  # int64 [P + 1]: entries of place p are first[p]..first[p + 1]
    candidate: np.ndarray  # int32 [entries]
    times: np.ndarray  # float32 [entries]: how often the place occurs in the candidate


@kernel
def _upward_key(f: Forest, i: int, depth: int) -> np.uint64:
    key = np.uint64(f.flags[i])
    key = combine(key, f.inside[i])
    for _ in range(depth):
        i = f.parent[i]
        if i < 0:
            break
        key = combine(combine(key, f.symbol[f.label[i]]), np.uint64(f.flags[i]))
    return key


@kernel
def hash_edges(f: Forest, edges: np.ndarray) -> None:
    """Hash of every edge's distance to either end of the sentence and of the tagged words beside it.

    Edge e of candidate y is at ``edges[leaf_first[y] + y + e]``. Candidates may differ in length, by their traces.
    """
    for y in range(f.first.shape[0] - 1):
        first, last = f.leaf_first[y], f.leaf_first[y + 1]
        for edge in range(first, last + 1):
            key = combine(combine(np.uint64(1), np.uint64(edge - first)), np.uint64(last - edge))
            for p in range(max(first, edge - EDGE_REACH), min(last, edge + EDGE_REACH)):
                key = combine(key, f.inside[f.leaf[p]])
            edges[edge + y] = key


@kernel
def _edges_key(f: Forest, i: int, edges: np.ndarray) -> np.uint64:
    first = f.leaf_first[f.tree[i]] + f.tree[i]
    return combine(combine(f.symbol[f.label[i]], edges[first + f.start[i]]), edges[first + f.end[i]])


@kernel
def _key(f: Forest, i: int, scope: int, depth: int, edges: np.ndarray) -> np.uint64:
    if scope == INSIDE:
        return combine(f.inside[i], np.uint64(f.flags[i] & (SYN_HEAD | SEM_HEAD)))
    if scope == UPWARD:
        return _upward_key(f, i, depth)
    if scope == EDGES:
        return _edges_key(f, i, edges)
    return combine(np.uint64(1), np.uint64(f.tree[i]))


@kernel
def find_places(
    f: Forest,
    scope: int,
    depth: int,
    edges: np.ndarray,
    keys: np.ndarray,
    place_at: np.ndarray,
    place_of: np.ndarray,
    node: np.ndarray,
    last: np.ndarray,
    first: np.ndarray,
) -> int:
    """First pass: the place of every node (``place_of`` int32 [n], -1 where the scope does not look).

    ``edges`` is that of ``hash_edges``; ``keys`` (uint64, zeroed, a power of two, more than twice the nodes) and
    ``place_at`` (int32) are a hash table.
    Fills ``node`` and, one place on, the number of entries of each place in ``first``; returns the number of places.
    """
    places = 0
    first[0] = 0
    for y in range(f.first.shape[0] - 1):
        for i in range(f.first[y], f.first[y + 1]):
            place_of[i] = -1
            if (scope == EDGES and f.word[i] >= 0) or (scope == TREE and i > f.first[y]):
                continue
            key = _key(f, i, scope, depth, edges) | np.uint64(1)
            slot = find_slot(keys, key)
            if keys[slot] != key:
                keys[slot] = key
                place_at[slot] = places
                node[places], last[places], first[places + 1] = i, -1, 0
                places += 1
            p = place_at[slot]
            place_of[i] = p
            if last[p] != y:
                last[p] = y
                first[p + 1] += 1
    return places


@kernel
def fill_places(
    f: Forest,
    places: int,
    place_of: np.ndarray,
    first: np.ndarray,
    used: np.ndarray,
    candidate: np.ndarray,
    count: np.ndarray,
) -> None:
    """Second pass: turn ``first`` into offsets and write the candidates and counts of every place."""
    for p in range(places):
        first[p + 1] += first[p]
        used[p] = first[p]
    for y in range(f.first.shape[0] - 1):
        for i in range(f.first[y], f.first[y + 1]):
            p = place_of[i]
            if p < 0:
                continue
            entry = used[p] - 1
            if entry >= first[p] and candidate[entry] == y:
                count[entry] += 1
            else:
                candidate[used[p]], count[used[p]] = y, 1
                used[p] += 1


def places_of(f: Forest, scope: int, depth: int) -> Places:
    """The distinct places of ``scope`` in the forest; ``depth`` is how many ancestors UPWARD sees."""
    n = f.label.size
    capacity = 1 << max(4, int(2 * n + 1).bit_length())
    keys, place_at = np.zeros(capacity, np.uint64), np.empty(capacity, np.int32)
    place_of, node, last = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.int32)
    first = np.empty(n + 1, np.int64)
    edges = np.empty(f.leaf.size + f.first.size, np.uint64)
    if scope == EDGES:
        hash_edges(f, edges)
    total = find_places(f, scope, depth, edges, keys, place_at, place_of, node, last, first)
    entries = int(first[1 : total + 1].sum())
    candidate, count = np.empty(entries, np.int32), np.empty(entries, np.float32)
    fill_places(f, total, place_of, first, np.empty(total, np.int64), candidate, count)
    return Places(node[:total], first[: total + 1], candidate, count)
