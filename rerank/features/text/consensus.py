"""Templates that compare a candidate with the others of its list, ConsensusNGram and ConsensusEdits, and with the base
system's choice, EditOps (speech).
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple

import numpy as np

from rerank.base.interrupts import pieces
from rerank.base.ranges import Range
from rerank.data.symbols import combine, find_slot
from rerank.features.sink import Sink, add_columns, begin, emit_value, put
from rerank.features.template import DELETIONS, INSERTIONS, NOTHING, NUMBER, NUMBER_OFFSET, SUBSTITUTIONS, TextTemplate
from rerank.features.text.view import TextView
from rerank.features.text.words import emit_pair
from rerank.kernels.compile import kernel

EDITS = np.array([[SUBSTITUTIONS], [INSERTIONS], [DELETIONS]])
Tenths = Annotated[int, Range(0, 10_000)]


class GramSlots(NamedTuple):
    """Scratch: a slot for every pair (n-gram, k), which stands for the k-th occurrence of an n-gram in a candidate.

    The number of slots is a power of two, more than twice the number of words.
    """

    keys: np.ndarray  # uint64 [slots]: hashes
    last: np.ndarray  # int64 [slots]: the last candidate of an n-gram
    times: np.ndarray  # int64 [slots]: how often that has it so far
    at: np.ndarray  # int64 [W]: the slot of the n-gram at a word
    mass: np.ndarray  # float64 [slots]: the summed shares of the candidates that have the pair, without the best
    top: np.ndarray  # float64 [slots]: whether the best has it


@kernel
def _number_grams(view: TextView, n: int, slots: GramSlots) -> None:
    """Find the slots of all n-grams of the candidates."""
    keys, last, times = slots.keys, slots.last, slots.times
    keys[:] = 0
    last[:] = -1
    for y in range(view.base.shape[0]):
        for i in range(view.first[y], view.first[y + 1] - n + 1):
            gram = np.uint64(n)
            for j in range(i, i + n):
                gram = combine(gram, view.words[j])
            gram |= np.uint64(1)
            slot = find_slot(keys, gram)
            keys[slot] = gram
            if last[slot] != y:
                last[slot], times[slot] = y, 0
            times[slot] += 1
            if times[slot] > 1:
                pair = combine(gram, np.uint64(times[slot])) | np.uint64(1)
                slot = find_slot(keys, pair)
                keys[slot] = pair
            slots.at[i] = slot


@kernel
def expected_matches(view: TextView, n: int, scale: float, slots: GramSlots, out: np.ndarray) -> None:
    """Expected clipped n-gram precision of every candidate against the others (``out`` float64 [N]).

    With P(z) ∝ exp(scale · b(z)) over z ≠ y: Σ_z P(z) Σ_g min(c_y(g), c_z(g)) / Σ_g c_y(g). The k-th occurrence of g
    in y matches all z that have g at least k times, so one sum of P per pair (g, k) serves all y. The best candidate
    by base score is kept apart, as its share may be so large that subtracting it leaves too little precision.
    """
    _number_grams(view, n, slots)
    at, mass, top = slots.at, slots.mass, slots.top
    mass[:] = 0
    top[:] = 0
    best, second = view.base.argmax(), -np.inf
    for y in range(view.base.shape[0]):
        if y != best:
            second = max(second, view.base[y])
    total, shrink = 0.0, np.exp(scale * (second - view.base[best]))
    for y in range(view.base.shape[0]):
        share = np.exp(scale * (view.base[y] - second)) if y != best else 1.0
        if y != best:
            total += share
        for i in range(view.first[y], view.first[y + 1] - n + 1):
            if y == best:
                top[at[i]] = 1.0
            else:
                mass[at[i]] += share
    for y in range(view.base.shape[0]):
        grams = view.first[y + 1] - view.first[y] - n + 1
        matches = 0.0
        own_share = np.exp(scale * (view.base[y] - second)) if y != best else 0.0
        for i in range(view.first[y], view.first[y + 1] - n + 1):
            matches += mass[at[i]] if y == best else top[at[i]] + shrink * (mass[at[i]] - own_share)
        others = total if y == best else 1.0 + shrink * (total - own_share)
        out[y] = matches / (others * grams) if grams > 0 else 0.0


@kernel
def _fire_orders(
    view: TextView, sink: Sink, ids: np.ndarray, seeds: np.ndarray, options: np.ndarray, slots: GramSlots,
    out: np.ndarray,
) -> None:  # fmt: skip
    for v in range(ids.shape[0]):
        for n in range(1, options[v].n + 1):
            expected_matches(view, n, options[v].scale / 10, slots, out)
            for y in range(out.shape[0]):
                emit_value(sink, put(sink, begin(sink, ids[v], seeds[v]), NUMBER[NUMBER_OFFSET + n]), y, out[y])


@dataclass(frozen=True)
class ConsensusNGram(TextTemplate):
    """The expected precision of the candidate's n-grams against the other candidates, for n = 1 to ``n``.

    >>> fired("ConsensusNGram(n=1)", "a b", "a c", "d")
    {'1': 0.3655}

    Counts are clipped as in BLEU. Candidates have the weight exp(``scale``/10 · base score); scale 0: all the same.

    ``n`` features per candidate, in time linear in the words of the list.
    """

    free: ClassVar[bool] = True
    n: Annotated[int, Range(1, 9)] = 4
    scale: Tenths = 10

    @staticmethod
    def fire(view: TextView, sink: Sink, ids: np.ndarray, seeds: np.ndarray, options: np.ndarray) -> None:
        """Get scratch space, then run the kernel."""
        if view.base.size < 2:
            return  # there are no other candidates
        size = 1 << int(2 * view.words.size + 1).bit_length()
        keys, (last, times) = np.empty(size, np.uint64), np.empty((2, size), np.int64)
        at, (mass, top) = np.empty(view.words.size, np.int64), np.empty((2, size))
        slots = GramSlots(keys, last, times, at, mass, top)
        _fire_orders(view, sink, ids, seeds, options, slots, np.empty(view.base.size))


@kernel
def common_ends(a: np.ndarray, b: np.ndarray) -> tuple[int, int]:
    """Count the words that a and b share at their starts, then at their ends: a best alignment matches all of them."""
    shorter, start, end = min(a.shape[0], b.shape[0]), 0, 0
    while start < shorter and a[start] == b[start]:
        start += 1
    while end < shorter - start and a[a.shape[0] - 1 - end] == b[b.shape[0] - 1 - end]:
        end += 1
    return start, end


@kernel
def next_row(a: np.ndarray, b: np.ndarray, i: int, unit: int, above: np.ndarray, row: np.ndarray) -> None:
    """Row i of the costs of turning a[:i] into b[:j], from row i - 1, which goes to ``above``: an edit costs ``unit``,
    a substitution one less."""
    for j in range(b.shape[0] + 1):
        above[j] = row[j]
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
        next_row(a, b, i, unit, above, row)
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


def _longest(view: TextView) -> int:
    return int(np.diff(view.first).max(initial=0))


@dataclass(frozen=True)
class ConsensusEdits(TextTemplate):
    """Expected substitutions, insertions and deletions that turn another candidate into this one.

    >>> fired("ConsensusEdits", "a b", "a c", "a")
    {'substitutions': 0.7311, 'insertions': 0.2689}

    The others are those among the ``top`` best by base score, with weights exp(``scale``/10 · base score). The time
    grows with ``top`` and with the square of the number of words in which candidates differ.

    Three features per candidate.
    """

    free: ClassVar[bool] = True
    top: Annotated[int, Range(1, 1000)] = 10
    scale: Tenths = 10

    @staticmethod
    def fire(view: TextView, sink: Sink, ids: np.ndarray, seeds: np.ndarray, options: np.ndarray) -> None:
        """Get scratch space, then run the kernel."""
        if view.base.size < 2:
            return  # there are no other candidates
        order, longest = np.argsort(-view.base, kind="stable"), _longest(view)
        above, row = np.empty((2, longest + 1), np.int64)
        for template, seed, o in zip(ids, seeds, options, strict=True):
            others, out = np.sort(order[: o.top]), np.zeros((view.base.size, 4))
            for first, last in pieces(view.base.size * others.size, longest**2):
                expected_edits(view, o.scale / 10, others, first, last, above, row, out)
            weights, means = out[:, 3], np.zeros((3, len(out)))
            np.divide(out[:, :3].T, weights, out=means, where=weights > 0)
            add_columns(sink, template, seed, EDITS, means)


CHANGE, DELETE, INSERT = 0, 1, 2  # how an alignment ends: with a match or substitution, and so on


@kernel
def _align(
    sink: Sink, ids: np.ndarray, seeds: np.ndarray, y: int, a: np.ndarray, b: np.ndarray, above: np.ndarray,
    row: np.ndarray, moves: np.ndarray,
) -> None:  # fmt: skip
    """Write what differs between a and b. Scratch: rows of costs (int64), and ``moves`` (uint8) for the whole table."""
    i, j, width, unit = int(a.shape[0]), int(b.shape[0]), int(b.shape[0]) + 1, min(a.shape[0], b.shape[0]) + 1
    for n in range(width):
        row[n], moves[n] = n * unit, INSERT
    for m in range(1, i + 1):
        next_row(a, b, m, unit, above, row)
        moves[m * width] = DELETE
        for n in range(1, width):
            change = above[n - 1] + (0 if a[m - 1] == b[n - 1] else unit - 1)
            moves[m * width + n] = CHANGE if row[n] == change else (DELETE if row[n] == above[n] + unit else INSERT)
    while i > 0 or j > 0:
        move, old, new = moves[i * width + j], NOTHING, NOTHING
        if move != INSERT:
            i -= 1
            old = a[i]
        if move != DELETE:
            j -= 1
            new = b[j]
        if old != new:
            for v in range(ids.shape[0]):
                emit_pair(sink, ids[v], seeds[v], old, new, y)


@kernel
def _fire_to_best(
    view: TextView, sink: Sink, ids: np.ndarray, seeds: np.ndarray, best: int, first: int, last: int,
    above: np.ndarray, row: np.ndarray, moves: np.ndarray,
) -> None:  # fmt: skip
    """Align the candidates first..last - 1 with the ``best`` one by base score."""
    whole = view.words[view.first[best] : view.first[best + 1]]
    for y in range(first, last):
        words = view.words[view.first[y] : view.first[y + 1]]
        start, end = common_ends(whole, words)
        a, b = whole[start : whole.shape[0] - end], words[start : words.shape[0] - end]
        _align(sink, ids, seeds, y, a, b, above, row, moves)


@dataclass(frozen=True)
class EditOps(TextTemplate):
    """The words that differ from the candidate with the highest base score: ``old → new``, ``(nothing)`` for no word.

    >>> fired("EditOps", "a b", "a c", scores=np.array([[-2.0], [-1.0]]))
    {'c → b': 1.0}

    The alignment has the fewest edits and, of these, the most substitutions; words shared at either end are matched
    first, the rest is aligned from the end, deletions before insertions.

    One feature per edit; time: the square of the words that differ.
    """

    @staticmethod
    def fire(view: TextView, sink: Sink, ids: np.ndarray, seeds: np.ndarray, _options: np.ndarray) -> None:
        """Get scratch space, then run the kernel."""
        if view.base.size < 2:
            return
        best, longest = int(view.base.argmax()), _longest(view)
        height = int(view.first[best + 1] - view.first[best]) + 1
        moves, (above, row) = np.empty(height * (longest + 1), np.uint8), np.empty((2, longest + 1), np.int64)
        for first, last in pieces(view.base.size, longest**2):
            _fire_to_best(view, sink, ids, seeds, best, first, last, above, row, moves)
