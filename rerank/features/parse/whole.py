"""Templates for a whole tree: its shape (RightBranch, LeftBranchLength, RightBranchLength) and its base score (LogP,
LogCondP). A model always holds the base score as a weight of its own; the latter add it as ordinary columns."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from rerank.base.ranges import Range
from rerank.features.forest import Forest
from rerank.features.heads import PUNCTUATION
from rerank.features.marks import NUMBER, NUMBER_OFFSET, OFF, ON
from rerank.features.places import TREE
from rerank.features.scores import FLOAT32_MAX
from rerank.features.sink import Places, Sink, begin, emit_value, put
from rerank.features.template import Template
from rerank.kernels.compile import kernel

BEST, SUM, NONE = range(3)  # LogCondP's choices, and LogP's norm


@dataclass(frozen=True)
class _Shape(Template):
    scope = TREE


@kernel
def _fire_right_branch(
    f: Forest, _places: Places, sink: Sink, ids: np.ndarray, seeds: np.ndarray, _options: np.ndarray
) -> None:
    for y in range(f.first.shape[0] - 1):
        leaf = f.leaf_first[y + 1] - 1
        while leaf > f.leaf_first[y] and f.classes[f.label[f.leaf[leaf]]] & PUNCTUATION:
            leaf -= 1
        on, i = 0, f.parent[f.leaf[leaf]]
        while i >= 0:
            on += 1
            i = f.parent[i]
        leaves = f.leaf_first[y + 1] - f.leaf_first[y]
        off = f.first[y + 1] - f.first[y] - leaves - on
        for v in range(ids.shape[0]):
            emit_value(sink, put(sink, begin(sink, ids[v], seeds[v]), ON), y, float(on))
            emit_value(sink, put(sink, begin(sink, ids[v], seeds[v]), OFF), y, float(off))


@dataclass(frozen=True)
class RightBranch(_Shape):
    """The number of nonterminals on the path from the root to the rightmost word that is not punctuation, and how many
    do not. If all words are punctuation, the path leads to the first.

    >>> from rerank.features.fired import fired
    >>> fired("RightBranch", "(S (NP (NN tea)) (VP (VBZ helps)))")
    {'on': 2.0, 'off': 1.0}

    Charniak & Johnson (2005); two features per tree.
    """

    fire = staticmethod(_fire_right_branch)


@kernel
def _fire_chains(
    f: Forest, _places: Places, sink: Sink, ids: np.ndarray, seeds: np.ndarray, options: np.ndarray
) -> None:
    for v in range(ids.shape[0]):
        right = options[v].right
        for y in range(f.first.shape[0] - 1):
            total = 0.0
            for p in range(f.leaf_first[y], f.leaf_first[y + 1]):
                leaf = f.leaf[p]
                chain, i = 0, f.parent[leaf]
                while i >= 0 and (f.end[i] == f.end[leaf] if right else f.start[i] == f.start[leaf]):
                    chain += 1
                    i = f.parent[i]
                total += np.log1p(chain)
            emit_value(sink, begin(sink, ids[v], seeds[v]), y, total)


@dataclass(frozen=True)
class _Chains(_Shape):
    fire = staticmethod(_fire_chains)


@dataclass(frozen=True)
class LeftBranchLength(_Chains):
    """Sum over words of log(1 + number of nonterminals whose first word it is).

    >>> from rerank.features.fired import fired
    >>> fired("LeftBranchLength", "(S (NP (NN tea)) (VP (VBZ helps)))")
    {'': 1.7918}

    One feature per tree.
    """

    fixed: ClassVar[dict[str, int]] = {"right": False}


@dataclass(frozen=True)
class RightBranchLength(_Chains):
    """Sum over words of log(1 + number of nonterminals whose last word it is).

    >>> from rerank.features.fired import fired
    >>> fired("RightBranchLength", "(S (NP (NN tea)) (VP (VBZ helps)))")
    {'': 1.7918}

    One feature per tree.
    """

    fixed: ClassVar[dict[str, int]] = {"right": True}


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
            value = min(max(f.base[y] - norm, -FLOAT32_MAX), FLOAT32_MAX)
            if o.bin == 0:
                emit_value(sink, begin(sink, ids[v], seeds[v]), y, value)
            else:
                unit = int(min(float(NUMBER_OFFSET), -value * 10.0 / o.bin))
                emit_value(sink, put(sink, begin(sink, ids[v], seeds[v]), NUMBER[NUMBER_OFFSET + unit]), y, 1.0)


@dataclass(frozen=True)
class _Score(_Shape):
    fire = staticmethod(_fire_score)


@dataclass(frozen=True)
class LogP(_Score):
    """The base score as a column.

    >>> from rerank.features.fired import fired
    >>> fired("LogP", "(NN tea)")
    {'': -1.0}

    One feature per tree.
    """

    fixed: ClassVar[dict[str, int]] = {"norm": NONE, "bin": 0}


@dataclass(frozen=True)
class LogCondP(_Score):
    """The base score minus the list's best ("best") or minus the log of the list's summed exponentials ("sum").

    >>> from rerank.features.fired import fired
    >>> fired("LogCondP(norm=sum)", "(NN tea)", "(VB tea)")
    {'': -0.3133}

    ``bin``: 0 for the value itself; b > 0 for an indicator of its integer part in units of b/10, at most 64 units.

    One feature per tree.
    """

    norm: Literal["best", "sum"] = "best"
    bin: Annotated[int, Range(0, 1000)] = 0
