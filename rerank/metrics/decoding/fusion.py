"""One tree of many: the brackets that enough of a list's trees have, by weight.

Sagae & Lavie (2006) and Choe, McClosky & Charniak (2015): a bracket is kept if the trees that have it weigh more than a
threshold of one half or more. Any two such brackets are in one tree together, so that no two cross and the outcome is
a tree, though perhaps none of the list.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from rerank.base.errors import DataError
from rerank.base.interrupts import pieces
from rerank.data.symbols import SymbolTable
from rerank.metrics.decoding.bracket_kernel import (
    Brackets,
    add_weights,
    drop_crossing,
    fuse_trees,
    number_brackets,
    read_leaves,
)
from rerank.metrics.parseval import EMPTY_TAG
from rerank.metrics.parseval_kernel import DELETED_BRACKET, EMPTY, BracketLabels, workspace
from rerank.readers.nbest import ROOTS
from rerank.readers.trees.trees import FOREST, Trees

LEAST = 0.5  # the smallest threshold


class VotedBracket(NamedTuple):
    """A bracket, the weight behind it, and which candidates have it (places in the list)."""

    label: str
    start: int  # its first word, from 0
    end: int  # one past its last
    weight: float
    candidates: list[int]
    by: tuple[tuple[str, float], ...] = ()  # where that is learned: the columns that made it so, the largest first

    def as_object(self) -> dict[str, Any]:
        """The bracket as commands show it: words and candidates counted from 1."""
        words = {"first_word": self.start + 1, "last_word": self.end}
        votes = {"probability": self.weight, "candidates": [y + 1 for y in self.candidates]}
        return {"label": self.label} | words | votes | ({"by": dict(self.by)} if self.by else {})


class Fusion:
    """The trees of a list (T candidates) for fusion.

    Traces are left out. A candidate with other words than the first that has any, such as a failed parse, does not take
    part: ``left_out`` says how many do not, ``used`` (bool [T]) which do. Of W words (``words``, int32 [W]), ``tags``
    (int32 [W, T]) has the symbols of their tags.
    """

    def __init__(self, trees: Trees, symbols: SymbolTable) -> None:
        self._trees, self.symbols = trees, symbols
        self._table = _plain_table(symbols)
        self._brackets: Brackets | None = None
        T, words = trees.first.size - 1, read_words_of(trees, self._table)
        full = np.flatnonzero(words.counts)
        self.used = np.zeros(T, np.bool_)
        self.words, self.tags = np.zeros(0, np.int32), np.zeros((0, T), np.int32)
        if full.size:
            W = int(words.counts[full[0]])
            leaves = words.leaves[:, :W]
            self.words = trees.word[leaves[full[0]]]
            self.used = (words.counts == W) & (trees.word[leaves] == self.words).all(axis=1)
            self.tags = np.ascontiguousarray(trees.label[leaves].T)
        top = trees.label[trees.first[:-1]]
        is_root = (self._table.flags[top] & DELETED_BRACKET != 0) & (trees.word[trees.first[:-1]] < 0)
        self._roots = np.where(is_root, top, -1).astype(np.int32)

    @property
    def left_out(self) -> int:
        """The number of candidates with other words, or none."""
        return int(self.used.size - np.count_nonzero(self.used))

    @property
    def brackets(self) -> Brackets:
        """Their B brackets, over words that are no traces."""
        if self._brackets is None:
            trees, every = self._trees, np.zeros(0, np.bool_)
            found = bracket_room(self.used.size, int(np.count_nonzero(trees.word < 0)))
            B = number_brackets(trees, self.used, self._table, every, workspace(trees, trees).test, found)
            names = ("label", "start", "end", "copy", "last")
            self._brackets = found._replace(**{name: getattr(found, name)[:B] for name in names})
        return self._brackets

    def place_of(self, tree: Trees, scores: np.ndarray) -> int | None:
        """The candidate that a fused tree is, of equal ones the one with the best score (float64 [T]); None: none."""
        n, first = tree.label.size, self._trees.first
        alike = np.flatnonzero(np.diff(first) == n)
        nodes = first[alike, None] + np.arange(n)
        for name in ("label", "word", "size"):
            same = (getattr(self._trees, name)[nodes] == getattr(tree, name)).all(axis=1)
            alike, nodes = alike[same], nodes[same]
        return int(alike[np.argmax(scores[alike])]) if alike.size else None

    def weights(self, weights: np.ndarray) -> np.ndarray:
        """float64 [A, B]: the weight of every bracket under weights (float64 [A, T]) of the candidates."""
        brackets = self.brackets
        total = np.zeros((weights.shape[0], brackets.label.size))
        add_weights(brackets.first, brackets.bracket, weights, total)
        return total

    def normalised(self, weights: np.ndarray) -> np.ndarray:
        """float64 [A, T]: weights of the candidates that take part, with sum 1; 0 for the others."""
        taken = np.where(self.used, weights, 0.0)
        return np.asarray(taken / taken.sum(axis=1, keepdims=True))

    def trees(self, weights: np.ndarray, thresholds: np.ndarray, judged: np.ndarray | None = None) -> Trees:
        """The A · H trees of A weightings (float64 [A, T], any positive sum) and H thresholds, in this order.

        judged: the probabilities of all brackets (float64 [A, B]), in place of the weight of the trees that have them.
        As two that cross can both be probable, the more probable stays, whatever the threshold.
        """
        least = LEAST if judged is None else 0.0
        if not (thresholds >= least).all() or not (thresholds < 1).all():
            raise DataError(f"found the threshold {thresholds.min():g}; expected one from {least} to below 1")
        if not self.used.any():
            raise DataError("no candidate has words")
        weights, brackets = self.normalised(weights), self.brackets
        total = self.weights(weights) if judged is None else np.stack([self.without_crossing(row) for row in judged])
        W, B, number = self.words.size, brackets.label.size, weights.shape[0] * thresholds.size
        longest = int(np.diff(brackets.first).max(initial=0))
        most = min(B, 2 * longest) if judged is None else B  # of kept brackets, twice the mean of a tree at most
        room = number * (W + 1 + most)
        out = Trees(np.zeros(number + 1, np.int64), *(np.empty(room, np.int32) for _ in range(6)))
        order = np.lexsort((-brackets.end, brackets.start))
        scratch = np.empty(self.used.size), np.empty(W, np.int32), np.empty(B, np.int32)
        fuse_trees(
            brackets, order, self.used, self._roots, self.tags, self.words, weights, total, thresholds, *scratch, out
        )
        return Trees(out.first, *(array[: out.first[-1]] for array in out[1:]))

    def without_crossing(self, judged: np.ndarray) -> np.ndarray:
        """Probabilities of brackets (float64 [B]), 0 for those that cross a more probable one that stays."""
        total, B = np.array(judged), judged.size
        order, kept, count = np.argsort(-total, kind="stable"), np.empty(B, np.int32), 0
        for first, last in pieces(B, 2 * self.words.size):
            count = drop_crossing(self.brackets, order, first, last, total, kept, count)
        return total

    def votes(
        self, weights: np.ndarray, judged: np.ndarray | None = None,
        by: Sequence[tuple[tuple[str, float], ...]] | None = None,
    ) -> list[VotedBracket]:  # fmt: skip
        """Every bracket with the candidates that have it, the heaviest first; ``weights``: float64 [T].

        judged: probabilities of the brackets (float64 [B]) in place of weights; by: what made each so probable.
        """
        brackets, normalised = self.brackets, self.normalised(weights[None])
        owner = np.repeat(np.arange(self.used.size), np.diff(brackets.first))
        order, total = np.argsort(brackets.bracket[: owner.size], kind="stable"), self.weights(normalised)[0]
        total = total if judged is None else judged
        ends = np.cumsum(np.bincount(brackets.bracket[: owner.size], minlength=total.size))
        groups = np.split(owner[order], ends)[: total.size]  # none where no tree has a bracket
        columns = brackets.label, brackets.start, brackets.end, total
        votes = [
            VotedBracket(self.symbols.text(int(label)), int(start), int(end), float(weight), members.tolist(), own_by)
            for label, start, end, weight, members, own_by in zip(
                *columns, groups, by or [()] * total.size, strict=True
            )
        ]
        return sorted(votes, key=lambda vote: (-vote.weight, vote.start, -vote.end, vote.label))


class Words(NamedTuple):
    """The words of T trees that are no traces; W is the number of words of the longest."""

    counts: np.ndarray  # int64 [T]
    leaves: np.ndarray  # int64 [T, W]: their nodes, -1 after the last
    keep: np.ndarray  # bool [T, W]: which of them their own tags keep


def read_words_of(trees: Trees, table: BracketLabels) -> Words:
    """The words of trees, by what ``table`` says of their tags."""
    T, leaves = trees.first.size - 1, np.concatenate([[0], np.cumsum(trees.word >= 0)])
    most = int(np.diff(leaves[trees.first]).max(initial=0))
    words = Words(np.zeros(T, np.int64), np.full((T, most), -1, np.int64), np.zeros((T, most), np.bool_))
    read_leaves(trees, table, workspace(trees, trees).test, words.counts, words.leaves, words.keep)
    return words


def bracket_room(trees: int, brackets: int) -> Brackets:
    """Room for this many brackets of this many trees."""
    bracket, label, start, end, copy, last = np.empty((6, brackets), np.int32)
    slot = np.empty(2 << brackets.bit_length(), np.int32)
    return Brackets(np.zeros(trees + 1, np.int64), bracket, label, start, end, copy, last, slot)


def _plain_table(symbols: SymbolTable) -> BracketLabels:
    """Symbols as they are: traces are no words, and labels of roots no brackets."""
    known = [symbols.intern(text) for text in (EMPTY_TAG, FOREST, *ROOTS)]
    flags = np.zeros(len(symbols), np.uint8)
    flags[known[0]], flags[known[1:]] = EMPTY, DELETED_BRACKET
    same = np.arange(len(symbols), dtype=np.int32)
    return BracketLabels(flags, same, same, same)
