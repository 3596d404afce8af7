"""Templates over coordinations: CoPar and CoLenPar, parallelism of adjacent conjuncts (Charniak & Johnson 2005)."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from rerank.base.ranges import Range
from rerank.features.forest import COORDINATION, Forest
from rerank.features.heads import CONJUNCTION, PUNCTUATION
from rerank.features.marks import DIFFERENT, INNER, LAST, NUMBER, NUMBER_OFFSET, SAME
from rerank.features.places import INSIDE
from rerank.features.sink import Places, Sink, begin, emit, put
from rerank.features.template import Template
from rerank.kernels.compile import kernel


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


@kernel
def _fire_parallel(
    f: Forest, places: Places, sink: Sink, ids: np.ndarray, seeds: np.ndarray, options: np.ndarray
) -> None:
    for p in range(places.node.shape[0]):
        i = places.node[p]
        if not f.flags[i] & COORDINATION:
            continue
        stop = i + f.size[i]
        left = _next_conjunct(f, i, i + 1)
        right = _next_conjunct(f, i, left + f.size[left])
        while right < stop:
            for v in range(ids.shape[0]):
                for depth in range(1, options[v].depths + 1):
                    same = _same_to_depth(f, left, right, depth, options[v].ignore_preterminals)
                    h = put(sink, begin(sink, ids[v], seeds[v]), NUMBER[NUMBER_OFFSET + depth])
                    emit(sink, put(sink, h, SAME if same else DIFFERENT), places, p)
            left, right = right, _next_conjunct(f, i, right + f.size[right])


@dataclass(frozen=True)
class CoPar(Template):
    """For depths 1 to ``depths``: whether the trees of adjacent conjuncts are the same down to that depth.

    >>> from rerank.features.fired import fired
    >>> fired("CoPar", "(NP (NP (NN tea)) (CC and) (NP (NN milk)))")
    {'1 same': 1.0, '2 same': 1.0, '3 same': 1.0, '4 same': 1.0}

    ``ignore_preterminals``: tags need not agree.

    Charniak & Johnson (2005); ``depths`` features per pair of conjuncts.
    """

    depths: Annotated[int, Range(1, 16)] = 4
    ignore_preterminals: bool = False

    scope = INSIDE
    fire = staticmethod(_fire_parallel)


@kernel
def _fire_lengths(
    f: Forest, places: Places, sink: Sink, ids: np.ndarray, seeds: np.ndarray, options: np.ndarray
) -> None:
    for p in range(places.node.shape[0]):
        i = places.node[p]
        if not f.flags[i] & COORDINATION:
            continue
        stop = i + f.size[i]
        left = _next_conjunct(f, i, i + 1)
        right = _next_conjunct(f, i, left + f.size[left])
        while right < stop:
            after = _next_conjunct(f, i, right + f.size[right])
            longer = (f.end[right] - f.start[right]) - (f.end[left] - f.start[left])
            for v in range(ids.shape[0]):
                most = options[v].most
                clipped = min(max(longer, -most), most)
                h = put(sink, begin(sink, ids[v], seeds[v]), NUMBER[NUMBER_OFFSET + clipped])
                emit(sink, put(sink, h, LAST if after >= stop else INNER), places, p)
            left, right = right, after


@dataclass(frozen=True)
class CoLenPar(Template):
    """By how much the second of two adjacent conjuncts is longer (words, clipped to ±``most``), last pair or not.

    >>> from rerank.features.fired import fired
    >>> fired("CoLenPar", "(NP (NP (NN tea)) (CC and) (NP (JJ hot) (NN milk)))")
    {'1 last': 1.0}

    Charniak & Johnson (2005); one feature per pair of conjuncts.
    """

    most: Annotated[int, Range(1, NUMBER_OFFSET)] = 5

    scope = INSIDE
    fire = staticmethod(_fire_lengths)
