"""What a learner is: frozen parameters, a state of arrays, and an epoch over lists."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from rerank.base.ranges import Checked
from rerank.base.registry import Registry
from rerank.data.corpus import Corpus
from rerank.data.shards import Lists
from rerank.kernels.compile import kernel_of
from rerank.learn.apart import State as State
from rerank.learn.apart import TrainedApart
from rerank.learn.log import UpdateLog
from rerank.learn.scoring import Weights as Weights
from rerank.learn.settings import NotNegative, SettingsClass, settings_of
from rerank.learn.steps import ALIVE, UPDATES, beta
from rerank.learn.voting.votes import Replay, Votes
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


class DualRule(NamedTuple):
    """How predictor k follows from the sum s of k subgradients: w = −sign(s)·max(|s| − k·l1, 0)·d_k.

    d_k = 1 / (k·l2 + eta·√k), or 1 where eta is 0; the base score weighs base − base_rate·d_k·s_b (l2 = 0).
    """

    eta: float
    l1: float
    l2: float
    base: float
    base_rate: float


@dataclass(frozen=True, kw_only=True)
class Learner(Checked, ABC):
    """An update rule with its parameters: a frozen dataclass whose fields are the recipe's schema.

    ``init`` makes a state, and only ``epoch`` changes one. At the end of an epoch nothing lazy is left in a state, so a
    state that was saved and loaded continues exactly like one that stayed in memory.

    A learner is one of a family (``rerank.learn.skeletons``), which has the kernels ``passes`` and ``replays``, the
    state, and bodies for most of what these call; its own rule is the body that its file gives (see
    ``rerank.kernels.by_type``).

    Parameters
    ----------
    base: ≥ 0; weight of the base score at the start, compared with that of the features.
    base_rate: ≥ 0; 0 keeps it there, ρ > 0 learns it as the weight of one more feature, ρ·b(y).
    """

    name: ClassVar[str] = ""  # that of the class if it says no other
    Settings = SettingsClass()  # no annotation: it is not a parameter
    batch: ClassVar[bool] = False  # does it solve for the optimum (``solve``), without epochs, order, votes and mixing?
    sources: ClassVar[tuple[str, ...]] = SOURCES  # the pair sources that it can learn from (see ``pairs``)
    passes: ClassVar[Any]  # the kernel that passes over lists
    replays: ClassVar[Any]  # the kernel that repeats logged updates for voting
    # How states that were trained apart are combined: the rules that there are, the usual one first (none: not at all);
    # can columns be left out of the result; does a column that no section has touched stay what it was?
    mixes: ClassVar[tuple[str, ...]] = ()
    keeps: ClassVar[bool] = True
    local: ClassVar[bool] = True

    base: NotNegative = 1.0
    base_rate: NotNegative = 0.0

    def __init_subclass__(cls) -> None:
        """A learner that does not say otherwise has the name of its class."""
        super().__init_subclass__()
        if "name" not in vars(cls):
            cls.name = cls.__name__

    @abstractmethod
    def init(self, columns: int, candidates: int = 0) -> State:
        """The state before the first list, for D = ``columns`` and a corpus of N = ``candidates``.

        Only learners with one variable per candidate use N.

        Raises
        ------
        RecipeError: the learner cannot keep a state for so many columns.
        """

    def stored(self, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The arrays of a state that was stored, which may be laid out as models of an earlier program have them."""
        return arrays

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
        """What an epoch over ``order`` keeps in addition to the state for its lazy sums; None by default.

        Where lists come in batches (see ``Stream``), it is kept for all of them with as many visits in sum: only the
        length of ``order`` and the columns of ``corpus`` may matter.
        """
        return None

    def finish(self, state: State, lazy: Any) -> None:
        """Bring everything lazy up to date."""

    def settings(self, state: State, any_ties: bool = False) -> Any:  # noqa: ARG002
        """The parameters for kernels; see ``SettingsClass``."""
        return settings_of(self, any_ties)

    def alive(self, state: State) -> int:
        """How many lists the current predictor has survived."""
        return int(state.counts[ALIVE])

    def updates(self, state: State) -> int:
        """Number of updates so far."""
        return int(state.counts[UPDATES])

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
        lazy, q = self.begin(corpus, order, state), self.settings(state, any_ties)
        data, space = view(corpus, oracle, pairs), scratch(corpus, q.loss)
        stats = []
        for part in parts(order, points):
            tally = self.visit(corpus, data, part, state, lazy, space, q, log)
            stats.append(stats_of(tally, self.nonzero_weights(state)))
        self.finish(state, lazy)
        return stats

    def solve(self, lists: Lists, oracle: np.ndarray, state: State, *, any_ties: bool = False) -> EpochStats:
        """Bring ``state`` to the optimum over all ``lists``: in place of epochs, for learners that are ``batch``."""
        raise NotImplementedError

    def visit(
        self,
        corpus: Corpus,
        data: ListArrays,
        order: np.ndarray,
        state: State,
        lazy: Any,
        space: Scratch,
        q: Any,
        log: UpdateLog | None,
    ) -> np.ndarray:
        """A part of an epoch, between ``begin`` and ``finish``: visit ``order`` (int64) and update ``state``.

        data, space: ``view`` and ``scratch`` of the corpus; q: ``settings``; the result is a tally for ``stats_of``.
        """
        tally, room = np.zeros(6), log_room(corpus, order, q.loss, 0 if log is None else q.top)
        kernel_of(type(self).passes, type(self))(data, order, state, lazy, space, room, tally, q)
        if log is not None:
            log.add_room(room, self.alive(state))
        return tally

    @abstractmethod
    def weights(self, state: State) -> np.ndarray:
        """float64 [D]: the weights after the last update; perhaps a view of the state."""

    def base_weight(self, state: State) -> float:
        """What the base score weighs after the last update."""
        with np.errstate(all="ignore"):  # as in kernels
            return float(beta(state, self.settings(state)))

    def last(self, state: State) -> Weights:
        """The predictor after the last update."""
        return Weights(np.array(self.weights(state)), self.base_weight(state))

    def nonzero_weights(self, state: State) -> int:
        """Weights of the last predictor that are not 0."""
        return int(np.count_nonzero(self.weights(state)))

    @abstractmethod
    def average(self, state: State) -> Weights:
        """All predictors, weighted by the lists that they survived."""

    def votes(self, log: UpdateLog, corpus: Corpus) -> Votes:
        """All predictors from the first, by repeating the updates of ``log`` on the corpus that they were made on."""
        state = self.init(corpus.width, corpus.candidate_count)
        lazy, q = self.begin(corpus, np.zeros(0, np.int64), state), self.settings(state)
        replay = Replay(log, corpus, self.base, q.loss, **self.vote_room(corpus))
        repeat = kernel_of(type(self).replays, type(self))
        repeat(replay.data, replay.updates, state, lazy, replay.space, replay.room, q)
        return replay.votes()

    def vote_room(self, corpus: Corpus) -> dict[str, Any]:  # noqa: ARG002
        """What ``Replay`` has to know of the votes; see there."""
        return {}

    def dual_rule(self) -> DualRule | None:
        """How the predictors follow from summed subgradients; None where they do not."""
        return None

    def combined(self, apart: TrainedApart, rule: str) -> State:
        """One state of those that were trained apart, by a rule of ``mixes``."""
        raise NotImplementedError


RULES = (
    "arda", "arow", "bopr", "cw", "fobos", "ftrl", "lm_nwin", "lm_perc", "lm_uwin", "maxent", "nherd", "nwin", "pa",
    "perceptron", "rda", "scw", "sgd", "sop", "tg", "uwin", "vrda",
)  # fmt: skip
learners: Registry[type[Learner]] = Registry("learner", Learner, [f"rerank.learn.rules.{rule}" for rule in RULES])
