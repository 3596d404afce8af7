"""Word lattices: paths through acyclic graphs of arcs, whose score is the sum of those of their arcs.

Arcs have features of their own and no others: the scores that a file gives them, or whatever the arrays hold. Nodes are
in topological order, so that one pass over the arcs finds the best paths.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from rerank.kernels.by_type import body, by_type
from rerank.kernels.compile import kernel
from rerank.learn.predictor import SCALE, TAU, a_of, shrink, slope_of
from rerank.learn.spaces.chain import power_of_two
from rerank.learn.spaces.space import argmax, difference, nbest
from rerank.learn.spaces.viterbi import add_entry, clear
from rerank.learn.workspace import ListArrays
from rerank.readers.lattices import WordLattice

NO_WORD, DELETED = -1, -1


class Lattices(NamedTuple):
    """L lattices with E arcs for kernels; made by ``lattices_of``. Paths go from node 0 to the last."""

    starts: np.ndarray  # int64 [L + 1]: the arcs of each lattice, by where they begin
    nodes: np.ndarray  # int64 [L]: how many there are
    tail: np.ndarray  # int64 [E]
    head: np.ndarray  # int64 [E]: > tail
    words: np.ndarray  # int64 [E]: a number for each word, ``NO_WORD`` for none
    rows: np.ndarray  # int64 [E + 1]: where the features of each arc begin
    columns: np.ndarray  # int64 [nnz]
    values: np.ndarray  # float64 [nnz]
    gold: np.ndarray  # uint8 [E]: is the arc on the right path?
    weight: np.ndarray  # float64 [L]: importance of the lattices


class LatticeRoom(NamedTuple):
    """Space for the k best paths of a lattice; way r to a node is the r-th best."""

    scores: np.ndarray  # float64 [N, k]
    arc: np.ndarray  # int64 [N, k]: the last arc of the way
    way: np.ndarray  # int64 [N, k]: and the way to where it begins
    known: np.ndarray  # int64 [N]: how many ways there are
    total: np.ndarray  # float64 [k]: scores of the paths found
    output: np.ndarray  # uint8 [k, M]: is the arc, of M, on the path?
    slots: np.ndarray  # int32: see ``add_entry``


def lattices_of(lattices: Sequence[WordLattice], references: Sequence[Sequence[str]] | None = None) -> Lattices:
    """Lattices with the same columns; right is the path with the fewest errors in the words of the reference."""
    numbers = dict[str, int]()
    words = [[numbers.setdefault(word, len(numbers)) if word else NO_WORD for word in each.words] for each in lattices]
    starts = np.cumsum([0, *map(len, words)])
    size, K = int(starts[-1]), len(lattices[0].names)
    tail, head, scores = (
        np.concatenate([getattr(each, key) for each in lattices]) for key in ("tail", "head", "scores")
    )
    made = Lattices(
        starts, np.array([each.nodes for each in lattices]), tail, head,
        np.array([word for each in words for word in each], np.int64), np.arange(size + 1) * K,
        np.tile(np.arange(K), size), scores.ravel(), np.zeros(size, np.uint8), np.ones(len(lattices)),
    )  # fmt: skip
    for i, reference in enumerate(references or ()):
        oracle(made, i, [numbers.get(word, len(numbers)) for word in reference])
    return made


def lattice_room(lattices: Lattices, k: int = 1) -> LatticeRoom:
    """Space for the k best paths of every one of ``lattices``."""
    N, M = int(lattices.nodes.max()), int(np.diff(lattices.starts).max())
    ways, integer = (N, k), np.int64
    slots = np.full(2 * power_of_two(2 * int(np.diff(lattices.rows[lattices.starts]).max()) + 1), -1, np.int32)
    return LatticeRoom(
        np.empty(ways), np.empty(ways, integer), np.empty(ways, integer), np.empty(N, integer), np.empty(k),
        np.empty((k, M), np.uint8), slots,
    )  # fmt: skip


@by_type
def score_of(state: Any, e: int, lattices: Lattices) -> float:
    """w·φ of an arc."""
    score, tau = 0.0, state.numbers[TAU]
    for p in range(lattices.rows[e], lattices.rows[e + 1]):
        j = lattices.columns[p]
        score += shrink(a_of(state.cells, j), tau * slope_of(state, j)) * lattices.values[p]
    return float(state.numbers[SCALE] * score)


@body(argmax, Lattices)
def best_path(state: Any, tilt: float, i: int, room: LatticeRoom, lattices: Lattices) -> float:
    """Arcs into ``room.output[0]``; the cost is how many of them are wrong. Of equals, the first arc to each node."""
    find_ways(state, tilt, i, 1, room, lattices)
    read_ways(i, room, lattices)
    return float(room.total[0])


@body(nbest, Lattices)
def best_paths(state: Any, i: int, k: int, room: LatticeRoom, lattices: Lattices) -> int:
    """Arcs into ``room.output``, scores into ``room.total``; of equal ways to a node, that by the first arc first."""
    find_ways(state, 0.0, i, k, room, lattices)
    return int(read_ways(i, room, lattices))


@by_type
def find_ways(state: Any, tilt: float, i: int, k: int, room: LatticeRoom, lattices: Lattices) -> None:
    """The k best ways to every node (Viterbi 1967; Schwartz & Chow 1990): arcs come after all that lead to them."""
    room.known[:] = 0
    room.known[0], room.scores[0, 0] = 1, 0.0
    for e in range(lattices.starts[i], lattices.starts[i + 1]):
        t, h = lattices.tail[e], lattices.head[e]
        score = score_of(state, e, lattices) + (0.0 if tilt == 0.0 or lattices.gold[e] else tilt)
        for r in range(room.known[t]):
            total, at = room.scores[t, r] + score, room.known[h]
            if at == k:
                at -= 1
                if total <= room.scores[h, at]:
                    break
            else:
                room.known[h] += 1
            while at > 0 and room.scores[h, at - 1] < total:
                room.scores[h, at], room.arc[h, at] = room.scores[h, at - 1], room.arc[h, at - 1]
                room.way[h, at] = room.way[h, at - 1]
                at -= 1
            room.scores[h, at], room.arc[h, at], room.way[h, at] = total, e, r


@kernel
def read_ways(i: int, room: LatticeRoom, lattices: Lattices) -> int:
    """The ways to the last node, as arcs; returns how many there are."""
    first, last = lattices.starts[i], lattices.nodes[i] - 1
    for r in range(room.known[last]):
        room.total[r] = room.scores[last, r]
        room.output[r, : lattices.starts[i + 1] - first] = 0
        node, way = last, r
        while node > 0:
            e = room.arc[node, way]
            room.output[r, e - first] = 1
            node, way = lattices.tail[e], room.way[node, way]
    return int(room.known[last])


@body(difference, Lattices)
def differing_arcs(data: ListArrays, i: int, room: LatticeRoom, lattices: Lattices) -> tuple[int, float]:
    """The columns of arcs on one of the paths alone; the cost is how many of the best path's are wrong."""
    first, apart, count = lattices.starts[i], False, 0
    wrong: Any = 0
    for e in range(first, lattices.starts[i + 1]):
        sign = np.int64(lattices.gold[e]) - np.int64(room.output[0, e - first])
        if sign != 0:
            apart = True
            wrong += sign < 0
            for p in range(lattices.rows[e], lattices.rows[e + 1]):
                count = add_entry(data, room.slots, count, lattices.columns[p], sign * lattices.values[p])
    for r in range(count):
        clear(room.slots, data.columns[r])
    return int(count) if apart else -1, float(wrong)


def oracle(lattices: Lattices, i: int, reference: Sequence[int]) -> int:
    """Mark the path with the fewest insertions, deletions and substitutions as right; returns how many these are."""
    size = int(lattices.nodes[i]), len(reference) + 1
    errors, via = np.full(size, 1 << 30, np.int32), np.full(size, DELETED, np.int32)
    find_oracle(lattices, i, np.array(reference, np.int64), errors, via)
    return int(errors[-1, -1])


@kernel
def find_oracle(lattices: Lattices, i: int, reference: np.ndarray, errors: np.ndarray, via: np.ndarray) -> None:
    """The fewest errors with which node v is reached after j words, ``errors[v, j]``, and ``via`` which arc."""
    n, N = reference.shape[0], errors.shape[0]
    first, end = lattices.starts[i], lattices.starts[i + 1]
    errors[0, 0] = 0
    leave_out(errors[0], via[0])
    for e in range(first, end):
        t, h, word = lattices.tail[e], lattices.head[e], lattices.words[e]
        if e > first and t != lattices.tail[e - 1]:
            leave_out(errors[t], via[t])
        for j in range(n + 1):
            count = errors[t, j] + (word != NO_WORD)
            if count < errors[h, j]:
                errors[h, j], via[h, j] = count, 2 * (e - first)
            if word != NO_WORD and j < n:
                count = errors[t, j] + (word != reference[j])
                if count < errors[h, j + 1]:
                    errors[h, j + 1], via[h, j + 1] = count, 2 * (e - first) + 1
    leave_out(errors[N - 1], via[N - 1])
    lattices.gold[first:end] = 0
    node, j = N - 1, n
    while node > 0 or j > 0:
        step = via[node, j]
        if step == DELETED:
            j -= 1
            continue
        lattices.gold[first + step // 2] = 1
        node, j = lattices.tail[first + step // 2], j - step % 2


@kernel
def leave_out(errors: np.ndarray, via: np.ndarray) -> None:
    """Words of the reference may be left out at a node."""
    for j in range(1, errors.shape[0]):
        if errors[j - 1] + 1 < errors[j]:
            errors[j], via[j] = errors[j - 1] + 1, DELETED
