"""Templates over tree fragments: NGramTree and HeadTree (Charniak & Johnson 2005)."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from rerank.base.ranges import Range
from rerank.features.forest import SEM_HEAD, SYN_HEAD, Forest
from rerank.features.heads import FUNCTION
from rerank.features.marks import ARROW, CLOSE, OPEN, SLASH, STAR
from rerank.features.parse.local import ALL_WORDS, FUNCTION_WORDS, SEMANTIC, HeadKind, Words, put_ancestors
from rerank.features.places import INSIDE, UPWARD
from rerank.features.sink import Places, Sink, begin, emit, put
from rerank.features.template import Template
from rerank.kernels.compile import kernel


@kernel
def put_leaf_word(sink: Sink, h: np.uint64, f: Forest, leaf: int, words: int) -> np.uint64:
    """Write ``/ word`` of a preterminal if ``words`` asks for it."""
    if words == ALL_WORDS or (words == FUNCTION_WORDS and f.classes[f.label[leaf]] & FUNCTION):
        return put(sink, put(sink, h, SLASH), f.symbol[f.word[leaf]])
    return h


@kernel
def _put_fragment(sink: Sink, h: np.uint64, f: Forest, top: int, first: int, last: int, words: int) -> np.uint64:
    """Write the nodes under ``top`` that dominate leaf positions first..last - 1, bracketed."""
    h = put(sink, h, f.symbol[f.label[top]])
    i, before = top + 1, top
    while i < top + f.size[top]:
        if f.end[i] <= first:
            i += f.size[i]
            continue
        if f.start[i] >= last:
            break
        if before == f.parent[i]:
            h = put(sink, h, OPEN)
        while before != f.parent[i]:
            before = f.parent[before]
            if before != f.parent[i]:
                h = put(sink, h, CLOSE)
        h = put(sink, h, f.symbol[f.label[i]])
        if f.word[i] >= 0:
            h = put_leaf_word(sink, h, f, i, words)
        before = i
        i += 1
    return h


@kernel
def _fire_window(
    f: Forest, places: Places, sink: Sink, ids: np.ndarray, seeds: np.ndarray, options: np.ndarray
) -> None:
    for p in range(places.node.shape[0]):
        i = places.node[p]
        if f.word[i] >= 0:
            continue
        for v in range(ids.shape[0]):
            n = options[v].n
            after = f.start[i]  # windows that start before it are written already
            child = i + 1 + f.size[i + 1]
            while child < i + f.size[i]:  # every border between children, once per window across it
                border = f.start[child]
                for first in range(max(after, border - n + 1), min(border, f.end[i] - n + 1)):
                    h = begin(sink, ids[v], seeds[v])
                    h = _put_fragment(sink, h, f, i, first, first + n, options[v].words)
                    emit(sink, h, places, p)
                    after = first + 1
                child += f.size[child]


@dataclass(frozen=True)
class NGramTree(Template):
    """The smallest tree fragment over ``n`` adjacent words, other branches cut; ``words``: none, function, all.

    >>> from rerank.features.fired import fired
    >>> fired("NGramTree", "(S (NP (NN tea)) (VP (VBZ helps)))")
    {'S ( NP ( NN ) VP ( VBZ': 1.0}

    Charniak & Johnson (2005); one feature per run of ``n`` words.
    """

    n: Annotated[int, Range(2, 8)] = 2
    words: Words = "none"

    scope = INSIDE
    fire = staticmethod(_fire_window)


@kernel
def _fire_projection(
    f: Forest, places: Places, sink: Sink, ids: np.ndarray, seeds: np.ndarray, options: np.ndarray
) -> None:
    for p in range(places.node.shape[0]):
        top = places.node[p]
        for v in range(ids.shape[0]):
            o = options[v]
            semantic = o.heads == SEMANTIC
            if f.flags[top] & (SEM_HEAD if semantic else SYN_HEAD):
                continue
            h = put(sink, begin(sink, ids[v], seeds[v]), f.symbol[f.label[top]])
            h = put_ancestors(sink, h, f, top, o.ancestors)
            i = top
            while f.word[i] < 0:
                h = put(sink, h, ARROW)
                head = f.sem[i] if semantic else f.syn[i]
                child = i + 1
                while child < i + f.size[i]:
                    if child == head:
                        h = put(sink, h, STAR)
                    h = put(sink, h, f.symbol[f.label[child]])
                    child += f.size[child]
                i = head
            h = put_leaf_word(sink, h, f, i, o.words)
            emit(sink, h, places, p)


@dataclass(frozen=True)
class HeadTree(Template):
    """The whole projection of a word: its local trees up to the maximal projection, the head child starred.

    >>> from rerank.features.fired import fired
    >>> fired("HeadTree", "(S (NP (NN tea)) (VP (VBZ helps)))")
    {'S → NP * VP → * VBZ': 1.0, 'NP → * NN': 1.0}

    ``words``: write the head word too: always ("all"), if its tag is a function tag ("function"), or never ("none");
    ``ancestors``: add the labels of this many ancestors above the projection.

    Charniak & Johnson (2005); one feature per word.
    """

    words: Words = "none"
    heads: HeadKind = "syntactic"
    ancestors: Annotated[int, Range(0, 8)] = 0

    @property
    def scope(self) -> int:
        return UPWARD if self.ancestors else INSIDE

    @property
    def depth(self) -> int:
        return self.ancestors

    fire = staticmethod(_fire_projection)
