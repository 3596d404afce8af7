"""Nesting: labels below labels of their own kind."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from rerank.base.ranges import Range
from rerank.features.forest import UPWARD, Forest
from rerank.features.sink import Places, Sink, begin, emit, put
from rerank.features.template import NUMBER, NUMBER_OFFSET, Template
from rerank.kernels.compile import kernel


@kernel
def _fire(f: Forest, places: Places, sink: Sink, ids: np.ndarray, seeds: np.ndarray, options: np.ndarray) -> None:
    for p in range(places.node.shape[0]):
        i = places.node[p]
        if f.word[i] >= 0:  # a preterminal
            continue
        for v in range(ids.shape[0]):
            nested, up = 0, f.parent[i]
            for _ in range(options[v].k):
                if up < 0:
                    break
                nested += f.label[up] == f.label[i]
                up = f.parent[up]
            if nested > 0:
                h = put(sink, begin(sink, ids[v], seeds[v]), f.symbol[f.label[i]])
                emit(sink, put(sink, h, NUMBER[NUMBER_OFFSET + nested]), places, p)


@dataclass(frozen=True)
class Nesting(Template):
    """A label with how many of its ``k`` lowest ancestors have the same label, where any has."""

    k: Annotated[int, Range(1, 8)] = 2

    scope = UPWARD
    fire = staticmethod(_fire)

    @property
    def depth(self) -> int:
        return self.k
