"""From a sink to the features of a list: those that vary among its candidates, and their values."""

from typing import NamedTuple

import numpy as np

from rerank.features.sink import AFTER, FEATURES, FIRED, FIRST, LAST, Sink
from rerank.kernels.compile import kernel

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
    """Sort the first ``size`` numbers in place (heap sort)."""
    start, end = size // 2, size
    while end > 1:
        if start > 0:
            start -= 1
        else:
            end -= 1
            numbers[0], numbers[end] = numbers[end], numbers[0]
        at = start
        while True:
            child = 2 * at + 1
            if child + 1 < end and numbers[child + 1] > numbers[child]:
                child += 1
            if child >= end or numbers[child] <= numbers[at]:
                break
            numbers[at], numbers[child] = numbers[child], numbers[at]
            at = child


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
