"""The feature table: counted, kept, numbered, named, stored; and rows of a corpus against a dense table."""

import dataclasses
import json
import math
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import dense
from rendered_features import TableBuilder

from rerank.base.errors import ModelError
from rerank.data.corpus import Corpus
from rerank.data.symbols import SymbolTable, text_hash
from rerank.features.counting import CollisionCount
from rerank.features.rows import RowBuilder
from rerank.features.sink import ListFeatures
from rerank.features.table import ABSENT, FeatureTable, HashedTable, load_table

TEMPLATES = ("T", "U(k=2)")


def list_features(F: int, **fields: np.ndarray) -> ListFeatures:
    """F features of a list; what is not given is 0."""
    hashes, zeros = np.zeros(F, np.uint64), np.zeros(F, np.int64)
    numbers = {"template": np.zeros(F, np.int32), "origin": np.zeros(F, np.float32), "first": np.zeros(F + 1, np.int64)}
    entries = {"candidate": np.empty(0, np.int32), "value": np.empty(0, np.float32)}
    names = {"full": hashes, "symbols": hashes[:0], "symbol_first": zeros, "symbol_last": zeros}
    return ListFeatures(**({"hashes": hashes} | names | numbers | entries | fields))


def varying(names: Sequence[str], symbols: SymbolTable) -> ListFeatures:
    """A list in which the features called ``names`` vary (their entries do not matter here)."""
    pairs = [name.split("|") for name in names]
    texts = [text.split(" ") if text else [] for _, text in pairs]
    first = np.concatenate([[0], np.cumsum([len(parts) for parts in texts])]).astype(np.int64)
    for text in (text for parts in texts for text in parts):
        symbols.intern(text)
    hashes = np.array([text_hash(name) for name in names], np.uint64)
    return list_features(
        len(names),
        hashes=hashes,
        full=hashes,
        template=np.array([TEMPLATES.index(template) for template, _ in pairs], np.int32),
        symbols=np.array([text_hash(text) for parts in texts for text in parts], np.uint64),
        symbol_first=first[:-1],
        symbol_last=first[1:],
    )


def built(lists: Sequence[Sequence[str]], min_lists: int) -> tuple[FeatureTable, np.ndarray, list[np.ndarray]]:
    """FeatureTable, column of every provisional id, and the provisional ids list by list."""
    symbols, builder = SymbolTable(), TableBuilder(TEMPLATES, min_lists)
    ids = [builder.add(varying(names, symbols)) for names in lists]
    return *builder.finish(symbols), ids


def names_of(table: FeatureTable) -> list[str]:
    return [table.name(column) for column in range(table.width)]


LISTS = [["T|a", "T|b c", "U(k=2)|a"], ["T|b c", "T|a"], ["T|"], ["U(k=2)|d", "T|a"]]


NAMES = st.sampled_from(
    [f"{template}|{text}" for template in TEMPLATES for text in ("", *"abcdefghijkl", "a b", "b a")]
)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.lists(NAMES, unique=True, max_size=12), max_size=8), st.integers(1, 4), st.randoms())
def test_the_order_of_lists_and_features_changes_nothing(lists: list[list[str]], min_lists: int, random: Any) -> None:
    table, column, ids = built(lists, min_lists)
    counts = {name: sum(name in names for names in lists) for names in lists for name in names}
    kept = sorted((name for name, count in counts.items() if count >= min_lists), key=text_hash)
    assert names_of(table) == kept
    seen = {T: [sum(name.startswith(f"{T}|") for name in every) for every in (counts, kept)] for T in TEMPLATES}
    about = {"seen": len(counts), "kept": len(kept), "pruned": len(counts) - len(kept), "min_lists": min_lists}
    assert table.about == about | {"templates": {T: {"seen": n, "kept": k} for T, (n, k) in seen.items()}}
    for names, numbers in zip(lists, ids, strict=True):
        assert [kept[c] if c >= 0 else None for c in column[numbers]] == [n if n in kept else None for n in names]
    shuffled = [random.sample(names, len(names)) for names in random.sample(lists, len(lists))]
    again, _, _ = built(shuffled, min_lists)
    for name in ("hashes", "template", "first", "symbols"):
        np.testing.assert_array_equal(getattr(again, name), getattr(table, name))
    assert (again.texts, again.templates, again.about) == (table.texts, table.templates, table.about)


def test_counting_grows_with_the_corpus() -> None:
    rng = np.random.default_rng(5)
    hashes = np.unique(rng.integers(1, 1 << 63, 90_000).astype(np.uint64))
    total = hashes.size
    parts = [hashes[:60_000], hashes[30_000:], hashes[:10]]  # more than the first index and counts have room for
    builder = TableBuilder(["T"], 2)
    ids = []
    for part in parts:
        ids.append(builder.add(list_features(part.size, hashes=part, full=part)))
    table, column = builder.finish(SymbolTable())
    assert [part.tolist() for part in ids] == [list(range(60_000)), list(range(30_000, total)), list(range(10))]
    twice = np.concatenate([hashes[:10], hashes[30_000:60_000]])
    np.testing.assert_array_equal(table.hashes, twice)
    np.testing.assert_array_equal(np.flatnonzero(column >= 0), np.r_[:10, 30_000:60_000])
    assert column[column >= 0].tolist() == list(range(twice.size))
    assert table.about["seen"] == total


def test_columns_of_another_list() -> None:
    table, _, _ = built(LISTS, 2)
    symbols = SymbolTable()
    columns = table.columns(varying(["T|new", "T|b c", "U(k=2)|d", "T|a"], symbols))
    assert columns.dtype == np.int32
    assert columns.tolist() == [ABSENT, names_of(table).index("T|b c"), ABSENT, names_of(table).index("T|a")]
    assert table.columns(varying([], symbols)).tolist() == []


# Files


TEXTS = [["T|a", "T|日本 \udcff", "U(k=2)|a"], ["T|a", "T|日本 \udcff"]]


@pytest.mark.parametrize("min_lists", [1, 2, 3])
def test_what_was_saved_is_loaded(min_lists: int, tmp_path: Path) -> None:
    table, _, _ = built(TEXTS, min_lists)
    table.save(tmp_path)
    header = json.loads((tmp_path / "table.json").read_text())
    del header["scale"]  # which tables without free columns may lack
    (tmp_path / "table.json").write_text(json.dumps(header))
    loaded = load_table(tmp_path)
    assert loaded.free == loaded.scale.size == 0
    for name in ("hashes", "template", "first", "symbols"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(table, name))
        assert getattr(loaded, name).dtype == getattr(table, name).dtype
    assert (loaded.texts, loaded.templates, loaded.about) == (table.texts, table.templates, table.about)
    assert names_of(loaded) == names_of(table)
    features = varying(["T|a", "T|x"], SymbolTable())
    np.testing.assert_array_equal(loaded.columns(features), table.columns(features))


def replace(name: str, change: Any) -> Any:
    """Damage that writes another array."""

    def damage(directory: Path) -> None:
        path = directory / f"table_{name}.npy"
        np.save(path, change(np.load(path)))

    return damage


def edit(**changes: Any) -> Any:
    """Damage that changes the header."""

    def damage(directory: Path) -> None:
        path = directory / "table.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    return damage


DAMAGES = {
    "no header": lambda directory: (directory / "table.json").unlink(),
    "cut array": lambda directory: (directory / "table_hashes.npy").write_bytes(
        (directory / "table_hashes.npy").read_bytes()[:-4]
    ),
    "a list": lambda directory: (directory / "table.json").write_bytes(b"[]"),
    "texts that are no hexadecimals": edit(texts={"xyz": "00"}),
    "too few templates": edit(templates=["T"]),
    "about nothing": edit(about=3),
    "signed hashes": replace("hashes", lambda a: a.astype(np.int64)),
    "unsorted hashes": replace("hashes", lambda a: a[::-1]),
    "one hash twice": replace("hashes", lambda a: a[[0, 0, 2]]),
    "a free column's hash again": replace("hashes", lambda a: a[[1, 0, 1]]),
    **{
        f"scale {scale}": edit(scale=scale)
        for scale in ([0.0], [-1.0], [math.nan], [math.inf], [1.0] * 9, [[1.0]], ["x"], {"a": 1})
    },
    "negative templates": replace("template", lambda a: a - 1),
    "offsets that decrease": replace("first", lambda a: a[[0, 2, 1, 3]]),
    "offsets that start late": replace("first", lambda a: np.r_[1, a[1:]]),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_files_are_errors_of_the_model(damage: str, tmp_path: Path) -> None:
    table, _, _ = built([["T|a", "T|b c", "U(k=2)|a"]], 1)
    dataclasses.replace(table, scale=np.ones(1)).save(tmp_path)
    assert load_table(tmp_path).free == 1
    DAMAGES[damage](tmp_path)
    with pytest.raises(ModelError, match="not a readable feature table"):
        load_table(tmp_path)


# Hashed columns


def test_hashed_tables(tmp_path: Path) -> None:
    table = HashedTable.of(4, TEMPLATES, {"kept": 3})
    assert table.width == 16
    features = varying(["T|a", "T|b"], SymbolTable())._replace(hashes=np.array([1, 16], np.uint64))
    assert table.columns(features).tolist() == [0, 15]
    assert table.columns(features).dtype == np.int32
    assert table.name(7) == "hashed|#7"
    table.save(tmp_path)
    again = load_table(tmp_path)
    assert isinstance(again, HashedTable)
    assert (again.bits, again.templates, again.about) == (table.bits, table.templates, table.about)


@pytest.mark.parametrize("change", [{"bits": 3}, {"bits": 31}, {"bits": "many"}, {"bits": None}, {"about": 1}])
def test_damaged_hashed_tables(change: dict[str, Any], tmp_path: Path) -> None:
    HashedTable.of(4, TEMPLATES, {}).save(tmp_path)
    edit(**change)(tmp_path)
    with pytest.raises(ModelError, match="not a readable feature table"):
        load_table(tmp_path)


def test_collisions_are_counted_by_column() -> None:
    count = CollisionCount(8)
    assert count.about() == {"kept": 0, "shared": 0, "columns": 8}
    count.add(np.array([0, 1, 7]), np.array([10, 11, 12], np.uint64))
    count.add(np.array([1, 2]), np.array([11, 13], np.uint64))
    assert count.about() == {"kept": 4, "shared": 0, "columns": 8}
    count.add(np.array([1, 7]), np.array([14, 15], np.uint64))
    count.add(np.array([7]), np.array([12], np.uint64))
    assert count.about() == {"kept": 4, "shared": 2, "columns": 8}


WIDTH = 9


class OneList(NamedTuple):
    """``entries[i]`` are (candidate, value) of feature i, whose number is ``ids[i]``."""

    size: int
    ids: list[int]
    entries: list[list[tuple[int, float]]]


def features_of(one: OneList) -> ListFeatures:
    flat = [entry for entries in one.entries for entry in entries]
    return list_features(
        len(one.ids),
        first=np.concatenate([[0], np.cumsum([len(entries) for entries in one.entries])]).astype(np.int64),
        candidate=np.array([candidate for candidate, _ in flat], np.int32),
        value=np.array([value for _, value in flat], np.float32),
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
    corpus = corpus_of([OneList(2, [0], [[(0, np.inf), (1, -np.inf)]])], np.zeros(1, np.int32), 1)
    most = np.finfo(np.float32).max
    assert corpus.values.tolist() == [most, -most]
