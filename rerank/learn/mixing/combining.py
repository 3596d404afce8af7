"""One state from those of learners that were trained separately, on sections of the lists.

What sections have learned is combined in one of three ways (``states`` has the formulas, family by family):

* subgradients of dual averaging, and other sums that the weights follow from, add up;
* Gaussians are weighted by how sure they are of every weight (Crammer, Dredze & Pereira 2012, section 7.10);
* weights are averaged, by numbers of updates (McDonald, Hall & Mann 2010) or uniformly.

The average predictor of the result is that over all predictors of all sections, each weighted by the lists that it
survived. With ``keep``, only the columns with the largest L2 norm of their weights across sections are left
(Simianer, Riezler & Dyer 2012, section 4).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rerank.base.errors import RecipeError
from rerank.base.registry import nearest
from rerank.learn.base import Learner, State


@dataclass(frozen=True)
class TrainedApart:
    """States that were trained separately, from the same start.

    start: where they began; fresh: had nothing been learned there yet? ends: what became of it, read one after the
    other; shares: float64 [sections], sum 1, the weight of every end in means; free: the number of free columns.
    """

    start: State
    fresh: bool
    ends: Sequence[State]
    shares: np.ndarray
    free: int

    def summed(self, of: Callable[[State], Any]) -> Any:
        """What ``of`` reads from the start, plus all that the sections have added to it."""
        first = np.array(of(self.start))
        total = first.copy()
        for end in self.ends:
            total += of(end) - first
        return total

    def mean(self, of: Callable[[State], Any]) -> Any:
        """The mean of what ``of`` reads from the ends, by their shares."""
        total = np.zeros_like(np.asarray(of(self.start), np.float64))
        for share, end in zip(self.shares, self.ends, strict=True):
            total += share * of(end)
        return total


@dataclass(frozen=True)
class Family:
    """How learners of a class are combined: the available rules, the usual one first, and what makes the state.

    ``merge`` gets the learner, the states and the rule. states: it accepts those with the fields of one of these
    classes; any, if none are given (a learner with a state of its own brings a family of its own). keeps: can columns
    be left out of the result? local: does a column that no section has touched stay what it was, whatever happened to
    others?
    """

    rules: tuple[str, ...]
    merge: Callable[[Any, TrainedApart, str], State]
    states: tuple[Any, ...] = ()
    keeps: bool = True
    local: bool = True


# Fields of states whose first axis is that of columns, with or without a coordinate of the base score after the last of
# them.
BY_COLUMN = {"s", "total", "w", "u", "a", "exempt", "cells", "g", "scale", "mu", "sigma"}
FAMILIES: dict[type[Any], Family | None] = {}  # None: states of such learners cannot be combined


def family_of(learner: Learner, rule: str = "auto", keep: int | None = None) -> tuple[Family, str]:
    """How ``learner`` is combined, and the rule that ``auto`` means.

    Raises
    ------
    RecipeError: it cannot be, or not by ``rule``, or not with ``keep``.
    """
    found = next((FAMILIES[each] for each in type(learner).__mro__ if each in FAMILIES), None)
    if found is None:
        message = f"states of {learner.name} that were trained apart cannot be combined; leave out mixing"
        raise RecipeError(message, key="training.mixing")
    fields = set(learner.init(1)._fields)
    if found.states and all(fields != set(kind._fields) for kind in found.states):
        known = set(found.states[0]._fields)
        wrong = [*sorted(fields - known), *(f"no {name}" for name in sorted(known - fields))]
        message = (
            f"the state of {learner.name} has {', '.join(wrong)}: no rule of mixing knows what becomes of that; "
            f"leave out mixing, or give {type(learner).__name__} a Family of its own in "
            "rerank.learn.mixing.combining.FAMILIES"
        )
        raise RecipeError(message, key="training.mixing")
    if rule != "auto" and rule not in found.rules:
        message = f"{learner.name} has no rule {rule!r}; {nearest(rule, ('auto', *found.rules))}"
        raise RecipeError(message, key="training.mixing.rule")
    if keep is not None and not found.keeps:
        raise RecipeError(f"{learner.name} cannot leave columns out; leave out keep", key="training.mixing.keep")
    return found, found.rules[0] if rule == "auto" else rule


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
    keep: keep only so many columns in addition to the free ones; the others are as before the first list.

    Raises
    ------
    RecipeError: such learners cannot be combined, or not by this rule.
    """
    family, rule = family_of(learner, rule, keep)
    columns = learner.last(ends[0]).w.size
    fresh = learner.init(columns)
    begun = fresh if start is None else start
    state = ends[0]
    if len(ends) > 1:
        made = np.array([learner.updates(end) - learner.updates(begun) for end in ends], np.float64)
        uniform = rule != "updates" or made.sum() == 0
        shares = np.full(len(ends), 1.0 / len(ends)) if uniform else made / made.sum()
        state = family.merge(learner, TrainedApart(begun, start is None, ends, shares, free), rule)
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
    for name in set(state._fields) & BY_COLUMN:
        new, before = np.array(getattr(state, name)), getattr(fresh, name)
        if new.size:
            new[lost] = before[lost]
        if name == "sigma":
            new[:, lost] = before[:, lost]
        arrays[name] = new
    return state._replace(**arrays)
