"""ConsensusNGram: how much of a candidate the other candidates say too."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple

import numpy as np

from rerank.base.ranges import Range
from rerank.data.symbols import combine, find_slot
from rerank.features.marks import NUMBER, NUMBER_OFFSET
from rerank.features.sink import Sink, begin, emit_value, put
from rerank.features.template import TextTemplate
from rerank.features.text.rank import best_base
from rerank.features.text.view import TextView
from rerank.kernels.compile import kernel

Tenths = Annotated[int, Range(0, 10_000)]


@kernel
def second_base(view: TextView, best: int) -> float:
    """The highest base score of the candidates other than ``best``."""
    second = -np.inf
    for y in range(view.base.shape[0]):
        if y != best:
            second = max(second, view.base[y])
    return second


@kernel
def _gram(view: TextView, i: int, n: int) -> np.uint64:
    h = np.uint64(n)
    for j in range(i, i + n):
        h = combine(h, view.words[j])
    return h


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
            gram = _gram(view, i, n) | np.uint64(1)
            slot = find_slot(keys, gram)
            keys[slot] = gram
            if last[slot] != y:
                last[slot], times[slot] = y, 0
            times[slot] += 1
            if times[slot] > 1:
                again = combine(gram, np.uint64(times[slot])) | np.uint64(1)
                slot = find_slot(keys, again)
                keys[slot] = again
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
    best = best_base(view)
    second = second_base(view, best)
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
        matched = 0.0
        excluded = np.exp(scale * (view.base[y] - second)) if y != best else 0.0
        for i in range(view.first[y], view.first[y + 1] - n + 1):
            matched += mass[at[i]] if y == best else top[at[i]] + shrink * (mass[at[i]] - excluded)
        others = total if y == best else 1.0 + shrink * (total - excluded)
        out[y] = matched / (others * grams) if grams > 0 else 0.0


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


def _fire(view: TextView, sink: Sink, ids: np.ndarray, seeds: np.ndarray, options: np.ndarray) -> None:
    """Get scratch space, then run the kernel."""
    if view.base.size < 2:
        return  # there are no other candidates
    size = 1 << int(2 * view.words.size + 1).bit_length()
    keys, (last, times) = np.empty(size, np.uint64), np.empty((2, size), np.int64)
    at, (mass, top) = np.empty(view.words.size, np.int64), np.empty((2, size))
    slots = GramSlots(keys, last, times, at, mass, top)
    _fire_orders(view, sink, ids, seeds, options, slots, np.empty(view.base.size))


@dataclass(frozen=True)
class ConsensusNGram(TextTemplate):
    """The expected precision of the candidate's n-grams against the other candidates, for n = 1 to ``n``.

    >>> from rerank.features.fired import fired
    >>> fired("ConsensusNGram(n=1)", "a b", "a c", "d")
    {'1': 0.3655}

    Counts are clipped as in BLEU. Candidates have the weight exp(``scale``/10 · base score); scale 0: all the same.

    ``n`` features per candidate, in time linear in the words of the list.
    """

    free: ClassVar[bool] = True
    n: Annotated[int, Range(1, 9)] = 4
    scale: Tenths = 10

    fire = staticmethod(_fire)
