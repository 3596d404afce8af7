"""What Rule and NGram share: the options of a local tree, and the kernels that write its context and children."""

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from rerank.base.ranges import Range
from rerank.features.classes import FUNCTION
from rerank.features.forest import IN_COORDINATION, ROOT_CLAUSE, Forest
from rerank.features.marks import BAR, COLON, CONJUNCT, NESTED, SLASH, STAR, UP
from rerank.features.places import INSIDE, UPWARD
from rerank.features.sink import Sink, put
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

    ancestors: add the labels of so many ancestors; root: mark nodes outside the root clause; conj: mark children of a
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
        h = put(sink, put(sink, h, UP), f.symbol[f.label[i]])
    return h


@kernel
def put_context(sink: Sink, h: np.uint64, f: Forest, i: int, o: np.record) -> np.uint64:
    """Write the ancestors and marks of node i that the options ask for."""
    h = put_ancestors(sink, h, f, i, o.ancestors)
    if o.root and not f.flags[i] & ROOT_CLAUSE:
        h = put(sink, h, NESTED)
    if o["conj"] and f.flags[i] & IN_COORDINATION:
        h = put(sink, h, CONJUNCT)
    return put(sink, h, BAR)


@kernel
def put_child(sink: Sink, h: np.uint64, f: Forest, i: int, child: int, o: np.record) -> np.uint64:
    """Write the label of a child of i, with its word or the annotation of its head."""
    is_head = child == (f.sem[i] if o.heads == SEMANTIC else f.syn[i])
    if is_head and o.mark_head:
        h = put(sink, h, STAR)
    label = f.label[child]
    h = put(sink, h, f.symbol[label])
    if f.word[child] >= 0 and (o.words == ALL_WORDS or (o.words == FUNCTION_WORDS and f.classes[label] & FUNCTION)):
        return put(sink, put(sink, h, SLASH), f.symbol[f.word[child]])
    annotation = o.head if is_head else o.nonhead
    if annotation:
        leaf = f.sem_leaf[child] if o.heads == SEMANTIC else f.syn_leaf[child]
        shown = f.label[leaf] if annotation == POS else f.word[leaf]
        h = put(sink, put(sink, h, COLON), f.symbol[shown])
    return h
