"""Texts beside one another: what is marked, against every common subsequence."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rerank.runs.list_page import changes_row
from rerank.runs.report.words import WORDS, MarkedText, common, mark_example

SENTENCES = st.lists(st.sampled_from("abc"), max_size=7)


def longest(a: list[str], b: list[str]) -> int:
    """The length of the longest common subsequence, by trying all."""
    others = {tuple(b[i] for i in places) for n in range(len(b) + 1) for places in combinations(range(len(b)), n)}
    return max(n for n in range(len(a) + 1) for some in combinations(a, n) if some in others)


@given(SENTENCES, SENTENCES)
def test_a_common_subsequence_is_one_and_a_longest(a: list[str], b: list[str]) -> None:
    pairs = common(a, b)
    assert all(a[i] == b[j] for i, j in pairs)
    assert all(i < k and j < m for (i, j), (k, m) in pairwise(pairs))
    assert len(pairs) == longest(a, b)


def marked(text: MarkedText) -> list[tuple[str, str]]:
    return [(piece.text, piece.mark) for piece in text.pieces]


def test_marks_of_both_texts() -> None:
    source, gold, base, chosen = mark_example("ein Mann geht", ["a man walks here"], "man a walks", "a man goes here")
    assert [text.title for text in (source, gold, base, chosen)] == ["Source", "Reference", "Base", "Chosen"]
    assert marked(source) == [("ein Mann geht", "")]
    assert marked(chosen) == [("a man", ""), ("goes", "×"), ("here", "")]
    assert sum(piece.mark == "×" for piece in base.pieces) == 1
    assert marked(gold)[-2:] == [("walks", "−C"), ("here", "−B")]
    assert {piece.kind for text in (gold, base, chosen) for piece in text.pieces} == {"", "wrong", "missed"}


def test_the_nearest_reference_counts_and_the_first_of_equals() -> None:
    texts = mark_example(None, ["a b c d", "a b", "b a"], "a b", "c d")
    assert [text.title for text in texts] == ["Reference 1", "Reference 2", "Reference 3", "Base", "Chosen"]
    assert marked(texts[0]) == [("a b", "−C"), ("c d", "")]
    assert marked(texts[1]) == [("a b", "")]
    assert marked(texts[3]) == [("a b", "")]


def test_equal_choices_are_one_text() -> None:
    _, both = mark_example(None, ["a"], "b", "b")
    assert (both.role, marked(both)) == ("both", [("b", "×")])


@pytest.mark.parametrize("references", [[], [""]])
def test_without_words_to_compare(references: list[str]) -> None:
    texts = mark_example(None, references, "a", "")
    assert marked(texts[-1]) == []
    assert marked(texts[-2]) == [("a", "×" if references else "")]


def test_long_texts_are_cut() -> None:
    *_, both = mark_example(None, ["w " * 10 * WORDS], "w " * 3 * WORDS, "w " * 3 * WORDS)
    assert both.pieces[0].text.split() == ["w"] * WORDS + ["…"]


def test_changes() -> None:
    base, chosen = np.array([0, 5, 10, 15]), np.array([1, 6, 10, 16])
    gains = np.array([0.5, 0.5, 0.5, 0.5]), np.array([0.75, 0.25, 0.5, 0.5])
    cells = ["test", "1 (25.0 %)", "1 (25.0 %)", "1", "1", "4"]
    assert list(changes_row("test", base, chosen, gains).values()) == cells
