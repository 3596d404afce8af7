"""Dense, BaseScore, Within and SameAnswer: the scores and answers that come with a list, whatever it is a list of."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np

from rerank.base.ranges import Range
from rerank.data.corpus import FLOAT32_MAX
from rerank.data.symbols import SymbolTable, quick_hash
from rerank.features.sink import Sink, begin, emit_value, put
from rerank.features.template import EITHER, RANK, Symbols, Template, mark
from rerank.kernels.compile import kernel
from rerank.readers.lists import Lists, answer_numbers
from rerank.readers.problems import Problem

BASE, GAP, BEST, MAX_BINS = mark("(base)"), mark("gap"), mark("best"), 64
BINS = np.array([mark(f"bin={n}") for n in range(MAX_BINS)], np.uint64)
UNFIT = f"found a score that is not finite or exceeds {FLOAT32_MAX:.3g}"


class ScoreView(NamedTuple):
    """The scores of N candidates; what is seen of a list of texts has them too."""

    base: np.ndarray  # float64 [N]
    scores: np.ndarray  # float64 [N, K]
    names: np.ndarray  # uint64 [K]: names of the scores; 0 for the base score; empty if scores have no names


def score_view(nbest: Lists, symbols: SymbolTable | None) -> ScoreView:
    """The scores of a list; their names are added to ``symbols``, if given, so that features can be shown."""
    hash_of = quick_hash if symbols is None else symbols.hash_of
    names = np.array([hash_of(name) for name in nbest.names], np.uint64)
    if names.size:
        names[nbest.column] = 0
    base, scores = (np.ascontiguousarray(values, np.float64) for values in (nbest.base, nbest.scores))
    return ScoreView(base, scores, names)


def groups(lists: np.ndarray, answers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The candidates that have an answer (int64 [n]), and their answers by numbers of their own in every list (int64
    [n]); lists: int64 [L + 1], answers: int32 [N], -1 for none."""
    candidates = np.flatnonzero(answers >= 0)
    owner = np.searchsorted(lists, candidates, side="right") - 1
    return candidates, owner * (int(answers.max(initial=0)) + 1) + answers[candidates]


def votes(lists: np.ndarray, answers: np.ndarray) -> np.ndarray:
    """float64 [N]: the logarithm of how many candidates of the list have the same answer; 0 without one."""
    (candidates, group), out = groups(lists, answers), np.zeros(answers.size)
    out[candidates] = np.log(np.bincount(group)[group])
    return out


def means_of_answers(lists: np.ndarray, answers: np.ndarray, values: np.ndarray) -> np.ndarray:
    """float64 [N, K]: ``values`` (within ±FLOAT32_MAX), each the mean over the candidates of the list with the same
    answer; without an answer as it is."""
    (candidates, group), out = groups(lists, answers), np.array(np.clip(values, -FLOAT32_MAX, FLOAT32_MAX))
    count = np.maximum(np.bincount(group), 1)
    for column in out.T:
        low, high = np.full(count.size, np.inf), np.full(count.size, -np.inf)
        np.minimum.at(low, group, column[candidates])
        np.maximum.at(high, group, column[candidates])
        # The mean of equal numbers may miss them by rounding, which would become a column's whole deviation.
        column[candidates] = np.clip(np.bincount(group, column[candidates]) / count, low, high)[group]
    return out


def answer_means(rows: Lists, lists: np.ndarray, values: np.ndarray) -> np.ndarray:
    """float64 [N, K]: ``values`` of the candidates, where they have answers the means of these."""
    return values if rows.answers is None else means_of_answers(lists, answer_numbers(rows), values)


def find_unfit(nbest: Lists) -> dict[int, Problem]:
    """The candidates with a named score that features cannot hold, by index."""
    if not nbest.names:
        return {}
    bad = np.flatnonzero(~(np.abs(nbest.scores) <= FLOAT32_MAX).all(axis=1)).tolist()
    return {y: Problem("infinite score", UNFIT, nbest.lines[y]) for y in bad}


@dataclass(frozen=True)
class ScoreTemplate(Template):
    """A template over the scores of a list; its columns are free. Where it gives ``columns``, it needs no ``fire(view,
    sink, ids, seeds, options)``."""

    content: ClassVar[str] = EITHER
    free: ClassVar[bool] = True

    scope = 0
    fire: ClassVar[Any] = None


@dataclass(frozen=True)
class Dense(ScoreTemplate):
    """Every named score of the list except the base score, as a column of its own; the value is the score.

    >>> fired("Dense", "a", "b", names=("score", "lm"), scores=np.array([[-1.0, -7.5], [-2.0, -7.0]]))
    {'lm': -7.5}

    Where candidates have answers, it is the ``mean`` over the candidates of the list with the same answer: what speaks
    for an answer is then not one sample's luck. ``answers: own`` leaves every candidate its own.

    One feature per score.
    """

    answers: Literal["mean", "own"] = "mean"

    def columns(self, rows: Lists, lists: np.ndarray) -> dict[Symbols, np.ndarray]:
        scores = rows.scores if self.answers == "own" else answer_means(rows, lists, rows.scores)
        return {(name,): scores[:, k] for k, name in enumerate(rows.names) if k != rows.column}


@dataclass(frozen=True)
class BaseScore(ScoreTemplate):
    """The base score as a dense column like the others, so that its weight is learned together with theirs.

    >>> fired("BaseScore", "a", "b")
    {'': -1.0}

    With ``learner.base: 0`` it has no other weight; else a model has their sum, as the one weight of the base score.
    ``answers``: as in Dense.

    One feature per candidate.
    """

    answers: Literal["mean", "own"] = "mean"

    def columns(self, rows: Lists, lists: np.ndarray) -> dict[Symbols, np.ndarray]:
        base = rows.base if self.answers == "own" else answer_means(rows, lists, rows.base[:, np.newaxis])[:, 0]
        return {(): np.minimum(np.maximum(base, -FLOAT32_MAX), FLOAT32_MAX)}


@kernel
def _emit_within(
    view: ScoreView, order: np.ndarray, sink: Sink, ids: np.ndarray, seeds: np.ndarray, options: np.ndarray
) -> None:
    """The features of scores (float64 [N, K]), whose ``order`` (int64 [N, K]) rises."""
    names, scores = view.names, view.scores
    N = scores.shape[0]
    for k in range(scores.shape[1]):
        first, highest = 0, scores[order[N - 1, k], k]
        spread = highest - scores[order[0, k], k]
        while first < N and spread > 0.0:
            last, score = first + 1, scores[order[first, k], k]
            while last < N and scores[order[last, k], k] == score:
                last += 1
            below, others = first + last - 1, 2 * (N - 1)  # twice the numbers: those with the same count by half
            for v in range(ids.shape[0]):
                bins = options[v].bins
                bin_mark = BINS[min(below * bins // others, max(bins, 1) - 1)]
                kinds = (RANK, below / others), (GAP, (highest - score) / spread), (BEST, 1.0 * (last == N))
                for symbol, value in (*kinds, (bin_mark, 1.0 * (bins > 0))):
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

    bins: Annotated[int, Range(0, MAX_BINS)] = 0

    @staticmethod
    def fire(view: ScoreView, sink: Sink, ids: np.ndarray, seeds: np.ndarray, options: np.ndarray) -> None:
        """Sort, then run the kernel."""
        columns = np.flatnonzero(view.names)
        scores = np.clip(np.column_stack([view.base, view.scores[:, columns]]), -FLOAT32_MAX, FLOAT32_MAX)
        names = np.concatenate([np.array([BASE]), view.names[columns]])
        if scores.size:
            _emit_within(
                view._replace(names=names, scores=scores), np.argsort(scores, axis=0), sink, ids, seeds, options
            )


@dataclass(frozen=True)
class SameAnswer(ScoreTemplate):
    """The logarithm of how many candidates of the list have the same answer.

    >>> fired("SameAnswer", "so 4", "4", "5", answers=[b"4", b"4", b"5"])
    {'': 0.6931}

    0 without an answer. One feature per candidate; none for lists without answers.
    """

    def columns(self, rows: Lists, lists: np.ndarray) -> dict[Symbols, np.ndarray]:
        return {} if rows.answers is None else {(): votes(lists, answer_numbers(rows))}
