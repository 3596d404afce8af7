"""What Rule and NGram share: the options of a local tree, and the kernels that write its context and children."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rerank.features.classes import FUNCTION
from rerank.features.forest import IN_COORDINATION, ROOT_CLAUSE, Forest
from rerank.features.marks import BAR, COLON, CONJUNCT, NESTED, SLASH, STAR, UP
from rerank.features.places import INSIDE, UPWARD
from rerank.features.sink import Sink, put
from rerank.features.template import WORDS, Template, check_choice
from rerank.kernels.compile import kernel

ANNOTATION = {"none": 0, "pos": 1, "word": 2}
HEADS = {"syntactic": 0, "semantic": 1}

# Columns of an options row, shared by Rule and NGram.
ANCESTORS, ROOT, CONJ, MARK_HEAD, WORD, HEAD, NONHEAD, SEMANTIC, LENGTH = range(9)


@dataclass(frozen=True)
class LocalTree(Template):
    """Options of templates over a node and its children.

    ancestors: add the labels of so many ancestors; root: mark nodes outside the root clause; conj: mark children of a
    coordination; mark_head: mark the head child; words: add the word of preterminal children ("none", those with a
    "function" tag, "all"); head, nonhead: annotate the head child and the other children, if their word is not
    added, with the "pos" or "word" of their head; heads: which heads ("syntactic" or "semantic").
    """

    ancestors: int = 0
    root: bool = False
    conj: bool = False
    mark_head: bool = False
    words: str = "none"
    head: str = "none"
    nonhead: str = "none"
    heads: str = "syntactic"

    def __post_init__(self) -> None:
        check_choice(self.kind, "ancestors", self.ancestors, range(9))
        check_choice(self.kind, "words", self.words, WORDS)
        check_choice(self.kind, "head", self.head, ANNOTATION)
        check_choice(self.kind, "nonhead", self.nonhead, ANNOTATION)
        check_choice(self.kind, "heads", self.heads, HEADS)

    @property
    def scope(self) -> int:
        return UPWARD if self.ancestors or self.root or self.conj else INSIDE

    @property
    def depth(self) -> int:
        return self.ancestors

    def options(self) -> tuple[int, ...]:
        annotations = (WORDS[self.words], ANNOTATION[self.head], ANNOTATION[self.nonhead], HEADS[self.heads])
        return (self.ancestors, int(self.root), int(self.conj), int(self.mark_head), *annotations)


@kernel
def put_ancestors(sink: Sink, h: np.uint64, f: Forest, i: int, ancestors: int) -> np.uint64:
    """Write ``^ label`` for each of the lowest ``ancestors`` ancestors of i."""
    for _ in range(ancestors):
        i = f.parent[i]
        if i < 0:
            break
        h = put(sink, put(sink, h, UP), f.symbol[f.label[i]])
    return h


@kernel
def put_context(sink: Sink, h: np.uint64, f: Forest, i: int, options: np.ndarray, v: int) -> np.uint64:
    """Write the ancestors and marks of node i that the options ask for."""
    h = put_ancestors(sink, h, f, i, options[v, ANCESTORS])
    if options[v, ROOT] and not f.flags[i] & ROOT_CLAUSE:
        h = put(sink, h, NESTED)
    if options[v, CONJ] and f.flags[i] & IN_COORDINATION:
        h = put(sink, h, CONJUNCT)
    return put(sink, h, BAR)


@kernel
def put_child(sink: Sink, h: np.uint64, f: Forest, i: int, child: int, options: np.ndarray, v: int) -> np.uint64:
    """Write the label of a child of i, with its word or the annotation of its head."""
    is_head = child == (f.sem[i] if options[v, SEMANTIC] else f.syn[i])
    if is_head and options[v, MARK_HEAD]:
        h = put(sink, h, STAR)
    label = f.label[child]
    h = put(sink, h, f.symbol[label])
    if f.word[child] >= 0 and (options[v, WORD] == 2 or (options[v, WORD] == 1 and f.classes[label] & FUNCTION)):
        return put(sink, put(sink, h, SLASH), f.symbol[f.word[child]])
    annotation = options[v, HEAD] if is_head else options[v, NONHEAD]
    if annotation:
        leaf = f.sem_leaf[child] if options[v, SEMANTIC] else f.syn_leaf[child]
        shown = f.label[leaf] if annotation == 1 else f.word[leaf]
        h = put(sink, put(sink, h, COLON), f.symbol[shown])
    return h
