"""Moves add up to the active sums of every column, at every predictor of every block."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from strategies import corpus_of

from rerank.data.corpus import Corpus
from rerank.learn.voting.moves import ROWS, TRACKED, MoveFinder, Moves
from rerank.learn.voting.votes import Votes

D = 5


def owner(columns: list[int], real: list[int]) -> Corpus:
    """A corpus of one list that owns ``columns``, some with ``real`` values; the last of the D columns is nobody's."""
    row = {j: 0.5 if j in real else 1.0 for j in columns}
    return corpus_of([[(row, 0.0, 0.0), ({}, 0.0, 0.0)]])


def is_whole(moves: Moves, c: int) -> bool:
    """Are all levels of a column whole numbers, so that their differences are?"""
    return all(np.all(x == np.rint(x)) for x in (moves.start[c], moves.level[moves.first[c] : moves.end[c]]))


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


def levels(moves: Moves, c: int, T: int) -> np.ndarray:
    """float64 [T]: a column's levels in time."""
    in_time = np.arange(T).reshape(-1, ROWS).T.ravel()  # the predictor at a place
    found = np.full(T, moves.start[c])
    for e in range(moves.first[c], moves.end[c]):
        found[in_time[moves.at[e]] :] = moves.level[e]
    assert moves.height[c] == max(abs(moves.start[c]), np.abs(found).max())
    if moves.track[c] >= 0:
        np.testing.assert_array_equal(moves.levels[moves.track[c]], found[in_time])
    if moves.size.size and moves.peak[c] < np.inf:
        sizes = np.zeros(T)
        sizes[moves.at[moves.first[c] : moves.end[c]]] = moves.size[moves.first[c] : moves.end[c]]
        np.testing.assert_array_equal(moves.start[c] + np.cumsum(sizes.reshape(ROWS, -1).T.ravel()), found)
        assert moves.peak[c] == np.abs(sizes).max()
        if moves.row[c] >= 0:
            np.testing.assert_array_equal(moves.dense[moves.row[c]], sizes)
    return found


@settings(max_examples=80)
@given(
    st.lists(st.dictionaries(st.integers(0, D - 1), st.integers(-6, 6).map(float), max_size=D), max_size=40),
    st.lists(st.sampled_from([0.0, 0.0, 0.125, 0.5, 3.0]), min_size=41, max_size=41),
    st.sampled_from([0.0, 0.5, -0.25]),
    st.sampled_from([ROWS, 3 * ROWS, 8 * ROWS]),
    st.sampled_from([1.0, 0.25, 50.0]),
    st.sampled_from([[], [1], [0, 1, 2, 3]]),
)
@example([{}] * 6 + [{0: 1.0}, {}], [0.0] * 41, 0.0, ROWS, 0.25, [])  # a block in which a real level does not move
def test_moves_add_up_to_active_sums(
    updates: list[dict[int, float]], steps: list[float], slope: float, T: int, unit: float, real: list[int]
) -> None:
    threshold = np.cumsum(steps)[: len(updates) + 1]
    grows = bool(threshold.any())
    updates = [{j: unit * x for j, x in update.items()} for update in updates]
    finder = MoveFinder(votes_of(updates, threshold if grows else None, slope), owner([0, 1, 2, 3], real), T)
    expected_u, expected_v = active_sums(updates, threshold, slope)
    for start in range(0, len(updates) + 1, T):
        moves_u, moves_v, whole = finder.block(start)
        named = np.flatnonzero(finder.name >= 0)
        others = [finder.name[j] for j in named if j not in real]
        assert whole == all(is_whole(moves, c) for moves in (moves_u, moves_v) for c in others)
        for j in named:
            c = finder.name[j]
            stop = min(len(updates) + 1, start + T)
            np.testing.assert_array_equal(levels(moves_u, c, T)[: stop - start], expected_u[start:stop, j])
            if grows:
                np.testing.assert_array_equal(levels(moves_v, c, T)[: stop - start], expected_v[start:stop, j])
            count = moves_u.end[c] - moves_u.first[c]
            enough = count > 0 or moves_u.start[c] != 0 if whole else count >= max(1, T // TRACKED)
            assert (moves_u.track[c] >= 0) == (enough and j in real)


def test_only_columns_that_are_updated_and_owned_are_named() -> None:
    updates = [{0: 1.0, 1: 1.0, 4: 1.0}, {1: -1.0}]
    finder = MoveFinder(votes_of(updates), owner([0, 1, 2, 3], []), ROWS)
    assert finder.name.tolist()[:5] == [1, 0, -1, -1, -1]  # the most often updated first


@pytest.mark.parametrize(("size", "whole"), [(32767.0, True), (32768.0, False), (0.5, False)])
def test_only_numbers_of_16_bits_count_as_whole(size: float, whole: bool) -> None:
    finder = MoveFinder(votes_of([{0: size}]), owner([0], []), ROWS)
    assert finder.block(0)[2] is whole
