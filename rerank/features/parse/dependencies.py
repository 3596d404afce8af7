"""Templates over heads: Heads, LexFunHeads, SynSemHeads and SubjVerbAgr."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rerank.features.classes import CLAUSE, CONJUNCTION, NOMINAL, PUNCTUATION, VERBAL
from rerank.features.forest import COORDINATION, Forest
from rerank.features.marks import LEFT, SLASH
from rerank.features.parse.local import HEADS
from rerank.features.places import INSIDE
from rerank.features.sink import Places, Sink, begin, emit, put
from rerank.features.template import Template, check_choice, templates
from rerank.kernels.compile import kernel

LEXICAL = {"pos": 0, "word": 1}


@kernel
def _is_conjunct(f: Forest, i: int) -> bool:
    """Is node i a conjunct of its parent's coordination?"""
    return bool(f.flags[f.parent[i]] & COORDINATION and not f.classes[f.label[i]] & (CONJUNCTION | PUNCTUATION))


@kernel
def _is_head(f: Forest, i: int, semantic: int) -> bool:
    return bool((f.sem[f.parent[i]] if semantic else f.syn[f.parent[i]]) == i)


@kernel
def _carries_head(f: Forest, i: int, semantic: int) -> bool:
    """Does i hold a head of its parent, being its head child or a conjunct of a coordination?"""
    if f.flags[f.parent[i]] & COORDINATION:
        return _is_conjunct(f, i)
    return _is_head(f, i, semantic)


@kernel
def _depends(f: Forest, i: int, semantic: int) -> bool:
    """Is i governed by the head of its parent?"""
    return not _is_head(f, i, semantic) and not _is_conjunct(f, i)


@kernel
def _put_head(sink: Sink, h: np.uint64, f: Forest, leaf: int, lexical: int) -> np.uint64:
    h = put(sink, h, f.symbol[f.label[leaf]])
    return put(sink, put(sink, h, SLASH), f.symbol[f.word[leaf]]) if lexical else h


@kernel
def _emit_chain(
    sink: Sink,
    template: int,
    seed: np.uint64,
    options: np.ndarray,
    v: int,
    f: Forest,
    dependent: int,
    governor: int,
    second: int,
    places: Places,
    p: int,
) -> None:
    """Write dependent < governor [< second governor]; -1: there is no second."""
    h = _put_head(sink, begin(sink, template, seed), f, dependent, options[v, 2])
    h = _put_head(sink, put(sink, h, LEFT), f, governor, options[v, 1])
    if second >= 0:
        h = _put_head(sink, put(sink, h, LEFT), f, second, options[v, 1])
    emit(sink, h, places, p)


@kernel
def _emit_dependents(
    sink: Sink,
    template: int,
    seed: np.uint64,
    options: np.ndarray,
    v: int,
    f: Forest,
    top: int,
    last: int,
    places: Places,
    p: int,
) -> None:
    """Write the chains dependent < head of ``top`` < ``last`` for all dependents of ``top``."""
    semantic = options[v, 3]
    governor = f.sem_leaf[top] if semantic else f.syn_leaf[top]
    child = top + 1
    while child < top + f.size[top]:
        stop = child + f.size[child]
        i = child if _depends(f, child, semantic) else stop
        while i < stop:
            if i > child and not _carries_head(f, i, semantic):
                i += f.size[i]
                continue
            if f.word[i] >= 0:
                _emit_chain(sink, template, seed, options, v, f, i, governor, last, places, p)
            i += 1
        child = stop


@kernel
def _fire_heads(f: Forest, places: Places, sink: Sink, ids: np.ndarray, seeds: np.ndarray, options: np.ndarray) -> None:
    for p in range(places.node.shape[0]):
        top = places.node[p]
        if f.word[top] >= 0:
            continue
        for v in range(ids.shape[0]):
            semantic = options[v, 3]
            last = f.sem_leaf[top] if semantic else f.syn_leaf[top]
            child = top + 1
            while child < top + f.size[top]:
                stop = child + f.size[child]
                i = child if _depends(f, child, semantic) else stop
                while i < stop:  # the nodes that carry a head of ``child``, in preorder
                    if i > child and not _carries_head(f, i, semantic):
                        i += f.size[i]
                        continue
                    if options[v, 0] == 2 and f.word[i] >= 0:
                        _emit_chain(sink, ids[v], seeds[v], options, v, f, i, last, -1, places, p)
                    if options[v, 0] == 3 and f.word[i] < 0:
                        _emit_dependents(sink, ids[v], seeds[v], options, v, f, i, last, places, p)
                    i += 1
                child = stop


@templates.add("Heads")
@dataclass(frozen=True)
class Heads(Template):
    """Chains of ``n`` heads, from a dependent to its governors, with tags and, if "word" is chosen, words.

    Heads of conjuncts depend on the governor of their coordination, not on each other.
    """

    kind: ClassVar[str] = "Heads"
    n: int = 2
    governor: str = "pos"
    dependent: str = "pos"
    heads: str = "syntactic"

    def __post_init__(self) -> None:
        check_choice(self.kind, "n", self.n, range(2, 4))
        check_choice(self.kind, "governor", self.governor, LEXICAL)
        check_choice(self.kind, "dependent", self.dependent, LEXICAL)
        check_choice(self.kind, "heads", self.heads, HEADS)

    @property
    def scope(self) -> int:
        return INSIDE

    def options(self) -> tuple[int, ...]:
        return (self.n, LEXICAL[self.governor], LEXICAL[self.dependent], HEADS[self.heads])

    fire = staticmethod(_fire_heads)


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
            h = begin(sink, ids[v], seeds[v])
            if options[v, 0]:
                h = put(sink, h, f.symbol[f.label[i]])
            h = put(sink, h, f.symbol[f.word[sem] if options[v, 1] else f.label[sem]])
            h = put(sink, h, f.symbol[f.word[syn] if options[v, 2] else f.label[syn]])
            emit(sink, h, places, p)


@templates.add("LexFunHeads")
@dataclass(frozen=True)
class LexFunHeads(Template):
    """The tag of a nonterminal's semantic head with the word of its syntactic head."""

    kind: ClassVar[str] = "LexFunHeads"

    @property
    def scope(self) -> int:
        return INSIDE

    def options(self) -> tuple[int, ...]:
        return (0, 0, 1)

    fire = staticmethod(_fire_two_heads)


@templates.add("SynSemHeads")
@dataclass(frozen=True)
class SynSemHeads(Template):
    """A nonterminal's label with its semantic and then its syntactic head, each as "pos" or "word"."""

    kind: ClassVar[str] = "SynSemHeads"
    syntactic: str = "pos"
    semantic: str = "pos"

    def __post_init__(self) -> None:
        check_choice(self.kind, "syntactic", self.syntactic, LEXICAL)
        check_choice(self.kind, "semantic", self.semantic, LEXICAL)

    @property
    def scope(self) -> int:
        return INSIDE

    def options(self) -> tuple[int, ...]:
        return (1, LEXICAL[self.semantic], LEXICAL[self.syntactic])

    fire = staticmethod(_fire_two_heads)


@kernel
def _fire_agreement(
    f: Forest, places: Places, sink: Sink, ids: np.ndarray, seeds: np.ndarray, _options: np.ndarray
) -> None:
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


@templates.add("SubjVerbAgr")
@dataclass(frozen=True)
class SubjVerbAgr(Template):
    """The tag of a clause's subject with the tag of its verb.

    The verb is the syntactic head of the clause's first verbal child that has a nominal one before it; the subject is
    the semantic head of the last nominal child before that.
    """

    kind: ClassVar[str] = "SubjVerbAgr"

    @property
    def scope(self) -> int:
        return INSIDE

    def options(self) -> tuple[int, ...]:
        return (0,)

    fire = staticmethod(_fire_agreement)
