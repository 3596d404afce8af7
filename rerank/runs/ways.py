"""Ways to choose one of n samples that need no training, and what is known of the samples.

The first, the best by each column, the vote of all samples for their answers (self-consistency; Wang et al. 2023), and
votes weighted by each column.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np

from rerank.data.corpus import Corpus
from rerank.features.scores import means_of_answers, votes
from rerank.learn.folds import best_trial, trials
from rerank.learn.rules.maxent import Maxent
from rerank.metrics.gain import Gain
from rerank.metrics.metric import Metric
from rerank.metrics.oracle import oracles

FIRST, MAJORITY = "first", "majority vote"
MOST = 10_000  # lists that weights are learned from, drawn from all: some ten columns need no more
CHOOSING = 2_000  # lists, of those that weights are learned from, by which the penalty is chosen
PENALTY = 10.0  # of maxent, where none is chosen: with some ten columns and hundreds of lists 1 to 100 choose alike

Choose = Callable[["Samples"], np.ndarray]  # int64 [L]: the candidate that is chosen of every list


class Samples(NamedTuple):
    """Lists of candidates: candidates of list i are first[i]..first[i + 1] (int64 [L + 1]).

    answers: int32 [n], equal for equal ones of a list, -1 for none; columns: float64 [K, n]; gain: float64 [n]; fold:
    int64 [L], in which part of the cross-validation a list is held out.
    """

    first: np.ndarray
    answers: np.ndarray
    columns: np.ndarray
    gain: np.ndarray
    fold: np.ndarray

    def some(self, places: np.ndarray, first: np.ndarray) -> "Samples":
        """The candidates ``places``, in lists that begin at ``first``."""
        return self._replace(
            first=first, answers=self.answers[places], columns=self.columns[:, places], gain=self.gain[places]
        )

    def places(self, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The candidates of the lists ``chosen`` (int64 [L']), and where these lists begin among them."""
        sizes = np.diff(self.first)[chosen]
        first = np.concatenate([[0], np.cumsum(sizes)])
        return np.repeat(self.first[chosen] - first[:-1], sizes) + np.arange(first[-1]), first

    def lists(self, chosen: np.ndarray) -> "Samples":
        """The lists ``chosen`` (int64 [L'])."""
        return self.some(*self.places(chosen))._replace(fold=self.fold[chosen])

    def features(self, *, agree: bool) -> np.ndarray:
        """float64 [D, n]: the columns or, if asked for, their means over the samples of an answer, and the logarithm of
        how many these are; less their lists' means."""
        columns, sizes = np.array(self.columns), np.diff(self.first)
        if agree:
            means = means_of_answers(self.first, self.answers, columns.T).T
            columns = np.concatenate([means, votes(self.first, self.answers)[np.newaxis]])
        if columns.size:
            columns -= np.repeat(np.add.reduceat(columns, self.first[:-1], axis=1) / sizes, sizes, axis=1)
        return columns

    def corpus(self, *, agree: bool) -> Corpus:
        """The lists with their ``features`` as dense columns."""
        values = self.features(agree=agree).T.astype(np.float32)
        n, D = values.shape
        columns = np.tile(np.arange(D, dtype=np.int32), n)
        L, nothing = len(self.first) - 1, np.zeros(n)
        rows, stats, reference = np.arange(n + 1) * D, self.gain[:, None], np.ones((L, 1))
        return Corpus(
            self.first, rows, columns, values.ravel(), nothing, self.gain, stats, reference, np.ones(L), D, free=D
        )


def right_or_wrong(metric: Metric, gain: np.ndarray) -> bool:
    """Whether every candidate is either right or wrong by its gain, which is a verdict."""
    return isinstance(metric, Gain) and bool(np.isin(gain, (0, 1)).all())


def best_by(samples: Samples, values: np.ndarray) -> np.ndarray:
    """int64 [L]: the candidate with the highest value (float64 [n]), of equals the first."""
    starts = samples.first[:-1]
    highest = np.flatnonzero(values == np.repeat(np.maximum.reduceat(values, starts), np.diff(samples.first)))
    return np.asarray(highest[np.searchsorted(highest, starts)])


def voted(samples: Samples, weight: np.ndarray) -> np.ndarray:
    """int64 [L]: of every list the heaviest candidate of the answer with the most weight (float64 [n]).

    Without an answer a candidate votes for none; if none has one, the heaviest is chosen; the first of equals.
    """
    sizes = np.diff(samples.first)
    group = samples.answers + np.repeat(np.arange(sizes.size), sizes) * (int(samples.answers.max(initial=0)) + 1)
    answered = samples.answers >= 0
    totals = np.bincount(group[answered], weight[answered], minlength=int(group.max(initial=0)) + 1)
    winner = best_by(samples, np.where(answered, totals[group], -np.inf))
    elected = samples.answers == np.repeat(samples.answers[winner], sizes)
    return best_by(samples, np.where(elected, weight, -np.inf))


def softmax(samples: Samples, values: np.ndarray, *, scaled: bool) -> np.ndarray:
    """float64 [n]: e^value over the sum of those of the list; ``scaled``: in units of the deviation in the list."""
    sizes, starts = np.diff(samples.first), samples.first[:-1]
    away = values - np.repeat(np.maximum.reduceat(values, starts), sizes)
    if scaled:
        mean = np.add.reduceat(away, starts) / sizes
        spread = np.sqrt(np.add.reduceat((away - np.repeat(mean, sizes)) ** 2, starts) / sizes)
        away = away / np.repeat(np.where(spread > 0, spread, 1.0), sizes)
    raised = np.exp(away)
    return np.asarray(raised / np.repeat(np.add.reduceat(raised, starts), sizes))


def maxent_weights(
    samples: Samples, *, agree: bool, loss: Literal["log", "listnet"] = "log", folds: bool = False
) -> np.ndarray:
    """float64 [D]: those of the conditional log-linear model of ``features``; with the penalty that is best on
    ``folds``, or PENALTY."""
    corpus, learner = samples.corpus(agree=agree), Maxent(l2=PENALTY, base=0.0, loss=loss)
    if folds:
        few = corpus.take(np.arange(min(CHOOSING, corpus.list_count)))
        tried = trials(replace(learner, l2=None), few, Gain(), oracles, any_ties=True)
        learner = replace(learner, l2=best_trial(tried["all"]).l2)
    state = learner.init(corpus.width)
    learner.solve(corpus, oracles(corpus), state, any_ties=True)
    return learner.last(state).w


def scored(samples: Samples, weights: Sequence[np.ndarray], *, agree: bool) -> np.ndarray:
    """float64 [n]: the scores of candidates, by the weights of the folds that their lists are held out in."""
    by_list = np.array(weights)[samples.fold].T
    return np.asarray((samples.features(agree=agree) * np.repeat(by_list, np.diff(samples.first), axis=1)).sum(axis=0))


def systems(samples: Samples, names: Sequence[str]) -> dict[str, Choose]:
    """Ways to choose, by name, that need no training."""
    ways: dict[str, Choose] = {FIRST: lambda lists: lists.first[:-1]}
    answered = samples.answers.max(initial=-1) >= 0
    if answered:
        ways[MAJORITY] = lambda lists: voted(lists, np.ones(lists.gain.size))
    for k, name in enumerate(names):
        ways[f"best {name}"] = lambda lists, k=k: best_by(lists, lists.columns[k])  # type: ignore[misc]
        if answered:
            ways[f"vote by {name}"] = lambda lists, k=k: voted(lists, softmax(lists, lists.columns[k], scaled=True))  # type: ignore[misc]
    return ways
