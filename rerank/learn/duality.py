"""The distance of dual ascent from its optimum: the duality gap of the large-margin learners, on lists of two.

The primal is Ψ(w) + C Σ ωᵢ max(0, 1 − mᵢ), Ψ being ‖w‖²/2 or the entropy of the weights, the dual Σ αᵢ − Ψ*(θ) with
θ = Σ αᵢzᵢ (Zhang, section 2). As w = ∇Ψ*(θ), Ψ(w) + Ψ*(θ) = θ·w = Σ αᵢ zᵢ·w, so that their difference is a sum over the
lists, none of whose terms is negative:

    gap = Σ C ωᵢ max(0, 1 − mᵢ) − αᵢ (1 − mᵢ).

A base score with a fixed weight is part of mᵢ. Pairs without a difference, which nothing can be learned from, have no
part in it. In longer lists every candidate has a variable, and there is no such sum.
"""

import numpy as np

from rerank.base.errors import RecipeError, RunError
from rerank.data.shards import Corpora, own, parts
from rerank.kernels.compile import kernel
from rerank.learn.base import State, Weights
from rerank.learn.scoring import scores


def require_limit(C: float | None, tolerance: float | None) -> None:
    """Refuse a ``tolerance`` without a limit: the primal is infinite before all margins are 1."""
    if C is None and tolerance is not None:
        raise RecipeError(f"found {tolerance!r} with C: null; the gap is one of a limit C", key="tolerance")


@kernel
def find_different(
    rows: np.ndarray, columns: np.ndarray, values: np.ndarray, one: np.ndarray, other: np.ndarray, found: np.ndarray
) -> None:
    """Set ``found`` (bool [n]) where the features of the candidates ``one`` and ``other`` (int64 [n]) differ."""
    for k in range(one.shape[0]):
        p, q, count = rows[one[k]], rows[other[k]], rows[one[k] + 1] - rows[one[k]]
        found[k] = count != rows[other[k] + 1] - q
        for e in range(0 if found[k] else count):
            if columns[p + e] != columns[q + e] or values[p + e] != values[q + e]:
                found[k] = True
                break


def require_pairs(name: str, lists: Corpora) -> None:
    """Refuse ``lists`` for the gap of the learner ``name`` if one has more than two candidates."""
    for _, part in parts(lists):
        if (longest := int(np.diff(part.lists).max(initial=0))) > 2:
            message = f"{name}: the duality gap is one of lists of two; found a list of {longest:,} candidates"
            raise RunError(f"{message}: leave out tolerance")


def duality_gap(
    lists: Corpora, oracle: np.ndarray, limit: float, state: State, last: Weights, *, learned_base: bool, any_ties: bool
) -> float:
    """The gap per list of two, from 0; oracle: int64 [L]; limit: C; last: the predictor of the ``state``; learned_base:
    whether the base score has a weight that is learned."""
    gap, count = 0.0, 0
    for place, part in parts(lists):
        pairs = np.flatnonzero(np.diff(part.lists) == 2)
        first, right = part.lists[pairs], own(oracle, place, part)[pairs]
        rival = 2 * first + 1 - right
        differ = np.zeros(pairs.size, np.bool_)
        find_different(part.rows, part.columns, part.values, right, rival, differ)
        if learned_base:
            differ |= part.base[right] != part.base[rival]
        if any_ties:
            differ &= part.gain[right] != part.gain[rival]
        pairs, right, rival = pairs[differ], right[differ], rival[differ]
        score = scores(part, last)
        missing = 1.0 - (score[right] - score[rival])
        alpha = state.alpha[place.candidates + rival]
        gap += float((limit * part.weight[pairs] * np.maximum(missing, 0.0) - alpha * missing).sum())
        count += pairs.size
    return max(gap, 0.0) / max(count, 1)
