"""The svmlight format, token by token: bytes in, arrays out.

The kernel takes a piece of the text at a time and stops where it needs something: more bytes, room, a label it does
not know, a number that only slower arithmetic can round. It continues at the same token. ``data[end]`` is a line feed
that the caller put there, so no loop has to check for the end.
"""

from typing import Any

import numpy as np

from rerank.data.symbols import find_slot, hash_bytes
from rerank.kernels.compile import kernel
from rerank.readers.decimal_kernel import DECIMAL, NO_DECIMAL, TOO_LARGE, is_blank, number

# Where the kernel is and what it has found so far, in an int64 array.
(
    POSITION,  # in the piece: the next byte or, at a stop, the first byte of the token concerned
    LINE,  # 1-based
    ROWS,  # examples that are complete
    NONZEROS,
    IN_ROW,  # 0 before the label, 1 right after it, 2 among the features
    IN_COMMENT,
    PREVIOUS,  # the highest id of this row so far
    UNSORTED,  # whether an id of this row was lower than that
    HAS_QID,  # of this row
    QIDS,  # of all rows: 1 or 0, -1 before the first row ends
    UNIFORM,  # whether all values so far are equal, and so not stored
    LOWEST,  # id
    HIGHEST,  # id
    HIGHEST_LINE,  # where it first occurs
    FOUND,  # the id that an error is about, or the end of a new label
    GIVEN,  # position of the token whose value is ``given``
    STATE,  # how many entries the state has
) = range(17)

# Why it stops.
(
    MORE,  # the piece is used up, up to POSITION
    GROW_ROWS,
    GROW_GROUPS,
    GROW_NONZEROS,
    NOT_UNIFORM,  # values must be stored from here on
    NEW_LABEL,  # from POSITION to FOUND
    ROUND,  # the value is too close to the midpoint of two float32 numbers
    BAD_LABEL,
    BAD_FEATURE,
    BAD_VALUE,
    BAD_QID,
    OVERFLOW,
    LOW_ID,
    HIGH_ID,
    DUPLICATE,
    MIXED_QID,
) = range(16)

LINE_FEED, COLON, HASH = 10, 58, 35


@kernel
def integer(data: np.ndarray, p: int) -> tuple[Any, Any]:
    """(integer with an optional minus, end) at p; the end is p if there is none or it has more than 18 digits."""
    q = p + (data[p] == 45)
    first, value = q, np.int64(0)
    while 48 <= data[q] <= 57 and q - first <= 18:
        value = value * 10 + (np.int64(data[q]) - 48)
        q += 1
    if q == first or q - first > 18:
        return np.int64(0), p
    return -value if data[p] == 45 else value, q


@kernel
def sort_row(columns: np.ndarray, values: np.ndarray, first: int, last: int, with_values: bool) -> None:
    """Heapsort of columns[first:last] in place; the values move with them."""
    n = last - first
    for step in range(n // 2 + n - 1):
        if step < n // 2:  # build the heap, from its last parent up
            root, size = n // 2 - 1 - step, n
        else:  # the largest goes to the end
            root, size = 0, n - 1 - (step - n // 2)
            columns[first], columns[first + size] = columns[first + size], columns[first]
            if with_values:
                values[first], values[first + size] = values[first + size], values[first]
        while 2 * root + 1 < size:
            child = 2 * root + 1
            if child + 1 < size and columns[first + child] < columns[first + child + 1]:
                child += 1
            if columns[first + root] >= columns[first + child]:
                break
            columns[first + root], columns[first + child] = columns[first + child], columns[first + root]
            if with_values:
                values[first + root], values[first + child] = values[first + child], values[first + root]
            root = child


@kernel
def repeated(columns: np.ndarray, first: int, last: int) -> Any:
    """An id that occurs twice in the sorted columns[first:last], or -1."""
    for p in range(first + 1, last):
        if columns[p] == columns[p - 1]:
            return np.int64(columns[p])
    return np.int64(-1)


@kernel
def parse(  # noqa: PLR0915 - one automaton; its states share all variables
    data: np.ndarray,
    end: int,
    final: bool,
    lowest_id: int,
    highest_id: int,
    state: np.ndarray,
    constant: np.ndarray,
    given: np.ndarray,
    keys: np.ndarray,
    symbols: np.ndarray,
    classes: np.ndarray,
    rows: np.ndarray,
    labels: np.ndarray,
    groups: np.ndarray,
    columns: np.ndarray,
    values: np.ndarray,
    powers: np.ndarray,
) -> int:
    """Parse data[:end] from where ``state`` is, as far as possible; returns the reason why it stopped.

    ``final`` says that no bytes follow. ``columns`` get the ids as they are written; ``constant`` [1] is the common
    value as long as all are equal; ``given`` [1] is the value for the token at state[GIVEN]. ``keys, symbols`` are the
    index of the labels, ``classes`` the number of each symbol's class from 1; 0: a symbol that is no label yet.
    """
    p, line, n, k = state[POSITION], state[LINE], state[ROWS], state[NONZEROS]
    in_row, in_comment, previous, unsorted = state[IN_ROW], state[IN_COMMENT], state[PREVIOUS], state[UNSORTED]
    uniform, lowest, highest = state[UNIFORM], state[LOWEST], state[HIGHEST]
    code = MORE
    while True:
        c = data[p]
        if c == LINE_FEED:
            if p == end and not final:
                break
            if in_row:
                if unsorted:  # rare, so rows are sorted where they lie; equal neighbours are ids that come twice
                    sort_row(columns, values, rows[n], k, uniform == 0)
                    state[FOUND] = repeated(columns, rows[n], k)
                    if state[FOUND] >= 0:
                        code = DUPLICATE
                        break
                if state[QIDS] >= 0 and state[QIDS] != state[HAS_QID]:
                    code = MIXED_QID
                    break
                state[QIDS] = state[HAS_QID]
                n += 1
                rows[n] = k
                in_row = 0
            if p == end:
                break
            in_comment = 0
            line += 1
            p += 1
        elif in_comment or is_blank(c):
            p += 1
        elif c == HASH:
            in_comment = 1
            p += 1
        elif in_row == 0:
            q, colon = p, False
            while not is_blank(data[q]) and data[q] != HASH:
                colon = colon or data[q] == COLON
                q += 1
            state[FOUND] = q
            if q == end and not final:
                break
            if colon:
                code = BAD_LABEL
                break
            if n + 1 >= rows.shape[0]:
                code = GROW_ROWS
                break
            slot = find_slot(keys, hash_bytes(data, p, q))
            if keys[slot] == np.uint64(0) or classes[symbols[slot]] == 0:
                code = NEW_LABEL
                break
            labels[n] = classes[symbols[slot]] - 1
            in_row, previous, unsorted, state[HAS_QID] = 1, -1, 0, 0
            p = q
        else:
            # A token is read to its end before anything is stored: at the end of a piece it may be cut, and the kernel
            # then stops with the state as it was before the token, to read it again whole.
            q, feature = p, np.int64(0)
            c = data[q]
            while 48 <= c <= 57:
                feature = min(feature * 10 + (np.int64(c) - 48), np.int64(1) << 32)
                q += 1
                c = data[q]
            if q == p or c != COLON:
                if not (
                    in_row == 1 and c == 113 and data[p + 1] == 105 and data[p + 2] == 100 and data[p + 3] == COLON
                ):
                    code = BAD_FEATURE
                    break
                group, q = integer(data, p + 4)
                if q == p + 4 or not (is_blank(data[q]) or data[q] == HASH):
                    code = BAD_QID
                    break
                if q == end and not final:
                    break
                if n >= groups.shape[0]:
                    code = GROW_GROUPS
                    break
                groups[n] = group
                state[HAS_QID], in_row, p = 1, 2, q
                continue
            outcome, exact, q = number(data, q + 1, powers)
            if outcome in (NO_DECIMAL, TOO_LARGE):
                code = BAD_VALUE if outcome == NO_DECIMAL else OVERFLOW
                break
            if outcome != DECIMAL:
                if state[GIVEN] != p:
                    code = ROUND
                    break
                exact = np.float64(given[0])
            if q == end and not final:
                break
            if feature < lowest_id or feature > highest_id:
                code = LOW_ID if feature < lowest_id else HIGH_ID
                break
            if k >= columns.shape[0]:
                code = GROW_NONZEROS
                break
            value = constant.dtype.type(exact)
            if uniform:
                if k == 0:
                    constant[0] = value
                elif value != constant[0]:
                    code = NOT_UNIFORM
                    break
            else:
                values[k] = value
            if feature <= previous:
                if feature == previous:
                    state[FOUND] = feature
                    code = DUPLICATE
                    break
                unsorted = 1
            else:
                previous = feature
            if feature > highest:
                highest = feature
                state[HIGHEST_LINE] = line
            lowest = min(lowest, feature)
            columns[k] = feature
            k += 1
            in_row, p = 2, q
    if not final and code >= ROUND:  # what looks wrong may just be incomplete
        q = p
        while q < end and not is_blank(data[q]) and data[q] != HASH:
            q += 1
        if q == end:
            code = MORE
    state[POSITION], state[LINE], state[ROWS], state[NONZEROS] = p, line, n, k
    state[IN_ROW], state[IN_COMMENT], state[PREVIOUS], state[UNSORTED] = in_row, in_comment, previous, unsorted
    state[UNIFORM], state[LOWEST], state[HIGHEST] = uniform, lowest, highest
    return code
