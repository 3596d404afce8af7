"""Choice of penalties and columns for maxent: cross-validation over the training lists, and a sum of the best models.

The lists (of dense columns alone, the last MAX_LISTS_FOR_FOLDS) are cut into FOLDS sections of neighbours (lists of one
document stay together), each of which is held out in turn. Dense columns alone are tried with every penalty, all
columns with the smaller ones, from the largest down to the first that brings nothing.

The base score, the best single column, and what maxent learns from dense columns or from all are often within an error
of each other, and to pick one is to toss a coin; so are the losses: that of the best candidates of a list, of the gains
of all (listnet), or of right and wrong candidates, whatever list they are in (logistic regression). Every member that
is at most MAX_STANDARD_ERRORS behind the best is kept instead; the model is the sum of their scores, each in units of
its deviation within lists. The sum is scaled so that the right candidates of the lists held out are most likely.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise, product
from typing import Any, Literal, NamedTuple

import numpy as np

from rerank.data.corpus import Corpus, dense_alone, free_values
from rerank.learn.predictor import State, copy_state
from rerank.learn.rules.maxent import Maxent
from rerank.learn.scoring import Weights, base_unit, deviation_within, rows_of_weights, scores
from rerank.metrics.metric import Metric, oracles, rows_of_scores, scored_rows, two_valued
from rerank.metrics.significance import compare

FOLDS = 5
PENALTIES = (1e5, 1e4, 1e3, 100.0, 10.0, 1.0)
SPARSE_PENALTIES = (100.0, 10.0, 1.0)  # with all columns, where not all are dense
SINGLE_LIST_PENALTY = 10.0
MAX_LISTS_FOR_FOLDS = 10_000  # the last ones, for a choice among dense columns: their few weights need no more
FOLD_NONZEROS = 2e7  # of all columns in all folds together: with more, fewer folds are held out, one at least
FOLD_ITERATIONS = 40  # with columns that are not dense
FOLD_TOLERANCE = 1e-5  # of what is learned in folds, which is thrown away: relative to the loss
# On fresh re-splits of seven sets of 50 to 3,703 lists, with all or 100 of them, such sums are level with shares by the
# likelihood of the lead, exp(−z²/2), and never behind the single choice by more than an error.
MAX_STANDARD_ERRORS = 2.0
ONE_ERROR, SAMPLES = 0.6827, 1000  # the middle of a normal distribution within ±1 deviation; bootstrap samples
MIN_LIKELIHOOD, SCALE_EXPONENTS = 1e-300, (-20.0, 20.0)  # e^exponent: the factor of scores whose deviation is about 1
TEMPERATURES = (2.0, 1.0, 0.5)  # of listnet: gains are divided by so many deviations within lists
NAMES = {
    "base": "base score", "column": "best column", "dense": "dense columns", "all": "all columns",
    "listnet": "listnet of dense columns", "pointwise": "logistic regression",
}  # fmt: skip

# The base score, the best single column, and what is learned: listnet and pointwise are dense columns by other losses.
Columns = Literal["base", "column", "dense", "all", "listnet", "pointwise"]


@dataclass(frozen=True)
class Member:
    """A predictor on the lists held out: its score (higher is better), the statistics of what it selects (float64
    [L', K]), and the scores of all candidates (float64 [N']).

    l2: its penalty in training. weights: those of a member that learns nothing. second: weights of the free columns
    and, last, of the score of all columns, where these are weighed again. factor: of its scores in the sum, 0 where it
    is left out.
    """

    name: Columns
    score: float
    rows: np.ndarray
    scores: np.ndarray
    l2: float = 0.0
    weights: Weights | None = None
    second: Weights | None = None
    factor: float = 0.0


def with_base_column(learner: Maxent, lists: Corpus) -> Maxent:
    """``learner`` with the base score as one more dense column, in units of its deviation within ``lists``."""
    return replace(learner, base=0.0, base_rate=base_unit(lists) or 1.0)


def trials(
    learner: Maxent, lists: Corpus, metric: Metric, targets: Callable[[Corpus], np.ndarray], start: State | None = None,
    *, any_ties: bool,
) -> dict[Columns, list[Member]]:  # fmt: skip
    """Try all settings that ``learner`` leaves open; returns the trials by columns.

    A single list has nothing to hold out.

    targets: the oracles of lists (int64 [L]); start: where every fold starts from, by default 0; any_ties: see
    ``Learner.epoch``.
    """
    origin = learner.init(lists.width) if start is None else start
    partly_dense = 0 < lists.free < lists.width
    kinds: list[Columns] = ["dense"] if partly_dense and learner.columns != "all" else []
    kinds += ["all"] if not partly_dense or learner.columns != "dense" else []
    if lists.list_count < 2:
        l2 = SINGLE_LIST_PENALTY if learner.l2 is None else learner.l2
        return {kinds[0]: [Member(kinds[0], 0.0, np.zeros((0, len(metric.columns))), np.zeros(0), l2)]}

    def material(rest: Corpus) -> Material:
        return Material(rest, targets(rest), any_ties)

    by_columns = dict[Columns, list[Member]]()
    for kind in kinds:
        corpus = dense_alone(latest(lists)) if kind == "dense" else lists
        if corpus.free == corpus.width:
            corpus = latest(corpus)
        by_columns[kind] = penalty_trials(kind, learner, corpus, metric, material, origin)
    return by_columns


class Material(NamedTuple):
    """Training material: lists, the right candidates (int64 [L]), and whether all that are as good count as right.

    The first columns of ``lists`` are those that weights are wanted of.
    """

    lists: Corpus
    oracle: np.ndarray
    any_ties: bool

    def weights(self, learner: Maxent, state: State, width: int, **options: float) -> Weights:
        """Train ``learner`` from ``state``, which is changed; returns the weights of ``width`` columns."""
        learner.solve(self.lists, self.oracle, state, any_ties=self.any_ties, **options)
        last = learner.last(state)
        return last._replace(w=last.w[:width])


def penalty_trials(
    kind: Columns,
    learner: Maxent,
    lists: Corpus,
    metric: Metric,
    material: Callable[[Corpus], Material],
    start: State | None = None,
) -> list[Member]:
    """Try every penalty that ``learner`` leaves open, the largest first, on lists held out; training on the
    ``material`` of the others begins at ``start`` or 0."""
    slow, reference, members = 0 < lists.free < lists.width, lists.reference, list[Member]()
    folds = [(material(rest), fold) for rest, fold in iter_folds(lists)]
    states = [learner.init(each.lists.width) if start is None else cut_state(start, lists.width) for each, _ in folds]
    for l2 in (SPARSE_PENALTIES if slow else PENALTIES) if learner.l2 is None else (learner.l2,):
        iterations = min(learner.iterations, FOLD_ITERATIONS) if slow else learner.iterations
        variant = replace(learner, l2=l2, iterations=iterations)
        rows, fold_scores = [], []
        for state, (rest, fold) in zip(states, folds, strict=True):
            weights = rest.weights(variant, state, lists.width, tolerance=FOLD_TOLERANCE)
            rows.append(rows_of_weights(fold, weights, metric))
            fold_scores.append(scores(fold, weights))
        stats = np.concatenate(rows)
        members.append(Member(kind, score_of(stats, reference, metric), stats, np.concatenate(fold_scores), l2))
        if slow and len(members) > 1 and members[-1].score <= members[-2].score:
            break
    return members


def best_trial(trials: Sequence[Member]) -> Member:
    """The trial of the highest score, with the larger penalty of equals."""
    return max(trials, key=lambda trial: trial.score)


def score_of(rows: np.ndarray, reference: np.ndarray, metric: Metric) -> float:
    """The score on the last lists, as many as have ``rows``; higher is better."""
    return metric.sign * metric.score(rows, reference[len(reference) - len(rows) :])


def latest(lists: Corpus) -> Corpus:
    """The last MAX_LISTS_FOR_FOLDS lists."""
    return lists.slice(max(0, lists.list_count - MAX_LISTS_FOR_FOLDS), lists.list_count)


def iter_folds(lists: Corpus) -> Iterator[tuple[Corpus, Corpus]]:
    """Yield (the others, the section held out) for every section, or for the last ones where the lists are too large
    for all."""
    count = min(FOLDS, lists.list_count)
    rounds = count if lists.free == lists.width else int(np.clip(FOLD_NONZEROS // max(1, lists.nonzeros), 1, count))
    for first, last in sections(lists.list_count, count)[-rounds:]:
        rest = np.concatenate([np.arange(first), np.arange(last, lists.list_count)])
        yield lists.take(rest), lists.slice(first, last)


def sections(count: int, folds: int = FOLDS) -> list[tuple[int, int]]:
    """The sections of ``count`` lists, each from its first list to the one after its last."""
    return list(pairwise(count * fold // folds for fold in range(folds + 1)))


def pad_weights(weights: Weights, width: int) -> Weights:
    """Weights of the first columns, as weights of ``width`` columns."""
    return weights._replace(w=np.append(weights.w, np.zeros(width - weights.w.size)))


def pad_state(state: State, width: int) -> State:
    """A state for the first columns as one for ``width`` columns."""
    more = np.zeros(width + 1 - state.cells.size)
    arrays = {name: getattr(state, name) for name in ("cells", "memory")}
    return state._replace(**{name: np.concatenate([a[:-1], more, a[-1:]]) for name, a in arrays.items()})


def cut_state(state: State, width: int) -> State:
    """A copy of a state for the first ``width`` columns alone."""
    arrays = {name: np.append(a[:width], a[-1]) for name in ("cells", "memory") if (a := getattr(state, name)).size}
    return copy_state(state)._replace(**arrays)


@dataclass(frozen=True)
class Mixture:
    """The members of a model, and the reasons for them.

    penalties: by columns to learn from, the better first. lists: how many were held out; base, score: of the base and
    of the sum there, as the metric has them; beaten: does the sum ever choose otherwise than the base? trials: every
    setting of maxent; scores: of all candidates held out, the last of the lists (float64 [N']).
    """

    penalties: Mapping[Columns, float]
    members: tuple[Member, ...] = ()
    lists: int = 0
    base: float = 0.0
    score: float = 0.0
    beaten: bool = True
    trials: tuple[Member, ...] = ()
    scores: np.ndarray = field(default_factory=lambda: np.zeros(0), compare=False)

    def final_penalties(self) -> dict[Columns, float]:
        """The columns to learn from on all lists, each with its penalty: one kind at least."""
        names = {member.name for member in self.members if member.factor}
        penalties = {columns: l2 for columns, l2 in self.penalties.items() if columns in names}
        return penalties or dict(list(self.penalties.items())[:1])

    def combine(self, solutions: Mapping[Columns, Weights], width: int) -> Weights:
        """The model of ``width`` columns from ``solutions``, the weights that were learned on all lists."""
        if not self.members:
            return pad_weights(next(iter(solutions.values())), width)
        w, base = np.zeros(width), 0.0
        for member in self.members:
            if member.factor:
                weights = member.weights if member.weights is not None else solutions[member.name]
                factor, second = member.factor, member.second
                if second is not None:
                    w[: second.w.size - 1] += factor * second.w[:-1]
                    base += factor * second.base
                    factor *= float(second.w[-1])
                w[: weights.w.size] += factor * weights.w
                base += factor * weights.base
        return Weights(w, base)

    def text(self, metric: Metric) -> str:
        """The members, for the log."""
        if not self.members:
            return ", ".join(f"{NAMES[columns]}, l2 {l2:g}" for columns, l2 in self.penalties.items())

        def describe(inside: bool) -> str:
            return ", ".join(
                f"{NAMES[m.name]}{f' (l2 {self.penalties[m.name]:g})' if m.weights is None else ''}"
                f"{' weighed again' if m.second is not None else ''} {metric.text(m.score)}"
                for m in self.members
                if bool(m.factor) == inside
            )

        score = f"{metric.text(self.score)} on {self.lists} training lists held out in turn"
        outside = f"; left out: {describe(False)}" if not all(member.factor for member in self.members) else ""
        return f"the sum of {describe(True)}: {score}; base {metric.text(self.base)}{outside}"

    def as_dict(self, metric: Metric) -> dict[str, Any]:
        """The entry ``columns`` of ``training`` in metrics.json."""
        sign = metric.sign
        members = {
            member.name: {"score": member.score, "factor": member.factor, "again": member.second is not None}
            for member in self.members
        }
        trials = [{"columns": one.name, "l2": one.l2, "score": sign * one.score} for one in self.trials]
        keys = "lists", "base", "score", "beaten"
        return {key: getattr(self, key) for key in keys} | {"members": members, "tried": trials}


def mixture(
    learner: Maxent, lists: Corpus, metric: Metric, targets: Callable[[Corpus], np.ndarray], start: State | None = None,
    *, any_ties: bool,
) -> Mixture:  # fmt: skip
    """The members of a model for ``lists``; see ``trials`` for arguments. Where the penalty, a weight of the base score
    or a ``start`` is given, there is one alone, the better of those that are learned."""
    by_columns = trials(learner, lists, metric, targets, start, any_ties=any_ties)
    best = sorted(map(best_trial, by_columns.values()), key=lambda trial: -trial.score)
    every_trial = tuple(trial for of_columns in by_columns.values() for trial in of_columns)
    penalties = {trial.name: trial.l2 for trial in best}
    if lists.list_count < 2:
        return Mixture(penalties, trials=every_trial)
    reference, base = lists.reference, scored_rows(lists, metric, lists.base)
    members = best
    unit = base_unit(lists)
    if learner.l2 is not None or start is not None or (unit is not None and not learner.base_rate):
        members = members[:1]
    else:
        if 0 < lists.free < lists.width:
            members = [reweigh(m, learner, lists, metric, targets, any_ties=any_ties) for m in members]
        if lists.free:
            dense = dense_alone(latest(lists))
            members += [*best_column(dense, metric), *other_losses(learner, dense, metric)]
        if unit is not None:
            constant = Weights(np.zeros(0), 1.0)
            members.append(Member("base", score_of(base, reference, metric), base, lists.base, weights=constant))
    members = weigh_members(members, lists, metric, reference)
    common = min(len(member.rows) for member in members if member.factor)
    last = lists.slice(lists.list_count - common, lists.list_count)
    terms = [member for member in members if member.factor]
    total = np.sum([m.factor * m.scores[m.scores.size - last.candidate_count :] for m in terms], axis=0)
    single = len(terms) == 1 and terms[0].weights is None  # then its scores mean what they were learned for
    scale = 1.0 / terms[0].factor if single else likely_scale(last, total, targets, any_ties=any_ties)
    rows = scored_rows(last, metric, scale * total)
    sign = metric.sign
    entries = tuple(replace(one, score=sign * one.score, factor=scale * one.factor) for one in members)
    base_rows = base[len(base) - common :]
    return Mixture(
        penalties, entries, common, sign * score_of(base_rows, reference, metric),
        sign * score_of(rows, reference, metric), not np.array_equal(rows, base_rows), every_trial, scale * total,
    )  # fmt: skip


def reweigh(
    member: Member,
    learner: Maxent,
    lists: Corpus,
    metric: Metric,
    targets: Callable[[Corpus], np.ndarray],
    *,
    any_ties: bool,
) -> Member:
    """Weigh once more the score of a member that learns from all columns, the free columns and the base, where that is
    better: on lists held out, after training on the other folds by the scores that their lists had when they were held
    out themselves. The penalty draws to the score alone.

    Sparse columns, of which there are many, take a share of what free columns and the base say, and less of it is left
    on lists that nobody learned from. Transcripts in data/asr, 16 re-splits: .11 ± .04 fewer wrong words in a hundred.
    """
    if member.name != "all":
        return member
    last = lists.slice(lists.list_count - len(member.rows), lists.list_count)
    F, n, scale = lists.free, last.candidate_count, likely_scale(last, member.scores, targets, any_ties=any_ties)
    dense = dense_alone(last)
    values = np.column_stack([free_values(dense), scale * member.scores]).astype(np.float32)
    rows, columns = np.arange(n + 1) * (F + 1), np.tile(np.arange(F + 1, dtype=np.int32), n)
    corpus = replace(dense, rows=rows, columns=columns, values=values.ravel(), width=F + 1, free=F + 1, trusted=True)

    def material(rest: Corpus) -> Material:
        return Material(rest, targets(rest), any_ties)

    start = learner.init(F + 1)
    start.cells[F] = 1.0
    start = learner.anchor(start)
    trial = best_trial(penalty_trials("all", learner, corpus, metric, material, start))
    if trial.score <= member.score:
        return member
    weights = material(corpus).weights(replace(learner, l2=trial.l2), start, F + 1)
    second = weights._replace(w=np.append(weights.w[:F], scale * weights.w[F]))
    return replace(member, score=trial.score, rows=trial.rows, scores=trial.scores, second=second)


def best_column(corpus: Corpus, metric: Metric) -> list[Member]:
    """The dense column, up or down, that selects best: on lists held out, the one that does so on all others."""
    reference, count, values = corpus.reference, corpus.list_count, free_values(corpus)
    ends = [*sections(count, min(FOLDS, count)), (count, count)]  # for the last, nothing is held out
    best = [(-np.inf, 0, 1.0, reference)] * len(ends)  # score, column, sign, what it selects
    for column, sign in product(range(corpus.width), (1.0, -1.0)):
        scores = np.multiply(values[:, column], sign)
        rows = rows_of_scores(metric, corpus.lists, scores, corpus.base, corpus.stats, corpus.reference)
        for k, (first, last) in enumerate(ends):
            rest, others = (of.sum(axis=0) - of[first:last].sum(axis=0) for of in (rows, reference))
            if (score := score_of(rest[np.newaxis], others[np.newaxis], metric)) > best[k][0]:
                best[k] = score, column, sign, rows
    rows = np.concatenate([of[first:last] for (*_, of), (first, last) in zip(best, ends, strict=True)])
    scores, (_, choice, sign, _) = np.empty(corpus.candidate_count), best[-1]
    for (_, column, factor, _), (first, last) in zip(best, ends, strict=True):
        fold = slice(corpus.lists[first], corpus.lists[last])
        scores[fold] = factor * values[fold, column]
    weights = Weights(np.where(np.arange(corpus.width) == choice, sign, 0.0), 0.0)
    return [Member("column", score_of(rows, reference, metric), rows, scores, weights=weights)]


def other_losses(learner: Maxent, corpus: Corpus, metric: Metric) -> list[Member]:
    """Members by logistic regression of single candidates on dense columns and, where gains have more than two values,
    by listnet at the best of TEMPERATURES; none where ``learner`` has a loss of its own."""
    if learner.loss != "log":
        return []
    deviation = deviation_within(corpus.lists, corpus.gain)
    variants: list[tuple[Columns, Maxent, Callable[[Corpus], Material]]] = [("pointwise", learner, pairs_with_nothing)]
    for temperature in () if two_valued(corpus) or not deviation else TEMPERATURES:
        unit = temperature * deviation
        variants.append(("listnet", replace(learner, loss="listnet"), partial(divide_gains, unit=unit)))
    best = dict[Columns, Member]()
    for name, variant, material in variants:
        trial = best_trial(penalty_trials(name, variant, corpus, metric, material))
        if name not in best or trial.score > best[name].score:
            whole = material(corpus)
            weights = whole.weights(replace(variant, l2=trial.l2), variant.init(whole.lists.width), corpus.width)
            best[name] = replace(trial, weights=weights)
    return [*best.values()]


def divide_gains(lists: Corpus, unit: float) -> Material:
    """Lists whose gains are divided by ``unit``."""
    return Material(replace(lists, gain=lists.gain / unit, trusted=True), oracles(lists), any_ties=False)


def pairs_with_nothing(corpus: Corpus) -> Material:
    """Pair every candidate with one whose columns are 0, which is right where the candidate is not among the best of
    its list, or is as bad as the worst of all: so maxent is logistic regression. Columns are less their lists' means,
    and there is one more, 1, for the intercept."""
    sizes, (n, D) = np.diff(corpus.lists), (corpus.candidate_count, corpus.width)
    full = sizes > 0
    first, sizes = corpus.lists[:-1][full], sizes[full]
    columns = np.column_stack([free_values(corpus), corpus.base])
    columns -= np.repeat(np.add.reduceat(columns, first) / sizes[:, np.newaxis], sizes, axis=0)
    right = (corpus.gain == np.repeat(np.maximum.reduceat(corpus.gain, first), sizes)) & (
        corpus.gain > corpus.gain.min(initial=np.inf)
    )
    values = np.column_stack([columns[:, :-1], np.ones(n)]).astype(np.float32).ravel()
    rows = np.append(0, np.repeat(np.arange(1, n + 1) * (D + 1), 2))  # of nothing there are no columns
    base, gain = (np.column_stack(pair).ravel() for pair in ((columns[:, -1], np.zeros(n)), (right, ~right)))
    weight, numbers = np.repeat(corpus.weight[full], sizes), np.tile(np.arange(D + 1, dtype=np.int32), n)
    pairs = Corpus(
        np.arange(n + 1) * 2, rows, numbers, values, base, gain, gain[:, np.newaxis], np.ones((n, 1)), weight, D + 1,
        free=D + 1, trusted=True,
    )  # fmt: skip
    return Material(pairs, oracles(pairs), any_ties=False)


def weigh_members(members: Sequence[Member], lists: Corpus, metric: Metric, reference: np.ndarray) -> list[Member]:
    """The members with their factors, by what they choose on the lists that all of them had held out: 0 for one that is
    too far behind the best, or says nothing. All columns have a factor only where they are better than the dense ones
    among them: what many columns get wrong, no other member makes good."""
    size, sizes, weighings = min(len(member.rows) for member in members), np.diff(lists.lists), list[Member]()
    rows = {member.name: member.rows[len(member.rows) - size :] for member in members}
    score = {name: score_of(of, reference, metric) for name, of in rows.items()}
    if score.get("all", math.inf) <= score.get("dense", -math.inf):
        others = weigh_members([member for member in members if member.name != "all"], lists, metric, reference)
        return [*others, next(member for member in members if member.name == "all")]
    best = max(members, key=lambda member: score[member.name])
    options: dict[str, Any] = {"test": "paired_bootstrap", "samples": SAMPLES, "confidence": ONE_ERROR}
    for member in members:
        test = compare(metric, rows[best.name], rows[member.name], reference[len(reference) - size :], **options)
        ends = np.concatenate([[0], np.cumsum(sizes[sizes.size - len(member.rows) :])])
        deviation = deviation_within(ends, member.scores)
        near = abs(test.difference) <= MAX_STANDARD_ERRORS * (test.high - test.low) / 2
        factor = 1.0 / deviation if near and deviation > 0 else 0.0
        weighings.append(replace(member, score=score[member.name], factor=factor))
    return weighings if any(member.factor for member in weighings) else [replace(best, factor=1.0)]


def likely_scale(
    lists: Corpus, scores: np.ndarray, targets: Callable[[Corpus], np.ndarray], *, any_ties: bool
) -> float:
    """The factor of ``scores`` (float64 [N]) with which the right candidates, those with the best gain of their list or
    the ``targets`` alone, are most likely."""
    from scipy.optimize import minimize_scalar  # half a second, which other learners need not wait for

    gain, weight, sizes = lists.gain, lists.weight, np.diff(lists.lists)
    full = sizes > 0
    first, owner = (np.cumsum(sizes) - sizes)[full], np.repeat(np.arange(np.count_nonzero(full)), sizes[full])
    right = gain == np.maximum.reduceat(gain, first)[owner]
    if not any_ties:
        right = np.zeros(gain.size, np.bool_)
        right[targets(lists)[full]] = True

    def loss(exponent: float) -> float:
        logits = math.exp(exponent) * scores
        mass = np.exp(logits - np.maximum.reduceat(logits, first)[owner])
        share = np.add.reduceat(mass * right, first) / np.add.reduceat(mass, first)
        return -float((weight[full] * np.log(np.maximum(share, MIN_LIKELIHOOD))).sum())

    return math.exp(float(minimize_scalar(loss, bounds=SCALE_EXPONENTS, method="bounded").x))
