"""Votes: the predictors of a training run as a sequence of sparse changes, which is what exact voting replays.

Under predictor k a candidate scores β_k·b(y) + d_k·w_k·φ(y), and column j weighs

    w_kj = a_j − τ_k·v_j  while  |a_j| > τ_k·|v_j|,  else 0,

with a_j and v_j as the last update that touched the column left them. Rules without a growing threshold have τ = 0 and
a_j is the weight itself; where none is stored, v_j is the sign of a_j.
"""

from typing import NamedTuple

import numpy as np


class Votes(NamedTuple):
    """M updates, M + 1 predictors; predictor k was made by update k − 1."""

    first: np.ndarray  # int64 [M + 1]: entries of update k are first[k]..first[k + 1]
    columns: np.ndarray  # int32 [entries]
    value: np.ndarray  # float64 [entries]: a_j from then on
    slope: np.ndarray  # float64 [entries]: v_j from then on; [0] for the sign of a_j
    threshold: np.ndarray  # float64 [M + 1]: τ_k, never falling; [0] for 0
    scale: np.ndarray  # float64 [M + 1]: d_k ≥ 0
    beta: np.ndarray  # float64 [M + 1]: β_k
    survived: np.ndarray  # int64 [M + 1]: c_k

    def arrays(self) -> dict[str, np.ndarray]:
        """The fields by name."""
        return self._asdict()

    def check(self, width: int) -> None:
        """Raise a ValueError unless these are votes over ``width`` columns that kernels can rely on."""
        predictors, entries = self.survived.size, self.columns.size
        whole, few = {"first": np.int64, "columns": np.int32, "survived": np.int64}, {"value", "slope", "columns"}
        for name, array in self.arrays().items():
            dtype, size = whole.get(name, np.float64), entries if name in few else predictors
            absent = name in {"slope", "threshold"} and array.shape == (0,)
            if array.dtype != dtype or (array.shape != (size,) and not absent):
                form = f"{array.dtype} {list(array.shape)}"
                raise ValueError(f"votes: {name} is {form}; expected {np.dtype(dtype)} [{size}]")
            if not np.all(np.isfinite(array)):
                raise ValueError(f"votes: {name} holds numbers that are not finite")
        numbers = [self.columns, width - 1 - self.columns, self.threshold, self.scale, self.survived]
        rising = [np.diff(self.first), np.diff(self.threshold)]
        ends = predictors > 0 and self.first[0] == 0 and self.first[-1] == entries
        if not ends or any(np.any(array < 0) for array in numbers + rising):
            raise ValueError("votes: an array is out of order or out of range")
