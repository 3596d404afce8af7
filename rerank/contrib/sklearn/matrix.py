"""Rows of a matrix as sparse rows, as labelled examples, and as lists of candidates."""

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from rerank.contrib.sklearn.parameters import numbers
from rerank.data.corpus import Corpus
from rerank.data.labelled import Labelled
from rerank.kernels.compile import kernel
from rerank.metrics.gain import LARGEST_GAIN

FLOAT32_MAX = float(np.finfo(np.float32).max)
SMALLEST = float(np.finfo(np.float32).smallest_subnormal)
MOST = int(np.iinfo(np.int32).max)
LARGE = 1 << 20  # so many float64 values, or more, are trained on without a copy as float32


class SparseRows(NamedTuple):
    """The nonzeros of n rows, sorted by column; they may share memory with the matrix that they are from."""

    rows: np.ndarray  # int64 [n + 1]
    columns: np.ndarray  # int32 [nnz]
    values: np.ndarray  # float32 [nnz], or float64 that are within its range


def rows_of(X: Any, *, double: bool = False) -> SparseRows:
    """The rows of ``X`` (dense or CSR [n, D], finite; it is not changed).

    double: many float64 values of a CSR matrix may stay what they are.
    """
    if X.shape[1] >= MOST:
        raise ValueError(f"X has {X.shape[1]} columns; fewer than {MOST} are expected")
    return _sparse_rows(X, double) if sparse.issparse(X) else _dense_rows(X)


def _dense_rows(X: np.ndarray) -> SparseRows:
    n, D = X.shape
    values = _narrow(X)
    if values.all():
        return SparseRows(np.arange(n + 1) * D, np.tile(np.arange(D, dtype=np.int32), n), values.ravel())
    mask = values != 0
    rows = np.concatenate([[0], np.cumsum(np.count_nonzero(mask, axis=1), dtype=np.int64)])
    return SparseRows(rows, np.broadcast_to(np.arange(D, dtype=np.int32), X.shape)[mask], values[mask])


def _sparse_rows(X: Any, double: bool) -> SparseRows:
    matrix = sparse.csr_array(X)  # shares the arrays of sparse input, not the flags
    if (matrix.indptr[1:] < matrix.indptr[:-1]).any():  # scipy would read beyond the ends of its arrays
        raise ValueError("X is a damaged CSR matrix: the row offsets, X.indptr, decrease; they must not")
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    if matrix.indices.dtype.itemsize > 4 and matrix.nnz:  # as int32, one that is too large could be another's
        least, most = int(matrix.indices.min()), int(matrix.indices.max())
        if least < 0 or most >= matrix.shape[1]:
            expected = f"expected 0..{matrix.shape[1] - 1}"
            raise ValueError(f"X is a damaged CSR matrix: columns from {least} to {most}; {expected}")
    double &= matrix.nnz >= LARGE and matrix.dtype == np.float64
    as_given = double and in_range(matrix.data, SMALLEST, FLOAT32_MAX)
    values = matrix.data if as_given else _narrow(matrix.data)
    if not as_given and not values.all():  # stored zeros
        matrix = sparse.csr_array((values, matrix.indices, matrix.indptr), shape=matrix.shape, copy=True)
        matrix.eliminate_zeros()
        values = matrix.data
    indptr, indices = matrix.indptr.astype(np.int64, copy=False), matrix.indices.astype(np.int32, copy=False)
    return SparseRows(indptr, indices, values)


@kernel
def in_range(values: np.ndarray, least: float, most: float) -> bool:
    """Whether all sizes of ``values`` (float64) are from ``least`` to ``most``."""
    outside = 0
    for p in range(values.shape[0]):
        outside += not least <= abs(values[p]) <= most
    return outside == 0


def _narrow(data: np.ndarray) -> np.ndarray:
    """``data`` as float32, by rows; the same array if it is that already."""
    with np.errstate(over="ignore", under="ignore"):
        values = data.astype(np.float32, order="C", copy=False)
    if values is data:
        return values
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
    return values


def examples_of(
    X: Any, label: np.ndarray, classes: np.ndarray, weight: np.ndarray | None = None, *, double: bool = False
) -> Labelled:
    """The rows of ``X`` (see ``rows_of``) with ``label`` (int64 [n], index of a class).

    weight: float64 [n], 1 by default; double: see ``rows_of``.
    """
    n, D = X.shape
    rows = rows_of(X, double=double)
    return Labelled(
        **rows._asdict(), label=label, classes=tuple(map(str, classes)), group=np.zeros(0, np.int64),
        weight=np.ones(n) if weight is None else weight, width=D, double=rows.values.dtype == np.float64,
    )  # fmt: skip


def offsets_of(group: Any, qid: Any, n: int) -> np.ndarray:
    """int64 [L + 1]: list i holds the rows offsets[i]..offsets[i + 1] - 1, by sizes or ids of lists."""
    if (group is None) == (qid is None):
        raise ValueError(
            f"found {'neither group nor qid' if group is None else 'both group and qid'}; expected one of them: "
            "group, the sizes of the lists, or qid, for every row of X the id of its list"
        )
    return _by_sizes(group, n) if qid is None else _by_ids(qid, n)


def _by_sizes(group: Any, n: int) -> np.ndarray:
    sizes = np.asarray(group)
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or not (sizes > 0).all():
        shown = f"{sizes.dtype} of shape {sizes.shape}"
        if sizes.ndim == 1 and sizes.dtype.kind in "iu":
            shown = f"the size {sizes[sizes <= 0][0]} of list {int(np.flatnonzero(sizes <= 0)[0])}"
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


def lists_of(X: Any, gain: Any, group: Any = None, qid: Any = None, base: Any = None) -> Corpus:
    """The rows of ``X`` (dense or CSR [n, D]) as lists; it is not changed, and shares what it can.

    gain, base: [n]; higher is better, and without base scores all are 0. The statistics are those of the metric
    ``gain``: the gains themselves, and 1 for every list.
    """
    n = X.shape[0]
    offsets = offsets_of(group, qid, n)
    gains = numbers("gain", gain, n)
    if (large := np.abs(gains) > LARGEST_GAIN).any():
        row = int(np.flatnonzero(large)[0])
        raise ValueError(
            f"gain holds {gains[row]} in row {row}; expected numbers from {-LARGEST_GAIN:g} to {LARGEST_GAIN:g}"
        )
    L = offsets.size - 1
    return Corpus(
        **rows_of(X)._asdict(), lists=offsets, base=np.zeros(n) if base is None else numbers("base", base, n),
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
