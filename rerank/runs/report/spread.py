"""The spread of a number over seeds or folds."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np


class Spread(NamedTuple):
    """Mean, sample standard deviation (n − 1) and standard error of so many values; a single one has no deviation."""

    mean: float
    deviation: float | None
    error: float | None
    values: int

    @staticmethod
    def of(values: Sequence[float]) -> "Spread":
        """The spread of ``values``, at least one."""
        mean = float(np.mean(values))
        if len(values) < 2:
            return Spread(mean, None, None, len(values))
        deviation = float(np.std(values, ddof=1))
        return Spread(mean, deviation, deviation / float(np.sqrt(len(values))), len(values))

    @staticmethod
    def known(values: Iterable[float | None]) -> "Spread | None":
        """The spread of the values that exist; None if there are none."""
        found = [value for value in values if value is not None]
        return Spread.of(found) if found else None
