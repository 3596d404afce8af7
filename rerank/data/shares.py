"""Which lists or examples a share of them is: drawn, so that it is like the whole even where a file is sorted."""

from __future__ import annotations

import numpy as np

_DRAW = 2  # beside the seed: no order of training is drawn from both


def share_of(size: int, share: float, seed: int) -> np.ndarray:
    """int64, ascending: the places of ``share`` of ``size`` lists or examples, at least one.

    What a smaller share takes with the same seed, a larger one takes too.
    """
    order = np.random.default_rng([seed, size, _DRAW]).permutation(size)
    return np.sort(order[: max(1, round(share * size))])
