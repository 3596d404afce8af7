"""Given: the sparse features that come with a list of texts."""

from dataclasses import dataclass

import numpy as np

from rerank.features.sink import Sink, begin, emit_value, put
from rerank.features.template import templates
from rerank.features.text.template import TextTemplate
from rerank.features.text.view import TextView
from rerank.kernels.compile import kernel


@kernel
def _fire_given(view: TextView, sink: Sink, ids: np.ndarray, seeds: np.ndarray, _options: np.ndarray) -> None:
    for y in range(view.base.shape[0]):
        for e in range(view.given_first[y], view.given_first[y + 1]):
            for v in range(ids.shape[0]):
                emit_value(sink, put(sink, begin(sink, ids[v], seeds[v]), view.given_names[e]), y, view.given[e])


@templates.add("Given")
@dataclass(frozen=True)
class Given(TextTemplate):
    """The sparse features in the list itself, with their values."""

    fire = staticmethod(_fire_given)
