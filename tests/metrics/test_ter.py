"""TER is sacrebleu's."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sacrebleu.metrics import TER
from strategies_text import encode

from rerank.base.errors import DataError, RecipeError
from rerank.base.registry import build
from rerank.extraction.texts import make_text_metric
from rerank.metrics.metric import metrics
from rerank.metrics.text import Ter

SENTENCES = st.lists(st.sampled_from("abcde"), max_size=12).map(" ".join)
MARKED = st.text("aB1 .,&-'\u3000\u4e00()", max_size=20)
OPTIONS = st.fixed_dictionaries({"normalized": st.booleans(), "case_sensitive": st.booleans()})


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
@given(MARKED, MARKED, OPTIONS)
@example("1", "..1", {"normalized": True})
def test_settings_are_sacrebleus(text, reference, options):
    metric = Ter(**options)
    row, stats = metric.stats(encode([text]), encode([reference]))
    expected = TER(**options).sentence_score(text, [reference])
    assert metric.scores(stats, row).tolist() == [pytest.approx(expected.score, abs=1e-9)]


def test_bytes_that_are_not_utf8_are_words():
    reference, stats = Ter().stats([b"\xff \xc3\x89", b"\xfe"], [b"\xff \xc3\xa9"])
    assert Ter().gain(stats, reference).tolist() == [1, 0]


def test_signatures():
    peer = TER()
    peer.corpus_score(["a b"], [["a b"]])
    assert Ter().corpus_signature([("a b",)]) == str(peer.get_signature())
    assert Ter().corpus_signature([("a",), ("a", "b")]).startswith("nrefs:var|")
    seen = [Ter(), Ter(normalized=True), Ter(case_sensitive=True)]
    assert len({metric.signature for metric in seen}) == len(seen)


def test_errors():
    with pytest.raises(DataError, match="a text of 1,025 words for a reference of 1,030; TER takes"):
        Ter().stats([b"a", b"a " * 1025], [b"b", b"a " * 1030])
    with pytest.raises(RecipeError, match=r"metrics: \[ter\] reports it; training and oracles take bleu or chrf"):
        make_text_metric({"name": "ter"})
    with pytest.raises(RecipeError, match="has no setting 'normalised'; did you mean normalized"):
        build(metrics, {"name": "ter", "normalised": True}, "metric")
