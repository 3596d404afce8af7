"""Which lists or examples a share of them is: drawn, so that it is like the whole even where a file is sorted."""

from collections.abc import Sequence

import numpy as np

from rerank.base.errors import DataError

_DRAW, _DRAW_APART = 2, 3  # beside the seed: no order of training is drawn from both


def share_of(size: int, share: float, seed: int) -> np.ndarray:
    """int64, ascending: the places of ``share`` of ``size`` lists or examples, at least one.

    What a smaller share takes with the same seed, a larger one takes too.
    """
    order = np.random.default_rng([seed, size, _DRAW]).permutation(size)
    return np.sort(order[: max(1, round(share * size))])


def apart(documents: Sequence[str], share: float, seed: int) -> np.ndarray:
    """bool [L]: which lists are set apart, ``share`` of them as nearly as whole documents allow.

    documents: the name of every list's document. At least one document is set apart, and one is not.
    """
    names, own, sizes = np.unique(np.array(documents, dtype=np.str_), return_inverse=True, return_counts=True)
    if names.size < 2:
        raise DataError(f"found {names.size} document; setting some apart takes at least 2")
    order = np.random.default_rng([seed, names.size, _DRAW_APART]).permutation(names.size)
    taken = np.cumsum(sizes[order])[:-1]
    count = 1 + int(np.argmin(np.abs(taken - share * own.size)))
    return np.isin(own, order[:count])
