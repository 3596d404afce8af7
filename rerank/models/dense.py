"""Scores by columns of numbers without compiled code, which takes longer to load than a list to rank.

A column of many numbers is an array (float64 [N]). Of few it is a tuple: numpy takes longer to begin than these to be
added up.
"""

from array import array
from collections.abc import Iterable, Sequence
from itertools import accumulate
from math import exp, fsum
from typing import Any

import numpy as np

from rerank.features.sink import NEAR

TINY = 1e-37  # below this float32 is coarse


def dense_scores(
    factor: float, base: Any, features: Sequence[tuple[float | None, Any]], *, relative: bool
) -> tuple[Any, int]:
    """The scores of a list, ``factor`` times their base scores and the weighted ``features``, to the bit those of
    ``flat_features``; and how many features vary whose weight is None, as the model does not know them. relative: see
    ``narrow``."""
    few, unknown = isinstance(base, tuple), 0
    scores = [factor * score for score in base] if few else factor * base
    every = [exact for _, exact in features]
    for (weight, exact), (low, high, values) in zip(features, _rounded(every, few=few), strict=True):
        if high - low <= max(TINY, NEAR * max(high, -low)):
            values = _narrowed(exact, relative=relative)
            if min(values) == max(values):
                continue
        unknown, weight = unknown + (weight is None), float(weight or 0.0)
        if few:
            scores = [score + weight * (value + 0.0) for score, value in zip(scores, values, strict=True)]
        else:
            scores += weight * np.asarray(values, np.float64)
    return scores, unknown


def _rounded(every: Sequence[Any], *, few: bool) -> Iterable[tuple[float, float, Any]]:
    """The least and the greatest number of each column, and all of them rounded to float32."""
    if few or not every:
        return [(min(exact), max(exact), array("f", exact)) for exact in every]
    numbers = np.array(every)
    rounded = numbers.astype(np.float32) + np.float64(0.0)  # no -0.0, as in ``narrow``
    return zip(numbers.min(axis=1).tolist(), numbers.max(axis=1).tolist(), rounded, strict=True)


def _narrowed(exact: Sequence[float], *, relative: bool) -> "array[float]":
    """Numbers that float32 may not tell apart: see ``narrow``."""
    low, high, values = min(exact), max(exact), array("f", exact)
    if not relative or high - low >= NEAR * max(high, -low) or list(values) == list(exact):
        return values
    apart = [value - exact[0] for value in exact]
    *_, total = accumulate(apart)
    return array("f", [value - total / len(apart) for value in apart])


def softmax(scores: Sequence[float]) -> list[float]:
    """Probabilities in proportion to e^score."""
    highest = max(scores, default=0.0)
    raised = [exp(score - highest) for score in scores]
    total = fsum(raised)
    return [each / total for each in raised]
