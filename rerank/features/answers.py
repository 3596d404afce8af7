"""Agreement: how far the other candidates of a list have the same answer."""

from dataclasses import dataclass

import numpy as np

from rerank.features.marks import BASE, DISTINCT, FIRST, RANK, SHARE
from rerank.features.scores import ScoreTemplate, ScoreView
from rerank.features.sink import Sink, begin, emit_value, put
from rerank.features.template import Symbols
from rerank.kernels.compile import kernel
from rerank.readers.nbest import NBestList, numbered

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


def _fire(view: ScoreView, sink: Sink, ids: np.ndarray, seeds: np.ndarray, _options: np.ndarray) -> None:
    """Get scratch space, then run the kernels."""
    N = view.base.size
    if N < 2 or view.answers.max() < 0:
        return
    others = np.flatnonzero(view.names)
    columns = np.ascontiguousarray(np.vstack([view.base, view.scores[:, others].T]))
    found = agreement_of(np.array([0, N]), view.answers, columns)
    fixed = [[SHARE, 0], [RANK, 0], [FIRST, 0], [DISTINCT, 0], [SHARE, BASE]]
    names = np.array([*fixed, *([SHARE, name] for name in view.names[others])], np.uint64)
    _emit(names, found, sink, ids, seeds)


@dataclass(frozen=True)
class Agreement(ScoreTemplate):
    """The ``share`` of the other candidates that have the same answer, by number and by weight.

    >>> from rerank.features.fired import fired
    >>> fired("Agreement", "so 4", "4", "5", answers=[b"4", b"4", b"5"])
    {'share': 0.5, 'rank': 1.0, 'first': 1.0, 'share (base score)': 0.7729}

    Weights are exp(z), z being the base score, or another score, less its mean in the list and in units of its
    deviation there. Then 1 / the ``rank`` of the answer by votes, whether the candidate is the ``first`` with its
    answer, and the logarithm of how many ``distinct`` answers there are. All are 0 without an answer.

    Four features per candidate, and one per score; none for lists without answers.
    """

    fire = staticmethod(_fire)

    def columns(self, rows: NBestList, lists: np.ndarray) -> dict[Symbols, np.ndarray]:
        if rows.answers is None:
            return {}
        others = [k for k in range(len(rows.names)) if k != rows.column]
        scores = np.ascontiguousarray(np.vstack([rows.base, rows.scores[:, others].T]))
        found = agreement_of(lists, numbered(rows), scores)
        names = ["share"], ["rank"], ["first"], ["distinct"], ["share", "(base score)"]
        return dict(zip(map(tuple, [*names, *(["share", rows.names[k]] for k in others)]), found, strict=True))
