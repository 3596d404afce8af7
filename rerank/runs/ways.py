"""Ways to choose one of n samples that need no training, and what is known of the samples.

The first, the best by each column, the vote of all samples for their answers (self-consistency; Wang et al. 2023), and
votes weighted by each column.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal, NamedTuple

import numpy as np

from rerank.data.corpus import Corpus
from rerank.features.scores import agreement_of
from rerank.kernels.compile import kernel
from rerank.learn.rules.maxent import Maxent
from rerank.metrics.oracle import oracles
from rerank.readers.lists import numbered
from rerank.runs.second_pass import RereadList

FIRST, MAJORITY = "first", "majority vote"
BY_COLUMN = "best ", "vote by "  # and the name of the column
MOST = 10_000  # lists that weights are learned from, drawn from all: some ten columns need no more
PENALTY = 10.0  # of maxent: with some ten columns and hundreds of lists any from 1 to 100 gives the same choices

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
        """float64 [D, n]: the columns and, if asked for, those of agreement; less their lists' means."""
        every = [self.columns]
        if agree:
            every.append(agreement_of(self.first, self.answers, np.ascontiguousarray(self.columns)))
        found, sizes = np.concatenate(every), np.diff(self.first)
        if found.size:
            found -= np.repeat(np.add.reduceat(found, self.first[:-1], axis=1) / sizes, sizes, axis=1)
        return found

    def corpus(self, *, agree: bool) -> Corpus:
        """The lists with their ``features`` as dense columns."""
        found = self.features(agree=agree).T.astype(np.float32)
        n, D = found.shape
        columns = np.tile(np.arange(D, dtype=np.int32), n)
        L, nothing = len(self.first) - 1, np.zeros(n)
        rows, stats, reference = np.arange(n + 1) * D, self.gain[:, None], np.ones((L, 1))
        return Corpus(
            self.first, rows, columns, found.ravel(), nothing, self.gain, stats, reference, np.ones(L), D, free=D
        )


@kernel
def vote(first: np.ndarray, answers: np.ndarray, weight: np.ndarray, totals: np.ndarray, chosen: np.ndarray) -> None:
    """Choose from every list the heaviest candidate of the answer with the most weight (float64 [n]).

    Without an answer a candidate votes for none; if none has one, the heaviest is chosen; the first of equals. totals:
    zeros float64 [V], scratch; chosen: int64 [L].
    """
    for i in range(chosen.shape[0]):
        a, b, best = first[i], first[i + 1], -1
        for y in range(a, b):
            if answers[y] >= 0:
                totals[answers[y]] += weight[y]
        for y in range(a, b):
            if answers[y] < 0:
                continue
            if (
                best < 0
                or totals[answers[y]] > totals[answers[best]]
                or (answers[y] == answers[best] and weight[y] > weight[best])
            ):
                best = y
        if best < 0:
            best = a
            for y in range(a, b):
                if weight[y] > weight[best]:
                    best = y
        for y in range(a, b):
            if answers[y] >= 0:
                totals[answers[y]] = 0.0
        chosen[i] = best


def voted(samples: Samples, weight: np.ndarray) -> np.ndarray:
    """int64 [L]: what ``vote`` chooses."""
    chosen = np.empty(len(samples.first) - 1, np.int64)
    vote(samples.first, samples.answers, weight, np.zeros(int(samples.answers.max(initial=0)) + 1), chosen)
    return chosen


def best_by(samples: Samples, values: np.ndarray) -> np.ndarray:
    """int64 [L]: the candidate with the highest value (float64 [n]), of equals the first."""
    return voted(samples._replace(answers=np.full(values.size, -1, np.int32)), values)


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


def maxent_weights(samples: Samples, *, agree: bool, loss: Literal["log", "listnet"] = "log") -> np.ndarray:
    """float64 [D]: those of the conditional log-linear model of ``features``."""
    corpus, learner = samples.corpus(agree=agree), Maxent(l2=PENALTY, base=0.0, loss=loss)
    state = learner.init(corpus.width)
    learner.solve(corpus, oracles(corpus), state, any_ties=True)
    return learner.last(state).w


def scored(samples: Samples, weights: Sequence[np.ndarray], *, agree: bool) -> np.ndarray:
    """float64 [n]: the scores of candidates, by the weights of the folds that their lists are held out in."""
    by_list = np.array(weights)[samples.fold].T
    return np.asarray((samples.features(agree=agree) * np.repeat(by_list, np.diff(samples.first), axis=1)).sum(axis=0))


def systems(samples: Samples, names: Sequence[str]) -> dict[str, Choose]:
    """Ways to choose, by name, that need no training."""
    ways: dict[str, Choose] = {
        FIRST: lambda lists: lists.first[:-1],
        MAJORITY: lambda lists: voted(lists, np.ones(lists.gain.size)),
    }
    if samples.answers.max(initial=-1) < 0:
        del ways[MAJORITY]
    for k, name in enumerate(names):
        ways[BY_COLUMN[0] + name] = partial(lambda lists, k: best_by(lists, lists.columns[k]), k=k)
        if MAJORITY in ways:
            ways[BY_COLUMN[1] + name] = partial(
                lambda lists, k: voted(lists, softmax(lists, lists.columns[k], scaled=True)), k=k
            )
    return ways


class Answered:
    """A reading of the lists of a split for ``systems``: their answers and their columns, and no gains."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names
        self._seen = list[tuple[int, np.ndarray, np.ndarray]]()  # of a list: its first candidate, answers, columns

    def part(self, lists: int, candidates: slice) -> "Answered":  # noqa: ARG002
        return Answered(self.names)

    def join(self, part: "Answered", first: int, candidate: int) -> None:  # noqa: ARG002
        self._seen += [(first + number, answers, columns) for number, answers, columns in part._seen]

    def see(self, again: RereadList) -> None:
        nbest = again.pair.nbest.named()
        columns = nbest.scores[:, [nbest.names.index(name) for name in self.names]].T
        self._seen.append((again.number, numbered(nbest), columns))

    def skip(self) -> None:
        pass

    def choices(self, lists: np.ndarray) -> dict[str, np.ndarray]:
        """int64 [L] by way: the candidates that are chosen of the lists lists[i]..lists[i + 1] (int64 [L + 1]), -1 of
        those that were passed over; nothing where no list has an answer, or by a column that says nothing."""
        if not self._seen or all(answers.max(initial=-1) < 0 for _, answers, _ in self._seen):
            return {}
        numbers, answers, columns = zip(*self._seen, strict=True)
        first = np.concatenate([[0], np.cumsum([each.size for each in answers])])
        values, nothing = np.concatenate(columns, axis=1), np.zeros(first[-1])
        varying = np.flatnonzero((values != values[:, :1]).any(axis=1))
        every = Samples(first, np.concatenate(answers), values[varying], nothing, first[:-1] * 0)
        chosen, own = dict[str, np.ndarray](), np.array(numbers)
        for name, way in systems(every, [self.names[k] for k in varying.tolist()]).items():
            places = np.full(lists.size - 1, -1)
            places[own] = lists[:-1][own] + way(every) - first[:-1]
            chosen[name] = places
        return chosen
