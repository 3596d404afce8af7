"""One loop for all trainings: epochs of a learner over a problem, a look at each by observers, and the best is kept."""

import logging
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from rerank.base.errors import RecipeError, RunError
from rerank.base.interrupts import check, defer_signals, signal_pending
from rerank.data.corpus import Corpus
from rerank.learn.epoch import UpdateLog
from rerank.learn.learner import Learner, State, Weights
from rerank.learn.pairs import Oracle, PairSource
from rerank.learn.predictor import copy_state, sums_of
from rerank.learn.workspace import EpochStats

if TYPE_CHECKING:
    from rerank.storage.outputs import Work

logger = logging.getLogger("rerank")
ORACLE_PAIRS: PairSource = Oracle()
PREDICTORS = 4 * 8  # bytes per column: last and average, of the epoch under way and of the best one
SCRATCH = 8  # bytes per column: its sum in an update
SAMPLE_COLUMNS = 1024  # of the states that are measured


class TrainingProblem(Protocol):
    """The data of a training; ``corpus``: its columns, candidates and nonzeros are asked for."""

    @property
    def corpus(self) -> Any: ...

    def visit(self, learner: Learner, state: State, epoch: int, log: UpdateLog | None) -> EpochStats:
        """Take ``state`` through an epoch, 0 the first; a learner that is ``batch``, to its optimum."""


@dataclass(frozen=True)
class ListProblem:
    """Lists of candidates, visited part after part where they are in several, in an order of the epoch's own.

    oracle: int64 [L], absolute candidates; any_ties: candidates with the same gain count as correct too.
    pairs: which candidates of a list are compared.
    visits: int64 [V], the lists of an epoch before they are shuffled, some perhaps several times; by default each list
        once. For lists in one part.
    """

    corpus: Corpus
    oracle: np.ndarray
    seed: int
    shuffle: bool = True
    any_ties: bool = False
    pairs: PairSource = ORACLE_PAIRS
    visits: np.ndarray | None = None

    def visit(self, learner: Learner, state: State, epoch: int, log: UpdateLog | None) -> EpochStats:
        """See ``TrainingProblem``."""
        require_source(learner, self.pairs)
        if learner.batch:
            return learner.solve(self.corpus, self.oracle, state, any_ties=self.any_ties)
        parts = part_order(self.corpus.cuts.size - 1, self.seed, epoch, self.shuffle).tolist()
        orders = list[np.ndarray]()
        for part in parts:
            lists = np.arange(*self.corpus.cuts[part : part + 2]) if self.visits is None else self.visits
            orders.append(lists[epoch_order(lists.size, self.seed, epoch, self.shuffle, part)])
        return learner.epoch(
            self.corpus, self.oracle, np.concatenate(orders), state, stops=self._stops(parts, orders),
            any_ties=self.any_ties, log=log, pairs=self.pairs.rule(self.seed, epoch),
        )  # fmt: skip

    def _stops(self, parts: list[int], orders: list[np.ndarray]) -> Iterator[int]:
        """The ends of parts in an epoch's order, each given when its lists are in memory."""
        ends = np.cumsum([order.size for order in orders]).tolist()
        for stop, _ in zip(ends, self.corpus.parts(parts), strict=True):
            check()
            yield stop


@dataclass
class Epoch:
    """An epoch that has ended, for observers.

    line: its line of the history, which they may add to; weights: the predictor that is looked at, which they may
    change; score: what epochs are compared by, higher is better, if an observer says; else the last is the best.
    """

    line: dict[str, Any]
    weights: Weights
    score: float | None = None


Observer = Callable[[Epoch], None]


def score_on(evaluate: Callable[[Weights], float]) -> Observer:
    """An observer: epochs are compared by what ``evaluate`` gives their predictors, higher is better."""

    def observe(epoch: Epoch) -> None:
        epoch.score = epoch.line["dev"] = evaluate(epoch.weights)

    return observe


@dataclass
class Training:
    """The result of training: the best epoch.

    weights: by predictor ("last", "average"); state: the learner's, to continue from; log: the updates up to the best
    epoch, if they were kept; epoch: the number of epochs that led to the weights; history: one line per epoch; skipped:
    updates that were left out because numbers became too small for them; about: choices before training; fold_scores:
    float64 [N'], scores of the last lists by trainings on others, where these made the choices.
    """

    learner: Learner
    weights: dict[str, Weights]
    state: Any
    log: UpdateLog | None
    epoch: int
    history: list[dict[str, Any]] = field(default_factory=list)
    skipped: int = 0
    about: dict[str, Any] = field(default_factory=dict)
    fold_scores: np.ndarray = field(default_factory=lambda: np.zeros(0))


def train(
    learner: Learner,
    problem: TrainingProblem,
    *,
    epochs: int,
    predictor: str = "average",
    patience: int | None = None,
    start: tuple[State, int] | None = None,
    keep_log: bool | int = False,
    observers: Sequence[Observer] = (),
    checkpoint: "Work | None" = None,
) -> Training:
    """Train for ``epochs`` passes and keep the best; a learner that is ``batch`` has one, in which it finds its
    optimum.

    Parameters
    ----------
    predictor: the one that the history and observers look at.
    patience: stop after this many epochs without a better score.
    start: a state to continue from (if of another corpus, one that was adopted), and how many epochs it has seen; with
        one that keeps no average there is only the last predictor.
    keep_log: log the updates, of all epochs (for voting) or of this many, the first ones (for bounds).
    observers: called with every epoch that is trained here (not with those before a checkpoint), in this order.
    checkpoint: where progress is saved, and where training continues from; the result is the same.
    """
    corpus = problem.corpus
    first = 0 if start is None else start[1]
    state = learner.init(corpus.width, corpus.candidate_count) if start is None else copy_state(start[0])
    last = first + (1 if learner.batch else epochs)
    progress = TrainingState(Training(learner, {}, None, None, 0), state, first, UpdateLog() if keep_log else None)
    log_end, training = last if keep_log is True else first + int(keep_log), progress.training
    if checkpoint is not None and (content := checkpoint.load()) is not None:
        progress.restore(*content)
        logger.info("continuing after epoch %d", progress.epoch)
    with nullcontext() if learner.batch else defer_signals():
        while progress.epoch < last:
            if patience is not None and training.weights and progress.epoch - training.epoch >= patience:
                break
            begin = time.perf_counter()
            log = progress.log if progress.epoch < log_end else None
            stats = problem.visit(learner, progress.state, progress.epoch, log)
            seconds, passes = time.perf_counter() - begin, learner.updates(progress.state) if learner.batch else 1
            if stats.skipped and not training.skipped:
                logger.warning(
                    "some updates were skipped because variances became too small; see `skipped` in the history"
                )
            training.skipped += stats.skipped

            progress.epoch += 1
            with np.errstate(all="ignore"):  # what is not finite is refused below
                weights = predictors(learner, progress.state)
                line = history_line(passes * corpus.nonzeros, stats, weights[predictor], seconds)
            line["epoch"] = progress.epoch
            require_finite(learner, line, weights)
            epoch = Epoch(line, weights[predictor])
            for observe in observers:
                observe(epoch)
            weights[predictor] = epoch.weights
            training.history.append(line)

            score = float(progress.epoch) if epoch.score is None else epoch.score
            if progress.best_score is None or score > progress.best_score:
                progress.best_score = score
                training.weights, training.state, training.epoch = weights, copy_state(progress.state), progress.epoch
                progress.marks = progress.log.marks() if progress.log is not None else progress.marks
            if checkpoint is not None and (checkpoint.due() or signal_pending()):
                checkpoint.save(*progress.dump())
            check()
    training.log = progress.log.head(*progress.marks) if progress.log is not None else None
    return training


def epoch_order(lists: int, seed: int, epoch: int, shuffle: bool, part: int = 0) -> np.ndarray:
    """int64 [lists]: the order of an epoch over a part, from these numbers alone: continuing needs no others."""
    return np.random.default_rng([seed, epoch, part]).permutation(lists) if shuffle else np.arange(lists)


def part_order(parts: int, seed: int, epoch: int, shuffle: bool) -> np.ndarray:
    """int64 [parts]: the order in which an epoch visits the parts of its lists."""
    return np.random.default_rng([seed, epoch, 0, 1]).permutation(parts) if shuffle else np.arange(parts)


def predictors(learner: Learner, state: State) -> dict[str, Weights]:
    """The predictors of a state, by name."""
    keeps_average = learner.batch or sums_of(state).size > 0
    return {"last": learner.last(state)} | ({"average": learner.average(state)} if keeps_average else {})


@dataclass
class TrainingState:
    """The progress of a training, all that continuing depends on: the state after so many epochs, and the best."""

    training: Training
    state: State
    epoch: int
    log: UpdateLog | None
    best_score: float | None = None
    marks: tuple[int, int] = (0, 0)

    def dump(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return the progress after an epoch, as JSON and arrays; predictors follow from the best state and bases."""
        training, states = self.training, {"state": self.state, "best": self.training.state}
        arrays = {f"{key}_{name}": np.asarray(a) for key, of in states.items() for name, a in of._asdict().items()}
        if self.log is not None:
            arrays |= {f"log_{name}": array for name, array in self.log.arrays().items()}
        header = {
            "training": {name: getattr(training, name) for name in ("epoch", "history", "skipped")},
            "base": {name: weights.base for name, weights in training.weights.items()},
            "progress": {name: getattr(self, name) for name in ("epoch", "best_score", "marks")},
        }
        return header, arrays

    def restore(self, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """The inverse of ``dump``."""
        kind, training = type(self.state), self.training
        for of, values in ((training, header["training"]), (self, header["progress"])):
            for name, value in values.items():
                setattr(of, name, value)
        self.marks = (int(self.marks[0]), int(self.marks[1]))
        self.state, training.state = (
            kind(**{name: arrays[f"{key}_{name}"] for name in kind._fields}) for key in ("state", "best")
        )
        if self.log is not None:
            self.log = UpdateLog.from_arrays({key[4:]: array for key, array in arrays.items() if key[:4] == "log_"})
        best = predictors(training.learner, training.state)
        training.weights = {name: weights._replace(base=header["base"][name]) for name, weights in best.items()}


def bytes_needed(learner: Learner, columns: int) -> int:
    """Bytes for training on this many columns: the learner's state, that of the best epoch, predictors, scratch
    space."""
    small, large = (
        sum(int(array.nbytes) for array in learner.init(width)) for width in (SAMPLE_COLUMNS, 2 * SAMPLE_COLUMNS)
    )
    return columns * (2 * (large - small) // SAMPLE_COLUMNS + PREDICTORS + SCRATCH)


def require_source(learner: Learner, pairs: PairSource) -> None:
    """Refuse a pair source that ``learner`` cannot learn from, or of which its loss takes no notice."""
    loss = learner.loss_type()
    if learner.sources and pairs.name not in learner.sources:
        raise RecipeError(
            f"found {pairs.name!r}; expected {' or '.join(learner.sources)} for the learner {learner.name!r}",
            key="training.pairs.name",
        )
    if loss.sources and pairs.name not in loss.sources:
        message = (
            f"found {pairs.name!r}, which changes nothing for the loss {loss.name}: it looks at all candidates, not at "
            f"pairs; expected {' or '.join(loss.sources)}, or a loss of pairs, as {{loss: logistic}}"
        )
        raise RecipeError(message, key="training.pairs.name")


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


def history_line(nonzeros: int, stats: EpochStats, weights: Weights, seconds: float) -> dict[str, Any]:
    """The numbers of an epoch, with the nonzeros that it visited and the seconds that it took."""
    return {
        "mistakes": stats.mistakes,
        "updates": stats.updates,
        "skipped": stats.skipped,
        "loss": stats.loss / max(1, stats.lists),
        "nonzero_weights": int(np.count_nonzero(weights.strength)),
        "norm": weights.norm,
        "base_weight": weights.base,
        "seconds": seconds,
        "nonzeros_per_second": nonzeros / seconds if seconds > 0 else 0.0,
    }


def weights_after(learner: Learner, *differences: dict[str, float]) -> dict[str, float]:
    """The weights that are not 0, to four places, after one pass over lists of an oracle and its rival.

    differences: for each list, what the oracle's features have in addition to the rival's. Base scores are 0.

    >>> from rerank.learn.rules.additive import Perceptron
    >>> weights_after(Perceptron(), {"fluent": 1}, {"fluent": -1, "short": 2})
    {'short': 2.0}
    """
    names, count = sorted({name for difference in differences for name in difference}), len(differences)
    table = np.zeros((2 * count, len(names)))
    table[::2] = [[difference.get(name, 0.0) for name in names] for difference in differences]
    rows = np.append(0, np.cumsum(np.count_nonzero(table, axis=1)))  # the rival's are empty
    corpus = Corpus(
        lists=np.arange(0, 2 * count + 1, 2), rows=rows, columns=np.nonzero(table)[1].astype(np.int32),
        values=table[table != 0],
        base=np.zeros(2 * count), gain=np.tile([1.0, 0.0], count),
        stats=np.zeros((2 * count, 0)), reference=np.zeros((count, 0)), weight=np.ones(count), width=len(names),
    )  # fmt: skip
    training = train(learner, ListProblem(corpus, np.arange(0, 2 * count, 2), 1, shuffle=False), epochs=1)
    weights = np.round(training.weights["last"].w, 4).tolist()
    return {name: weight for name, weight in zip(names, weights, strict=True) if weight}
