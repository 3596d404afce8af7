"""PARSEVAL's brackets label by label: which constituents a parser finds, and which it does not."""

from typing import NamedTuple

import numpy as np

from rerank.data.symbols import SymbolTable
from rerank.metrics.parseval import Parseval, cut_label, equivalents
from rerank.metrics.parseval_kernel import DELETED_BRACKET, DELETED_TAG, EMPTY, BracketLabels
from rerank.readers.trees.trees import Trees


class LabelCount(NamedTuple):
    """Brackets of one label: in the gold trees, in the others, and in both."""

    gold: int
    test: int
    matched: int

    def __add__(self, other: tuple[object, ...]) -> "LabelCount":
        """Counts over more trees."""
        return LabelCount(*(a + b for a, b in zip(self, other, strict=True)))  # type: ignore[operator]

    @property
    def errors(self) -> int:
        """Brackets that are missing, and brackets that should not be there."""
        return self.gold + self.test - 2 * self.matched

    @property
    def f1(self) -> float:
        """F of this label; 0 if there is no such bracket."""
        return 2.0 * self.matched / max(self.gold + self.test, 1)


def count_by_label(
    metric: Parseval, gold: Trees, trees: Trees, symbols: SymbolTable, valid: np.ndarray
) -> dict[str, LabelCount]:
    """The brackets of ``trees`` against those of ``gold``, tree by tree, for the trees that are ``valid`` (bool [T]).

    Labels are those that ``metric`` tells apart. Which words count is decided by the gold tags, or by each tree's own
    where the metric says so; quote marks that only one tree deletes (``evalb``) are not looked at again.
    """
    table = metric.table(symbols)
    sides = [_Side(item, table, valid) for item in (gold, trees)]
    if metric.punctuation == "reference":
        sides[1].kept[sides[1].words] = sides[0].kept[sides[0].words]
    longest = 1 + max(int(np.diff(item.first).max(initial=0)) for item in (gold, trees))
    kinds = int(table.bracket.max(initial=0)) + 1
    brackets = [side.brackets(table, longest, kinds) for side in sides]
    keys, inverse = np.unique(np.concatenate(brackets), return_inverse=True)
    counts = [
        np.bincount(part, minlength=keys.size) for part in (inverse[: brackets[0].size], inverse[brackets[0].size :])
    ]
    label = keys // (longest * longest) % kinds
    sums = [np.bincount(label, item, kinds).astype(np.int64) for item in (*counts, np.minimum(*counts))]
    names = _names(metric, table, symbols, np.concatenate([gold.label, trees.label]))
    return {names[k]: LabelCount(*(int(item[k]) for item in sums)) for k in np.flatnonzero(sums[0] + sums[1]).tolist()}


class _Side:
    """Trees with their leaves: which are words of valid trees, and which of those count by their own tags."""

    def __init__(self, trees: Trees, table: BracketLabels, valid: np.ndarray) -> None:
        self.trees = trees
        self.tree = np.repeat(np.arange(valid.size), np.diff(trees.first))
        leaves = np.flatnonzero(trees.word >= 0)
        flags = table.flags[trees.label[leaves]]
        self.words = valid[self.tree[leaves]] & (flags & EMPTY == 0)
        self.kept = self.words & (flags & DELETED_TAG == 0)
        self.valid = valid[self.tree]
        self.leaves = np.concatenate([[0], np.cumsum(np.bincount(self.tree[leaves], minlength=valid.size))])

    def brackets(self, table: BracketLabels, longest: int, kinds: int) -> np.ndarray:
        """int64 [brackets]: every bracket as one number, made of its tree, label, first kept word and the one past its
        last."""
        edge = np.concatenate([[0], np.cumsum(self.kept)])
        at = self.leaves[self.tree]
        start, end = (edge[at + side] - edge[at] for side in (self.trees.start, self.trees.end))
        label = self.trees.label
        counted = self.valid & (self.trees.word < 0) & (table.flags[label] & DELETED_BRACKET == 0) & (end > start)
        keys = ((self.tree * kinds + table.bracket[label]) * longest + start) * longest + end
        return np.asarray(keys[counted], np.int64)


def _names(metric: Parseval, table: BracketLabels, symbols: SymbolTable, labels: np.ndarray) -> dict[int, str]:
    equal = equivalents(metric.equal_labels)
    texts = {symbol: cut_label(symbols.text(symbol)) for symbol in np.unique(labels).tolist()}
    return {int(table.bracket[symbol]): equal.get(text, text) for symbol, text in texts.items()}
