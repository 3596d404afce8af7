"""Templates of texts against their slow twins, the arrays that they look at, and free columns."""

import dataclasses
import logging
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
import pytest
import reference_labels  # noqa: F401 - registers twins
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import PATIENCE
from reference import dense
from reference_texts import (
    EIN_MANN,
    TWINS,
    Lines,
    One,
    expected,
    extracted,
    has_digit,
    is_mark,
    lists_of_texts,
    text_list,
)
from rendered_features import TableBuilder

from rerank.base import interrupts
from rerank.base.errors import RecipeError
from rerank.base.interrupts import Deadline, GivenUpError, check
from rerank.data.corpus import Corpus, standard_scale
from rerank.data.symbols import SymbolTable
from rerank.features.extract import Extractor, TextExtractor
from rerank.features.rows import RowBuilder
from rerank.features.table import FeatureTable
from rerank.features.template import SETS, make_template, templates
from rerank.features.text.view import DIGIT, PUNCTUATION, TextView, make_view
from rerank.readers.lists import Lists, SparseScores
from rerank.readers.problems import Problem

SPECS_TEXT = """
    Dense; BaseScore; Given; PhrasePair; SourcePhrase; TargetPhrase; PhraseLengths; PhraseLengths(most=2);
    PhraseBoundary; Jump; Jump(most=1); WordPair; Unaligned; Unaligned(side=target); CoOccurrence;
    CoOccurrence(words=3); CoOccurrence(band=1); TargetNGram; TargetNGram(n=2); TargetNGram(n=3); LengthRatio;
    Length; Length(binned=False); Copy; Punctuation; Punctuation(most=1); ConsensusNGram; ConsensusNGram(n=2,
    scale=0); ConsensusEdits; ConsensusEdits(top=1); ConsensusEdits(top=3, scale=2); EditOps; SameAnswer;
    Dense(answers=own); BaseScore(answers=own); Within; Within(bins=3); LabelNGram; LabelSpan; SpanNGram
"""
SPECS = [" ".join(spec.split()) for spec in SPECS_TEXT.split(";")]
REAL = (  # values beyond counts
    "Dense", "BaseScore", "Given", "ConsensusNGram", "ConsensusEdits", "Copy", "SameAnswer", "Within",
)  # fmt: skip


def test_every_template_of_texts_has_a_twin() -> None:
    of_texts = {name for name, cls in templates if cls.content != "trees"}
    assert of_texts == set(TWINS) == {make_template(spec).kind for spec in SPECS}


def same(found: list[dict[str, float]], twin: list[dict[str, float]], *, real: bool) -> None:
    """Equal names and values; real values may differ by rounding, and so may whether they vary at all."""
    if not real:
        assert found == twin
        return
    names = [{name for row in rows for name in row} for rows in (found, twin)]
    for name in names[0] & names[1]:
        assert [row.get(name, 0.0) for row in found] == pytest.approx([row.get(name, 0.0) for row in twin], rel=1e-5)
    for name in names[0] ^ names[1]:
        values = [row.get(name, 0.0) for row in (found if name in names[0] else twin)]
        assert values == pytest.approx([values[0]] * len(values), rel=1e-5), name


@settings(max_examples=100, deadline=None)
@given(lines=lists_of_texts())
def test_templates_equal_their_twins_alone_and_together(lines: Lines) -> None:
    alone = {spec: extracted([spec], lines) for spec in SPECS}
    for spec, found in alone.items():
        same(found, expected(spec, lines), real=spec.startswith(REAL))
    for y, together in enumerate(extracted(SPECS, lines)):
        assert together == {key: value for found in alone.values() for key, value in found[y].items()}


@pytest.mark.parametrize("name", ["dptm", "translation", "text", "speech"])
def test_sets_of_texts_hold_templates_of_texts(name: str) -> None:
    assert all(make_template(spec).content != "trees" for spec in SETS[name])
    assert len(extracted(SETS[name], EIN_MANN)[0]) > 5


def test_options_do_what_they_say_at_their_limits() -> None:
    long = Lines(["a"] * 70, [One(["b"] * 70, [(0, 70, 0, 70)], base=0.0), One([], base=-1e6)])
    names = extracted(["PhraseLengths(most=64)", "Jump(most=64)", "LengthRatio", "Length"], long)[0]
    assert set(names) == {"PhraseLengths(most=64)|64 → 64", "Jump(most=64)|0", "LengthRatio|1.0", "Length|64-95"}
    assert all(f.default is not dataclasses.MISSING for _, cls in templates for f in dataclasses.fields(cls))


def test_a_dominant_candidate_does_not_hide_the_others() -> None:
    """The others' share of e^-500 is no reason to lose them."""
    lines = Lines([], [One(["a", "b"], base=0.0), One(["a", "c"], base=-500.0), One(["e", "d"], base=-500.0)])
    found = extracted(["ConsensusNGram(n=1)"], lines)
    assert [row.get("ConsensusNGram(n=1)|1", 0.0) for row in found] == pytest.approx([0.25, 0.5, 0.0])


WORDS = st.lists(st.sampled_from("abc"), max_size=40)


@given(texts=st.lists(WORDS, min_size=2, max_size=4), piece=st.integers(1, 5000))
def test_work_in_pieces_gives_the_alignment_of_the_whole(texts: list[list[str]], piece: int) -> None:
    lines = Lines([], [One(words, base=-float(y)) for y, words in enumerate(texts)])
    specs = ["EditOps", "ConsensusEdits(top=3)"]
    whole = extracted(specs, lines)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(interrupts, "PIECE", piece)
        assert extracted(specs, lines) == whole  # to the bit
    operations = [{name: value for name, value in one.items() if name.startswith("EditOps")} for one in whole]
    assert operations == expected("EditOps", lines)


@pytest.mark.parametrize("spec", ["EditOps", "ConsensusEdits"])
def test_alignments_can_be_given_up(spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    deadline, looks = Deadline(PATIENCE), count(1)

    def end_at_the_third() -> None:
        if next(looks) == 3:
            deadline.end()
        check()

    monkeypatch.setattr(interrupts, "PIECE", 1)
    monkeypatch.setattr(interrupts, "check", end_at_the_third)
    with deadline, pytest.raises(GivenUpError):
        extracted([spec], Lines([], [One(["a"] * y, base=float(y)) for y in range(4)]))
    assert next(looks) == 4


def test_memory_grows_as_the_words() -> None:
    rng = np.random.default_rng(1)
    lines = Lines([], [One([f"w{word}" for word in rng.integers(0, 300, 4000)], base=float(y)) for y in range(2)])
    extracted(["EditOps"], lines)
    tracemalloc.start()
    try:
        extracted(["EditOps"], lines)
        assert tracemalloc.get_traced_memory()[1] < 32 << 20  # a table of costs would be 128 MB
    finally:
        tracemalloc.stop()


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
    nbest = nbest.replace(segmentation=fields) if segments else nbest.replace(alignment=fields)
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


def test_what_lists_lack_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    specs = ["PhrasePair", "Jump", "WordPair", "LengthRatio", "TargetNGram"]
    extractor = TextExtractor([make_template(spec) for spec in specs], SYMBOLS)
    with caplog.at_level(logging.WARNING, "rerank"):
        for _ in range(3):
            extractor.features(viewed(plain(b"a", b"b")), plain(b"a", b"b"))
    assert set(extractor.lacking) == {"segmentation", "alignment", "source"}
    assert [record.getMessage() for record in caplog.records] == [
        "a list has no segmentation: PhrasePair, Jump give no features there",
        "a list has no alignment: WordPair give no features there",
        "a list has no source: LengthRatio give no features there",
    ]
    assert TextExtractor([], SYMBOLS).features(viewed(plain()), plain()).hashes.size == 0


FREE_SPECS = ["TargetNGram", "Dense", "Length(binned=False)", "ConsensusNGram(n=1)"]


def add_rows(rows: RowBuilder, lists: list[Lines], extractor: TextExtractor, columns: Callable[[Any], Any]) -> None:
    """The features of lists, in the columns that they are given."""
    for lines in lists:
        nbest = text_list(lines)
        view = make_view(nbest, " ".join(lines.source).encode(), extractor.symbols)
        features = extractor.features(view, nbest)
        nothing = np.zeros(view.base.size)
        rows.add(features, columns(features), view.base, nothing, nothing[:, None], np.zeros(1))


def built(
    lists: list[Lines], min_lists: int = 1, *, centred: bool = True, scale: np.ndarray | None = None
) -> tuple[Corpus, FeatureTable, TextExtractor]:
    """The training corpus and its table, before anything is scaled, or with ``scale``."""
    extractor = TextExtractor([make_template(spec) for spec in FREE_SPECS], SymbolTable(), centred=centred)
    builder = TableBuilder(extractor.names, min_lists, extractor.free)
    rows = RowBuilder()
    add_rows(rows, lists, extractor, builder.add)
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
    corpus, table, _ = built(lists, min_lists)
    names = [table.name(j) for j in range(table.width)]
    is_free = [name.startswith(("Dense|", "ConsensusNGram(n=1)|")) for name in names]
    assert is_free == sorted(is_free, reverse=True)
    assert table.free == corpus.free == sum(is_free)
    for hashes in (table.hashes[: table.free], table.hashes[table.free :]):
        assert (hashes[1:] > hashes[:-1]).all()
    _, everything, _ = built(lists)
    assert names[: table.free] == [everything.name(j) for j in range(everything.free)]
    assert set(names) <= {everything.name(j) for j in range(everything.width)}


@settings(max_examples=60, deadline=None)
@given(LISTS, st.booleans())
def test_the_scale_is_that_of_numpy(lists: list[Lines], centred: bool) -> None:
    corpus, _, _ = built(lists, centred=centred)
    np.testing.assert_allclose(standard_scale(corpus), naive_scale(corpus), rtol=2e-5)
    changed = built(lists, centred=centred, scale=standard_scale(corpus))[0]
    spread = naive_scale(changed)
    np.testing.assert_allclose(spread, np.ones(corpus.free), rtol=2e-5)
    np.testing.assert_array_equal(dense(changed)[:, corpus.free :], dense(corpus)[:, corpus.free :])
    assert (changed.free, changed.width) == (corpus.free, corpus.width)


@settings(max_examples=40, deadline=None)
@given(LISTS)
def test_other_splits_get_the_values_of_training(lists: list[Lines]) -> None:
    """The training lists, extracted again as another split with the scaled table, are the scaled training corpus."""
    corpus, table, extractor = built(lists, scale=standard_scale(built(lists)[0]))
    rows = RowBuilder()
    add_rows(rows, lists, extractor, table.columns)
    again = rows.finish(None, table.width, {}, table.scale)
    assert again.free == corpus.free
    for name in ("rows", "columns", "values"):
        np.testing.assert_array_equal(getattr(again, name), getattr(corpus, name))
