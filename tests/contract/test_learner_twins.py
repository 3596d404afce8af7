"""Every learner equals its dense twin, stays a number at the ends of its range, and reproduces runs whose every number
is known."""

import csv
import dataclasses
import re
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import product
from typing import Any

import numpy as np
import pytest
import reference
from entries import ONLINE
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st
from reference_pairs import ORACLES, Pairs
from scipy.sparse import csr_matrix
from small import SHARED, needs
from strategies import WIDTH, Row, corpora, corpus_of, random_corpus, run, targets
from twins.gaussian import ENTRIES as GAUSSIAN
from variants import (
    EPOCHS,
    LEARNERS,
    every,
    every_learner,
    every_variant,
    exact,
    in_python,
    make,
    rounding_of,
    twin_of,
    variants,
)

from rerank.base.errors import RecipeError, RunError
from rerank.base.registry import build
from rerank.contrib.classification.sets import read_folds, read_svmlight
from rerank.contrib.learners.large_margin import NO_LIMIT
from rerank.data.corpus import Corpus
from rerank.data.labelled import Labelled
from rerank.learn.learner import Learner, learners
from rerank.learn.pairs import HopeFear, Oracle, PairSource, Sampled
from rerank.learn.rules.additive import TruncatedGradient
from rerank.learn.rules.winnow import MAX_LOG_WEIGHT
from rerank.learn.train import ORACLE_PAIRS, ListProblem, require_source, train
from rerank.learn.voting import vote
from rerank.metrics.metric import oracles
from rerank.storage.documents import as_json

SOURCES = [HopeFear(tilt=2.0), Sampled(tilt=0.5, draws=4, threshold=0.25), Oracle(tilt=0.5)]
PAIRED = ("pa", "sgd")  # which pairs these take is no matter of the learner, but for kinds of losses


@every_variant
def test_equals_its_twin(name: str, parameters: dict[str, Any]) -> None:
    corpus, learner = random_corpus(4), make(name, parameters)
    ran, trace = run(learner, corpus, EPOCHS), twin_of(learner, corpus, EPOCHS)
    assert ran.per_epoch("mistakes") == trace.mistakes
    assert ran.per_epoch("updates") == trace.updates
    assert ran.per_epoch("loss") == pytest.approx(trace.loss, rel=1e-10)
    assert learner.updates(ran.state) == len(trace.deltas) > 0
    assert ran.log.arrays()["survived"].tolist() == trace.survived
    np.testing.assert_allclose(learner.last(ran.state).w, trace.predictors[-1].w, rtol=1e-10, atol=1e-12)
    assert learner.last(ran.state).base == pytest.approx(trace.predictors[-1].beta, rel=1e-10)
    w, beta = trace.average()
    np.testing.assert_allclose(learner.average(ran.state).w, w, rtol=1e-10, atol=1e-12)
    assert learner.average(ran.state).base == pytest.approx(beta, rel=1e-10)


@st.composite
def drawn(draw: st.DrawFn, name: str) -> tuple[Learner, PairSource]:
    """A learner with one of its variants, or with any of its choices; and pairs that it takes."""
    entry = LEARNERS[name]
    anything = st.fixed_dictionaries({key: st.sampled_from(values) for key, values in entry.choices.items()})
    try:
        learner = make(name, draw(st.one_of(anything, anything, st.sampled_from(entry.variants))))
    except RecipeError:  # two choices that exclude each other
        reject()
    taken = [pairs for pairs in SOURCES if name in PAIRED and pairs.name in (learner.sources or (pairs.name,))]
    return learner, draw(st.sampled_from([ORACLE_PAIRS, ORACLE_PAIRS, *taken]))


@pytest.mark.parametrize("name", ONLINE)
@settings(max_examples=60)
@given(
    data=st.data(), dyadic=st.booleans(), whole=st.booleans(), any_ties=st.booleans(), epochs=st.integers(0, 4),
    free=st.sampled_from([0, 0, 2, WIDTH]),
)  # fmt: skip
def test_all_that_is_done_with_any_parameters_is_what_the_twin_does(
    name: str, data: st.DataObject, dyadic: bool, whole: bool, any_ties: bool, epochs: int, free: int
) -> None:
    """What is counted and logged, all predictors, and votes; ties and zeros where sums are exact."""
    learner, pairs = data.draw(drawn(name))
    sure = exact(learner)
    made = (data.draw(corpora(dyadic=dyadic and sure, whole=whole and sure)) for _ in "ab")
    corpus, other = (dataclasses.replace(each, free=free) for each in made)
    with np.errstate(over="ignore", invalid="ignore"):
        trace = twin_of(learner, corpus, epochs, any_ties, ORACLES if pairs is ORACLE_PAIRS else Pairs(pairs))
    rounding, sure = 10 * rounding_of(learner, trace), sure and dyadic
    assume(sure or (trace.gap > 10 * rounding and trace.largest.max() < 1e6))
    with nullcontext() if name in GAUSSIAN else in_python():  # whose cells have names that numpy's records have
        ran = run(learner, corpus, epochs, any_ties=any_ties, pairs=pairs)
        votes = learner.votes(ran.log, corpus)
    assume(sure or not reference.residues(votes))
    close = {"rtol": rounding, "atol": rounding / 100}
    assert ran.per_epoch("lists") == [corpus.list_count] * epochs
    assert (ran.per_epoch("mistakes"), ran.per_epoch("updates")) == (trace.mistakes, trace.updates)
    assert ran.per_epoch("loss") == pytest.approx(
        trace.loss, rel=rounding, abs=1e-7 if name in ("cw", "scw") else 1e-11
    )
    assert ran.log.arrays()["lists"].tolist() == trace.lists_of_updates
    assert ran.log.arrays()["survived"].tolist() == votes.survived.tolist() == trace.survived
    found, (w, beta) = reference.trace_of(votes, corpus.width).predictors, trace.average()
    assert len(found) == len(trace.predictors) == learner.updates(ran.state) + 1
    for one, two in zip([*found, learner.last(ran.state)], [*trace.predictors, trace.predictors[-1]], strict=True):
        np.testing.assert_allclose(one.w, two.w, **close)
        assert getattr(one, "beta", getattr(one, "base", None)) == pytest.approx(two.beta, rel=rounding, abs=1e-11)
    assert not sure or not np.any((learner.last(ran.state).w == 0) != (trace.predictors[-1].w == 0))
    np.testing.assert_allclose(learner.average(ran.state).w, w, **close)
    assert learner.average(ran.state).base == pytest.approx(beta, rel=rounding, abs=1e-11)
    if sure or reference.voting_gap(trace, other) > 10 * rounding:
        np.testing.assert_array_equal(vote(votes, other), reference.votes(trace, other))


@every_learner
def test_votes_hold_the_weights_of_the_state_however_sure_a_learner_is(name: str, parameters: dict[str, Any]) -> None:
    """Large values drive P(y) to 0 and 1: coefficients vanish, and updates of one candidate are logged."""
    random = np.random.default_rng(11)
    lists: list[list[Any]] = [
        [
            (dict(enumerate(200.0 * random.normal(size=WIDTH))), 0.0, float(y == 0))
            for y in range(random.choice([2, 3, 5]))
        ]
        for _ in range(60)
    ]
    corpus, learner = corpus_of(lists), make(name, parameters)
    ran, w = run(learner, corpus, 2), np.zeros(WIDTH)
    votes = learner.votes(ran.log, corpus)
    assert vote(votes, corpus).sum() == 2 * 60 * 60
    for e in range(int(votes.first[-1])):
        w[votes.columns[e]] = votes.value[e]
    if not votes.threshold.size:
        np.testing.assert_allclose(votes.scale[-1] * w, learner.last(ran.state).w, rtol=1e-9, atol=1e-300)


def test_sources_that_make_no_sense_are_refused() -> None:
    learner = make("lm-perc", {})
    require_source(learner, ORACLE_PAIRS)
    with pytest.raises(RecipeError, match="found 'hope-fear'; expected oracle for the learner 'lm-perc'"):
        require_source(learner, SOURCES[0])


def test_a_state_is_not_trained_on_with_other_free_columns() -> None:
    corpus, learner = random_corpus(3), make("rda", {"l1": 0.01})
    state = run(learner, corpus, 1).state
    with pytest.raises(ValueError, match="trained with 0 free columns, the corpus has 2"):
        run(learner, dataclasses.replace(corpus, free=2), 1, state=state, first=1)


COLUMNS = 40


def real_corpus(seed: int, lists: int, whole: bool) -> Corpus:
    """Lists in which ties abound: of candidates that are equal, or differ in a feature that is rare, or have few.

    whole: features are counts, else the common ones have real values; base scores repeat.
    """
    random = np.random.default_rng(seed)

    def row() -> Row:
        columns = random.choice(8, size=random.integers(0, 4), replace=False)
        values = random.integers(1, 4, size=columns.size) if whole else random.normal(size=columns.size)
        return {int(j): float(np.float32(x)) for j, x in zip(columns, values, strict=True)}

    def candidates() -> list[Row]:
        rows = [row() for _ in range(random.integers(1, 4))]
        rare = random.integers(8, COLUMNS, size=3)
        return [{}, *rows, *rows, *(x | {int(j): 1.0} for x, j in zip(rows, rare, strict=False)), {int(rare[0]): 1.0}]

    return corpus_of(
        [[(x, float(random.integers(2)), random.uniform()) for x in candidates()] for _ in range(lists)],
        [float(x) for x in random.choice([0.5, 1.0, 2.0], size=lists)],
        COLUMNS,
    )


def assert_votes_equal_brute_force(learner: Learner, training: Corpus, corpus: Corpus) -> None:
    """Under predictors whose winners all are ahead by more than a billionth of what the list's products come to."""
    votes = learner.votes(run(learner, training, 3).log, training)
    trace = reference.trace_of(votes, corpus.width)
    clear = reference.leads(trace, corpus) > 1e-9
    assert np.count_nonzero(clear) > 5
    votes = votes._replace(survived=np.where(clear, votes.survived, 0))
    trace.survived = votes.survived.tolist()
    np.testing.assert_array_equal(vote(votes, corpus), reference.votes(trace, corpus))


@every_learner
@pytest.mark.parametrize("whole", [False, True])
def test_votes_equal_brute_force(name: str, parameters: dict[str, Any], whole: bool) -> None:
    assert_votes_equal_brute_force(make(name, parameters), real_corpus(5, 60, whole), real_corpus(6, 20, whole))


@every([variant for variant in variants() if variant.values[1].get("loss") == "exponential"])
def test_votes_equal_brute_force_where_many_columns_meet(name: str, parameters: dict[str, Any]) -> None:
    """Few columns make weights of exponential loss run away, from 0.1 to 1e13 within a block of predictors."""
    for seed in (2, 6):
        assert_votes_equal_brute_force(make(name, parameters), random_corpus(seed), random_corpus(seed))


EXTREMES = (1e-300, 1e-160, 1e160, 1e300)


def numbers() -> Iterator[Any]:
    """Every numeric parameter of every registered learner."""
    for name in ONLINE:
        for item in dataclasses.fields(learners.get(name)):  # type: ignore[arg-type]
            if isinstance(item.default, float):
                yield pytest.param(name, item.name, id=f"{name}.{item.name}")


@pytest.mark.parametrize(("name", "parameter"), list(numbers()))
def test_extreme_settings_give_finite_numbers_or_an_error(name: str, parameter: str) -> None:
    corpus, said = random_corpus(1, lists=12), list[tuple[float, str]]()
    for value in EXTREMES:
        try:
            learner = make(name, {parameter: value})
        except RecipeError:
            continue
        try:
            training = train(learner, ListProblem(corpus, targets(corpus), 1), epochs=3, keep_log=True)
        except RunError as error:
            said.append((value, str(error)))
            continue
        as_json(training.history)
        for weights in training.weights.values():
            assert np.isfinite(weights.w).all()
            assert np.isfinite(weights.base)
        votes = learner.votes(training.log, corpus)
        votes.check(corpus.width)
        assert vote(votes, corpus).sum() == votes.survived.sum() * corpus.list_count
    for value, message in said:
        assert re.match(rf"epoch [123]: the .* of learner {name} \(.*{parameter}: {re.escape(str(value))}", message)


ADAPTIVE = [
    (make(name, {"loss": loss, "normalized": normalized} | dict(zip(ends, values, strict=True))), size)
    for name, ends in (("arda", ("delta", "eta")), ("ftrl", ("beta", "alpha")))
    for values in ((0.0, 1e-300), (0.0, 1e300), (1e-300, 1.0), (1e300, 1.0))
    for loss, normalized, size in product(("hinge", "log"), (False, True), (1e-30, 1e30))
]
WINNOW = [
    (make(name, {"loss": loss, "eta": eta, "mu": mu, "update": "always", "base_rate": 0.5}), size)
    for name, loss in product(("uwin", "nwin"), ("perceptron", "log"))
    for eta, mu, size in ((1e308, 1.0, 1.0), (1e3, 1e20, 3e38), (1e300, 1e-100, 1e-38))
]
DUAL = [
    (make(name, {"C": C} | ({} if name == "lm-perc" else {"eta": eta})), size)
    for name, C in product(("lm-uwin", "lm-nwin", "lm-perc"), (1e-300, 1e308, None))
    for eta, size in product((1e-300, 1e308), (1e-38, 1.0, 3e38))
]


@pytest.mark.parametrize("made", [ADAPTIVE, WINNOW, DUAL], ids=["adaptive", "winnow", "dual"])
def test_no_number_overflows(made: list[tuple[Any, float]]) -> None:
    """What limits its own numbers has no error where others have one, whatever the size of values."""
    corpus = random_corpus(13)
    for learner, size in made:
        with np.errstate(over="ignore"):
            values = np.clip(corpus.values * np.float32(size), -3e38, 3e38)
        ran = run(learner, dataclasses.replace(corpus, values=values), 4)
        for weights in (learner.last(ran.state), learner.average(ran.state)):
            assert np.isfinite([*weights.w, weights.base]).all()
        if made is WINNOW:
            assert np.abs(ran.state.memory).max() == MAX_LOG_WEIGHT
            assert np.isfinite(ran.per_epoch("loss")).all()
        if made is DUAL:
            assert (ran.state.alpha <= NO_LIMIT).all()
            assert all(np.isfinite(array).all() for array in ran.state)
        if made is not ADAPTIVE:
            assert all(np.isfinite(array).all() for array in learner.votes(ran.log, corpus))


def test_a_large_truncation_zeroes_all_weights_up_to_theta() -> None:
    corpus = random_corpus(6)
    for l1 in (1e3, 1e308):
        for steps in (1, 2**31 - 1):
            ran = run(TruncatedGradient(loss="hinge", eta=1e10, l1=l1, every=steps), corpus, 2)
            for weights in (TruncatedGradient().last(ran.state), TruncatedGradient().average(ran.state)):
                assert np.isfinite(weights.w).all()
                assert weights.w.any() == (steps > 1)
    ran = run(TruncatedGradient(loss="hinge", l1=1e308, theta=0.5), corpus, 2)
    w = TruncatedGradient(theta=0.5).last(ran.state).w
    assert (np.abs(w[w != 0]) > 0.5).all()
    assert w.any()


# Eleven learners on eleven data sets, cross-checked with other implementations. exact_refs.csv has counts (updates,
# online mistakes, test errors), which are to be met exactly, and sums of weights and variances, to 1e-6. Training takes
# the examples outside fold 0 in the order of the file, without a bias.
BINARY = SHARED / "binary"
DATASETS = [
    *(f"sentiment_{name}" for name in ("books", "electronics", "kitchen")),
    "news_comp",
    "news_talk",
    "sentence_polarity",
    *(f"digits_{pair}" for pair in ("09", "12", "34", "56", "78")),
]
ALGORITHMS: dict[str, dict[str, Any]] = {
    "perceptron": {"name": "perceptron"},
    "PA": {"name": "pa", "variant": "hard"},
    "PA-I": {"name": "pa", "variant": "1", "C": 0.01},
    "PA-II": {"name": "pa", "variant": "2", "C": 0.01},
    "CW-var-KL": {"name": "cw", "form": "var", "covariance": "kl", "phi": 1.0},
    "CW-var-L2": {"name": "cw", "form": "var", "covariance": "l2", "phi": 1.0},
    "CW-stdev-KL": {"name": "cw", "form": "stdev", "covariance": "kl", "phi": 1.0},
    "CW-stdev-L2": {"name": "cw", "form": "stdev", "covariance": "l2", "phi": 1.0},
    "AROW-diagKL": {"name": "arow", "r": 10.0, "covariance": "kl"},
    "AROW-diagL2": {"name": "arow", "r": 10.0, "covariance": "l2"},
    "SOP-diag": {"name": "sop", "a": 1.0, "covariance": "diagonal"},
}


@pytest.fixture(scope="module", params=DATASETS)
def split(request: pytest.FixtureRequest) -> tuple[str, Labelled, Labelled]:
    """Name, training and test examples of a data set."""
    data, folds = BINARY / f"{request.param}.svm.gz", BINARY / f"{request.param}.folds.txt"
    for path in (data, folds):
        if not path.exists():
            pytest.skip(f"{path} is missing")
    examples = read_svmlight(data)
    assert examples.classes == ("-1", "1")
    fold = read_folds(folds, examples.size)
    return request.param, examples.take(fold != 0), examples.take(fold == 0)


def expected_of(dataset: str, algorithm: str) -> dict[int, dict[str, str]]:
    """The rows of exact_refs.csv by the number of epochs."""
    with (BINARY / "exact_refs.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if (row["dataset"], row["algorithm"]) == (dataset, algorithm)]
    return {int(row["epochs"]): row for row in rows}


def sums_of(learner: Learner, state: Any, width: int) -> tuple[np.ndarray, float]:
    """The vector whose sums are known (of the second-order perceptron: Σz), and Σ of the variances − D (Σz²)."""
    if learner.name == "sop":
        return state.cells[:-1, 1], float(state.cells[:-1, 2].sum())
    variances = getattr(learner, "variances", None)
    return learner.last(state).w, float(variances(state).sum() - width) if variances else 0.0


def margins(learner: Learner, state: Any, test: Labelled, width: int) -> np.ndarray:
    """w·x of the test examples; the second-order perceptron counts the example in A."""
    X = csr_matrix((test.values.astype(float), test.columns, test.rows), shape=(test.size, width))
    if learner.name != "sop":
        return np.asarray(X @ learner.last(state).w)
    example = np.repeat(np.arange(test.size), np.diff(test.rows))
    total, squares = state.cells[X.indices, 1], state.cells[X.indices, 2]
    return np.bincount(example, total * X.data / (learner.a + squares + X.data**2), test.size)  # type: ignore[attr-defined]


@needs("binary/exact_refs.csv")
@pytest.mark.parametrize("algorithm", list(ALGORITHMS))
def test_reproduces_the_reference_run(split: tuple[str, Labelled, Labelled], algorithm: str) -> None:
    dataset, training, test = split
    corpus, expected = training.corpus(), expected_of(dataset, algorithm)
    assert sorted(expected) == [1, 3]
    learner = build(learners, ALGORITHMS[algorithm], "learner")
    targets, order = oracles(corpus), np.arange(corpus.list_count)
    state, updates, mistakes = learner.init(corpus.width), 0, 0
    for epoch in range(1, 4):
        stats = learner.epoch(corpus, targets, order, state)
        updates, mistakes = updates + stats.updates, mistakes + stats.mistakes
        if epoch not in expected:
            continue
        row = expected[epoch]
        wrong = (margins(learner, state, test, corpus.width) > 0) != (test.label == 1)
        found = (updates, mistakes, int(wrong.sum()), test.size)
        assert found == tuple(int(row[key]) for key in ("updates", "online_mistakes", "test_errors", "test_size"))
        w, excess = sums_of(learner, state, corpus.width)
        names = ("w_sum", "w_sqnorm", "w_max", "sigma_sum_minus_D")
        for name, value in zip(names, (w.sum(), w @ w, w.max(), excess), strict=True):
            assert value == pytest.approx(float(row[name]), rel=1e-6, abs=1e-6), name
