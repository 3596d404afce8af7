"""PARSEVAL's F of every tree of a list against every other."""

import numpy as np

from rerank.base.interrupts import check
from rerank.data.symbols import SymbolTable
from rerank.metrics.decoding.bracket_kernel import number_brackets
from rerank.metrics.decoding.fusion import bracket_room, read_words_of
from rerank.metrics.decoding.overlaps import Items, shared
from rerank.metrics.parseval import Parseval
from rerank.metrics.parseval_kernel import workspace
from rerank.readers.trees.trees import Trees, picked


def parse_gains(metric: Parseval, trees: Trees, symbols: SymbolTable) -> np.ndarray:
    """float64 [T, T]: the gain of tree y if tree r were the reference.

    Trees with the same words are compared by the brackets that they share; for the rare lists where some have no words,
    or where quotes decide what is punctuation (``evalb``), each tree is made the reference in turn.
    """
    table, T = metric.table(symbols), trees.first.size - 1
    words = read_words_of(trees, table)
    identity = np.where(words.leaves >= 0, table.word[trees.word[words.leaves]], -1)
    group = _groups(identity)
    pattern = _groups(np.column_stack([group, words.keep]))
    if not words.counts.all() or (metric.punctuation == "evalb" and pattern.max(initial=0) > group.max(initial=0)):
        one_by_one = np.zeros((T, T))
        for t in range(T):
            check()
            reference, rows = metric.stats(picked(trees, [t]), trees, symbols)
            one_by_one[:, t] = metric.gain(rows, reference)
        return one_by_one
    gains, space = np.zeros((T, T)), workspace(trees, trees).test
    brackets = bracket_room(T, int(np.count_nonzero(trees.word < 0)))
    by_reference = metric.punctuation == "reference"
    for k in range(int((pattern if by_reference else group).max(initial=-1)) + 1):
        references = np.flatnonzero((pattern if by_reference else group) == k)
        used = group == group[references[0]]
        keep = words.keep[references[0], : words.counts[references[0]]] if by_reference else np.zeros(0, np.bool_)
        number_brackets(trees, used, table, keep, space, brackets)
        members, size = np.flatnonzero(used), np.diff(brackets.first)
        owner = np.repeat(np.arange(members.size, dtype=np.int32), size[members])
        item = brackets.bracket[: owner.size].astype(np.uint64)
        (matched,) = shared(Items(item, owner, np.zeros(owner.size, np.int8)), members.size, 1)
        both = size[members][:, None] + size[members][None, :]
        f = np.where(both > 0, 2.0 * matched / np.maximum(both, 1), 1.0)
        gains[np.ix_(members, references)] = f[:, np.searchsorted(members, references)]
    return gains


def _groups(rows: np.ndarray) -> np.ndarray:
    """int64 [T]: which rows are equal: those with the same number. Most often all are, and nothing needs sorting."""
    if (rows == rows[:1]).all():
        return np.zeros(len(rows), np.int64)
    return np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)
