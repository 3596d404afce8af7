"""Rows of a matrix as labelled examples."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from rerank.data.labelled import Labelled

LARGEST = float(np.finfo(np.float32).max)
SMALLEST = float(np.finfo(np.float32).smallest_subnormal)
MOST = int(np.iinfo(np.int32).max)


def examples_of(
    X: Any, label: np.ndarray, classes: np.ndarray, weight: np.ndarray | None = None, *, bias: bool
) -> Labelled:
    """The rows of ``X`` (dense or CSR [n, D]; it is not changed) with ``label`` (int64 [n], index of a class).

    bias: append a column of ones at D, the intercept; weight: float64 [n], 1 by default.

    Raises
    ------
    ValueError: a value is too large or too small for float32, or there are too many columns for int32.
    """
    if X.shape[1] >= MOST:
        raise ValueError(f"X has {X.shape[1]} columns; fewer than {MOST} are expected")
    matrix = sparse.csr_array(X)  # shares the arrays of sparse input, not the flags
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    if matrix.nnz and max(-matrix.data.min(), matrix.data.max()) > LARGEST:
        raise ValueError(
            f"X holds values beyond the largest 32-bit float, {LARGEST:.3g}, the type of feature values; scale X"
        )
    values = matrix.data.astype(np.float32)
    if not values.all():  # stored zeros
        lost = matrix.data[(values == 0) & (matrix.data != 0)]
        if lost.size:
            raise ValueError(
                f"X holds {lost[0]:.3g}, below the smallest 32-bit float, {SMALLEST:.3g}, the type of feature values; "
                "scale X, or set such values to 0"
            )
        matrix = sparse.csr_array((values, matrix.indices, matrix.indptr), shape=matrix.shape, copy=True)
        matrix.eliminate_zeros()
        values = matrix.data
    n, D = matrix.shape
    examples = Labelled(
        rows=matrix.indptr.astype(np.int64),
        columns=matrix.indices.astype(np.int32),
        values=values,
        label=label,
        classes=tuple(str(c) for c in classes),
        group=np.zeros(0, np.int64),
        weight=np.ones(n) if weight is None else weight,
        width=D,
    )
    return examples.with_bias() if bias else examples
