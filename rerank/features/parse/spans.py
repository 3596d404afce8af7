"""Templates over spans, Edges, WordEdges, Neighbours and Heavy, and over whole trees: their shape (RightBranch,
LeftBranchLength, RightBranchLength) and their base score (LogCondP), which a model also has as a weight apart.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from rerank.base.ranges import Range
from rerank.data.corpus import FLOAT32_MAX
from rerank.features.forest import CONJUNCTION, EDGE_REACH, EDGES, PUNCTUATION, TREE, Forest
from rerank.features.sink import Places, Sink, begin, emit, emit_value, put
from rerank.features.template import BAR, END, FREE, LENGTH_BIN, NUMBER, NUMBER_OFFSET, OFF, ON, Template
from rerank.kernels.compile import kernel

Reach = Annotated[int, Range(0, EDGE_REACH)]


@kernel
def _put_leaves(sink: Sink, h: np.uint64, f: Forest, tree: int, first: int, last: int, words: int) -> np.uint64:
    """Tags (or words) at positions first..last - 1 of a tree, ``(end)`` beyond the sentence."""
    offset, length = f.leaf_first[tree], f.leaf_first[tree + 1] - f.leaf_first[tree]
    for position in range(first, last):
        if 0 <= position < length:
            leaf = f.leaf[offset + position]
            h = put(sink, h, f.symbol[f.word[leaf] if words else f.label[leaf]])
        else:
            h = put(sink, h, END)
    return h


@kernel
def _fire_edges(f: Forest, places: Places, sink: Sink, ids: np.ndarray, seeds: np.ndarray, options: np.ndarray) -> None:
    for p in range(places.node.shape[0]):
        i = places.node[p]
        tree, start, end = f.tree[i], f.start[i], f.end[i]
        for v in range(ids.shape[0]):
            o = options[v]
            h = put(sink, begin(sink, ids[v], seeds[v]), f.symbol[f.label[i]])
            if o.binned:
                h = put(sink, h, LENGTH_BIN[min(end - start, 5)])
            h = put(sink, h, BAR)
            h = _put_leaves(sink, h, f, tree, start - o.lp, start + o.ls, o.words)
            h = put(sink, h, BAR)
            h = _put_leaves(sink, h, f, tree, end - o.rp, end + o.rs, o.words)
            emit(sink, h, places, p)


@dataclass(frozen=True)
class _Edges(Template):
    binned: bool = False
    lp: Reach = 0
    ls: Reach = 0
    rp: Reach = 0
    rs: Reach = 0

    constants: ClassVar[dict[str, int]] = {"words": False}
    scope = EDGES
    fire = staticmethod(_fire_edges)


@dataclass(frozen=True)
class Edges(_Edges):
    """A label with the tags of ``lp`` words before and ``ls`` after its left edge, ``rp`` before and ``rs`` after its
    right edge, and, if ``binned``, its length (1, 2, 3-4 as 4, 5+).

    >>> fired("Edges(lp=1)", "(S (NP (NN tea)) (VP (VBZ helps)))")
    {'S | (end) |': 1.0, 'NP | (end) |': 1.0, 'VP | NN |': 1.0}

    Charniak & Johnson (2005); one feature per nonterminal.
    """


@dataclass(frozen=True)
class WordEdges(_Edges):
    """The same as Edges, with words instead of tags.

    >>> fired("WordEdges(ls=1)", "(S (NP (NN tea)) (VP (VBZ helps)))")
    {'S | tea |': 1.0, 'NP | tea |': 1.0, 'VP | helps |': 1.0}

    Charniak & Johnson (2005); one feature per nonterminal.
    """

    constants: ClassVar[dict[str, int]] = {"words": True}


@dataclass(frozen=True)
class Neighbours(Template):
    """A label with its binned length and the tags of ``l`` words before and ``r`` words after it.

    >>> fired("Neighbours", "(S (NP (NN tea)) (VP (VBZ helps)))")
    {'S len=2 | (end) | (end)': 1.0, 'NP len=1 | (end) | VBZ': 1.0, 'VP len=1 | NN | (end)': 1.0}

    Charniak & Johnson (2005); one feature per nonterminal.
    """

    l: Reach = 1  # noqa: E741 - the option's name in the literature
    r: Reach = 1

    scope = EDGES
    fire = staticmethod(_fire_edges)

    def record(self) -> dict[str, float]:
        """The options as ``Edges`` has them."""
        return {"binned": True, "lp": self.l, "ls": 0, "rp": 0, "rs": self.r, "words": False}


@dataclass(frozen=True)
class Heavy(Template):
    """A label with its binned length, its binned distance to the sentence's end, and what follows: punctuation, a
    conjunction, something else (free) or the sentence's end.

    >>> fired("Heavy", "(S (NP (NN tea)) (VP (VBZ helps)))")
    {'S len=2 len=0 (end)': 1.0, 'NP len=1 len=1 free': 1.0, 'VP len=1 len=0 (end)': 1.0}

    Charniak & Johnson (2005); one feature per nonterminal.
    """

    scope = EDGES

    @staticmethod
    @kernel
    def fire(f: Forest, places: Places, sink: Sink, ids: np.ndarray, seeds: np.ndarray, _options: np.ndarray) -> None:
        for p in range(places.node.shape[0]):
            i = places.node[p]
            offset = f.leaf_first[f.tree[i]]
            length = f.leaf_first[f.tree[i] + 1] - offset
            for v in range(ids.shape[0]):
                h = put(sink, begin(sink, ids[v], seeds[v]), f.symbol[f.label[i]])
                h = put(sink, h, LENGTH_BIN[min(f.end[i] - f.start[i], 5)])
                h = put(sink, h, LENGTH_BIN[min(length - f.end[i], 5)])
                follows = END
                if f.end[i] < length:
                    tag = f.label[f.leaf[offset + f.end[i]]]
                    follows = f.symbol[tag] if f.classes[tag] & (PUNCTUATION | CONJUNCTION) else FREE
                emit(sink, put(sink, h, follows), places, p)


SUM = 1  # the second choice of LogCondP's norm


@dataclass(frozen=True)
class _Shape(Template):
    scope = TREE


@dataclass(frozen=True)
class RightBranch(_Shape):
    """The number of nonterminals on the path from the root to the rightmost word that is not punctuation, and how many
    do not. If all words are punctuation, the path leads to the first.

    >>> fired("RightBranch", "(S (NP (NN tea)) (VP (VBZ helps)))")
    {'on': 2.0, 'off': 1.0}

    Charniak & Johnson (2005); two features per tree.
    """

    @staticmethod
    @kernel
    def fire(f: Forest, _places: Places, sink: Sink, ids: np.ndarray, seeds: np.ndarray, _options: np.ndarray) -> None:
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


@dataclass(frozen=True)
class _Chains(_Shape):
    @staticmethod
    @kernel
    def fire(f: Forest, _places: Places, sink: Sink, ids: np.ndarray, seeds: np.ndarray, options: np.ndarray) -> None:
        for v in range(ids.shape[0]):
            right = options[v].right
            for y in range(f.first.shape[0] - 1):
                total = 0.0
                for p in range(f.leaf_first[y], f.leaf_first[y + 1]):
                    leaf = f.leaf[p]
                    chain, i = 0, f.parent[leaf]
                    while i >= 0 and (f.end[i] == f.end[leaf] if right else f.start[i] == f.start[leaf]):
                        chain += 1
                        i = f.parent[i]
                    total += np.log1p(chain)
                emit_value(sink, begin(sink, ids[v], seeds[v]), y, total)


@dataclass(frozen=True)
class LeftBranchLength(_Chains):
    """Sum over words of log(1 + number of nonterminals whose first word it is).

    >>> fired("LeftBranchLength", "(S (NP (NN tea)) (VP (VBZ helps)))")
    {'': 1.7918}

    One feature per tree.
    """

    constants: ClassVar[dict[str, int]] = {"right": False}


@dataclass(frozen=True)
class RightBranchLength(_Chains):
    """Sum over words of log(1 + number of nonterminals whose last word it is).

    >>> fired("RightBranchLength", "(S (NP (NN tea)) (VP (VBZ helps)))")
    {'': 1.7918}

    One feature per tree.
    """

    constants: ClassVar[dict[str, int]] = {"right": True}


@dataclass(frozen=True)
class LogCondP(_Shape):
    """The base score minus the list's best ("best") or minus the log of the list's summed exponentials ("sum").

    >>> fired("LogCondP(norm=sum)", "(NN tea)", "(VB tea)")
    {'': -0.3133}

    ``bin``: 0 for the value itself; b > 0 for an indicator of its integer part in units of b/10, at most 64 units.

    One feature per tree.
    """

    norm: Literal["best", "sum"] = "best"
    bin: Annotated[int, Range(0, 1000)] = 0

    @staticmethod
    @kernel
    def fire(f: Forest, _places: Places, sink: Sink, ids: np.ndarray, seeds: np.ndarray, options: np.ndarray) -> None:
        if f.base.shape[0] == 0:
            return
        best, total = f.base[0], 0.0
        for y in range(1, f.base.shape[0]):
            best = max(best, f.base[y])
        for y in range(f.base.shape[0]):
            total += np.exp(f.base[y] - best)
        log_sum = best + np.log(total)
        for v in range(ids.shape[0]):
            o = options[v]
            norm = log_sum if o.norm == SUM else best
            for y in range(f.base.shape[0]):
                value = min(max(f.base[y] - norm, -FLOAT32_MAX), FLOAT32_MAX)
                if o.bin == 0:
                    emit_value(sink, begin(sink, ids[v], seeds[v]), y, value)
                else:
                    unit = int(min(float(NUMBER_OFFSET), -value * 10.0 / o.bin))
                    emit_value(sink, put(sink, begin(sink, ids[v], seeds[v]), NUMBER[NUMBER_OFFSET + unit]), y, 1.0)
