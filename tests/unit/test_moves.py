"""Moves add up to the active sums of every column, at every predictor of every block."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import corpus_of

from rerank.corpus import Corpus
from rerank.learn.moves import ROWS, MoveFinder, Moves
from rerank.learn.votes import Votes

D = 5


def owner(columns: list[int]) -> Corpus:
    """A corpus of one list that owns ``columns``; the last of the D columns is nobody's."""
    return corpus_of([[(dict.fromkeys(columns, 1.0), 0.0, 0.0), ({}, 0.0, 0.0)]])


def votes_of(updates: list[dict[int, float]], threshold: np.ndarray | None = None, slope: float = 0.0) -> Votes:
    """The votes of updates that add to a; the slope of column j is slope·(j + 1) where it is not 0."""
    a, columns, value = np.zeros(D), [j for update in updates for j in update], []
    for update in updates:
        for j, x in update.items():
            a[j] += x
            value.append(a[j])
    first, ones = np.cumsum([0, *(len(update) for update in updates)]), np.ones(len(updates) + 1)
    return Votes(
        first=first,
        columns=np.array(columns, np.int32),
        value=np.array(value, float),
        slope=slope * (np.array(columns, float) + 1) if slope else np.zeros(0),
        threshold=np.zeros(0) if threshold is None else threshold,
        scale=ones,
        beta=0 * ones,
        survived=ones.astype(np.int64),
    )


def active_sums(updates: list[dict[int, float]], threshold: np.ndarray, slope: float) -> tuple[np.ndarray, np.ndarray]:
    """float64 [M + 1, D]: a and v where |a| > τ·|v|, else 0, under every predictor."""
    a, u, v = np.zeros(D), [np.zeros(D)], [np.zeros(D)]
    for k, update in enumerate(updates, start=1):
        for j, x in update.items():
            a[j] += x
        slopes = slope * (np.arange(D) + 1) if slope else np.sign(a)
        active = np.abs(a) > threshold[k] * np.abs(slopes)
        u.append(np.where(active, a, 0.0))
        v.append(np.where(active, slopes, 0.0))
    return np.array(u), np.array(v)


def moved(moves: Moves, c: int, T: int) -> np.ndarray:
    """float64 [T]: a column's moves in time."""
    rows = np.zeros(T)
    for e in range(moves.first[c], moves.first[c + 1]):
        rows[moves.at[e]] += moves.size[e]
    if moves.row[c] >= 0:
        np.testing.assert_array_equal(moves.dense[moves.row[c]], rows)
    return rows.reshape(ROWS, -1).T.ravel()


@settings(max_examples=80)
@given(
    st.lists(st.dictionaries(st.integers(0, D - 1), st.integers(-6, 6).map(float), max_size=D), max_size=40),
    st.lists(st.sampled_from([0.0, 0.0, 0.125, 0.5, 3.0]), min_size=41, max_size=41),
    st.sampled_from([0.0, 0.5, -0.25]),
    st.sampled_from([ROWS, 3 * ROWS, 8 * ROWS]),
    st.sampled_from([1.0, 0.25, 50.0]),
)
def test_moves_add_up_to_active_sums(
    updates: list[dict[int, float]], steps: list[float], slope: float, T: int, unit: float
) -> None:
    threshold = np.cumsum(steps)[: len(updates) + 1]
    grows = bool(threshold.any())
    updates = [{j: unit * x for j, x in update.items()} for update in updates]
    finder = MoveFinder(votes_of(updates, threshold if grows else None, slope), owner([0, 1, 2, 3]), T)
    expected_u, expected_v = active_sums(updates, threshold, slope)
    u, v = np.zeros(D), np.zeros(D)
    for start in range(0, len(updates) + 1, T):
        moves_u, moves_v, whole = finder.block(start)
        assert whole == all(np.all(x.size == np.rint(x.size)) for x in (moves_u, moves_v))
        for j in np.flatnonzero(finder.name >= 0):
            c = finder.name[j]
            run_u = u[j] + np.cumsum(moved(moves_u, c, T))
            stop = min(len(updates) + 1, start + T)
            np.testing.assert_array_equal(run_u[: stop - start], expected_u[start:stop, j])
            u[j] = run_u[-1]
            if grows:
                run_v = v[j] + np.cumsum(moved(moves_v, c, T))
                np.testing.assert_array_equal(run_v[: stop - start], expected_v[start:stop, j])
                v[j] = run_v[-1]


def test_only_columns_that_are_updated_and_owned_are_named() -> None:
    updates = [{0: 1.0, 1: 1.0, 4: 1.0}, {1: -1.0}]
    finder = MoveFinder(votes_of(updates), owner([0, 1, 2, 3]), ROWS)
    assert finder.name.tolist()[:5] == [1, 0, -1, -1, -1]  # the most often updated first


@pytest.mark.parametrize(("size", "whole"), [(32767.0, True), (32768.0, False), (0.5, False)])
def test_only_numbers_of_16_bits_count_as_whole(size: float, whole: bool) -> None:
    finder = MoveFinder(votes_of([{0: size}]), owner([0]), ROWS)
    assert finder.block(0)[2] is whole
