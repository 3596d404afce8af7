"""Kernels that copy, widen, scale and repeat rows of sparse examples."""

from __future__ import annotations

from typing import Any

import numpy as np

from rerank.kernels.compile import kernel


@kernel
def gather_rows(
    rows: np.ndarray, chosen: np.ndarray, source: np.ndarray, new_rows: np.ndarray, out: np.ndarray
) -> None:
    """Copy the entries of the rows ``chosen`` of ``source`` [nnz], one after the other, into ``out`` [new_rows[-1]]."""
    for i in range(chosen.shape[0]):
        first = rows[chosen[i]]
        for p in range(new_rows[i], new_rows[i + 1]):
            out[p] = source[first + p - new_rows[i]]


@kernel
def widen_rows(rows: np.ndarray, source: np.ndarray, last: Any, out: np.ndarray) -> None:
    """``source`` [nnz] with ``last`` appended to every row: ``out`` [nnz + n]."""
    for i in range(rows.shape[0] - 1):
        for p in range(rows[i], rows[i + 1]):
            out[p + i] = source[p]
        out[rows[i + 1] + i] = last


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


@kernel
def largest_values(columns: np.ndarray, values: np.ndarray, largest: np.ndarray) -> None:
    """Raise ``largest`` (float32 [D]) to the largest absolute value of every column."""
    for p in range(columns.shape[0]):
        size = abs(values[p])
        if size > largest[columns[p]]:
            largest[columns[p]] = size


@kernel
def divide_columns(columns: np.ndarray, values: np.ndarray, divisor: np.ndarray, out: np.ndarray) -> None:
    """Every value divided by its column's ``divisor`` (float32 [D]), unless that is 0."""
    for p in range(columns.shape[0]):
        scale = divisor[columns[p]]
        out[p] = values[p] / scale if scale > 0 else values[p]


@kernel
def spread_columns(rows: np.ndarray, columns: np.ndarray, k: int, width: int, out: np.ndarray) -> None:
    """Every row k times, the c-th copy shifted by c·width: ``out`` [k·nnz]."""
    q = 0
    for i in range(rows.shape[0] - 1):
        for c in range(k):
            for p in range(rows[i], rows[i + 1]):
                out[q] = columns[p] + c * width
                q += 1


@kernel
def spread_values(rows: np.ndarray, values: np.ndarray, k: int, out: np.ndarray) -> None:
    """Every row k times: ``out`` [k·nnz]."""
    q = 0
    for i in range(rows.shape[0] - 1):
        for _ in range(k):
            for p in range(rows[i], rows[i + 1]):
                out[q] = values[p]
                q += 1
