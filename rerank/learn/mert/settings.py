"""How minimum error rate training searches."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from rerank.base.errors import RecipeError
from rerank.base.ranges import Checked, Range
from rerank.learn.settings import NotNegative


@dataclass(frozen=True)
class MertSettings(Checked):
    """How MERT searches.

    Parameters
    ----------
    coordinate: search along every single feature.
    random: how many random directions to search along as well.
    patience: where no direction holds anything better, draw random directions again, so many times in a row.
    restarts: how many searches from random points to make, besides the one from the start.
    iterations: steps of a search at most.
    tolerance: a step must raise the score by more than this.
    window, smoothing: an interval is judged by its own score and those of so many intervals on each side, by their
        mean or their min (Cer, Jurafsky & Manning 2008); 0: by its own alone.
    interval: a random start is the start with noise between these two on every weight, where 1 is the mean weight
        and all features have unit variance within lists; one pair, or one per feature.
    seed: of directions and random starts.
    workers: threads over searches, or, without restarts, over directions; results do not depend on their number.
    bootstrap: resampled corpora for the confidence in the improvement; 0: none.
    """

    coordinate: bool = True
    random: Annotated[int, Range(0, 10_000)] = 20
    patience: Annotated[int, Range(0, 10_000)] = 1
    restarts: Annotated[int, Range(0, 10_000)] = 5
    iterations: Annotated[int, Range(1, 100_000)] = 100
    tolerance: NotNegative = 1e-4
    window: Annotated[int, Range(0, 100_000)] = 0
    smoothing: Literal["mean", "min"] = "mean"
    interval: Sequence[float] | Sequence[Sequence[float]] = (-0.25, 0.25)
    seed: Annotated[int, Range(0)] = 1
    workers: Annotated[int, Range(1, 1024)] = 1
    bootstrap: Annotated[int, Range(0, 1_000_000)] = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.coordinate and not self.random:
            raise RecipeError("found 0 and no coordinates; expected a direction to search in", key="random")

    def ranges(self, width: int) -> np.ndarray:
        """float64 [F, 2]: ``interval`` for every one of F = ``width`` features.

        Raises
        ------
        RecipeError: ``interval`` is neither one pair nor one per feature, or has an end before its beginning.
        """
        try:
            ranges = np.array(self.interval, np.float64)
        except (TypeError, ValueError):
            ranges = np.empty(0)
        known = ranges.shape in ((2,), (width, 2))
        if not known or not np.isfinite(ranges).all() or (ranges[..., 0] > ranges[..., 1]).any():
            raise RecipeError(
                f"found {self.interval!r}; expected [lowest, highest], or such a pair for each of {width} features",
                key="interval",
            )
        return np.broadcast_to(ranges, (width, 2))
