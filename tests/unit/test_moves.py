"""Moves add up to the active sums of every column, at every predictor of every block."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import corpus_of

from rerank.corpus import Corpus
from rerank.learn.log import Votes
from rerank.learn.moves import ROWS, MoveFinder, Moves

D = 5


def owner(columns: list[int]) -> Corpus:
    """A corpus of one list that owns ``columns``; the last of the D columns is nobody's."""
    return corpus_of([[(dict.fromkeys(columns, 1.0), 0.0, 0.0), ({}, 0.0, 0.0)]])


def votes_of(updates: list[dict[int, float]]) -> Votes:
    columns = [j for update in updates for j in update]
    delta = [x for update in updates for x in update.values()]
    first = np.cumsum([0, *(len(update) for update in updates)])
    survived = np.ones(len(updates) + 1, np.int64)
    return Votes(first, np.array(columns, np.int32), np.array(delta, float), np.zeros(len(updates)), survived)


def active_sums(updates: list[dict[int, float]], l1: float) -> tuple[np.ndarray, np.ndarray]:
    """float64 [M + 1, D]: s and sign(s) where |s| > k·λ₁, else 0, under every predictor."""
    s, u, v = np.zeros(D), [np.zeros(D)], [np.zeros(D)]
    for k, update in enumerate(updates, start=1):
        for j, x in update.items():
            s[j] += x
        active = np.abs(s) > k * l1
        u.append(np.where(active, s, 0.0))
        v.append(np.where(active, np.sign(s), 0.0))
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
    st.sampled_from([0.0, 0.125, 0.5, 3.0]),
    st.sampled_from([ROWS, 3 * ROWS, 8 * ROWS]),
    st.sampled_from([1.0, 0.25, 50.0]),
)
def test_moves_add_up_to_active_sums(updates: list[dict[int, float]], l1: float, T: int, unit: float) -> None:
    updates = [{j: unit * x for j, x in update.items()} for update in updates]
    finder = MoveFinder(votes_of(updates), l1, owner([0, 1, 2, 3]), T)
    expected_u, expected_v = active_sums(updates, l1)
    u, v = np.zeros(D), np.zeros(D)
    for start in range(0, len(updates) + 1, T):
        moves_u, moves_v, whole = finder.block(start)
        assert whole == bool(np.all(moves_u.size == np.rint(moves_u.size)))
        for j in np.flatnonzero(finder.name >= 0):
            c = finder.name[j]
            run_u = u[j] + np.cumsum(moved(moves_u, c, T))
            stop = min(len(updates) + 1, start + T)
            np.testing.assert_array_equal(run_u[: stop - start], expected_u[start:stop, j])
            u[j] = run_u[-1]
            if l1 > 0:
                run_v = v[j] + np.cumsum(moved(moves_v, c, T))
                np.testing.assert_array_equal(run_v[: stop - start], expected_v[start:stop, j])
                v[j] = run_v[-1]


def test_only_columns_that_are_updated_and_owned_are_named() -> None:
    updates = [{0: 1.0, 1: 1.0, 4: 1.0}, {1: -1.0, 2: 0.0}]
    finder = MoveFinder(votes_of(updates), 0.0, owner([0, 1, 2, 3]), ROWS)
    assert finder.name.tolist()[:5] == [1, 0, -1, -1, -1]  # the most often updated first


@pytest.mark.parametrize(("size", "whole"), [(32767.0, True), (32768.0, False), (0.5, False)])
def test_only_numbers_of_16_bits_count_as_whole(size: float, whole: bool) -> None:
    finder = MoveFinder(votes_of([{0: size}]), 0.0, owner([0]), ROWS)
    assert finder.block(0)[2] is whole
