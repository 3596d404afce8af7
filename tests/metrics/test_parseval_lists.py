"""PARSEVAL of real N-best lists: the published figures of the GUM parses."""

import os
from pathlib import Path

import numpy as np
import pytest
import small

from rerank.data.symbols import SymbolTable
from rerank.metrics.metric import chosen_rows
from rerank.metrics.oracle import base_choice, mean_rows, oracle
from rerank.metrics.parseval import Parseval
from rerank.readers.trees.trees import parse_brackets

SHARED = Path(os.environ.get("RERANK_SHARED", Path(__file__).parents[2].parent / "shared")) / "data" / "parse" / "gum"
# split: base precision, recall, F, exact match, oracle F, F of a random choice (per cent)
FIGURES = {
    "dev": (82.62, 82.64, 82.63, 38.4, 91.25, 77.28),
    "test": (82.39, 82.25, 82.32, 34.6, 91.35, 77.60),
    "train": (83.40, 83.31, 83.36, 39.9, 92.78, 77.16),
}


def read_lists(split: str):
    """(list offsets, base scores, trees of candidates, reference trees) of a split, with a plain loop."""
    lists = [text.split("\n") for text in small.lists_of(SHARED / f"{split}.nbest.gz")]
    base = np.array([float(line) for lines in lists for line in lines[1::2]])
    trees = [line.encode() for lines in lists for line in lines[2::2]]
    gold = [line.encode() for line in small.lines_of(SHARED / f"{split}.gold.gz")]
    return np.cumsum([0, *(len(lines) // 2 for lines in lists)]), base, trees, gold


@pytest.mark.skipif(not SHARED.is_dir(), reason=f"no parse lists at {SHARED}; set RERANK_SHARED")
class TestRealLists:
    @pytest.mark.parametrize("split", FIGURES)
    def test_published_figures(self, split):
        lists, base, texts, golds = read_lists(split)
        metric, symbols = Parseval(), SymbolTable()
        gold, trees = parse_brackets(golds, symbols), parse_brackets(texts, symbols)
        reference, rows = metric.rows(gold, trees, lists, symbols)
        gain = metric.gain(rows, np.repeat(reference, np.diff(lists), axis=0))
        total = reference.sum(axis=0)

        def report(chosen):
            return metric.report(chosen_rows(rows, chosen).sum(axis=0), total)

        plain = report(base_choice(lists, base))
        found = [100 * plain[key] for key in ("precision", "recall", "f1", "exact_match")]
        best = 100 * report(oracle(lists, gain, -np.arange(base.size)))["f1"]  # the first of the best
        blind = 100 * metric.report(mean_rows(lists, rows).sum(axis=0), total)["f1"]
        expected = FIGURES[split]
        assert found[:3] == pytest.approx(expected[:3], abs=0.005)
        assert found[3] == pytest.approx(expected[3], abs=0.05)
        assert [best, blind] == pytest.approx(expected[4:], abs=0.005)
        if split == "test":
            own = Parseval(punctuation="own")
            reference, rows = own.rows(gold, trees, lists, symbols)
            chosen = chosen_rows(rows, base_choice(lists, base))
            assert 100 * own.report(chosen.sum(axis=0), reference.sum(axis=0))["f1"] == pytest.approx(81.87, abs=0.005)
