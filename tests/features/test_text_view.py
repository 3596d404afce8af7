"""The arrays of a list of texts, what is refused, and the extractor around them."""

import logging
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_texts import SPECS_TOGETHER, Lines, has_digit, is_mark, lists_of_texts, text_list

from rerank.base.errors import RecipeError
from rerank.data.symbols import SymbolTable
from rerank.features.extract import Extractor, TextExtractor
from rerank.features.template import make_template
from rerank.features.text.view import DIGIT, PUNCTUATION, TextView, make_view
from rerank.readers.lists import Lists, SparseScores
from rerank.readers.problems import Problem

SYMBOLS = SymbolTable()


def viewed(nbest: Lists, source: str = "") -> TextView:
    return make_view(nbest, source.encode(), SYMBOLS)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.text("a7.,…«。・·！ｅ＂Ａ０é日 \t-", max_size=5), max_size=4))
def test_kinds_of_words(texts: list[str]) -> None:
    nbest = plain(*[text.encode() for text in texts])
    words = [word.decode() for text in nbest.texts for word in text.split()]
    full_width = {"！", "＂"}
    expected = [
        DIGIT if has_digit(w) else (PUNCTUATION if all(c in full_width or is_mark(c) for c in w) else 0) for w in words
    ]
    assert viewed(nbest).kinds.tolist() == expected


def test_bytes_that_are_not_utf8_and_cut_marks() -> None:
    view = viewed(plain(b"\xff \xe2\x80 \xc2 \xe3\x80\x82 \xef\xbc"))
    assert view.kinds.tolist() == [0, 0, 0, PUNCTUATION, 0]


def plain(*texts: bytes, **fields: Any) -> Lists:
    """A list of texts with a base score each."""
    n = len(texts)
    return Lists.one("a", "lists.gz", 10, list(texts), range(10, 10 + n), np.zeros((n, 1)), names=("score",), **fields)


# What is refused


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("segmentation", b"0=0 1", "found '1' in the segmentation, expected source words = target words, like 5-7=5"),
        ("segmentation", b"1-0=0", "found '1-0=0'"),
        ("segmentation", b"0=0 2=1", "'2=1' in the segmentation points outside of the source, which has 2 words"),
        ("segmentation", b"0-99999999999999999999999=0", "points outside of the source"),
        ("segmentation", b"0=0 1=2-3", "'1=2-3' in the segmentation points outside of the text, which has 3 words"),
        ("segmentation", b"0=1 1=0", "'1=0' in the segmentation overlaps the phrase before it"),
        ("segmentation", b"0=0-1 1=1", "'1=1' in the segmentation overlaps the phrase before it"),
        ("alignment", b"0-0 1", "found '1' in the alignment, expected source word - target word, like 2-3"),
        ("alignment", b"2-0", "'2-0' in the alignment points outside of the source, which has 2 words"),
        ("alignment", b"0-3", "'0-3' in the alignment points outside of the text, which has 3 words"),
    ],
)
def test_bad_derivations(field: str, value: bytes, message: str) -> None:
    nbest = plain(b"a b", b"a b c", **{field: [b"", value]})
    with pytest.raises(Problem, match=r"lists\.gz:11: list a: ") as caught:
        viewed(nbest, "x y")
    assert message in caught.value.message
    assert caught.value.reason == field


def test_dropped_words_have_empty_targets() -> None:
    view = viewed(plain(b"a b", segmentation=[b" 0=0 1=1  2=1\t3=1 4=2 5=2 "]), "u v w x y z")
    assert view.spans[:, 2:].tolist() == [[0, 1], [1, 1], [1, 1], [1, 2], [2, 2], [2, 2]]


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=12) | st.text("0123-= \n\t\rx", max_size=14).map(str.encode), st.booleans())
def test_any_bytes_give_spans_inside_or_an_error(field: bytes, segments: bool) -> None:
    nbest = plain(b"a b c", b"a", b"")
    fields = [field.replace(b"\n", b" "), b"0=0" if segments else b"0-0", b""]
    nbest = nbest.changed(segmentation=fields) if segments else nbest.changed(alignment=fields)
    try:
        view = viewed(nbest, "x y")
    except Problem:
        return
    assert (view.spans >= 0).all()
    assert (view.spans[:, 1] <= 2).all()
    assert (view.spans[:, 0] < view.spans[:, 1]).all()
    assert (view.spans[:, 2] <= view.spans[:, 3]).all()
    assert (view.spans[:, 3] <= 3).all()
    assert (view.points < [2, 3]).all()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e39])
def test_scores_that_features_cannot_hold(value: float) -> None:
    nbest = replace(plain(b"a", b"b"), scores=np.array([[0.0, 1.0], [0.0, value]]), names=("score", "lm"))
    with pytest.raises(Problem, match=r"lists\.gz:11: list a: found a score that is not finite") as caught:
        viewed(nbest)
    assert caught.value.reason == "infinite score"
    sparse = SparseScores(np.array([0, 0, 2]), [b"p", b"q"], np.array([1.0, value]))
    with pytest.raises(Problem, match=r"lists\.gz:11: list a: found a sparse feature with the value"):
        viewed(plain(b"a", b"b", sparse=sparse))


def test_lists_without_candidates_names_or_words() -> None:
    assert viewed(plain()).first.tolist() == [0]
    view = viewed(replace(plain(b"", b" "), names=()), "x")
    assert (view.first.tolist(), view.names.size, view.words.size) == ([0, 0, 0], 0, 0)


# The extractor


def test_templates_of_another_content_are_refused() -> None:
    with pytest.raises(RecipeError, match=r"template Rule looks at trees, but the lists are lists of texts; name"):
        TextExtractor([make_template("Dense"), make_template("Rule")], SymbolTable())
    with pytest.raises(RecipeError, match=r"template Given looks at texts, but the lists are lists of trees; name"):
        Extractor([make_template("Rule"), make_template("Given")], SymbolTable())
    with pytest.raises(RecipeError, match="template Dense is named twice"):
        TextExtractor([make_template("Dense"), make_template("Dense")], SymbolTable())


@settings(max_examples=25, deadline=None)
@given(lists_of_texts(), lists_of_texts())
def test_centred_values_differ_by_a_constant_of_the_list(lines: Lines, other: Lines) -> None:
    """And a list's features do not depend on the lists before it."""
    templates = [make_template(spec) for spec in SPECS_TOGETHER]
    plainly = TextExtractor(templates, SYMBOLS, centred=False)
    centred = TextExtractor(templates, SYMBOLS)
    centred.features(viewed(text_list(other), " ".join(other.source)))
    view = viewed(text_list(lines), " ".join(lines.source))
    found = [extractor.features(view) for extractor in (plainly, centred)]
    np.testing.assert_array_equal(found[0].hashes, found[1].hashes)
    tables = []
    for features in found:
        table = np.zeros((features.hashes.size, len(lines.candidates)))
        feature = np.repeat(np.arange(features.hashes.size), np.diff(features.first))
        table[feature, features.candidate] = features.value
        tables.append(table)
    difference = tables[0] - tables[1]
    if difference.size:
        np.testing.assert_allclose(difference, difference[:, :1].repeat(difference.shape[1], 1), atol=1e-5)


def test_what_lists_lack_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    specs = ["PhrasePair", "Jump", "WordPair", "LengthRatio", "TargetNGram"]
    extractor = TextExtractor([make_template(spec) for spec in specs], SYMBOLS)
    with caplog.at_level(logging.WARNING, "rerank"):
        for _ in range(3):
            extractor.features(viewed(plain(b"a", b"b")))
    assert set(extractor.lacking) == {"segmentation", "alignment", "source"}
    assert [record.getMessage() for record in caplog.records] == [
        "a list has no segmentation: PhrasePair, Jump give no features there",
        "a list has no alignment: WordPair give no features there",
        "a list has no source: LengthRatio give no features there",
    ]
    assert TextExtractor([], SYMBOLS).features(viewed(plain())).hashes.size == 0
