"""Vectors that updates are made of: a list's subgradient, or the difference of two of its candidates."""

import numpy as np

from rerank.kernels.compile import kernel, prefetch
from rerank.learn.scoring import ONE, THREE, TWO, single
from rerank.learn.workspace import ListArrays, Scratch


@kernel
def look_ahead(data: ListArrays, order: np.ndarray, at: int) -> None:
    """Prefetch the next lists of ``order`` while list ``at`` is worked on: offsets first, then nonzeros."""
    n = order.shape[0]
    if at + 12 < n:
        prefetch(data.lists, order[at + 12])  # and its oracle
    if at + 8 < n:
        i = order[at + 8]
        first, last = data.lists[i], data.lists[i + 1]
        for y in range(first, last if last < first + 64 else first + 64, 8):
            prefetch(data.rows, y)
            prefetch(data.gain, y)
            prefetch(data.base, y)
        prefetch(data.weight, i)
    if at + 4 < n:
        i = order[at + 4]
        begin, end = data.rows[data.lists[i]], data.rows[data.lists[i + 1]]
        end = end if end < begin + 256 else begin + 256  # the processor itself prefetches the rest
        for p in range(begin, end, 16):
            prefetch(data.columns, p)
        for p in range(begin, end, 8):  # 8 float64 are a line of the caches, 16 float32
            prefetch(data.values, p)


@kernel
def copy_row(data: ListArrays, y: int, a: float, column: np.ndarray, value: np.ndarray) -> int:
    """a·φ(y) of one row, without zeros; returns the number of its data.columns."""
    size = data.rows[y + 1] - data.rows[y]
    begin, count, zeros = np.uint64(data.rows[y]), np.uint64(size), 0
    for r in range(count):
        column[r] = data.columns[begin + r]
    for r in range(count):
        value[r] = a * single(data.values[begin + r])
        zeros += value[r] == 0.0
    return size if zeros == 0 else drop_zeros(size, column, value)


@kernel
def drop_zeros(count: int, column: np.ndarray, value: np.ndarray) -> int:
    """Leave out the entries that are 0; returns how many stay."""
    kept = 0
    for r in range(count):
        column[kept], value[kept] = column[r], value[r]
        kept += value[kept] != 0.0
    return kept


@kernel
def merge(data: ListArrays, x: int, a: float, y: int, b: float, column: np.ndarray, value: np.ndarray) -> int:
    """a·φ(x) + b·φ(y) of two rows by rising column, without zeros; returns its length."""
    p, p_end = data.rows[x], data.rows[x + 1]
    q, q_end = data.rows[y], data.rows[y + 1]
    if p == p_end:
        return copy_row(data, y, b, column, value)
    if q == q_end:
        return copy_row(data, x, a, column, value)
    count = 0
    while p < p_end and q < q_end:
        j, k = data.columns[p], data.columns[q]
        total = 0.0
        if j <= k:
            total += a * single(data.values[p])
            p += 1
        if k <= j:
            total += b * single(data.values[q])
            q += 1
        column[count], value[count] = j if j <= k else k, total
        count += total != 0.0
    while p < p_end:
        column[count], value[count] = data.columns[p], a * single(data.values[p])
        count += value[count] != 0.0
        p += 1
    while q < q_end:
        column[count], value[count] = data.columns[q], b * single(data.values[q])
        count += value[count] != 0.0
        q += 1
    return count


@kernel
def accumulate(data: ListArrays, scratch: Scratch, n: int) -> int:
    """Σ a_y φ(y) over the first n of ``scratch.who``, without zeros; ``scratch.sums`` are 0 before and after.

    A column is noted wherever its sum is 0, which it may be again: no branch depends on what cannot be foreseen.
    """
    column, sums = scratch.column, scratch.sums
    noted, count = np.uint64(0), 0
    for i in range(n):
        a = scratch.a[i]
        if a == 0.0:
            continue
        for p in range(np.uint64(data.rows[scratch.who[i]]), np.uint64(data.rows[scratch.who[i] + 1])):
            j = data.columns[p]
            before = sums[j]
            sums[j] = before + a * single(data.values[p])
            column[noted] = j
            noted += np.uint64(before == 0.0)
    for r in range(noted):
        j = column[r]
        column[count], scratch.value[count] = j, sums[j]
        count += sums[j] != 0.0
        sums[j] = 0.0
    return count


@kernel
def subgradient(data: ListArrays, scratch: Scratch, n: int) -> int:
    """g = Σ a_y φ(y) of the n candidates that a loss looks at; returns its length."""
    if n == 2:
        return merge(data, scratch.who[0], scratch.a[0], scratch.who[1], scratch.a[1], scratch.column, scratch.value)
    return accumulate(data, scratch, n)


@kernel
def append(scratch: Scratch, count: int, column: int, value: float) -> int:
    """Put one more entry behind those of a vector, if it is not 0; returns how many there are."""
    scratch.column[count], scratch.value[count] = column, value
    return count + (value != 0.0)


@kernel
def difference(data: ListArrays, star: int, rival: int, base_rate: float, last: int, scratch: Scratch) -> int:
    """z = φ(y*) − φ(y'), the base score at the column ``last``; the pair goes to ``scratch`` as a subgradient's."""
    scratch.who[0], scratch.a[0] = star, -1.0
    scratch.who[1], scratch.a[1] = rival, 1.0
    count = merge(data, star, 1.0, rival, -1.0, scratch.column, scratch.value)
    return append(scratch, count, last, base_rate * (data.base[star] - data.base[rival]))


@kernel
def base_of(data: ListArrays, scratch: Scratch, n: int) -> float:
    """Σ a_y b(y) over the first n candidates of ``scratch.who``."""
    total = 0.0
    for r in range(n):
        total += scratch.a[r] * data.base[scratch.who[r]]
    return total


@kernel
def margin(w: np.ndarray, scratch: Scratch, count: int) -> float:
    """w·z for the z in ``scratch.value``, in four sums that the processor computes at once."""
    j, z = scratch.column, scratch.value
    one = two = three = four = 0.0
    end = np.uint64(count)
    quarters = end - end % np.uint64(4)
    for r in range(np.uint64(0), quarters, np.uint64(4)):
        one += w[j[r]] * z[r]
        two += w[j[r + ONE]] * z[r + ONE]
        three += w[j[r + TWO]] * z[r + TWO]
        four += w[j[r + THREE]] * z[r + THREE]
    for r in range(quarters, end):
        one += w[j[r]] * z[r]
    return float((one + two) + (three + four))


@kernel
def inner(x: np.ndarray, y: np.ndarray, count: int) -> float:
    """x·y of the first ``count`` numbers, in four sums that the processor computes at once."""
    one = two = three = four = 0.0
    end = np.uint64(count)
    quarters = end - end % np.uint64(4)
    for r in range(np.uint64(0), quarters, np.uint64(4)):
        one += x[r] * y[r]
        two += x[r + ONE] * y[r + ONE]
        three += x[r + TWO] * y[r + TWO]
        four += x[r + THREE] * y[r + THREE]
    for r in range(quarters, end):
        one += x[r] * y[r]
    return float((one + two) + (three + four))


@kernel
def squared_norm(scratch: Scratch, count: int) -> float:
    """‖g‖² of the vector in ``scratch.value``."""
    return inner(scratch.value, scratch.value, count)
