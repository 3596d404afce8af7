"""Rule: a local tree, a label with the sequence of its children."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rerank.features.forest import Forest
from rerank.features.marks import ARROW
from rerank.features.parse.local import LocalTree, put_child, put_context
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
            h = put(sink, begin(sink, ids[v], seeds[v]), f.symbol[f.label[i]])
            h = put_context(sink, h, f, i, options[v])
            h = put(sink, h, ARROW)
            child, stop = i + 1, i + f.size[i]
            while child < stop:
                h = put_child(sink, h, f, i, child, options[v])
                child += f.size[child]
            emit(sink, h, places, p)


@templates.add("Rule")
@dataclass(frozen=True)
class Rule(LocalTree, Template):
    """A local tree: label and children's labels, e.g. ``Rule|NP | → DT NN``; see LocalTree for the options."""

    fixed: ClassVar[dict[str, int]] = {"n": 0}  # NGram's option: one compiled put_child serves both
    fire = staticmethod(_fire)
