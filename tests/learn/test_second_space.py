"""A space that is no chain, word lattices of arcs with a column each, needs its own bodies and nothing of learners."""

from typing import Any, NamedTuple

import numpy as np
import pytest

import rerank.learn  # noqa: F401 - registers the learners
from rerank.data.corpus import Corpus
from rerank.kernels.by_type import body
from rerank.kernels.compile import kernel_of
from rerank.learn.base import learners
from rerank.learn.predictor import a_of
from rerank.learn.spaces.space import argmax, difference, pair_for, structured_pass
from rerank.learn.workspace import ListArrays

NODES, WIDTH, LATTICES, ROUNDING = 5, 30, 10, 1e-12


class Lattices(NamedTuple):
    """From node 0 to the last; arcs are sorted by where they begin."""

    starts: np.ndarray  # int64 [L + 1]: the arcs of each lattice
    tail: np.ndarray  # int64 [E]
    head: np.ndarray  # int64 [E]: > tail
    column: np.ndarray  # int64 [E]
    gold: np.ndarray  # int64 [E]: is the arc on the right path?
    weight: np.ndarray  # float64 [L]


class Room(NamedTuple):
    best: np.ndarray  # float64 [NODES]
    arc: np.ndarray  # int64 [NODES]: the last one of the best path
    output: np.ndarray  # int64 [E]: is the arc on the path that was found?


@body(argmax, Lattices)
def best_path(state: Any, tilt: float, i: int, room: Room, space: Lattices) -> float:
    room.best[:] = -np.inf
    room.best[0] = 0.0
    for e in range(space.starts[i], space.starts[i + 1]):
        score = room.best[space.tail[e]] + a_of(state.cells, space.column[e]) + tilt * (1 - space.gold[e])
        room.output[e] = 0
        if score > room.best[space.head[e]]:
            room.best[space.head[e]], room.arc[space.head[e]] = score, e
    node = room.best.shape[0] - 1
    while node > 0:
        room.output[room.arc[node]] = 1
        node = space.tail[room.arc[node]]
    return float(room.best[-1])


@body(difference, Lattices)
def differing_arcs(data: ListArrays, i: int, room: Room, space: Lattices) -> tuple[int, float]:
    count, wrong = 0, 0
    for e in range(space.starts[i], space.starts[i + 1]):
        if space.gold[e] != room.output[e]:
            r = 0
            while r < count and data.columns[r] != space.column[e]:
                r += 1
            if r == count:
                data.columns[r], data.values[r] = space.column[e], 0.0
                count += 1
            data.values[r] += space.gold[e] - room.output[e]
            wrong += room.output[e]
    return count if wrong > 0 else -1, float(wrong)


def paths(space: Lattices, i: int, node: int = 0) -> list[list[int]]:
    if node == NODES - 1:
        return [[]]
    arcs = [int(e) for e in range(space.starts[i], space.starts[i + 1]) if space.tail[e] == node]
    return [[e, *rest] for e in arcs for rest in paths(space, i, int(space.head[e]))]


def random_lattices() -> Lattices:
    random = np.random.default_rng(2)
    arcs = [(t, h) for t in range(NODES) for h in range(t + 1, NODES) for _ in range(2)]
    tail, head = np.array(arcs * LATTICES).T.copy()
    starts = np.arange(LATTICES + 1) * len(arcs)
    columns = np.concatenate([random.permutation(WIDTH)[: len(arcs)] for _ in range(LATTICES)])
    space = Lattices(
        starts, tail, head, columns, np.zeros(tail.size, np.int64), np.ones(LATTICES)
    )  # fmt: skip
    for i in range(LATTICES):
        every = paths(space, i)
        space.gold[every[random.integers(len(every))]] = 1
    return space


@pytest.mark.parametrize("name", ["perceptron", "arow"])
def test_learners_train_over_lattices_as_over_lists_of_all_paths(name: str) -> None:
    learner, space = learners.get(name)(), random_lattices()
    state, other = learner.init(WIDTH), learner.init(WIDTH)
    room = Room(np.empty(NODES), np.empty(NODES, np.int64), np.zeros(space.tail.size, np.int64))
    pair, order = pair_for(WIDTH), np.tile(np.arange(LATTICES), 3)
    kernel_of(structured_pass, Lattices)(
        order, state, None, pair.data, pair.scratch, pair.log, np.zeros(6), room, space, learner.settings()
    )
    for i in order:
        w, every = learner.last(other).w, paths(space, int(i))
        phi = np.array([np.bincount(space.column[path], minlength=WIDTH) for path in every], float)
        gold = next(r for r, path in enumerate(every) if space.gold[path].all())
        scores = phi @ w
        ties = np.flatnonzero(scores > scores.max() - ROUNDING)
        best: Any = min(ties, key=lambda r: every[r][::-1])  # of equals, that with the first arcs, from the end
        chosen = phi[[gold] if best == gold else [gold, best]]
        n, z = len(chosen), chosen != 0
        corpus = Corpus(
            lists=np.array([0, n]), rows=np.cumsum([0, *z.sum(axis=1)]), columns=np.nonzero(z)[1], values=chosen[z],
            base=np.zeros(n), gain=-np.arange(n, dtype=float), stats=np.zeros((n, 0)), reference=np.zeros((1, 0)),
            weight=np.ones(1), width=WIDTH,
        )  # fmt: skip
        learner.epoch(corpus, np.array([0]), np.array([0]), other)
    assert learner.updates(state) == learner.updates(other) > 3
    assert np.allclose(learner.average(state).w, learner.average(other).w, 1e-9, 1e-11)
