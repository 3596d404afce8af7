"""Epochs in a seeded order, an evaluation on dev after each, and the best of them."""

import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, Protocol

import numpy as np

from rerank.base.errors import RecipeError, RunError
from rerank.base.interrupts import check, deferred, requested
from rerank.data.shards import Corpora, part_count, part_of, places
from rerank.learn.base import Learner, State, Weights
from rerank.learn.log import UpdateLog
from rerank.learn.pairs import Oracle, PairSource
from rerank.learn.predictor import copy_state, sums_of
from rerank.learn.workspace import EpochStats
from rerank.storage.outputs import Work

logger = logging.getLogger("rerank")
ORACLE_PAIRS: PairSource = Oracle()
PREDICTORS = 4 * 8  # bytes per column: last and average, of the epoch under way and of the best one
SCRATCH = 8  # bytes per column: its place in the sum of an update
FEW = 1024  # columns of the states that are measured

Evaluate = Callable[[Weights], float]
Weigh = Callable[[Weights], tuple[Weights, float]]


@dataclass
class Training:
    """The result of training: the best epoch by dev score (the last one where there is no dev).

    weights: by predictor ("last", "average"); state: the learner's, to continue from; log: the updates up to the best
    epoch, if they were kept; epoch: the number of epochs that led to the weights; history: one line per epoch;
    radius: largest norm of a difference vector; skipped:
    updates that were left out because numbers became too small for them; about: what was chosen before training; held:
    float64 [N'], scores of the last lists by trainings on others, where it was chosen so.
    """

    learner: Learner
    weights: dict[str, Weights]
    state: Any
    log: UpdateLog | None
    epoch: int
    history: list[dict[str, Any]] = field(default_factory=list)
    radius: float = 0.0
    skipped: int = 0
    about: dict[str, Any] = field(default_factory=dict)
    held: np.ndarray = field(default_factory=lambda: np.zeros(0))


def epoch_order(lists: int, seed: int, epoch: int, shuffle: bool, part: int = 0) -> np.ndarray:
    """int64 [lists]: the order of an epoch over a part, from these numbers alone: continuing needs no others."""
    return np.random.default_rng([seed, epoch, part]).permutation(lists) if shuffle else np.arange(lists)


def part_order(parts: int, seed: int, epoch: int, shuffle: bool) -> np.ndarray:
    """int64 [parts]: the order in which an epoch visits the parts of its lists."""
    return np.random.default_rng([seed, epoch, 0, 1]).permutation(parts) if shuffle else np.arange(parts)


def bytes_needed(learner: Learner, columns: int) -> int:
    """Bytes for training on this many columns: the learner's state, that of the best epoch, predictors, scratch
    space."""
    small, large = (sum(int(array.nbytes) for array in learner.init(width)) for width in (FEW, 2 * FEW))
    return columns * (2 * (large - small) // FEW + PREDICTORS + SCRATCH)


def train(
    learner: Learner,
    corpus: Corpora,
    oracle: np.ndarray,
    *,
    epochs: int,
    seed: int,
    shuffle: bool = True,
    any_ties: bool = False,
    pairs: PairSource = ORACLE_PAIRS,
    visits: np.ndarray | None = None,
    predictor: str = "average",
    patience: int | None = None,
    evaluate_train: Evaluate | None = None,
    evaluate_dev: Evaluate | None = None,
    weigh: Weigh | None = None,
    warm: tuple[State, int] | None = None,
    keep_log: bool | int = False,
    on_epoch: Callable[[dict[str, Any], Weights], None] | None = None,
    checkpoint: Work | None = None,
) -> Training:
    """Train for ``epochs`` passes and keep the best.

    Where the lists are in several parts, an epoch visits them one after the other, in an order of its own. A learner
    that is ``batch`` has one epoch, in which it finds its optimum.

    Parameters
    ----------
    oracle: int64 [L], absolute candidates; any_ties: candidates with the same gain count as correct too.
    pairs: which candidates of a list are compared.
    visits: int64 [V], the lists of an epoch before they are shuffled, some perhaps several times; by default each list
        once. For lists in one part.
    evaluate_train, evaluate_dev: from a predictor to a score, higher is better; of the one named ``predictor``.
    weigh: used in place of ``evaluate_dev``: from a predictor to the one that is kept (``BaseSearch``), and its score.
    patience: stop after this many epochs without a better dev score.
    warm: a state to continue from (if of another corpus, one that was adopted), and how many epochs it has seen; with
        one that keeps no average there is only the last predictor.
    keep_log: log the updates, of all epochs (for voting) or of this many, the first ones (for bounds).
    on_epoch: called with the history line and the predictor of every epoch that is trained here (not with those before
        a checkpoint).
    checkpoint: where progress is saved, and where training continues from; the result is the same.
    """
    require_source(learner, pairs)
    progress = TrainingState.begin(learner, corpus, warm, logged=epochs if keep_log is True else int(keep_log))
    hooks = EvaluationHooks(predictor, evaluate_train, evaluate_dev, weigh, on_epoch)
    last = progress.epoch + epochs
    if checkpoint is not None and (stored := checkpoint.load()) is not None:
        progress.restore(*stored)
        logger.info("continuing after epoch %d", progress.epoch)
    problem = ListProblem(corpus, oracle, seed, shuffle, any_ties, pairs, visits)
    training = run_epochs(progress, problem, last, hooks, patience, checkpoint)
    training.log = progress.log.head(*progress.marks) if progress.log is not None else None
    return training


class TrainingProblem(Protocol):
    """What a learner is trained on."""

    def solve(self, progress: "TrainingState") -> None:
        """Take the state of a learner that finds its optimum in one go there, and add to ``progress.stats``."""

    def epoch(self, progress: "TrainingState") -> None:
        """Take the state through one epoch, and add to ``progress.stats``, ``seconds`` and ``nonzeros``."""


def run_epochs(
    progress: "TrainingState",
    problem: TrainingProblem,
    last: int,
    hooks: "EvaluationHooks",
    patience: int | None = None,
    checkpoint: Work | None = None,
) -> Training:
    """Train up to the epoch ``last``, a learner that is ``batch`` for one epoch: the loop of all trainings."""
    if progress.learner.batch:
        last = progress.epoch
        if not progress.training.weights:
            problem.solve(progress)
            progress.finish_epoch(hooks)
    with deferred():
        while progress.epoch < last and not progress.stopped(patience):
            problem.epoch(progress)
            progress.finish_epoch(hooks)
            if checkpoint is not None and (checkpoint.due() or requested()):
                checkpoint.save(*progress.saved())
            check()
    return progress.training


def require_source(learner: Learner, pairs: PairSource) -> None:
    """Refuse a pair source that ``learner`` cannot learn from, or of which its loss takes no notice."""
    loss = learner.loss_type()
    if learner.sources and pairs.name not in learner.sources:
        raise RecipeError(
            f"found {pairs.name!r}; expected {' or '.join(learner.sources)} for the learner {learner.name!r}",
            key="name",
        )
    if loss.sources and pairs.name not in loss.sources:
        message = (
            f"found {pairs.name!r}, which changes nothing for the loss {loss.name}: it looks at all candidates, not at "
        )
        message += f"pairs; expected {' or '.join(loss.sources)}, or a loss of pairs, as {{loss: logistic}}"
        raise RecipeError(message, key="name")


@dataclass(frozen=True)
class ListProblem:
    """Lists of candidates as a ``TrainingProblem``: see ``train``."""

    corpus: Corpora
    oracle: np.ndarray
    seed: int
    shuffle: bool
    any_ties: bool
    pairs: PairSource
    visits: np.ndarray | None

    def solve(self, progress: "TrainingState") -> None:
        """See ``TrainingProblem``."""
        start, learner = time.perf_counter(), progress.learner
        progress.stats = [learner.solve(self.corpus, self.oracle, progress.state, any_ties=self.any_ties)]
        progress.seconds = time.perf_counter() - start
        progress.nonzeros = learner.updates(progress.state) * self.corpus.nonzeros

    def epoch(self, progress: "TrainingState") -> None:
        """See ``TrainingProblem``; part after part, in an order of the epoch's own."""
        for number, index in enumerate(part_order(part_count(self.corpus), self.seed, progress.epoch, self.shuffle)):
            if number:
                check()
            self._visit(progress, int(index))

    def _visit(self, progress: "TrainingState", index: int) -> None:
        place, part = places(self.corpus)[index], part_of(self.corpus, index)
        targets = self.oracle[place.lists : place.lists + part.list_count]
        if place.candidates:
            targets = np.where(targets >= 0, targets - place.candidates, -1)
        count = part.list_count if self.visits is None else self.visits.size
        order = epoch_order(count, self.seed, progress.epoch, self.shuffle, index)
        order = order if self.visits is None else self.visits[order]
        state = progress.learner.view_of(progress.state, place.candidates, place.candidates + part.candidate_count)
        log = progress.log if progress.epoch < progress.logged else None
        if log is not None:
            log.count_from(place.lists, place.candidates)
        start = time.perf_counter()
        rule = self.pairs.rule(self.seed, progress.epoch, index)
        progress.stats.append(
            progress.learner.epoch(part, targets, order, state, any_ties=self.any_ties, log=log, pairs=rule)
        )
        progress.seconds += time.perf_counter() - start
        progress.nonzeros += part.nonzeros


@dataclass(frozen=True)
class EvaluationHooks:
    """The evaluation after an epoch: see ``train``."""

    predictor: str
    evaluate_train: Evaluate | None
    evaluate_dev: Evaluate | None
    weigh: Weigh | None
    on_epoch: Callable[[dict[str, Any], Weights], None] | None


@dataclass
class TrainingState:
    """The progress of a training: everything that continuing depends on.

    epoch: how many are finished; logged: how many of them log their updates; stats, seconds, nonzeros: of the epoch
    that is under way.
    """

    training: Training
    state: State
    log: UpdateLog | None
    epoch: int
    logged: int = 0
    stats: list[EpochStats] = field(default_factory=list)
    seconds: float = 0.0
    nonzeros: int = 0
    best_score: float | None = None
    marks: tuple[int, int] = (0, 0)

    @staticmethod
    def begin(learner: Learner, lists: Corpora, warm: tuple[State, int] | None, *, logged: int = 0) -> "TrainingState":
        """Before the first epoch; the first ``logged`` epochs log their updates; ``warm``: see ``train``."""
        if warm is not None:
            state, done = copy_state(warm[0]), warm[1]
        else:
            state, done = learner.init(lists.width, lists.candidate_count), 0
        return TrainingState(
            Training(learner, {}, None, None, 0), state, UpdateLog() if logged else None, done, done + logged
        )

    @property
    def learner(self) -> Learner:
        """The learner that is trained."""
        return self.training.learner

    def stopped(self, patience: int | None) -> bool:
        """Whether ``patience`` epochs have gone by without a better dev score."""
        return patience is not None and bool(self.training.weights) and self.epoch - self.training.epoch >= patience

    def finish_epoch(self, hooks: EvaluationHooks) -> None:
        """Close the epoch that is under way: evaluate its predictor, and keep it if it is the best so far."""
        if any(part.skipped for part in self.stats) and not self.training.skipped:
            logger.warning("some updates were skipped because variances became too small; see `skipped` in the history")
        self.training.radius = max([self.training.radius, *(part.radius for part in self.stats)])
        self.training.skipped += sum(part.skipped for part in self.stats)
        with np.errstate(all="ignore"):  # what is not finite is refused below
            weights = self.predictors(self.state)
            chosen = weights[hooks.predictor]
            line = history_line(self.nonzeros, self.stats, chosen, self.seconds) | {"epoch": self.epoch + 1}
        require_finite(self.learner, line, weights)
        score: float | None = None
        if hooks.weigh is not None:
            chosen, score = hooks.weigh(chosen)
            weights[hooks.predictor], line["base_weight"] = chosen, chosen.base
        self.epoch += 1
        self.stats, self.seconds, self.nonzeros = [], 0.0, 0
        if hooks.evaluate_train is not None:
            line["train"] = hooks.evaluate_train(chosen)
        if hooks.evaluate_dev is not None:
            score = hooks.evaluate_dev(chosen)
        if score is not None:
            line["dev"] = score
        training = self.training
        training.history.append(line)
        score = line.get("dev", float(self.epoch))
        if self.best_score is None or score > self.best_score:
            self.best_score = score
            if hooks.weigh is not None:
                weights |= {name: hooks.weigh(other)[0] for name, other in weights.items() if name != hooks.predictor}
            training.weights, training.state, training.epoch = weights, copy_state(self.state), self.epoch
            self.marks = self.log.marks() if self.log is not None else self.marks
        if hooks.on_epoch is not None:
            hooks.on_epoch(line, chosen)

    def predictors(self, state: State) -> dict[str, Weights]:
        """The predictors of a state."""
        averaged = self.learner.batch or sums_of(state).size > 0
        return {"last": self.learner.last(state)} | ({"average": self.learner.average(state)} if averaged else {})

    def saved(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """The progress after an epoch, as JSON and arrays; the best predictors follow from the best state and bases."""
        training = self.training
        arrays = {f"state_{name}": np.asarray(array) for name, array in self.state._asdict().items()}
        if training.state is not None:
            arrays |= {f"best_{name}": np.asarray(array) for name, array in training.state._asdict().items()}
        if self.log is not None:
            arrays |= {f"log_{name}": array for name, array in self.log.arrays().items()}
        kept = ("epoch", "history", "radius", "skipped")
        header = {
            "training": {name: getattr(training, name) for name in kept},
            "base": {name: weights.base for name, weights in training.weights.items()},
            "progress": {name: getattr(self, name) for name in ("epoch", "best_score", "marks")},
        }
        return header, arrays

    def restore(self, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """The inverse of ``saved``."""
        kind, training = type(self.state), self.training
        for name, value in header["training"].items():
            setattr(training, name, value)
        for name, value in header["progress"].items():
            setattr(self, name, value)
        self.marks = (int(self.marks[0]), int(self.marks[1]))
        self.state = kind(**{name: arrays[f"state_{name}"] for name in self.state._fields})
        if self.log is not None:
            self.log = UpdateLog.from_arrays({key[4:]: array for key, array in arrays.items() if key[:4] == "log_"})
        if self.best_score is not None:
            training.state = kind(**{name: arrays[f"best_{name}"] for name in self.state._fields})
            best = self.predictors(training.state)
            training.weights = {name: weights._replace(base=header["base"][name]) for name, weights in best.items()}


def require_finite(learner: Learner, line: dict[str, Any], weights: dict[str, Weights]) -> None:
    """Refuse to continue from numbers that are not finite."""
    culprit = next((key for key, number in line.items() if not math.isfinite(number)), None)
    for name, predictor in weights.items():
        if not (math.isfinite(predictor.base) and np.isfinite(predictor.w).all()):
            culprit = f"{name} weights"
    if culprit is None:
        return
    own_settings = [
        f"{setting.name}: {getattr(learner, setting.name)}"
        for setting in fields(learner)
        if getattr(learner, setting.name) != setting.default
    ]
    raise RunError(
        f"epoch {line['epoch']}: the {culprit} of learner {learner.name} ({', '.join(own_settings) or 'all defaults'}) "
        "left the range of floating-point numbers; take settings nearer to the defaults, or scale the features"
    )


def history_line(nonzeros: int, stats: list[EpochStats], weights: Weights, seconds: float) -> dict[str, Any]:
    """The numbers of an epoch, with the nonzeros that it visited and the seconds that it took."""
    lists = sum(part.lists for part in stats)
    return {
        "mistakes": sum(part.mistakes for part in stats),
        "updates": sum(part.updates for part in stats),
        "skipped": sum(part.skipped for part in stats),
        "loss": sum(part.loss for part in stats) / max(1, lists),
        "nonzero_weights": int(np.count_nonzero(weights.strength)),
        "norm": weights.norm,
        "base_weight": weights.base,
        "seconds": seconds,
        "nonzeros_per_second": nonzeros / seconds if seconds > 0 else 0.0,
    }
