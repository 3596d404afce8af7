"""Combined states: their predictors by the formulas, from the predictors of the sections."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import Ran, random_corpus, run
from variants import FIRST, every, make

from rerank.base.errors import RecipeError
from rerank.base.registry import build
from rerank.data.corpus import Corpus
from rerank.learn.base import Learner, Weights, learners
from rerank.learn.mixing.combining import combine, heaviest, rule_of
from rerank.learn.rules.arow import AROW
from rerank.learn.rules.cw import CW
from rerank.learn.rules.nherd import NormalHerd
from rerank.learn.rules.perceptron import Perceptron
from rerank.learn.rules.rda import RDA
from rerank.learn.rules.sgd import SGD
from rerank.learn.rules.sop import SecondOrderPerceptron

ALONE = {"lm-uwin", "lm-nwin", "lm-perc"}  # those that cannot be combined
every_learner = every([variant for variant in FIRST if variant.values[0] not in ALONE])


def trained(learner: Learner, epochs: int = 2, state: Any = None) -> tuple[list[Corpus], list[Ran]]:
    """Three sections, of different sizes, and what the learner made of them, each from its own copy of ``state``."""
    corpora = [random_corpus(seed, lists) for seed, lists in ((1, 9), (2, 14), (3, 5))]
    copies = [None if state is None else type(state)(*(np.array(array) for array in state)) for _ in corpora]
    return corpora, [run(learner, corpus, epochs, state=copy) for corpus, copy in zip(corpora, copies, strict=True)]


def mean(weights: list[Weights], shares: Any) -> Weights:
    """Σ share · weights."""
    w = sum(share * each.w for share, each in zip(shares, weights, strict=True))
    return Weights(np.asarray(w), float(sum(share * each.base for share, each in zip(shares, weights, strict=True))))


def assert_close(one: Weights, other: Weights) -> None:
    np.testing.assert_allclose(one.w, other.w, rtol=1e-9, atol=1e-11)
    assert one.base == pytest.approx(other.base, rel=1e-9, abs=1e-11)


@every_learner
def test_the_average_is_that_of_all_predictors(name: str, parameters: dict[str, Any]) -> None:
    learner = make(name, parameters)
    corpora, ran = trained(learner)
    seen = np.array([2.0 * corpus.list_count for corpus in corpora])
    first = combine(learner, [each.state for each in ran])
    assert_close(learner.average(first), mean([learner.average(each.state) for each in ran], seen / seen.sum()))
    assert learner.updates(first) == sum(learner.updates(each.state) for each in ran)
    # ... and of those of the first round too, where the second began with its state.
    _, again = trained(learner, 1, first)
    second = combine(learner, [each.state for each in again], start=first)
    before, own = seen.sum(), seen / 2
    parts = [learner.average(first), *(learner.average(each.state) for each in again)]
    total = before + own.sum()
    shares = [before * (1 - len(own)) / total, *((before + own) / total)]
    assert_close(learner.average(second), mean(parts, shares))
    assert np.isfinite(learner.last(second).w).all()


@every_learner
def test_sections_that_learned_nothing_change_nothing(name: str, parameters: dict[str, Any]) -> None:
    learner = make(name, parameters)
    _, ran = trained(learner)
    start = ran[0].state
    assert_close(learner.last(combine(learner, [start, start, start], start=start)), learner.last(start))


@pytest.mark.parametrize("name", ["perceptron", "sgd", "pa", "tg", "fobos", "uwin", "nwin"])
@pytest.mark.parametrize("rule", ["auto", "updates", "mean"])
def test_means_of_weights(name: str, rule: str) -> None:
    learner = make(name, {})
    _, ran = trained(learner)
    states = [each.state for each in ran]
    updates = np.array([learner.updates(state) for state in states])
    assert len(set(updates)) > 1
    shares = np.full(3, 1 / 3) if rule == "mean" else updates / updates.sum()
    combined = combine(learner, states, rule=rule)
    if name in ("uwin", "nwin"):
        theta = mean([Weights(state.memory[:-1], state.memory[-1]) for state in states], shares)
        np.testing.assert_allclose(combined.memory[:-1], theta.w, rtol=1e-12)
        mu = learner.mu  # type: ignore[attr-defined]
        positive, negative = mu * np.exp(theta.w), mu * np.exp(-theta.w)
        d = 2 * mu * theta.w.size / (positive + negative).sum() if name == "nwin" else 1.0
        np.testing.assert_allclose(learner.last(combined).w, d * (positive - negative), rtol=1e-10, atol=1e-14)
    else:
        assert_close(learner.last(combined), mean([learner.last(state) for state in states], shares))


@pytest.mark.parametrize("update", ["always", "mistakes"])
def test_dual_averaging_has_seen_all_subgradients(update: Any) -> None:
    """s is the sum over the log of every section, k the number of its entries, w the formula's."""
    learner = RDA(eta=0.7, l1=0.01, l2=0.1, update=update, base_rate=0.5)
    corpora, ran = trained(learner)
    s, k = np.zeros(corpora[0].width), 0
    for corpus, each in zip(corpora, ran, strict=True):
        logged = each.log.arrays()
        dense = np.zeros((corpus.candidate_count, corpus.width))
        dense[np.repeat(np.arange(corpus.candidate_count), np.diff(corpus.rows)), corpus.columns] = corpus.values
        rates = np.repeat(logged["rate"], np.diff(logged["first"]))
        s += (rates * logged["a"]) @ dense[logged["candidate"]]
        k += logged["lists"].size
    combined = combine(learner, [each.state for each in ran])
    np.testing.assert_allclose(-combined.cells[:-1], s, rtol=1e-10, atol=1e-12)
    expected = -np.sign(s) * np.maximum(np.abs(s) - k * 0.01, 0) / (k * 0.1 + 0.7 * np.sqrt(k))
    np.testing.assert_allclose(learner.last(combined).w, expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("learner", [AROW(r=0.5), CW(), NormalHerd(), AROW(covariance="full")], ids=str)
def test_gaussians_are_weighted_by_their_precision(learner: Any) -> None:
    """Crammer et al. 2012, section 7.10; and what all knew at the start counts once."""
    _, ran = trained(learner)

    def parts(state: Any) -> tuple[np.ndarray, np.ndarray]:
        if state.matrix.size:
            return state.cells, state.matrix
        return state.cells[:, 0], np.diag(state.cells[:, 1])

    def naive(states: list[Any]) -> tuple[np.ndarray, np.ndarray]:
        inverses = [np.linalg.inv(parts(state)[1]) for state in states]
        precision = sum(inverses)
        return np.linalg.inv(precision) @ sum(P @ parts(s)[0] for P, s in zip(inverses, states, strict=True)), precision

    states = [each.state for each in ran]
    combined = combine(learner, states)
    mu, precision = naive(states)
    np.testing.assert_allclose(parts(combined)[0], mu, rtol=1e-8, atol=1e-11)
    np.testing.assert_allclose(np.linalg.inv(parts(combined)[1]), precision, rtol=1e-8, atol=1e-8)
    later = [each.state for each in trained(learner, 1, combined)[1]]
    mu, precision = naive(later)
    second = combine(learner, later, start=combined)
    np.testing.assert_allclose(parts(second)[0], mu, rtol=1e-8, atol=1e-11)
    known = 2 * np.linalg.inv(parts(combined)[1])
    np.testing.assert_allclose(np.linalg.inv(parts(second)[1]), precision - known, rtol=1e-6, atol=1e-6)
    uniform = combine(learner, states, rule="mean")
    np.testing.assert_allclose(parts(uniform)[0], np.mean([parts(state)[0] for state in states], axis=0), atol=1e-12)
    np.testing.assert_allclose(parts(uniform)[1], np.mean([parts(state)[1] for state in states], axis=0), atol=1e-12)


@pytest.mark.parametrize("covariance", ["diagonal", "full"])
def test_the_second_order_perceptron_has_seen_all_differences(covariance: Any) -> None:
    learner = SecondOrderPerceptron(a=0.5, covariance=covariance)
    _, ran = trained(learner)
    combined = combine(learner, [each.state for each in ran])
    if covariance == "diagonal":
        v, A = (sum(each.state.cells[:, cell] for each in ran) for cell in (1, 2))
        np.testing.assert_allclose(combined.cells[:, 0], v / (0.5 + A), rtol=1e-12)
        return
    inverses = [np.linalg.inv(each.state.matrix) for each in ran]
    v = sum(inverse @ each.state.cells for inverse, each in zip(inverses, ran, strict=True))
    A = sum(inverses) - 2 * 0.5 * np.eye(len(v))
    np.testing.assert_allclose(combined.cells, np.linalg.solve(A, v), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [("arda", {}), ("arda", {"l1": 0.01}), ("ftrl", {}), ("arow", {"normalize": True}), ("cw", {"normalize": True})],
)
def test_units_do_not_matter(name: str, parameters: dict[str, Any]) -> None:
    """Values of a column in units of 1/4: weights four times as small, also of sections that never saw the column."""
    learner = make(name, parameters)
    found = []
    for unit in (1.0, 4.0):
        states = []
        for seed in (1, 2, 3):
            corpus = random_corpus(seed, 9)
            own = corpus if seed > 1 else corpus.keep_columns(np.arange(corpus.width) != 2)
            values = np.where(own.columns == 2, unit * own.values, own.values)
            states.append(run(learner, Corpus(**{**own.__dict__, "values": values}), 2).state)
        found.append(learner.last(combine(learner, states)).w)
    found[1][2] *= 4.0
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9, atol=1e-12)


def test_adaptive_sums() -> None:
    """Without units: s and Σg² are those of the sections, added up."""
    arda = build(learners, {"name": "arda", "normalized": False, "l1": 0.02, "eta": 0.5, "delta": 0.1}, "learner")
    states = [each.state for each in trained(arda)[1]]
    s, squares = (sum(state.cells[:-1, 1] for state in states), sum(state.cells[:-1, 2] ** 2 for state in states))
    k = sum(arda.updates(state) for state in states)
    expected = -np.sign(s) * np.maximum(np.abs(s) - k * 0.02, 0) * 0.5 / (0.1 + np.sqrt(squares))
    np.testing.assert_allclose(arda.last(combine(arda, states)).w, expected, rtol=1e-9, atol=1e-12)


def test_step_sizes_weigh_ftrl() -> None:
    """w is the mean by inverse step sizes, and the combined state goes on from it: z stands for the same w."""
    ftrl = build(learners, {"name": "ftrl", "normalized": False, "l1": 0.05, "l2": 0.1}, "learner")
    states = [each.state for each in trained(ftrl)[1]]
    q = np.array([state.cells[:-1, 3] for state in states])
    combined = combine(ftrl, states)
    expected = (q * [ftrl.last(state).w for state in states]).sum(axis=0) / q.sum(axis=0)
    np.testing.assert_allclose(ftrl.last(combined).w, expected, rtol=1e-12)
    z, q, n = combined.cells[:-1, 1], combined.cells[:-1, 3], sum(state.cells[:-1, 2] ** 2 for state in states)
    np.testing.assert_allclose(-np.sign(z) * np.maximum(np.abs(z) - 0.05, 0) / (q + 0.1), expected, rtol=1e-9)
    np.testing.assert_allclose(q, (0.01 + np.sqrt(n)) / 0.3, rtol=1e-12)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 6), st.integers(0, 3), st.sampled_from([Perceptron(), RDA(), AROW(), SGD(loss="log")]))
def test_joint_selection(keep: int, free: int, learner: Any) -> None:
    """Simianer et al. 2012: the columns with the largest norms across sections; the others as if never seen."""
    states = [each.state for each in trained(learner)[1]]
    norms = np.sqrt(sum(learner.last(state).w ** 2 for state in states))
    kept = heaviest(learner, states, keep, free)
    assert kept[:free].all()
    assert kept[free:].sum() == min(keep, np.count_nonzero(norms[free:]))
    assert min(norms[free:][kept[free:]], default=np.inf) >= max(norms[free:][~kept[free:]], default=0.0)
    without, combined = combine(learner, states, free=free), combine(learner, states, free=free, keep=keep)
    for of in (learner.last, learner.average):
        np.testing.assert_array_equal(of(combined).w, np.where(kept, of(without).w, 0.0))


def test_what_cannot_be_combined_says_so() -> None:
    for name in sorted(ALONE):
        learner = make(name, {})
        state = learner.init(3, 4)
        with pytest.raises(RecipeError, match=rf"training\.mixing: {name} does not support mixing"):
            combine(learner, [state, state])
    with pytest.raises(RecipeError, match=r"training\.mixing\.rule: perceptron has no rule 'kl'"):
        rule_of(Perceptron(), "kl")
    with pytest.raises(RecipeError, match=r"training\.mixing\.keep: uwin cannot"):
        rule_of(build(learners, {"name": "uwin"}, "learner"), keep=3)
