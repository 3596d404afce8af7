"""Rows over the predictors of a block, in its layout: sums of whole rows, which the compiler vectorises."""

import numpy as np

from rerank.kernels.compile import kernel
from rerank.learn.voting.moves import ROWS


@kernel
def add(out: np.ndarray, x: np.ndarray) -> None:
    """out += x."""
    for t in range(out.shape[0]):
        out[t] += x[t]


@kernel
def add_to(out: np.ndarray, x: np.ndarray, y: np.ndarray) -> None:
    """out = x + y."""
    for t in range(out.shape[0]):
        out[t] = x[t] + y[t]


@kernel
def add_multiples(out: np.ndarray, a: float, x: np.ndarray, b: float, y: np.ndarray) -> None:
    """out += a·x + b·y, in the number type of ``out``."""
    for t in range(out.shape[0]):
        out[t] += a * x[t] + b * y[t]


@kernel
def copy(out: np.ndarray, x: np.ndarray) -> None:
    """out = x."""
    for t in range(out.shape[0]):
        out[t] = x[t]


@kernel
def clear(out: np.ndarray) -> None:
    """out = 0."""
    for t in range(out.shape[0]):
        out[t] = 0


@kernel
def run_up(moved: np.ndarray, lane: np.ndarray, total: np.ndarray) -> None:
    """total[t] ← the sum of ``moved`` up to predictor t, in the block's layout."""
    W = lane.shape[0]
    clear(lane)
    for r in range(ROWS):
        add(lane, moved[r * W : (r + 1) * W])
    run = lane.dtype.type(0)
    for b in range(W):  # what comes before each lane
        x = lane[b]
        lane[b] = run
        run += x
    add_to(total[:W], lane, moved[:W])
    for r in range(1, ROWS):
        add_to(total[r * W : (r + 1) * W], total[(r - 1) * W : r * W], moved[r * W : (r + 1) * W])
