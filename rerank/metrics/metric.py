"""The interface of metrics: rows of sufficient statistics that add up, and a formula on their sums. With it go
selections from lists: what scores choose, and the oracles, the best candidates of every list by the metric.

A selection is an int64 [L] of absolute candidate indices, -1 for lists without candidates.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from typing import Any, ClassVar, Literal

import numpy as np

from rerank.base.errors import RecipeError
from rerank.base.ranges import Checked
from rerank.base.registry import Registry
from rerank.data.corpus import Corpus, freeze, offsets
from rerank.kernels.compile import kernel

TestName = Literal["approximate_randomization", "paired_bootstrap", "paired_t", "mcnemar"]  # of significance
SHUFFLES = 32


class Metric(Checked, ABC):
    """A corpus measure as a function of summed statistics.

    A candidate gives a row of K numbers, a reference a row of R numbers; the score of any selection is ``scores`` of
    their sums. For all measures higher is better, unless ``lower_is_better``.
    """

    name: ClassVar[str]  # by default the one that it is registered or imported under
    primary: ClassVar[str]  # the key of the measure that tuning and significance use
    columns: ClassVar[tuple[str, ...]]  # names of the K statistics
    reference_columns: ClassVar[tuple[str, ...]]  # names of the R statistics
    lower_is_better: ClassVar[bool] = False
    percent: ClassVar[float] = 100.0  # what the primary measure is multiplied by to be shown: 1 if it is 0-100
    gain_percent: ClassVar[float] = 100.0  # the same for gains
    digits: ClassVar[int] = 2  # how many are shown after the decimal point
    perfect_gain: ClassVar[float] = 1.0  # the gain of a candidate that cannot be better
    measured: ClassVar[Sequence[str]] = ()  # the score columns of lists that it is computed from: no features, then
    ordered: ClassVar[bool] = False  # of the order of all candidates? It has ``rows_in_order`` and ``along``

    @abstractmethod
    def scores(self, stats: np.ndarray, reference: np.ndarray) -> np.ndarray:
        """Primary measure of summed statistics: float64 [..., K] and [..., R] → [...]; finite everywhere."""

    @property
    def sign(self) -> float:
        """1, and -1 where lower is better: with it, the highest score is the best."""
        return -1.0 if self.lower_is_better else 1.0

    def score(self, rows: np.ndarray, reference: np.ndarray) -> float:
        """The primary measure of a selection: float64 [L, K] and [L, R]."""
        return float(self.scores(rows.sum(axis=0), reference.sum(axis=0)))

    def report(self, stats: np.ndarray, reference: np.ndarray) -> dict[str, float]:
        """All measures of one selection from its sums: float64 [K] and [R]; keys are those of metrics.json; by default
        the primary one."""
        return {self.primary: float(self.scores(stats, reference))}

    @property
    def signature(self) -> str:
        """Everything that changes the number: modes, cut-offs, version; printed with every score. By default the name
        and all settings."""
        settings = (field.name for field in fields(type(self)))  # type: ignore[arg-type]
        return "|".join([self.name, *(f"{name}:{getattr(self, name)}" for name in settings)])

    @property
    def words(self) -> str:
        """The measure as an account of lists says it: by default the signature."""
        return self.signature

    @property
    def heading(self) -> str:
        """The heading of its scores in tables."""
        return self.primary

    def gain(self, stats: np.ndarray, reference: np.ndarray) -> np.ndarray:
        """Sentence-level quality; higher is better: float64 [..., K] and [..., R] → [...]; by default the score."""
        scores = self.scores(stats, reference)
        return -scores if self.lower_is_better else scores

    def text(self, value: float) -> str:
        """The primary measure as it is shown everywhere."""
        return f"{self.percent * value:.{self.digits}f}"

    def signed(self, value: float) -> str:
        """A difference of the primary measure as it is shown everywhere."""
        return f"{self.percent * value:+.{self.digits}f}"

    def perfect(self, stats: np.ndarray, reference: np.ndarray) -> np.ndarray:
        """The rows that are entirely right (bool [...]): those that McNemar's test counts."""
        return np.asarray(self.gain(stats, reference) >= self.perfect_gain - 1e-12)

    def valid(self, stats: np.ndarray) -> np.ndarray:
        """The rows that may be chosen to raise a corpus score (bool [...]): not those that just drop out of the
        sums."""
        return np.ones(np.shape(stats)[:-1], dtype=np.bool_)

    def rows_in_order(
        self, lists: np.ndarray, scores: np.ndarray, ties: np.ndarray, stats: np.ndarray, reference: np.ndarray
    ) -> np.ndarray:
        """The rows of all lists (float64 [L, K]) in the order of ``scores``, if the metric is ``ordered``; among
        equal ones those with higher ``ties`` are first (float64 [N] each), then those with the lower index."""
        raise NotImplementedError

    def along(
        self, lists: np.ndarray, intercept: np.ndarray, slope: np.ndarray, ties: np.ndarray, stats: np.ndarray,
        reference: np.ndarray, order: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
        """If the metric is ``ordered``, the sum of all values where candidates score intercept + γ·slope (float64
        [N] each): the γ where it changes (float64 [E], rising), and the sums between these (float64 [E + 1]); order
        (int32 [N]): the candidates, list after list, by slope and index."""
        raise NotImplementedError


metrics: Registry[type[Metric]] = Registry("metric", Metric)


def measures_orders(name: object) -> bool:
    """Whether the metric of this name is one of the order of all candidates."""
    return isinstance(name, str) and name in metrics and metrics.get(name).ordered


def owners(lists: np.ndarray) -> np.ndarray:
    """int64 [N]: the list of every candidate; ``lists``: int64 [L + 1]."""
    return np.repeat(np.arange(lists.size - 1), np.diff(lists))


def chosen_rows(stats: np.ndarray, choices: np.ndarray) -> np.ndarray:
    """The rows of a selection: float64 [N, K] and int64 [L] → float64 [L, K]; zeros where ``choices`` is -1."""
    rows = np.zeros((choices.shape[0], stats.shape[1]))
    rows[choices >= 0] = stats[choices[choices >= 0]]
    return rows


def f_measure(correct: Any, found: Any, right: Any, beta: float = 1.0) -> np.ndarray:
    """(1 + beta²) · correct / (found + beta² · right), elementwise; 1 where nothing is found and nothing is right."""
    total = found + beta**2 * right
    return np.where(total > 0, (1.0 + beta**2) * correct / np.where(total > 0, total, 1.0), 1.0)


def f_report(key: str, correct: float, found: float, right: float, beta: float = 1.0) -> dict[str, float]:
    """``f_measure`` under ``key``, precision and recall, which are 0 of nothing."""
    shares = {"precision": correct / (found or 1.0), "recall": correct / (right or 1.0)}
    return {key: float(f_measure(correct, found, right, beta)), **shares}


@kernel
def _fill_best(lists: np.ndarray, scores: np.ndarray, ties: np.ndarray, choices: np.ndarray) -> None:
    """``best_of_lists`` → ``choices``."""
    for i in range(choices.shape[0]):
        choices[i] = -1
        for y in range(lists[i], lists[i + 1]):
            top = choices[i]
            if top < 0 or scores[y] > scores[top] or (scores[y] == scores[top] and ties[y] > ties[top]):
                choices[i] = y


def best_of_lists(lists: np.ndarray, scores: np.ndarray, ties: np.ndarray) -> np.ndarray:
    """Per list, the candidate with the highest score, then the highest of ``ties``, then the lowest index: int64
    [L + 1] and float64 [N] each → int64 [L], -1 for empty lists."""
    choices = np.empty(lists.shape[0] - 1, np.int64)
    _fill_best(freeze(lists), freeze(scores), freeze(ties), choices)
    return choices


def two_valued(lists: Corpus) -> bool:
    """Whether the gains of all candidates have at most two values, such as right and wrong."""
    gain = lists.gain
    return gain.size == 0 or bool(((gain == gain.min()) | (gain == gain.max())).all())


def oracles(lists: Corpus) -> np.ndarray:
    """Best gain per list; ties go to the higher base score, then to the lower index: int64 [L]."""
    return best_of_lists(lists.lists, lists.gain, lists.base)


def list_gains(lists: Corpus, choices: np.ndarray | None = None) -> np.ndarray:
    """float64 [L]: the gain of every list's choice (int64 [L]), or of its best candidate; 0 where there is none."""
    gains, full = np.zeros(lists.list_count), np.flatnonzero(np.diff(lists.lists))
    if choices is not None:
        gains[full] = lists.gain[choices[full]]
    elif full.size:
        gains[full] = np.maximum.reduceat(lists.gain, lists.lists[full])
    return gains


def rows_of_scores(
    metric: Metric, lists: np.ndarray, scores: np.ndarray, ties: np.ndarray, stats: np.ndarray, reference: np.ndarray
) -> np.ndarray:
    """float64 [L, K]: what ``scores`` (float64 [N]) are worth: the rows of the best candidates of all lists or, by a
    metric of an order, of their orders; among equal scores those with higher ``ties`` are first, then lower indices."""
    if metric.ordered:
        return metric.rows_in_order(lists, scores, ties, stats, reference)
    return chosen_rows(stats, best_of_lists(lists, scores, ties))


def scored_rows(lists: Corpus, metric: Metric, scores: np.ndarray) -> np.ndarray:
    """``rows_of_scores`` for all lists, ties by the base score."""
    return rows_of_scores(metric, lists.lists, scores, lists.base, lists.stats, lists.reference)


def usual_scores(lists: Corpus, metric: Metric) -> dict[str, np.ndarray]:
    """float64 [N] by row: the scores of the choices that every table has, the first candidates' if these are others
    than those of the base."""
    scores = {"base": lists.base, "first": -np.arange(lists.candidate_count, dtype=np.float64), "oracle": lists.gain}
    base, first = (scored_rows(lists, metric, scores[name]) for name in ("base", "first"))
    if np.array_equal(base, first):
        del scores["first"]
    return scores


def gains_of(metric: Metric, stats: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """The gains of candidates with these rows (float64 [N, K] and [N, R]); a metric of the user's may give anything."""
    gain, shape = np.asarray(metric.gain(stats, reference)), (len(reference), len(metric.columns))
    if (gain.shape, stats.shape) != (shape[:1], shape) or not (np.isfinite(gain).all() and np.isfinite(stats).all()):
        found = f"{metric.name} has statistics of the shape {stats.shape} and scores of {gain.shape}"
        raise RecipeError(f"{found}; expected {shape} and {shape[:1]}, and finite numbers", key="metric")
    return gain


def measured_corpus(blocks: Iterable[Sequence[np.ndarray]], metric: Metric) -> Corpus:
    """A corpus without features: of blocks of lists where these begin (int64 [L + 1]), the base scores (float64 [N])
    and statistics (float64 [N, K]) of candidates, and those of references (float64 [L, R])."""
    firsts, *others = zip(*blocks, strict=True)
    sizes, (base, stats, reference) = np.concatenate([*map(np.diff, firsts)]), map(np.concatenate, others)
    gain = gains_of(metric, stats, np.repeat(reference, sizes, axis=0))
    rows, columns, values = np.zeros(base.size + 1), np.zeros(0, np.int32), np.zeros(0, np.float32)
    return Corpus(offsets(sizes), rows, columns, values, base, gain, stats, reference, np.ones(sizes.size), width=0)


def oracle_ranks(corpus: Corpus, choices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """int64 [L] each: oracles' ranks by base score (from 0), and how many share their gain; −1 and 0 for none."""
    owner, base, gain = owners(corpus.lists), corpus.base, corpus.gain
    best = choices[owner]
    better = (base > base[best]) | ((base == base[best]) & (np.arange(owner.size) < best))
    ranks, sharing = (np.bincount(owner[of], minlength=choices.size) for of in (better, gain == gain[best]))
    return np.where(choices >= 0, ranks, -1), sharing


def mean_rows(lists: np.ndarray, stats: np.ndarray) -> np.ndarray:
    """Expected statistics of a uniform choice from every list: float64 [L, K]; 0 for empty lists."""
    sizes, owner = np.diff(lists), owners(lists)
    return np.column_stack([np.bincount(owner, column / sizes[owner], sizes.size) for column in stats.T])


def corpus_oracle(corpus: Corpus, metric: Metric, *, start: np.ndarray | None = None) -> np.ndarray:
    """Hill climbing on the corpus score: exchange one list's candidate at a time while that improves the score.

    The best sentences do not make the best corpus, because lists weigh differently in the sums (a long sentence has
    more brackets). The climb starts from ``start`` (the sentence oracle by default), goes through the lists
    in order, and stops when no single exchange helps; it is never worse than its start. For a ratio of sums such as F,
    that is the optimum: there every list's choice maximises 2·matched − F·test on its own (Dinkelbach 1967).
    Candidates that are not ``metric.valid`` are never taken.

    Returns
    -------
    int64 [L]: the selection.
    """
    choices = (oracles(corpus) if start is None else np.asarray(start)).astype(np.int64)
    if metric.ordered:  # a mean over lists
        return choices
    total, climbing, sign = corpus.reference.sum(axis=0), True, metric.sign
    while climbing:
        rows, climbing, promising = chosen_rows(corpus.stats, choices), False, list[np.ndarray]()
        sums = rows.sum(axis=0)  # again in every round, so that rounding does not accumulate
        score = sign * float(metric.scores(sums, total))
        for begin, part in zip(corpus.cuts[:-1], corpus.parts(), strict=True):
            owner = begin + owners(part.lists)
            exchanges = sign * metric.scores(sums + part.stats - rows[owner], total)
            promising.append(np.unique(owner[metric.valid(part.stats) & (exchanges > score + _step(score))]))
        for i in np.concatenate(promising):
            first, stats = corpus.lists[i], corpus.stats[corpus.lists[i] : corpus.lists[i + 1]]
            rest = sums - corpus.stats[choices[i]]
            offers = np.where(metric.valid(stats), sign * metric.scores(rest + stats, total), -np.inf)
            best = int(np.argmax(offers))
            if offers[best] > score + _step(score):
                choices[i], score, climbing = first + best, float(offers[best]), True
                sums = rest + corpus.stats[choices[i]]
    return choices


def _step(score: float) -> float:
    """Improvements below this are rounding."""
    return 1e-13 * max(1.0, abs(score))


def blind_rows(part: Corpus, metric: Metric) -> np.ndarray:
    """Expected rows of lists (float64 [L, K]) of which nothing is known; of orders the mean of a few random ones."""
    if not metric.ordered:
        return mean_rows(part.lists, part.stats)
    scores = np.random.default_rng(SHUFFLES).random((SHUFFLES, part.candidate_count))
    about = part.base, part.stats, part.reference
    return np.asarray(np.mean([metric.rows_in_order(part.lists, drawn, *about) for drawn in scores], axis=0))


def list_statistics(corpus: Corpus, metric: Metric) -> dict[str, Any]:
    """A summary of N-best lists, with ``stats`` and ``reference`` of the metric: how long they are, and how the best,
    worst and blind choices score.

    ``base``, ``first`` (the first candidates), ``oracle``, ``corpus_oracle``, ``anti_oracle`` and ``random``
    are reports of the metric; ``random`` is the score of the expected statistics under a uniform choice.
    ``oracle_ranks[r]`` counts the lists whose oracle has rank r (from 0) by base score. ``unique_oracle`` is the share
    of nonempty lists with a single best candidate.
    """
    total, sizes, choices = corpus.reference.sum(axis=0), np.diff(corpus.lists), oracles(corpus)
    ranks, sharing = oracle_ranks(corpus, choices)
    optimum, indices = corpus_oracle(corpus, metric, start=choices), np.arange(float(corpus.candidate_count))

    def report(rows: np.ndarray) -> dict[str, float]:
        return metric.report(rows.sum(axis=0), total)

    def by(scores: np.ndarray) -> dict[str, float]:
        return report(scored_rows(corpus, metric, scores))

    return {
        "signature": metric.signature,
        "lists": corpus.list_count,
        "candidates": corpus.candidate_count,
        "smallest": int(sizes.min()) if sizes.size else 0,
        "mean": float(sizes.mean()) if sizes.size else 0.0,
        "median": float(np.median(sizes)) if sizes.size else 0.0,
        "largest": int(sizes.max(initial=0)),
        "empty": int(np.count_nonzero(sizes == 0)),
        "singletons": int(np.count_nonzero(sizes == 1)),
        "unique_oracle": int(np.count_nonzero(sharing == 1)) / max(1, int(np.count_nonzero(sizes))),
        "oracle_ranks": tuple(int(count) for count in np.bincount(ranks[ranks >= 0])),
        "base": by(corpus.base),
        "first": by(-indices),
        "oracle": by(corpus.gain),
        "corpus_oracle": by(corpus.gain) if metric.ordered else report(chosen_rows(corpus.stats, optimum)),
        "anti_oracle": by(-corpus.gain),
        "random": report(blind_rows(corpus, metric)),
    }


def with_corpus_gains(corpus: Corpus, metric: Metric, around: np.ndarray, share: float) -> Corpus:
    """``corpus`` with gains of which ``share`` is the gain of the corpus score: how a candidate would change it in
    place of its list's choice in ``around`` (int64 [L]), times the number of lists, in units of the metric's gain.

    With a corpus measure that is not a mean over sentences (BLEU with its brevity penalty), a sentence is then asked
    for what the corpus needs.
    """
    if metric.ordered:
        message = f"{metric.primary} is a mean over lists: there is no gain of the corpus; leave it out"
        raise RecipeError(message, key="oracle.corpus_share")
    rows, reference = chosen_rows(corpus.stats, around), corpus.reference.sum(axis=0)
    total, owner = rows.sum(axis=0), owners(corpus.lists)
    unit = around.size * metric.percent / metric.gain_percent * metric.sign
    scores = metric.scores(total - rows[owner] + corpus.stats, reference)
    gains = unit * (scores - metric.scores(total, reference))
    return replace(corpus, gain=(1 - share) * corpus.gain + share * gains, trusted=True)
