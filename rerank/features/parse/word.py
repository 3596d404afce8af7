"""Word and WProj: words with the labels above them."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from rerank.base.ranges import Range
from rerank.features.forest import SEM_HEAD, SYN_HEAD, Forest
from rerank.features.marks import BAR
from rerank.features.parse.local import SEMANTIC, HeadKind, put_ancestors
from rerank.features.places import UPWARD
from rerank.features.sink import Places, Sink, begin, emit, put
from rerank.features.template import Template, templates
from rerank.kernels.compile import kernel


@kernel
def _fire_word(f: Forest, places: Places, sink: Sink, ids: np.ndarray, seeds: np.ndarray, options: np.ndarray) -> None:
    for p in range(places.node.shape[0]):
        i = places.node[p]
        if f.word[i] < 0:
            continue
        for v in range(ids.shape[0]):
            h = put(sink, begin(sink, ids[v], seeds[v]), f.symbol[f.word[i]])
            h = put(sink, h, f.symbol[f.label[i]])
            h = put_ancestors(sink, h, f, i, options[v].k - 1)
            emit(sink, h, places, p)


@templates.add("Word")
@dataclass(frozen=True)
class Word(Template):
    """A word with the labels of its ``k`` lowest ancestors, the first of which is its tag.

    >>> from rerank.features.fired import fired
    >>> fired("Word", "(NP (DT the) (NN dog))")
    {'the DT': 1.0, 'dog NN': 1.0}

    Charniak & Johnson (2005); one feature per word.
    """

    k: Annotated[int, Range(1, 8)] = 1

    scope = UPWARD

    @property
    def depth(self) -> int:
        return self.k - 1

    fire = staticmethod(_fire_word)


@kernel
def _fire_projection(
    f: Forest, places: Places, sink: Sink, ids: np.ndarray, seeds: np.ndarray, options: np.ndarray
) -> None:
    for p in range(places.node.shape[0]):
        i = places.node[p]  # the maximal projection of its head word, unless it is the head of its parent
        for v in range(ids.shape[0]):
            semantic = options[v].heads == SEMANTIC
            if f.flags[i] & (SEM_HEAD if semantic else SYN_HEAD):
                continue
            leaf = f.sem_leaf[i] if semantic else f.syn_leaf[i]
            h = put(sink, begin(sink, ids[v], seeds[v]), f.symbol[f.word[leaf]])
            h = put(sink, put(sink, h, f.symbol[f.label[leaf]]), BAR)
            h = put(sink, h, f.symbol[f.label[i]])
            h = put_ancestors(sink, h, f, i, options[v].k)
            emit(sink, h, places, p)


@templates.add("WProj")
@dataclass(frozen=True)
class WProj(Template):
    """A word with its tag, the label of its maximal projection, and the labels of ``k`` ancestors above that.

    >>> from rerank.features.fired import fired
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

    fire = staticmethod(_fire_projection)
