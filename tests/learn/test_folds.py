"""maxent: the minimum of its formula, penalties by cross-validation, and the members of the sum that is the model."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import small_rankings
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp
from sklearn.linear_model import LogisticRegression
from strategies import corpora, corpus_of, in_parts, random_corpus, targets

from rerank.base.errors import RecipeError
from rerank.data.corpus import Corpus, free_values
from rerank.learn import folds
from rerank.learn.folds import (
    SINGLE_LIST_PENALTY,
    Member,
    Mixture,
    best_column,
    iter_folds,
    mixture,
    pairs_with_nothing,
    reweigh,
    sections,
    trials,
    weigh_members,
    with_base_column,
)
from rerank.learn.learner import Weights
from rerank.learn.rules.maxent import Maxent
from rerank.learn.scoring import choices, rows_of_weights, scores
from rerank.learn.train import ListProblem, score_on, train
from rerank.metrics.gain import Gain
from rerank.metrics.metric import oracles


def penalised(corpus: Corpus, weights: Weights, l2: float, l1: float, any_ties: bool, extra: float) -> float:
    """L(w), list by list; ``extra``: the penalised part of the base score's weight."""
    s, oracle, total = scores(corpus, weights), targets(corpus), 0.0
    for i, (first, last) in enumerate(pairwise(corpus.lists)):
        if last > first:
            gain = corpus.gain[first:last]
            right = gain == gain[oracle[i] - first] if any_ties else np.arange(first, last) == oracle[i]
            total += corpus.weight[i] * (logsumexp(s[first:last]) - logsumexp(s[first:last][right]))
    every = np.append(weights.w, extra)
    return float(total + l2 / 2 * every @ every + l1 * np.abs(every).sum())


def mistakes(corpus: Corpus, weights: Weights, any_ties: bool) -> int:
    """The lists in which a wrong candidate scores as high as every right one."""
    s, oracle, total = scores(corpus, weights), targets(corpus), 0
    for i, (first, last) in enumerate(pairwise(corpus.lists)):
        right = corpus.gain[first:last] == corpus.gain[oracle[i]] if any_ties else np.arange(first, last) == oracle[i]
        total += last > first and bool((s[first:last][~right] >= s[first:last][right].max()).any())
    return total


def fitted(learner: Maxent, corpus: Corpus, any_ties: bool = False) -> Weights:
    state = learner.init(corpus.width)
    stats = learner.solve(corpus, targets(corpus), state, any_ties=any_ties)
    weights = learner.last(state)
    assert stats.mistakes == mistakes(corpus, weights, any_ties)
    return weights


@settings(max_examples=60)
@given(
    corpus=corpora(), any_ties=st.booleans(), base=st.sampled_from([0.0, 0.5]), rate=st.sampled_from([0.0, 0.5]),
    l1=st.sampled_from([0.0, 0.5]),
)  # fmt: skip
def test_no_step_in_any_direction_helps(corpus: Corpus, any_ties: bool, base: float, rate: float, l1: float) -> None:
    """Lists of 0, 1 and more candidates, ties, weights of lists; the base score as an offset, and as a column."""
    learner = Maxent(l2=2.0, l1=l1, base=base, base_rate=rate)
    found = fitted(learner, corpus, any_ties)
    extra = (found.base - base) / rate if rate else 0.0
    least = penalised(corpus, found, 2.0, l1, any_ties, extra)
    assert rate or found.base == base
    for j in range(corpus.width + 1):
        for step in (-0.01, 0.01):
            w, b = found.w.copy(), extra
            if j < corpus.width:
                w[j] += step
            else:
                b += step * bool(rate)
            assert penalised(corpus, Weights(w, base + rate * b), 2.0, l1, any_ties, b) > least - 1e-6


def test_listnet_makes_candidates_as_probable_as_their_gains_say() -> None:
    """A column of its own for every candidate but the last fits any distribution."""
    gain = np.array([3.0, 0.0, 1.0, -0.5])
    rows, columns = np.array([0, 1, 2, 3, 3]), np.arange(3, dtype=np.int32)
    lists, zero = np.array([0, 4]), np.zeros(4)
    corpus = Corpus(lists, rows, columns, np.ones(3), zero, gain, gain[:, None], np.ones((1, 1)), np.ones(1), width=3)
    found = scores(corpus, fitted(Maxent(l2=0.0, loss="listnet", base=0.0, base_rate=0.0), corpus))
    np.testing.assert_allclose(found - logsumexp(found), gain - logsumexp(gain), atol=1e-3)


def ranking(x: np.ndarray, right: np.ndarray) -> Corpus:
    """Lists of dense columns x [L, size, F]."""
    rows = []
    for candidates, gains in zip(x, right, strict=True):
        rows.append([(dict(enumerate(row)), 0.0, float(g)) for row, g in zip(candidates, gains, strict=True)])
    made = corpus_of(rows, width=x.shape[2])
    return replace(made, free=made.width)


def test_units_of_dense_columns_do_not_matter() -> None:
    x, right = small_rankings.draw(np.random.default_rng(1), 300)
    units = np.array([2.0**-20, 2.0**13, 1.0])
    one, other = (fitted(Maxent(l2=1.0), ranking(each, right), True).w for each in (x, x * units))
    np.testing.assert_allclose(other * units, one, rtol=1e-3)


def test_an_optimum_that_is_not_reached_is_said(caplog: pytest.LogCaptureFixture) -> None:
    corpus = random_corpus(1, lists=24)
    fitted(Maxent(l2=1.0), corpus)
    assert not caplog.records
    fitted(Maxent(l2=1.0, iterations=2), corpus)
    assert "ends after 2 iterations, before its optimum" in caplog.text


def test_parts_do_not_matter(tmp_path: Path) -> None:
    corpus = random_corpus(1, lists=24)
    lists, learner = in_parts(tmp_path / "corpus", corpus, (0, 7, 8, 24)), Maxent(l2=0.5)
    state = learner.init(corpus.width)
    learner.solve(lists, targets(lists), state)
    np.testing.assert_allclose(learner.last(state).w, fitted(learner, corpus).w, rtol=1e-6, atol=1e-9)


def test_training_has_one_epoch_and_one_predictor() -> None:
    corpus = random_corpus(2)
    problem, observers = ListProblem(corpus, targets(corpus), 1), [score_on(lambda _: 0.5)]
    found = train(Maxent(l2=1.0), problem, epochs=10, keep_log=True, observers=observers)
    assert [line["epoch"] for line in found.history] == [1]
    assert found.history[0]["dev"] == 0.5
    np.testing.assert_array_equal(found.weights["last"].w, found.weights["average"].w)
    mistakes = np.count_nonzero(choices(corpus, found.weights["last"]) != targets(corpus))
    assert found.history[0]["mistakes"] == mistakes


def test_a_penalty_is_needed() -> None:
    with pytest.raises(RecipeError, match="expected a number from 0"):
        fitted(Maxent(), random_corpus(1))
    with pytest.raises(RecipeError, match="expected one of auto, dense, all"):
        Maxent(columns="some")  # type: ignore[arg-type]


DENSE, SPARSE = 2, 30


def lists(count: int, *, dense: float = 0.0, sparse: float = 0.0, seed: int = 1) -> Corpus:
    """Lists of six with dense columns, of which one shows the right candidate by so much, and indicators, of which one
    does with this probability."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        right = int(rng.integers(6))
        rows = []
        for y in range(6):
            row = {j: float(rng.normal()) for j in range(DENSE)} | {
                int(j): 1.0 for j in rng.integers(DENSE + 1, SPARSE, 3)
            }
            row[0] += dense * (y == right)
            if y == right and rng.random() < sparse:
                row[DENSE] = 1.0
            rows.append((dict(sorted(row.items())), float(rng.normal()), float(y == right)))
        made.append(rows)
    found = corpus_of(made, width=SPARSE)
    return replace(found, free=DENSE, stats=found.gain[:, np.newaxis], reference=np.ones((count, 1)))


def members_of(corpus: Corpus, learner: Maxent | None = None) -> Mixture:
    return mixture(with_base_column(learner or Maxent(), corpus), corpus, Gain(), oracles, any_ties=True)


def kept(found: Mixture) -> set[str]:
    return {member.name for member in found.members if member.factor}


def test_only_what_is_as_good_as_the_best_is_a_member() -> None:
    found = members_of(lists(60, dense=2.0))
    assert {member.name for member in found.members} == {"dense", "all", "pointwise", "column", "base"}
    assert kept(found) == {"dense", "column", "pointwise"}
    assert found.score > 0.6 > 0.4 > found.base
    assert found.lists == 60
    assert found.beaten


def test_all_columns_where_they_are_better() -> None:
    assert kept(members_of(lists(60, dense=0.5, sparse=0.9))) == {"all"}


@pytest.mark.parametrize("more", [0, 1])
def test_all_columns_are_a_member_where_they_are_better_than_the_dense_ones(more: int) -> None:
    """On the lists that both had held out, here the last 40 of 60, by one right choice ``more``."""
    corpus = lists(60, dense=1.0)
    right = (np.arange(60) % 2 == 0).astype(float)
    better = right[20:].copy()
    better[1] = more
    dense, every = (
        Member("dense", 0.5, right[:, np.newaxis], corpus.base),
        Member("all", 0.9, better[:, np.newaxis], corpus.base[120:]),
    )
    by_name = {member.name: member for member in weigh_members([dense, every], corpus, Gain(), corpus.reference)}
    assert by_name["dense"].factor > 0
    assert (by_name["all"].factor > 0) == (more > 0)


def test_the_base_alone_where_nothing_else_is_near() -> None:
    corpus = lists(60)
    base = np.where(corpus.gain > 0, 5.0, 0.0) + corpus.base
    found = members_of(replace(corpus.keep_columns(np.arange(SPARSE) < DENSE), base=base))
    assert "base" in kept(found)
    noise = [member for member in found.members if member.name == "column"]
    assert noise[0].factor == 0.0


def test_the_score_of_all_columns_is_weighed_again_with_the_free_ones() -> None:
    """Where it helps on lists held out; the model is then the sum of both."""
    corpus, unit = lists(60, dense=2.0), Weights(np.eye(SPARSE)[5], 0.5)
    base = Weights(np.zeros(SPARSE), 1.0)
    member = Member("all", 0.1, rows_of_weights(corpus, base, Gain()), np.array(corpus.base))
    learner = with_base_column(Maxent(), corpus)
    better = reweigh(member, learner, corpus, Gain(), oracles, any_ties=True)
    assert better.score > 0.6
    assert abs(better.second.w[0]) > abs(better.second.w[1])
    perfect = replace(member, score=1.0, scores=corpus.gain)
    assert reweigh(perfect, learner, corpus, Gain(), oracles, any_ties=True) is perfect
    again, found = better.second, Mixture({"all": 1.0}, (replace(better, factor=2.0),))
    summed = scores(corpus, found.combine({"all": unit}, SPARSE))
    expected = free_values(corpus) @ again.w[:-1] + again.w[-1] * scores(corpus, unit)
    np.testing.assert_allclose(summed, 2.0 * (expected + again.base * corpus.base), rtol=1e-6, atol=1e-9)


def test_logistic_regression_of_single_candidates() -> None:
    """The weights are those of scikit-learn, of columns less their lists' means."""
    corpus = lists(60, dense=1.0).keep_columns(np.arange(SPARSE) < DENSE)
    corpus, learner = replace(corpus, width=DENSE), Maxent(l2=1e-4, base=0.0, base_rate=1.0)
    material = pairs_with_nothing(corpus)
    found = material.weights(learner, learner.init(DENSE + 1), DENSE)
    columns = np.column_stack([free_values(corpus), corpus.base]).reshape(60, 6, 3)
    columns = (columns - columns.mean(axis=1, keepdims=True)).reshape(360, 3)
    peer = LogisticRegression(C=1e6, tol=1e-8).fit(columns, corpus.gain).coef_[0]
    np.testing.assert_allclose([*found.w, found.base], peer, rtol=1e-3)


@pytest.mark.parametrize("unit", [1e-3, 1e3])
def test_the_unit_of_gains_does_not_matter(unit: float) -> None:
    corpus = lists(60, dense=1.0)
    graded = replace(corpus, gain=corpus.gain + 0.1 * np.abs(corpus.base))
    one, other = members_of(graded), members_of(replace(graded, gain=unit * graded.gain))
    assert "listnet" in {member.name for member in one.members}
    assert [m.name for m in one.members] == [m.name for m in other.members]
    np.testing.assert_allclose([m.factor for m in one.members], [m.factor for m in other.members], rtol=1e-6)


def test_the_sum_is_what_was_held_out() -> None:
    """Scores of the sum's members, each in units of its deviation, and a scale with which right candidates are most
    likely; a member without a factor adds nothing."""
    corpus = lists(60, dense=2.0)
    found = members_of(corpus)
    fitted = {name: Weights(np.full(corpus.width, k + 1.0), float(k)) for k, name in enumerate(found.final_penalties())}
    summed = found.combine(fitted, corpus.width)
    w, base = np.zeros(corpus.width), 0.0
    for member in found.members:
        weights = fitted.get(member.name) if member.weights is None else member.weights
        if member.factor and weights is not None:
            w[: weights.w.size] += member.factor * weights.w
            base += member.factor * weights.base
            assert member.second is None
    assert (summed.w.tolist(), summed.base) == (w.tolist(), base)
    held = sum(member.factor * member.scores for member in found.members)
    np.testing.assert_allclose(found.scores, held, rtol=1e-12)
    units = [member.factor * np.std(member.scores) for member in found.members if member.factor]
    assert max(units) / min(units) < 1.1

    def likelihood(scale: float) -> float:
        scaled = scale * found.scores.reshape(60, 6)
        right = corpus.gain.reshape(60, 6) == 1
        return float((scaled[right] - np.log(np.exp(scaled).sum(axis=1))).sum())

    assert likelihood(1.0) > max(likelihood(0.9), likelihood(1.1))


def test_the_column_is_chosen_on_the_other_lists() -> None:
    """A column that is best on the lists held out alone is not taken for the best of all."""
    corpus = lists(60, dense=2.0).keep_columns(np.arange(SPARSE) < DENSE)
    (found,) = best_column(replace(corpus, width=DENSE), Gain())
    assert found.weights.w.tolist() == [1.0, 0.0]
    (down,) = best_column(replace(corpus, width=DENSE, values=-corpus.values), Gain())
    assert down.weights.w.tolist() == [-1.0, 0.0]
    assert down.score == found.score


def test_the_best_column_is_that_of_all_tries() -> None:
    """Every column up and down, scored as a predictor, on all lists that are not held out."""
    corpus = lists(23, dense=0.3, seed=3).keep_columns(np.arange(SPARSE) < DENSE)
    corpus = replace(corpus, width=DENSE)
    (found,) = best_column(corpus, Gain())
    tries = [Weights(sign * unit, 0.0) for unit in np.eye(DENSE) for sign in (1.0, -1.0)]
    for first, last in sections(23):
        rest = corpus.take(np.concatenate([np.arange(first), np.arange(last, 23)]))
        best = max(tries, key=lambda weights: rows_of_weights(rest, weights, Gain()).sum())
        held = corpus.slice(first, last)
        np.testing.assert_array_equal(found.rows[first:last], rows_of_weights(held, best, Gain()))
        span = slice(corpus.lists[first], corpus.lists[last])
        np.testing.assert_array_equal(found.scores[span], scores(held, best))


def test_what_is_given_is_not_chosen() -> None:
    corpus = lists(60, dense=0.5, sparse=0.9)
    dense = members_of(corpus, Maxent(columns="dense", l2=3.0))
    assert (dense.final_penalties(), kept(dense), len(dense.trials)) == ({"dense": 3.0}, {"dense"}, 1)
    assert members_of(corpus, Maxent(columns="all", l2=3.0)).final_penalties() == {"all": 3.0}
    alone = corpus.keep_columns(np.arange(SPARSE) < DENSE)
    dense = members_of(replace(alone, width=DENSE), Maxent(columns="dense"))
    assert [*dense.final_penalties()] == ["all"]  # all there are
    offset = mixture(Maxent(base=1.0), corpus, Gain(), oracles, any_ties=True)
    assert len(offset.members) == 1


def test_a_single_list_has_nothing_to_hold_out() -> None:
    found = members_of(lists(1))
    assert (found.final_penalties(), found.members, found.beaten) == ({"dense": SINGLE_LIST_PENALTY}, (), True)
    assert members_of(lists(2, dense=1.0)).lists == 2


def test_sections_are_neighbours_and_together_all_lists() -> None:
    corpus = lists(13)
    pairs = list(iter_folds(corpus))
    assert [apart.list_count for _, apart in pairs] == [2, 3, 2, 3, 3]
    assert np.concatenate([apart.gain for _, apart in pairs]).tolist() == corpus.gain.tolist()
    assert all(rest.list_count + apart.list_count == 13 for rest, apart in pairs)


def test_large_lists_hold_out_the_last_sections(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dense columns are still tried on all of them, and compared where both were."""
    corpus = lists(60, dense=2.0)
    monkeypatch.setattr(folds, "FOLD_NONZEROS", 2 * corpus.nonzeros)
    apart = [apart for _, apart in iter_folds(corpus)]
    assert np.concatenate([each.gain for each in apart]).tolist() == corpus.slice(36, 60).gain.tolist()
    found = trials(Maxent(), corpus, Gain(), oracles, any_ties=True)
    assert {kind: len(tried[0].rows) for kind, tried in found.items()} == {"dense": 60, "all": 24}
    assert members_of(corpus).lists in (24, 60)


def test_few_lists_are_enough_for_dense_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = lists(60, dense=2.0)
    monkeypatch.setattr(folds, "MAX_LISTS_FOR_FOLDS", 30)
    many, few = (trials(Maxent(), of, Gain(), oracles, any_ties=True)["dense"] for of in (corpus, corpus.slice(30, 60)))
    assert [trial.score for trial in many] == [trial.score for trial in few]
    assert members_of(corpus).scores.size == 30 * 6


def test_the_text_says_what_was_compared() -> None:
    found = members_of(lists(60, dense=2.0))
    said = found.text(Gain())
    assert said.startswith("the sum of dense columns (l2 ")
    for part in ("on 60 training lists held out in turn", "; base ", "best column ", "; left out: "):
        assert part in said
