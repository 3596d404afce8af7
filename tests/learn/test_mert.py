"""MERT: envelopes and lines against brute force, steps against what they promise, searches against their contract."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import METRICS, Ratio, problem

from rerank.base.errors import DataError, RecipeError
from rerank.learn.mert import ErrorSurface, Line, MertSettings, best_step, mert
from rerank.metrics.metric import Metric


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
    for run in result.runs:
        assert run.score == surface.score(run.weights)
        if not based:
            assert np.abs(run.weights).sum() == pytest.approx(np.abs(start).sum())


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
