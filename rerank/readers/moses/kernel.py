"""Kernels for Moses-style lists: find lines and their fields, and read labelled values, in bytes.

Files can have millions of lines: their bytes are scanned here, and nothing is decoded or copied. A value that takes
more than one floating-point operation, or may not be a number, is left to Python (``values._decide``).
"""

from typing import Any, NamedTuple

import numpy as np

from rerank.data.symbols import combine, hash_bytes
from rerank.kernels.compile import kernel
from rerank.readers.decimal_kernel import DECIMAL, DIGITS, EXACT_MANTISSA, EXACT_POWER, NO_DECIMAL, UNDECIDED, is_blank

FIELDS = 8  # the bounds of this many fields of a line are kept
BEGIN, END, NUMBER, COUNT, FIRST = range(5)  # the columns of a line's row; bounds of the fields from FIRST on
WIDTH = FIRST + 2 * FIELDS
_ENTRY, _CANDIDATE, _FROM, _TO = range(4)  # the columns of a number that is set aside
LONGEST_ID = 18  # digits: any 18 fit an int64

NEW_LINE, BAR, EQUALS, COLON, SEMICOLON = 10, 124, 61, 58, 59
UNLABELLED = np.uint64(0x9E3779B97F4A7C15)  # takes the place of a label's hash for values without a label


@kernel
def index_lines(data: np.ndarray, final: bool, rows: np.ndarray, ids: np.ndarray) -> tuple[Any, Any, Any, Any, Any]:
    """Find the lines of ``data`` (uint8) and their fields, which are separated by ``|||`` between white space, or
    right after a whole-number id, as old Moses writes it.

    A line that is not blank gets a row in ``rows`` (int64 [lines, WIDTH]: first byte, end, its number from 0, number
    of fields, and first byte and end of every field without the white space around it) and its whole-number id, or
    -1, in ``ids``. Returns the number of rows, of lines and of bytes used up (the last line ends with the data only
    if ``final``), an upper bound of the number of labels and values, and how often a bar precedes a digit.
    """
    count, number, pieces, marks, start, size = 0, 0, 0, 0, 0, data.shape[0]
    while start < size:
        p, field, begin = start, 0, start
        while p < size and data[p] != NEW_LINE:
            c = data[p]
            if c == BAR and p + 1 < size:
                # Texts may contain bars too: only three that stand alone separate fields.
                bars = data[p + 1] == BAR and p + 2 < size and data[p + 2] == BAR
                bars = bars and (p + 3 == size or is_blank(data[p + 3]))
                if bars and (
                    p == start or is_blank(data[p - 1]) or (field == 0 and _whole_number(data, start, p) >= 0)
                ):
                    if field < FIELDS:
                        _strip(data, begin, p, rows, count, field)
                    field += 1
                    p += 3
                    begin = p
                    continue
                # A phrase mark |0-1| begins like this; where none does, no text has to be searched for them.
                marks += 48 <= data[p + 1] <= 57
            # Pieces end at white space or, as cdec writes them, at a semicolon. This also counts the other fields, but
            # an upper bound is enough to allocate room, as kernels cannot.
            pieces += is_blank(c) or c == SEMICOLON
            p += 1
        # A line that the data cuts off is left to the next chunk: ``start`` stays at its first byte.
        if p == size and not final:
            break
        if field < FIELDS:
            _strip(data, begin, p, rows, count, field)
        # The row of a blank line is not counted, so the next line overwrites it.
        if field > 0 or rows[count, FIRST] < rows[count, FIRST + 1]:
            rows[count, BEGIN], rows[count, NUMBER], rows[count, COUNT] = start, number, field + 1
            rows[count, END] = p - 1 if p > start and data[p - 1] == 13 else p
            ids[count] = _whole_number(data, rows[count, FIRST], rows[count, FIRST + 1])
            pieces += field + 1
            count += 1
        number += 1
        start = p + 1
    return count, number, min(start, size), pieces, marks


@kernel
def _strip(data: np.ndarray, begin: int, end: int, rows: np.ndarray, row: int, field: int) -> None:
    """Store the bounds of a field, without the white space around it."""
    while begin < end and is_blank(data[begin]):
        begin += 1
    while end > begin and is_blank(data[end - 1]):
        end -= 1
    rows[row, FIRST + 2 * field], rows[row, FIRST + 2 * field + 1] = begin, end


@kernel
def _whole_number(data: np.ndarray, begin: int, end: int) -> Any:
    """The number that the digits ``data[begin:end]`` form; -1 if there is nothing, something else, or too much."""
    value: Any = np.int64(0)
    if begin == end or end - begin > LONGEST_ID:
        return np.int64(-1)
    for p in range(begin, end):
        if not 48 <= data[p] <= 57:
            return np.int64(-1)
        value = value * 10 + np.int64(data[p] - 48)
    return value


@kernel
def group_lines(data: np.ndarray, rows: np.ndarray, ids: np.ndarray, numbered: bool, starts: np.ndarray) -> int:
    """Store in ``starts`` (int64 [lines]) the lines at which lists begin; returns how many there are.

    The lines of a list are consecutive and have the same id: the same number or, if not ``numbered``, the same bytes.
    A line without an id (no number, or no second field) belongs to the list before it; at the beginning, to the first.
    """
    # Ids are compared with that of the last line that has one: a damaged line must not split its list in two.
    count, last = 0, -1
    for line in range(rows.shape[0]):
        stray = ids[line] < 0 if numbered else rows[line, COUNT] < 2
        if line > 0 and (stray or last < 0):
            same = True
        elif numbered:
            same = last >= 0 and ids[line] == ids[last]
        else:
            same = last >= 0 and _equal(
                data, rows[line, FIRST], rows[line, FIRST + 1], rows[last, FIRST], rows[last, FIRST + 1]
            )
        if not stray:
            last = line
        if not same:
            starts[count] = line
            count += 1
    return count


@kernel
def _equal(data: np.ndarray, begin: int, end: int, other: int, other_end: int) -> bool:
    """Whether these two ranges of bytes are equal."""
    length = end - begin
    i = 0
    while i < length and other_end - other == length and data[begin + i] == data[other + i]:
        i += 1
    return i == length and other_end - other == length


@kernel
def read_decimal(data: np.ndarray, begin: int, end: int, powers: np.ndarray) -> tuple[Any, Any]:
    """(DECIMAL, value) of the number ``data[begin:end]``; or (UNDECIDED, 0) if it takes more than one operation, or
    (NO_DECIMAL, 0) if it is not a decimal number.

    The value is the nearest double: a mantissa up to 2^53 and a power of ten up to 10^22 take one correctly rounded
    operation (Clinger 1990).
    """
    p = begin
    negative = p < end and data[p] == 45
    if p < end and (data[p] == 45 or data[p] == 43):
        p += 1
    mantissa: Any = np.int64(0)
    digits, exponent, any_digit, point = 0, 0, False, False
    while p < end:
        c = np.int64(data[p])
        if 48 <= c <= 57:
            any_digit = True
            # Leading zeros do not count as digits; what exceeds DIGITS would overflow, and makes the number UNDECIDED.
            mantissa = mantissa * 10 + (c - 48) if digits < DIGITS else mantissa
            digits += mantissa > 0
            exponent -= point
        elif c == 46 and not point:
            point = True
        else:
            break
        p += 1
    if not any_digit:
        return NO_DECIMAL, 0.0
    if p < end and (data[p] == 69 or data[p] == 101):
        p += 1
        minus = p < end and data[p] == 45
        if p < end and (data[p] == 45 or data[p] == 43):
            p += 1
        if p == end:
            return NO_DECIMAL, 0.0
        power: Any = np.int64(0)
        while p < end and 48 <= data[p] <= 57:
            # The limit keeps the power from overflowing; it is far above what one operation can do.
            power = min(power * 10 + (np.int64(data[p]) - 48), np.int64(1) << 20)
            p += 1
        exponent += -power if minus else power
    if p < end:
        return NO_DECIMAL, 0.0
    # Within these limits both operands are exact, so that one operation gives the correctly rounded number. Negative
    # powers divide, as 10^exponent itself would be rounded.
    if mantissa > EXACT_MANTISSA or digits > DIGITS or abs(exponent) > EXACT_POWER:
        return UNDECIDED, 0.0
    value = np.float64(mantissa) / powers[-exponent] if exponent < 0 else np.float64(mantissa) * powers[exponent]
    return DECIMAL, -value if negative else value


class Entries(NamedTuple):
    """The labelled values of N candidates, in the file's order.

    A hash stands for a label, the place of the value among those of the label, and how many values the label has.
    """

    first: np.ndarray  # int64 [N + 1]: those of candidate y are first[y]..first[y + 1]
    hashes: np.ndarray  # uint64
    values: np.ndarray  # float64
    labels: np.ndarray  # int64 [:, 2]: first byte and end of the label; both 0 if there is none
    places: np.ndarray  # int32: the place of a value among those of its label; -1 if it is the only one
    inline: np.ndarray  # bool: written as label=value, without a space


@kernel
def parse_entries(
    data: np.ndarray, spans: np.ndarray, powers: np.ndarray, entries: Entries, slow: np.ndarray
) -> tuple[Any, Any]:
    """Read the labelled values of the feature fields ``data[spans[y, 0]:spans[y, 1]]`` into ``entries``.

    A label ends with ``=`` or ``:`` and precedes its values, or is joined to its only (or first) value. What is not a
    number that one operation gives goes to ``slow`` (int64 [:, 4]: entry, or -1 if it cannot be a number; candidate;
    first byte; end). Returns the number of entries and of rows of ``slow``.
    """
    count, undecided = 0, 0
    for y in range(spans.shape[0]):
        entries.first[y] = count
        block, label, label_end, joined, opened = count, 0, 0, False, False  # the label of the values from ``block`` on
        p, end = spans[y, 0], spans[y, 1]
        while p < end:
            # A semicolon right after a piece separates it from the next; after a blank it begins a label.
            if is_blank(data[p]) or (data[p] == SEMICOLON and p > spans[y, 0] and not is_blank(data[p - 1])):
                p += 1
                continue
            begin = p
            p, equals, colon = _find_piece(data, begin, end, powers)
            cut, value_at, kind, value = _cut_piece(data, begin, p, equals, colon, powers)
            if cut > begin:
                # The piece begins a new label. One that has got no value is a fault, reported with its = or :.
                if opened and block == count:
                    _set_aside(slow, undecided, -1, y, label, label_end + 1)
                    undecided += 1
                _close(data, entries, block, count, label, label_end, joined)
                block, label, label_end, joined, opened = count, begin, cut, value_at < p, True
            if value_at < p:
                # Python decides on the rest: it knows NaN and infinity, and rounds long decimals correctly.
                if kind != DECIMAL:
                    _set_aside(slow, undecided, count, y, value_at, p)
                    undecided += 1
                entries.values[count] = value
                count += 1
        # The end of the field closes its last label.
        if opened and block == count:
            _set_aside(slow, undecided, -1, y, label, label_end + 1)
            undecided += 1
        _close(data, entries, block, count, label, label_end, joined)
    entries.first[spans.shape[0]] = count
    return count, undecided


@kernel
def _find_piece(data: np.ndarray, begin: int, end: int, powers: np.ndarray) -> tuple[Any, Any, Any]:
    """(end, place of the last ``=`` or -1, place of the last ``:`` or -1) of the piece that begins at ``begin``.

    A piece ends at white space, or at a semicolon if a whole ``label=value`` precedes it; other semicolons are part of
    a label.
    """
    # The last ones count: labels may be made of words, and so may contain these characters themselves.
    p, equals, colon = begin, -1, -1
    while p < end and not is_blank(data[p]):
        c = data[p]
        if c == EQUALS:
            equals = p
        elif c == COLON:
            colon = p
        elif c == SEMICOLON and equals > begin and read_decimal(data, equals + 1, p, powers)[0] != NO_DECIMAL:
            break
        p += 1
    return p, equals, colon


@kernel
def _cut_piece(
    data: np.ndarray, begin: int, end: int, equals: int, colon: int, powers: np.ndarray
) -> tuple[Any, Any, Any, Any]:
    """(end of the label, or ``begin`` if there is none; where the value begins, or ``end``; its kind; the value)."""
    # A label by itself. A lone = or : is not one: nothing would be left of it without the sign.
    if end - begin > 1 and (data[end - 1] == EQUALS or data[end - 1] == COLON):
        return end - 1, end, NO_DECIMAL, 0.0
    # Neither sign separates anything at the beginning of a piece: it would leave an empty label.
    cut = equals if equals > begin else colon
    if cut <= begin:
        kind, value = read_decimal(data, begin, end, powers)
        return begin, begin, kind, value
    kind, value = read_decimal(data, cut + 1, end, powers)
    if kind == NO_DECIMAL and colon > cut:  # a label with = in it, joined by a colon
        other, number = read_decimal(data, colon + 1, end, powers)
        if other != NO_DECIMAL:
            return colon, colon + 1, other, number
    return cut, cut + 1, kind, value


@kernel
def _close(data: np.ndarray, entries: Entries, block: int, end: int, label: int, label_end: int, joined: bool) -> None:
    """Name the values ``block`` to ``end`` - 1, once it is known how many their label has."""
    if block == end:
        return
    # The number of values is part of the hash: a label with another number of values has other columns, instead of
    # values that are silently shifted.
    h = hash_bytes(data, label, label_end) if label_end > label else UNLABELLED
    for k in range(block, end):
        entries.hashes[k] = combine(combine(h, np.uint64(k - block)), np.uint64(end - block))
        entries.labels[k, 0], entries.labels[k, 1] = label, label_end
        entries.places[k] = k - block if end - block > 1 or label_end == label else -1
        entries.inline[k] = joined and end - block == 1


@kernel
def parse_totals(
    data: np.ndarray, spans: np.ndarray, right: np.ndarray, powers: np.ndarray, totals: np.ndarray, slow: np.ndarray
) -> int:
    """Read the numbers ``data[spans[y, 0]:spans[y, 1]]`` where ``right[y]``; ``slow`` is as in ``parse_entries``."""
    undecided = 0
    for y in range(spans.shape[0]):
        if right[y]:
            kind, totals[y] = read_decimal(data, spans[y, 0], spans[y, 1], powers)
            if kind != DECIMAL:
                _set_aside(slow, undecided, y, y, spans[y, 0], spans[y, 1])
                undecided += 1
    return undecided


@kernel
def _set_aside(slow: np.ndarray, row: int, entry: int, candidate: int, begin: int, end: int) -> None:
    """Leave ``data[begin:end]`` to slower arithmetic."""
    slow[row, _ENTRY], slow[row, _CANDIDATE], slow[row, _FROM], slow[row, _TO] = entry, candidate, begin, end


@kernel
def fill_columns(
    first: np.ndarray, hashes: np.ndarray, values: np.ndarray, wanted: np.ndarray, seen: np.ndarray,
    scores: np.ndarray, owners: np.ndarray, faults: np.ndarray,
) -> None:  # fmt: skip
    """Put the values of the columns ``wanted`` (uint64 [K] hashes) into ``scores`` (float64 [N, at least K]).

    Scores whose values are missing stay as they are. ``owners`` (int32, one per entry) gets the column that an entry
    went to, -1 for none. ``faults`` (int64 [N]) gets 0, or -k - 1 if column k is there twice. ``seen`` (int64 [K]) is
    scratch.
    """
    # ``seen`` holds the last candidate that had a column, so that it need not be cleared for every candidate.
    for k in range(wanted.shape[0]):
        seen[k] = -1
    for y in range(first.shape[0] - 1):
        following, faults[y] = 0, 0
        for entry in range(first[y], first[y + 1]):
            # Candidates nearly always have the columns in the same order: the one after the last is tried first.
            k = following
            if k >= wanted.shape[0] or wanted[k] != hashes[entry]:
                k = 0
                while k < wanted.shape[0] and wanted[k] != hashes[entry]:
                    k += 1
            if k == wanted.shape[0]:
                owners[entry] = -1
            else:
                owners[entry], following = k, k + 1
                if seen[k] == y:
                    faults[y] = -k - 1
                seen[k] = y
                scores[y, k] = values[entry]
