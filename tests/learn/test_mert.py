"""MERT: envelopes and lines against brute force, steps, searches; the weight of the base score, found along a line."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from entries import ONLINE
from hypothesis import given
from hypothesis import strategies as st
from problems import METRICS, Ratio, problem
from strategies import bits, corpus_of, in_parts, random_corpus, run
from variants import LEARNERS

from rerank.base.errors import DataError, RecipeError
from rerank.base.registry import build
from rerank.data.corpus import Corpus
from rerank.learn import base_weight
from rerank.learn.base_weight import AUTO, START_WEIGHT, BaseSearch, best_weight, make_learner, start_weight
from rerank.learn.learner import Learner, Weights, learners
from rerank.learn.mert import ErrorSurface, Line, MertSettings, best_step, mert
from rerank.learn.rules.dual_averaging import VotedRDA
from rerank.learn.scoring import corpus_score
from rerank.learn.train import ListProblem, Training, train
from rerank.metrics.gain import Gain
from rerank.metrics.metric import Metric, oracles


def naive_score(lists, stats, reference, metric, scores, ties):
    """Of the candidates with the highest score, then the highest tie, then the lowest index."""
    ends = [(first, last) for first, last in pairwise(lists) if last > first]
    chosen = [min(range(*end), key=lambda y: (-scores[y], -ties[y], y)) for end in ends]
    return float(metric.scores(stats[chosen].sum(axis=0), reference.sum(axis=0)))


def naive_edges(lists, intercept, slope):
    """Where the highest score of some list changes its slope: every crossing of two candidates, tried by its sides."""
    found = set()
    for first, last in pairwise(lists):
        for y in range(first, last):
            for x in range(first, y):
                if slope[x] != slope[y]:
                    gamma = (intercept[x] - intercept[y]) / (slope[y] - slope[x])
                    scores = intercept[first:last] + gamma * slope[first:last]
                    if intercept[x] + gamma * slope[x] >= scores.max() - 1e-9:
                        found.add(gamma)
    return sorted(found)


SEEDS = st.integers(0, 10_000)


@given(seed=SEEDS, whole=st.booleans(), metric=st.sampled_from(sorted(METRICS)))
def test_a_line_is_brute_force_between_all_crossings(seed, whole, metric):
    metric = METRICS[metric]
    lists, features, stats, reference = problem(seed, metric=metric, whole=whole)
    random = np.random.default_rng(seed)
    intercept, slope = (features @ random.integers(-2, 3, 3).astype(float) for _ in range(2))
    ties = random.integers(0, 2, slope.size).astype(float)
    surface = ErrorSurface.of(lists, features, stats, reference, metric, ties=ties)
    line = surface.line(intercept, slope)
    assert (np.diff(line.edges) > 0).all()
    assert line.scores.shape == (line.edges.size + 1,)
    edges = np.array(naive_edges(lists, intercept, slope))
    assert all(np.abs(edges - edge).min() < 1e-9 for edge in line.edges)
    ends = np.concatenate([[-60.0], edges, [60.0]])
    for middle, width in zip((ends[1:] + ends[:-1]) / 2, np.diff(ends), strict=True):
        if width > 1e-6:
            exact = naive_score(lists, stats, reference, metric, intercept + middle * slope, ties)
            assert line.scores[np.searchsorted(line.edges, middle)] == exact


# Steps


@given(seed=SEEDS, metric=st.sampled_from(sorted(METRICS)))
def test_the_step_reaches_the_score_that_it_promises(seed, metric):
    metric = METRICS[metric]
    lists, features, stats, reference = problem(seed, metric=metric)
    surface = ErrorSurface.of(lists, features, stats, reference, metric)
    w, d = np.random.default_rng(seed).standard_normal((2, 3))
    line = surface.line(surface.linear(w), surface.linear(d))
    step = best_step(line, 1.0, surface.metric.sign)
    assert surface.metric.sign * surface.score(w + step[0] * d) == step[1] == (surface.metric.sign * line.scores).max()
    grid = [surface.metric.sign * surface.score(w + gamma * d) for gamma in np.linspace(-20, 20, 401)]
    assert step[1] >= max(grid)


EDGES = np.array([-2.0, 1.0, 2.0, 4.0])


def test_of_equal_intervals_the_widest_then_the_nearest():
    def step(*scores, sign=1.0):
        return best_step(Line(EDGES, np.array(scores, float)), 0.5, sign)

    assert step(0, 1, 9, 2, 1) == (1.5, 9.0)
    assert step(0, 1, 9, 9, 1) == (3.0, 9.0)  # 2 wide
    assert step(9, 1, 9, 1, 1) == (1.5, 9.0)  # both 1 wide: the nearer to 0
    assert step(9, 1, 1, 1, 1) == (-2.5, 9.0)  # the end interval: reach beyond its edge
    assert step(1, 1, 1, 1, 9) == (4.5, 9.0)
    assert step(9, 1, 9, 2, 0.5, sign=-1.0) == (4.5, -0.5)
    assert best_step(Line(np.empty(0), np.array([3.0])), 1.0, -1.0) == (0.0, -3.0)


def test_intervals_too_narrow_to_hit_are_no_place_to_go():
    line = Line(np.array([1.0, 1.0 + 1e-12]), np.array([0.0, 9, 1]))
    assert best_step(line, 1.0)[1] == 1.0


# Searches

SMALL = {"random": 4, "restarts": 2, "patience": 1, "tolerance": 0.0}


def small(seed: int = 0, metric: Metric | None = None):
    """A problem with room to improve, and a start."""
    return problem(seed, lists=30, longest=8, width=4, metric=metric), np.array([1.0, -0.5, 0.25, -1.0])


@pytest.mark.parametrize("metric", sorted(METRICS))
@pytest.mark.parametrize("based", [False, True])
def test_a_search_goes_up_and_says_what_is_true(metric, based):
    metric = METRICS[metric]
    arrays, start = small(metric=metric)
    base = np.random.default_rng(5).standard_normal(len(arrays[1])) if based else None
    result = mert(*arrays, metric, start, MertSettings(**SMALL), base)
    surface = ErrorSurface.of(*arrays, metric, base)
    sign = surface.metric.sign
    assert sign * result.score > sign * result.start_score
    assert result.score == surface.score(result.weights)
    assert result.start_score == surface.score(start)
    assert sign * result.score == max(sign * run.score for run in result.runs)
    for each in result.runs:
        assert each.score == surface.score(each.weights)
        if not based:
            assert np.abs(each.weights).sum() == pytest.approx(np.abs(start).sum())


def test_the_best_weights_of_a_plane_are_found():
    """Two features: all directions of weights can be tried."""
    arrays = problem(8, lists=25, longest=6, width=2)
    surface = ErrorSurface.of(*arrays, Ratio())
    angles = np.linspace(-np.pi, np.pi, 20_001)
    best = max(surface.score(np.array([np.cos(angle), np.sin(angle)])) for angle in angles)
    found = mert(*arrays, Ratio(), [1.0, 1.0], MertSettings(restarts=10, noise=4, tolerance=0.0))
    assert found.score >= best > surface.score(np.ones(2))


def test_features_that_decide_nothing_keep_their_weight():
    lists, features, stats, reference = small()[0]
    same = np.repeat(np.arange(lists.size - 1) * 0.1, np.diff(lists))  # one value in a list
    result = mert(lists, np.column_stack([features, same]), stats, reference, Ratio(), [1, 1, 1, 1, 5], MertSettings())
    ratios = result.weights / np.abs(result.weights).sum()
    assert np.isfinite(result.weights).all()
    assert ratios[4] > 0
    base = np.linspace(0, 1, len(features))
    fixed = mert(lists, np.column_stack([features, same]), stats, reference, Ratio(), [1, 1, 1, 1, 5], None, base)
    assert fixed.weights[4] == 5.0


def test_scaling_a_feature_scales_its_weight():
    """By a power of two: all numbers have the same bits but for their exponents."""
    (lists, features, stats, reference), start = small()
    scale, base = np.array([2.0, 0.25, 1, 8]), np.linspace(0, 1, len(features))
    plain = mert(lists, features, stats, reference, Ratio(), start, MertSettings(**SMALL), base)
    other = mert(lists, features * scale, stats, reference, Ratio(), start / scale, MertSettings(**SMALL), base)
    assert (other.weights * scale).tolist() == plain.weights.tolist()
    assert other.score == plain.score


def test_no_steps_are_taken_beyond_the_limit():
    arrays, start = small()
    assert mert(*arrays, Ratio(), start, MertSettings()).runs[0].steps > 1
    assert mert(*arrays, Ratio(), start, MertSettings(iterations=1)).runs[0].steps == 1


def test_lists_without_candidates_and_no_lists():
    for lists, L in (([0], 0), ([0, 0, 0], 2)):
        result = mert(lists, np.empty((0, 2)), np.empty((0, 2)), np.ones((L, 1)), Ratio(), [1.0, 2.0])
        assert (result.weights.tolist(), result.score) == ([1.0, 2.0], 0.0)
    assert mert([0, 2], np.ones((2, 2)), np.eye(2), np.ones((1, 1)), Ratio(), [0.0, 0.0]).score == 1.0


# What is refused


def test_arrays_that_do_not_belong_together():
    (lists, features, stats, reference), start = small()
    for wrong in (
        (lists, features[1:], stats, reference),
        (lists, features, stats[1:], reference),
        (lists, features, stats, reference[1:]),
        (lists, features[:, 0], stats, reference),
        (lists[::-1], features, stats, reference),
        (lists[:0], features, stats, reference),
    ):
        with pytest.raises(DataError, match=r"expected \[L \+ 1\], \[N, F\], \[N, K\], \[L, R\], \[N\] and \[N\]"):
            mert(*wrong, Ratio(), start)
    with pytest.raises(DataError, match="have the shapes"):
        mert(lists, features, stats, reference, Ratio(), start, None, np.ones(2))


def test_numbers_that_are_not_finite():
    features, stats = np.ones((5, 1)), np.ones((5, 2))
    features[3] = np.nan
    with pytest.raises(DataError, match="candidate 2 of list 2 has a feature that is not a finite number"):
        mert([0, 2, 5], features, stats, np.ones((2, 1)), Ratio(), [1.0])


@pytest.mark.parametrize("start", [[1.0], [1.0, np.inf, 0, 0], [[1.0, 2, 3, 4]]])
def test_a_start_that_does_not_fit(start):
    with pytest.raises(RecipeError, match=r"start: found .* expected 4 finite numbers"):
        mert(*small()[0], Ratio(), start)


GAMMAS = np.concatenate([np.geomspace(1e-4, 1e4, 161), np.arange(0.05, 5, 0.1)])


def corpus_with(seed: int, metric: Metric, lists: int = 8) -> tuple[Corpus, Weights]:
    """Random lists with the statistics of a metric, and a predictor; some lists are empty, some candidates alike."""
    offsets, features, stats, reference = problem(seed, lists=lists, metric=metric)
    random, (N, width) = np.random.default_rng(seed), features.shape
    corpus = Corpus(
        lists=offsets, rows=width * np.arange(N + 1), columns=np.tile(np.arange(width), N), values=features.ravel(),
        base=random.standard_normal(N), gain=np.zeros(N), stats=stats, reference=reference, weight=np.ones(lists),
        width=width,
    )  # fmt: skip
    return corpus, Weights(random.standard_normal(width), 0.7)


def with_gains(seed: int) -> Corpus:
    """Random lists whose metric is their gain."""
    corpus = random_corpus(seed)
    return replace(corpus, stats=corpus.gain[:, None], reference=np.ones((corpus.list_count, 1)))


CORPUS, DEV = with_gains(6), with_gains(7)
SEARCH = BaseSearch(DEV, Gain())


@pytest.fixture(autouse=True, scope="module")
def many() -> Iterator[None]:
    """Lists in tests are few, and the exact search is for many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(base_weight, "MIN_LISTS_FOR_SEARCH", 0)
        yield


def test_with_few_lists_the_weight_is_the_likely_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two columns that tell the right one with the same noise weigh the same, in any unit; noise alone weighs little,
    and a base score without use nothing."""
    rng = np.random.default_rng(3)
    lists = []
    for _ in range(400):
        right = rng.integers(4)
        told = [(rng.normal() + (y == right), rng.normal() + (y == right), float(y == right)) for y in range(4)]
        lists.append([({0: score}, base, gain) for score, base, gain in told])
    dev = corpus_of(lists, width=1)
    dev = replace(dev, stats=dev.gain[:, np.newaxis], reference=np.ones((400, 1)))
    monkeypatch.setattr(base_weight, "MIN_LISTS_FOR_SEARCH", 401)
    for unit in (1.0, 2.0**-30, 2.0**40):
        search = BaseSearch(replace(dev, base=dev.base * unit), Gain())
        found, score = search(Weights(np.ones(1), 0.0))
        assert found.base * unit == pytest.approx(1.0, abs=0.15)
        assert score == corpus_score(search.dev, found, Gain())
        assert search(Weights(-np.ones(1), 0.0))[0].base * unit > 100
        for size in (2.0**-200, 2.0**200):  # neither of which float32 holds
            assert search(Weights(np.full(1, size), 0.0)) == (Weights(np.full(1, size), found.base * size), score)
    noise = BaseSearch(replace(dev, base=rng.normal(size=dev.base.size)), Gain())
    assert noise(Weights(np.ones(1), 0.0))[0].base < 0.1
    alike = BaseSearch(replace(dev, base=np.full(dev.base.size, 7.3)), Gain())
    assert alike(Weights(np.ones(1), 0.25))[0].base == 0.25


def fit(learner: Learner, epochs: int = 4, search: BaseSearch | None = SEARCH) -> Training:
    observers = [] if search is None else [search.observe]
    training = train(learner, ListProblem(CORPUS, oracles(CORPUS), 5), epochs=epochs, observers=observers)
    if search is not None:
        search.finish(training, "average")
    return training


@given(seed=st.integers(0, 10_000), name=st.sampled_from(sorted(METRICS)))
def test_no_weight_of_a_dense_grid_is_better(seed: int, name: str) -> None:
    metric = METRICS[name]
    corpus, weights = corpus_with(seed, metric)
    search = BaseSearch(corpus, metric)
    found, score = search(weights)
    assert found.base >= 0
    assert found.w is weights.w
    assert score == metric.sign * corpus_score(corpus, found, metric)
    grid = [metric.sign * corpus_score(corpus, Weights(weights.w, gamma), metric) for gamma in GAMMAS]
    assert score >= max(grid) - 1e-12
    assert score >= search.base_score - 1e-12
    # A grid of the middles of all intervals finds nothing else: it is the best that there is.
    line = search.line(corpus_scores(corpus, weights))
    ends = np.concatenate([[0.0], line.edges[line.edges > 0], [1e6]])
    middles = [
        metric.sign * corpus_score(corpus, Weights(weights.w, gamma), metric) for gamma in (ends[1:] + ends[:-1]) / 2
    ]
    assert score == pytest.approx(max(middles), abs=1e-12)


def corpus_scores(corpus: Corpus, weights: Weights) -> np.ndarray:
    """w·φ(y) of all candidates."""
    return np.add.reduceat(weights.w[corpus.columns] * corpus.values.astype(float), corpus.rows[:-1])


@pytest.mark.parametrize("name", sorted(METRICS))
def test_parts_are_one_corpus(name: str, tmp_path: Path) -> None:
    corpus, weights = corpus_with(3, METRICS[name], lists=30)
    mapped = in_parts(tmp_path / "corpus", corpus, (0, 9, 9, 20, 30))
    one, other = (BaseSearch(lists, METRICS[name])(weights) for lists in (corpus, mapped))
    assert (one[0].base, one[1]) == (other[0].base, other[1])
    assert start_weight(corpus) == start_weight(mapped)


def test_the_middle_of_the_best_interval() -> None:
    line = Line(np.array([-3.0, -1.0, 1.0, 2.0, 4.0]), np.array([9.0, 9, 5, 6, 6, 4]))
    assert best_weight(line) == 3.0  # of two equal ones above 0 the wider
    assert best_weight(line, -1.0) == 8.0  # the last counts as twice as long as what comes before it
    assert best_weight(Line(np.array([1.0, 1 + 1e-9, 2.0]), np.array([1.0, 9, 3, 2]))) == pytest.approx(1.5)  # a spike
    assert best_weight(Line(np.array([-1.0]), np.array([1.0, 2.0]))) is None
    assert best_weight(Line(np.array([1e302]), np.array([1.0, 2.0]))) is None


def test_the_weight_in_training_follows_the_unit_of_base_scores() -> None:
    deviation = np.sqrt(np.mean([(b - b.mean()) ** 2 for b in np.split(CORPUS.base, CORPUS.lists[1:-1])]))
    assert start_weight(CORPUS) == pytest.approx(START_WEIGHT / deviation)
    assert start_weight(replace(CORPUS, base=1000 * CORPUS.base + 5)) == pytest.approx(START_WEIGHT / deviation / 1000)
    assert start_weight(replace(CORPUS, base=np.full(CORPUS.base.size, 7.3))) == START_WEIGHT


def test_both_predictors_have_their_own_weight_at_every_best_epoch() -> None:
    found, plain = fit(VotedRDA(base=0.02)), fit(VotedRDA(base=0.02), search=None)
    assert bits(fit(VotedRDA(base=0.02), epochs=found.epoch, search=None).state) == bits(
        found.state
    )  # training is the same
    assert [line["mistakes"] for line in found.history] == [line["mistakes"] for line in plain.history]
    best = max(found.history, key=lambda line: line["dev"])
    assert best["epoch"] == found.epoch
    assert best["base_weight"] == found.weights["average"].base
    assert best["dev"] == corpus_score(DEV, found.weights["average"], Gain())
    for name, weights in found.weights.items():
        own = getattr(found.learner, name)(found.state)
        assert weights.base == SEARCH(own)[0].base
        np.testing.assert_array_equal(weights.w, own.w)


@pytest.mark.parametrize("name", ONLINE)
def test_every_learner_trains_and_votes(name: str) -> None:
    settings = {"name": name, **LEARNERS[name].variants[0], "base": AUTO}
    learner = make_learner(settings, base=start_weight(CORPUS))
    found = fit(learner, epochs=2)
    assert max(line["dev"] for line in found.history) >= SEARCH.base_score - 1e-12
    ran = run(learner, CORPUS, 1)
    one, other = (made.votes(ran.log, CORPUS) for made in (learner, make_learner(settings, base=learner.base + 2)))  # type: ignore[attr-defined]
    np.testing.assert_allclose(other.beta, one.beta + 2)
    np.testing.assert_array_equal(other.value, one.value)


def test_settings_of_a_learner() -> None:
    assert make_learner({"name": "vrda", "base": AUTO}, base=0.3) == VotedRDA(base=0.3)
    assert make_learner({"name": "vrda", "base": 2}, base=0.3) == build(
        learners, {"name": "vrda", "base": 2}, "learner"
    )
    for key, value in (("learner", "automatic"), ("training.select.learner", "1")):
        with pytest.raises(RecipeError, match="a finite number from 0, or auto") as error:
            make_learner({"name": "vrda", "base": value}, key)
        assert error.value.key == f"{key}.base"
