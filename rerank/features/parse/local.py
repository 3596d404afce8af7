"""Templates over nodes, Rule and NGram, their words, Word and WProj, and fragments of trees, NGramTree and HeadTree."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from rerank.base.ranges import Range
from rerank.features import template as marks
from rerank.features.forest import FUNCTION, IN_COORDINATION, INSIDE, ROOT_CLAUSE, SEM_HEAD, SYN_HEAD, UPWARD, Forest
from rerank.features.sink import Places, Sink, begin, emit, put
from rerank.features.template import Template
from rerank.kernels.compile import kernel

# Choices, which kernels see as their places.
Words = Literal["none", "function", "all"]  # which words a template contains
Annotation = Literal["none", "pos", "word"]
HeadKind = Literal["syntactic", "semantic"]
FUNCTION_WORDS, ALL_WORDS, POS, SEMANTIC = 1, 2, 1, 1


@dataclass(frozen=True)
class LocalTree(Template):
    """Options of templates over a node and its children.

    ancestors: add the labels of this many ancestors; root: mark nodes outside the root clause; conj: mark children of a
    coordination; mark_head: mark the head child; words: add the word of preterminal children ("none", those with a
    "function" tag, "all"); head, nonhead: annotate the head child and the other children, if their word is not
    added, with the "pos" or "word" of their head; heads: which heads ("syntactic" or "semantic").
    """

    ancestors: Annotated[int, Range(0, 8)] = 0
    root: bool = False
    conj: bool = False
    mark_head: bool = False
    words: Words = "none"
    head: Annotation = "none"
    nonhead: Annotation = "none"
    heads: HeadKind = "syntactic"

    @property
    def scope(self) -> int:
        return UPWARD if self.ancestors or self.root or self.conj else INSIDE

    @property
    def depth(self) -> int:
        return self.ancestors


@kernel
def put_ancestors(sink: Sink, h: np.uint64, f: Forest, i: int, ancestors: int) -> np.uint64:
    """Write ``^ label`` for each of the lowest ``ancestors`` ancestors of i."""
    for _ in range(ancestors):
        i = f.parent[i]
        if i < 0:
            break
        h = put(sink, put(sink, h, marks.UP), f.symbol[f.label[i]])
    return h


@kernel
def put_context(sink: Sink, h: np.uint64, f: Forest, i: int, o: np.record) -> np.uint64:
    """Write the ancestors and marks of node i that the options ask for."""
    h = put_ancestors(sink, h, f, i, o.ancestors)
    if o.root and not f.flags[i] & ROOT_CLAUSE:
        h = put(sink, h, marks.NESTED)
    if o["conj"] and f.flags[i] & IN_COORDINATION:
        h = put(sink, h, marks.CONJUNCT)
    return put(sink, h, marks.BAR)


@kernel
def put_child(sink: Sink, h: np.uint64, f: Forest, i: int, child: int, o: np.record) -> np.uint64:
    """Write the label of a child of i, with its word or the annotation of its head."""
    is_head = child == (f.sem[i] if o.heads == SEMANTIC else f.syn[i])
    if is_head and o.mark_head:
        h = put(sink, h, marks.STAR)
    label = f.label[child]
    h = put(sink, h, f.symbol[label])
    if f.word[child] >= 0 and (o.words == ALL_WORDS or (o.words == FUNCTION_WORDS and f.classes[label] & FUNCTION)):
        return put(sink, put(sink, h, marks.SLASH), f.symbol[f.word[child]])
    annotation = o.head if is_head else o.nonhead
    if annotation:
        leaf = f.sem_leaf[child] if o.heads == SEMANTIC else f.syn_leaf[child]
        symbol = f.label[leaf] if annotation == POS else f.word[leaf]
        h = put(sink, put(sink, h, marks.COLON), f.symbol[symbol])
    return h


@dataclass(frozen=True)
class Rule(LocalTree):
    """A local tree: label and children's labels, e.g. ``Rule|NP | → DT NN``; see LocalTree for the options.

    >>> fired("Rule", "(NP (DT the) (NN dog))")
    {'NP | → DT NN': 1.0}

    Collins (2000); one feature per nonterminal.
    """

    constants: ClassVar[dict[str, int]] = {"n": 0}  # NGram's option: one compiled put_child serves both

    @staticmethod
    @kernel
    def fire(f: Forest, places: Places, sink: Sink, ids: np.ndarray, seeds: np.ndarray, options: np.ndarray) -> None:
        for p in range(places.node.shape[0]):
            i = places.node[p]
            if f.word[i] >= 0:
                continue
            for v in range(ids.shape[0]):
                h = put(sink, begin(sink, ids[v], seeds[v]), f.symbol[f.label[i]])
                h = put_context(sink, h, f, i, options[v])
                h = put(sink, h, marks.ARROW)
                child, stop = i + 1, i + f.size[i]
                while child < stop:
                    h = put_child(sink, h, f, i, child, options[v])
                    child += f.size[child]
                emit(sink, h, places, p)


@dataclass(frozen=True)
class NGram(LocalTree):
    """``n`` adjacent children, with ``(end)`` at either end, and their side of the head (< left, * with it, > right).

    >>> fired("NGram", "(NP (DT the) (NN dog))")
    {'NP | (end) DT <': 1.0, 'NP | DT NN *': 1.0, 'NP | NN (end) *': 1.0}

    See LocalTree for the other options. A window that consists only of end marks does not fire.

    Collins (2000); a feature per child of a nonterminal, about.
    """

    n: Annotated[int, Range(1, 8)] = 2

    @staticmethod
    @kernel
    def fire(f: Forest, places: Places, sink: Sink, ids: np.ndarray, seeds: np.ndarray, options: np.ndarray) -> None:
        for p in range(places.node.shape[0]):
            i = places.node[p]
            if f.word[i] >= 0:
                continue
            for v in range(ids.shape[0]):
                o = options[v]
                head = f.sem[i] if o.heads == SEMANTIC else f.syn[i]
                stop = i + f.size[i]
                first = i + 1  # first child of the window; a left end mark comes before it while ``at_start``
                at_start = o.n > 1
                while first < stop:
                    h = put(sink, begin(sink, ids[v], seeds[v]), f.symbol[f.label[i]])
                    h = put_context(sink, h, f, i, o)
                    room = o.n
                    if at_start:
                        h = put(sink, h, marks.END)
                        room -= 1
                    side, child = marks.RIGHT, first
                    while child < stop and room > 0:
                        if child == head:
                            side = marks.STAR
                        elif child < head and side != marks.STAR:
                            side = marks.LEFT
                        h = put_child(sink, h, f, i, child, o)
                        child += f.size[child]
                        room -= 1
                    if room == 1:
                        h = put(sink, h, marks.END)
                        room = 0
                    if room > 0:
                        break
                    emit(sink, put(sink, h, side), places, p)
                    if at_start:
                        at_start = False
                    else:
                        first += f.size[first]


@dataclass(frozen=True)
class Word(Template):
    """A word with the labels of its ``k`` lowest ancestors, the first of which is its tag.

    >>> fired("Word", "(NP (DT the) (NN dog))")
    {'the DT': 1.0, 'dog NN': 1.0}

    Charniak & Johnson (2005); one feature per word.
    """

    k: Annotated[int, Range(1, 8)] = 1

    scope = UPWARD

    @property
    def depth(self) -> int:
        return self.k - 1

    @staticmethod
    @kernel
    def fire(f: Forest, places: Places, sink: Sink, ids: np.ndarray, seeds: np.ndarray, options: np.ndarray) -> None:
        for p in range(places.node.shape[0]):
            i = places.node[p]
            if f.word[i] < 0:
                continue
            for v in range(ids.shape[0]):
                h = put(sink, begin(sink, ids[v], seeds[v]), f.symbol[f.word[i]])
                h = put(sink, h, f.symbol[f.label[i]])
                h = put_ancestors(sink, h, f, i, options[v].k - 1)
                emit(sink, h, places, p)


@dataclass(frozen=True)
class WProj(Template):
    """A word with its tag, the label of its maximal projection, and the labels of ``k`` ancestors above that.

    >>> fired("WProj", "(NP (DT the) (NN dog))")
    {'dog NN | NP': 1.0, 'the DT | DT ^ NP': 1.0}

    Charniak & Johnson (2005); one feature per word.
    """

    k: Annotated[int, Range(0, 8)] = 1
    heads: HeadKind = "semantic"

    scope = UPWARD

    @property
    def depth(self) -> int:
        return self.k

    @staticmethod
    @kernel
    def fire(f: Forest, places: Places, sink: Sink, ids: np.ndarray, seeds: np.ndarray, options: np.ndarray) -> None:
        for p in range(places.node.shape[0]):
            i = places.node[p]  # the maximal projection of its head word, unless it is the head of its parent
            for v in range(ids.shape[0]):
                semantic = options[v].heads == SEMANTIC
                if f.flags[i] & (SEM_HEAD if semantic else SYN_HEAD):
                    continue
                leaf = f.sem_leaf[i] if semantic else f.syn_leaf[i]
                h = put(sink, begin(sink, ids[v], seeds[v]), f.symbol[f.word[leaf]])
                h = put(sink, put(sink, h, f.symbol[f.label[leaf]]), marks.BAR)
                h = put(sink, h, f.symbol[f.label[i]])
                h = put_ancestors(sink, h, f, i, options[v].k)
                emit(sink, h, places, p)


@kernel
def put_leaf_word(sink: Sink, h: np.uint64, f: Forest, leaf: int, words: int) -> np.uint64:
    """Write ``/ word`` of a preterminal if ``words`` asks for it."""
    if words == ALL_WORDS or (words == FUNCTION_WORDS and f.classes[f.label[leaf]] & FUNCTION):
        return put(sink, put(sink, h, marks.SLASH), f.symbol[f.word[leaf]])
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
            h = put(sink, h, marks.OPEN)
        while before != f.parent[i]:
            before = f.parent[before]
            if before != f.parent[i]:
                h = put(sink, h, marks.CLOSE)
        h = put(sink, h, f.symbol[f.label[i]])
        if f.word[i] >= 0:
            h = put_leaf_word(sink, h, f, i, words)
        before = i
        i += 1
    return h


@dataclass(frozen=True)
class NGramTree(Template):
    """The smallest tree fragment over ``n`` adjacent words, other branches cut; ``words``: none, function, all.

    >>> fired("NGramTree", "(S (NP (NN tea)) (VP (VBZ helps)))")
    {'S ( NP ( NN ) VP ( VBZ': 1.0}

    Charniak & Johnson (2005); one feature per run of ``n`` words.
    """

    n: Annotated[int, Range(2, 8)] = 2
    words: Words = "none"

    scope = INSIDE

    @staticmethod
    @kernel
    def fire(f: Forest, places: Places, sink: Sink, ids: np.ndarray, seeds: np.ndarray, options: np.ndarray) -> None:
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
class HeadTree(Template):
    """The whole projection of a word: its local trees up to the maximal projection, the head child starred.

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

    @staticmethod
    @kernel
    def fire(f: Forest, places: Places, sink: Sink, ids: np.ndarray, seeds: np.ndarray, options: np.ndarray) -> None:
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
                    h = put(sink, h, marks.ARROW)
                    head = f.sem[i] if semantic else f.syn[i]
                    child = i + 1
                    while child < i + f.size[i]:
                        if child == head:
                            h = put(sink, h, marks.STAR)
                        h = put(sink, h, f.symbol[f.label[child]])
                        child += f.size[child]
                    i = head
                h = put_leaf_word(sink, h, f, i, o.words)
                emit(sink, h, places, p)
