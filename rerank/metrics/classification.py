"""The share of examples whose label is predicted wrongly, for lists whose candidates are classes."""

from dataclasses import dataclass

import numpy as np

from rerank.metrics.base import Metric, metrics


@metrics.add("error")
@dataclass(frozen=True)
class Classification(Metric):
    """Error = wrong / examples; 0 without examples.

    ``stats``: 1 if the candidate's class is not the example's. ``reference``: 1, the example. The gain of a
    candidate is 1 if it is right and 0 if not.
    """

    name = "error"
    primary = "error"
    columns = ("wrong",)
    reference_columns = ("examples",)
    lower_is_better = True

    def scores(self, stats: np.ndarray, reference: np.ndarray) -> np.ndarray:
        """Error of summed statistics: float64 [..., 1] and [..., 1] → [...]."""
        return np.asarray(stats[..., 0] / np.maximum(reference[..., 0], 1.0))

    def gain(self, stats: np.ndarray, reference: np.ndarray) -> np.ndarray:
        """1 - error, the accuracy: float64 [..., 1] and [..., 1] → [...]."""
        return np.asarray(1.0 - self.scores(stats, reference))

    def report(self, stats: np.ndarray, reference: np.ndarray) -> dict[str, float]:
        """Error and accuracy as fractions."""
        error = float(self.scores(stats, reference))
        return {"error": error, "accuracy": 1.0 - error}

    @property
    def signature(self) -> str:
        """Name and version; there is nothing to set."""
        return "error|v:1"
