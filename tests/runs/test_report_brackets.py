"""Differing brackets, by hand and against the metric."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rerank.base.errors import DataError
from rerank.data.symbols import SymbolTable
from rerank.metrics.parseval import Parseval
from rerank.readers.trees.trees import parse_brackets
from rerank.runs.report.trees import counted_brackets, differences, read_trees


def marked(gold, tree):
    """(labels missed in gold, labels wrong in the tree), with their words, from left to right."""
    a, b = read_trees([gold, tree])
    missed, wrong = differences(a, b)
    return [named(a, node) for node in sorted(missed)], [named(b, node) for node in sorted(wrong)]


def named(tree, node):
    first, last = tree.spans()[node]
    return f"{tree.labels[node]} {' '.join(tree.words[leaf] for leaf in tree.leaves[first:last])}"


class TestByHand:
    def test_attachment(self):
        gold = "(S1 (S (NP (PRP I)) (VP (VBD saw) (NP (NN it)) (PP (IN in) (NP (NN May))))))"
        tree = "(S1 (S (NP (PRP I)) (VP (VBD saw) (NP (NP (NN it)) (PP (IN in) (NP (NN May)))))))"
        assert marked(gold, tree) == ([], ["NP it in May"])
        assert marked(tree, gold) == (["NP it in May"], [])

    def test_brackets_are_matched_one_to_one(self):
        gold, tree = "(S1 (NP (NP (NN a) (NN b))))", "(S1 (NP (NN a) (NN b)))"
        assert marked(gold, tree) == (["NP a b"], [])
        a, _ = read_trees([gold, tree])
        assert differences(*read_trees([gold, tree]))[0] == {2}, "the lower one of two equal brackets is left over"
        assert a.labels[:3] == ["S1", "NP", "NP"]

    def test_gold_decides_what_punctuation_is(self):
        gold, tree = "(S1 (S (NP (NN a)) (: -) (NN b)))", "(S1 (S (NP (NN a) (HYPH -)) (NN b)))"
        assert marked(gold, tree) == ([], [])
        assert marked(tree, gold) == (["NP a -"], ["NP a"])

    def test_empty_nodes_are_gone(self):
        gold = "(S1 (S (NP-SBJ (-NONE- *)) (VP (VB Go) (NP (-NONE- *T*) (NN home)))))"
        assert marked(gold, "(S1 (S (VP (VB Go) (NP (NN home)))))") == ([], [])
        assert read_trees([gold])[0].labels == ["S1", "S", "VP", "VB", "NP", "NN"]


class TestReading:
    def test_a_tree_of_empty_nodes_alone_stays(self):
        assert read_trees(["(S1 (NP (-NONE- *)))"])[0].labels == ["S1", "NP", "-NONE-"]

    def test_what_is_not_a_tree(self):
        with pytest.raises(DataError, match=r"examples: list demo-3: the tree is not closed"):
            read_trees(["(S1 (NN a))", "(S1 (NN a)"], "demo-3")


LABELS = st.sampled_from(["S", "NP", "NP-SBJ", "VP", "ADVP", "PRT", "X", "S1", ","])
TAGS = st.sampled_from(["NN", "VB", ",", ".", "''"])


@st.composite
def bracketed(draw, words, depth=4):
    """A random tree over ``words``, with tags of its own and an empty node here and there."""

    def over(first, last, level):
        if last - first == 1 and (level == 0 or draw(st.booleans())):
            return f"({draw(TAGS)} {words[first]})"
        label = draw(LABELS)
        if level == 0:
            inside = "".join(f"({draw(TAGS)} {word})" for word in words[first:last])
        else:
            cuts = sorted(draw(st.sets(st.integers(first + 1, last - 1), max_size=2))) if last - first > 1 else []
            bounds = [first, *cuts, last]
            inside = "".join(over(a, b, level - 1) for a, b in pairwise(bounds))
        empty = "(NP (-NONE- *))" if draw(st.integers(0, 9)) == 0 else ""
        return f"({label} {empty}{inside})"

    return f"(S1 {over(0, len(words), depth)})"


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_counts_are_those_of_the_metric(data):
    words = [f"w{i}" for i in range(data.draw(st.integers(1, 7)))]
    gold, tree = data.draw(bracketed(words)), data.draw(bracketed(words))
    metric, symbols = Parseval(), SymbolTable()
    reference, rows = metric.stats(*(parse_brackets([text.encode()], symbols) for text in (gold, tree)), symbols)
    a, b = read_trees([gold, tree])
    counted = [a.labels[leaf] not in metric.delete for leaf in a.leaves]
    in_gold, in_tree = len(counted_brackets(a, counted)), len(counted_brackets(b, counted))
    missed, wrong = differences(a, b)
    assert in_gold == reference[metric.reference_columns.index("gold")]
    assert in_tree == rows[0, metric.columns.index("test")]
    assert in_gold - len(missed) == in_tree - len(wrong) == rows[0, metric.columns.index("matched")]
