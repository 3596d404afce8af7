"""The gains of candidates against each other are those of each against the other as its reference."""

import numpy as np
import pytest
import reference_decoding as reference
from hypothesis import given
from hypothesis import strategies as st

from rerank.base import interrupts
from rerank.data.symbols import SymbolTable
from rerank.metrics.bleu import Bleu
from rerank.metrics.chrf import Chrf
from rerank.metrics.fusion import parse_gains
from rerank.metrics.gain import Gain
from rerank.metrics.pairwise import add_expected
from rerank.metrics.parseval import Parseval
from rerank.metrics.text import TextMetric
from rerank.metrics.wer import Cer, Match, Wer
from rerank.readers.trees.trees import parse_brackets

METRICS: list[TextMetric] = [
    Bleu(), Bleu(smoothing="exp"), Bleu(smoothing="none", effective_order=False, lowercase=True), Chrf(),
    Chrf(word_order=2, lowercase=True), Chrf(char_order=2, eps_smoothing=True, whitespace=True), Wer(),
    Wer(normalize={"case": True}), Cer(), Match(), Match(normalize={"case": True, "marks": True}),
]  # fmt: skip
texts = st.lists(st.sampled_from(["a", "b", "B", "cd", "é", ".", "a."]), max_size=6).map(" ".join)


@pytest.mark.parametrize("metric", METRICS, ids=str)
@given(candidates=st.lists(texts, min_size=1, max_size=5))
def test_texts(metric: TextMetric, candidates: list[str]) -> None:
    given_ = [text.encode() for text in candidates]
    found = metric.pairwise(given_)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(interrupts, "PIECE", 1)
        np.testing.assert_array_equal(metric.pairwise(given_), found)
    for r, text in enumerate(given_):
        own, rows = metric.stats(given_, [text])
        np.testing.assert_allclose(found[:, r], metric.gain(rows, own), rtol=0, atol=1e-12)


def test_a_column_of_gains_makes_equal_texts_vote_together() -> None:
    gains = Gain().pairwise([b"7", b"8 ", b"8", b"9"])
    p = np.array([[0.4, 0.3, 0.25, 0.05]])
    found = np.zeros((1, 4))
    add_expected(gains, p, found)
    np.testing.assert_allclose(found[0], reference.expected(gains, p[0]))
    assert np.argmax(found) == 1  # 0.55 for the answer 8


TREES = [
    "(S1 (S (NP (X a)) (VP (X b) (. .))))", "(S1 (S (NP (X a) (X b)) (. .)))", "(S1 (S (X a) (X b) (X .)))",
    "(S1 (ADVP (PRT (X a)) (, b) (, .)))", "(S1 (S (S (X a) (X b)) (. .)))", "(S1 (, a) (, b) (. .))",
    "(S1 (S (NP (X a)) (X c) (. .)))", "(())", "(S1 (S (`` a) (X b) (. .)))",
]  # fmt: skip


@pytest.mark.parametrize("punctuation", ["reference", "own", "evalb"])
@given(candidates=st.lists(st.sampled_from(TREES), min_size=1, max_size=5))
def test_trees(punctuation: str, candidates: list[str]) -> None:
    metric = Parseval(punctuation=punctuation)  # type: ignore[arg-type]
    symbols = SymbolTable()
    trees = parse_brackets([text.encode() for text in candidates], symbols)
    found = parse_gains(metric, trees, symbols)
    for r, text in enumerate(candidates):
        gold = parse_brackets([text.encode()], symbols)
        own, rows = metric.stats(gold, trees, symbols)
        np.testing.assert_allclose(found[:, r], metric.gain(rows, own), rtol=0, atol=1e-12)
