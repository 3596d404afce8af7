"""The data that maxent learns from, and with which penalty: cross-validation over the training lists.

The lists (of dense columns alone, the last ENOUGH) are cut into FOLDS sections of neighbours (lists of one document
stay together), each of which is held out in turn. Dense columns alone are tried with every penalty, all columns with
the smaller ones, from the largest down to the first that brings nothing. Dense columns alone are taken unless all
columns are better by more than one standard error of the difference (Breiman et al. 1984, section 3.4.3), and the base
score alone unless they are by half of one.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from rerank.data.shards import Corpora, Shards, reference_rows, section, whole
from rerank.features.dense import dense_alone
from rerank.learn.base_weight import base_unit
from rerank.learn.predictor import State, copy_state
from rerank.learn.rules.maxent import Maxent
from rerank.learn.scoring import Weights, candidate_scores, weighed_rows
from rerank.metrics.base import Metric
from rerank.metrics.oracle import base_rows
from rerank.metrics.significance import compare

FOLDS = 5
# The largest is best on one of five sets of 50 to 3,703 lists; a larger one would at times be chosen by chance.
PENALTIES = (1e3, 100.0, 10.0, 1.0)
SPARSE_PENALTIES = (100.0, 10.0, 1.0)  # with all columns, where not all are dense
FEW = 10.0  # the penalty where there is only one list
ENOUGH = 10_000  # lists, the last ones, for a choice among dense columns: their few weights need no more
BUDGET = 2e7  # nonzeros of all columns in all folds together: with more, fewer folds are held out, one at least
HURRY = 40  # iterations in a fold with columns that are not dense
ONE_ERROR, SAMPLES = 0.6827, 1000  # the middle of a normal distribution within ±1 deviation; bootstrap samples
# In standard errors, what the base score has to be beaten by. With 0, noise of 3,703 transcripts was learned from; with
# 1, nothing where it had won .2 to 1 points on re-splits of samples of language models.
AHEAD = 0.5

FOLD_TOLERANCE = 1e-5  # of what is learned in folds, which is thrown away: relative to the loss

Columns = Literal["dense", "all"]


@dataclass(frozen=True)
class FoldTrial:
    """A setting, its score on the lists held out, the statistics of what it selects there (float64 [L', K]), and the
    scores of all candidates there (float64 [N'])."""

    columns: Columns
    l2: float
    score: float
    rows: np.ndarray
    scores: np.ndarray


@dataclass(frozen=True)
class Choice:
    """The choice of cross-validation, and its reasons.

    lists: how many were held out; base, score: of the base and of what was chosen there; other: of the columns that
    were not, if they were tried, and error the standard error of the difference; beaten: is the base, by AHEAD
    standard errors? tried: every setting that was; held: the scores of all candidates held out, the last of the lists
    (float64 [N']).
    """

    columns: Columns
    l2: float
    lists: int = 0
    base: float = 0.0
    score: float = 0.0
    other: float | None = None
    error: float = 0.0
    beaten: bool = True
    tried: tuple[FoldTrial, ...] = ()
    held: np.ndarray = field(default_factory=lambda: np.zeros(0), compare=False)

    def text(self, metric: Metric) -> str:
        """The choice, for the log."""
        named = {"dense": "dense columns alone", "all": "all columns"}
        shown = [f"{named[self.columns]}, l2 {self.l2:g}"]
        if self.lists:
            shown.append(f"{metric.text(self.score)} on {self.lists} training lists held out in turn")
            shown.append(f"base {metric.text(self.base)}")
        if self.other is not None:
            other = named["all" if self.columns == "dense" else "dense"]
            shown.append(f"{other} {metric.text(self.other)}, standard error {metric.text(self.error)}")
        return "; ".join(shown)

    def as_dict(self) -> dict[str, Any]:
        """The entry ``columns`` of ``training`` in metrics.json."""
        tried = [{"columns": trial.columns, "l2": trial.l2, "score": trial.score} for trial in self.tried]
        kept = "columns", "l2", "lists", "base", "score", "other", "error", "beaten"
        return {key: getattr(self, key) for key in kept} | {"tried": tried}


def with_base_column(learner: Maxent, lists: Corpora) -> Maxent:
    """``learner`` with the base score as one more dense column, in units of its deviation within ``lists``."""
    return replace(learner, base=0.0, base_rate=base_unit(lists) or 1.0)


def choose(
    learner: Maxent,
    lists: Corpora,
    metric: Metric,
    targets: Callable[[Corpora], np.ndarray],
    start: State | None = None,
    *,
    any_ties: bool,
) -> Choice:
    """The columns and the penalty for ``learner``, as far as it leaves them open.

    targets: the oracles of lists (int64 [L]); start: where every fold starts from, by default 0; any_ties: see
    ``Learner.epoch``.
    """
    begun = learner.init(lists.width) if start is None else start
    several = 0 < lists.free < lists.width
    kinds: list[Columns] = ["dense"] if several and learner.columns != "all" else []
    kinds += ["all"] if not several or learner.columns != "dense" else []
    if lists.list_count < 2:
        return Choice(kinds[0], FEW if learner.l2 is None else learner.l2)
    sign = -1.0 if metric.lower_is_better else 1.0
    reference = reference_rows(lists)

    def score_of(rows: np.ndarray) -> float:
        """The score on the last lists, as many as have rows; higher is better."""
        return sign * float(metric.scores(rows.sum(axis=0), reference[-len(rows) :].sum(axis=0)))

    trials: dict[Columns, list[FoldTrial]] = {kind: [] for kind in kinds}
    for kind, tried in trials.items():
        corpus = dense_alone(latest(lists)) if kind == "dense" else lists
        if corpus.free == corpus.width:
            corpus = latest(corpus)
        slow = kind == "all" and several
        folds = list(held_out(corpus))
        states = [cut_state(begun, corpus.width) for _ in folds]
        for l2 in (SPARSE_PENALTIES if slow else PENALTIES) if learner.l2 is None else (learner.l2,):
            made = replace(learner, l2=l2, iterations=min(learner.iterations, HURRY) if slow else learner.iterations)
            rows, scored = [], []
            for state, (rest, apart) in zip(states, folds, strict=True):
                made.solve(rest, targets(rest), state, any_ties=any_ties, tolerance=FOLD_TOLERANCE)
                rows.append(weighed_rows(apart, made.last(state), metric))
                scored.append(candidate_scores(apart, made.last(state)))
            both = np.concatenate(rows), np.concatenate(scored)
            tried.append(FoldTrial(kind, l2, score_of(both[0]), *both))
            if slow and len(tried) > 1 and tried[-1].score <= tried[-2].score:
                break
    base = base_rows(lists, metric)

    def ahead(one: np.ndarray, other: np.ndarray) -> tuple[float, float]:
        """The lead of one selection over another on the last lists, which both have, and its standard error."""
        size = min(len(one), len(other))
        how: dict[str, Any] = {"test": "paired_bootstrap", "samples": SAMPLES, "confidence": ONE_ERROR}
        test = compare(metric, one[-size:], other[-size:], reference[-size:], **how)
        return sign * test.difference, (test.high - test.low) / 2

    best = [max(tried, key=lambda each: each.score) for tried in trials.values()]
    chosen, other, error = best[0], None, 0.0
    if len(best) > 1:
        lead, error = ahead(best[1].rows, best[0].rows)
        chosen, other = best[lead > error], sign * best[lead <= error].score
    lead, unsure = ahead(chosen.rows, base)
    base_score, score = sign * score_of(base[-len(chosen.rows) :]), sign * chosen.score
    shown = tuple(replace(each, score=sign * each.score) for tried in trials.values() for each in tried)
    beaten = lead > 0 and lead >= AHEAD * unsure
    held = len(chosen.rows)
    return Choice(chosen.columns, chosen.l2, held, base_score, score, other, error, beaten, shown, chosen.scores)


def latest(lists: Corpora) -> Corpora:
    """The last ENOUGH lists."""
    return section(lists, max(0, lists.list_count - ENOUGH), lists.list_count)


def held_out(lists: Corpora) -> Iterator[tuple[Corpora, Corpora]]:
    """(the others, those held out) for every section, or for the last ones where the lists are too large for all."""
    if isinstance(lists, Shards) and lists.changes:  # which know lists by their numbers among all
        lists = whole(lists)
    count = min(FOLDS, lists.list_count)
    few = count if lists.free == lists.width else int(np.clip(BUDGET // max(1, lists.nonzeros), 1, count))
    for first, last in sections(lists.list_count, count)[-few:]:
        rest = np.concatenate([np.arange(first), np.arange(last, lists.list_count)])
        yield lists.take(rest), section(lists, first, last)


def sections(count: int, folds: int = FOLDS) -> list[tuple[int, int]]:
    """The sections of ``count`` lists, each from its first list to the one after its last."""
    return list(pairwise(np.linspace(0, count, folds + 1).astype(int).tolist()))


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
