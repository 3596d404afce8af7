"""Kernels that copy, widen, repeat and scale rows of sparse examples."""

from typing import Any

import numpy as np

from rerank.kernels.compile import kernel, prefetch

AHEAD, MOST_AHEAD = 8, 512  # rows, and numbers of a row, that are fetched ahead
ONE = np.uint64(1)


@kernel
def spread_rows(
    rows: np.ndarray, chosen: np.ndarray, source: np.ndarray, k: int, shift: Any, last: Any, wider: bool,
    out: np.ndarray,
) -> None:  # fmt: skip
    """The rows ``chosen`` of ``source`` [nnz], each k times, with c·shift added to the c-th copy, into ``out``.

    wider: every copy ends with one more number, ``last`` + c·shift. Rows that come soon are fetched, for they may be
    anywhere.
    """
    q = np.uint64(0)
    for r in range(chosen.shape[0]):
        if r + AHEAD < chosen.shape[0]:
            soon = chosen[r + AHEAD]
            for p in range(rows[soon], min(rows[soon + 1], rows[soon] + MOST_AHEAD), 8):
                prefetch(source, p)
        i = chosen[r]
        for c in range(k):
            moved = c * shift
            for p in range(np.uint64(rows[i]), np.uint64(rows[i + 1])):
                out[q] = source[p] + moved
                q += ONE
            if wider:
                out[q] = last + moved
                q += ONE


@kernel
def unit_rows(rows: np.ndarray, values: np.ndarray, out: np.ndarray) -> None:
    """Every row divided by its Euclidean norm, computed in double precision."""
    for i in range(rows.shape[0] - 1):
        square = 0.0
        for p in range(rows[i], rows[i + 1]):
            square += np.float64(values[p]) * np.float64(values[p])
        scale = 1.0 / np.sqrt(square) if square > 0.0 else 1.0
        for p in range(rows[i], rows[i + 1]):
            out[p] = np.float64(values[p]) * scale
