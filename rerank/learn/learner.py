"""The interface of learners: frozen parameters, a state of arrays, and an epoch over lists."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from rerank.base.errors import RecipeError
from rerank.base.ranges import NotNegative
from rerank.base.registry import Registry
from rerank.data.corpus import Corpus
from rerank.kernels.compile import KernelPart, kernel_of, settings_of
from rerank.learn.epoch import NO_LOG, UpdateLog, Votes, epoch, log_buffers, repeat_updates, room_for, trim_votes
from rerank.learn.losses import Loss, PairLoss, losses
from rerank.learn.pairs import ORACLES
from rerank.learn.predictor import (
    Predictor,
    average_of,
    begin_sums,
    flush,
    new_state,
    predictor_of,
    predictor_view,
    weights_of,
    without_sums,
)
from rerank.learn.predictor import State as State
from rerank.learn.scoring import Weights as Weights
from rerank.learn.workspace import EpochStats, new_tally, scratch_for, view

Update = Literal["always", "mistakes"]


@dataclass(frozen=True, kw_only=True)
class Learner(KernelPart):
    """An update rule with its parameters: a frozen dataclass whose fields are the recipe's schema.

    ``init`` makes a state, and only ``epoch`` changes one. At the end of an epoch nothing lazy is left in a state, so a
    state that was saved and loaded continues exactly like one that stayed in memory.

    A rule must define a static method, which numba compiles with the epoch: ``learn(state, scratch, count, n, weight,
    params)``, a step against the subgradient g in ``scratch``; or, with ``passes = pair_epoch``, ``update_pair``, which
    judges a difference vector too (see ``workspace``). It changes the ``State``: a_j of the columns that it is
    given (``state.a``), the scale and the threshold (``state.now.d``, ``state.now.tau``), and what it remembers: of a
    column the numbers that ``cell`` names (``state.cells[j]``), as a whole those that ``whole`` names (``state.now``).
    Scores, averages, votes, counts and stored states follow from that, the same for all learners;
    docs/adding-a-learner.md has a table of what a rule may set.

    An epoch takes time for every nonzero of a list, to score it, and once more for those of the candidates that an
    update compares.

    Parameters
    ----------
    base: ≥ 0; weight of the base score at the start, compared with the features.
    base_rate: ≥ 0; 0 keeps that weight, ρ > 0 learns it as the weight of one more feature, ρ·b(y).
    """

    name: ClassVar[str] = ""  # the name of the class by default
    linear: ClassVar[bool] = True  # is its predictor a sum of weights? Others have ``grow``, and a ``TreePredictor``
    # Settings of every pass: the loss, whether a loss suffices for an update (or only a mistake), whether candidates
    # with the oracle's gain are oracles too, how many rivals of a list are learned from, and ``judges_after_update``.
    extra: ClassVar[tuple[str, ...]] = ("loss", "always", "any_ties", "top", "judges_after_update")
    batch: ClassVar[bool] = False  # does it ``solve`` for the optimum instead of running epochs?
    sources: ClassVar[tuple[str, ...]] = ()  # the pair sources that it can learn from (see ``pairs``); () for all
    judge: ClassVar[str] = "perceptron"  # the loss that judges where there is no parameter ``loss``
    passes: ClassVar[Any] = epoch  # the kernel that passes over lists
    replays: ClassVar[Any] = repeat_updates  # the kernel that repeats logged updates for voting
    shrinks: ClassVar[bool] = False  # does a threshold τ rise, so that weights move toward 0 without being touched?
    dual: ClassVar[bool] = False  # does it have a dual variable per candidate, up to its parameter C?
    judges_after_update: ClassVar[bool] = False  # is the margin that of the weights after the update?
    cell: ClassVar[tuple[str, ...]] = ("a",)  # names of a_j and of the other numbers that the rule keeps of a column
    whole: ClassVar[tuple[str, ...]] = ()  # names of the numbers that the rule keeps as a whole

    base: NotNegative = 1.0
    base_rate: NotNegative = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            self.loss_type()
        except RecipeError as error:
            raise RecipeError(error.message, key="loss") from None

    def loss_type(self) -> type[Loss]:
        """The loss that its updates come from, or that judges lists."""
        return losses.get(getattr(self, "loss", self.judge))

    @property
    def pairwise(self) -> bool:
        """Whether an update looks at two candidates of a list alone."""
        return issubclass(self.loss_type(), PairLoss)

    def require(self) -> None:
        """Raise a ``RecipeError`` where it needs what is not installed."""

    def grow(self, lists: Corpus, dev: Corpus | None, seed: int) -> Any:
        """Train a learner that is not ``linear`` on ``lists``; returns the ``Training``, at its best on ``dev``."""
        raise NotImplementedError

    def init(self, columns: int, candidates: int = 0) -> State:
        """The state before the first list, for D = ``columns`` and a corpus of N = ``candidates``.

        Only learners with one variable per candidate use N.

        Raises
        ------
        RecipeError: the learner cannot keep a state for this many columns.
        """
        duals = candidates if self.dual else 0
        return new_state(columns, cell=len(self.cell), shrinks=self.shrinks, rest=len(self.whole), candidates=duals)

    def view(self, state: State) -> Predictor:
        """``state`` as kernels see it: views, with numbers under their names."""
        return predictor_view(state, self.cell, self.whole)

    @property
    def scales_free(self) -> bool:
        """Whether free columns have a scale of their own."""
        return False

    def for_corpus(self, state: State, candidates: int) -> State:
        """``state`` for another corpus, of this many candidates over the same columns: dual variables begin at 0."""
        return state._replace(alpha=np.zeros(candidates)) if self.dual else state

    def without_average(self, state: State) -> State:
        """A new ``state`` without its average, for callers that only want the last predictor: it trains faster."""
        return without_sums(state)

    def begin(self, corpus: Corpus, visits: int, state: State) -> Any:
        """The bytes that an epoch of this many visits keeps in addition to the state: sums, or room for Σz (float64 [D
        + 1]), or None.

        Raises
        ------
        ValueError: the state was made for other candidates, or trained with other free columns, on which depends what
            it keeps of a column.
        """
        if self.dual and state.alpha.size != corpus.candidate_count:
            raise ValueError(
                f"the state has {state.alpha.size} dual variables for {corpus.candidate_count} candidates; "
                "call init(columns, candidates), or for_corpus(state, candidates) to continue with another corpus"
            )
        counts = predictor_view(state).counts
        if self.shrinks and counts.updates > 0 and counts.free != corpus.free:
            raise ValueError(
                f"the state was trained with {counts.free} free columns, the corpus has {corpus.free}; "
                "train on corpora of one feature table"
            )
        counts.free = corpus.free
        if state.matrix.size:
            return np.zeros(len(state.cells))
        return begin_sums(state, visits) if self.shrinks else None

    def finish(self, state: State, sums: Any) -> None:
        """Flush lazily updated sums."""
        if self.shrinks:
            flush(self.view(state), sums)

    def settings(self, any_ties: bool = False) -> Any:
        """The parameters for kernels; see ``SettingsClass``."""
        common = {
            "loss": settings_of(self.loss_type()(), {}),
            "always": getattr(self, "update", "mistakes") == "always",
            "any_ties": any_ties,
            "top": int(getattr(self, "top", 1)),
            "judges_after_update": bool(self.judges_after_update),
        }
        return settings_of(self, common)

    def alive(self, state: State) -> int:
        """The number of lists that the current predictor has survived."""
        return int(predictor_view(state).counts.alive)

    def updates(self, state: State) -> int:
        """Number of updates so far."""
        return int(predictor_view(state).counts.updates)

    def epoch(
        self,
        corpus: Corpus,
        oracle: np.ndarray,
        order: np.ndarray,
        state: State,
        *,
        stops: Iterable[int] | None = None,
        any_ties: bool = False,
        log: UpdateLog | None = None,
        pairs: Any = ORACLES,
    ) -> EpochStats:
        """Pass over the lists ``order`` (int64) once and update ``state``.

        oracle: int64 [L]; stops: up to where to go before each next one is asked for, to the end by default; any_ties:
        every candidate with the oracle's gain counts as correct; log: where updates go; pairs: which candidates are
        compared (``PairSource.rule``), the oracle and its rival by default.
        """
        sums, params = self.begin(corpus, order.size, state), self.settings(any_ties)
        kind: Any = type(self)
        passes, tally = kernel_of(kind.passes, kind, self.loss_type(), pairs.owner), new_tally()
        room = NO_LOG if log is None else log_buffers(corpus, order, self.pairwise, params.top)
        order = np.ascontiguousarray(order, np.int64)
        data, scratch, first = view(corpus, oracle, pairs), scratch_for(corpus, self.pairwise), 0
        for stop in [order.size] if stops is None else stops:
            passes(data, order[first:stop], self.view(state), sums, scratch, room, tally, params)
            first = stop
        if log is not None:
            log.add_buffers(room, self.alive(state))
        self.finish(state, sums)
        return EpochStats(*tally.item())

    def solve(self, lists: Corpus, oracle: np.ndarray, state: State, *, any_ties: bool = False) -> EpochStats:  # noqa: ARG002
        """Bring ``state`` to the optimum over all ``lists``: in place of epochs, for learners that are ``batch``."""
        raise RecipeError(f"{self.name} learns from lists of candidates only; name another learner", key="learner.name")

    def last(self, state: State) -> Weights:
        """The predictor after the last update."""
        return predictor_of(weights_of(state), self.base, self.base_rate)

    def average(self, state: State) -> Weights:
        """All predictors, weighted by the lists that they survived."""
        return predictor_of(average_of(state, self.shrinks), self.base, self.base_rate)

    def votes(self, log: UpdateLog, corpus: Corpus) -> Votes:
        """All predictors from the first, by repeating the updates of ``log`` on the corpus that they were made on."""
        state = self.init(corpus.width, corpus.candidate_count)
        sums, params = self.begin(corpus, 0, state), self.settings()
        updates, room = room_for(
            log, corpus, full=state.matrix.size > 0, more=corpus.free if self.scales_free else 0,
            slopes=self.shrinks and (state.v.size > 0 or corpus.free > 0),
        )  # fmt: skip
        kind: Any = type(self)
        data, scratch = view(corpus, np.full(corpus.list_count, -1)), scratch_for(corpus, self.pairwise)
        kernel_of(kind.replays, kind, self.loss_type())(data, updates, self.view(state), sums, scratch, room, params)
        return trim_votes(room)


learners: Registry[type[Learner]] = Registry("learner", Learner)
