"""One state from those of learners that were trained separately, on sections of the lists.

What sections have learned is combined in one of three ways (``formulas`` has what each family remembers):

* subgradients of dual averaging, and other sums that the weights follow from, add up;
* Gaussians are weighted by how sure they are of every weight (Crammer, Dredze & Pereira 2012, section 7.10);
* weights are averaged, by numbers of updates (McDonald, Hall & Mann 2010) or uniformly.

The average predictor of the result is that over all predictors of all sections, each weighted by the lists that it
survived. With ``keep``, only the columns with the largest L2 norm of their weights across sections are left
(Simianer, Riezler & Dyer 2012, section 4).
"""

from collections.abc import Sequence
from typing import cast

import numpy as np

from rerank.base.errors import RecipeError
from rerank.base.registry import nearest
from rerank.kernels.by_type import ByType
from rerank.learn.base import Learner
from rerank.learn.mixing import formulas as formulas  # which gives families their bodies of ``combined``
from rerank.learn.predictor import BY_COLUMN, State
from rerank.learn.shard_states import ShardStates, combined


def rule_of(learner: Learner, rule: str = "auto", keep: int | None = None) -> str:
    """The rule by which states of ``learner`` are combined, which ``auto`` leaves to the learner."""
    name, kind = learner.name, type(learner)
    if not learner.mixes:
        message = f"{name} does not support mixing; remove training.mixing"
        raise RecipeError(message, key="training.mixing")
    if not issubclass(formula_owner(kind), owner(kind, "init")):
        message = (
            f"{name} keeps a state of its own (init), which no mixing rule can combine; "
            f"remove training.mixing, or give {kind.__name__} a method combined (see Learner.combined)"
        )
        raise RecipeError(message, key="training.mixing")
    if rule not in ("auto", *learner.mixes):
        message = f"{name} has no rule {rule!r}; {nearest(rule, ('auto', *learner.mixes))}"
        raise RecipeError(message, key="training.mixing.rule")
    if keep is not None and not learner.keeps:
        raise RecipeError(f"{name} cannot leave columns out; leave out keep", key="training.mixing.keep")
    return learner.mixes[0] if rule == "auto" else rule


def owner(kind: type, method: str) -> type:
    """The class from which ``kind`` has a method."""
    return next(base for base in kind.__mro__ if method in vars(base))


def formula_owner(kind: type) -> type:
    """The class that says how states of ``kind`` are combined, in a method or in ``formulas``."""
    bodies = cast(ByType, combined).bodies
    return next(base for base in kind.__mro__ if base in bodies or "combined" in vars(base))


def combine(
    learner: Learner,
    ends: Sequence[State],
    *,
    start: State | None = None,
    rule: str = "auto",
    free: int = 0,
    keep: int | None = None,
) -> State:
    """The state that combines all of ``ends``; a single one is returned as it is.

    Parameters
    ----------
    start: the state that all of them continued from; None: a fresh one.
    rule: one of the learner's family; ``mean`` is uniform, ``updates`` is weighted by numbers of updates.
    free: how many columns, the first ones, have no penalty.
    keep: how many columns are kept in addition to the free ones; the others are as before the first list.
    """
    rule = rule_of(learner, rule, keep)
    columns = learner.last(ends[0]).w.size
    fresh = learner.init(columns)
    begun = fresh if start is None else start
    state = ends[0]
    if len(ends) > 1:
        made = np.array([learner.updates(end) - learner.updates(begun) for end in ends], np.float64)
        uniform = rule != "updates" or made.sum() == 0
        shares = np.full(len(ends), 1.0 / len(ends)) if uniform else made / made.sum()
        state = learner.combined(ShardStates(begun, start is None, ends, shares, free), rule)
    return state if keep is None else forget(state, fresh, heaviest(learner, ends, keep, free))


def heaviest(learner: Learner, ends: Sequence[State], keep: int, free: int) -> np.ndarray:
    """bool [D]: the free columns, and the ``keep`` others with the largest Σ w_j² over the sections, the first of
    equals.

    Columns that no section gives a weight are not among them.
    """
    squares = np.zeros(learner.last(ends[0]).w.size)
    for end in ends:
        squares += learner.last(end).w ** 2
    squares[:free] = 0.0
    chosen = np.zeros(squares.size, np.bool_)
    chosen[np.argsort(-squares, kind="stable")[:keep]] = True
    chosen &= squares > 0
    chosen[:free] = True
    return chosen


def forget(state: State, fresh: State, kept: np.ndarray) -> State:
    """``state`` with all columns that are not ``kept`` (bool [D]) as they are in ``fresh``."""
    lost = np.flatnonzero(~kept)
    arrays = {}
    for name in BY_COLUMN:
        new, before = np.array(getattr(state, name)), getattr(fresh, name)
        if new.size:
            new[lost] = before[lost]
        if name == "matrix" and new.size:
            new[:, lost] = before[:, lost]
        arrays[name] = new
    return state._replace(**arrays)
