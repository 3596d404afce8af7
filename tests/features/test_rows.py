"""RowBuilder: from features with entries to rows of a corpus, against a dense table filled entry by entry."""

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import dense

from rerank.data.corpus import Corpus
from rerank.features.rows import RowBuilder, limit_values
from rerank.features.sink import ListFeatures

WIDTH = 9


class OneList(NamedTuple):
    """``entries[i]`` are (candidate, value) of feature i, whose number is ``ids[i]``."""

    size: int
    ids: list[int]
    entries: list[list[tuple[int, float]]]


def features_of(one: OneList) -> ListFeatures:
    F = len(one.ids)
    flat = [entry for entries in one.entries for entry in entries]
    nothing, zeros = np.zeros(F, np.uint64), np.zeros(F, np.int64)
    return ListFeatures(
        hashes=nothing,
        full=nothing,
        template=np.zeros(F, np.int32),
        symbols=nothing[:0],
        symbol_first=zeros,
        symbol_last=zeros,
        first=np.concatenate([[0], np.cumsum([len(entries) for entries in one.entries])]).astype(np.int64),
        candidate=np.array([candidate for candidate, _ in flat], np.int32),
        value=np.array([value for _, value in flat], np.float32),
        origin=np.zeros(F, np.float32),
    )


def corpus_of(lists: Sequence[OneList], column: np.ndarray | None, width: int = WIDTH) -> Corpus:
    rows = RowBuilder()
    for i, one in enumerate(lists):
        base = -np.arange(one.size, dtype=np.float64) - i
        stats = np.stack([base + 1, base * 2], axis=1)
        rows.add(features_of(one), np.array(one.ids, np.int32), base, base / 10, stats, np.array([i, 0.5, 7.0]))
    return rows.finish(column, width, {"split": "train"})


def naive(lists: Sequence[OneList], column: Sequence[int], width: int = WIDTH) -> np.ndarray:
    table = np.zeros((sum(one.size for one in lists), width), np.float32)
    before = 0
    for one in lists:
        for number, entries in zip(one.ids, one.entries, strict=True):
            for candidate, value in entries:
                if column[number] >= 0:
                    table[before + candidate, column[number]] = value
        before += one.size
    return table


VALUES = st.sampled_from([1.0, -1.0, 2.0, 127.0, -128.0, 128.0, 300.0, 0.5, -3.25, 1e10])


@st.composite
def one_list(draw: st.DrawFn) -> OneList:
    size = draw(st.integers(0, 5))
    ids = draw(st.lists(st.integers(0, WIDTH + 2), unique=True, max_size=8)) if size else []
    candidates = st.lists(st.integers(0, max(size - 1, 0)), unique=True, max_size=size).map(sorted)
    values = draw(st.sampled_from([st.just(1.0), VALUES]))
    return OneList(size, ids, [[(y, draw(values)) for y in draw(candidates)] for _ in ids])


@st.composite
def columns_of_ids(draw: st.DrawFn) -> np.ndarray:
    """WIDTH + 3 ids: WIDTH - 2 of them have columns, the others are pruned."""
    columns = [*draw(st.permutations(range(WIDTH)))[: WIDTH - 2], *[-1] * 5]
    return np.array(draw(st.permutations(columns)), np.int32)


@settings(max_examples=150, deadline=None)
@given(st.lists(one_list(), max_size=5), columns_of_ids())
def test_rows_equal_a_dense_table(lists: list[OneList], column: np.ndarray) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        corpus = corpus_of(lists, column)
    expected = naive(lists, column.tolist())
    np.testing.assert_array_equal(dense(corpus), expected)
    assert corpus.nonzeros == np.count_nonzero(expected)
    assert np.diff(corpus.lists).tolist() == [one.size for one in lists]
    assert corpus.width == WIDTH
    assert corpus.about == {"split": "train"}
    base = [-float(y) - i for i, one in enumerate(lists) for y in range(one.size)]
    assert corpus.base.tolist() == base
    assert corpus.gain.tolist() == [b / 10 for b in base]
    assert corpus.weight.tolist() == [1.0] * len(lists)
    if lists:
        assert corpus.stats.tolist() == [[b + 1, b * 2] for b in base]
        assert corpus.reference.tolist() == [[i, 0.5, 7.0] for i in range(len(lists))]


@pytest.mark.parametrize("size", [256, 257, 1 << 16, (1 << 16) + 1])
def test_long_lists(size: int) -> None:
    entries: list[Any] = [[(0, 1.0), (size - 1, 2.0)], [(254, -1.0), (size - 1, 3.0)]]
    lists = [OneList(1, [0], [[(0, 7.0)]]), OneList(size, [1, 0], entries)]
    column = [2, 1]
    corpus = corpus_of(lists, np.array(column, np.int32), 3)
    np.testing.assert_array_equal(dense(corpus), naive(lists, column, 3))


def test_values_too_large_for_their_type() -> None:
    values = np.array([np.inf, -np.inf, 3e38, -1.5, 0.0], np.float32)
    limit_values(values)
    most = np.finfo(np.float32).max
    assert values.tolist() == [most, -most, np.float32(3e38), -1.5, 0.0]
