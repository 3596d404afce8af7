"""Oracles and list statistics: tie rules, and hill climbing between the sentence oracle and the global optimum."""

from itertools import pairwise, product
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rerank.data.corpus import Corpus
from rerank.metrics.metric import Metric, chosen_rows
from rerank.metrics.oracle import ListStatistics, base_choice, corpus_oracle, oracle
from rerank.metrics.parseval import Parseval


def arrays(*lists):
    """Offsets and flat values of lists given as sequences."""
    offsets = np.concatenate([[0], np.cumsum([len(values) for values in lists])]).astype(np.int64)
    return offsets, np.array([value for values in lists for value in values], dtype=float)


class TestSelections:
    def test_empty_lists_have_no_choice(self):
        lists, gain = arrays([], [0.5], [], [])
        for chosen in (oracle(lists, gain, gain), base_choice(lists, gain)):
            assert chosen.tolist() == [-1, 0, -1, -1]
        assert chosen_rows(np.array([[3.0]]), chosen).tolist() == [[0.0], [3.0], [0.0], [0.0]]
        assert oracle(np.zeros(1, np.int64), np.zeros(0), np.zeros(0)).tolist() == []

    @settings(max_examples=100, deadline=None)
    @given(st.lists(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), max_size=6), max_size=5))
    def test_equals_sorting(self, pairs):
        lists, gain = arrays(*[[g for g, _ in one] for one in pairs])
        _, base = arrays(*[[b for _, b in one] for one in pairs])
        for sign in (1, -1):
            chosen = oracle(lists, sign * gain, base)
            expected = [
                min(range(a, z), key=lambda y: (-sign * gain[y], -base[y], y), default=-1) for a, z in pairwise(lists)
            ]
            assert chosen.tolist() == expected


def corpus_of(lists, reference, metric, base=None) -> Corpus:
    """A corpus without features from rows of statistics, list by list."""
    offsets = np.concatenate([[0], np.cumsum([len(rows) for rows in lists])]).astype(np.int64)
    stats = np.array([row for rows in lists for row in rows], dtype=float).reshape(offsets[-1], len(metric.columns))
    reference = np.array(reference, dtype=float).reshape(len(lists), len(metric.reference_columns))
    gain = metric.gain(stats, np.repeat(reference, np.diff(offsets), axis=0))
    base = -np.arange(len(stats)) if base is None else base
    columns = {"columns": [], "values": [], "rows": np.zeros(len(stats) + 1), "weight": np.ones(len(lists)), "width": 0}
    return Corpus(lists=offsets, base=base, gain=gain, stats=stats, reference=reference, **columns)


class FScore(Metric):
    """F of (matched, test) against gold: two columns instead of PARSEVAL's eleven."""

    name: ClassVar[str] = "f"
    primary: ClassVar[str] = "f1"
    columns: ClassVar[tuple[str, ...]] = ("matched", "test")
    reference_columns: ClassVar[tuple[str, ...]] = ("gold",)
    signature = "f"

    def scores(self, stats, reference):
        return 2 * stats[..., 0] / np.maximum(stats[..., 1] + reference[..., 0], 1)

    def report(self, stats, reference):
        return {"f1": float(self.scores(stats, reference))}


class ErrorRate(FScore):
    """1 − F: the same selections, seen from below."""

    lower_is_better: ClassVar[bool] = True

    def scores(self, stats, reference):
        return 1 - super().scores(stats, reference)


def score(corpus, metric, chosen) -> float:
    return float(metric.scores(chosen_rows(corpus.stats, np.asarray(chosen)).sum(axis=0), corpus.reference.sum(axis=0)))


def all_scores(corpus, metric) -> list[float]:
    """Scores of every selection that takes one candidate from every nonempty list."""
    choices = [range(a, z) if z > a else [-1] for a, z in pairwise(corpus.lists)]
    return [score(corpus, metric, chosen) for chosen in product(*choices)]


@st.composite
def corpora(draw, metric) -> Corpus:
    lists, reference = [], []
    for _ in range(draw(st.integers(1, 5))):
        gold = draw(st.integers(0, 12))
        rows = []
        for _ in range(draw(st.integers(0, 4))):
            test = draw(st.integers(0, 12))
            rows.append((draw(st.integers(0, min(gold, test))), test))
        lists.append(rows)
        reference.append(gold)
    return corpus_of(lists, reference, metric)


class TestCorpusOracle:
    @settings(max_examples=150, deadline=None)
    @given(corpora(FScore()))
    def test_lies_between_the_sentence_oracle_and_the_global_optimum(self, corpus):
        metric = FScore()
        climbed = corpus_oracle(corpus, metric)
        reached = score(corpus, metric, climbed)
        assert reached >= score(corpus, metric, oracle(corpus.lists, corpus.gain, corpus.base))
        assert reached <= max(all_scores(corpus, metric)) + 1e-12
        for i in range(corpus.list_count):  # no exchange of one candidate helps
            for y in range(corpus.lists[i], corpus.lists[i + 1]):
                other = climbed.copy()
                other[i] = y
                assert score(corpus, metric, other) <= reached + 1e-12
        sizes = np.diff(corpus.lists)
        assert ((climbed >= corpus.lists[:-1]) & (climbed < corpus.lists[1:]))[sizes > 0].all()
        assert (climbed[sizes == 0] == -1).all()

    @settings(max_examples=50, deadline=None)
    @given(corpora(FScore()))
    def test_reaches_the_optimum_of_a_ratio_of_sums(self, corpus):
        # F is 2m / (t + g): a local optimum under single exchanges is a global one, as each list can be judged by
        # 2m − F·t alone.
        assert score(corpus, FScore(), corpus_oracle(corpus, FScore())) == pytest.approx(
            max(all_scores(corpus, FScore()))
        )

    @settings(max_examples=30, deadline=None)
    @given(corpora(FScore()))
    def test_lower_is_better(self, corpus):
        assert (corpus_oracle(corpus, ErrorRate(), start=oracle(corpus.lists, corpus.gain, corpus.base))
                == corpus_oracle(corpus, FScore())).all()  # fmt: skip

    def test_refused_candidates_are_never_taken(self):
        metric = Parseval(punctuation="evalb")
        poor, refused, good = np.zeros((3, len(metric.columns)))
        poor[:2] = (1, 10)
        refused[[metric.columns.index("refused"), metric.columns.index("gold_shift")]] = (1, -10)
        good[:2] = (10, 10)
        corpus = corpus_of([[poor, refused], [good]], [[10, 10, 10, 1, 0]] * 2, metric)
        assert corpus_oracle(corpus, metric).tolist() == [0, 2]


class TestListStatistics:
    def test_by_hand(self):
        lists = [[(1, 2), (2, 2), (2, 4)], [], [(3, 3)], [(1, 2), (0, 0), (1, 2)]]
        corpus = corpus_of(lists, [2, 5, 3, 2], FScore(), base=[-1.0, -2.0, -3.0, 0.0, -5.0, -5.0, -4.0])
        found = ListStatistics.of(corpus, FScore())
        assert (found.lists, found.candidates, found.empty, found.singletons) == (4, 7, 1, 1)
        assert (found.smallest, found.mean, found.median, found.largest) == (0, 7 / 4, 2.0, 3)
        assert found.oracle_ranks == (2, 1)  # ranks 1, 0, 0
        assert found.unique_oracle == pytest.approx(2 / 3)  # the last list has two candidates of equal gain
        assert found.base["f1"] == pytest.approx(2 * (1 + 3 + 1) / (2 + 3 + 2 + 12))
        assert found.oracle["f1"] == pytest.approx(2 * (2 + 3 + 1) / (2 + 3 + 2 + 12))
        assert found.anti_oracle["f1"] == pytest.approx(2 * (1 + 3 + 0) / (2 + 3 + 0 + 12))
        assert found.random["f1"] == pytest.approx(2 * (5 / 3 + 3 + 2 / 3) / (8 / 3 + 3 + 4 / 3 + 12))
        assert found.corpus_oracle["f1"] >= found.oracle["f1"]
        assert found.signature == "f"

    def test_no_lists(self):
        found = ListStatistics.of(corpus_of([], [], FScore()), FScore())
        assert (found.lists, found.candidates, found.smallest, found.mean, found.oracle_ranks) == (0, 0, 0, 0.0, ())
        assert found.unique_oracle == found.oracle["f1"] == 0.0

    @settings(max_examples=100, deadline=None)
    @given(corpora(FScore()))
    def test_order_of_the_choices(self, corpus):
        found = ListStatistics.of(corpus, FScore())
        assert found.corpus_oracle["f1"] >= found.oracle["f1"]
        assert found.corpus_oracle["f1"] >= max(found.base["f1"], found.anti_oracle["f1"]) - 1e-12
        sizes = np.diff(corpus.lists)
        assert sum(found.oracle_ranks) == np.count_nonzero(sizes)
        expected = [np.mean([corpus.stats[y] for y in range(a, z)], axis=0)
                    for a, z in pairwise(corpus.lists) if z > a]  # fmt: skip
        total = np.sum(expected, axis=0) if expected else np.zeros(2)
        assert found.random["f1"] == pytest.approx(float(FScore().scores(total, corpus.reference.sum(axis=0))))
