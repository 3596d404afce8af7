"""The loop of training: orders, epochs that are kept, logs; averages, which are means of w after every visit."""

import logging
import math
import pickle
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
import reference
import small
import small_rankings
import small_texts
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import WIDTH, Row, bits, corpora, corpus_of, in_parts, orders, random_corpus, run, targets
from variants import FAMILIES, FIRST, every, in_python, make, twin_of

from rerank.contrib.structures.chain import chains_of
from rerank.contrib.structures.training import ChainProblem
from rerank.data.corpus import Corpus
from rerank.learn.epoch import UpdateLog
from rerank.learn.learner import Learner, Weights
from rerank.learn.predictor import CELL, PredictorSums, last_active, sum_weights
from rerank.learn.rules.additive import Perceptron
from rerank.learn.rules.dual_averaging import RDA, VotedRDA
from rerank.learn.scoring import best, scores
from rerank.learn.train import Epoch, ListProblem, Observer, Training, epoch_order, score_on, train
from rerank.learn.voting import vote
from rerank.learn.workspace import view
from rerank.metrics.metric import two_valued
from rerank.runs.corpora import Data
from rerank.runs.training import RunTask, any_ties, train_run

CORPUS = random_corpus(6)
LEARNERS: list[Learner] = [
    Perceptron(base_rate=0.2),
    VotedRDA(l1=0.02),
    RDA(loss="log", l1=0.01, l2=0.02, base_rate=0.1),
]


def fit(learner: Learner = LEARNERS[1], epochs: int = 4, **options: Any) -> Training:
    return train(learner, ListProblem(CORPUS, targets(CORPUS), 1), epochs=epochs, **options)


def in_turn(*values: float) -> list[Observer]:
    """A dev score that takes the values in turn."""
    rest = iter(values)
    return [score_on(lambda _: next(rest))]


def test_the_order_follows_from_seed_and_epoch() -> None:
    order = epoch_order(50, 3, 2, shuffle=True)
    assert order.dtype == np.int64
    assert sorted(order.tolist()) == list(range(50))
    np.testing.assert_array_equal(order, epoch_order(50, 3, 2, shuffle=True))
    assert order.tolist() != epoch_order(50, 3, 1, shuffle=True).tolist()
    assert order.tolist() != epoch_order(50, 4, 2, shuffle=True).tolist()
    assert epoch_order(4, 3, 2, shuffle=False).tolist() == [0, 1, 2, 3]


def test_the_best_epoch_on_dev_is_kept_and_of_equals_the_first() -> None:
    training = fit(epochs=5, keep_log=True, observers=in_turn(0.1, 0.5, 0.3, 0.5, 0.4))
    expected = fit(epochs=2, keep_log=True)
    assert training.epoch == 2
    assert len(training.history) == 5
    assert bits(training.state) == bits(expected.state)
    assert (training.weights["average"].w == expected.weights["average"].w).all()
    for name, array in expected.log.arrays().items():
        np.testing.assert_array_equal(training.log.arrays()[name], array)
    assert training.log.arrays()["survived"].sum() == 2 * CORPUS.list_count


def test_only_the_first_epochs_are_logged() -> None:
    first, whole = fit(epochs=3, keep_log=1).log, fit(epochs=3, keep_log=True)
    assert first is not None
    expected = whole.log.head(whole.history[0]["updates"]).arrays()
    assert first.updates == whole.history[0]["updates"] < whole.log.updates
    for name in ("lists", "first", "candidate", "a", "rate"):
        np.testing.assert_array_equal(first.arrays()[name], expected[name])
    assert fit(epochs=1, keep_log=False).log is None


def test_without_dev_the_last_epoch_is_kept() -> None:
    assert fit(epochs=3, patience=1).epoch == 3


@pytest.mark.parametrize(("patience", "ran"), [(1, 3), (2, 4), (3, 6), (None, 6)])
def test_patience(patience: int | None, ran: int) -> None:
    scores = in_turn(0.1, 0.5, 0.4, 0.3, 0.6, 0.2)
    training = fit(epochs=6, patience=patience, observers=scores)
    assert len(training.history) == ran
    assert training.epoch == (5 if ran == 6 else 2)


@pytest.mark.parametrize("predictor", ["last", "average"])
def test_history(predictor: str) -> None:
    lines: list[dict[str, Any]] = []
    seen: list[Weights] = []

    def observe(epoch: Epoch) -> None:
        assert (epoch.line["dev"], epoch.score) == (0.25, 0.25)
        lines.append(epoch.line)
        seen.append(epoch.weights)

    training = fit(epochs=3, predictor=predictor, observers=[score_on(lambda _: 0.25), observe])
    assert lines == training.history
    assert training.epoch == 1
    ran = run(LEARNERS[1], CORPUS, 3)
    for epoch, line in enumerate(training.history):
        assert line["epoch"] == epoch + 1
        assert line["mistakes"] == ran.per_epoch("mistakes")[epoch]
        assert line["updates"] == ran.per_epoch("updates")[epoch]
        assert line["loss"] == pytest.approx(ran.per_epoch("loss")[epoch] / CORPUS.list_count)
        assert line["nonzero_weights"] == np.count_nonzero(seen[epoch].w)
        assert line["norm"] == pytest.approx(np.sqrt((seen[epoch].w ** 2).sum()))
        assert line["base_weight"] == seen[epoch].base
        assert line["seconds"] >= 0
        assert line["nonzeros_per_second"] * line["seconds"] == pytest.approx(CORPUS.nonzeros)
    assert training.weights[predictor] is seen[0]
    assert "dev" not in fit(epochs=1).history[0]


def test_all_corpora_have_one_type_for_kernels(tmp_path: Path) -> None:
    """Another one would be compiled for, by every learner."""
    mapped = in_parts(tmp_path / "corpus", CORPUS, (0, 7, 30))
    sent = pickle.loads(pickle.dumps(CORPUS))
    corpora = [*(CORPUS.slice(0, count) for count in (0, 1, 2)), CORPUS, sent, mapped, *mapped.parts()]
    assert len({numba.typeof(view(corpus, targets(corpus))) for corpus in corpora}) == 1


def test_any_ties_reach_the_learner() -> None:
    """Two best candidates share the row: with one oracle a mistake in each epoch, with both none after the first."""
    best, worst = ({0: 1.0}, 0.0, 1.0), ({1: 1.0}, 0.0, 0.0)
    corpus = corpus_of([[best, best, worst]])
    for ties, mistakes in [(False, [1, 1, 1]), (True, [1, 0, 0])]:
        found = train(Perceptron(), ListProblem(corpus, targets(corpus), 0, any_ties=ties), epochs=3)
        assert [line["mistakes"] for line in found.history] == mistakes


@pytest.fixture(scope="module")
def data(texts_data: Path, workspace: Path) -> Data:
    recipe = small_rankings.recipe(texts_data, data={"shard_size": 0.01})
    return Data.load(recipe, workspace / "rankings" / "any", ("dev",))


def graded(data: Data) -> Corpus:
    part = next(iter(data.training.corpus.parts()))
    gain = np.where(np.arange(part.gain.size) % 2 == 0, part.gain, 0.5)
    return replace(part, gain=gain, trusted=True)


def test_two_values(data: Data) -> None:
    assert two_valued(data.training.corpus)
    assert not two_valued(graded(data))


def test_auto_is_resolved_by_task_and_gains(texts_data: Path, data: Data) -> None:
    """The two settings that a recipe may write stay what they are."""
    binary, marks = data.training.corpus, graded(data)
    ranking, translation, parse = (
        small_rankings.recipe(texts_data),
        small_texts.recipe(texts_data),
        small.recipe(texts_data),
    )
    assert [any_ties(ranking, lists) for lists in (binary, marks)] == [True, True]
    for recipe in (translation, parse):
        assert [any_ties(recipe, lists) for lists in (binary, marks)] == [True, False]
    for recipe in (small_rankings.recipe, small_texts.recipe, small.recipe):
        for ties in ("any", "base"):
            own = recipe(texts_data, oracle={"ties": ties})
            assert [any_ties(own, lists) for lists in (binary, marks)] == [ties == "any"] * 2


def test_the_log_and_the_results_say_which(texts_data: Path, data: Data, caplog: pytest.LogCaptureFixture) -> None:
    """And several right candidates are learned from as such: more of them are chosen than by one of them alone."""
    recipe = small_rankings.recipe(texts_data)
    assert recipe.oracle.ties == "auto"
    with caplog.at_level(logging.INFO, logger="rerank"):
        run = train_run(RunTask("x", recipe, data.training.corpus))
    assert run.training["ties"] == "any"
    assert "oracle.ties: any of the best candidates" in caplog.text
    caplog.clear()
    with caplog.at_level(logging.INFO, logger="rerank"):
        base = small_rankings.recipe(texts_data, oracle={"ties": "base"})
        other = train_run(RunTask("x", base, data.training.corpus))
    assert other.training["ties"] == "base"
    assert "oracle.ties" not in caplog.text
    assert sum(run.training["mistakes"]) < sum(other.training["mistakes"])


VECTORS = st.lists(st.integers(-8, 8).map(lambda n: n / 4), min_size=WIDTH, max_size=WIDTH).map(np.array)


@settings(max_examples=60)
@given(corpora(), VECTORS, st.sampled_from([0.0, 0.5, 1.0]))
def test_scores_are_dense_products(corpus: Corpus, w: np.ndarray, base: float) -> None:
    found = scores(corpus, Weights(w, base))
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, base * corpus.base + reference.dense(corpus) @ w)


@settings(max_examples=60)
@given(corpora(), VECTORS)
def test_best_sorts_by_score_base_score_and_index(corpus: Corpus, w: np.ndarray) -> None:
    f = scores(corpus, Weights(w, 0.0))
    expected = [
        min(range(first, last), key=lambda y: (-f[y], -corpus.base[y], y), default=-1)
        for first, last in zip(corpus.lists[:-1], corpus.lists[1:], strict=True)
    ]
    found = best(corpus, f)
    assert found.dtype == np.int64
    assert found.tolist() == expected


def votes_of(learner: Learner, training: Corpus, epochs: int, corpus: Corpus, any_ties: bool = False) -> np.ndarray:
    log = run(learner, training, epochs, any_ties=any_ties).log
    return vote(learner.votes(log, training), corpus)


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize(
    "learner",
    [
        Perceptron(base=0.5),
        *(
            RDA(eta=0.5, l1=l1, update=update, base=0.5, base_rate=0.25)
            for l1, update in ((0.0, "mistakes"), (0.25, "mistakes"), (2**-6, "always"))
        ),
    ],
)
def test_long_lists_and_many_predictors_equal_brute_force(whole: bool, learner: Learner) -> None:
    """Lists of 1 to 70 candidates, hundreds of predictors, several of most columns' departures and returns."""
    random = np.random.default_rng(8)

    def row() -> Row:
        columns = random.choice(WIDTH, size=random.integers(0, WIDTH), replace=False)
        return {int(j): float(random.integers(-3, 4)) / (1 if whole else 4) for j in columns}

    def lists(sizes: list[int]) -> Corpus:
        return corpus_of([[(row(), random.integers(-4, 5) / 4, random.uniform()) for _ in range(n)] for n in sizes])

    training, corpus = lists([3, 20, 5] * 25), lists([1, 2, 15, 16, 17, 0, 32, 33, 70])
    trace = twin_of(learner, training, 7)
    assert len(trace.deltas) > 300
    np.testing.assert_array_equal(votes_of(learner, training, 7, corpus), reference.votes(trace, corpus))


@pytest.mark.parametrize("value", [200.0, 1000.0, 3e4, 5e4, 1e9])
def test_large_whole_numbers_equal_brute_force(value: float) -> None:
    """Sums beyond 16 and 32 bits."""
    random = np.random.default_rng(int(value))

    def lists(count: int) -> Corpus:
        def row() -> Row:
            return {int(j): value * float(random.integers(-3, 4)) for j in random.choice(WIDTH, 3, replace=False)}

        return corpus_of([[(row(), 0.0, random.uniform()) for _ in range(5)] for _ in range(count)])

    training, corpus = lists(60), lists(20)
    for learner in (Perceptron(base=0.0), RDA(base=0.0, l1=64.0, update="mistakes")):
        expected = reference.votes(twin_of(learner, training, 3), corpus)
        np.testing.assert_array_equal(votes_of(learner, training, 3, corpus), expected)


@settings(max_examples=40)
@given(corpora(), st.integers(0, 3), st.booleans())
def test_logs(corpus: Corpus, epochs: int, linear: bool) -> None:
    """Counts sum to the lists seen; arrays are read back."""
    learner: Learner = Perceptron() if linear else RDA(loss="log", l1=0.125)
    log = run(learner, corpus, epochs).log
    arrays = log.arrays()
    M = log.updates
    assert arrays["survived"].sum() == epochs * corpus.list_count
    assert arrays["survived"].shape == arrays["first"].shape == (M + 1,)
    assert {name: array.dtype for name, array in arrays.items()} == {
        "lists": np.int64, "first": np.int64, "candidate": np.int64, "a": np.float64, "rate": np.float64,
        "survived": np.int64,
    }  # fmt: skip
    again = UpdateLog.from_arrays(arrays)
    assert again.updates == M
    for name, array in again.arrays().items():
        np.testing.assert_array_equal(array, arrays[name])


def test_a_cut_log_is_the_log_of_the_first_epochs() -> None:
    corpus, learner = random_corpus(4), RDA(l1=0.02)
    state, log, marks = learner.init(corpus.width), UpdateLog(), []
    for order in orders(corpus, 3):
        marks.append(log.marks())
        learner.epoch(corpus, targets(corpus), order, state, log=log)
    for epochs, mark in enumerate(marks):
        expected = run(learner, corpus, epochs).log.arrays()
        for name, array in log.head(*mark).arrays().items():
            np.testing.assert_array_equal(array, expected[name])


EPOCHS, SEED = 3, 5
CUTS = (0, 7, 18, 30)
SPARSE = replace(random_corpus(2, width=6), width=60)  # few columns are touched: what is summed late is there most


class Steps:
    """A learner that visits one list at a time, and the sum of its predictors after every visit."""

    def __init__(self, learner: Learner, corpus: Corpus) -> None:
        self.learner, self.total, self.count = learner, np.zeros(corpus.width + 1), 0
        self.begin(corpus)

    def begin(self, corpus: Corpus) -> None:
        """Learn from the beginning; what was summed stays."""
        self.state = self.learner.init(corpus.width, corpus.candidate_count)

    def visit(self, corpus: Corpus, order: np.ndarray) -> None:
        """Visit lists of ``corpus``."""
        for i in order:
            self.learner.epoch(corpus, targets(corpus), np.array([i]), self.state)
            last = self.learner.last(self.state)
            self.total, self.count = self.total + np.append(last.w, last.base), self.count + 1


def pieces(corpus: Corpus) -> list[Corpus]:
    return [corpus.slice(first, last) for first, last in pairwise(CUTS)]


def stepped(learner: Learner, corpus: Corpus) -> Steps:
    steps = Steps(learner, corpus)
    for epoch in range(EPOCHS):
        steps.visit(corpus, epoch_order(corpus.list_count, SEED, epoch, True))
    return steps


def plain(learner: Learner, corpus: Corpus) -> tuple[Weights, Steps]:
    found = train(learner, ListProblem(corpus, targets(corpus), SEED), epochs=EPOCHS)
    return found.weights["average"], stepped(learner, corpus)


def warm(learner: Learner, corpus: Corpus) -> tuple[Weights, Steps]:
    problem = ListProblem(corpus, targets(corpus), SEED)
    found = train(learner, problem, epochs=EPOCHS - 1, start=(train(learner, problem, epochs=1).state, 1))
    return found.weights["average"], stepped(learner, corpus)


def batches(learner: Learner, corpus: Corpus) -> tuple[Weights, Steps]:
    """Epochs over other lists each time, whose average is looked at between them."""
    state, steps = learner.init(corpus.width), Steps(learner, corpus)
    for part in pieces(corpus) * EPOCHS:
        state, steps.state = (learner.for_corpus(each, part.candidate_count) for each in (state, steps.state))
        learner.epoch(part, targets(part), np.arange(part.list_count), state)
        steps.visit(part, np.arange(part.list_count))
        average = learner.average(state)
    return average, steps


@pytest.mark.parametrize(
    ("trained", "name", "parameters"),
    [
        *((plain, *variant.values) for variant in FIRST),
        *((way, *variant.values) for way in (warm, batches) for variant in FIRST if variant.values[0] in FAMILIES),
    ],
)
def test_the_average_is_the_mean_over_all_visits(
    trained: Callable[..., tuple[Weights, Steps]], name: str, parameters: dict[str, Any]
) -> None:
    average, steps = trained(make(name, parameters), SPARSE)
    assert steps.count == EPOCHS * SPARSE.list_count
    assert_equal(np.append(average.w, average.base), steps.total / steps.count)


def assert_equal(found: np.ndarray, expected: np.ndarray) -> None:
    size = np.abs(expected[:-1]).max()
    assert size > 0.0
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11 * size)


@every([variant for variant in FIRST if variant.values[0] in ("perceptron", "vrda", "sop")])
def test_the_average_over_chains_is_the_mean_over_all_sentences(name: str, parameters: dict[str, Any]) -> None:
    learner, random = make(name, parameters), np.random.default_rng(3)
    tokens, labels = np.arange(0, 37, 3), random.integers(0, 3, 36)
    chains = chains_of(
        tokens, np.arange(0, 73, 2), random.integers(0, 5, 72), labels, np.ones((5, 3)), attribute_count=5
    )
    state, total = learner.init(chains.width), np.zeros(chains.width)
    with in_python():
        for i in np.concatenate([epoch_order(chains.example_count, SEED, epoch, True) for epoch in range(EPOCHS)]):
            ChainProblem(chains.take(np.array([i]))).visit(learner, state, 0, None)
            total += learner.last(state).w
        training = train(learner, ChainProblem(chains, SEED), epochs=EPOCHS)
    assert_equal(training.weights["average"].w, total / (EPOCHS * chains.example_count))


LEVEL = np.arange(6.0)  # τ_k = k
P, Q, F = np.arange(18.0).reshape(3, 6)
CELLS = np.array([(0.0, 1, P[1], Q[1])], CELL)  # up to predictor 1 of the sums
SUMS = PredictorSums(P, Q, F, LEVEL, CELLS, 0)


@pytest.mark.parametrize("slope", [0.0, 0.25])
def test_what_is_no_number_is_looked_up_nowhere(slope: float) -> None:
    assert math.isnan(sum_weights(math.nan, slope, CELLS[0], 4, SUMS))


RISES = {
    "a line": np.arange(200.0),
    "a root": np.sqrt(np.arange(200.0)),
    "a curve": np.exp(0.1 * np.arange(200.0)),
    "steps": np.repeat(np.arange(20.0), 10),
    "a wall": np.repeat([1.0, 2.0, np.inf], [100, 98, 2]),
    "nothing": np.ones(200),
}


@pytest.mark.parametrize("rise", RISES)
def test_a_column_leaves_where_the_first_threshold_reaches_it(rise: str) -> None:
    level = RISES[rise]
    for first, last in ((0, 199), (0, 1), (37, 38), (37, 112), (5, 199)):
        for slope in (1.0, 0.3, 1e-310):
            sizes = {*(level[first:last:7] * slope), *(level[first:last:11] * slope * 1.001), 1e-300}
            for size in sizes - {0.0, np.inf}:
                left = [k for k in range(first + 1, last) if level[k] * slope >= size]
                assert last_active(size, slope, level, first, last) == (left[0] if left else last) - 1
