"""chrF against sacrebleu on random and real text, and what must hold for any text."""

import string

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics import CHRF
from strategies_text import encode

from rerank.base.errors import DataError, RecipeError
from rerank.base.registry import build
from rerank.metrics.chrf import Chrf
from rerank.metrics.metric import metrics
from rerank.metrics.text import words_and_marks

TEXTS = st.text("aab(B .,é\u3000ßΣ", max_size=30)
OPTIONS = st.fixed_dictionaries(
    {
        "char_order": st.integers(0, 6),
        "word_order": st.integers(0, 2),
        "beta": st.integers(1, 3),
        "whitespace": st.booleans(),
        "lowercase": st.booleans(),
    }
).filter(lambda options: options["char_order"] + options["word_order"] > 0)


@settings(max_examples=200, deadline=None)
@given(st.lists(TEXTS, min_size=1, max_size=4), st.lists(TEXTS, min_size=1, max_size=3), OPTIONS)
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


def test_signatures():
    peer = CHRF(word_order=2)
    peer.corpus_score(["a b"], [["a b"]])
    assert Chrf(word_order=2).corpus_signature([("a b",)]) == str(peer.get_signature())
    assert Chrf().corpus_signature([("a",), ("a", "b")]).startswith("nrefs:var|case:mixed|eff:yes|nc:6|nw:0|space:no|")
    seen = [Chrf(), Chrf(char_order=5), Chrf(word_order=2), Chrf(beta=1), Chrf(lowercase=True)]
    seen += [Chrf(whitespace=True)]
    assert len({metric.signature for metric in seen}) == len(seen)
    assert Chrf().signature.startswith("chrf|case:mixed|")


def test_errors():
    with pytest.raises(DataError, match="a reference of 1,048,577 bytes"):
        Chrf().stats([b"a"], [b"b", b"a" * ((1 << 20) + 1)])
    with pytest.raises(RecipeError, match=r"metric\.char_order: found -1"):
        build(metrics, {"name": "chrf", "char_order": -1}, "metric")
    with pytest.raises(RecipeError, match="at least one n-gram"):
        Chrf(char_order=0)
    with pytest.raises(RecipeError, match="beta: found 0"):
        Chrf(beta=0)
