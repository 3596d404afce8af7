"""The sink of templates, and what is collected from it: the features of a list that vary among its candidates.

A template writes a feature as ``h = begin(sink, id)``, ``h = put(sink, h, symbol)`` for every symbol, and
``emit(sink, h, places, p)`` (or ``emit_value`` for one candidate). The feature's identity is the 64-bit hash h of
template and symbols; the symbols are kept with it, so that a name can be rendered from what was hashed.
Firings are recorded in the order in which they happen, so a list takes as much room as it has firings, however many
candidates lack a feature; ``collected`` adds them up.
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


@kernel
def add_columns(sink: Sink, template: int, seed: np.uint64, symbols: np.ndarray, values: np.ndarray) -> None:
    """Add K features of S symbols each (uint64 [K, S]) with their values in every candidate (float64 [K, N])."""
    for k in range(symbols.shape[0]):
        h = begin(sink, template, seed)
        for symbol in symbols[k]:
            h = put(sink, h, symbol)
        for y in range(values.shape[1]):
            emit_value(sink, h, y, values[k, y])


ROOM = 1 << 22  # room for entries at first
SHORT = 128  # all candidates of so short a list are looked at, whatever fires in them; of longer ones,
FEW = 8  # only those in which a feature fires, if these are less than one in this many
NEAR = 2.0**-12  # values that lie closer together, relative to their size, may be told apart in float64 alone


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
    fired: np.ndarray  # int32 [N]: the candidates in which the feature fires


class Collected(NamedTuple):
    """The place that collected features go to."""

    kept: np.ndarray  # int32 [F]: which features vary
    origin: np.ndarray  # float32 [F]
    first: np.ndarray  # int64 [F + 1]
    candidate: np.ndarray  # int32 [room]
    value: np.ndarray  # float32 [room]
    state: np.ndarray  # int64 [2]: the feature to continue with; how many are kept


NEXT, KEPT = 0, 1


@kernel
def add_up(span: int, spans: np.ndarray, candidate: np.ndarray, added: np.ndarray, value: np.ndarray) -> None:
    """Fill ``value`` with a feature's values, added up in the order in which it fired; unsigned places are faster."""
    while span >= 0:
        for e in range(np.uint64(spans[span, FIRST]), np.uint64(spans[span, LAST])):
            value[np.uint64(candidate[e])] += added[e]
        span = spans[span, AFTER]


@kernel
def find_fired(
    feature: int, span: int, spans: np.ndarray, candidate: np.ndarray, owner: np.ndarray, fired: np.ndarray
) -> int:  # fmt: skip
    """Fill ``fired`` with the candidates in which a feature fires, in increasing order; returns how many."""
    count, rising = 0, True
    while span >= 0:
        for e in range(spans[span, FIRST], spans[span, LAST]):
            y = candidate[e]
            if owner[y] != feature + 1:
                owner[y] = feature + 1
                if count > 0 and fired[count - 1] > y:
                    rising = False
                fired[count] = y
                count += 1
        span = spans[span, AFTER]
    if not rising:
        sort(fired, count)
    return count


@kernel
def narrow(exact: np.ndarray, fired: np.ndarray, count: int, relative: bool, value: np.ndarray) -> None:
    """Round the values of a feature (``exact``, float64 [N]) to float32.

    relative: where rounding could lose what tells them apart, the mean of the list is subtracted before. count: see
    ``count_equal``; a feature that fires in few candidates is 0 in the others, and never so.
    """
    for i in range(count):
        value[fired[i]] = exact[fired[i]]
    low, high, total, rounded = exact[0], exact[0], 0.0, True
    for y in range(exact.shape[0] if count < 0 else 0):
        value[y] = 0.0 + exact[y]  # -0.0 becomes 0.0
        rounded &= value[y] == exact[y]
    if rounded or not relative or count >= 0:
        return
    for y in range(exact.shape[0]):
        low, high, total = min(low, exact[y]), max(high, exact[y]), total + (exact[y] - exact[0])
    if high - low < NEAR * max(high, -low):
        for y in range(exact.shape[0]):
            value[y] = (exact[y] - exact[0]) - total / exact.shape[0]


@kernel
def count_equal(value: np.ndarray, fired: np.ndarray, count: int, equal: np.float32) -> int:
    """In how many candidates the feature has this value; ``count``: of ``fired`` that are looked at, < 0: of all."""
    candidates, same = value.shape[0], 0
    if count < 0:
        for y in range(candidates):
            same += value[y] == equal
        return same
    for i in range(count):
        same += value[fired[i]] == equal
    return same + (candidates - count if equal == 0 else 0)


@kernel
def find_origin(value: np.ndarray, fired: np.ndarray, count: int, centred: bool) -> tuple[int, np.float32]:
    """(number of entries, the value that is not stored: the most frequent of the first few); (0, _) for a constant."""
    candidates = value.shape[0]
    best = value[0]
    most = count_equal(value, fired, count, best)
    if most == candidates:
        return 0, best
    if not centred:
        best = np.float32(0)
        return candidates - count_equal(value, fired, count, best), best
    trial = 1
    while 2 * most <= candidates and trial < min(candidates, 8):
        origin = value[trial]
        same = count_equal(value, fired, count, origin)
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
    fired: np.ndarray,
    count: int,
    origin: np.float32,
    candidate: np.ndarray,
    stored: np.ndarray,
    e: int,
) -> int:
    """Write the values other than ``origin`` to the entries from e on (one more has room); returns the next entry."""
    if origin != 0 or count < 0:
        at = np.uint64(e)
        for y in range(value.shape[0]):
            candidate[at], stored[at] = y, value[y] - origin
            at += np.uint64(value[y] != origin)
        return int(np.int64(at))
    for i in range(count):
        candidate[e], stored[e] = fired[i], value[fired[i]]
        e += value[fired[i]] != 0
    return e


@kernel
def collect(sink: Sink, centred: bool, relative: bool, row: FeatureValues, out: Collected) -> None:
    """Collect features until all are done, or room runs out; it can then be called again with more."""
    features, candidates = sink.state[FEATURES], row.value.shape[0]
    feature, kept = out.state[NEXT], out.state[KEPT]
    while feature < features:
        span, count = sink.ends[feature, FIRST], -1
        add_up(span, sink.spans, sink.candidate, sink.value, row.exact)
        if candidates > SHORT:
            count = find_fired(feature, span, sink.spans, sink.candidate, row.owner, row.fired)
        looked_at = count if FEW * count < candidates else -1
        narrow(row.exact, row.fired, looked_at, relative, row.value)
        stored, origin = find_origin(row.value, row.fired, looked_at, centred)
        e = out.first[kept]
        has_room = e + stored < out.value.shape[0]
        if stored > 0 and has_room:
            out.kept[kept], out.origin[kept] = feature, origin
            kept += 1
            out.first[kept] = write_row(row.value, row.fired, count, origin, out.candidate, out.value, e)
        for y in range(candidates if looked_at < 0 else 0):
            row.exact[y] = row.value[y] = 0
        for i in range(looked_at):
            row.exact[row.fired[i]] = row.value[row.fired[i]] = 0
        if not has_room:
            for i in range(count):
                row.owner[row.fired[i]] = 0
            break
        feature += 1
    out.state[NEXT], out.state[KEPT] = feature, kept


def collected(sink: Sink, candidates: int, centred: bool, relative: bool) -> ListFeatures:
    """The features that templates have written to ``sink``, for a list of ``candidates`` candidates.

    centred: subtract each feature's most frequent value; relative: see ``narrow``.
    """
    features, room = int(sink.state[FEATURES]), min(int(sink.state[FIRED]), ROOM) + candidates + 1
    owner, fired = np.zeros((2, candidates), np.int32)
    row = FeatureValues(np.zeros(candidates), np.zeros(candidates, np.float32), owner, fired)
    kept, first, state = np.empty(features, np.int32), np.zeros(features + 1, np.int64), np.zeros(2, np.int64)
    origin = np.empty(features, np.float32)
    out = Collected(kept, origin, first, np.empty(room, np.int32), np.empty(room, np.float32), state)
    while candidates:
        collect(sink, centred, relative, row, out)
        if out.state[NEXT] == features:
            break
        candidate, value = (np.concatenate([array, np.empty_like(array)]) for array in (out.candidate, out.value))
        out = Collected(kept, origin, first, candidate, value, state)
    kept = kept[: state[KEPT]]
    first = first[: kept.size + 1]
    return ListFeatures(
        sink.hashes[kept],
        sink.full[kept],
        sink.template[kept],
        sink.symbols[: sink.symbol_first[features]].copy(),
        sink.symbol_first[kept],
        sink.symbol_first[kept + 1],
        first,
        out.candidate[: first[-1]],
        out.value[: first[-1]],
        origin[: kept.size],
    )
