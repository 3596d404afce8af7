"""Free columns: which they are, their scale, and what corpora and tables make of them."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import dense
from reference_texts import Lines, One, lists_of_texts, text_list
from rendered_features import TableBuilder

from rerank.base.errors import ModelError
from rerank.data.corpus import Corpus
from rerank.data.symbols import SymbolTable
from rerank.features.dense import standard_scale
from rerank.features.extract import TextExtractor
from rerank.features.rows import RowBuilder
from rerank.features.table import FeatureTable, load_table
from rerank.features.template import make_template
from rerank.features.text.view import make_view

SPECS = ["TargetNGram", "Dense", "Length(binned=False)", "ConsensusNGram(n=1)"]


def extracted(
    lists: list[Lines], min_lists: int = 1, *, centred: bool = True, scale: np.ndarray | None = None
) -> tuple[Corpus, FeatureTable, TextExtractor]:
    """The training corpus and its table, before anything is scaled, or with ``scale``."""
    extractor = TextExtractor([make_template(spec) for spec in SPECS], SymbolTable(), centred=centred)
    builder = TableBuilder(extractor.names, min_lists, extractor.free)
    rows = RowBuilder()
    for lines in lists:
        view = make_view(text_list(lines), " ".join(lines.source).encode(), extractor.symbols)
        features = extractor.features(view)
        nothing = np.zeros(view.base.size)
        rows.add(features, builder.add(features), view.base, nothing, nothing[:, None], np.zeros(1))
    table, column = builder.finish(extractor.symbols)
    table = table if scale is None else replace(table, scale=scale)
    return rows.finish(column, table.width, {}, table.scale), table, extractor


def naive_scale(corpus: Corpus) -> np.ndarray:
    values = dense(corpus)[:, : corpus.free]
    for i in range(corpus.list_count):
        part = slice(corpus.lists[i], corpus.lists[i + 1])
        if part.stop > part.start:
            values[part] -= values[part].mean(axis=0)
    deviation = np.sqrt((values**2).sum(axis=0) / max(corpus.candidate_count, 1))
    return np.array([1 / d if d > 0 else 1.0 for d in deviation])


LISTS = st.lists(lists_of_texts(), max_size=4)


@settings(max_examples=60, deadline=None)
@given(LISTS, st.integers(1, 3))
def test_free_columns_come_first_and_are_not_pruned(lists: list[Lines], min_lists: int) -> None:
    corpus, table, _ = extracted(lists, min_lists)
    names = [table.name(j) for j in range(table.width)]
    is_free = [name.startswith(("Dense|", "ConsensusNGram(n=1)|")) for name in names]
    assert is_free == sorted(is_free, reverse=True)
    assert table.free == corpus.free == sum(is_free)
    for hashes in (table.hashes[: table.free], table.hashes[table.free :]):
        assert (hashes[1:] > hashes[:-1]).all()
    _, everything, _ = extracted(lists)
    assert names[: table.free] == [everything.name(j) for j in range(everything.free)]
    assert set(names) <= {everything.name(j) for j in range(everything.width)}


@settings(max_examples=60, deadline=None)
@given(LISTS, st.booleans())
def test_the_scale_is_that_of_numpy(lists: list[Lines], centred: bool) -> None:
    corpus, _, _ = extracted(lists, centred=centred)
    np.testing.assert_allclose(standard_scale(corpus), naive_scale(corpus), rtol=2e-5)
    changed = extracted(lists, centred=centred, scale=standard_scale(corpus))[0]
    spread = naive_scale(changed)
    np.testing.assert_allclose(spread, np.ones(corpus.free), rtol=2e-5)
    np.testing.assert_array_equal(dense(changed)[:, corpus.free :], dense(corpus)[:, corpus.free :])
    assert (changed.free, changed.width) == (corpus.free, corpus.width)


@settings(max_examples=40, deadline=None)
@given(LISTS)
def test_other_splits_get_the_values_of_training(lists: list[Lines]) -> None:
    """The training lists, extracted again as another split with the scaled table, are the scaled training corpus."""
    corpus, table, extractor = extracted(lists, scale=standard_scale(extracted(lists)[0]))
    rows = RowBuilder()
    for lines in lists:
        view = make_view(text_list(lines), " ".join(lines.source).encode(), extractor.symbols)
        features = extractor.features(view)
        nothing = np.zeros(view.base.size)
        rows.add(features, table.columns(features), view.base, nothing, nothing[:, None], np.zeros(1))
    again = rows.finish(None, table.width, {}, table.scale)
    assert again.free == corpus.free
    for name in ("rows", "columns", "values"):
        np.testing.assert_array_equal(getattr(again, name), getattr(corpus, name))


EXAMPLE = [
    Lines(["x"], [One(["a"], scores=(1.0, 7.0)), One(["b"], scores=(4.0, 7.0))], ("lm", "same")),
    Lines(["x"], [One(["a"], scores=(2.5, 3.0)), One(["a"], scores=(2.0, 3.0))], ("lm", "same")),
]


def test_one_list_is_enough_for_a_free_column_but_a_constant_one_goes() -> None:
    corpus, table, _ = extracted(EXAMPLE, min_lists=2)
    assert [table.name(j) for j in range(table.width)] == ["Dense|lm"]
    assert (table.about["kept"], table.about["min_lists"]) == (1, 2)
    deviation = np.sqrt((2 * 1.5**2 + 2 * 0.25**2) / 4)
    assert standard_scale(corpus).tolist() == pytest.approx([1 / deviation])


def change(directory: Path, **changes: Any) -> None:
    header = json.loads((directory / "table.json").read_text())
    header |= changes
    (directory / "table.json").write_text(json.dumps({k: v for k, v in header.items() if v != "gone"}))


def bare_table(hashes: list[int], *scale: np.ndarray) -> FeatureTable:
    D, nothing = len(hashes), np.empty(0, np.uint64)
    offsets = np.zeros(D, np.int32), np.zeros(D + 1, np.int64)
    return FeatureTable(np.array(hashes, np.uint64), *offsets, nothing, ("T",), {}, {}, *scale)


def test_tables_without_a_scale_have_no_free_columns(tmp_path: Path) -> None:
    bare_table([3, 5]).save(tmp_path)
    change(tmp_path, scale="gone")
    loaded = load_table(tmp_path)
    assert loaded.free == 0
    assert loaded.scale.size == 0


@pytest.mark.parametrize("scale", [[0.0], [-1.0], [float("nan")], [float("inf")], [1.0] * 9, [[1.0]], ["x"], {"a": 1}])
def test_damaged_scales(scale: Any, tmp_path: Path) -> None:
    _, table, _ = extracted(EXAMPLE)
    table.save(tmp_path)
    change(tmp_path, scale=scale)
    with pytest.raises(ModelError, match="not a readable feature table"):
        load_table(tmp_path)


@pytest.mark.parametrize("hashes", [[5, 3], [3, 3, 4], [3, 1, 3]])
def test_columns_out_of_order(hashes: list[int]) -> None:
    with pytest.raises(ValueError, match="its arrays are out of order"):
        bare_table(hashes, np.ones(1 if len(hashes) == 3 else 0))
