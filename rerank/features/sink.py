"""Where templates write: the distinct features of one list, their symbols, and their value in every candidate.

A template writes a feature as ``h = begin(sink, id)``, ``h = put(sink, h, symbol)`` for every symbol, and
``emit(sink, h, places, p)`` (or ``emit_value`` for one candidate). The feature's identity is the 64-bit hash h of
template and symbols; the symbols stay beside it, so that a name can be rendered from what was hashed.
Nothing grows inside of kernels: where room runs out OVERFLOW is set, and the list is done again with more room.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rerank.compile import kernel
from rerank.features.places import Places
from rerank.symbols import combine, find_slot

# Indices of Sink.state.
FEATURES, CURSOR, OVERFLOW, CURRENT, CANDIDATES, BITS = 0, 1, 2, 3, 4, 5


class Sink(NamedTuple):
    """Features of the current list, at most F of them with S symbols in all; N candidates."""

    state: (
        np.ndarray
    )  # int64 [6]: features so far, symbol cursor, overflow, template being written, N, bits of identity
    keys: np.ndarray  # uint64 [2^b]: hash table of features (0: free)
    feature_at: np.ndarray  # int32 [2^b]: feature of a slot
    hashes: np.ndarray  # uint64 [F]: identity of a feature, see ``identity``
    full: np.ndarray  # uint64 [F]: the whole hash of the first feature of that identity
    template: np.ndarray  # int32 [F]: template of a feature
    symbols: np.ndarray  # uint64 [S]: symbols of all features, one after the other
    symbol_first: np.ndarray  # int64 [F + 1]
    values: np.ndarray  # float32 [F * N]: value of feature i in candidate y at i * N + y


def new_sink(features: int, symbols: int, candidates: int, bits: int = 64) -> Sink:
    """An empty sink with room for ``features`` features with ``symbols`` symbols over ``candidates`` candidates.

    Features are told apart by the upper ``bits`` bits of their hash; 64 keeps all of them apart.
    """
    slots = 1 << int(2 * features).bit_length()
    return Sink(
        state=np.array([0, 0, 0, 0, candidates, bits], np.int64),
        keys=np.zeros(slots, np.uint64),
        feature_at=np.empty(slots, np.int32),
        hashes=np.empty(features, np.uint64),
        full=np.empty(features, np.uint64),
        template=np.empty(features, np.int32),
        symbols=np.empty(symbols, np.uint64),
        symbol_first=np.zeros(features + 1, np.int64),
        values=np.empty(features * max(candidates, 1), np.float32),
    )


@kernel
def clear(sink: Sink, candidates: int) -> None:
    """Forget the last list; the next has ``candidates`` candidates."""
    sink.keys[:] = 0
    sink.state[FEATURES] = sink.state[CURSOR] = sink.state[OVERFLOW] = 0
    sink.state[CANDIDATES] = candidates


@kernel
def begin(sink: Sink, template: int, seed: np.uint64) -> np.uint64:
    """Start a feature of ``template``; whatever was begun and not emitted is dropped."""
    sink.state[CURSOR] = sink.symbol_first[sink.state[FEATURES]]
    sink.state[CURRENT] = template
    return seed


@kernel
def put(sink: Sink, h: np.uint64, symbol: np.uint64) -> np.uint64:
    """Append a symbol to the feature begun last; returns the new hash."""
    cursor = sink.state[CURSOR]
    if cursor < sink.symbols.shape[0]:
        sink.symbols[cursor] = symbol
    sink.state[CURSOR] = cursor + 1
    return combine(h, symbol)


@kernel
def identity(h: np.uint64, bits: int) -> np.uint64:
    """What tells features apart: the hash (63 bits of it), or 1 + its upper ``bits`` bits; never 0."""
    if bits < 64:
        return (h >> np.uint64(64 - bits)) + np.uint64(1)
    return h | np.uint64(1)


@kernel
def _feature(sink: Sink, full: np.uint64) -> int:
    """Number of the feature just written, new or old; -1 where there is no room for a new one."""
    h = identity(full, sink.state[BITS])
    slot = find_slot(sink.keys, h)
    if sink.keys[slot] == h:
        return int(sink.feature_at[slot])
    feature, candidates = sink.state[FEATURES], sink.state[CANDIDATES]
    if (
        feature >= sink.hashes.shape[0]
        or sink.state[CURSOR] > sink.symbols.shape[0]
        or (feature + 1) * candidates > sink.values.shape[0]
    ):
        sink.state[OVERFLOW] = 1
        return -1
    sink.keys[slot], sink.feature_at[slot] = h, feature
    sink.hashes[feature], sink.full[feature], sink.template[feature] = h, full, sink.state[CURRENT]
    sink.symbol_first[feature + 1] = sink.state[CURSOR]
    sink.state[FEATURES] = feature + 1
    sink.values[feature * candidates : (feature + 1) * candidates] = 0
    return int(feature)


@kernel
def emit(sink: Sink, h: np.uint64, places: Places, p: int) -> None:
    """Count the feature just written once for every occurrence of place p."""
    feature = _feature(sink, h)
    if feature >= 0:
        row = feature * sink.state[CANDIDATES]
        for e in range(places.first[p], places.first[p + 1]):
            sink.values[row + places.candidate[e]] += places.times[e]


@kernel
def emit_value(sink: Sink, h: np.uint64, candidate: int, value: float) -> None:
    """Add ``value`` to the feature just written, in one candidate."""
    feature = _feature(sink, h)
    if feature >= 0:
        sink.values[feature * sink.state[CANDIDATES] + candidate] += value


@kernel
def add_named(
    sink: Sink, template: int, seed: np.uint64, names: np.ndarray, candidate: np.ndarray, value: np.ndarray
) -> None:
    """Features of one symbol each, as users' Python templates give them: uint64, int32 and float32 [n]."""
    for i in range(names.shape[0]):
        h = put(sink, begin(sink, template, seed), names[i])
        emit_value(sink, h, candidate[i], value[i])
