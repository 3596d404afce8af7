"""A list's trees with everything that templates look at: heads, coordination, clauses, hashes of subtrees.

Candidates of a list share most of their subtrees. ``inside`` identifies a subtree by its content, so that templates
run once per distinct *place* (see places.py), not once per tree.
"""

from typing import NamedTuple

import numpy as np

from rerank.data.symbols import SymbolTable, combine
from rerank.features.heads import (
    CLAUSE,
    CONJUNCTION,
    PUNCTUATION,
    SEMANTIC,
    SYNTACTIC,
    HeadRanks,
    HeadTable,
    LabelClasses,
    Rules,
)
from rerank.kernels.compile import kernel
from rerank.readers.lists import ROOTS
from rerank.readers.trees.trees import Trees

ROOT = "S1"  # the one of ROOTS that head rules have
# Bits of Forest.flags.
COORDINATION, ROOT_CLAUSE, SYN_HEAD, SEM_HEAD, IN_COORDINATION = 1, 2, 4, 8, 16


class Forest(NamedTuple):
    """The trees of one list (n nodes, in preorder, see Trees), annotated for templates.

    A preterminal is its own head. ``word`` is the id of the lower-cased word.
    """

    first: np.ndarray  # int64 [N + 1]: nodes of candidate y
    label: np.ndarray  # int32 [n]: symbol id
    word: np.ndarray  # int32 [n]: symbol id, -1 for nonterminals
    parent: np.ndarray  # int32 [n]: -1 for roots
    size: np.ndarray  # int32 [n]
    start: np.ndarray  # int32 [n]
    end: np.ndarray  # int32 [n]
    tree: np.ndarray  # int32 [n]: the candidate that a node belongs to
    syn: np.ndarray  # int32 [n]: syntactic head child
    sem: np.ndarray  # int32 [n]: semantic head child
    syn_leaf: np.ndarray  # int32 [n]: preterminal of the syntactic head word
    sem_leaf: np.ndarray  # int32 [n]: preterminal of the semantic head word
    flags: np.ndarray  # uint8 [n]: COORDINATION, ROOT_CLAUSE, SYN_HEAD and SEM_HEAD of the parent, IN_COORDINATION
    inside: np.ndarray  # uint64 [n]: hash of the subtree
    leaf: np.ndarray  # int32 [m]: preterminals in order; leaf p of candidate y is leaf[leaf_first[y] + p]
    leaf_first: np.ndarray  # int64 [N + 1]
    symbol: np.ndarray  # uint64 [symbols]: hash of a symbol id
    classes: np.ndarray  # uint8 [symbols]: see heads.py
    base: np.ndarray  # float64 [N]: base scores


@kernel
def _head_child(i: int, size: np.ndarray, label: np.ndarray, ranks: HeadRanks) -> int:
    """The head child of nonterminal i: that of lowest rank; among equals, the first from that rank's side."""
    row = ranks.row[label[i]]
    best, best_rank = i + 1, 256
    child, stop = i + 1, i + size[i]
    while child < stop:
        rank = int(ranks.rank[row, ranks.column[label[child]]])
        if rank < best_rank or (rank == best_rank and not ranks.from_left[row, rank]):
            best, best_rank = child, rank
        child += size[child]
    return best


@kernel
def _is_coordination(i: int, size: np.ndarray, label: np.ndarray, classes: np.ndarray) -> bool:
    """Whether a conjunction follows the first conjunct (a child that is not punctuation), and a conjunct follows it."""
    conjuncts, joined = 0, False
    child, stop = i + 1, i + size[i]
    while child < stop:
        kind = classes[label[child]]
        if kind & CONJUNCTION:
            joined = conjuncts > 0
        elif not kind & PUNCTUATION:
            if joined:
                return True
            conjuncts += 1
        child += size[child]
    return False


@kernel
def annotate(f: Forest, syn: HeadRanks, sem: HeadRanks) -> None:
    """Fill all fields of ``f`` beyond those of Trees, from ``f.first .. f.end``, ``symbol`` and ``classes``."""
    leaves = 0
    for y in range(f.first.shape[0] - 1):
        f.leaf_first[y] = leaves
        for i in range(f.first[y], f.first[y + 1]):  # top down: what depends on the nodes above
            f.tree[i] = y
            up = f.parent[i]
            clause = f.classes[f.label[i]] & CLAUSE
            f.flags[i] = 0
            if up < 0 or (
                f.flags[up] & ROOT_CLAUSE and not (clause and _below_clause(up, f.parent, f.label, f.classes))
            ):
                f.flags[i] = ROOT_CLAUSE
            if up >= 0 and f.flags[up] & COORDINATION:
                f.flags[i] |= IN_COORDINATION
            if f.word[i] >= 0:
                f.leaf[leaves] = i
                leaves += 1
                f.syn[i] = f.sem[i] = f.syn_leaf[i] = f.sem_leaf[i] = i
            else:
                f.syn[i] = _head_child(i, f.size, f.label, syn)
                f.sem[i] = _head_child(i, f.size, f.label, sem)
                if _is_coordination(i, f.size, f.label, f.classes):
                    f.flags[i] |= COORDINATION
        for i in range(f.first[y + 1] - 1, f.first[y] - 1, -1):  # bottom up: what depends on the nodes below
            h = combine(np.uint64(f.size[i]), f.symbol[f.label[i]])
            if f.word[i] >= 0:
                h = combine(h, f.symbol[f.word[i]])
            else:
                f.syn_leaf[i], f.sem_leaf[i] = f.syn_leaf[f.syn[i]], f.sem_leaf[f.sem[i]]
                f.flags[f.syn[i]] |= SYN_HEAD
                f.flags[f.sem[i]] |= SEM_HEAD
                child, stop = i + 1, i + f.size[i]
                while child < stop:
                    h = combine(h, f.inside[child])
                    child += f.size[child]
            f.inside[i] = h
    f.leaf_first[f.first.shape[0] - 1] = leaves


@kernel
def _below_clause(i: int, parent: np.ndarray, label: np.ndarray, classes: np.ndarray) -> bool:
    """Whether node i or one of its ancestors is a clause."""
    while i >= 0:
        if classes[label[i]] & CLAUSE:
            return True
        i = parent[i]
    return False


class Grower:
    """Turns the parsed trees of one list into a Forest; holds the head tables and label classes.

    symbols: the table that the trees are read with, or that theirs is a copy of.
    """

    def __init__(self, symbols: SymbolTable, syntactic: Rules = SYNTACTIC, semantic: Rules = SEMANTIC) -> None:
        self._syn, self._sem = (
            HeadTable({ROOT if label in ROOTS else label: steps for label, steps in rules.items()}, symbols)
            for rules in (syntactic, semantic)
        )
        self._classes = LabelClasses(symbols)
        self._roots = np.array([symbols.intern(label) for label in (ROOT, *ROOTS)], np.int32)

    def grow(self, trees: Trees, base: np.ndarray, symbols: SymbolTable) -> Forest:
        """Annotate the trees of one list, read with ``symbols``, with base scores ``base`` (float64 [N]).

        The label of a root that says nothing is ROOT, whatever it is in the file: for templates as for PARSEVAL, the
        same trees are the same.
        """
        n = trees.label.size
        room = zip(("tree", "syn", "sem", "syn_leaf", "sem_leaf", "leaf"), np.empty((6, n), np.int32), strict=True)
        given = trees._replace(label=self._label(trees), word=np.where(trees.word >= 0, symbols.lower[trees.word], -1))
        forest = Forest(
            **given._asdict(),
            **dict(room),
            flags=np.empty(n, np.uint8),
            inside=np.empty(n, np.uint64),
            leaf_first=np.empty(trees.first.size, np.int64),
            symbol=symbols.hashes,
            classes=self._classes.bits(symbols),
            base=base,
        )
        annotate(forest, self._syn.ranks(symbols), self._sem.ranks(symbols))
        return forest

    def _label(self, trees: Trees) -> np.ndarray:
        roots = trees.first[:-1]
        plain = roots[np.isin(trees.label[roots], self._roots) & (trees.word[roots] < 0)]
        if np.all(trees.label[plain] == self._roots[0]):
            return trees.label
        label = trees.label.copy()
        label[plain] = self._roots[0]
        return label
