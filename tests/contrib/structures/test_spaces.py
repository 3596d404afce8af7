"""Chains compared with brute force over all their labels, ties and masks included, and every learner with a naive loop
that lists all outputs."""

from collections.abc import Sequence
from contextlib import nullcontext
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from variants import in_python

from rerank.base.errors import DataError, RecipeError
from rerank.contrib.structures.chain import (
    Chains,
    best_labels,
    chains_of,
    decode,
    differing_columns,
    k_best,
    predictor_with,
    room_for,
)
from rerank.contrib.structures.training import (
    PENALTIES,
    ChainProblem,
    active_columns,
    marginals,
    pair_for,
    penalties,
    solve_chains,
)
from rerank.data.corpus import Corpus, freeze
from rerank.learn.learner import Learner, Weights, learners
from rerank.learn.losses import Cost
from rerank.learn.rules.maxent import Maxent
from rerank.learn.train import epoch_order, score_on, train

K, A = 3, 4
FREE = np.ones((K + 2, K), np.uint8)
MASK = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1], [1, 1, 0], [1, 0, 1]], np.uint8)  # 2 may not begin, nor 1 end
ROUNDING = 1e-12  # scores this near to each other are ties
Labels = tuple[int, ...]


def outputs(length: int, mask: np.ndarray = FREE) -> list[Labels]:
    """All that the mask allows, in the order of labels."""
    paths = product(range(K), repeat=length)
    return [p for p in paths if not p or (mask[K, p[0]] and mask[K + 1, p[-1]] and all(mask[e] for e in pairwise(p)))]


def random_chains(seed: int, mask: np.ndarray = FREE, *, numbers: bool = True, count: int = 12) -> Chains:
    """Short examples, one without tokens among them; tokens may have an attribute twice, and none."""
    random = np.random.default_rng(seed)
    lengths = np.concatenate([[0], random.integers(1, 5, count)])
    gold = [label for n in lengths for label in random.permutation(outputs(n, mask))[0]]
    sizes = random.integers(0, 4, len(gold))
    return chains_of(
        np.cumsum([0, *lengths]), np.cumsum([0, *sizes]), random.integers(0, A, sizes.sum()), np.array(gold), mask,
        attribute_count=A, values=random.integers(-99, 99, sizes.sum()) / 64 if numbers else None,
    )  # fmt: skip


def features(chains: Chains, i: int, labels: Labels) -> np.ndarray:
    """float64 [D]: φ of an output."""
    phi, first = np.zeros(chains.width), chains.starts[i]
    for t, label in enumerate(labels):
        for p in range(chains.rows[first + t], chains.rows[first + t + 1]):
            x = float(chains.values[p]) if chains.values.size else 1.0
            phi[K * K + int(chains.attributes[p]) * K + label] += x
        if t:
            phi[labels[t - 1] * K + label] += 1.0
    return phi


def all_scores(chains: Chains, i: int, w: np.ndarray, tilt: float = 0.0) -> tuple[list[Labels], np.ndarray]:
    """All outputs of example i with their scores + tilt·cost."""
    gold = chains.gold[chains.starts[i] : chains.starts[i + 1]]
    every = outputs(gold.size, chains.mask)
    costs = np.array([sum(a != b for a, b in zip(y, gold, strict=True)) for y in every])
    return every, np.array([features(chains, i, y) @ w for y in every]) + tilt * costs


def labels_of(chains: Chains, labels: np.ndarray, i: int) -> Labels:
    return tuple(labels[chains.starts[i] : chains.starts[i + 1]].tolist())


@pytest.mark.parametrize("mask", [FREE, MASK])
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_best_and_k_best_labels_are_those_of_all_outputs_with_ties(mask: np.ndarray, kind: Any) -> None:
    for seed in range(12):
        chains = random_chains(seed, mask, numbers=False)
        w = np.random.default_rng(seed).integers(-2, 3, chains.width).astype(kind)  # sums are exact: ties are ties
        best, (scores, labels) = decode(chains, w), k_best(chains, w, 7)
        for i in range(chains.example_count):
            every, totals = all_scores(chains, i, w)
            order = np.argsort(-totals, kind="stable")[:7]
            assert labels_of(chains, best, i) == every[order[0]]
            assert [labels_of(chains, row, i) for row in labels[: order.size]] == [every[r] for r in order]
            assert scores[i].tolist() == [*totals[order], *[-np.inf] * (7 - order.size)]
            assert all(set(labels_of(chains, row, i)) <= {-1} for row in labels[order.size :])


@pytest.mark.parametrize("mask", [FREE, MASK])
@pytest.mark.parametrize("tilt", [0.0, 1.0, 2.5])
def test_argmax_takes_costs_and_differences_are_those_of_features(mask: np.ndarray, tilt: float) -> None:
    for seed in range(8):
        chains = random_chains(seed, mask)
        w = np.random.default_rng(seed).normal(size=chains.width)
        room, (pair, scratch) = room_for(chains), pair_for(chains)
        for i in range(chains.example_count):
            every, totals = all_scores(chains, i, w, tilt)
            assert best_labels(predictor_with(w), tilt, i, room, chains) == pytest.approx(totals.max(), abs=1e-12)
            found, gold = every[int(totals.argmax())], labels_of(chains, chains.gold, i)
            assert tuple(room.output[: len(gold)].tolist()) == found
            count, cost = differing_columns(pair, scratch.sums, i, room, chains)
            assert not scratch.sums.any()
            assert cost == sum(a != b for a, b in zip(found, gold, strict=True))
            assert (count == -1) == (found == gold)
            columns, z = pair.columns[: max(count, 0)], np.zeros(chains.width)
            assert len(set(columns.tolist())) == columns.size
            z[columns] = pair.values[: columns.size]
            assert np.allclose(z, features(chains, i, gold) - features(chains, i, found), 0, 1e-12)


@pytest.mark.parametrize("mask", [FREE, MASK])
@pytest.mark.parametrize("size", [0.0, 1.0, 20.0, 1000.0])  # the last ones leave the range of plain products
def test_marginals_are_sums_over_all_outputs(mask: np.ndarray, size: float) -> None:
    for seed in range(6):
        chains = random_chains(seed, mask)
        w = size * np.random.default_rng(seed).normal(size=chains.width)
        found = marginals(chains, w)
        for i in range(chains.example_count):
            every, totals = all_scores(chains, i, w)
            p = np.exp(totals - totals.max()) / np.exp(totals - totals.max()).sum()
            for t in range(len(every[0])):
                expected = [sum(p[r] for r, y in enumerate(every) if y[t] == label) for label in range(K)]
                assert np.allclose(found[chains.starts[i] + t], expected, 0, 1e-12 * max(1.0, size))


def loss(chains: Chains, w: np.ndarray, l2: float = 0.0, l1: float = 0.0) -> float:
    total = 0.5 * l2 * float(w @ w) + l1 * float(np.abs(w).sum())
    for i in range(chains.example_count):
        every, totals = all_scores(chains, i, w)
        log_z = totals.max() + np.log(np.exp(totals - totals.max()).sum())
        total += log_z - totals[every.index(labels_of(chains, chains.gold, i))]
    return total


@pytest.mark.parametrize("mask", [FREE, MASK])
@pytest.mark.parametrize(("l2", "l1"), [(0.5, 0.0), (0.2, 0.3)])
def test_a_random_field_is_the_optimum_over_all_outputs(mask: np.ndarray, l2: float, l1: float) -> None:
    chains, learner = random_chains(3, mask), Maxent(l2=l2, l1=l1)
    state = learner.init(chains.width)
    stats, w = solve_chains(learner, chains, state), learner.last(state).w
    seen = active_columns(chains)
    optimum = loss(chains, w, l2, l1)
    assert stats.loss == pytest.approx(loss(chains, w), rel=1e-9)
    assert not np.delete(w, seen).any()
    assert (not w[seen].all()) == (l1 > 0)
    for j in seen:
        for step in (-0.05, 0.05):
            assert loss(chains, w + step * np.eye(chains.width)[j], l2, l1) > optimum - 1e-4 * optimum


def test_some_examples_are_chains_of_their_own() -> None:
    for numbers in (True, False):
        chains, some = random_chains(2, MASK, numbers=numbers), [3, 0, 5]
        taken, w = chains.take(np.array(some)), np.random.default_rng(2).normal(size=chains.width)
        assert taken.example_count == 3
        assert not any(array.flags.writeable for array in taken[:6])  # kernels compile once for both
        for i, j in enumerate(some):
            assert labels_of(taken, taken.gold, i) == labels_of(chains, chains.gold, j)
            assert all_scores(taken, i, w)[1].tolist() == all_scores(chains, j, w)[1].tolist()


def right_by(path: Sequence[float], chains: Chains) -> int:
    """How many labels are right in five sections, each by a field that has gone down the ``path`` on the others."""
    section, right = np.arange(chains.example_count) * 5 // chains.example_count, 0
    for k in range(5):
        state = Maxent().init(chains.width)
        for l2 in path:
            solve_chains(Maxent(l2=l2), chains.take(np.flatnonzero(section != k)), state)
        apart = chains.take(np.flatnonzero(section == k))
        right += int((decode(apart, state.cells[:-1]) == apart.gold).sum())
    return right


def test_the_penalty_of_a_random_field_is_the_best_on_sections_held_out() -> None:
    chosen = dict[float, list[float]]()
    for seed in range(2):
        chains = random_chains(seed, count=29)
        if seed:  # else the labels are noise
            taught = decode(chains, np.random.default_rng(seed).normal(size=chains.width))
            chains = chains._replace(gold=freeze(taught))
        path = penalties(Maxent(), chains)
        chosen[path[-1]] = path
        assert path == [*PENALTIES[: len(path)]]
        assert path[1:] == [] or right_by(path, chains) > right_by(path[:-1], chains)
        assert len(path) == len(PENALTIES) or right_by(path, chains) >= right_by(PENALTIES[: len(path) + 1], chains)
        state = Maxent().init(chains.width)
        for l2 in path:
            solve_chains(Maxent(l2=l2), chains, state)
        assert train(Maxent(), ChainProblem(chains), epochs=1).weights["last"].w.tobytes() == state.cells[:-1].tobytes()
    assert len(chosen) > 1
    assert penalties(Maxent(l2=0.5), chains) == [0.5]
    assert penalties(Maxent(), chains.take(np.array([1]))) == [1.0]


def naive(learner: Learner, chains: Chains, epochs: int, seed: int) -> tuple[Any, list[tuple[np.ndarray, int]]]:
    """The state after ``epochs``, and all predictors with the examples that they survived: every output is listed."""
    state, predictors, survived = learner.init(chains.width), [np.zeros(chains.width)], [0]
    tilt = float(learner.loss_type() is Cost)
    for epoch in range(epochs):
        for i in epoch_order(chains.example_count, seed, epoch, True):
            every, totals = all_scores(chains, i, learner.last(state).w, tilt)
            rival, gold = every[int(np.argmax(totals > totals.max() - ROUNDING))], labels_of(chains, chains.gold, i)
            pair = np.array([features(chains, i, y) for y in ([gold] if rival == gold else [gold, rival])])
            present = [np.flatnonzero(row) for row in pair]
            n, cost = len(pair), sum(a != b for a, b in zip(gold, rival, strict=True))
            corpus = Corpus(
                lists=np.array([0, n]), rows=np.cumsum([0, *map(len, present)]), columns=np.concatenate(present),
                values=np.concatenate([row[at] for row, at in zip(pair, present, strict=True)]), base=np.zeros(n),
                gain=-np.array([0.0, cost])[:n], stats=np.zeros((n, 0)), reference=np.zeros((1, 0)),
                weight=np.ones(1), width=chains.width,
            )  # fmt: skip
            before = learner.updates(state)
            learner.epoch(corpus, np.array([0]), np.array([0]), state)
            if learner.updates(state) > before:
                predictors.append(learner.last(state).w)
                survived.append(0)
            survived[-1] += 1
    return state, list(zip(predictors, survived, strict=True))


ONLINE: list[tuple[str, dict[str, Any]]] = [  # one of each kind of state, loss and threshold: passes are those of lists
    ("perceptron", {}), ("pa", {"loss": "cost"}), ("sgd", {"loss": "logistic"}), ("vrda", {"l1": 0.05}),
    ("tg", {"l1": 0.01}), ("ftrl", {"l1": 0.05}), ("arow", {}), ("sop", {}), ("nwin", {"eta": 0.7, "mu": 0.5}),
]  # fmt: skip


COMPILED = ("perceptron", "pa", "arow")  # those of recipes that tag, and one with a variance


@pytest.mark.parametrize(("name", "settings"), ONLINE)
def test_a_pass_over_chains_is_that_over_lists_of_all_outputs(name: str, settings: dict[str, Any]) -> None:
    learner = learners.get(name)(**settings)
    chains = random_chains(0)  # in which no rounding decides between equals
    with nullcontext() if name in COMPILED else in_python():
        training, again = (train(learner, ChainProblem(chains, 4), epochs=3) for _ in range(2))
        state, _ = naive(learner, chains, 3, 4)
    assert training.state.counts.tolist() == state.counts.tolist()
    assert learner.updates(state) > 3
    assert np.allclose(training.weights["last"].w, learner.last(state).w, 1e-9, 1e-11)
    assert [x.tobytes() for x in again.state] == [x.tobytes() for x in training.state]


def test_the_best_epoch_by_dev_is_kept_and_patience_ends_a_training() -> None:
    chains, dev = random_chains(5), random_chains(6)

    def evaluate(weights: Weights) -> float:
        return float((decode(dev, weights.w) == dev.gold).mean())

    problem, observers = ChainProblem(chains, 1), [score_on(evaluate)]
    training = train(learners.get("perceptron")(), problem, epochs=30, patience=2, observers=observers)
    seen = [line["dev"] for line in training.history]
    assert len(seen) < 30
    assert training.epoch == 1 + int(np.argmax(seen)) == len(seen) - 2


@pytest.mark.parametrize(
    ("learner", "reason"),
    [
        ({"name": "lambdamart"}, "every candidate of a list at once"),
        ({"name": "lm-perc"}, "a variable for every candidate"),
        ({"name": "sgd", "loss": "log"}, "take the learner maxent"),
    ],
)
def test_learners_that_need_all_outputs_are_refused(learner: dict[str, Any], reason: str) -> None:
    settings = dict(learner)
    with pytest.raises(RecipeError, match=reason):
        train(learners.get(settings.pop("name"))(**settings), ChainProblem(random_chains(1)), epochs=1)


def test_labels_are_needed_to_learn() -> None:
    unknown = random_chains(1)._replace(gold=np.full_like(random_chains(1).gold, -1))
    with pytest.raises(DataError, match="example 2: found a token without a label"):
        ChainProblem(unknown)
