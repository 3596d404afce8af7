"""Labelled examples: every operation equals the obvious one on dense rows; symbols, their hashes, ids and texts."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from small_classes import examples_of

from rerank.base.errors import DataError, RecipeError
from rerank.data.corpus import Corpus
from rerank.data.labelled import Labelled, canonical, canonical_order
from rerank.data.symbols import SymbolTable, combine, hash_bytes, mix, text_hash
from rerank.data.trees import parse_brackets
from rerank.learn.scoring import best


def dense(examples: Labelled | Corpus) -> np.ndarray:
    """The rows with their zeros: float32 [rows, D]."""
    arrays = (examples.values, examples.columns, examples.rows)
    return scipy.sparse.csr_matrix(arrays, shape=(examples.rows.size - 1, examples.width)).toarray()


@st.composite
def sets(draw: st.DrawFn, smallest_k: int = 2, largest_k: int = 4) -> Labelled:
    """Small sets with rows and columns of zeros, with and without groups; values are often all equal."""
    n, width, k = draw(st.integers(1, 7)), draw(st.integers(1, 6)), draw(st.integers(smallest_k, largest_k))
    numbers = draw(st.sampled_from([[0.0, 2.0], [0.0, 1.0, -3.0, 0.5]]))
    rows = st.lists(st.sampled_from(numbers), min_size=width, max_size=width)
    X = np.array(draw(st.lists(rows, min_size=n, max_size=n)), np.float32)
    y = draw(st.lists(st.integers(0, k - 1), min_size=n, max_size=n))
    made = examples_of(X, y, classes=range(k))
    group = draw(st.lists(st.integers(-3, 3), min_size=n, max_size=n)) if draw(st.booleans()) else []
    weight = draw(st.lists(st.sampled_from([0.5, 1.0, 2.0]), min_size=n, max_size=n))
    return Labelled(**vars(made) | {"group": group, "weight": weight})


def changed(examples: Labelled, **fields: Any) -> Labelled:
    return Labelled(**vars(examples) | fields)


# Arrays


@given(sets())
def test_arrays_are_read_only_and_typed(examples) -> None:
    types = {"rows": "i8", "columns": "i4", "values": "f4", "label": "i8", "group": "i8", "weight": "f8"}
    for name, kind in types.items():
        array = getattr(examples, name)
        assert array.dtype == np.dtype(kind)
        assert not array.flags.writeable


@pytest.mark.parametrize(
    "fields",
    [
        {"rows": [0, 1]},
        {"rows": [0, 2, 1, 3]},
        {"label": [0, 1, 2]},
        {"label": [0, -1, 1]},
        {"columns": [0, 1, 3]},
        {"values": np.ones(2)},
        {"group": [1, 2]},
        {"weight": [1.0]},
        {"width": -1},
        {"width": 2**31},
    ],
    ids=str,
)
def test_arrays_that_do_not_fit_are_refused(fields) -> None:
    with pytest.raises(DataError):
        changed(examples_of(np.eye(3), [0, 1, 1]), **fields)


# Operations on rows


@given(sets(), st.data())
def test_take_is_indexing(examples, data) -> None:
    chosen = data.draw(st.lists(st.integers(0, examples.size - 1), max_size=9))
    taken = examples.take(chosen)
    assert np.array_equal(dense(taken), dense(examples)[np.array(chosen, int)])
    assert taken.label.tolist() == examples.label[chosen].tolist()
    assert taken.weight.tolist() == examples.weight[chosen].tolist()
    assert taken.group.tolist() == (examples.group[chosen].tolist() if examples.group.size else [])
    mask = np.isin(np.arange(examples.size), chosen)
    assert np.array_equal(dense(examples.take(mask)), dense(examples)[mask])


@given(sets(largest_k=2), st.floats(0, 1), st.integers(0, 2**32))
def test_flip_changes_labels_independently_of_all_else(examples, probability, seed) -> None:
    flipped = examples.flip(probability, seed)
    draws = np.random.default_rng(seed).random(examples.size)
    assert (flipped.label != examples.label).tolist() == (draws < probability).tolist()
    assert np.array_equal(dense(flipped), dense(examples))
    assert examples.flip(1, seed).flip(1, seed).label.tolist() == examples.label.tolist()


def test_what_flip_refuses() -> None:
    with pytest.raises(DataError, match="3 classes"):
        examples_of(np.eye(3), [0, 1, 2]).flip(0.1, 1)
    with pytest.raises(RecipeError, match=r"found 1\.5"):
        examples_of(np.eye(2), [0, 1]).flip(1.5, 1)


@given(sets(), st.sampled_from([1.0, 2.0, -0.25]))
def test_bias_is_a_last_column(examples, value) -> None:
    widened = examples.with_bias(value)
    column = np.full((examples.size, 1), value, np.float32)
    assert np.array_equal(dense(widened), np.hstack([dense(examples), column]))
    assert (np.diff(widened.rows) == np.diff(examples.rows) + 1).all()


def test_a_bias_is_finite() -> None:
    with pytest.raises(RecipeError, match="finite"):
        examples_of(np.eye(3), [0, 1, 1]).with_bias(1e39)


@given(sets(), st.integers(1, 8))
def test_align_takes_classes_and_columns_of_others(examples, width) -> None:
    classes = ("3", "2", "1", "0", "9")
    aligned = examples.align(classes, width)
    assert [classes[c] for c in aligned.label] == [examples.classes[c] for c in examples.label]
    expected = np.zeros((examples.size, width), np.float32)
    kept = min(width, examples.width)
    expected[:, :kept] = dense(examples)[:, :kept]
    assert np.array_equal(dense(aligned), expected)
    assert aligned.omissions == np.count_nonzero(dense(examples)[:, kept:])
    assert aligned.align(classes, width).omissions == aligned.omissions


def test_align_refuses_a_class_only_where_an_example_has_it() -> None:
    examples = examples_of(np.eye(2), [0, 0], classes=[0, 7])
    assert examples.align(("0", "1"), 2).classes == ("0", "1")
    with pytest.raises(DataError, match="found label 7, which the training examples do not have; expected 0, 1"):
        examples_of(np.eye(2), [0, 7]).align(("0", "1"), 2)


# Corpus


@given(sets(largest_k=2))
def test_two_classes_share_their_nonzeros(examples) -> None:
    corpus = examples.corpus()
    X = dense(corpus)
    assert not X[0::2].any()
    assert np.array_equal(X[1::2], dense(examples))
    assert corpus.columns.size == 0 or np.shares_memory(corpus.columns, examples.columns)
    assert corpus.width == examples.width


@given(sets(smallest_k=3))
def test_more_classes_have_columns_of_their_own(examples) -> None:
    corpus, k, D = examples.corpus(), len(examples.classes), examples.width
    assert corpus.width == k * D
    X = dense(corpus).reshape(examples.size, k, k, D)
    for c in range(k):
        assert np.array_equal(X[:, c, c], dense(examples))
        assert not X[:, c, np.arange(k) != c].any()


@given(sets())
def test_the_true_class_gains(examples) -> None:
    corpus, k = examples.corpus(), len(examples.classes)
    right = np.arange(k) == examples.label[:, np.newaxis]
    assert np.array_equal(corpus.gain.reshape(-1, k), right)
    assert np.array_equal(corpus.stats.reshape(-1, k), ~right)
    assert np.array_equal(np.diff(corpus.lists), np.full(examples.size, k))
    assert corpus.reference.tolist() == [[1.0]] * examples.size
    assert corpus.weight.tolist() == examples.weight.tolist()
    assert not corpus.base.any()


def test_a_tie_is_class_0_and_a_linear_score_decides() -> None:
    corpus = examples_of(np.array([[1.0, 0], [0, 1], [0, 0]]), [0, 1, 1]).corpus()
    scores = np.zeros(6)
    scores[1::2] = dense(corpus)[1::2] @ np.array([1.0, -1.0])
    assert best(corpus, scores).tolist() == [1, 2, 4]


def test_what_makes_no_corpus() -> None:
    with pytest.raises(DataError, match="all examples have the label 4; expected two"):
        examples_of(np.eye(2), [4, 4]).corpus()
    with pytest.raises(DataError, match="3 classes of 1,000,000,000 columns"):
        changed(examples_of(np.eye(3), [0, 1, 2]), width=10**9).corpus()


# Matrices and labels


def test_one_text_a_class() -> None:
    assert {canonical(text) for text in ("1", "+1", "1.0", "1e0", "10e-1", "01")} == {"1"}
    assert [canonical(text) for text in ("-0", "0.50", "1e300", "nan", "1_0", "spam", "١")] == [
        "0", "0.5", "1e+300", "nan", "1_0", "spam", "١",
    ]  # fmt: skip


def test_order_of_classes() -> None:
    assert canonical_order(["10", "9", "-1", "0.5", "9"]) == ("-1", "0.5", "9", "10")
    assert canonical_order(["10", "9", "spam"]) == ("10", "9", "spam")


MASK = (1 << 64) - 1
M1, M2 = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def naive_mix(z: int) -> int:
    """splitmix64's finaliser in Python integers."""
    z = (z ^ (z >> 30)) * M1 & MASK
    z = (z ^ (z >> 27)) * M2 & MASK
    return z ^ (z >> 31)


def naive_hash(data: bytes) -> int:
    """64-bit FNV-1a, then mix."""
    h = 0xCBF29CE484222325
    for byte in data:
        h = (h ^ byte) * 0x100000001B3 & MASK
    return naive_mix(h) or 1


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=30), st.integers(0, 5), st.integers(0, 5))
def test_hash_bytes_is_fnv_1a_and_mix(data: bytes, before: int, after: int) -> None:
    array = np.frombuffer(b"x" * before + data + b"y" * after, np.uint8)
    assert int(hash_bytes(array, before, before + len(data))) == naive_hash(data)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, MASK), st.integers(0, MASK))
def test_mix_and_combine(a: int, b: int) -> None:
    assert int(mix(np.uint64(a))) == naive_mix(a)
    h = (a ^ b) * M1 & MASK
    assert int(combine(np.uint64(a), np.uint64(b))) == (h ^ (h >> 32)) * M2 & MASK


def test_known_values() -> None:
    # splitmix64 seeded with 0 returns the finaliser of its increment first.
    assert int(mix(np.uint64(0x9E3779B97F4A7C15))) == 0xE220A8397B1DCDAF
    # FNV-1a of "a" is 0xaf63dc4c8601ec8c.
    assert text_hash("a") == naive_mix(0xAF63DC4C8601EC8C)
    assert text_hash("naïve") == naive_hash("naïve".encode())
    assert text_hash("") == naive_hash(b"")


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=4), max_size=60))
def test_ids_count_from_zero_in_the_order_of_first_sight(texts: list[str]) -> None:
    table, expected = SymbolTable(), dict[str, int]()
    for text in texts:
        symbol = table.intern(text)
        for new in (text, text.lower()):
            expected.setdefault(new, len(expected))
        assert symbol == expected[text]
    assert len(table) == len(expected)
    for text, symbol in expected.items():
        assert table.text(symbol) == text
        assert table.hashes[symbol] == text_hash(text)
        assert table.text_of_hash(text_hash(text)) == text
        assert table.intern(text) == symbol
    assert [table.text(i) for i in table.lower] == [text.lower() for text in expected]


def test_the_table_grows() -> None:
    table = SymbolTable()
    count = 20_000
    assert [table.intern(f"w{i}") for i in range(count)] == list(range(count))
    assert [table.intern(f"w{i}") for i in range(count)] == list(range(count))
    assert len(table) == count
    assert np.count_nonzero(table.index.keys) == count
    assert table.index.keys.size >= 2 * count  # half empty, so that probes end


def test_unknown_hashes_have_no_text() -> None:
    table = SymbolTable()
    assert table.text_of_hash(text_hash("S")) is None
    table.intern("S")
    assert table.text_of_hash(text_hash("NP")) is None


def test_bytes_that_are_not_utf8_keep_their_hash() -> None:
    text = b"caf\xe9".decode("utf-8", "surrogateescape")
    assert text_hash(text) == naive_hash(b"caf\xe9")


def test_symbols_of_trees_and_interned_ones_are_the_same() -> None:
    one, two = SymbolTable(), SymbolTable()
    np_, art = one.intern("NP"), one.intern("Art")
    parsed = parse_brackets([b"(NP (NN Art))"], one)
    assert one.text(int(parsed.label[0])) == "NP"
    assert (int(parsed.label[0]), int(parsed.word[1])) == (np_, art)
    parsed = parse_brackets([b"(NP (NN Art))"], two)
    assert two.intern("Art") == int(parsed.word[1])
    assert two.text(int(two.lower[parsed.word[1]])) == "art"
