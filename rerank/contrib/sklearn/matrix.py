"""The rows of a matrix as labelled examples and as lists of candidates, and the numbers that go with them."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse

from rerank.data.corpus import FLOAT32_MAX, Corpus
from rerank.data.labelled import Labelled
from rerank.features.sink import MIN_SPREAD
from rerank.kernels.compile import kernel
from rerank.metrics.gain import LARGEST_GAIN

MIN_FLOAT32 = float(np.finfo(np.float32).smallest_subnormal)
MAX_COLUMNS = int(np.iinfo(np.int32).max)
MATRIX: dict[str, Any] = {"accept_sparse": "csr", "dtype": [np.float64, np.float32]}  # for ``validate_data``


def numbers(name: str, values: Any, n: int) -> np.ndarray:
    """``values`` as float64 [n], one finite number for every row of X."""
    try:
        array = np.asarray(values, np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} does not hold numbers ({error}); expected a number for every row of X") from None
    if array.shape != (n,):
        raise ValueError(f"{name} has shape {array.shape}; expected ({n},), a number for every row of X")
    if not np.isfinite(array).all():
        row = int(np.argmin(np.isfinite(array)))
        raise ValueError(f"{name} holds {array[row]} in row {row}; expected finite numbers, no NaN or infinity")
    return array


def weights_of(y: np.ndarray, classes: np.ndarray, sample_weight: Any, class_weight: Any) -> np.ndarray:
    """float64 [n]: how much the rows count, whose classes ``y`` are among ``classes``: their weights times those of
    their classes.

    sample_weight: None for 1; class_weight: None; {class: weight}, 1 for classes that are not in it; or "balanced": all
    classes weigh the same in sum, and an average row 1.
    """
    if not np.isin(y, classes).all():
        raise ValueError(f"y holds classes {np.setdiff1d(y, classes).tolist()} that are not among {classes.tolist()}")
    weights = np.ones(y.size) if sample_weight is None else numbers("sample_weight", sample_weight, y.size)
    if (weights < 0).any() or not weights.any():
        fault = "a negative weight" if weights.any() else "no weight but zero"
        raise ValueError(f"sample_weight holds {fault}; numbers from 0, one of them above, are expected")
    if class_weight is None:
        return weights
    label, names = np.searchsorted(classes, y), classes.tolist()
    if isinstance(class_weight, Mapping):
        if unknown := [name for name in class_weight if name not in names]:
            raise ValueError(f"class_weight names the class {unknown[0]!r}; expected classes among {classes.tolist()}")
        try:
            factor = np.array([float(class_weight.get(name, 1.0)) for name in names])
        except (TypeError, ValueError):
            factor = np.array([np.nan])
        if not ((factor >= 0) & (factor < np.inf)).all():
            raise ValueError(f"class_weight={dict(class_weight)!r}; finite weights from 0 are expected")
    elif isinstance(class_weight, str) and class_weight == "balanced":
        total = np.bincount(label, weights, minlength=classes.size)
        mean = total.sum() / np.count_nonzero(total)
        factor = np.divide(mean, total, out=np.zeros(total.size), where=total > 0)
    else:
        raise ValueError(f"class_weight={class_weight!r}; expected a dict of class and weight, 'balanced' or None")
    return np.asarray(weights * factor[label])


def rows_of(X: Any, lists: np.ndarray | None = None) -> dict[str, Any]:
    """The nonzeros of ``X`` (dense or CSR [n, D], finite; it is not changed), by row and column.

    They are ``rows`` (int64 [n + 1]), ``columns`` (int32 [nnz]) and ``values`` (float32 [nnz]), and may share memory
    with ``X``. lists: int64 [L + 1], those whose values may be relative to their means, see ``sink.narrow``.
    """
    n, D = X.shape
    if D >= MAX_COLUMNS:
        raise ValueError(f"X has {D} columns; fewer than {MAX_COLUMNS} are expected")
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
    least, greatest = int(matrix.indices.min(initial=0)), int(matrix.indices.max(initial=-1))
    if least < 0 or greatest >= matrix.shape[1]:  # as int32, one that is too large could be another's
        advice = f"expected 0..{matrix.shape[1] - 1}"
        raise ValueError(f"X is a damaged CSR matrix: columns from {least} to {greatest}; {advice}")
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
        tiny = data[(values == 0) & (data != 0)]
        raise ValueError(
            f"X holds {tiny[0]:.3g}, below the smallest 32-bit float, {MIN_FLOAT32:.3g}, the type of feature values; "
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
    """Do for nonzeros by row (``exact``, and ``values``, the same in float32) what ``sink.narrow`` does for
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
            near = of[j, HIGH] - of[j, LOW] < MIN_SPREAD * max(of[j, HIGH], -of[j, LOW])
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
        fault = f"{sizes.dtype} of shape {sizes.shape}"
        if whole:
            i = int(np.argmin(sizes > 0))
            fault = f"the size {sizes[i]} of list {i}"
        raise ValueError(f"group holds {fault}; expected the sizes of the lists, whole numbers from 1")
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
