"""IBM model 1 against a dense version of it, what its tables refuse, and what is left out of them."""

import logging
import pickle
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_lexical import dense_em, direction, tokens

from rerank.base.errors import RecipeError
from rerank.features import model1
from rerank.features.model1 import SMALL, LexicalTables, NumberedTexts, estimate, same_tables, train
from rerank.features.template import make_template
from rerank.features.text.lexical import COLUMNS, lexical_columns, lexical_of

PAIRS = [
    (["das", "haus"], ["the", "house"]),
    (["das", "buch"], ["the", "book"]),
    (["ein", "buch"], ["a", "book"]),
    (["ein", "rotes", "haus"], ["a", "red", "house"]),
]
SOURCES, TARGETS = [source for source, _ in PAIRS], [target for _, target in PAIRS]
G, V = 4, 5  # words that exist on either side of random pairs, whose numbers need not all occur
SENTENCE = st.lists(st.integers(0, G - 1), max_size=5)


def texts(sentences: list[list[int]]) -> NumberedTexts:
    first = np.cumsum([0, *map(len, sentences)])
    return NumberedTexts(first, np.array([n for sentence in sentences for n in sentence], np.int32))


@settings(max_examples=60, deadline=None)
@given(pairs=st.lists(st.tuples(SENTENCE, SENTENCE), max_size=6), iterations=st.integers(1, 12))
def test_em_is_that_of_the_paper(pairs: list[tuple[list[int], list[int]]], iterations: int) -> None:
    found = train(texts([a for a, _ in pairs]), G, texts([b for _, b in pairs]), V, iterations)
    dense = dense_em(pairs, G, V, iterations)
    t = np.zeros((G + 1, V))
    t[found.cells.row, found.cells.word] = found.t
    assert len({*zip(found.cells.row.tolist(), found.cells.word.tolist(), strict=True)}) == found.t.size
    assert np.allclose(t, dense.t, rtol=1e-12, atol=1e-15)
    assert np.allclose(found.expected, dense.expected, rtol=1e-12, atol=1e-15)
    assert found.likelihood == pytest.approx(dense.likelihood, rel=1e-12)
    assert all(later >= earlier - 1e-9 for earlier, later in pairwise(found.likelihood))
    sums = t.sum(axis=1)
    assert np.allclose(sums[sums > 0], 1.0, rtol=1e-12)


def test_words_find_their_translations() -> None:
    tables = estimate(tokens(SOURCES), tokens(TARGETS), 20)
    assert (tables.source.size, tables.target.size) == (4, 4)  # "rotes" and "red" occur once
    twin = direction(SOURCES, TARGETS, 20)
    assert twin.p("book", "buch") > 0.9 < twin.p("the", "das")
    assert twin.p("red", "rotes") > 0.3
    view = tokens([["the", "book"], ["a", "house"], ["the", "book", "house"], ["green"], []])
    found = dict(zip(COLUMNS, lexical_columns(tables, tokens([["das", "buch"]]).hashes, *view[::-1]).T, strict=True))
    assert found["target-rate"].argmax() == 4  # nothing is said, nothing is wrong
    assert found["target"][0] > found["target"][1] > found["target"][3] - 5
    assert found["source"].argmax() == 0
    assert found["inserted"].tolist() == [0, 2, 1, 1, 0]
    assert found["deleted"].tolist() == [0, 2, 0, 2, 2]


def test_small_cells_are_left_out() -> None:
    few = estimate(tokens(SOURCES), tokens(TARGETS), 1)
    many = estimate(tokens(SOURCES), tokens(TARGETS), 200)
    assert many.forward.word.size < few.forward.word.size
    assert min(many.forward.probability.min(), few.backward.probability.min()) >= SMALL
    assert np.isfinite(lexical_columns(many, tokens(SOURCES[:1]).hashes, *tokens(TARGETS)[::-1])).all()


@pytest.mark.parametrize("number", [0, 1])
def test_nothing_to_learn_from(number: int) -> None:
    tables = estimate(tokens([[]] * number), tokens([[]] * number), 3)
    assert LexicalTables.of(tables.arrays()).forward.word.size == 0
    found = lexical_columns(tables, tokens(SOURCES[:1]).hashes, *tokens(TARGETS)[::-1])
    assert np.isfinite(found).all()


def test_the_shortest_pairs_are_used_where_there_are_too_many(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    long = ["das"] * 1000, ["the"] * 1000
    monkeypatch.setattr(model1, "MOST", 100)
    with caplog.at_level(logging.INFO, "rerank"):
        found = estimate(tokens([long[0], *SOURCES]), tokens([long[1], *TARGETS]), 5)
    assert "of the 4 shortest of 5 pairs" in caplog.text
    monkeypatch.undo()
    assert same_tables(found, estimate(tokens(SOURCES), tokens(TARGETS), 5))


def damaged(name: str, change: object) -> dict[str, np.ndarray]:
    arrays = {key: array.copy() for key, array in estimate(tokens(SOURCES), tokens(TARGETS), 3).arrays().items()}
    arrays[name] = change(arrays[name])  # type: ignore[operator]
    return arrays


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("source", lambda words: words[::-1]),
        ("target", lambda words: words.astype(np.int64)),
        ("forward_first", lambda first: np.array([0, first[-1], *first[2:]])),
        ("backward_word", lambda word: word + 5),
        ("forward_probability", lambda p: p * np.float32(np.nan)),
        ("forward_share", lambda share: share * 100),
    ],
)
def test_tables_that_do_not_fit_together_are_refused(name: str, change: object) -> None:
    with pytest.raises(ValueError, match="lexical tables"):
        LexicalTables.of(damaged(name, change))


def test_tables_differ_by_their_numbers() -> None:
    tables = estimate(tokens(SOURCES), tokens(TARGETS), 3)
    assert same_tables(tables, LexicalTables.of(tables.arrays()))
    again = pickle.loads(pickle.dumps(tables))
    assert same_tables(tables, again)
    assert not any(array.flags.writeable for array in again.arrays().values())
    assert same_tables(None, None)
    assert not same_tables(tables, None)
    other = damaged("forward_share", lambda share: share * 0.5)
    assert not same_tables(tables, LexicalTables.of(other))


def test_one_template_learns() -> None:
    one, other = make_template("Lexical"), make_template("Lexical(iterations=9)")
    assert lexical_of([make_template("Length"), one]) is one
    assert lexical_of([]) is None
    with pytest.raises(RecipeError, match=r"found Lexical, Lexical\(iterations=9\); expected one"):
        lexical_of([one, other])
