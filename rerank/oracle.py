"""Oracles: the candidate of every list that the metric likes best, and what lists would allow at best and at worst.

A selection is an int64 [L] of absolute candidate indices, -1 for lists without candidates.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rerank.compile import kernel
from rerank.corpus import Corpus
from rerank.metrics.base import Metric, chosen_rows


@kernel
def best_candidates(lists: np.ndarray, first: np.ndarray, second: np.ndarray, sign: float, chosen: np.ndarray) -> None:
    """Per list the candidate with the highest sign·first, then the highest ``second``, then the lowest index.

    ``lists`` int64 [L + 1], ``first`` and ``second`` float64 [N]; to ``chosen`` int64 [L], -1 for empty lists.
    """
    for i in range(chosen.shape[0]):
        chosen[i] = -1
        for y in range(lists[i], lists[i + 1]):
            best = chosen[i]
            ahead = sign * (first[y] - first[best])
            if best < 0 or ahead > 0 or (ahead == 0 and second[y] > second[best]):
                chosen[i] = y


def _best(lists: np.ndarray, first: np.ndarray, second: np.ndarray, sign: float) -> np.ndarray:
    chosen = np.empty(lists.shape[0] - 1, np.int64)
    best_candidates(lists, first, second, sign, chosen)
    return chosen


def oracle(lists: np.ndarray, gain: np.ndarray, base: np.ndarray) -> np.ndarray:
    """Best gain per list; ties go to the higher base score, then to the lower index: int64 [L]."""
    return _best(lists, gain, base, 1.0)


def anti_oracle(lists: np.ndarray, gain: np.ndarray, base: np.ndarray) -> np.ndarray:
    """Worst gain per list, with the tie rule of ``oracle``: int64 [L]."""
    return _best(lists, gain, base, -1.0)


def base_choice(lists: np.ndarray, base: np.ndarray) -> np.ndarray:
    """Highest base score per list; ties go to the lower index: int64 [L]."""
    return _best(lists, base, base, 1.0)


@kernel
def oracle_places(
    lists: np.ndarray, gain: np.ndarray, base: np.ndarray, chosen: np.ndarray, ranks: np.ndarray, sharing: np.ndarray
) -> None:
    """Per list, for its oracle ``chosen``: its rank by base score (from 0), and how many candidates share its gain.

    Of equal base scores the lower index is first. To ``ranks`` and ``sharing``, both int64 [L]; -1 and 0 for lists
    without candidates.
    """
    for i in range(chosen.shape[0]):
        ranks[i], sharing[i] = -1, 0
        best = chosen[i]
        if best >= 0:
            ranks[i] = 0
            for y in range(lists[i], lists[i + 1]):
                ranks[i] += base[y] > base[best] or (base[y] == base[best] and y < best)
                sharing[i] += gain[y] == gain[best]


@kernel
def add_means(lists: np.ndarray, stats: np.ndarray, means: np.ndarray) -> None:
    """Add to ``means`` (float64 [L, K]) the mean statistics of every list's candidates."""
    for i in range(means.shape[0]):
        for y in range(lists[i], lists[i + 1]):
            for k in range(stats.shape[1]):
                means[i, k] += stats[y, k] / (lists[i + 1] - lists[i])


def mean_rows(lists: np.ndarray, stats: np.ndarray) -> np.ndarray:
    """Expected statistics of a uniform choice from every list: float64 [L, K]; 0 for empty lists."""
    means = np.zeros((lists.shape[0] - 1, stats.shape[1]))
    add_means(lists, stats, means)
    return means


def corpus_oracle(corpus: Corpus, metric: Metric, *, start: np.ndarray | None = None) -> np.ndarray:
    """Hill climbing on the corpus score: exchange one list's candidate at a time while that improves the score.

    Best sentences do not make the best corpus, because lists weigh differently in the sums (a long sentence's
    brackets count more). The climb starts from ``start`` (the sentence oracle by default), goes through the lists
    in order, and stops where no single exchange helps; it is never worse than its start. For a ratio of sums, as F
    is, that is the optimum: there every list's choice maximises 2·matched − F·test on its own (Dinkelbach 1967).
    Candidates that are not ``metric.valid`` are never taken.

    Returns
    -------
    int64 [L]: the selection.
    """
    chosen = (oracle(corpus.lists, corpus.gain, corpus.base) if start is None else np.asarray(start)).astype(np.int64)
    total = corpus.reference.sum(axis=0)
    sign = -1.0 if metric.lower_is_better else 1.0
    usable = metric.valid(corpus.stats)
    owner = np.repeat(np.arange(corpus.list_count), np.diff(corpus.lists))
    while True:
        rows = chosen_rows(corpus.stats, chosen)
        sums = rows.sum(axis=0)  # anew in every round, so that rounding does not pile up
        score = sign * float(metric.scores(sums, total))
        exchanged = sign * metric.scores(sums + corpus.stats - rows[owner], total)
        promising = np.unique(owner[usable & (exchanged > score + _step(score))])
        moved = False
        for i in promising:
            first, last = corpus.lists[i], corpus.lists[i + 1]
            rest = sums - corpus.stats[chosen[i]]
            offers = sign * metric.scores(rest + corpus.stats[first:last], total)
            offers[~usable[first:last]] = -np.inf
            best = int(np.argmax(offers))
            if offers[best] > score + _step(score):
                chosen[i], score, moved = first + best, float(offers[best]), True
                sums = rest + corpus.stats[chosen[i]]
        if not moved:
            return chosen


def _step(score: float) -> float:
    """Improvements below this are rounding."""
    return 1e-13 * max(1.0, abs(score))


@dataclass(frozen=True)
class ListStatistics:
    """What N-best lists hold: how long they are, and what the best, worst and blind choices score.

    ``base``, ``oracle``, ``corpus_oracle``, ``anti_oracle`` and ``random`` are reports of the metric; ``random`` is
    the score of the expected statistics under a uniform choice. ``oracle_ranks[r]`` counts the lists whose oracle
    has rank r (from 0) by base score. ``unique_oracle`` is the share of nonempty lists with a single best candidate.
    """

    signature: str
    lists: int
    candidates: int
    smallest: int
    mean: float
    median: float
    largest: int
    empty: int
    singletons: int
    unique_oracle: float
    oracle_ranks: tuple[int, ...]
    base: dict[str, float]
    oracle: dict[str, float]
    corpus_oracle: dict[str, float]
    anti_oracle: dict[str, float]
    random: dict[str, float]

    @classmethod
    def of(cls, corpus: Corpus, metric: Metric) -> ListStatistics:
        """The statistics of ``corpus``, whose ``stats`` and ``reference`` are this metric's."""
        total = corpus.reference.sum(axis=0)

        def report(chosen: np.ndarray) -> dict[str, float]:
            return metric.report(chosen_rows(corpus.stats, chosen).sum(axis=0), total)

        sizes: np.ndarray = np.diff(corpus.lists)
        best = oracle(corpus.lists, corpus.gain, corpus.base)
        ranks, sharing = np.empty_like(best), np.empty_like(best)
        oracle_places(corpus.lists, corpus.gain, corpus.base, best, ranks, sharing)
        return cls(
            signature=metric.signature,
            lists=corpus.list_count,
            candidates=corpus.candidate_count,
            smallest=int(sizes.min()) if sizes.size else 0,
            mean=float(sizes.mean()) if sizes.size else 0.0,
            median=float(np.median(sizes)) if sizes.size else 0.0,
            largest=int(sizes.max(initial=0)),
            empty=int(np.count_nonzero(sizes == 0)),
            singletons=int(np.count_nonzero(sizes == 1)),
            unique_oracle=int(np.count_nonzero(sharing == 1)) / max(1, int(np.count_nonzero(sizes))),
            oracle_ranks=tuple(int(count) for count in np.bincount(ranks[ranks >= 0])),
            base=report(base_choice(corpus.lists, corpus.base)),
            oracle=report(best),
            corpus_oracle=report(corpus_oracle(corpus, metric, start=best)),
            anti_oracle=report(anti_oracle(corpus.lists, corpus.gain, corpus.base)),
            random=metric.report(mean_rows(corpus.lists, corpus.stats).sum(axis=0), total),
        )


def corpus_gains(corpus: Corpus, metric: Metric, around: np.ndarray) -> np.ndarray:
    """What every candidate would do to the corpus score of the selection ``around`` (int64 [L]) in its list's place.

    The change of the score, times the number of lists, in units of the metric's gain: float64 [N]. A corpus measure
    that is no mean of sentences (BLEU with its brevity penalty) then asks of a sentence what the corpus needs.
    """
    rows = chosen_rows(corpus.stats, around)
    total, reference = rows.sum(axis=0), corpus.reference.sum(axis=0)
    of = np.repeat(np.arange(corpus.list_count), np.diff(corpus.lists))
    unit = corpus.list_count * metric.percent / 100.0 * (-1.0 if metric.lower_is_better else 1.0)
    changed = metric.scores(total - rows[of] + corpus.stats, reference)
    return np.asarray(unit * (changed - metric.scores(total, reference)))
