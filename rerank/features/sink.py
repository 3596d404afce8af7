"""The sink of templates, and what is collected from it: the features of a list that vary among its candidates.

A template writes a feature as ``h = begin(sink, id)``, ``h = put(sink, h, symbol)`` for every symbol, and
``emit(sink, h, places, p)`` (or ``emit_value`` for one candidate). The feature's identity is the 64-bit hash h of
template and symbols; the symbols are kept with it, so that a name can be rendered from what was hashed.
Firings are recorded in the order in which they happen, so a list takes as much room as it has firings, however many
candidates lack a feature; ``features_of`` adds them up.
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
MAX_INDEX = (1 << 31) - 1  # of anything in a sink: indices into it are int32


class TooLargeError(DataError):
    """A list has more features than a sink can hold."""


class Places(NamedTuple):
    """P places of one scope (see forest.py); their entries, in candidate order, are in a sink."""

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
    """An empty sink with room for so many features and symbols of theirs, spans in which they fire, and entries.

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

    Raises TooLargeError: the sink is as large as it can be.
    """
    sizes = len(sink.hashes), len(sink.symbols), len(sink.spans), len(sink.value)
    if max(sizes) >= MAX_INDEX:
        raise TooLargeError(f"its features fire more than {MAX_INDEX:,} times, the most that one list may have")
    features, symbols, spans, entries = (min(4 * size, MAX_INDEX) for size in sizes)
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


@kernel
def add_columns(sink: Sink, template: int, seed: np.uint64, symbols: np.ndarray, values: np.ndarray) -> None:
    """Add K features of S symbols each (uint64 [K, S]) with their values in every candidate (float64 [K, N])."""
    for k in range(symbols.shape[0]):
        h = begin(sink, template, seed)
        for symbol in symbols[k]:
            h = put(sink, h, symbol)
        for y in range(values.shape[1]):
            emit_value(sink, h, y, values[k, y])


FIRST_ENTRIES = 1 << 22  # room for entries at first
SHORT_LIST = 128  # all candidates of so short a list are looked at, whatever fires in them; of longer ones,
SPARSE_FACTOR = 8  # only those in which a feature fires, if these are less than one in this many
MIN_SPREAD = 2.0**-12  # values that lie closer together, relative to their size, may be told apart in float64 alone


class ListFeatures(NamedTuple):
    """The F features of one list that differ among its candidates, and their values (E entries).

    A value is how often the feature fires in a candidate. If the list is ``centred``, the feature's most
    frequent value in the list is subtracted: this shifts all scores of the list alike, and most entries vanish.
    What ``narrow`` has subtracted before is no part of ``origin``.
    """

    hashes: np.ndarray  # uint64 [F]: identities (see sink.identity)
    full: np.ndarray  # uint64 [F]: whole hashes
    template: np.ndarray  # int32 [F]
    symbols: np.ndarray  # uint64 [S]: symbols of feature i are symbols[symbol_first[i]:symbol_last[i]]
    symbol_first: np.ndarray  # int64 [F]
    symbol_last: np.ndarray  # int64 [F]
    first: np.ndarray  # int64 [F + 1]: entries of feature i
    candidate: np.ndarray  # int32 [E]
    value: np.ndarray  # float32 [E]
    origin: np.ndarray  # float32 [F]: what was subtracted


class FeatureValues(NamedTuple):
    """Scratch: the values of one feature in all N candidates. Between features, ``exact`` and ``value`` are all 0."""

    exact: np.ndarray  # float64 [N]
    value: np.ndarray  # float32 [N]
    owner: np.ndarray  # int32 [N]: 1 + the last feature that fires in a candidate
    hits: np.ndarray  # int32 [N]: the candidates in which the feature fires


class FeatureRows(NamedTuple):
    """Room for the features that vary, in the order in which ``collect`` finds them."""

    features: np.ndarray  # int32 [F]: their numbers in the sink
    origin: np.ndarray  # float32 [F]
    first: np.ndarray  # int64 [F + 1]
    candidate: np.ndarray  # int32 [room]
    value: np.ndarray  # float32 [room]
    state: np.ndarray  # int64 [2]: the feature to continue with; how many vary so far


NEXT, TOTAL = 0, 1


@kernel
def add_up(span: int, spans: np.ndarray, candidate: np.ndarray, amounts: np.ndarray, value: np.ndarray) -> None:
    """Fill ``value`` with a feature's values, added up in the order in which it fired; unsigned indices are faster."""
    while span >= 0:
        for e in range(np.uint64(spans[span, FIRST]), np.uint64(spans[span, LAST])):
            value[np.uint64(candidate[e])] += amounts[e]
        span = spans[span, AFTER]


@kernel
def find_hits(
    feature: int, span: int, spans: np.ndarray, candidate: np.ndarray, owner: np.ndarray, hits: np.ndarray
) -> int:  # fmt: skip
    """Fill ``hits`` with the candidates in which a feature fires, in increasing order; returns how many."""
    count, rising = 0, True
    while span >= 0:
        for e in range(spans[span, FIRST], spans[span, LAST]):
            y = candidate[e]
            if owner[y] != feature + 1:
                owner[y] = feature + 1
                if count > 0 and hits[count - 1] > y:
                    rising = False
                hits[count] = y
                count += 1
        span = spans[span, AFTER]
    if not rising:
        sort(hits, count)
    return count


@kernel
def narrow(exact: np.ndarray, hits: np.ndarray, count: int, relative: bool, value: np.ndarray) -> None:
    """Round the values of a feature (``exact``, float64 [N]) to float32.

    relative: where rounding could lose what tells them apart, the mean of the list is subtracted before. count: see
    ``count_equal``; a feature that fires in few candidates is 0 in the others, and never so.
    """
    for i in range(count):
        value[hits[i]] = exact[hits[i]]
    low, high, total, lossless = exact[0], exact[0], 0.0, True
    for y in range(exact.shape[0] if count < 0 else 0):
        value[y] = 0.0 + exact[y]  # -0.0 becomes 0.0
        lossless &= value[y] == exact[y]
    if lossless or not relative or count >= 0:
        return
    for y in range(exact.shape[0]):
        low, high, total = min(low, exact[y]), max(high, exact[y]), total + (exact[y] - exact[0])
    if high - low < MIN_SPREAD * max(high, -low):
        for y in range(exact.shape[0]):
            value[y] = (exact[y] - exact[0]) - total / exact.shape[0]


@kernel
def count_equal(value: np.ndarray, hits: np.ndarray, count: int, equal: np.float32) -> int:
    """The number of candidates with this value; ``count``: of ``hits`` that are looked at, < 0: of all candidates."""
    candidates, same = value.shape[0], 0
    if count < 0:
        for y in range(candidates):
            same += value[y] == equal
        return same
    for i in range(count):
        same += value[hits[i]] == equal
    return same + (candidates - count if equal == 0 else 0)


@kernel
def find_origin(value: np.ndarray, hits: np.ndarray, count: int, centred: bool) -> tuple[int, np.float32]:
    """(number of entries, the value that is not stored: the most frequent of the first few); (0, _) for a constant."""
    candidates = value.shape[0]
    best = value[0]
    most = count_equal(value, hits, count, best)
    if most == candidates:
        return 0, best
    if not centred:
        best = np.float32(0)
        return candidates - count_equal(value, hits, count, best), best
    trial = 1
    while 2 * most <= candidates and trial < min(candidates, 8):
        origin = value[trial]
        same = count_equal(value, hits, count, origin)
        if same > most or (same == most and origin < best):
            best, most = origin, same
        trial += 1
    return candidates - most, best


@kernel
def sort(numbers: np.ndarray, size: int) -> None:
    """Sort the first ``size`` numbers in place (Shell 1959, with gaps that shrink by 2.2)."""
    gap = size
    while gap > 1:
        gap = max(gap * 5 // 11, 1)
        for i in range(gap, size):
            at, number = i, numbers[i]
            while at >= gap and numbers[at - gap] > number:
                numbers[at] = numbers[at - gap]
                at -= gap
            numbers[at] = number


@kernel
def write_row(
    value: np.ndarray,
    hits: np.ndarray,
    count: int,
    origin: np.float32,
    candidate: np.ndarray,
    values: np.ndarray,
    e: int,
) -> int:
    """Write the values other than ``origin`` to the entries from e on (one more has room); returns the next entry."""
    if origin != 0 or count < 0:
        at = np.uint64(e)
        for y in range(value.shape[0]):
            candidate[at], values[at] = y, value[y] - origin
            at += np.uint64(value[y] != origin)
        return int(np.int64(at))
    for i in range(count):
        candidate[e], values[e] = hits[i], value[hits[i]]
        e += value[hits[i]] != 0
    return e


@kernel
def collect(sink: Sink, centred: bool, relative: bool, row: FeatureValues, out: FeatureRows) -> None:
    """Collect features until all are done, or room runs out; it can then be called again with more."""
    features, candidates = sink.state[FEATURES], row.value.shape[0]
    feature, total = out.state[NEXT], out.state[TOTAL]
    while feature < features:
        span, count = sink.ends[feature, FIRST], -1
        add_up(span, sink.spans, sink.candidate, sink.value, row.exact)
        if candidates > SHORT_LIST:
            count = find_hits(feature, span, sink.spans, sink.candidate, row.owner, row.hits)
        sparse_count = count if SPARSE_FACTOR * count < candidates else -1
        narrow(row.exact, row.hits, sparse_count, relative, row.value)
        entries, origin = find_origin(row.value, row.hits, sparse_count, centred)
        e = out.first[total]
        has_room = e + entries < out.value.shape[0]
        if entries > 0 and has_room:
            out.features[total], out.origin[total] = feature, origin
            total += 1
            out.first[total] = write_row(row.value, row.hits, count, origin, out.candidate, out.value, e)
        for y in range(candidates if sparse_count < 0 else 0):
            row.exact[y] = row.value[y] = 0
        for i in range(sparse_count):
            row.exact[row.hits[i]] = row.value[row.hits[i]] = 0
        if not has_room:
            for i in range(count):
                row.owner[row.hits[i]] = 0
            break
        feature += 1
    out.state[NEXT], out.state[TOTAL] = feature, total


def features_of(sink: Sink, candidates: int, centred: bool, relative: bool) -> ListFeatures:
    """The features that templates have written to ``sink``, for a list of ``candidates`` candidates.

    centred: subtract each feature's most frequent value; relative: see ``narrow``.
    """
    features, room = int(sink.state[FEATURES]), min(int(sink.state[FIRED]), FIRST_ENTRIES) + candidates + 1
    owner, hits = np.zeros((2, candidates), np.int32)
    row = FeatureValues(np.zeros(candidates), np.zeros(candidates, np.float32), owner, hits)
    varying, first, state = np.empty(features, np.int32), np.zeros(features + 1, np.int64), np.zeros(2, np.int64)
    origin = np.empty(features, np.float32)
    out = FeatureRows(varying, origin, first, np.empty(room, np.int32), np.empty(room, np.float32), state)
    while candidates:
        collect(sink, centred, relative, row, out)
        if out.state[NEXT] == features:
            break
        candidate, value = (np.concatenate([array, np.empty_like(array)]) for array in (out.candidate, out.value))
        out = FeatureRows(varying, origin, first, candidate, value, state)
    varying = varying[: state[TOTAL]]
    first = first[: varying.size + 1]
    return ListFeatures(
        sink.hashes[varying],
        sink.full[varying],
        sink.template[varying],
        sink.symbols[: sink.symbol_first[features]].copy(),
        sink.symbol_first[varying],
        sink.symbol_first[varying + 1],
        first,
        out.candidate[: first[-1]],
        out.value[: first[-1]],
        origin[: varying.size],
    )
