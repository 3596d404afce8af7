"""Texts of one list next to one another, with the words in which they differ from a reference marked.

A word of a text that is not in the longest common subsequence with its nearest reference gets ×; a word of a reference
gets −B where the base text lacks it and −C where the chosen one does. The nearest reference is the one that takes the
fewest inserted or deleted words, the first of several.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np

WORDS = 2_000  # of a text at most; tables for longer ones would fill the memory
WRONG = "×"


class MarkedWords(NamedTuple):
    """Consecutive words with the same mark, which is empty where there is none."""

    text: str
    mark: str

    @property
    def kind(self) -> str:
        """The class that it is shown in: "wrong", "missed" or none."""
        return "" if not self.mark else "wrong" if self.mark == WRONG else "missed"


class MarkedText(NamedTuple):
    """A text with its heading and its role (source, gold, base, chosen, both)."""

    role: str
    title: str
    pieces: Sequence[MarkedWords]


def mark_example(source: str | None, references: Sequence[str], base: str, chosen: str) -> list[MarkedText]:
    """The texts of one list from source to chosen; base and chosen are one if they are equal.

    Without references nothing is marked.
    """
    golds = [_words(text) for text in references]
    missed: list[list[str]] = [[""] * len(gold) for gold in golds]
    shown = []
    for letter, role, title, text in (("B", "base", "Base", base), ("C", "chosen", "Chosen", chosen)):
        words = _words(text)
        marks = [""] * len(words)
        if golds:
            shared = [common(words, gold) for gold in golds]
            place = min(range(len(golds)), key=lambda k: len(golds[k]) - 2 * len(shared[k]))  # the nearest
            marks = [WRONG] * len(words)
            lacked = set(range(len(golds[place])))
            for i, j in shared[place]:
                marks[i] = ""
                lacked.discard(j)
            for j in lacked:
                missed[place][j] += letter
        shown.append(MarkedText(role, title, _pieces(words, marks)))
    if base == chosen:
        shown = [MarkedText("both", "Base and chosen", shown[0].pieces)]
    rows = [] if source is None else [MarkedText("source", "Source", _pieces(_words(source), []))]
    for number, (gold, letters) in enumerate(zip(golds, missed, strict=True), start=1):
        title = "Reference" if len(golds) == 1 else f"Reference {number}"
        rows.append(MarkedText("gold", title, _pieces(gold, [letter and f"−{letter}" for letter in letters])))
    return [*rows, *shown]


def common(a: Sequence[str], b: Sequence[str]) -> list[tuple[int, int]]:
    """A longest common subsequence as pairs of places, in order."""
    codes = {word: code for code, word in enumerate(dict.fromkeys([*a, *b]))}
    other = np.array([codes[word] for word in b], np.int64)
    # length[i, j]: that of the longest one of a[:i] and b[:j]
    length = np.zeros((len(a) + 1, len(b) + 1), np.int32)
    for i, word in enumerate(a):
        with_word = length[i, :-1] + (other == codes[word])
        length[i + 1, 1:] = np.maximum.accumulate(np.maximum(length[i, 1:], with_word))
    pairs, i, j = [], len(a), len(b)
    while i and j:
        if length[i, j] == length[i - 1, j]:
            i -= 1
        elif length[i, j] == length[i, j - 1]:
            j -= 1
        else:
            i, j = i - 1, j - 1
            pairs.append((i, j))
    return pairs[::-1]


def _words(text: str) -> list[str]:
    words = text.split()
    return words if len(words) <= WORDS else [*words[:WORDS], "…"]


def _pieces(words: Sequence[str], marks: Sequence[str]) -> list[MarkedWords]:
    """The words, joined where marks are equal; without ``marks`` all of them are empty."""
    pairs = zip(words, marks or [""] * len(words), strict=True)
    return [
        MarkedWords(" ".join(word for word, _ in run), mark) for mark, run in groupby(pairs, key=lambda pair: pair[1])
    ]
