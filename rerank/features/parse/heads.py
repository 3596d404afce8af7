"""Templates over heads, Heads, LexFunHeads, SynSemHeads and SubjVerbAgr, and over conjuncts, CoPar and CoLenPar."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from rerank.base.ranges import Range
from rerank.features.forest import CLAUSE, CONJUNCTION, COORDINATION, INSIDE, NOMINAL, PUNCTUATION, VERBAL, Forest
from rerank.features.parse.local import SEMANTIC, HeadKind
from rerank.features.sink import Places, Sink, begin, emit, put
from rerank.features.template import DIFFERENT, INNER, LAST, LEFT, NUMBER, NUMBER_OFFSET, SAME, SLASH, Template
from rerank.kernels.compile import kernel

Lexical = Literal["pos", "word"]  # of a head: its tag alone, or its tag and its word


@kernel
def _is_conjunct(f: Forest, i: int) -> bool:
    """Whether node i is a conjunct of its parent's coordination."""
    return bool(f.flags[f.parent[i]] & COORDINATION and not f.classes[f.label[i]] & (CONJUNCTION | PUNCTUATION))


@kernel
def _is_head(f: Forest, i: int, semantic: int) -> bool:
    return bool((f.sem[f.parent[i]] if semantic else f.syn[f.parent[i]]) == i)


@kernel
def _next_carrier(f: Forest, top: int, i: int, semantic: int) -> int:
    """The next node after i, in preorder, that carries a head of a dependent of ``top``; if there is none, their end.

    A dependent is a child that is neither the head nor a conjunct; below it, head children and conjuncts carry heads.
    """
    i += 1
    while i < top + f.size[top]:
        if f.parent[i] == top:
            carries = not _is_head(f, i, semantic) and not _is_conjunct(f, i)
        elif f.flags[f.parent[i]] & COORDINATION:
            carries = _is_conjunct(f, i)
        else:
            carries = _is_head(f, i, semantic)
        if carries:
            break
        i += f.size[i]
    return i


@kernel
def _put_head(sink: Sink, h: np.uint64, f: Forest, leaf: int, lexical: int) -> np.uint64:
    h = put(sink, h, f.symbol[f.label[leaf]])
    return put(sink, put(sink, h, SLASH), f.symbol[f.word[leaf]]) if lexical else h


@kernel
def _put_chain(sink: Sink, h: np.uint64, o: np.record, f: Forest, dependent: int, governor: int) -> np.uint64:
    """Write dependent < governor."""
    h = _put_head(sink, h, f, dependent, o.dependent)
    return _put_head(sink, put(sink, h, LEFT), f, governor, o.governor)


@dataclass(frozen=True)
class Heads(Template):
    """Chains of ``n`` heads, from a dependent to its governors, with tags and, if "word" is chosen, words.

    >>> fired("Heads", "(S (NP (NN tea)) (VP (VBZ helps)))")
    {'NN < VBZ': 1.0}

    Heads of conjuncts depend on the governor of their coordination, not on each other.

    Collins (2000); about one feature per word.
    """

    n: Annotated[int, Range(2, 3)] = 2
    governor: Lexical = "pos"
    dependent: Lexical = "pos"
    heads: HeadKind = "syntactic"

    scope = INSIDE

    @staticmethod
    @kernel
    def fire(f: Forest, places: Places, sink: Sink, ids: np.ndarray, seeds: np.ndarray, options: np.ndarray) -> None:
        for p in range(places.node.shape[0]):
            top = places.node[p]
            if f.word[top] >= 0:
                continue
            for v in range(ids.shape[0]):
                o = options[v]
                semantic = o.heads == SEMANTIC
                leaf = f.sem_leaf if semantic else f.syn_leaf
                i = _next_carrier(f, top, top, semantic)
                while i < top + f.size[top]:
                    if o.n == 2 and f.word[i] >= 0:
                        emit(sink, _put_chain(sink, begin(sink, ids[v], seeds[v]), o, f, i, leaf[top]), places, p)
                    if o.n == 3 and f.word[i] < 0:
                        j = _next_carrier(f, i, i, semantic)
                        while j < i + f.size[i]:
                            if f.word[j] >= 0:
                                h = _put_chain(sink, begin(sink, ids[v], seeds[v]), o, f, j, leaf[i])
                                emit(sink, _put_head(sink, put(sink, h, LEFT), f, leaf[top], o.governor), places, p)
                            j = _next_carrier(f, i, j, semantic)
                    i = _next_carrier(f, top, i, semantic)


@kernel
def _fire_two_heads(
    f: Forest, places: Places, sink: Sink, ids: np.ndarray, seeds: np.ndarray, options: np.ndarray
) -> None:
    for p in range(places.node.shape[0]):
        i = places.node[p]
        if f.word[i] >= 0:
            continue
        syn, sem = f.syn_leaf[i], f.sem_leaf[i]
        for v in range(ids.shape[0]):
            h, o = begin(sink, ids[v], seeds[v]), options[v]
            if o.label:
                h = put(sink, h, f.symbol[f.label[i]])
            h = put(sink, h, f.symbol[f.word[sem] if o.semantic else f.label[sem]])
            h = put(sink, h, f.symbol[f.word[syn] if o.syntactic else f.label[syn]])
            emit(sink, h, places, p)


@dataclass(frozen=True)
class LexFunHeads(Template):
    """The tag of a nonterminal's semantic head with the word of its syntactic head.

    >>> fired("LexFunHeads", "(PP (IN in) (NP (NN bed)))")
    {'NN in': 1.0, 'NN bed': 1.0}

    Charniak & Johnson (2005); one feature per nonterminal.
    """

    constants: ClassVar[dict[str, int]] = {"syntactic": 1, "semantic": 0, "label": False}

    scope = INSIDE
    fire = staticmethod(_fire_two_heads)


@dataclass(frozen=True)
class SynSemHeads(Template):
    """A nonterminal's label with its semantic and then its syntactic head, each as "pos" or "word".

    >>> fired("SynSemHeads", "(PP (IN in) (NP (NN bed)))")
    {'PP NN IN': 1.0, 'NP NN NN': 1.0}

    Charniak & Johnson (2005); one feature per nonterminal.
    """

    syntactic: Lexical = "pos"
    semantic: Lexical = "pos"

    constants: ClassVar[dict[str, int]] = {"label": True}
    scope = INSIDE
    fire = staticmethod(_fire_two_heads)


@dataclass(frozen=True)
class SubjVerbAgr(Template):
    """The tag of a clause's subject with the tag of its verb.

    >>> fired("SubjVerbAgr", "(S (NP (NN tea)) (VP (VBZ helps)))")
    {'NN VBZ': 1.0}

    The verb is the syntactic head of the clause's first verbal child that has a nominal one before it; the subject is
    the semantic head of the last nominal child before that.

    Charniak & Johnson (2005); at most one feature per clause.
    """

    scope = INSIDE

    @staticmethod
    @kernel
    def fire(f: Forest, places: Places, sink: Sink, ids: np.ndarray, seeds: np.ndarray, _options: np.ndarray) -> None:
        for p in range(places.node.shape[0]):
            i = places.node[p]
            if f.word[i] >= 0 or not f.classes[f.label[i]] & CLAUSE:
                continue
            subject, verb, child = -1, -1, i + 1
            while child < i + f.size[i] and verb < 0:
                kind = f.classes[f.label[child]]
                if kind & NOMINAL:
                    subject = child
                elif kind & VERBAL and subject >= 0:
                    verb = child
                child += f.size[child]
            if verb < 0:
                continue
            for v in range(ids.shape[0]):
                h = put(sink, begin(sink, ids[v], seeds[v]), f.symbol[f.label[f.sem_leaf[subject]]])
                emit(sink, put(sink, h, f.symbol[f.label[f.syn_leaf[verb]]]), places, p)


@kernel
def _next_conjunct(f: Forest, i: int, child: int) -> int:
    """First conjunct of coordination i from ``child`` on; the end of i's nodes if there is none."""
    stop = i + f.size[i]
    while child < stop and f.classes[f.label[child]] & (CONJUNCTION | PUNCTUATION):
        child += f.size[child]
    return child


@kernel
def _steps_up(f: Forest, i: int, top: int) -> int:
    steps = 0
    while i != top:
        i = f.parent[i]
        steps += 1
    return steps


@kernel
def _same_to_depth(f: Forest, a: int, b: int, depth: int, ignore_preterminals: int) -> bool:
    """Whether the subtrees a and b have the same shape and labels in their upper ``depth`` levels."""
    i, j = a, b
    while i < a + f.size[a] and j < b + f.size[b]:
        level = _steps_up(f, i, a)
        tags = f.word[i] >= 0 and f.word[j] >= 0
        if level != _steps_up(f, j, b) or (f.label[i] != f.label[j] and not (tags and ignore_preterminals)):
            return False
        i += f.size[i] if level == depth - 1 else 1
        j += f.size[j] if level == depth - 1 else 1
    return bool(i == a + f.size[a] and j == b + f.size[b])


@dataclass(frozen=True)
class _Conjuncts(Template):
    scope = INSIDE

    @staticmethod
    @kernel
    def fire(f: Forest, places: Places, sink: Sink, ids: np.ndarray, seeds: np.ndarray, options: np.ndarray) -> None:
        for v in range(ids.shape[0]):
            o = options[v]
            for p in range(places.node.shape[0]):
                i = places.node[p]
                if not f.flags[i] & COORDINATION:
                    continue
                left = _next_conjunct(f, i, i + 1)
                right = _next_conjunct(f, i, left + f.size[left])
                while right < i + f.size[i]:
                    after = _next_conjunct(f, i, right + f.size[right])
                    for depth in range(1, o.depths + 1):
                        same = _same_to_depth(f, left, right, depth, o.ignore_preterminals)
                        h = put(sink, begin(sink, ids[v], seeds[v]), NUMBER[NUMBER_OFFSET + depth])
                        emit(sink, put(sink, h, SAME if same else DIFFERENT), places, p)
                    if o.most > 0:
                        longer = (f.end[right] - f.start[right]) - (f.end[left] - f.start[left])
                        difference = min(max(longer, -o.most), o.most)
                        h = put(sink, begin(sink, ids[v], seeds[v]), NUMBER[NUMBER_OFFSET + difference])
                        emit(sink, put(sink, h, INNER if after < i + f.size[i] else LAST), places, p)
                    left, right = right, after


@dataclass(frozen=True)
class CoPar(_Conjuncts):
    """Whether the trees of adjacent conjuncts are the same down to a depth, from 1 to ``depths``.

    >>> fired("CoPar", "(NP (NP (NN tea)) (CC and) (NP (NN milk)))")
    {'1 same': 1.0, '2 same': 1.0, '3 same': 1.0, '4 same': 1.0}

    ``ignore_preterminals``: tags need not agree.

    Charniak & Johnson (2005); ``depths`` features per pair of conjuncts.
    """

    constants: ClassVar[dict[str, int]] = {"most": 0}
    depths: Annotated[int, Range(1, 16)] = 4
    ignore_preterminals: bool = False


@dataclass(frozen=True)
class CoLenPar(_Conjuncts):
    """The words by which the second of two adjacent conjuncts is longer (clipped to ±``most``), last pair or not.

    >>> fired("CoLenPar", "(NP (NP (NN tea)) (CC and) (NP (JJ hot) (NN milk)))")
    {'1 last': 1.0}

    Charniak & Johnson (2005); one feature per pair of conjuncts.
    """

    constants: ClassVar[dict[str, int]] = {"depths": 0, "ignore_preterminals": 0}
    most: Annotated[int, Range(1, NUMBER_OFFSET)] = 5
