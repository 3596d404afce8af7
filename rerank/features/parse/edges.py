"""Templates over spans: Heavy, Neighbours, Edges and WordEdges (Charniak & Johnson 2005)."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from rerank.base.ranges import Range
from rerank.features.forest import Forest
from rerank.features.heads import CONJUNCTION, PUNCTUATION
from rerank.features.marks import BAR, END, FREE, LENGTH_BIN
from rerank.features.places import EDGE_REACH, EDGES
from rerank.features.sink import Places, Sink, begin, emit, put
from rerank.features.template import Template
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

    fixed: ClassVar[dict[str, int]] = {"words": False}
    scope = EDGES
    fire = staticmethod(_fire_edges)


@dataclass(frozen=True)
class Edges(_Edges):
    """A label with the tags of ``lp`` words before and ``ls`` after its left edge, ``rp`` before and ``rs`` after its
    right edge, and, if ``binned``, its length (1, 2, 3-4 as 4, 5+).

    >>> from rerank.features.fired import fired
    >>> fired("Edges(lp=1)", "(S (NP (NN tea)) (VP (VBZ helps)))")
    {'S | (end) |': 1.0, 'NP | (end) |': 1.0, 'VP | NN |': 1.0}

    Charniak & Johnson (2005); one feature per nonterminal.
    """


@dataclass(frozen=True)
class WordEdges(_Edges):
    """The same as Edges, with words instead of tags.

    >>> from rerank.features.fired import fired
    >>> fired("WordEdges(ls=1)", "(S (NP (NN tea)) (VP (VBZ helps)))")
    {'S | tea |': 1.0, 'NP | tea |': 1.0, 'VP | helps |': 1.0}

    Charniak & Johnson (2005); one feature per nonterminal.
    """

    fixed: ClassVar[dict[str, int]] = {"words": True}


@dataclass(frozen=True)
class Neighbours(Template):
    """A label with its binned length and the tags of ``l`` words before and ``r`` words after it.

    >>> from rerank.features.fired import fired
    >>> fired("Neighbours", "(S (NP (NN tea)) (VP (VBZ helps)))")
    {'S len=2 | (end) | (end)': 1.0, 'NP len=1 | (end) | VBZ': 1.0, 'VP len=1 | NN | (end)': 1.0}

    Charniak & Johnson (2005); one feature per nonterminal.
    """

    l: Reach = 1  # noqa: E741 - the option's name in the literature
    r: Reach = 1

    scope = EDGES
    fire = staticmethod(_fire_edges)

    def record(self) -> dict[str, float]:
        """As ``Edges`` has them."""
        return {"binned": True, "lp": self.l, "ls": 0, "rp": 0, "rs": self.r, "words": False}


@kernel
def _fire_heavy(
    f: Forest, places: Places, sink: Sink, ids: np.ndarray, seeds: np.ndarray, _options: np.ndarray
) -> None:
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


@dataclass(frozen=True)
class Heavy(Template):
    """A label with its binned length, its binned distance to the sentence's end, and what follows: punctuation, a
    conjunction, something else (free) or the sentence's end.

    >>> from rerank.features.fired import fired
    >>> fired("Heavy", "(S (NP (NN tea)) (VP (VBZ helps)))")
    {'S len=2 len=0 (end)': 1.0, 'NP len=1 len=1 free': 1.0, 'VP len=1 len=0 (end)': 1.0}

    Charniak & Johnson (2005); one feature per nonterminal.
    """

    scope = EDGES
    fire = staticmethod(_fire_heavy)
