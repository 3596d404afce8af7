"""The rows of a matrix as labelled examples and as lists of candidates."""

from typing import Any

import numpy as np
from scipy import sparse

from rerank.contrib.sklearn.parameters import numbers
from rerank.data.corpus import Corpus
from rerank.data.labelled import Labelled
from rerank.features.collecting import NEAR
from rerank.features.scores import FLOAT32_MAX
from rerank.kernels.compile import kernel
from rerank.metrics.gain import LARGEST_GAIN

SMALLEST = float(np.finfo(np.float32).smallest_subnormal)
MOST = int(np.iinfo(np.int32).max)


def rows_of(X: Any, lists: np.ndarray | None = None) -> dict[str, Any]:
    """The nonzeros of ``X`` (dense or CSR [n, D], finite; it is not changed), by row and column.

    They are ``rows`` (int64 [n + 1]), ``columns`` (int32 [nnz]) and ``values`` (float32 [nnz]), and may share memory
    with ``X``. lists: int64 [L + 1], those whose values may be relative to their means, see ``collecting.narrow``.
    """
    n, D = X.shape
    if D >= MOST:
        raise ValueError(f"X has {D} columns; fewer than {MOST} are expected")
    if sparse.issparse(X):
        return _sparse_rows(sparse.csr_array(X), lists)  # shares the arrays, not the flags
    rows, columns = np.arange(n + 1) * D, np.broadcast_to(np.arange(D, dtype=np.int32), X.shape)
    values = _narrow(X, lists, rows, columns)
    if values.all():
        return {"rows": rows, "columns": columns.ravel(), "values": values.ravel()}
    mask = values != 0
    rows = np.concatenate([[0], np.cumsum(np.count_nonzero(mask, axis=1), dtype=np.int64)])
    return {"rows": rows, "columns": columns[mask], "values": values[mask]}


def _sparse_rows(matrix: Any, lists: np.ndarray | None) -> dict[str, Any]:
    if (matrix.indptr[1:] < matrix.indptr[:-1]).any():  # scipy would read beyond the ends of its arrays
        raise ValueError("X is a damaged CSR matrix: the row offsets, X.indptr, decrease; they must not")
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    least, most = int(matrix.indices.min(initial=0)), int(matrix.indices.max(initial=-1))
    if least < 0 or most >= matrix.shape[1]:  # as int32, one that is too large could be another's
        expected = f"expected 0..{matrix.shape[1] - 1}"
        raise ValueError(f"X is a damaged CSR matrix: columns from {least} to {most}; {expected}")
    values = _narrow(matrix.data, lists, matrix.indptr, matrix.indices)
    if not values.all():  # stored zeros
        matrix = sparse.csr_array((values, matrix.indices, matrix.indptr), shape=matrix.shape, copy=True)
        matrix.eliminate_zeros()
        values = matrix.data
    rows, columns = matrix.indptr.astype(np.int64, copy=False), matrix.indices.astype(np.int32, copy=False)
    return {"rows": rows, "columns": columns, "values": values}


def _narrow(data: np.ndarray, lists: np.ndarray | None, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """``data`` as float32, by rows; the same array if it is that already."""
    if data.dtype == np.float32:
        return data.astype(np.float32, order="C", copy=False)
    with np.errstate(over="ignore", under="ignore"):
        values = data.astype(np.float32, order="C")
    if not np.isfinite(values.sum(dtype=np.float64)):  # sums of float32 numbers cannot overflow it
        raise ValueError(
            f"X holds values beyond the largest 32-bit float, {FLOAT32_MAX:.3g}, the type of feature values; scale X"
        )
    if not values.all() and np.count_nonzero(values) != np.count_nonzero(data):
        lost = data[(values == 0) & (data != 0)]
        raise ValueError(
            f"X holds {lost[0]:.3g}, below the smallest 32-bit float, {SMALLEST:.3g}, the type of feature values; "
            "scale X, or set such values to 0"
        )
    if lists is not None:
        scratch = np.zeros((int(columns.max(initial=-1)) + 1, LOST + 1))
        centre(lists, rows.astype(np.int64), columns.ravel(), data.ravel(), values.reshape(-1), scratch)
    return values


COUNT, FIRST, LOW, HIGH, TOTAL, LOST = range(6)


@kernel
def centre(
    lists: np.ndarray, rows: np.ndarray, columns: np.ndarray, exact: np.ndarray, values: np.ndarray, of: np.ndarray
) -> None:
    """Do for nonzeros by row (``exact``, and ``values``, the same in float32) what ``collecting.narrow`` does for
    values by feature; of: float64 [D, LOST + 1], all 0, scratch."""
    for i in range(lists.shape[0] - 1):
        size, first, last = lists[i + 1] - lists[i], rows[lists[i]], rows[lists[i + 1]]
        for p in range(first, last):
            j, x = columns[p], exact[p]
            if of[j, COUNT] == 0.0:
                of[j, FIRST] = of[j, LOW] = of[j, HIGH] = x
            of[j, COUNT] += 1.0
            of[j, LOW], of[j, HIGH] = min(of[j, LOW], x), max(of[j, HIGH], x)
            of[j, TOTAL] += x - of[j, FIRST]
            of[j, LOST] += values[p] != x
        for p in range(first, last):
            j = columns[p]
            near = of[j, HIGH] - of[j, LOW] < NEAR * max(of[j, HIGH], -of[j, LOW])
            if near and of[j, LOST] > 0.0 and of[j, COUNT] == size:
                values[p] = (exact[p] - of[j, FIRST]) - of[j, TOTAL] / size
        for p in range(first, last):
            of[columns[p]] = 0.0


def examples_of(X: Any, label: np.ndarray, classes: np.ndarray, weight: np.ndarray) -> Labelled:
    """The rows of ``X`` (see ``rows_of``) with ``label`` (int64 [n], index of a class) and ``weight`` (float64 [n])."""
    return Labelled(
        **rows_of(X), label=label, classes=tuple(map(str, classes)), group=np.zeros(0, np.int64), weight=weight,
        width=X.shape[1],
    )  # fmt: skip


def offsets_of(group: Any, qid: Any, n: int) -> np.ndarray:
    """int64 [L + 1]: list i holds the rows offsets[i]..offsets[i + 1] - 1, by sizes or ids of lists."""
    if (group is None) == (qid is None):
        raise ValueError(
            f"found {'neither group nor qid' if group is None else 'both group and qid'}; expected one of them: "
            "group, the sizes of the lists, or qid, for every row of X the id of its list"
        )
    if qid is not None:
        return _by_ids(qid, n)
    sizes = np.asarray(group)
    whole = sizes.ndim == 1 and sizes.dtype.kind in "iu"
    if not whole or not (sizes > 0).all():
        shown = f"{sizes.dtype} of shape {sizes.shape}"
        if whole:
            i = int(np.argmin(sizes > 0))
            shown = f"the size {sizes[i]} of list {i}"
        raise ValueError(f"group holds {shown}; expected the sizes of the lists, whole numbers from 1")
    offsets = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    if offsets[-1] != n:
        raise ValueError(
            f"group holds {sizes.size} sizes that add up to {offsets[-1]}; expected {n}, the number of rows of X"
        )
    return offsets


def _by_ids(qid: Any, n: int) -> np.ndarray:
    ids = np.asarray(qid)
    if ids.shape != (n,):
        raise ValueError(f"qid has shape {ids.shape}; expected ({n},), for every row of X the id of its list")
    if (missing := ids != ids).any():
        raise ValueError(f"qid holds NaN in row {int(np.flatnonzero(missing)[0])}; expected the id of its list")
    starts = np.flatnonzero(np.append(True, ids[1:] != ids[:-1]))
    first: dict[Any, int] = {}
    for row, name in zip(starts.tolist(), ids[starts].tolist(), strict=True):
        if first.setdefault(name, row) != row:
            raise ValueError(
                f"qid {name!r} is found from row {first[name]} on and again in row {row}, with others between them; "
                "expected the rows of a list next to each other: sort the rows by qid"
            )
    return np.append(starts, n)


def lists_of(X: Any, gain: Any, group: Any = None, qid: Any = None, base: Any = None, *, plain: bool = False) -> Corpus:
    """The rows of ``X`` (dense or CSR [n, D]) as lists; it is not changed, and shares what it can.

    gain, base: [n]; higher is better, and without base scores all are 0. The statistics are those of the metric
    ``gain``: the gains themselves, and 1 for every list. plain: no value may be relative to its list.
    """
    n = X.shape[0]
    offsets = offsets_of(group, qid, n)
    gains = numbers("gain", gain, n)
    if (large := np.abs(gains) > LARGEST_GAIN).any():
        row = int(np.flatnonzero(large)[0])
        raise ValueError(
            f"gain holds {gains[row]} in row {row}; expected numbers from {-LARGEST_GAIN:g} to {LARGEST_GAIN:g}"
        )
    L, rows = offsets.size - 1, rows_of(X, None if plain else offsets)
    return Corpus(
        **rows, lists=offsets, base=np.zeros(n) if base is None else numbers("base", base, n),
        gain=gains, stats=gains[:, np.newaxis], reference=np.ones((L, 1)), weight=np.ones(L), width=X.shape[1],
    )  # fmt: skip


def require_differences(lists: Corpus) -> None:
    """Refuse lists that teach nothing."""
    starts = lists.lists[:-1]
    best, worst = np.maximum.reduceat(lists.gain, starts), np.minimum.reduceat(lists.gain, starts)
    if not (best > worst).any():
        n, L = lists.candidate_count, lists.list_count
        raise ValueError(
            f"gain: found {n} sample{'s' * (n > 1)} in {L} list{'s' * (L > 1)}, and in no list candidates of different "
            "gain; expected at least one list with a better and a worse candidate"
        )
