"""TargetNGram: adjacent words of a candidate."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from rerank.base.ranges import Range
from rerank.features.marks import TEXT_END, TEXT_START
from rerank.features.sink import Sink, begin, emit_value, put
from rerank.features.template import templates
from rerank.features.text.template import TextTemplate
from rerank.features.text.view import TextView
from rerank.kernels.compile import kernel


@kernel
def _fire(view: TextView, sink: Sink, ids: np.ndarray, seeds: np.ndarray, options: np.ndarray) -> None:
    for y in range(view.base.shape[0]):
        first, last = view.first[y], view.first[y + 1]
        for v in range(ids.shape[0]):
            n = options[v].n
            edge = 1 if n > 1 else 0  # one mark at either end
            for i in range(first - edge, last + edge - n + 1):
                h = begin(sink, ids[v], seeds[v])
                for j in range(i, i + n):
                    h = put(sink, h, TEXT_START if j < first else (TEXT_END if j >= last else view.words[j]))
                emit_value(sink, h, y, 1.0)


@templates.add("TargetNGram")
@dataclass(frozen=True)
class TargetNGram(TextTemplate):
    """``n`` adjacent words of the candidate; with n > 1, there is a mark before the first and after the last word."""

    n: Annotated[int, Range(1, 9)] = 1

    fire = staticmethod(_fire)
