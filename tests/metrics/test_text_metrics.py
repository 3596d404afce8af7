"""Metrics of texts: rows add up to the figures of whole corpora; chrF and TER are those of sacrebleu."""

import logging
import string

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sacrebleu.metrics import CHRF, TER
from strategies_text import encode, texts_with_references

from rerank.base.errors import DataError, RecipeError
from rerank.base.registry import build
from rerank.extraction.texts import make_text_metric
from rerank.metrics.metric import chosen_rows, metrics
from rerank.metrics.ngrams import Bleu, Chrf
from rerank.metrics.text import Ter, TextMetric, words_and_marks
from rerank.metrics.wer import Cer, Match, Wer
from rerank.readers.lists import Lists

logging.getLogger("sacrebleu").setLevel(logging.ERROR)  # it advises on every sentence
METRICS = [
    Bleu(), Bleu(tokenize="13a", lowercase=True), Chrf(), Chrf(word_order=2, beta=3, whitespace=True, lowercase=True),
    Chrf(char_order=2), Ter(), Ter(normalized=True, case_sensitive=True), Wer(), Cer(),
    Wer(normalize={"marks": True}), Cer(normalize={"blanks": True}), Match(), Match(normalize={"marks": True}),
]  # fmt: skip
every = pytest.mark.parametrize("metric", METRICS, ids=str)


@every
@given(lists=st.lists(texts_with_references(), min_size=1, max_size=5), data=st.data())
def test_a_choices_rows_add_up_to_the_score_of_its_texts_an_empty_list_is_an_empty_text(
    metric: TextMetric, lists: list[tuple[list[str], list[str]]], data: st.DataObject
) -> None:
    """For BLEU, chrF and TER, sacrebleu computes the latter."""
    parts = [metric.stats(encode(texts), encode(references)) for texts, references in lists]
    begins = np.cumsum([0, *(len(texts) for texts, _ in lists)])
    picks = [data.draw(st.integers(-1, len(texts) - 1)) for texts, _ in lists]
    chosen = np.array([-1 if y < 0 else begins[i] + y for i, y in enumerate(picks)])
    stats = chosen_rows(np.concatenate([rows for _, rows in parts]), chosen).sum(axis=0)
    reference = np.sum([row for row, _ in parts], axis=0)
    texts = ["" if y < 0 else texts[y] for y, (texts, _) in zip(picks, lists, strict=True)]
    found = metric.corpus(texts, [r for _, r in lists])
    assert metric.report(stats, reference) == pytest.approx(found, abs=1e-9)
    assert metric.of_sums(stats, reference) == found


@every
def test_a_list_without_a_reference_is_an_error_with_its_place(metric: TextMetric) -> None:
    nbest = Lists.one("17", "x.nbest", 3, [b"a"], [3], np.zeros((1, 1)))
    with pytest.raises(DataError, match=r"x\.nbest:3: list 17: found no reference"):
        metric.list_stats(nbest, [])
    assert metric.list_stats(nbest, [b"a"])[1].shape == (1, len(metric.columns))


@every
@pytest.mark.parametrize(
    ("references", "message"), [([["a"]], "found 2 texts and references for 1"), ([["a"], []], "text 2 has no ref")]
)
def test_texts_without_their_references_are_errors(
    metric: TextMetric, references: list[list[str]], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        metric.corpus(["a", "b"], references)
    assert metric.corpus([], [])[metric.primary] == pytest.approx(0.0, abs=1e-9)


TEXTS = st.text("aab(B .,é\u3000ßΣ", max_size=30)
CHRF_OPTIONS = st.fixed_dictionaries(
    {
        "char_order": st.integers(0, 6),
        "word_order": st.integers(0, 2),
        "beta": st.integers(1, 3),
        "whitespace": st.booleans(),
        "lowercase": st.booleans(),
    }
).filter(lambda options: options["char_order"] + options["word_order"] > 0)


@settings(max_examples=200, deadline=None)
@given(st.lists(TEXTS, min_size=1, max_size=4), st.lists(TEXTS, min_size=1, max_size=3), CHRF_OPTIONS)
def test_sentences_are_sacrebleus(texts, references, options):
    metric, peer = Chrf(**options), CHRF(**options)
    reference, stats = metric.stats(encode(texts), encode(references))
    assert stats.shape == (len(texts), len(metric.columns))
    assert reference.shape == (len(metric.reference_columns),)
    whole = stats.copy()
    whole[:, 1::3] += reference
    scores = metric.scores(stats, reference)
    for text, counts, score, gain in zip(texts, whole, scores, metric.gain(stats, reference), strict=True):
        assert counts.tolist() == peer._extract_corpus_statistics([text], [[r] for r in references])[0]
        assert score == peer.sentence_score(text, references).score
        assert gain == score / 100


def test_bytes_that_are_not_utf8_are_characters():
    metric = Chrf(char_order=1)
    reference, stats = metric.stats([b"\xff\xfe", b"\xc3\xa9"], [b"\xfe\xff"])
    assert metric.gain(stats, reference).tolist() == [1, 0]


def test_all_white_space_and_marks_of_unicode():
    points = [chr(p) for p in range(1, 0x3100)]
    texts = [f"{p}ab{p}c,{p}d" for p in points] + ["(a", "(a)", "a\nb."]
    counts = words_and_marks([text.encode() for text in texts]).first
    for text, count in zip(texts, np.diff(counts).tolist(), strict=True):
        assert count == sum(1 + (len(w) > 1 and bool({w[0], w[-1]} & set(string.punctuation))) for w in text.split())


def test_signatures_of_chrf():
    peer = CHRF(word_order=2)
    peer.corpus_score(["a b"], [["a b"]])
    assert Chrf(word_order=2).corpus_signature([("a b",)]) == str(peer.get_signature())
    assert Chrf().corpus_signature([("a",), ("a", "b")]).startswith("nrefs:var|case:mixed|eff:yes|nc:6|nw:0|space:no|")
    seen = [Chrf(), Chrf(char_order=5), Chrf(word_order=2), Chrf(beta=1), Chrf(lowercase=True)]
    seen += [Chrf(whitespace=True)]
    assert len({metric.signature for metric in seen}) == len(seen)
    assert Chrf().signature.startswith("chrf|case:mixed|")


def test_options_of_chrf():
    with pytest.raises(DataError, match="a reference of 1,048,577 bytes"):
        Chrf().stats([b"a"], [b"b", b"a" * ((1 << 20) + 1)])
    with pytest.raises(RecipeError, match=r"metric\.char_order: found -1"):
        build(metrics, {"name": "chrf", "char_order": -1}, "metric")
    with pytest.raises(RecipeError, match="at least one n-gram"):
        Chrf(char_order=0)
    with pytest.raises(RecipeError, match="beta: found 0"):
        Chrf(beta=0)


SENTENCES = st.lists(st.sampled_from("abcde"), max_size=12).map(" ".join)
MARKED = st.text("aB1 .,&-'\u3000\u4e00()", max_size=20)
TER_OPTIONS = st.fixed_dictionaries({"normalized": st.booleans(), "case_sensitive": st.booleans()})


@settings(max_examples=200, deadline=None)
@given(st.lists(SENTENCES, min_size=1, max_size=4), st.lists(SENTENCES, min_size=1, max_size=3))
def test_sentences_with_several_references(texts, references):
    metric, peer = Ter(), TER()
    reference, stats = metric.stats(encode(texts), encode(references))
    assert stats.shape == (len(texts), 1)
    scores, gains = metric.scores(stats, reference), metric.gain(stats, reference)
    for text, row, score, gain in zip(texts, stats, scores, gains, strict=True):
        expected = peer.sentence_score(text, references)
        assert row[0] + reference[0] == expected.num_edits
        assert reference[1] == expected.ref_length
        assert score == pytest.approx(expected.score, abs=1e-9)
        assert gain == pytest.approx(1 - expected.score / 100)


@settings(max_examples=200, deadline=None)
@given(MARKED, MARKED, TER_OPTIONS)
@example("1", "..1", {"normalized": True})
def test_settings_are_sacrebleus(text, reference, options):
    metric = Ter(**options)
    row, stats = metric.stats(encode([text]), encode([reference]))
    expected = TER(**options).sentence_score(text, [reference])
    assert metric.scores(stats, row).tolist() == [pytest.approx(expected.score, abs=1e-9)]


def test_bytes_that_are_not_utf8_are_words():
    reference, stats = Ter().stats([b"\xff \xc3\x89", b"\xfe"], [b"\xff \xc3\xa9"])
    assert Ter().gain(stats, reference).tolist() == [1, 0]


def test_signatures_of_ter():
    peer = TER()
    peer.corpus_score(["a b"], [["a b"]])
    assert Ter().corpus_signature([("a b",)]) == str(peer.get_signature())
    assert Ter().corpus_signature([("a",), ("a", "b")]).startswith("nrefs:var|")
    seen = [Ter(), Ter(normalized=True), Ter(case_sensitive=True)]
    assert len({metric.signature for metric in seen}) == len(seen)


def test_options_of_ter():
    with pytest.raises(DataError, match="a text of 1,025 words for a reference of 1,030; TER takes"):
        Ter().stats([b"a", b"a " * 1025], [b"b", b"a " * 1030])
    with pytest.raises(RecipeError, match=r"metrics: \[ter\] reports it; training and oracles take bleu or chrf"):
        make_text_metric({"name": "ter"})
    with pytest.raises(RecipeError, match="has no setting 'normalised'; did you mean normalized"):
        build(metrics, {"name": "ter", "normalised": True}, "metric")
