"""What holds for all metrics of texts: rows add up to the figures of whole corpora, on random and on real lists."""

import logging

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies_text import encode, texts_with_references

from rerank.base.errors import DataError
from rerank.metrics.bleu import Bleu
from rerank.metrics.chrf import Chrf
from rerank.metrics.metric import chosen_rows
from rerank.metrics.text import Ter, TextMetric
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
    assert metric.report(stats, reference) == pytest.approx(metric.corpus(texts, [r for _, r in lists]), abs=1e-9)


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
