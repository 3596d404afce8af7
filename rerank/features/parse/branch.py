"""Templates for the shape of a whole tree: RightBranch, LeftBranchLength and RightBranchLength."""

from dataclasses import dataclass

import numpy as np

from rerank.features.classes import PUNCTUATION
from rerank.features.forest import Forest
from rerank.features.marks import OFF, ON
from rerank.features.places import TREE
from rerank.features.sink import Places, Sink, begin, emit_value, put
from rerank.features.template import Template, templates
from rerank.kernels.compile import kernel


@kernel
def _chains(f: Forest, sink: Sink, ids: np.ndarray, seeds: np.ndarray, right: bool) -> None:
    for y in range(f.first.shape[0] - 1):
        total = 0.0
        for p in range(f.leaf_first[y], f.leaf_first[y + 1]):
            leaf = f.leaf[p]
            chain, i = 0, f.parent[leaf]
            while i >= 0 and (f.end[i] == f.end[leaf] if right else f.start[i] == f.start[leaf]):
                chain += 1
                i = f.parent[i]
            total += np.log1p(chain)
        for v in range(ids.shape[0]):
            emit_value(sink, begin(sink, ids[v], seeds[v]), y, total)


@dataclass(frozen=True)
class _Shape(Template):
    scope = TREE


@kernel
def _fire_right_branch(
    f: Forest, _places: Places, sink: Sink, ids: np.ndarray, seeds: np.ndarray, _options: np.ndarray
) -> None:
    for y in range(f.first.shape[0] - 1):
        leaf = f.leaf_first[y + 1] - 1
        while leaf > f.leaf_first[y] and f.classes[f.label[f.leaf[leaf]]] & PUNCTUATION:
            leaf -= 1
        on, i = 0, f.parent[f.leaf[leaf]]
        while i >= 0:
            on += 1
            i = f.parent[i]
        leaves = f.leaf_first[y + 1] - f.leaf_first[y]
        off = f.first[y + 1] - f.first[y] - leaves - on
        for v in range(ids.shape[0]):
            emit_value(sink, put(sink, begin(sink, ids[v], seeds[v]), ON), y, float(on))
            emit_value(sink, put(sink, begin(sink, ids[v], seeds[v]), OFF), y, float(off))


@templates.add("RightBranch")
@dataclass(frozen=True)
class RightBranch(_Shape):
    """How many nonterminals lie on the path from the root to the rightmost word that is not punctuation, and how many
    do not. If all words are punctuation, the path leads to the first."""

    fire = staticmethod(_fire_right_branch)


@kernel
def _fire_left(
    f: Forest, _places: Places, sink: Sink, ids: np.ndarray, seeds: np.ndarray, _options: np.ndarray
) -> None:
    _chains(f, sink, ids, seeds, False)


@templates.add("LeftBranchLength")
@dataclass(frozen=True)
class LeftBranchLength(_Shape):
    """Sum over words of log(1 + number of nonterminals whose first word it is)."""

    fire = staticmethod(_fire_left)


@kernel
def _fire_right(
    f: Forest, _places: Places, sink: Sink, ids: np.ndarray, seeds: np.ndarray, _options: np.ndarray
) -> None:
    _chains(f, sink, ids, seeds, True)


@templates.add("RightBranchLength")
@dataclass(frozen=True)
class RightBranchLength(_Shape):
    """Sum over words of log(1 + number of nonterminals whose last word it is)."""

    fire = staticmethod(_fire_right)
