"""Epochs in a seeded order, a look at dev after each, and the best of them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rerank.corpus import Corpus
from rerank.learn.base import Learner, State, Weights
from rerank.learn.log import UpdateLog
from rerank.learn.pairs import PairSource, require_source
from rerank.learn.workspace import EpochStats

logger = logging.getLogger("rerank")
POINTS = 20  # points of the curves of an epoch
ORACLE_PAIRS = PairSource()

Evaluate = Callable[[Weights], float]


@dataclass
class Training:
    """What training gives: the best epoch by dev score (the last one where there is no dev).

    weights: by predictor ("last", "average"); state: the learner's, to go on from; log: the updates up to the best
    epoch, if they were kept; epoch: the number of epochs behind the weights; history: a line an epoch;
    samples, mistakes (cumulative), nonzero_weights: the curve; radius: largest norm of a difference vector; skipped:
    updates that were left out because numbers became too small for them.
    """

    learner: Learner
    weights: dict[str, Weights]
    state: State
    log: UpdateLog | None
    epoch: int
    history: list[dict[str, Any]] = field(default_factory=list)
    samples: list[int] = field(default_factory=list)
    mistakes: list[int] = field(default_factory=list)
    nonzero_weights: list[int] = field(default_factory=list)
    radius: float = 0.0
    skipped: int = 0

    def extend(self, stats: list[EpochStats]) -> None:
        """Add the parts of an epoch to the curve."""
        for part in stats:
            self.samples.append((self.samples[-1] if self.samples else 0) + part.lists)
            self.mistakes.append((self.mistakes[-1] if self.mistakes else 0) + part.mistakes)
            self.nonzero_weights.append(part.nonzero_weights)
            self.radius = max(self.radius, part.radius)
            self.skipped += part.skipped


def copy_state(state: State) -> State:
    """A state of its own arrays."""
    return type(state)(*(np.array(array) for array in state))


def epoch_order(lists: int, seed: int, epoch: int, shuffle: bool) -> np.ndarray:
    """int64 [L]: the order of an epoch, from seed and epoch alone, so that going on needs no generator's state."""
    return np.random.default_rng([seed, epoch]).permutation(lists) if shuffle else np.arange(lists)


def train(
    learner: Learner,
    corpus: Corpus,
    oracle: np.ndarray,
    *,
    epochs: int,
    seed: int,
    shuffle: bool = True,
    any_ties: bool = False,
    pairs: PairSource = ORACLE_PAIRS,
    predictor: str = "average",
    patience: int | None = None,
    evaluate_train: Evaluate | None = None,
    evaluate_dev: Evaluate | None = None,
    warm: tuple[State, int] | None = None,
    keep_log: bool = False,
    on_epoch: Callable[[dict[str, Any]], None] | None = None,
) -> Training:
    """Train for ``epochs`` passes and keep the best.

    Parameters
    ----------
    oracle: int64 [L], absolute candidates; any_ties: its equals in gain count as correct too.
    pairs: which candidates of a list are compared.
    evaluate_train, evaluate_dev: from a predictor to a score, higher is better; of ``predictor``.
    patience: stop after so many epochs without a better dev score.
    warm: a state to go on from (of another corpus: one that was adopted), and how many epochs it has seen.
    keep_log: log the updates (for voting, and for bounds).
    on_epoch: called with the history line of every epoch.

    Raises
    ------
    RecipeError: the learner cannot learn from such pairs.
    """
    require_source(learner, pairs)
    if warm is not None:
        state, done = copy_state(warm[0]), warm[1]
    else:
        state, done = learner.init(corpus.width, corpus.candidate_count), 0
    log = UpdateLog() if keep_log else None
    training = Training(learner, {}, None, log, 0)
    best_score, best_epoch, marks = -np.inf, done, (0, 0)
    for epoch in range(done, done + epochs):
        order = epoch_order(corpus.list_count, seed, epoch, shuffle)
        start = time.perf_counter()
        rule = pairs.rule(seed, epoch)
        stats = learner.epoch(
            corpus, oracle, order, state, any_ties=any_ties, log=log, points=POINTS, pairs=rule
        )  # fmt: skip
        seconds = time.perf_counter() - start
        if any(part.skipped for part in stats) and not training.skipped:
            logger.warning("some updates are left out: variances became too small; see `skipped` in the history")
        training.extend(stats)
        weights = {"last": learner.last(state), "average": learner.average(state)}
        line = _history(corpus, stats, weights[predictor], seconds) | {"epoch": epoch + 1}
        if evaluate_train is not None:
            line["train"] = evaluate_train(weights[predictor])
        if evaluate_dev is not None:
            line["dev"] = evaluate_dev(weights[predictor])
        training.history.append(line)
        score = line.get("dev", float(epoch))
        if on_epoch is not None:
            on_epoch(line)
        if score > best_score or not training.weights:
            best_score, best_epoch = score, epoch + 1
            training.weights, training.state, training.epoch = weights, copy_state(state), epoch + 1
            marks = log.marks() if log is not None else marks
        elif patience is not None and epoch + 1 - best_epoch >= patience:
            break
    training.log = log.cut(marks) if log is not None else None
    return training


def _history(corpus: Corpus, stats: list[EpochStats], weights: Weights, seconds: float) -> dict[str, Any]:
    """The numbers of an epoch."""
    lists = sum(part.lists for part in stats)
    return {
        "mistakes": sum(part.mistakes for part in stats),
        "updates": sum(part.updates for part in stats),
        "skipped": sum(part.skipped for part in stats),
        "loss": sum(part.loss for part in stats) / max(1, lists),
        "nonzero_weights": int(np.count_nonzero(weights.w)),
        "norm": float(np.linalg.norm(weights.w)),
        "base_weight": weights.base,
        "seconds": seconds,
        "nonzeros_per_second": corpus.nonzeros / seconds if seconds > 0 else 0.0,
    }
