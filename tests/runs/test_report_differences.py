"""What is marked in trees and texts: by hand, and against the metric; and that trees are drawn whole."""

import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic_report import SENTENCES

from rerank.base.errors import DataError
from rerank.data.symbols import SymbolTable
from rerank.metrics.parseval import Parseval
from rerank.readers.trees.trees import parse_brackets
from rerank.runs.report.differences import (
    MAX_WORDS,
    brackets_of,
    compare_texts,
    compare_trees,
    differences,
    draw,
    read_trees,
)


def marked(gold, tree):
    """(brackets missed in gold, brackets wrong in the tree), with their words, from left to right."""
    a, b = read_trees([gold, tree])
    missed, wrong = differences(a, b)
    return [named(a, k) for k in sorted(missed)], [named(b, k) for k in sorted(wrong)]


def named(tree, k):
    words = [node.word for node in tree.values() if node.word is not None]
    return f"{tree[k].label} {' '.join(words[tree[k].start : tree[k].end])}"


def marks(page):
    """The marked parts of trees or texts, by the title above each."""
    root = ET.fromstring(str(page))
    found = {}
    for part in root.iter():
        if part.tag in ("figcaption", "dt"):
            marked_parts = found.setdefault(part.text, [])
        if part.tag == "span" and part.get("class") in ("wrong", "missed"):
            assert (part.get("class") == "wrong") == (part[0].text == "×")
            marked_parts.append(f"{part.text}{part[0].text}")
    return found


class TestBrackets:
    def test_attachment(self):
        gold = "(S1 (S (NP (PRP I)) (VP (VBD saw) (NP (NN it)) (PP (IN in) (NP (NN May))))))"
        tree = "(S1 (S (NP (PRP I)) (VP (VBD saw) (NP (NP (NN it)) (PP (IN in) (NP (NN May)))))))"
        assert marked(gold, tree) == ([], ["NP it in May"])
        assert marked(tree, gold) == (["NP it in May"], [])

    def test_brackets_are_matched_one_to_one(self):
        trees = read_trees(["(S1 (NP (NP (NN a) (NN b))))", "(S1 (NP (NN a) (NN b)))"])
        assert differences(*trees) == ({2}, set()), "the lower one of two equal brackets is left over"

    def test_gold_decides_what_punctuation_is(self):
        gold, tree = "(S1 (S (NP (NN a)) (: -) (NN b)))", "(S1 (S (NP (NN a) (HYPH -)) (NN b)))"
        assert marked(gold, tree) == ([], [])
        assert marked(tree, gold) == (["NP a -"], ["NP a"])

    def test_empty_nodes_are_gone_unless_they_are_all(self):
        gold = "(S1 (S (NP-SBJ (-NONE- *)) (VP (VB Go) (NP (-NONE- *T*) (NN home)))))"
        assert marked(gold, "(S1 (S (VP (VB Go) (NP (NN home)))))") == ([], [])
        assert [node.label for node in read_trees([gold])[0].values()] == ["S1", "S", "VP", "VB", "NP", "NN"]
        assert [node.label for node in read_trees(["(S1 (NP (-NONE- *)))"])[0].values()] == ["S1", "NP", "-NONE-"]

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
    counted = [node.label not in metric.delete for node in a.values() if node.word is not None]
    in_gold, in_tree = len(brackets_of(a, counted)), len(brackets_of(b, counted))
    missed, wrong = differences(a, b)
    assert in_gold == reference[metric.reference_columns.index("gold")]
    assert in_tree == rows[0, metric.columns.index("test")]
    assert in_gold - len(missed) == in_tree - len(wrong) == rows[0, metric.columns.index("matched")]


class TestTrees:
    def test_marks_of_a_sentence(self):
        page = compare_trees(
            "(S1 (S (NP (NN a) (NN b)) (VP (VB c) (NP (NN d) (NN e)))))",
            "(S1 (S (NN a) (NN b) (VP (VB c) (ADJP (NN d) (NN e)))))",
            "(S1 (S (NP (NN a) (NN b)) (VB c) (NP (NN d) (NN e))))",
        )
        assert marks(page) == {"Gold": ["NP−B", "VP−C", "NP−B"], "Base": ["ADJP×"], "Chosen": []}

    def test_equal_choices_are_one_tree(self):
        assert list(marks(compare_trees(*SENTENCES[3]))) == ["Gold", "Base and chosen"]

    @pytest.mark.parametrize("sentence", SENTENCES)
    def test_a_drawing_is_the_tree(self, sentence):
        for tree in read_trees(sentence):
            text = str(draw(tree, {})).replace("<li>", "(").replace('<li class="leaf"><small>', "(")
            for tag, bracket in {"</small>": "", "<ul>": " ", "</ul>": "", "</li>": ")"}.items():
                text = text.replace(tag, bracket)
            symbols = SymbolTable()
            read = parse_brackets([ET.fromstring(f"<x>{text}</x>").text.encode()], symbols)
            assert [symbols.text(label) for label in read.label] == [node.label for node in tree.values()]
            assert [max(k, -1) for k in read.parent] == [[*tree].index(node.parent) if node.parent >= 0 else -1
                                                         for node in tree.values()]  # fmt: skip
            words = [symbols.text(word) for word in read.word if word >= 0]
            assert words == [node.word for node in tree.values() if node.word is not None]

    def test_a_failed_parse_is_drawn_as_a_trace(self):
        assert "<small>-NONE-</small>" in compare_trees("(S (NP (NN a)) (NN b))", "(())", "(S (NP (NN a)) (NN b))")


class TestTexts:
    def test_both_are_marked(self):
        page = compare_texts("ein Mann geht", ["a man walks here"], "man a walks", "a man goes here")
        assert marks(page) == {
            "Source": [],
            "Reference": ["a−B", "walks−C", "here−B"],
            "Base": ["a×"],
            "Chosen": ["goes×"],
        }

    def test_the_nearest_reference_counts_and_the_first_of_equals(self):
        found = marks(compare_texts(None, ["a b c d", "a b", "b a"], "a b", "c d"))
        assert found == {
            "Reference 1": ["a b−C"], "Reference 2": [], "Reference 3": [], "Base": [], "Chosen": []
        }  # fmt: skip

    def test_equal_choices_are_one_text(self):
        assert marks(compare_texts(None, ["a"], "b", "b")) == {"Reference": ["a−BC"], "Base and chosen": ["b×"]}

    def test_without_words_to_compare(self):
        assert marks(compare_texts(None, [], "a", "")) == {"Base": [], "Chosen": []}
        page = compare_texts(None, [""], "a", "")
        assert marks(page) == {"Reference": [], "Base": ["a×"], "Chosen": []}
        assert page.count("(no words)") == 2

    def test_long_texts_are_cut(self):
        assert compare_texts(None, [], "w " * MAX_WORDS * 3, "v").count("w ") == MAX_WORDS

    def test_everything_is_escaped(self):
        page = compare_texts("ein & mann", ["a <b> man"], "the man", "a <b> man")
        assert "ein &amp; mann" in page
        assert "a &lt;b&gt;" in page
        assert "<b>" not in page
