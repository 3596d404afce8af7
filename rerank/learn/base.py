"""What a learner is: frozen parameters, a state of arrays, and an epoch over lists."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from rerank.base.errors import RecipeError
from rerank.base.registry import Registry
from rerank.data.corpus import Corpus
from rerank.learn.log import LogRoom, UpdateLog
from rerank.learn.losses import LOSSES
from rerank.learn.voting.votes import Votes
from rerank.learn.workspace import (
    ORACLES,
    SOURCES,
    EpochStats,
    ListArrays,
    PairRule,
    Scratch,
    log_room,
    parts,
    scratch,
    stats_of,
    view,
)


class Weights(NamedTuple):
    """A predictor: score(y) = base · b(y) + w · φ(y)."""

    w: np.ndarray  # float64 [D]
    base: float


class DualRule(NamedTuple):
    """How predictor k follows from the sum s of k subgradients: w = −sign(s)·max(|s| − k·l1, 0)·d_k.

    d_k = 1 / (k·l2 + eta·√k), or 1 where eta is 0; the base score weighs base − base_rate·d_k·s_b (l2 = 0).
    """

    eta: float
    l1: float
    l2: float
    base: float
    base_rate: float


State = Any  # a NamedTuple of arrays, one type per learner


class Learner(ABC):
    """An update rule with its parameters: a frozen dataclass whose fields are the recipe's schema.

    ``init`` makes a state, and only ``epoch`` changes one, through ``begin``, ``walk`` and ``finish``, which every
    update rule provides. At the end of an epoch nothing lazy is left in a state, so a state that was saved and loaded
    continues exactly like one that stayed in memory.
    """

    name: ClassVar[str]
    sources: ClassVar[tuple[str, ...]] = SOURCES  # the pair sources that it can learn from (see ``pairs``)

    @abstractmethod
    def init(self, columns: int, candidates: int = 0) -> State:
        """The state before the first list, for D = ``columns`` and a corpus of N = ``candidates``.

        Only learners with one variable per candidate use N.

        Raises
        ------
        RecipeError: the learner cannot keep a state for so many columns.
        """

    def adopt(self, state: State, candidates: int) -> State:  # noqa: ARG002
        """``state`` adapted to another corpus, of so many candidates over the same columns."""
        return state

    def share(self, state: State, first: int, last: int) -> State:  # noqa: ARG002
        """What an epoch over the candidates first..last - 1 changes of ``state``: views, so ``state`` itself
        changes."""
        return state

    def light(self, state: State) -> State:
        """A fresh ``state`` without its average, for callers that only want the last predictor: it trains faster.

        Learners whose average costs next to nothing keep it.
        """
        return state

    def begin(self, corpus: Corpus, order: np.ndarray, state: State) -> Any:  # noqa: ARG002
        """What an epoch keeps in addition to the state for its lazy sums; None by default."""
        return None

    @abstractmethod
    def walk(
        self,
        data: ListArrays,
        part: np.ndarray,
        state: State,
        lazy: Any,
        space: Scratch,
        room: LogRoom,
        tally: np.ndarray,
        any_ties: bool,
    ) -> None:
        """Pass over the lists ``part`` (int64): predict and update, log updates to ``room``, count in ``tally``."""

    def finish(self, state: State, lazy: Any) -> None:  # noqa: B027 - most learners leave nothing to do
        """Bring everything lazy up to date."""

    @abstractmethod
    def alive(self, state: State) -> int:
        """How many lists the current predictor has survived."""

    @abstractmethod
    def nonzero_weights(self, state: State) -> int:
        """Weights of the last predictor that are not 0."""

    @property
    def violators(self) -> int:
        """How many updates a list can cause."""
        return int(getattr(self, "top", 1))

    @property
    def loss_id(self) -> int:
        """The number of the loss that it minimises."""
        return LOSSES[getattr(self, "loss", "perceptron")]

    def epoch(
        self,
        corpus: Corpus,
        oracle: np.ndarray,
        order: np.ndarray,
        state: State,
        *,
        any_ties: bool = False,
        log: UpdateLog | None = None,
        points: int = 1,
        pairs: PairRule = ORACLES,
    ) -> list[EpochStats]:
        """Pass over the lists ``order`` (int64) once and update ``state``.

        oracle: int64 [L]; any_ties: every candidate with the oracle's gain counts as correct; log: where updates go;
        points: how many parts the statistics are divided into, with one entry of the result for each; pairs: which
        candidates are compared (``PairSource.rule``), the oracle and its rival by default.
        """
        data, space = view(corpus, oracle, pairs), scratch(corpus, self.loss_id)
        lazy = self.begin(corpus, order, state)
        stats = []
        for part in parts(order, points):
            tally, room = np.zeros(6), log_room(corpus, part, self.loss_id, 0 if log is None else self.violators)
            self.walk(data, part, state, lazy, space, room, tally, any_ties)
            if log is not None:
                log.add_room(room, self.alive(state))
            stats.append(stats_of(tally, self.nonzero_weights(state)))
        self.finish(state, lazy)
        return stats

    @abstractmethod
    def last(self, state: State) -> Weights:
        """The predictor after the last update."""

    @abstractmethod
    def average(self, state: State) -> Weights:
        """All predictors, weighted by the lists that they survived."""

    @abstractmethod
    def votes(self, log: UpdateLog, corpus: Corpus) -> Votes:
        """All predictors from the first, by repeating the updates of ``log`` on the corpus that they were made on."""

    def dual_rule(self) -> DualRule | None:
        """How the predictors follow from summed subgradients; None where they do not."""
        return None

    @abstractmethod
    def updates(self, state: State) -> int:
        """Number of updates so far."""


learners: Registry[type[Learner]] = Registry("learner", Learner)


def require(name: str, value: float, *, low: float, strict: bool = False) -> None:
    """Refuse a parameter that is not a finite number from (or, where ``strict``, above) ``low``.

    Raises
    ------
    RecipeError: names parameter, value and allowed range.
    """
    number = isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
    if not number or value < low or (strict and value == low):
        raise RecipeError(
            f"found {value!r}; expected a finite number {'above' if strict else 'from'} {low:g}", key=name
        )


def require_count(name: str, value: int, *, low: int = 1, high: int = 2**31 - 1) -> None:
    """Refuse a parameter that is not a whole number from ``low`` to ``high``.

    Raises
    ------
    RecipeError: names parameter, value and allowed range.
    """
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        upper = "" if isinstance(value, int) and value <= high else f" to {high:,}"
        raise RecipeError(f"found {value!r}; expected a whole number from {low}{upper}", key=name)


def require_choice(name: str, value: str, choices: Sequence[str]) -> None:
    """Refuse a parameter that is not among ``choices``.

    Raises
    ------
    RecipeError: names parameter, value and choices.
    """
    if value not in choices:
        raise RecipeError(f"found {value!r}; expected one of {', '.join(choices)}", key=name)


def require_switch(name: str, value: bool) -> None:
    """Refuse a parameter that is neither true nor false.

    Raises
    ------
    RecipeError: names parameter and value.
    """
    if not isinstance(value, bool):
        raise RecipeError(f"found {value!r}; expected true or false", key=name)


def require_common(learner: Learner) -> None:
    """Refuse the parameters that learners share, where this one has them: loss, update, base and base_rate.

    Raises
    ------
    RecipeError: names parameter, value and what is allowed.
    """
    if hasattr(learner, "loss"):
        require_choice("loss", learner.loss, tuple(LOSSES))
    if hasattr(learner, "update"):
        require_choice("update", learner.update, ("always", "mistakes"))
    for name in ("base", "base_rate"):
        require(name, getattr(learner, name), low=0.0)
