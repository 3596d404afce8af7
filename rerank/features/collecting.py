"""From a sink to the features of a list: those that vary among its candidates, and their values."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rerank.features.sink import AFTER, FEATURES, FIRED, FIRST, LAST, Sink
from rerank.kernels.compile import kernel

ROOM = 1 << 22  # room for entries at first
FEW = 8  # candidates are looked at one by one if a feature fires in less than one of so many


class ListFeatures(NamedTuple):
    """The F features of one list that differ among its candidates, and their values (E entries).

    A value is how often the feature fires in a candidate. If the list is ``centred``, the feature's most
    frequent value in the list is subtracted: this shifts all scores of the list alike, and most entries vanish.
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
    """Scratch: the values of one feature in all N candidates. Between features, ``value`` is all 0."""

    value: np.ndarray  # float32 [N]
    owner: np.ndarray  # int32 [N]: 1 + the last feature that fires in a candidate
    fired: np.ndarray  # int32 [N]: the candidates in which the feature fires
    state: np.ndarray  # int64 [2]: how many these are, and whether they are in increasing order


COUNT, RISING = 0, 1


class Collected(NamedTuple):
    """Where collected features go."""

    kept: np.ndarray  # int32 [F]: which features vary
    origin: np.ndarray  # float32 [F]
    first: np.ndarray  # int64 [F + 1]
    candidate: np.ndarray  # int32 [room]
    value: np.ndarray  # float32 [room]
    state: np.ndarray  # int64 [2]: the feature to continue with; how many are kept


NEXT, KEPT = 0, 1


@kernel
def add_up(sink: Sink, feature: int, row: FeatureValues) -> None:
    """Fill ``row`` with the values of a feature, added up in the order in which it fired."""
    count, rising = 0, 1
    span = sink.ends[feature, FIRST]
    while span >= 0:
        for e in range(sink.spans[span, FIRST], sink.spans[span, LAST]):
            y = sink.candidate[e]
            if row.owner[y] != feature + 1:
                row.owner[y] = feature + 1
                if count > 0 and row.fired[count - 1] > y:
                    rising = 0
                row.fired[count] = y
                count += 1
            row.value[y] += sink.value[e]
        span = sink.spans[span, AFTER]
    row.state[COUNT], row.state[RISING] = count, rising


@kernel
def count_equal(row: FeatureValues, value: np.float32) -> int:
    """The number of candidates in which the feature has this value."""
    candidates, fired, count = row.value.shape[0], row.state[COUNT], 0
    if FEW * fired >= candidates:
        for y in range(candidates):
            count += row.value[y] == value
        return count
    for i in range(fired):
        count += row.value[row.fired[i]] == value
    return count + (candidates - fired if value == 0 else 0)


@kernel
def find_origin(row: FeatureValues, centred: bool) -> tuple[int, np.float32]:
    """(how many entries the feature needs, the value that is not stored); (0, _) if it does not vary.

    The value is the most frequent one (the smallest of several) among those of the first few candidates: lists hold
    only a handful of distinct ones.
    """
    candidates = row.value.shape[0]
    best = row.value[0]
    most = count_equal(row, best)
    if most == candidates:
        return 0, best
    if not centred:
        best = np.float32(0)
        return candidates - count_equal(row, best), best
    trial = 1
    while 2 * most <= candidates and trial < min(candidates, 8):
        value = row.value[trial]
        count = count_equal(row, value)
        if count > most or (count == most and value < best):
            best, most = value, count
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
def write_row(row: FeatureValues, origin: np.float32, out: Collected, e: int) -> int:
    """Write the values other than ``origin`` to the entries from e on, by candidate; returns the next entry.

    There must be room for one more entry.
    """
    candidates, fired = row.value.shape[0], row.state[COUNT]
    if origin != 0 or (FEW * fired >= candidates and not row.state[RISING]):
        for y in range(candidates):
            out.candidate[e], out.value[e] = y, row.value[y] - origin
            e += row.value[y] != origin
        return e
    if not row.state[RISING]:
        sort(row.fired, fired)
    for i in range(fired):
        y = row.fired[i]
        out.candidate[e], out.value[e] = y, row.value[y]
        e += row.value[y] != 0
    return e


@kernel
def collect(sink: Sink, centred: bool, row: FeatureValues, out: Collected) -> None:
    """Collect features until all are done, or room runs out; it can then be called again with more."""
    features = sink.state[FEATURES]
    feature, kept = out.state[NEXT], out.state[KEPT]
    while feature < features:
        add_up(sink, feature, row)
        stored, origin = find_origin(row, centred)
        e = out.first[kept]
        has_room = e + stored < out.value.shape[0]
        if stored > 0 and has_room:
            out.kept[kept], out.origin[kept] = feature, origin
            kept += 1
            out.first[kept] = write_row(row, origin, out, e)
        for i in range(row.state[COUNT]):
            row.value[row.fired[i]] = 0
        if not has_room:
            for i in range(row.state[COUNT]):
                row.owner[row.fired[i]] = 0
            break
        feature += 1
    out.state[NEXT], out.state[KEPT] = feature, kept


def collected(sink: Sink, candidates: int, centred: bool) -> ListFeatures:
    """The features that templates have written to ``sink``, for a list of ``candidates`` candidates.

    centred: subtract each feature's most frequent value.
    """
    features, room = int(sink.state[FEATURES]), min(int(sink.state[FIRED]), ROOM) + candidates + 1
    owner, fired = np.zeros((2, candidates), np.int32)
    row = FeatureValues(np.zeros(candidates, np.float32), owner, fired, np.zeros(2, np.int64))
    kept, first, state = np.empty(features, np.int32), np.zeros(features + 1, np.int64), np.zeros(2, np.int64)
    origin = np.empty(features, np.float32)
    out = Collected(kept, origin, first, np.empty(room, np.int32), np.empty(room, np.float32), state)
    while candidates:
        collect(sink, centred, row, out)
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
