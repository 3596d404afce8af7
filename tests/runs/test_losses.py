"""Where a run gains and loses: groups, sums, words and brackets."""

import numpy as np
import pytest
from synthetic_report import SENTENCES

from rerank.metrics.bleu import Bleu
from rerank.metrics.parseval import Parseval
from rerank.readers.nbest import NBestList
from rerank.readers.texts.text_list import TextList
from rerank.readers.trees.treebank import GoldText
from rerank.runs.evaluation import Selections
from rerank.runs.losses import BracketLosses, WordLosses, changes_row, loss_table, size_groups
from rerank.runs.report.measures import MEASURES

F = next(measure for measure in MEASURES if measure.key == "f1")


def nbest(*texts: str) -> NBestList:
    return NBestList("1", "a file", 1, [text.encode() for text in texts], range(len(texts)), np.zeros((len(texts), 1)))


def texts(*candidates: str) -> TextList:
    return TextList(**vars(nbest(*candidates)))


@pytest.mark.parametrize("sizes", [[1], [3, 3, 3], [1, 2, 2, 2, 2, 2, 9], list(range(100)), [5, 1, 4, 1, 3]])
def test_groups_are_in_order_and_cover_all(sizes: list[int]) -> None:
    names, group = size_groups(np.array(sizes))
    assert 1 <= len(names) <= 5
    assert sorted(set(group.tolist())) == list(range(len(names)))
    ends = [(min(own), max(own)) for k in range(len(names)) if (own := np.array(sizes)[group == k].tolist())]
    assert ends == sorted(ends)
    assert names == [f"{low}" if low == high else f"{low}–{high}" for low, high in ends]
    assert size_groups(np.zeros(0, np.int64))[0] == []


def test_where_most_lists_are_full_the_others_are_a_group() -> None:
    names, group = size_groups(np.array([100] * 30 + [12, 99]))
    assert (names, np.bincount(group).tolist()) == (["12–99", "100"], [2, 30])


def test_changes() -> None:
    base, chosen = np.array([0, 5, 10, 15]), np.array([1, 6, 10, 16])
    gains = np.array([0.5, 0.5, 0.5, 0.5]), np.array([0.75, 0.25, 0.5, 0.5])
    cells = ["test", "1 (25.0 %)", "1 (25.0 %)", "1", "1", "4"]
    assert list(changes_row("test", base, chosen, gains).values()) == cells


def test_scores_of_groups_and_what_is_left() -> None:
    metric = Parseval()
    rng = np.random.default_rng(1)
    reference = np.zeros((60, len(metric.reference_columns)))
    reference[:, 0] = 20
    rows = {}
    for name, most in (("base", 12), ("average", 16), ("oracle", 20)):
        rows[name] = np.zeros((60, len(metric.columns)))
        rows[name][:, 0] = rng.integers(most - 4, most, 60)
        rows[name][:, 1] = 20
    sizes = np.repeat([5, 15, 25], 20)
    selections = Selections([str(i) for i in range(60)], metric.signature, reference, rows)
    table = loss_table("length", "words", sizes, metric, F, selections, "average")
    assert table is not None
    assert [row[0] for row in table.rows] == ["5", "15", "25"]
    assert [row[1] for row in table.rows] == ["20"] * 3
    matched = {name: each[:, 0].reshape(3, 20).sum(axis=1) for name, each in rows.items()}
    for k, row in enumerate(table.rows):
        base, chosen, oracle = (100 * matched[name][k] / 400 for name in rows)
        assert row[2:6] == [f"{base:.2f}", f"{chosen:.2f}", f"+{chosen - base:.2f}", f"{oracle:.2f}"]
    left = sum(float(row[6]) for row in table.rows)
    assert left == pytest.approx(100 * (rows["oracle"] - rows["average"])[:, 0].sum() / 1200, abs=0.02)
    assert loss_table("length", "words", np.full(60, 7), metric, F, selections, "average") is None
    assert loss_table("length", "words", sizes, Bleu(), F, selections, "voted") is None


def test_words() -> None:
    losses = WordLosses(2, named=True)
    places = {"base": 0, "chosen": 1, "oracle": 2}
    lists = texts("the the cat", "a cat sat", "the cat sat").changed(references=(b"the cat sat", b"a cat was sat"))
    losses.see(0, lists, places)
    losses.see(1, texts("x x", "x x", "y").changed(references=(b"y",)), places)
    table = losses.table()
    assert table is not None
    assert table.headings == ["word", "missing", "too many", "wrong", "wrong in base", "wrong in oracle"]
    assert table.rows == [["x", "0", "2", "2", "2", "0"], ["y", "1", "0", "1", "1", "0"]]
    assert losses.length.tolist() == [4, 1]  # 3.5 is rounded to even
    assert table.folded
    often = WordLosses(20, named=True)
    for i in range(20):  # "the" is as wrong as it was, "a" is not
        often.see(i, texts("b", "a b" if i else "b", "the a b").changed(references=(b"the a b",)), places)
    table = often.table()
    assert table is not None
    assert [row[0] for row in table.rows] == ["a"]


def test_words_are_not_counted_where_texts_need_not_be_those_of_the_references() -> None:
    losses = WordLosses(1, named=False)
    losses.see(0, texts("long text", "b", "c").changed(source=b"a prompt"), {"base": 0, "chosen": 1, "oracle": 2})
    assert losses.table() is None
    assert (losses.length.tolist(), losses.length_of) == ([2], "source")


def test_brackets() -> None:
    losses = BracketLosses(len(SENTENCES), Parseval())
    for i, (gold, base, chosen) in enumerate(SENTENCES):
        lists = nbest(base, chosen, gold).changed(gold=GoldText(gold.encode(), 1, "gold"))
        losses.see(i, lists, {"base": 0, "chosen": 1, "oracle": 2})
    table = losses.table()
    assert table is not None
    rows = {row[0]: row for row in table.rows}
    assert all(row[5] == "100.00" for row in table.rows), "the oracle is gold"
    assert float(rows["NP"][3]) > float(rows["NP"][2])
    assert sum(float(row[7].split()[0]) for row in table.rows) == pytest.approx(100, abs=1)
    assert losses.length.min() > 0
