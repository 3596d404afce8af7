"""Dense, BaseScore and Given: the scores and sparse features that come with a list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rerank.features.sink import Sink, begin, emit_value, put
from rerank.features.template import templates
from rerank.features.text.template import TextTemplate
from rerank.features.text.view import TextView
from rerank.kernels.compile import kernel


@kernel
def _fire_dense(view: TextView, sink: Sink, ids: np.ndarray, seeds: np.ndarray, _options: np.ndarray) -> None:
    for k in range(view.names.shape[0]):
        if view.names[k] != np.uint64(0):  # 0: the base score
            for v in range(ids.shape[0]):
                h = put(sink, begin(sink, ids[v], seeds[v]), view.names[k])
                for y in range(view.base.shape[0]):
                    emit_value(sink, h, y, view.scores[y, k])


@templates.add("Dense")
@dataclass(frozen=True)
class Dense(TextTemplate):
    """Every named score of the list except the base score, as a column of its own; the value is the score."""

    free: ClassVar[bool] = True

    fire = staticmethod(_fire_dense)


@kernel
def _fire_base(view: TextView, sink: Sink, ids: np.ndarray, seeds: np.ndarray, _options: np.ndarray) -> None:
    for y in range(view.base.shape[0]):
        for v in range(ids.shape[0]):
            emit_value(sink, begin(sink, ids[v], seeds[v]), y, view.base[y])


@templates.add("BaseScore")
@dataclass(frozen=True)
class BaseScore(TextTemplate):
    """The base score as a dense column like the others, so that its weight is learned together with theirs.

    With ``learner.base: 0`` it has no other weight.
    """

    free: ClassVar[bool] = True

    fire = staticmethod(_fire_base)


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
