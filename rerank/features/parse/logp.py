"""Templates for the base score: LogP, LogCondP and their bins.

A model always holds the base score as an unregularised weight of its own; these templates add it as ordinary columns.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from rerank.base.ranges import Range
from rerank.features.forest import Forest
from rerank.features.marks import NUMBER, NUMBER_OFFSET
from rerank.features.places import TREE
from rerank.features.sink import Places, Sink, begin, emit_value, put
from rerank.features.template import Template, templates
from rerank.kernels.compile import kernel

LARGEST = float(np.finfo(np.float32).max)  # the largest value that can be stored
BEST, SUM, NONE = range(3)  # LogCondP's choices, and LogP's norm


@kernel
def _fire_score(
    f: Forest, _places: Places, sink: Sink, ids: np.ndarray, seeds: np.ndarray, options: np.ndarray
) -> None:
    if f.base.shape[0] == 0:
        return
    best, total = f.base[0], 0.0
    for y in range(1, f.base.shape[0]):
        best = max(best, f.base[y])
    for y in range(f.base.shape[0]):
        total += np.exp(f.base[y] - best)
    log_sum = best + np.log(total)
    for v in range(ids.shape[0]):
        o = options[v]
        norm = best if o.norm == BEST else (log_sum if o.norm == SUM else 0.0)
        for y in range(f.base.shape[0]):
            value = min(max(f.base[y] - norm, -LARGEST), LARGEST)
            if o.bin == 0:
                emit_value(sink, begin(sink, ids[v], seeds[v]), y, value)
            else:
                unit = int(min(float(NUMBER_OFFSET), -value * 10.0 / o.bin))
                emit_value(sink, put(sink, begin(sink, ids[v], seeds[v]), NUMBER[NUMBER_OFFSET + unit]), y, 1.0)


@dataclass(frozen=True)
class _Score(Template):
    scope = TREE
    fire = staticmethod(_fire_score)


@templates.add("LogP")
@dataclass(frozen=True)
class LogP(_Score):
    """The base score as a column."""

    fixed: ClassVar[dict[str, int]] = {"norm": NONE, "bin": 0}


@templates.add("LogCondP")
@dataclass(frozen=True)
class LogCondP(_Score):
    """The base score minus the list's best ("best") or minus the log of the list's summed exponentials ("sum").

    ``bin``: 0 for the value itself; b > 0 for an indicator of its integer part in units of b/10, at most 64 units.
    """

    norm: Literal["best", "sum"] = "best"
    bin: Annotated[int, Range(0, 1000)] = 0
