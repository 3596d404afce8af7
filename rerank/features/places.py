"""Places: where templates look, without repetition among a list's candidates.

A *place* stands for all nodes of a list at which a template of its scope sees the same; it is one representative
node and the candidates in which it occurs, with counts. A template runs once per place, and its features count in all
of the place's candidates.

Scopes, from the smallest view to the largest:

* INSIDE: a node and what is below it, and whether it is the head of its parent;
* UPWARD: the same, with the labels and flags of its ancestors up to ``depth``;
* EDGES: a span with its label, its place in the sentence and the tagged words next to its two edges;
* TREE: a candidate as a whole.
"""

from typing import NamedTuple

import numpy as np

from rerank.data.symbols import combine, find_slot
from rerank.features.forest import SEM_HEAD, SYN_HEAD, Forest
from rerank.features.sink import ENTRIES, OVERFLOW, Places, Sink
from rerank.kernels.compile import kernel

INSIDE, UPWARD, EDGES, TREE = 0, 1, 2, 3
EDGE_REACH = 2  # words that templates of scope EDGES may look at on either side of an edge


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
    """Hash every edge's distances to the ends and the tagged words next to it: ``edges[leaf_first[y] + y + edge]``."""
    for y in range(f.first.shape[0] - 1):
        first, last = f.leaf_first[y], f.leaf_first[y + 1]
        for edge in range(first, last + 1):
            key = combine(combine(np.uint64(1), np.uint64(edge - first)), np.uint64(last - edge))
            for p in range(max(first, edge - EDGE_REACH), min(last, edge + EDGE_REACH)):
                key = combine(key, f.inside[f.leaf[p]])
            edges[edge + y] = key


@kernel
def _key(f: Forest, i: int, scope: int, depth: int, edges: np.ndarray) -> np.uint64:
    if scope == INSIDE:
        return combine(f.inside[i], np.uint64(f.flags[i] & (SYN_HEAD | SEM_HEAD)))
    if scope == UPWARD:
        return _upward_key(f, i, depth)
    if scope == EDGES:
        first = f.leaf_first[f.tree[i]] + f.tree[i]
        return combine(combine(f.symbol[f.label[i]], edges[first + f.start[i]]), edges[first + f.end[i]])
    return combine(np.uint64(1), np.uint64(f.tree[i]))


class Finder(NamedTuple):
    """Scratch of ``find_places`` for n nodes."""

    edges: np.ndarray  # uint64: see ``hash_edges``
    keys: np.ndarray  # uint64, size a power of two, more than twice the nodes: hash table of places
    place_at: np.ndarray  # int32: the place in a slot
    place_of: np.ndarray  # int32 [n]: the place of a node, -1 if the scope does not look there
    last: np.ndarray  # int32 [n]: the last candidate of a place
    used: np.ndarray  # int32 [n]: where the next entry of a place goes


@kernel
def find_places(f: Forest, scope: int, depth: int, finder: Finder, sink: Sink, out: Places) -> int:
    """Write the entries of all places to ``sink``, and places to ``out``; both have room for one per node."""
    places = 0
    out.first[0] = sink.state[ENTRIES]
    finder.keys[:] = 0
    if scope == EDGES:
        hash_edges(f, finder.edges)
    for y in range(f.first.shape[0] - 1):
        for i in range(f.first[y], f.first[y + 1]):
            finder.place_of[i] = -1
            if (scope == EDGES and f.word[i] >= 0) or (scope == TREE and i > f.first[y]):
                continue
            key = _key(f, i, scope, depth, finder.edges) | np.uint64(1)
            slot = find_slot(finder.keys, key)
            if finder.keys[slot] != key:
                finder.keys[slot], finder.place_at[slot] = key, places
                out.node[places], finder.last[places], out.first[places + 1] = i, -1, 0
                places += 1
            p = finder.place_at[slot]
            finder.place_of[i] = p
            if finder.last[p] != y:
                finder.last[p] = y
                out.first[p + 1] += 1
    for p in range(places):
        out.first[p + 1] += out.first[p]
        finder.used[p] = out.first[p]
    for y in range(f.first.shape[0] - 1):
        for i in range(f.first[y], f.first[y + 1]):
            p = finder.place_of[i]
            if p < 0:
                continue
            entry = finder.used[p] - 1
            if entry >= out.first[p] and sink.candidate[entry] == y:
                sink.value[entry] += 1
            else:
                sink.candidate[entry + 1], sink.value[entry + 1] = y, 1
                finder.used[p] += 1
    sink.state[ENTRIES] = out.first[places]
    return places


def places_of(f: Forest, scopes: np.ndarray, sink: Sink) -> list[Places]:
    """The distinct places of every scope in the forest.

    scopes: int64 [S, 2], each with how many ancestors it sees (UPWARD; 0 for others). If the sink has no room, there
    are no places and its OVERFLOW is set.
    """
    n, S = f.label.size, scopes.shape[0]
    if sink.state[ENTRIES] + S * n > sink.value.size:
        sink.state[OVERFLOW] = 1
        return [Places(np.empty(0, np.int32), np.zeros(1, np.int64))] * S
    capacity = 1 << max(4, int(2 * n + 1).bit_length())
    edges, keys = np.empty(f.leaf.size + f.first.size, np.uint64), np.empty(capacity, np.uint64)
    work = np.empty((3 + S, n), np.int32)
    finder = Finder(edges, keys, np.empty(capacity, np.int32), work[0], work[1], work[2])
    found = list[Places]()
    for (scope, depth), node in zip(scopes.tolist(), work[3:], strict=True):
        out = Places(node, np.empty(n + 1, np.int64))
        total = find_places(f, scope, depth, finder, sink, out)
        found.append(Places(node[:total], out.first[: total + 1]))
    return found
