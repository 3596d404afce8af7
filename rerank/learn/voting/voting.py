"""Exact voting: the winner of every list under every predictor, without a weight vector per predictor.

Under predictor k a candidate scores β_k·b + d_k·(U − τ_k·V), with U = Σ φ_j a_j and V = Σ φ_j v_j over the active
columns (Gao et al. 2013, Fig. 2, with eq. 10 for w; see ``votes``). The predictors are replayed in blocks:

1. moves: by column, at which predictors of the block the column's a_j and v_j inside U and V change, and to what;
2. per list, the moves of columns with the same values on all its candidates are summed over time; candidate y gets
   U_y = U_x + differences, where x is the earlier candidate that it is most like (see ``electorate``);
3. the scores of all candidates are compared at all predictors of the block at once.

Lists do not depend on one another: threads share them out, and the result is the same for any number of threads.

All sums are exact over the rounded products they are made of (see ``kernel``), so U and V depend on nothing but
the active columns, their levels and the candidate's values: what these share ties, as under the predictor itself, and
without an active column the score is that of the base alone. Whole numbers (perceptron and hinge on counts), and small
multiples of a power of two, are not rounded at all: then every winner, ties included, is the predictor's own. Otherwise
each level, or its product with a real value, is rounded by at most a 2^34th of what the list's products come to under
*that* predictor (Σ of |level| times the column's largest |value|, for U and for V), however large weights are under
others: mostly by a 2^50th of what they come to at most in the block, and where that is too coarse, predictors are
decided again (see ``faint``). As in any dot product, rounding decides between candidates with different active columns
whose scores agree so far.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np

from rerank.base.errors import DataError
from rerank.base.interrupts import check, deferred, requested
from rerank.data.corpus import Corpus
from rerank.engines.threads import thread_count
from rerank.learn.voting.electorate import assemble
from rerank.learn.voting.faint import GROUP
from rerank.learn.voting.kernel import FaintRoom, Sums, Tables, Terms, vote_block
from rerank.learn.voting.moves import ROWS, MoveFinder, Moves
from rerank.learn.voting.votes import Votes
from rerank.storage.results import Checkpoint

BLOCK = 512 * ROWS  # predictors at a time
LARGEST_LIST = 1 << 34  # bytes that a thread may need for a list


class Ward:
    """The lists from..to - 1 of a corpus, ``part`` = (from, to), which a thread takes through a block of predictors."""

    def __init__(self, corpus: Corpus, name: np.ndarray, part: tuple[int, int], counted: np.ndarray) -> None:
        self._seats = assemble(corpus, name, *part)
        self._counted = counted
        self.pending = np.zeros(part[1] - part[0], np.bool_)

    def vote(self, moves: tuple[Moves, Moves], terms: Terms, kind: type) -> None:
        """Let the block of predictors vote on the pending lists, in numbers of ``kind`` (int16 where that fits)."""
        T, shrunk = terms.scale.size, terms.threshold.size > 0
        tables, apart = self._tables(T, shrunk, kind), self._apart(moves, T, shrunk)
        vote_block(self.pending, self._seats, *moves, terms, kind is np.int16, tables, apart, self._counted)

    def _apart(self, moves: tuple[Moves, Moves], T: int, shrunk: bool) -> FaintRoom:
        """Scratch space for the faint predictors of a block; most of it is never touched, and then takes no memory."""
        u, v = (
            x._replace(
                **{name: np.empty_like(getattr(x, name)) for name in ("first", "end", "at", "level", "start", "track")},
                levels=np.zeros((0, GROUP)),
            )
            for x in moves
        )
        terms = Terms(np.empty(GROUP), np.empty(GROUP * shrunk), np.empty(GROUP), np.zeros(GROUP, np.int64))
        size_u, size_v = np.zeros((2, GROUP))
        tables = self._tables(GROUP, shrunk, np.float64)
        faint, lane, total = np.empty(T, np.bool_), np.empty(T // ROWS), np.empty(T)
        return FaintRoom(faint, lane, total, np.empty(GROUP, np.int64), size_u, size_v, u, v, terms, tables)

    def _tables(self, T: int, shrunk: bool, kind: type) -> Tables:
        """Scratch space for a block."""
        longest = int(np.diff(self._seats.lists).max(initial=0))
        patterns = int(np.diff(self._seats.patterns).max(initial=0))

        def sums(n: int) -> Sums:
            return Sums(np.empty((n, T), kind), np.empty(n), np.empty(T))

        return Tables(
            patterns=np.empty((patterns, T), kind),
            moving=np.empty(patterns, np.bool_),
            start=np.empty(patterns),
            u=sums(longest),
            v=sums(longest * shrunk),
            lane=np.empty(T // ROWS, np.int32 if kind is np.int16 else np.float64),
            best=np.empty(T),
            winner=np.empty(T, np.int32),
        )


def vote(
    votes: Votes,
    corpus: Corpus,
    threads: int | None = None,
    *,
    checkpoint: Checkpoint | None = None,
    on_block: Callable[[], None] | None = None,
) -> np.ndarray:
    """float64 [N]: for every candidate Σ_k c_k · [it wins its list under predictor k].

    Ties go to the higher base score, then the lower index.

    Parameters
    ----------
    threads: all cores by default.
    checkpoint: where progress, and in the end the result, is saved, and where voting continues from.
    on_block: called after each of the ``block_count`` blocks of predictors, and for those before a checkpoint too.
    """
    check_lists(votes, corpus)
    predictors = votes.survived.size
    T = min(BLOCK, -(-predictors // ROWS) * ROWS)
    workers = max(1, min(threads or thread_count(), 16))
    tell = on_block or _nothing
    N = corpus.candidate_count
    voted, counted, earlier = 0, np.zeros(N), None  # predictors (whole blocks), votes, see MoveFinder
    if checkpoint is not None and (stored := checkpoint.load()) is not None and stored[1]["counted"].size == N:
        voted, counted, earlier = stored[0]["predictors"], stored[1]["counted"], stored[1]["own"]
    for _ in range(0, voted, T):
        tell()
    if voted >= predictors:
        return counted
    finder = MoveFinder(votes, corpus, T, earlier)
    with deferred(), ThreadPoolExecutor(workers) as pool:
        wards = list(pool.map(lambda part: Ward(corpus, finder.name, part, counted), _parts(corpus, 8 * workers)))
        ahead = pool.submit(finder.block, voted)
        for start in range(voted, predictors, T):
            moves_u, moves_v, whole = ahead.result()
            own = finder.own.copy()
            if start + T < predictors:  # the next block's moves are found while the lists vote on this one
                ahead = pool.submit(finder.block, start + T)
            terms = _terms(votes, start, T)
            for ward in wards:
                ward.pending[:] = True
            for kind in (np.int16, np.float64) if whole else (np.float64,):
                jobs = [pool.submit(ward.vote, (moves_u, moves_v), terms, kind) for ward in wards if ward.pending.any()]
                for job in jobs:
                    job.result()
            tell()
            last = start + T >= predictors
            if checkpoint is not None and (last or checkpoint.due() or requested()):
                arrays = {"counted": counted, "own": np.zeros(0) if last else own}
                checkpoint.save({"predictors": start + T}, arrays)
            check()
    return counted


def check_lists(votes: Votes, corpus: Corpus, names: Sequence[str] = ()) -> None:
    """Check that memory suffices: all candidates of a list are compared at once, under all predictors of a block.

    names: those of the lists, for the message.
    """
    candidates, nonzeros = np.diff(corpus.lists), np.diff(corpus.rows[corpus.lists])
    columns = np.minimum(nonzeros, corpus.width)
    need = 4.0 * candidates * columns + 16.0 * candidates * min(BLOCK, votes.survived.size)
    i = int(np.argmax(need)) if need.size else -1
    if i >= 0 and need[i] > LARGEST_LIST:
        message = f"voting would take {need[i] / 1e9:.1f} GB for the {candidates[i]:,} candidates of list "
        message += f"{names[i] if names else i + 1}; {LARGEST_LIST / 1e9:.1f} GB is the limit"
        raise DataError(f"{message}: keep fewer candidates, or use the averaged predictor (--predictor average)")


def block_count(votes: Votes) -> int:
    """How many blocks of predictors ``vote`` goes through."""
    return -(-votes.survived.size // BLOCK)


def _nothing() -> None:
    """Do nothing."""


def _parts(corpus: Corpus, parts: int) -> list[tuple[int, int]]:
    """The lists in runs of about the same numbers of nonzeros."""
    ends = np.searchsorted(corpus.rows[corpus.lists], np.linspace(0, corpus.nonzeros, parts + 1))
    ends[0], ends[-1] = 0, corpus.list_count
    return [(int(a), int(b)) for a, b in pairwise(ends) if b > a]


def _terms(votes: Votes, start: int, T: int) -> Terms:
    """The terms of the predictors from ``start``, in the block's layout."""
    stop = min(votes.survived.size, start + T)

    def place(values: np.ndarray) -> np.ndarray:
        padded = np.zeros(T, values.dtype)
        padded[: stop - start] = values[start:stop]
        return np.ascontiguousarray(padded.reshape(-1, ROWS).T).ravel()

    threshold = place(votes.threshold) if votes.threshold.size else np.zeros(0)
    return Terms(place(votes.scale), threshold, place(votes.beta), place(votes.survived))
