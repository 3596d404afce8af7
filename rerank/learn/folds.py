"""The penalty that maxent learns with, from dense columns and from all: cross-validation over the training lists.

The lists (of dense columns alone, the last ENOUGH) are cut into FOLDS sections of neighbours (lists of one document
stay together), each of which is held out in turn. Dense columns alone are tried with every penalty, all columns with
the smaller ones, from the largest down to the first that brings nothing. What the model is made of: see ``members``.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np

from rerank.data.corpus import Corpus, dense_alone
from rerank.learn.predictor import State, copy_state
from rerank.learn.rules.maxent import Maxent
from rerank.learn.scoring import Weights, scores, weighed_rows
from rerank.metrics.metric import Metric

FOLDS = 5
PENALTIES = (1e5, 1e4, 1e3, 100.0, 10.0, 1.0)
SPARSE_PENALTIES = (100.0, 10.0, 1.0)  # with all columns, where not all are dense
FEW = 10.0  # the penalty where there is only one list
ENOUGH = 10_000  # lists, the last ones, for a choice among dense columns: their few weights need no more
BUDGET = 2e7  # nonzeros of all columns in all folds together: with more, fewer folds are held out, one at least
HURRY = 40  # iterations in a fold with columns that are not dense
FOLD_TOLERANCE = 1e-5  # of what is learned in folds, which is thrown away: relative to the loss

# The base score, the best single column, and what is learned: listnet and pointwise are dense columns by other losses.
Columns = Literal["base", "column", "dense", "all", "listnet", "pointwise"]


@dataclass(frozen=True)
class Member:
    """A predictor on the lists held out: its score (higher is better), the statistics of what it selects (float64
    [L', K]), and the scores of all candidates (float64 [N']).

    l2: the penalty that it was learned with. weights: of what has nothing to learn. again: of the free columns, and
    last of the score that all columns make, where these are weighed again. factor: of its scores in the sum, 0 where it
    is left out.
    """

    name: Columns
    score: float
    rows: np.ndarray
    scores: np.ndarray
    l2: float = 0.0
    weights: Weights | None = None
    again: Weights | None = None
    factor: float = 0.0


def with_base_column(learner: Maxent, lists: Corpus) -> Maxent:
    """``learner`` with the base score as one more dense column, in units of its deviation within ``lists``."""
    from rerank.learn.base_weight import base_unit  # with the search for it

    return replace(learner, base=0.0, base_rate=base_unit(lists) or 1.0)


def trials(
    learner: Maxent, lists: Corpus, metric: Metric, targets: Callable[[Corpus], np.ndarray], start: State | None = None,
    *, any_ties: bool,
) -> dict[Columns, list[Member]]:  # fmt: skip
    """All settings that were tried for ``learner``, as far as it leaves them open, by columns.

    A single list has nothing to hold out.

    targets: the oracles of lists (int64 [L]); start: where every fold starts from, by default 0; any_ties: see
    ``Learner.epoch``.
    """
    begun = learner.init(lists.width) if start is None else start
    several = 0 < lists.free < lists.width
    kinds: list[Columns] = ["dense"] if several and learner.columns != "all" else []
    kinds += ["all"] if not several or learner.columns != "dense" else []
    if lists.list_count < 2:
        l2 = FEW if learner.l2 is None else learner.l2
        return {kinds[0]: [Member(kinds[0], 0.0, np.zeros((0, len(metric.columns))), np.zeros(0), l2)]}

    def material(rest: Corpus) -> Material:
        return Material(rest, targets(rest), any_ties)

    made_of = dict[Columns, list[Member]]()
    for kind in kinds:
        corpus = dense_alone(latest(lists)) if kind == "dense" else lists
        if corpus.free == corpus.width:
            corpus = latest(corpus)
        made_of[kind] = penalties_tried(kind, learner, corpus, metric, material, begun)
    return made_of


class Material(NamedTuple):
    """What is learned from: lists, the right candidates (int64 [L]), and whether all that are as good count as right.

    The first columns of ``lists`` are those that weights are wanted of.
    """

    lists: Corpus
    oracle: np.ndarray
    any_ties: bool

    def weights(self, learner: Maxent, state: State, width: int, **how: float) -> Weights:
        """Those of ``width`` columns that ``learner`` finds from ``state``, which then has them."""
        learner.solve(self.lists, self.oracle, state, any_ties=self.any_ties, **how)
        last = learner.last(state)
        return last._replace(w=last.w[:width])


def penalties_tried(
    kind: Columns,
    learner: Maxent,
    lists: Corpus,
    metric: Metric,
    material: Callable[[Corpus], Material],
    begun: State | None = None,
) -> list[Member]:
    """Every penalty that ``learner`` leaves open, the largest first, on lists held out from the ``material`` of the
    others, which begins at ``begun`` or 0."""
    slow, reference, tried = 0 < lists.free < lists.width, lists.reference, list[Member]()
    folds = [(material(rest), apart) for rest, apart in held_out(lists)]
    states = [learner.init(each.lists.width) if begun is None else cut_state(begun, lists.width) for each, _ in folds]
    for l2 in (SPARSE_PENALTIES if slow else PENALTIES) if learner.l2 is None else (learner.l2,):
        made = replace(learner, l2=l2, iterations=min(learner.iterations, HURRY) if slow else learner.iterations)
        rows, scored = [], []
        for state, (of_rest, apart) in zip(states, folds, strict=True):
            weights = of_rest.weights(made, state, lists.width, tolerance=FOLD_TOLERANCE)
            rows.append(weighed_rows(apart, weights, metric))
            scored.append(scores(apart, weights))
        both = np.concatenate(rows), np.concatenate(scored)
        tried.append(Member(kind, score_of(both[0], reference, metric), *both, l2))
        if slow and len(tried) > 1 and tried[-1].score <= tried[-2].score:
            break
    return tried


def best_trial(trials: Sequence[Member]) -> Member:
    """The one of the highest score, with the larger penalty of equals."""
    return max(trials, key=lambda trial: trial.score)


def score_of(rows: np.ndarray, reference: np.ndarray, metric: Metric) -> float:
    """The score on the last lists, as many as have ``rows``; higher is better."""
    return metric.sign * metric.score(rows, reference[len(reference) - len(rows) :])


def latest(lists: Corpus) -> Corpus:
    """The last ENOUGH lists."""
    return lists.slice(max(0, lists.list_count - ENOUGH), lists.list_count)


def held_out(lists: Corpus) -> Iterator[tuple[Corpus, Corpus]]:
    """(the others, those held out) for every section, or for the last ones where the lists are too large for all."""
    count = min(FOLDS, lists.list_count)
    few = count if lists.free == lists.width else int(np.clip(BUDGET // max(1, lists.nonzeros), 1, count))
    for first, last in sections(lists.list_count, count)[-few:]:
        rest = np.concatenate([np.arange(first), np.arange(last, lists.list_count)])
        yield lists.take(rest), lists.slice(first, last)


def sections(count: int, folds: int = FOLDS) -> list[tuple[int, int]]:
    """The sections of ``count`` lists, each from its first list to the one after its last."""
    return list(pairwise(count * fold // folds for fold in range(folds + 1)))


def padded(weights: Weights, width: int) -> Weights:
    """Weights of the first columns as those of ``width`` columns."""
    return weights._replace(w=np.append(weights.w, np.zeros(width - weights.w.size)))


def padded_state(state: State, width: int) -> State:
    """A state for the first columns as one for ``width`` columns."""
    more = np.zeros(width + 1 - state.cells.size)
    arrays = {name: getattr(state, name) for name in ("cells", "memory")}
    return state._replace(**{name: np.concatenate([a[:-1], more, a[-1:]]) for name, a in arrays.items()})


def cut_state(state: State, width: int) -> State:
    """A copy of a state for the first ``width`` columns alone."""
    arrays = {name: np.append(a[:width], a[-1]) for name in ("cells", "memory") if (a := getattr(state, name)).size}
    return copy_state(state)._replace(**arrays)
