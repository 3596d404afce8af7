"""Fused trees: those of the formula, and always trees of the same words."""

from collections import Counter

import nltk
import numpy as np
import pytest
import reference_decoding as reference
from fusable import parsed, tree_texts
from hypothesis import given
from hypothesis import strategies as st

from rerank.base.errors import DataError
from rerank.data.symbols import SymbolTable
from rerank.metrics.fusion import Fusion
from rerank.readers.trees.trees import brackets, parse_brackets


@st.composite
def weighted_trees(draw: st.DrawFn) -> tuple[list[str], np.ndarray]:
    """Some trees and their probabilities, equal ones among them."""
    texts = draw(st.lists(tree_texts(), min_size=1, max_size=6))
    weight = draw(st.lists(st.integers(1, 4), min_size=len(texts), max_size=len(texts)))
    return texts, np.array(weight) / sum(weight)


def fused(texts: list[str], p: np.ndarray, *thresholds: float) -> list[nltk.Tree]:
    symbols, trees, _ = parsed(texts)
    found = Fusion(trees, symbols).trees(p[None], np.array(thresholds))
    return [nltk.Tree.fromstring(brackets(found, k, symbols)) for k in range(len(thresholds))]


@given(weighted_trees())
def test_brackets_and_tags_are_those_with_the_weight(given_: tuple[list[str], np.ndarray]) -> None:
    texts, p = given_
    _, _, trees = parsed(texts)
    thresholds = (0.5, 0.6, 0.75, 0.99)
    for threshold, tree in zip(thresholds, fused(texts, p, *thresholds), strict=True):
        assert Counter(span[:3] for span in reference.spans(tree)) == reference.fused_spans(trees, p, threshold)
        assert tree.leaves() == trees[0].leaves()
        assert [tag for _, tag in tree.pos()] == reference.fused_tags(trees, p)


@given(weighted_trees())
def test_nodes_know_their_places(given_: tuple[list[str], np.ndarray]) -> None:
    """The arrays of a fused tree are those that reading its text gives."""
    texts, p = given_
    symbols, trees, _ = parsed(texts)
    found = Fusion(trees, symbols).trees(p[None], np.array([0.5, 0.7]))
    again = parse_brackets([brackets(found, k, symbols).encode() for k in range(2)], symbols)
    for k in range(2):
        own, other = (slice(each.first[k], each.first[k + 1]) for each in (found, again))
        for name in ("label", "word", "size", "start", "end"):
            assert getattr(found, name)[own].tolist() == getattr(again, name)[other].tolist()
        parents = [each.parent[part] - each.first[k] for each, part in ((found, own), (again, other))]
        assert parents[0][1:].tolist() == parents[1][1:].tolist()


def test_the_order_of_a_unary_chain_is_that_of_more_weight() -> None:
    texts = ["(S1 (S (A (B (X 0) (X 1)))))", "(S1 (S (B (A (X 0) (X 1)))))"]
    for p in ([0.6, 0.4], [0.4, 0.6]):
        (tree,) = fused(texts, np.array(p), 0.5)
        assert str(tree) == str(nltk.Tree.fromstring(texts[int(np.argmax(p))]))


def test_who_votes_for_a_bracket() -> None:
    symbols, trees, _ = parsed(["(S1 (S (A (X 0)) (X 1)))", "(S1 (S (X 0) (X 1)))", "(S1 (S (A (X 0)) (X 1)))"])
    votes = Fusion(trees, symbols).votes(np.array([1.0, 2.0, 1.0]))
    assert [tuple(vote) for vote in votes] == [("S", 0, 2, 1.0, [0, 1, 2]), ("A", 0, 1, 0.5, [0, 2])]


def test_candidates_with_other_words_do_not_vote() -> None:
    texts = ["(())", "(S1 (A (X 0) (X 1)))", "(S1 (B (X 0)))", "(S1 (B (X 0) (X 2)))", "(S1 (C (X 0) (X 1)))"]
    symbols = SymbolTable()
    fusion = Fusion(parse_brackets([text.encode() for text in texts], symbols), symbols)
    assert fusion.left_out == 3
    assert fusion.used.tolist() == [False, True, False, False, True]
    found = fusion.trees(np.array([[0.1, 0.01, 0.5, 0.3, 0.02]]), np.array([0.5]))
    assert brackets(found, 0, symbols) == "(S1 (C (X 0) (X 1)))"


def test_a_threshold_below_one_half_is_refused() -> None:
    symbols, trees, _ = parsed(["(S1 (A (X 0)))"])
    for threshold in (0.49, 1.0, float("nan")):
        with pytest.raises(DataError, match=r"expected one from 0\.5"):
            Fusion(trees, symbols).trees(np.ones((1, 1)), np.array([threshold]))
    symbols = SymbolTable()
    with pytest.raises(DataError, match="no candidate has words"):
        Fusion(parse_brackets([b"(())"], symbols), symbols).trees(np.ones((1, 1)), np.array([0.5]))
