"""Brackets by label add up to PARSEVAL's own."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from synthetic_report import SENTENCES

from rerank.data.symbols import SymbolTable
from rerank.metrics.parseval import Parseval
from rerank.metrics.parseval_by_label import LabelCount, count_by_label
from rerank.metrics.parseval_kernel import GOLD, GOLD_SHIFT, MATCHED, TEST
from rerank.readers.trees.trees import parse_brackets

OTHER = "(S1 (S (NP (PRP They)) (VP (VBD watched) (NP (DT the) (NN heron)))))"  # not the words of the first sentence
BOTH = [(gold, tree) for gold, *trees in SENTENCES for tree in trees] + [(SENTENCES[0][0], OTHER)]


def counted(metric: Parseval, pairs: Sequence[tuple[str, str]]) -> tuple[dict[str, LabelCount], np.ndarray, np.ndarray]:
    symbols = SymbolTable()
    gold, trees = (parse_brackets([pair[k].encode() for pair in pairs], symbols) for k in (0, 1))
    reference, rows = metric.rows(gold, trees, np.arange(len(pairs) + 1), symbols)
    return count_by_label(metric, gold, trees, symbols, metric.valid(rows)), reference, rows


@pytest.mark.parametrize("metric", [Parseval(), Parseval(punctuation="own"), Parseval(labeled=False)])
def test_sums(metric: Parseval) -> None:
    found, reference, rows = counted(metric, BOTH)
    assert rows[-1, GOLD_SHIFT] < 0 or metric.punctuation == "own", "the last tree is refused"
    valid = metric.valid(rows)
    total = LabelCount(0, 0, 0)
    for each in found.values():
        total = each + total
    expected = reference[valid, GOLD].sum(), rows[valid, TEST].sum(), rows[valid, MATCHED].sum()
    assert total == tuple(expected)
    assert total.matched < total.gold


def test_labels() -> None:
    pair = "(S1 (S (NP-SBJ (NN a)) (VP (VB b) (PRT (RP c)))))", "(S1 (S (NP (NN a)) (ADVP (VB b) (RP c))))"
    found, _, _ = counted(Parseval(), [pair])
    assert found == {
        "S": LabelCount(1, 1, 1), "NP": LabelCount(1, 1, 1), "VP": LabelCount(1, 0, 0), "ADVP": LabelCount(1, 1, 0),
    }  # fmt: skip
    assert found["VP"].errors == 1
    assert found["ADVP"].f1 == 0.0
    apart, _, _ = counted(replace(Parseval(), equal_labels=()), [pair])
    assert apart["PRT"] == LabelCount(1, 0, 0)
