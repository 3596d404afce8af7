"""Templates of edits: ConsensusEdits against the list, EditOps against the base system's choice (speech)."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from rerank.base.interrupts import pieces
from rerank.base.ranges import Range
from rerank.features.marks import DELETIONS, INSERTIONS, NOTHING, SUBSTITUTIONS
from rerank.features.sink import Sink, begin, emit_value, put
from rerank.features.template import TextTemplate
from rerank.features.text.consensus import Tenths
from rerank.features.text.rank import best_base, ranks_of
from rerank.features.text.view import TextView
from rerank.features.text.words import emit_pair
from rerank.kernels.compile import kernel

TABLE = 1 << 20  # costs of an alignment that are kept at a time, unless two rows alone are more


@kernel
def common_ends(a: np.ndarray, b: np.ndarray) -> tuple[int, int]:
    """How many words a and b share at their starts and then at their ends: a best alignment matches all of these."""
    shorter, start, end = min(a.shape[0], b.shape[0]), 0, 0
    while start < shorter and a[start] == b[start]:
        start += 1
    while end < shorter - start and a[a.shape[0] - 1 - end] == b[b.shape[0] - 1 - end]:
        end += 1
    return start, end


@kernel
def fill_row(a: np.ndarray, b: np.ndarray, i: int, unit: int, above: np.ndarray, row: np.ndarray) -> None:
    """Row i of the costs of turning a[:i] into b[:j]: an edit costs ``unit``, a substitution one less."""
    row[0] = i * unit
    for j in range(1, b.shape[0] + 1):
        change = 0 if a[i - 1] == b[j - 1] else unit - 1
        row[j] = min(above[j - 1] + change, above[j] + unit, row[j - 1] + unit)


@kernel
def count_edits(a: np.ndarray, b: np.ndarray, above: np.ndarray, row: np.ndarray) -> tuple[int, int, int]:
    """(substitutions, insertions, deletions) that turn a into b: fewest edits, then most substitutions."""
    start, end = common_ends(a, b)
    a, b = a[start : a.shape[0] - end], b[start : b.shape[0] - end]
    unit = min(a.shape[0], b.shape[0]) + 1
    for j in range(b.shape[0] + 1):
        row[j] = j * unit
    for i in range(1, a.shape[0] + 1):
        for j in range(b.shape[0] + 1):
            above[j] = row[j]
        fill_row(a, b, i, unit, above, row)
    cost = row[b.shape[0]]
    edits = (cost + unit - 1) // unit
    substitutions = edits * unit - cost
    insertions = (edits - substitutions + b.shape[0] - a.shape[0]) // 2
    return substitutions, insertions, edits - substitutions - insertions


@kernel
def expected_edits(
    view: TextView, scale: float, others: np.ndarray, first: int, last: int, above: np.ndarray, row: np.ndarray,
    out: np.ndarray,
) -> None:  # fmt: skip
    """Expected edits that turn another candidate into y (``out`` float64 [N, 4]), over the K candidates ``others``.

    With P(z) ∝ exp(scale · b(z)) over those z ≠ y. A call adds those of the pairs (y, k) whose number y · K + k is in
    first..last - 1 to the sums; the last column is that of the weights. Scratch: above and row, int64, longer than the
    longest candidate.
    """
    best = -np.inf
    for pair in range(first, last):
        y, k = pair // others.shape[0], pair % others.shape[0]
        if k == 0 or pair == first:
            best = -np.inf
            for z in others:
                if z != y:
                    best = max(best, view.base[z])
        z = others[k]
        if z == y:
            continue
        share = np.exp(scale * (view.base[z] - best))
        if share == 0:
            continue
        other, words = view.words[view.first[z] : view.first[z + 1]], view.words[view.first[y] : view.first[y + 1]]
        substitutions, insertions, deletions = count_edits(other, words, above, row)
        out[y, 0] += share * substitutions
        out[y, 1] += share * insertions
        out[y, 2] += share * deletions
        out[y, 3] += share


@kernel
def _emit_expected(sink: Sink, template: int, seed: np.uint64, out: np.ndarray) -> None:
    for y in range(out.shape[0]):
        for k in range(3):
            symbol = SUBSTITUTIONS if k == 0 else (INSERTIONS if k == 1 else DELETIONS)
            expected = out[y, k] / out[y, 3] if out[y, 3] > 0 else 0.0
            emit_value(sink, put(sink, begin(sink, template, seed), symbol), y, expected)


def _longest(view: TextView) -> int:
    return int(np.diff(view.first).max(initial=0))


def _fire_expected(view: TextView, sink: Sink, ids: np.ndarray, seeds: np.ndarray, options: np.ndarray) -> None:
    """Get scratch space, then run the kernels."""
    if view.base.size < 2:
        return  # there are no other candidates
    ranks, longest = ranks_of(view), _longest(view)
    above, row = np.empty((2, longest + 1), np.int64)
    for v in range(ids.size):
        others, out = np.flatnonzero(ranks <= options[v].top), np.zeros((view.base.size, 4))
        for first, last in pieces(view.base.size * others.size, longest**2):
            expected_edits(view, options[v].scale / 10, others, first, last, above, row, out)
        _emit_expected(sink, ids[v], seeds[v], out)


@dataclass(frozen=True)
class ConsensusEdits(TextTemplate):
    """Expected substitutions, insertions and deletions that turn another candidate into this one.

    >>> from rerank.features.fired import fired
    >>> fired("ConsensusEdits", "a b", "a c", "a")
    {'substitutions': 0.7311, 'insertions': 0.2689}

    The others are those among the ``top`` best by base score, with weights exp(``scale``/10 · base score). The time
    grows with ``top`` and with the square of the number of words in which candidates differ.

    Three features per candidate.
    """

    free: ClassVar[bool] = True
    top: Annotated[int, Range(1, 1000)] = 10
    scale: Tenths = 10

    fire = staticmethod(_fire_expected)


@kernel
def crossing(a: np.ndarray, b: np.ndarray, unit: int, costs: np.ndarray) -> int:
    """The number of words of b at which the alignment that EditOps describes, from its end, first meets half of a.

    As in Hirschberg (1975), in linear space: every cost is kept with the place at which the way to it left that row.
    ``costs`` (int64) is scratch, for two rows of the table.
    """
    width, half = b.shape[0] + 1, a.shape[0] // 2
    left = costs[width:]
    for j in range(width):
        costs[j], left[j] = j * unit, j
    for i in range(1, a.shape[0] + 1):
        diagonal, place = costs[0], left[0]
        costs[0] = i * unit
        for j in range(1, width):
            changed = diagonal + (0 if a[i - 1] == b[j - 1] else unit - 1)
            deleted, inserted = costs[j] + unit, costs[j - 1] + unit
            diagonal, costs[j] = costs[j], min(changed, deleted, inserted)
            before, place = place, left[j]
            if costs[j] == changed:
                left[j] = before
            elif costs[j] != deleted:
                left[j] = left[j - 1]
        if i == half:
            for j in range(width):
                left[j] = j
    return int(left[width - 1])


@kernel
def _fire_to_best(
    view: TextView, sink: Sink, ids: np.ndarray, seeds: np.ndarray, first: int, last: int, costs: np.ndarray,
    starts: np.ndarray,
) -> None:  # fmt: skip
    """Align the candidates first..last - 1 with the best one by base score.

    A table of costs that is too large for ``costs`` (int64, room for two rows) is cut where the alignment crosses its
    middle row, and so are its parts; ``starts`` (int64 [64, 2]) are the corners of those that wait.
    """
    best = best_base(view)
    whole = view.words[view.first[best] : view.first[best + 1]]
    for y in range(first, last):
        words = view.words[view.first[y] : view.first[y + 1]]
        start, end = common_ends(whole, words)
        a, b = whole[start : whole.shape[0] - end], words[start : words.shape[0] - end]
        unit = min(a.shape[0], b.shape[0]) + 1
        i, j, waiting = a.shape[0], b.shape[0], 0
        starts[0, 0], starts[0, 1] = 0, 0
        while waiting >= 0:
            top, left = starts[waiting, 0], starts[waiting, 1]
            height, width = i - top, j - left + 1
            if height > 1 and (height + 1) * width > costs.shape[0]:
                waiting += 1
                starts[waiting, 0] = top + height // 2
                starts[waiting, 1] = left + crossing(a[top:i], b[left:j], unit, costs)
                continue
            _align(sink, ids, seeds, y, a[top:i], b[left:j], unit, costs)
            i, j, waiting = top, left, waiting - 1


@kernel
def _align(
    sink: Sink, ids: np.ndarray, seeds: np.ndarray, y: int, a: np.ndarray, b: np.ndarray, unit: int, costs: np.ndarray
) -> None:
    """Write what differs between a and b, from the end, by the whole table of ``costs``."""
    i, j, width = int(a.shape[0]), int(b.shape[0]), int(b.shape[0]) + 1
    for k in range(width):
        costs[k] = k * unit
    for k in range(1, i + 1):
        fill_row(a, b, k, unit, costs[(k - 1) * width : k * width], costs[k * width : (k + 1) * width])
    while i > 0 or j > 0:  # a match or substitution if the cost allows it, else a deletion
        here, old, new = costs[i * width + j], NOTHING, NOTHING
        if i > 0 and j > 0 and here == costs[(i - 1) * width + j - 1] + (0 if a[i - 1] == b[j - 1] else unit - 1):
            i, j = i - 1, j - 1
            old, new = a[i], b[j]
        elif i > 0 and here == costs[(i - 1) * width + j] + unit:
            i -= 1
            old = a[i]
        else:
            j -= 1
            new = b[j]
        if old != new:
            for v in range(ids.shape[0]):
                emit_pair(sink, ids[v], seeds[v], old, new, y)


def _fire_operations(view: TextView, sink: Sink, ids: np.ndarray, seeds: np.ndarray, _options: np.ndarray) -> None:
    """Get scratch space, then run the kernel."""
    if view.base.size < 2:
        return
    best, longest = best_base(view), _longest(view)
    height = int(view.first[best + 1] - view.first[best]) + 1
    costs = np.empty((longest + 1) * max(2, min(height, TABLE // (longest + 1))), np.int64)
    starts = np.empty((64, 2), np.int64)
    for first, last in pieces(view.base.size, longest**2):
        _fire_to_best(view, sink, ids, seeds, first, last, costs, starts)


@dataclass(frozen=True)
class EditOps(TextTemplate):
    """The words that differ from the candidate with the highest base score: ``old → new``, ``(nothing)`` for no word.

    >>> from rerank.features.fired import fired
    >>> fired("EditOps", "a b", "a c", scores=np.array([[-2.0], [-1.0]]))
    {'c → b': 1.0}

    The alignment has the fewest edits and, of these, the most substitutions; words shared at either end are matched
    first, the rest is aligned from the end, deletions before insertions.

    One feature per edit; time: the square of the words that differ.
    """

    fire = staticmethod(_fire_operations)
