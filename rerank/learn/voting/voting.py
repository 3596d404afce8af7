"""Exact voting: the winner of every list under every predictor, without a weight vector per predictor.

Under predictor k a candidate scores β_k·b + d_k·(U − τ_k·V), with U = Σ φ_j a_j and V = Σ φ_j v_j over the active
columns (Gao et al. 2013, Fig. 2, with eq. 10 for w; see ``votes``). What updates made of a column is sorted by column
and time: its *levels*. Lists do not depend on one another: threads share them out. On a list, the predictors are
replayed in runs:

1. the moves of columns with the same values on all candidates are summed, in a row by predictor;
2. candidate y gets U_y = U_x + differences, where x is the earlier candidate that it is most like (see ``seats``), and
   V_y likewise;
3. the scores of all candidates are compared at all predictors of the run at once.

All sums are exact over the rounded products they are made of (see ``counting``): what candidates share ties, as under
the predictor itself, and without an active column the score is that of the base alone. Whole numbers (perceptron and
hinge on counts), and small multiples of a power of two, are not rounded at all: then every winner, ties included, is
the predictor's own. Otherwise each level, or its product with a real value, is rounded by at most a 2^34th of what the
list's products come to under *that* predictor (Σ of |level| times the column's largest |value|, for U and for V). As in
any dot product, rounding decides between candidates with different active columns whose scores agree so far (with the
exponential loss, whose weights grow by 2^50, in less than one vote of a hundred).
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from rerank.base.errors import DataError
from rerank.base.interrupts import check, deferred
from rerank.data.corpus import Corpus
from rerank.engines.threads import thread_count
from rerank.learn.voting.counting import Room, vote_list
from rerank.learn.voting.levels import Levels, sort_levels
from rerank.learn.voting.seats import Seats, seats_of
from rerank.learn.voting.votes import Votes

RUN = 1024  # predictors at a time: rows of a list stay in the caches
LARGEST_SINGLE = 2.0**22  # whole numbers up to four times as large are exact in float32
BYTES = 80.0  # a nonzero of a list takes, while seats are found
LARGEST_LIST = 1 << 34  # bytes that a thread may need for a list


def vote(
    votes: Votes, corpus: Corpus, threads: int | None = None, *, on_list: Callable[[], object] | None = None
) -> np.ndarray:
    """float64 [N]: for every candidate Σ_k c_k · [it wins its list under predictor k].

    Ties go to the higher base score, then the lower index.

    Parameters
    ----------
    threads: all cores by default.
    on_list: called after each of the lists.
    """
    check_lists(votes, corpus)
    votes = Votes(*map(_frozen, votes))
    name, u, v = sort_levels(votes, corpus)
    counted, heights = np.zeros(corpus.candidate_count), [_heights(levels) for levels in (u, v)]

    def count(i: int) -> None:
        if corpus.lists[i] < corpus.lists[i + 1]:
            seats = seats_of(corpus, i, name)
            counted[seats.candidate] = _votes_of(seats, u, v, votes, _is_whole(seats, heights))

    with deferred(), ThreadPoolExecutor(max(1, min(threads or thread_count(), 16))) as pool:
        for _ in pool.map(count, range(corpus.list_count)):
            if on_list is not None:
                on_list()
            check()
    return counted


def _frozen(array: np.ndarray) -> np.ndarray:
    """A read-only view, so that no kernel compiles for arrays of both kinds."""
    view = array.view()
    view.flags.writeable = False
    return view


def _votes_of(seats: Seats, u: Levels, v: Levels, votes: Votes, whole: bool) -> np.ndarray:
    """The votes of a list's candidates, by place."""
    N, P, T = seats.base.size, seats.largest.size, min(RUN, votes.survived.size)

    def room(levels: Levels, n: int) -> Room:
        kind = np.float32 if whole else np.float64
        return Room(
            begin=levels.first[seats.column],
            end=levels.first[seats.column],
            size=np.empty(n),
            row=np.empty(P, np.int64),
            still=np.empty(P),
            rows=np.empty((seats.whole, n), kind),
            levels=np.empty((P - seats.whole, n)),
            start=np.empty(N),
            moves=np.empty((N, n), kind),
            total=np.empty(n),
        )

    rooms, counted = (room(u, T), room(v, T if votes.threshold.size else 0)), np.zeros(N)
    vote_list(seats, u, v, votes, whole, *rooms, np.empty(T), np.empty(T, np.int64), counted)
    return counted


def _heights(levels: Levels) -> tuple[np.ndarray, np.ndarray]:
    """By column (float64 [C]): the largest |level|; the same where all are whole numbers, else too large a one."""
    fractions = np.add.reduceat((levels.level != np.rint(levels.level)).view(np.int8), levels.first, dtype=np.int64)
    height = np.maximum.reduceat(np.abs(levels.level), levels.first)
    return height, np.where(fractions == 0, height, 2.0**48)


def _is_whole(seats: Seats, heights: list[tuple[np.ndarray, np.ndarray]]) -> bool:
    """Whether sums of whole patterns are whole numbers that float32 holds, and multiples of the unit of real ones."""
    largest, end = np.repeat(seats.largest, np.diff(seats.members)), seats.members[seats.whole]
    return all(
        bool(
            np.sum(largest[:end] * whole[seats.column[:end]]) < LARGEST_SINGLE
            and np.sum(largest * height[seats.column]) < 2.0**48
        )
        for height, whole in heights
    )


def check_lists(votes: Votes, corpus: Corpus, names: Sequence[str] = ()) -> None:
    """Check that memory suffices: all candidates of a list are compared at once, under all predictors of a run.

    names: those of the lists, for the message.
    """
    candidates, nonzeros = np.diff(corpus.lists), np.diff(corpus.rows[corpus.lists])
    columns = np.minimum(nonzeros, corpus.width)
    rooms = 8.0 * (2 if votes.threshold.size else 1) * min(RUN, votes.survived.size)
    need = BYTES * nonzeros + rooms * (candidates + columns)
    i = int(np.argmax(need)) if need.size else -1
    if i >= 0 and need[i] > LARGEST_LIST:
        message = f"voting would take {need[i] / 1e9:.1f} GB for the {candidates[i]:,} candidates of list "
        message += f"{names[i] if names else i + 1}; {LARGEST_LIST / 1e9:.1f} GB is the limit"
        raise DataError(f"{message}: keep fewer candidates, or use the averaged predictor (--predictor average)")
