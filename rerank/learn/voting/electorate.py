"""Electorate: the lists of a corpus as differences between their candidates.

The columns of a list that have the same values on all its candidates form a *pattern*. A candidate is stored as its
differences from the earlier candidate of its list that it is most like: on parse lists, these are a fifth of its own
nonzeros.

Where the value is a small whole number (a count, an indicator), what columns weigh can be summed before it is
multiplied: rounding makes no difference. With other values it does. A column that has such a value forms a *real*
pattern of its own, whose values are stored as they are.
"""

from typing import NamedTuple

import numpy as np

from rerank.data.corpus import Corpus
from rerank.data.symbols import find_slot, mix
from rerank.kernels.compile import kernel

WINDOW = 64  # earlier candidates that one is compared with: all of them would take quadratic time
LARGEST_WHOLE = 127.0  # the largest |value| that is multiplied as a whole number


class Electorate(NamedTuple):
    """Lists in parts; candidates of a list are in *places*: by falling base score, then by index (the tie rule).

    Patterns of list i are patterns[i]..patterns[i + 1], the first whole[i] of them whole, the others real; the columns
    of pattern p are at members[p]..members[p + 1]. The edges edges[y]..edges[y + 1] of place y, by rising pattern: its
    values of whole patterns less those of the place that it is like, where these differ, and its real values.
    """

    lists: np.ndarray  # int64 [L + 1], from 0
    candidate: np.ndarray  # int64 [N]: the candidate at a place
    base: np.ndarray  # float64 [N]: its base score
    like: np.ndarray  # int32 [N]: the place of the candidate that it is stored as differences from, -1 for none
    patterns: np.ndarray  # int64 [L + 1]
    members: np.ndarray  # int64 [P + 1]
    column: np.ndarray  # int32
    largest: np.ndarray  # float64 [P]: largest |value|
    whole: np.ndarray  # int64 [L]
    edges: np.ndarray  # int64 [N + 1]
    pattern: np.ndarray  # int32: counted from the list's first
    value: np.ndarray  # float32


@kernel
def has_real(seats: Electorate, i: int) -> bool:
    """Has list i real patterns?"""
    return bool(seats.whole[i] < seats.patterns[i + 1] - seats.patterns[i])


class Desk(NamedTuple):
    """Scratch space for ``sort_list``."""

    slot: np.ndarray  # int32 [C]: where a column of the list is in ``own``; -1 before and after every list
    own: np.ndarray  # int32: columns of the list
    hashes: np.ndarray  # uint64: of their values on the list's candidates
    real: np.ndarray  # bool: is one of these real?
    pattern: np.ndarray  # int32: their patterns
    keys: np.ndarray  # uint64 [a power of two]: hash table
    ids: np.ndarray  # int32: the pattern of a hash
    values: np.ndarray  # float32 [candidates · patterns]: value of a pattern on the candidate at a place
    sizes: np.ndarray  # int64


@kernel
def is_real(value: float) -> bool:
    """Is it anything but a whole number of at most LARGEST_WHOLE?"""
    return value != np.rint(value) or abs(value) > LARGEST_WHOLE


@kernel
def find_columns(
    a: int, n: int, candidate: np.ndarray, rows: np.ndarray, columns: np.ndarray, values: np.ndarray, bits: np.ndarray,
    name: np.ndarray, desk: Desk,
) -> int:  # fmt: skip
    """The distinct columns of a list, and a hash of (place, value) for each; returns their number."""
    count = 0
    for y in range(n):
        key = mix(np.uint64(y + 1))
        for p in range(rows[candidate[a + y]], rows[candidate[a + y] + 1]):
            c = name[columns[p]]
            if c < 0:
                continue
            r = desk.slot[c]
            if r < 0:
                r = count
                desk.slot[c] = r
                desk.own[r] = c
                desk.hashes[r] = np.uint64(0)
                desk.real[r] = False
                count += 1
            # A sum over the nonzeros: columns with the same values on all candidates get the same hash.
            desk.hashes[r] += mix(key ^ np.uint64(bits[p]))
            desk.real[r] |= is_real(values[p])
    return count


@kernel
def find_patterns(count: int, desk: Desk) -> tuple[int, int]:
    """Number the patterns, whole ones in the order of their first columns, then real ones; how many whole, how many.

    Columns are the same pattern if their hashes are equal; with 64 bits, values need not be compared.
    """
    size = 16
    while size < 2 * count:
        size *= 2
    keys = desk.keys[:size]
    for slot in range(size):
        keys[slot] = np.uint64(0)
    patterns = 0
    for r in range(count):
        if desk.real[r]:
            continue
        h = desk.hashes[r] if desk.hashes[r] != np.uint64(0) else np.uint64(1)  # 0 marks an empty slot
        slot = find_slot(keys, h)
        if keys[slot] == np.uint64(0):
            keys[slot] = h
            desk.ids[slot] = patterns
            patterns += 1
        desk.pattern[r] = desk.ids[slot]
    whole = patterns
    for r in range(count):
        if desk.real[r]:
            desk.pattern[r] = patterns
            patterns += 1
    return whole, patterns


@kernel
def fill_values(
    a: int, n: int, patterns: int, candidate: np.ndarray, rows: np.ndarray, columns: np.ndarray, values: np.ndarray,
    name: np.ndarray, desk: Desk,
) -> None:  # fmt: skip
    """The value of every pattern on every candidate."""
    for e in range(n * patterns):
        desk.values[e] = 0.0
    for y in range(n):
        for p in range(rows[candidate[a + y]], rows[candidate[a + y] + 1]):
            c = name[columns[p]]
            if c >= 0:
                desk.values[y * patterns + desk.pattern[desk.slot[c]]] = values[p]


@kernel
def differing(x: np.ndarray, y: np.ndarray) -> int:
    """The number of values in which two rows differ."""
    count = 0
    for p in range(x.shape[0]):
        count += x[p] != y[p]
    return count


@kernel
def most_like(y: int, whole: int, patterns: int, values: np.ndarray) -> int:
    """The earlier place whose whole patterns differ least from those of place y; -1 if y has no more nonzeros."""
    row = values[y * patterns : y * patterns + whole]
    nearest, least = -1, 0
    for p in range(whole):
        least += row[p] != 0.0
    for x in range(max(0, y - WINDOW), y):
        count = differing(row, values[x * patterns : x * patterns + whole])
        if count < least:
            nearest, least = x, count
    return nearest


@kernel
def write_columns(count: int, patterns: int, desk: Desk, at: int, out: Electorate, p0: int) -> None:
    """The list's columns by pattern, from position ``at``; its first pattern is p0."""
    for p in range(patterns + 1):
        desk.sizes[p] = 0
    for r in range(count):
        desk.sizes[desk.pattern[r] + 1] += 1
    for p in range(patterns):
        desk.sizes[p + 1] += desk.sizes[p]
        out.members[p0 + p + 1] = at + desk.sizes[p + 1]
    for r in range(count):
        p = desk.pattern[r]
        out.column[at + desk.sizes[p]] = desk.own[r]
        desk.sizes[p] += 1
        desk.slot[desk.own[r]] = -1  # for the next list


@kernel
def write_edges(
    a: int, n: int, whole: int, patterns: int, values: np.ndarray, at: int, out: Electorate, p0: int
) -> int:
    """The edges of the list's candidates, from position ``at``; returns their end."""
    for p in range(patterns):
        out.largest[p0 + p] = 0.0
    for y in range(n):
        x = out.like[a + y]
        for p in range(patterns):
            value = values[y * patterns + p]
            out.largest[p0 + p] = max(out.largest[p0 + p], abs(value))
            if x >= 0 and p < whole:
                value -= values[x * patterns + p]
            out.pattern[at], out.value[at] = p, value
            at += value != 0.0  # an edge of value 0 is overwritten by the next one
        out.edges[a + y + 1] = at
    return at


@kernel
def sort_lists(
    rows: np.ndarray, columns: np.ndarray, values: np.ndarray, bits: np.ndarray, name: np.ndarray, desk: Desk,
    out: Electorate,
) -> None:  # fmt: skip
    """Fill ``out``, whose lists, candidate and base are given."""
    p0 = at = edge = 0
    for i in range(out.lists.shape[0] - 1):
        a, n = out.lists[i], out.lists[i + 1] - out.lists[i]
        count = find_columns(a, n, out.candidate, rows, columns, values, bits, name, desk)
        out.whole[i], patterns = find_patterns(count, desk)
        fill_values(a, n, patterns, out.candidate, rows, columns, values, name, desk)
        for y in range(n):
            out.like[a + y] = most_like(y, out.whole[i], patterns, desk.values)
        write_columns(count, patterns, desk, at, out, p0)
        edge = write_edges(a, n, out.whole[i], patterns, desk.values, edge, out, p0)
        at += count
        p0 += patterns
        out.patterns[i + 1] = p0


def assemble(corpus: Corpus, name: np.ndarray, first: int, last: int) -> Electorate:
    """Lists first..last - 1 of ``corpus``, with the columns that have a ``name`` (int32 [D]; -1 for none)."""
    a, b = int(corpus.lists[first]), int(corpus.lists[last])
    lists, base = corpus.lists[first : last + 1] - a, corpus.base[a:b]
    sizes = np.diff(lists)
    candidate = a + np.lexsort((-base, np.repeat(np.arange(sizes.size), sizes)))
    nonzeros = np.diff(corpus.rows[corpus.lists[first : last + 1]])
    room, widest = int(nonzeros.sum()), int(nonzeros.max(initial=0))
    out = Electorate(
        lists=lists,
        candidate=candidate,
        base=corpus.base[candidate],
        like=np.empty(b - a, np.int32),
        patterns=np.zeros(last - first + 1, np.int64),
        members=np.zeros(room + 1, np.int64),
        column=np.empty(room, np.int32),
        largest=np.empty(room),
        whole=np.empty(last - first, np.int64),
        edges=np.zeros(b - a + 1, np.int64),
        pattern=np.empty(room + 1, np.int32),
        value=np.empty(room + 1, np.float32),
    )
    C = int(name.max(initial=-1)) + 1
    # At least twice as many slots as a list has columns, so that searches in the hash table stay short.
    table = 1 << max(4, (2 * min(widest, C) - 1).bit_length())
    longest = int(sizes.max(initial=0))
    desk = Desk(
        slot=np.full(C, -1, np.int32),
        own=np.empty(min(widest, C), np.int32),
        hashes=np.empty(min(widest, C), np.uint64),
        real=np.empty(min(widest, C), np.bool_),
        pattern=np.empty(min(widest, C), np.int32),
        keys=np.empty(table, np.uint64),
        ids=np.empty(table, np.int32),
        values=np.empty(longest * min(widest, C), np.float32),
        sizes=np.empty(min(widest, C) + 1, np.int64),
    )
    sort_lists(corpus.rows, corpus.columns, corpus.values, corpus.values.view(np.uint32), name, desk, out)
    P = int(out.patterns[-1])
    c, e = int(out.members[P]), int(out.edges[-1])
    return out._replace(
        members=out.members[: P + 1].copy(),
        column=out.column[:c].copy(),
        largest=out.largest[:P].copy(),
        pattern=out.pattern[:e].copy(),
        value=out.value[:e].copy(),
    )
