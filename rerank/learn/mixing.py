"""Mixing: sections of the lists are learned separately, by threads, and their predictors combined.

A section goes on from its own state in every epoch; what is combined is evaluated only. The last predictors are
averaged, or (KL) Gaussians are weighted by how sure they are of every weight (Crammer, Dredze & Pereira 2012, section
7.10). The average predictor is that over all predictors of all sections, each weighted by the lists that it survived.
The sections and the seeds of their epochs depend on the mixing alone, so the result has the same bits with any number
of threads.
"""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from rerank.base.errors import RecipeError
from rerank.base.interrupts import check
from rerank.data.corpus import Corpus
from rerank.kernels.threads import thread_count
from rerank.learn.average import survived_sums
from rerank.learn.base import Learner, State, Weights
from rerank.learn.predictor import SEEN, predictor_of, weights_of
from rerank.learn.rules.gaussian import GREATEST, MEAN, VARIANCE, Gaussian
from rerank.learn.trainer import POINTS, Evaluate, Training, epoch_order, history_line, require_finite
from rerank.learn.workspace import EpochStats


@dataclass(frozen=True)
class Mixing:
    """shards: into how many sections the lists are divided; rule: how their last predictors are combined."""

    shards: int
    rule: Literal["mean", "kl"] = "mean"


@dataclass(frozen=True)
class Piece:
    """A section: lists, their oracles (int64 [L]), the seed of their orders, and what was learned from them."""

    corpus: Corpus
    oracle: np.ndarray
    seed: int
    state: State


def train_mixed(
    learner: Learner,
    corpus: Corpus,
    oracle: np.ndarray,
    *,
    mixing: Mixing,
    epochs: int,
    seed: int,
    shuffle: bool = True,
    predictor: str = "average",
    evaluate_dev: Evaluate | None = None,
) -> Training:
    """``train`` by mixing; see there. A single section is trained exactly as without mixing.

    What is kept is the last epoch. There is no one state to continue from, and no updates are logged.
    """
    require_rule(learner, mixing.rule)
    sections = divide(learner, corpus, oracle, mixing.shards, seed)
    training = Training(learner, {}, None, None, epochs)
    with ThreadPoolExecutor(min(thread_count(), len(sections))) as pool:
        for epoch in range(epochs):
            check()
            started = time.perf_counter()

            def learn(part: Piece, epoch: int = epoch) -> list[EpochStats]:
                """An epoch over a section."""
                order = epoch_order(part.corpus.list_count, part.seed, epoch, shuffle)
                return learner.epoch(part.corpus, part.oracle, order, part.state, points=POINTS)

            stats = [points for part in pool.map(learn, sections) for points in part]  # kernels hold no lock
            training.extend(stats)
            training.weights = combined(learner, sections, mixing.rule)
            seconds = time.perf_counter() - started
            chosen = training.weights[predictor]
            line = history_line(corpus.nonzeros, stats, chosen, seconds) | {"epoch": epoch + 1}
            require_finite(learner, line, training.weights)
            if evaluate_dev is not None:
                line["dev"] = evaluate_dev(chosen)
            training.history.append(line)
    return training


def require_rule(learner: Learner, rule: str) -> None:
    """Refuse learners without epochs, and KL for those without variances of single weights."""
    if learner.batch:
        message = f"{learner.name} finds one optimum, in one go; leave it out"
        raise RecipeError(message, key="training.mixing")
    if rule == "kl" and (not isinstance(learner, Gaussian) or learner.full):
        message = f"{learner.name} keeps no variance of each weight; take mean"
        raise RecipeError(message, key="training.mixing.rule")


def divided(lists: int, count: int, seed: int) -> list[tuple[int, int, int]]:
    """(first, last + 1, seed) of ``count`` contiguous sections, or of one per list where there are fewer lists.

    Their numbers of lists differ by one at most. A single section has the seed itself; several have seeds of their own,
    since sections of equal size would otherwise have the same order.
    """
    count = max(1, min(count, lists))
    bounds = [lists * number // count for number in range(count + 1)]
    own = [np.random.SeedSequence([seed, number]).generate_state(1)[0] for number in range(count)]
    seeds = own if count > 1 else [seed]
    return [(first, last, int(part_seed)) for (first, last), part_seed in zip(pairwise(bounds), seeds, strict=True)]


def divide(learner: Learner, corpus: Corpus, oracle: np.ndarray, count: int, seed: int) -> list[Piece]:
    """``count`` sections, of which nothing is learned yet."""
    sections = []
    for first, last, own_seed in divided(corpus.list_count, count, seed):
        part, targets = corpus.slice(first, last), oracle[first:last]
        targets = np.where(targets >= 0, targets - corpus.lists[first], -1)
        sections.append(Piece(part, targets, own_seed, learner.init(part.width, part.candidate_count)))
    return sections


def combined(learner: Learner, sections: Sequence[Piece], rule: str) -> dict[str, Weights]:
    """The predictors of all sections."""
    ends = [part.state for part in sections]
    if len(ends) == 1:
        return {"last": learner.last(ends[0]), "average": learner.average(ends[0])}
    seen = sum(int(end.counts[SEEN]) for end in ends)
    average = np.asarray(sum(survived_sums(end, learner.shrinks) for end in ends) / seen)
    mean = np.asarray(sum(1.0 / len(ends) * weights_of(end) for end in ends))
    last = product_of_gaussians(ends) if rule == "kl" else mean
    made = {"last": last, "average": average}
    return {name: predictor_of(w, learner.base, learner.base_rate) for name, w in made.items()}


def product_of_gaussians(ends: Sequence[State]) -> np.ndarray:
    """float64 [D + 1]: μ = (Σ Σ_s⁻¹)⁻¹ Σ Σ_s⁻¹μ_s."""
    unit = np.max([end.memory for end in ends], axis=0)
    precision, weighted = np.zeros((2, len(ends[0].cells)))
    for end in ends:
        certainty = 1.0 / variances(end, unit)
        precision, weighted = precision + certainty, weighted + certainty * end.cells[:, MEAN]
    return np.asarray(weighted / precision)


def variances(end: State, unit: np.ndarray) -> np.ndarray:
    """float64 [D + 1]: Σ_jj, in these units where scales matter; see ``gaussian.variance_of``."""
    variance = end.cells[:, VARIANCE]
    if unit.size == 0:
        return np.asarray(variance)
    some = np.where(unit > 0, unit, 1.0)
    unseen = np.where(unit > 0, 1.0 / some / some, variance)
    return np.minimum(np.where(end.memory > 0, variance * (end.memory / some) ** 2, unseen), GREATEST)
