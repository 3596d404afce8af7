"""The share of examples whose label is predicted wrongly, for lists whose candidates are classes."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rerank.metrics.base import Metric


@dataclass(frozen=True)
class Classification(Metric):
    """Error = wrong / examples; 0 without examples.

    >>> Classification().report(np.array([1.0]), np.array([4.0]))
    {'error': 0.25, 'accuracy': 0.75}

    ``stats``: 1 if the candidate's class is not the example's. ``reference``: 1, the example. The gain of a
    candidate is 1 if it is right and 0 if not.
    """

    name: ClassVar[str] = "error"

    primary = "error"
    columns = ("wrong",)
    reference_columns = ("examples",)
    lower_is_better = True

    def scores(self, stats: np.ndarray, reference: np.ndarray) -> np.ndarray:
        return np.asarray(stats[..., 0] / np.maximum(reference[..., 0], 1.0))

    def gain(self, stats: np.ndarray, reference: np.ndarray) -> np.ndarray:
        return np.asarray(1.0 - self.scores(stats, reference))

    def report(self, stats: np.ndarray, reference: np.ndarray) -> dict[str, float]:
        error = float(self.scores(stats, reference))
        return {"error": error, "accuracy": 1.0 - error}

    @property
    def signature(self) -> str:
        return "error|v:1"
