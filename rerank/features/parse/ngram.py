"""NGram: runs of adjacent children of a node."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from rerank.base.ranges import Range
from rerank.features.forest import Forest
from rerank.features.marks import END, LEFT, RIGHT, STAR
from rerank.features.parse.local import SEMANTIC, LocalTree, put_child, put_context
from rerank.features.sink import Places, Sink, begin, emit, put
from rerank.features.template import Template, templates
from rerank.kernels.compile import kernel


@kernel
def _fire(f: Forest, places: Places, sink: Sink, ids: np.ndarray, seeds: np.ndarray, options: np.ndarray) -> None:
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
                    h = put(sink, h, END)
                    room -= 1
                side, child = RIGHT, first
                while child < stop and room > 0:
                    side = STAR if child == head else (LEFT if child < head and side != STAR else side)
                    h = put_child(sink, h, f, i, child, o)
                    child += f.size[child]
                    room -= 1
                if room == 1:
                    h = put(sink, h, END)
                    room = 0
                if room > 0:
                    break
                emit(sink, put(sink, h, side), places, p)
                if at_start:
                    at_start = False
                else:
                    first += f.size[first]


@templates.add("NGram")
@dataclass(frozen=True)
class NGram(LocalTree, Template):
    """``n`` adjacent children, with ``(end)`` at either end, and their side of the head (< left, * with it, > right).

    See LocalTree for the other options. A window that consists only of end marks does not fire.
    """

    n: Annotated[int, Range(1, 8)] = 2

    fire = staticmethod(_fire)
