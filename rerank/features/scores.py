"""Dense, BaseScore, Within and Agreement: the scores and answers that come with a list, whatever its candidates are."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple

import numpy as np

from rerank.base.ranges import Range
from rerank.data.symbols import SymbolTable, known_hash
from rerank.features.marks import BASE_SCORE, DISTINCT, FIRST, RANK, SHARE, mark
from rerank.features.sink import Sink, begin, emit_value, put
from rerank.features.template import EITHER, Symbols, Template
from rerank.kernels.compile import kernel
from rerank.readers.lists import Lists, numbered
from rerank.readers.problems import Problem

FLOAT32_MAX = float(np.finfo(np.float32).max)  # values are float32
BASE, GAP, BEST, MOST_BINS = mark("(base)"), mark("gap"), mark("best"), 64
BINS = np.array([mark(f"bin={n}") for n in range(MOST_BINS)], np.uint64)
UNFIT = f"found a score that is not finite or exceeds {FLOAT32_MAX:.3g}"


class ScoreView(NamedTuple):
    """The scores of N candidates; what is seen of a list of texts has them too."""

    base: np.ndarray  # float64 [N]
    scores: np.ndarray  # float64 [N, K]
    names: np.ndarray  # uint64 [K]: names of the scores; 0 for the base score; empty if scores have no names
    answers: np.ndarray  # int32 [N]: answers, equal numbers for equal ones, -1 for none


def score_view(nbest: Lists, symbols: SymbolTable | None) -> ScoreView:
    """The scores of a list; their names are added to ``symbols``, if given, so that features can be shown."""
    hash_of = known_hash if symbols is None else symbols.hash_of
    names = np.array([hash_of(name) for name in nbest.names], np.uint64)
    if names.size:
        names[nbest.column] = 0
    scores = np.ascontiguousarray(nbest.scores, np.float64)
    return ScoreView(np.ascontiguousarray(nbest.base, np.float64), scores, names, numbered(nbest))


def unfit(nbest: Lists) -> dict[int, Problem]:
    """The candidates with a named score that features cannot hold, by place."""
    if not nbest.names:
        return {}
    bad = np.flatnonzero(~(np.abs(nbest.scores) <= FLOAT32_MAX).all(axis=1)).tolist()
    return {y: Problem("infinite score", UNFIT, nbest.lines[y]) for y in bad}


@dataclass(frozen=True)
class ScoreTemplate(Template):
    """A template over the scores of a list: ``fire(view, sink, ids, seeds, options)``; its columns are free."""

    content: ClassVar[str] = EITHER
    free: ClassVar[bool] = True

    scope = 0


@dataclass(frozen=True)
class Dense(ScoreTemplate):
    """Every named score of the list except the base score, as a column of its own; the value is the score.

    >>> fired("Dense", "a", "b", names=("score", "lm"), scores=np.array([[-1.0, -7.5], [-2.0, -7.0]]))
    {'lm': -7.5}

    One feature per score.
    """

    @staticmethod
    @kernel
    def fire(view: ScoreView, sink: Sink, ids: np.ndarray, seeds: np.ndarray, _options: np.ndarray) -> None:
        for k in range(view.names.shape[0]):
            if view.names[k] != np.uint64(0):  # 0: the base score
                for v in range(ids.shape[0]):
                    h = put(sink, begin(sink, ids[v], seeds[v]), view.names[k])
                    for y in range(view.base.shape[0]):
                        emit_value(sink, h, y, view.scores[y, k])

    def columns(self, rows: Lists, lists: np.ndarray) -> dict[Symbols, np.ndarray]:  # noqa: ARG002
        return {(name,): rows.scores[:, k] for k, name in enumerate(rows.names) if k != rows.column}


@dataclass(frozen=True)
class BaseScore(ScoreTemplate):
    """The base score as a dense column like the others, so that its weight is learned together with theirs.

    >>> fired("BaseScore", "a", "b")
    {'': -1.0}

    With ``learner.base: 0`` it has no other weight; else a model has their sum, as the one weight of the base score.

    One feature per candidate.
    """

    @staticmethod
    @kernel
    def fire(view: ScoreView, sink: Sink, ids: np.ndarray, seeds: np.ndarray, _options: np.ndarray) -> None:
        for y in range(view.base.shape[0]):
            for v in range(ids.shape[0]):
                emit_value(sink, begin(sink, ids[v], seeds[v]), y, min(max(view.base[y], -FLOAT32_MAX), FLOAT32_MAX))

    def columns(self, rows: Lists, lists: np.ndarray) -> dict[Symbols, np.ndarray]:  # noqa: ARG002
        return {(): np.clip(rows.base, -FLOAT32_MAX, FLOAT32_MAX)}


@kernel
def _emit_within(
    view: ScoreView, order: np.ndarray, sink: Sink, ids: np.ndarray, seeds: np.ndarray, options: np.ndarray
) -> None:
    """The features of scores (float64 [N, K]), whose ``order`` (int64 [N, K]) rises."""
    names, scores = view.names, view.scores
    N = scores.shape[0]
    for k in range(scores.shape[1]):
        first, most = 0, scores[order[N - 1, k], k]
        spread = most - scores[order[0, k], k]
        while first < N and spread > 0.0:
            last, score = first + 1, scores[order[first, k], k]
            while last < N and scores[order[last, k], k] == score:
                last += 1
            below, others = first + last - 1, 2 * (N - 1)  # twice the numbers: those with the same count by half
            for v in range(ids.shape[0]):
                bins = options[v].bins
                place = BINS[min(below * bins // others, max(bins, 1) - 1)]
                kinds = (RANK, below / others), (GAP, (most - score) / spread), (BEST, 1.0 * (last == N))
                for symbol, value in (*kinds, (place, 1.0 * (bins > 0))):
                    h = put(sink, put(sink, begin(sink, ids[v], seeds[v]), names[k]), symbol)
                    for i in range(first, last):
                        emit_value(sink, h, order[i, k], value)
            first = last


@dataclass(frozen=True)
class Within(ScoreTemplate):
    """Each score of the list, the base score too, says of a candidate beside the others, whatever its unit is.

    >>> fired("Within(bins=2)", "a", "b", names=("score", "lm"), scores=np.array([[-1.0, -7.5], [-2.0, -7.0]]))
    {'(base) rank': 1.0, '(base) best': 1.0, '(base) bin=1': 1.0, 'lm gap': 1.0, 'lm bin=0': 1.0}

    ``rank`` is the share of the others with a lower score, those with the same counted by half: from 0 to 1, for the
    best. ``gap`` is how far it is from the best, in units of how far the worst is. ``best`` is 1 where none is higher.
    With bins, the ranks are cut into this many equal parts, and the one that its own is in is 1: bins of values,
    learned in training, would say nothing in lists whose scores are higher throughout. A score that all have alike
    gives nothing.

    Three or four features per score.
    """

    bins: Annotated[int, Range(0, MOST_BINS)] = 0

    @staticmethod
    def fire(view: ScoreView, sink: Sink, ids: np.ndarray, seeds: np.ndarray, options: np.ndarray) -> None:
        """Sort, then run the kernel."""
        named = np.flatnonzero(view.names)
        scores = np.clip(np.column_stack([view.base, view.scores[:, named]]), -FLOAT32_MAX, FLOAT32_MAX)
        names = np.concatenate([np.array([BASE]), view.names[named]])
        if scores.size:
            _emit_within(
                view._replace(names=names, scores=scores), np.argsort(scores, axis=0), sink, ids, seeds, options
            )


SHARES, RANKS, FIRSTS, COUNTS, WEIGHTED = range(5)  # columns of agreement; the last and all after it are weighted


@kernel
def _weigh(values: np.ndarray, answers: np.ndarray, weight: np.ndarray, out: np.ndarray) -> None:
    """Weighted shares of one list (out float64 [N]), for the column ``values`` (float64 [N]) of two candidates or more.

    With w = exp((value - mean)/deviation) it is the w of the others with the same answer, of that of all others. The
    heaviest candidate is kept apart, as its weight may leave too little precision to those of all others.
    """
    N, top, mean, squares = values.shape[0], 0, 0.0, 0.0
    for y in range(N):
        mean += values[y] / N
        if values[y] > values[top]:
            top = y
    for y in range(N):
        squares += (values[y] - mean) ** 2 / N
    scale = 1 / np.sqrt(squares) if squares > 0 and np.isfinite(squares) else 0.0
    rest = 0.0
    for y in range(N):
        out[y] = np.exp((values[y] - values[top]) * scale)
        if y != top:
            rest += out[y]
            if answers[y] >= 0:
                weight[answers[y]] += out[y]
    for y in range(N):
        own, a = out[y], answers[y]
        if a < 0:
            out[y] = 0.0
        elif y == top:
            out[y] = weight[a] / rest if rest > 0 else 0.0
        else:
            out[y] = max(0.0, (a == answers[top]) + (weight[a] - own)) / (1 + (rest - own))
    for y in range(N):
        if answers[y] >= 0:
            weight[answers[y]] = 0.0


@kernel
def agreement(
    first: np.ndarray, answers: np.ndarray, columns: np.ndarray, times: np.ndarray, weight: np.ndarray,
    ahead: np.ndarray, out: np.ndarray,
) -> None:  # fmt: skip
    """Columns of agreement, for the lists first[l]..first[l + 1] (int64 [L + 1]) of n candidates with K columns.

    answers: int32 [n], below V; -1 for none. columns: float64 [K, n], what votes are weighted by. out: float64
    [WEIGHTED + K, n], zeros. What is 0 where a candidate has no answer: the share of the others that have the same
    answer; 1 / the rank of the answer, by candidates; whether it is the first that has it; the logarithm of the number
    of answers; the shares of the others' weights, column by column. times, weight, ahead: zeros int64 and float64 [V],
    and int64 [2 + the length of the longest list], scratch.
    """
    for i in range(first.shape[0] - 1):
        a, b, distinct = first[i], first[i + 1], 0
        for y in range(a, b):
            if answers[y] >= 0:
                out[FIRSTS, y] = times[answers[y]] == 0
                distinct += times[answers[y]] == 0
                times[answers[y]] += 1
        ahead[: b - a + 2] = 0
        for y in range(a, b):
            if out[FIRSTS, y] > 0:
                ahead[times[answers[y]]] += 1
        for n in range(b - a, 0, -1):
            ahead[n] += ahead[n + 1]
        for y in range(a, b):
            if answers[y] >= 0:
                same = times[answers[y]]
                out[SHARES, y] = (same - 1) / max(b - a - 1, 1)
                out[RANKS, y] = 1 / (1 + ahead[same + 1])
                out[COUNTS, y] = np.log(distinct)
        for y in range(a, b):
            if answers[y] >= 0:
                times[answers[y]] = 0
        if distinct > 0 and b - a > 1:
            for k in range(columns.shape[0]):
                _weigh(columns[k, a:b], answers[a:b], weight, out[WEIGHTED + k, a:b])


def agreement_of(first: np.ndarray, answers: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """float64 [WEIGHTED + K, n]: what ``agreement`` finds."""
    found, V = np.zeros((WEIGHTED + len(columns), answers.size)), int(answers.max(initial=0)) + 1
    ahead = np.zeros(int(np.diff(first).max(initial=0)) + 2, np.int64)
    agreement(first, answers, columns, np.zeros(V, np.int64), np.zeros(V), ahead, found)
    return found


@kernel
def _emit(names: np.ndarray, found: np.ndarray, sink: Sink, ids: np.ndarray, seeds: np.ndarray) -> None:
    for v in range(ids.shape[0]):
        for k in range(found.shape[0]):
            h = begin(sink, ids[v], seeds[v])
            for symbol in names[k]:
                if symbol != np.uint64(0):
                    h = put(sink, h, symbol)
            for y in range(found.shape[1]):
                emit_value(sink, h, y, found[k, y])


@dataclass(frozen=True)
class Agreement(ScoreTemplate):
    """The ``share`` of the other candidates that have the same answer, by number and by weight.

    >>> fired("Agreement", "so 4", "4", "5", answers=[b"4", b"4", b"5"])
    {'share': 0.5, 'rank': 1.0, 'first': 1.0, 'share (base score)': 0.7729}

    Weights are exp(z), z being the base score, or another score, less its mean in the list and in units of its
    deviation there. Then 1 / the ``rank`` of the answer by votes, whether the candidate is the ``first`` with its
    answer, and the logarithm of how many ``distinct`` answers there are. All are 0 without an answer.

    Four features per candidate, and one per score; none for lists without answers.
    """

    @staticmethod
    def fire(view: ScoreView, sink: Sink, ids: np.ndarray, seeds: np.ndarray, _options: np.ndarray) -> None:
        """Get scratch space, then run the kernels."""
        N = view.base.size
        if N < 2 or view.answers.max() < 0:
            return
        others = np.flatnonzero(view.names)
        columns = np.ascontiguousarray(np.vstack([view.base, view.scores[:, others].T]))
        found = agreement_of(np.array([0, N]), view.answers, columns)
        fixed = [[SHARE, 0], [RANK, 0], [FIRST, 0], [DISTINCT, 0], [SHARE, BASE_SCORE]]
        names = np.array([*fixed, *([SHARE, name] for name in view.names[others])], np.uint64)
        _emit(names, found, sink, ids, seeds)

    def columns(self, rows: Lists, lists: np.ndarray) -> dict[Symbols, np.ndarray]:
        if rows.answers is None:
            return {}
        others = [k for k in range(len(rows.names)) if k != rows.column]
        scores = np.ascontiguousarray(np.vstack([rows.base, rows.scores[:, others].T]))
        found = agreement_of(lists, numbered(rows), scores)
        names = ["share"], ["rank"], ["first"], ["distinct"], ["share", "(base score)"]
        return dict(zip(map(tuple, [*names, *(["share", rows.names[k]] for k in others)]), found, strict=True))
