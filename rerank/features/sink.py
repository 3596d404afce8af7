"""The sink of templates: the distinct features of one list, their symbols, and the places where they fire.

A template writes a feature as ``h = begin(sink, id)``, ``h = put(sink, h, symbol)`` for every symbol, and
``emit(sink, h, places, p)`` (or ``emit_value`` for one candidate). The feature's identity is the 64-bit hash h of
template and symbols; the symbols are kept with it, so that a name can be rendered from what was hashed.
Firings are recorded in the order in which they happen, so a list takes as much room as it has firings, however many
candidates lack a feature; ``collecting`` adds them up.
Nothing grows inside kernels: if room runs out, OVERFLOW is set and the list is done again with more room.
"""

from typing import NamedTuple

import numpy as np

from rerank.base.errors import DataError
from rerank.data.symbols import combine, find_slot
from rerank.kernels.compile import kernel

# Indices of Sink.state: number of features, symbol cursor, whether room has run out, template being written, bits of
# identity, numbers of spans and of entries, and number of entries that the spans cover.
FEATURES, CURSOR, OVERFLOW, CURRENT, BITS, SPANS, ENTRIES, FIRED = range(8)
FIRST, LAST, AFTER = 0, 1, 2  # columns of Sink.ends and Sink.spans
MOST = (1 << 31) - 1  # of anything in a sink: indices into it are int32


class TooLargeError(DataError):
    """A list has more features than a sink can hold."""


class Places(NamedTuple):
    """P places of one scope (see places.py); their entries, in candidate order, are in a sink."""

    node: np.ndarray  # int32 [P]: representative node
    first: np.ndarray  # int64 [P + 1]: the sink's entries of place p are first[p]..first[p + 1]


class Sink(NamedTuple):
    """The features of the current list: at most F, with S symbols in total, which fire in P spans of V entries.

    All features that fire at a place share its entries: a feature has a chain of spans of them, not entries of its own.
    """

    state: np.ndarray  # int64 [8]
    keys: np.ndarray  # uint64 [2^b]: hash table of features (0: free)
    feature_at: np.ndarray  # int32 [2^b]: the feature in a slot
    hashes: np.ndarray  # uint64 [F]: identity of a feature, see ``identity``
    full: np.ndarray  # uint64 [F]: the whole hash of the first feature of that identity
    template: np.ndarray  # int32 [F]: template of a feature
    symbols: np.ndarray  # uint64 [S]: symbols of all features, one after the other
    symbol_first: np.ndarray  # int64 [F + 1]
    ends: np.ndarray  # int32 [F, 2]: FIRST and LAST span of a feature, -1 if it has none
    spans: np.ndarray  # int32 [P, 3]: a span's entries are FIRST..LAST, the feature's next span is AFTER, -1 for none
    candidate: np.ndarray  # int32 [V]
    value: np.ndarray  # float64 [V]: what is added to a feature's value in the candidate


def new_sink(features: int, symbols: int, spans: int, entries: int, bits: int = 64) -> Sink:
    """An empty sink with room for ``features`` features with ``symbols`` symbols that fire in ``spans`` of ``entries``.

    Features are distinguished by the upper ``bits`` bits of their hash; 64 keeps all of them apart.
    """
    slots = 1 << int(2 * features).bit_length()
    return Sink(
        state=np.array([0, 0, 0, 0, bits, 0, 0, 0], np.int64),
        keys=np.zeros(slots, np.uint64),
        feature_at=np.empty(slots, np.int32),
        hashes=np.empty(features, np.uint64),
        full=np.empty(features, np.uint64),
        template=np.empty(features, np.int32),
        symbols=np.empty(symbols, np.uint64),
        symbol_first=np.zeros(features + 1, np.int64),
        ends=np.empty((features, 2), np.int32),
        spans=np.empty((spans, 3), np.int32),
        candidate=np.empty(entries, np.int32),
        value=np.empty(entries),
    )


def larger(sink: Sink) -> Sink:
    """An empty sink with four times the room.

    Raises
    ------
    TooLargeError: the sink is as large as it can be.
    """
    sizes = len(sink.hashes), len(sink.symbols), len(sink.spans), len(sink.value)
    if max(sizes) >= MOST:
        raise TooLargeError(f"its features fire more than {MOST:,} times, the most that one list may have")
    features, symbols, spans, entries = (min(4 * size, MOST) for size in sizes)
    return new_sink(features, symbols, spans, entries, int(sink.state[BITS]))


@kernel
def clear(sink: Sink) -> None:
    """Forget the last list."""
    sink.keys[:] = 0
    bits = sink.state[BITS]
    sink.state[:] = 0
    sink.state[BITS] = bits


@kernel
def begin(sink: Sink, template: int, seed: np.uint64) -> np.uint64:
    """Start a feature of ``template``; one that was begun and not emitted is dropped."""
    # Symbols are written behind those of the last new feature before it is known whether this one is new too. If it is
    # not, the next one begins at the same place and overwrites them: nothing is copied.
    sink.state[CURSOR] = sink.symbol_first[sink.state[FEATURES]]
    sink.state[CURRENT] = template
    return seed


@kernel
def put(sink: Sink, h: np.uint64, symbol: np.uint64) -> np.uint64:
    """Append a symbol to the feature that was begun last; returns the new hash."""
    cursor = sink.state[CURSOR]
    if cursor < sink.symbols.shape[0]:
        sink.symbols[cursor] = symbol
    sink.state[CURSOR] = cursor + 1
    return combine(h, symbol)


@kernel
def identity(h: np.uint64, bits: int) -> np.uint64:
    """The identity of features: the hash (63 bits of it), or 1 + its upper ``bits`` bits; never 0."""
    if bits < 64:
        return (h >> np.uint64(64 - bits)) + np.uint64(1)
    return h | np.uint64(1)


@kernel
def _feature(sink: Sink, full: np.uint64) -> int:
    """Number of the feature just written, new or old; -1 if there is no room for it, or room has run out before."""
    if sink.state[OVERFLOW]:
        return -1
    h = identity(full, sink.state[BITS])
    slot = find_slot(sink.keys, h)
    if sink.keys[slot] == h:
        return int(sink.feature_at[slot])
    feature = sink.state[FEATURES]
    if feature >= sink.hashes.shape[0] or sink.state[CURSOR] > sink.symbols.shape[0]:
        sink.state[OVERFLOW] = 1
        return -1
    sink.keys[slot], sink.feature_at[slot] = h, feature
    sink.hashes[feature], sink.full[feature], sink.template[feature] = h, full, sink.state[CURRENT]
    sink.ends[feature, FIRST] = sink.ends[feature, LAST] = -1
    sink.symbol_first[feature + 1] = sink.state[CURSOR]
    sink.state[FEATURES] = feature + 1
    return int(feature)


@kernel
def _fire(sink: Sink, feature: int, first: int, last: int) -> None:
    """Record that the feature fires in the entries first..last."""
    tail = sink.ends[feature, LAST]
    sink.state[FIRED] += last - first
    # Templates fire at one place after the other, whose entries adjoin: most features need few spans.
    if tail >= 0 and sink.spans[tail, LAST] == first:
        sink.spans[tail, LAST] = last
        return
    span = sink.state[SPANS]
    if span >= sink.spans.shape[0]:
        sink.state[OVERFLOW] = 1
        return
    if tail >= 0:
        sink.spans[tail, AFTER] = span
    else:
        sink.ends[feature, FIRST] = span
    sink.ends[feature, LAST] = span
    sink.spans[span, FIRST], sink.spans[span, LAST], sink.spans[span, AFTER] = first, last, -1
    sink.state[SPANS] = span + 1


@kernel
def emit(sink: Sink, h: np.uint64, places: Places, p: int) -> None:
    """Count the feature just written once for every occurrence of place p."""
    feature = _feature(sink, h)
    if feature >= 0:
        _fire(sink, feature, places.first[p], places.first[p + 1])


@kernel
def emit_value(sink: Sink, h: np.uint64, candidate: int, value: float) -> None:
    """Add ``value`` to the feature just written, in one candidate."""
    feature, entry = _feature(sink, h), sink.state[ENTRIES]
    if feature < 0:
        return
    if entry >= sink.value.shape[0]:
        sink.state[OVERFLOW] = 1
        return
    sink.candidate[entry], sink.value[entry] = candidate, value
    sink.state[ENTRIES] = entry + 1
    _fire(sink, feature, entry, entry + 1)


@kernel
def add_named(
    sink: Sink, template: int, seed: np.uint64, names: np.ndarray, candidate: np.ndarray, value: np.ndarray
) -> None:
    """Add features of one symbol each, as users' Python templates give them: uint64, int32 and float64 [n]."""
    for i in range(names.shape[0]):
        h = put(sink, begin(sink, template, seed), names[i])
        emit_value(sink, h, candidate[i], value[i])
