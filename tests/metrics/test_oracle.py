"""Metrics that are columns of the lists; oracles, which reach the optimum, and list statistics."""

import math
from itertools import pairwise, product
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rerank.base.errors import DataError
from rerank.data.corpus import Corpus
from rerank.metrics.gain import Counts, Gain
from rerank.metrics.metric import Metric, best_of_lists, chosen_rows, corpus_oracle, list_statistics, oracles
from rerank.metrics.parseval import Parseval
from rerank.readers.lists import Lists


def arrays(*lists):
    """Offsets and flat values of lists given as sequences."""
    offsets = np.concatenate([[0], np.cumsum([len(values) for values in lists])]).astype(np.int64)
    return offsets, np.array([value for values in lists for value in values], dtype=float)


class TestSelections:
    @settings(max_examples=100, deadline=None)
    @given(st.lists(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), max_size=6), max_size=5))
    def test_equals_sorting(self, pairs):
        lists, gain = arrays(*[[g for g, _ in one] for one in pairs])
        _, base = arrays(*[[b for _, b in one] for one in pairs])
        for sign in (1, -1):
            chosen = best_of_lists(lists, sign * gain, base)
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
    def test_reaches_the_optimum_of_a_ratio_of_sums(self, corpus):
        """F is 2m / (t + g): where no exchange helps, none of several does, as each list can be judged by 2m − F·t."""
        climbed = corpus_oracle(corpus, FScore())
        assert score(corpus, FScore(), climbed) == pytest.approx(max(all_scores(corpus, FScore())))
        sizes = np.diff(corpus.lists)
        assert ((climbed >= corpus.lists[:-1]) & (climbed < corpus.lists[1:]))[sizes > 0].all()
        assert (climbed[sizes == 0] == -1).all()

    @settings(max_examples=30, deadline=None)
    @given(corpora(FScore()))
    def test_lower_is_better(self, corpus):
        assert (corpus_oracle(corpus, ErrorRate(), start=oracles(corpus))
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
        found = list_statistics(corpus, FScore())
        assert (found["lists"], found["candidates"], found["empty"], found["singletons"]) == (4, 7, 1, 1)
        assert (found["smallest"], found["mean"], found["median"], found["largest"]) == (0, 7 / 4, 2.0, 3)
        assert found["oracle_ranks"] == (2, 1)  # ranks 1, 0, 0
        assert found["unique_oracle"] == pytest.approx(2 / 3)  # the last list has two candidates of equal gain
        assert found["base"]["f1"] == pytest.approx(2 * (1 + 3 + 1) / (2 + 3 + 2 + 12))
        assert found["oracle"]["f1"] == pytest.approx(2 * (2 + 3 + 1) / (2 + 3 + 2 + 12))
        assert found["anti_oracle"]["f1"] == pytest.approx(2 * (1 + 3 + 0) / (2 + 3 + 0 + 12))
        assert found["random"]["f1"] == pytest.approx(2 * (5 / 3 + 3 + 2 / 3) / (8 / 3 + 3 + 4 / 3 + 12))
        assert found["corpus_oracle"]["f1"] >= found["oracle"]["f1"]
        assert found["signature"] == "f"

    def test_no_lists(self):
        found = list_statistics(corpus_of([], [], FScore()), FScore())
        assert (found["lists"], found["candidates"], found["smallest"], found["mean"], found["oracle_ranks"]) == (
            0,
            0,
            0,
            0.0,
            (),
        )
        assert found["unique_oracle"] == found["oracle"]["f1"] == 0.0


METRIC = Gain()


def text_list(gains: list[float]) -> Lists:
    """Candidates with a base score of 7 and these gains, from the fifth line of a file."""
    N = len(gains)
    scores = np.array([[7.0] * N, gains]).T
    return Lists.one("3", "x.jsonl", 5, [b"a"] * N, [5 + y for y in range(N)], scores, names=("score", "gain"))


values = st.floats(-10, 10)


@given(st.lists(st.lists(values, max_size=4), min_size=1, max_size=5), st.data())
def test_the_score_of_a_choice_is_the_mean_an_empty_list_adds_0(lists, data):
    rows = [METRIC.list_stats(text_list(gains), ()) for gains in lists]
    begins = np.cumsum([0, *map(len, lists)])
    picks = [data.draw(st.integers(-1, len(gains) - 1)) for gains in lists]
    chosen = np.array([-1 if y < 0 else begins[i] + y for i, y in enumerate(picks)])
    stats = chosen_rows(np.concatenate([row for _, row in rows]), chosen).sum(axis=0)
    report = METRIC.report(stats, np.sum([row for row, _ in rows], axis=0))
    expected = [0.0 if y < 0 else gains[y] for y, gains in zip(picks, lists, strict=True)]
    assert report == {"gain": pytest.approx(np.mean(expected))}


@given(st.lists(values, min_size=1))
def test_the_gain_is_the_value(gains):
    reference, rows = METRIC.list_stats(text_list(gains), ())
    assert METRIC.gain(rows, reference).tolist() == gains
    assert Gain(column="score").list_stats(text_list(gains), ())[1].tolist() == [[7.0]] * len(gains)


def test_a_candidate_that_reaches_the_best_value_is_right():
    reference, rows = METRIC.list_stats(text_list([1.0, 0.5, 5.0]), ())
    assert METRIC.perfect(rows, reference).tolist() == [True, False, True]
    assert Gain(best=5.0).perfect(rows, reference).tolist() == [False, False, True]
    errors = np.array([[1.0], [0.0], [0.5]])  # of which 0 is the best, unless it is said otherwise
    assert Gain(lower=True).perfect(errors, reference).tolist() == [False, True, False]
    assert Gain(lower=True, best=0.5).perfect(errors, reference).tolist() == [False, True, True]


def test_the_statistics_are_not_the_lists_scores():
    nbest = text_list([1.0, 2.0])
    METRIC.list_stats(nbest, ())[1][:] = 0
    assert nbest.scores[:, 1].tolist() == [1.0, 2.0]


def test_a_missing_column_is_an_error_that_names_those_there_are():
    with pytest.raises(DataError, match=r"x\.jsonl:5: list 3: found the columns score, gain, expected 'reward'"):
        Gain(column="reward").list_stats(text_list([1.0]), ())


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_no_finite_number_is_an_error_in_its_line(value):
    with pytest.raises(DataError, match=r"x\.jsonl:6: list 3: candidate 2: found -?(nan|inf) as 'gain'"):
        METRIC.list_stats(text_list([1.0, value]), ())


def test_texts_alone_have_no_gain():
    with pytest.raises(DataError, match="column 'gain' of lists"):
        METRIC.stats([b"a"], [b"a"])


def test_a_column_of_gains_makes_equal_texts_vote_together() -> None:
    gains = Gain().pairwise([b"7", b"8 ", b"8", b"9"])
    assert gains.tolist() == [[1, 0, 0, 0], [0, 1, 1, 0], [0, 1, 1, 0], [0, 0, 0, 1]]


def counted(rows: list[tuple[int, int, int]]) -> Lists:
    """Candidates with a base score of 7 and numbers of true positives, false positives and false negatives."""
    scores = np.array([(7, *row) for row in rows], np.float64).reshape(-1, 4)
    return Lists.one("3", "x", 5, [b"a"] * len(rows), [5 + y for y in range(len(rows))], scores, names=("s", *NAMES))


NAMES = "tp", "fp", "fn"
counts = st.integers(0, 4)
triples = st.lists(st.tuples(counts, counts, counts), max_size=4)


@given(st.lists(triples, max_size=4), st.sampled_from([0.5, 1.0, 2.0]), st.data())
def test_f_is_that_of_all_counts_an_empty_list_adds_nothing(lists, beta, data):
    metric = Counts(correct="tp", found="tp+fp", right="fn+tp", beta=beta)
    total, stats, reference = np.zeros(3), np.zeros(3), np.zeros(1)
    for triple in lists:
        row, rows = metric.list_stats(counted(triple), ())
        y = data.draw(st.integers(-1, len(triple) - 1))
        total += triple[y] if y >= 0 else 0
        stats, reference = stats + (rows[y] if y >= 0 else 0), reference + row
    tp, fp, fn = total
    p, r = (tp / (tp + wrong) if tp + wrong else 1.0 for wrong in (fp, fn))
    f = (1 + beta**2) * p * r / (beta**2 * p + r) if p + r else 0.0
    report = metric.report(stats, reference)
    assert report.pop(metric.primary) == pytest.approx(f)
    assert report == {"precision": tp / max(tp + fp, 1), "recall": tp / max(tp + fn, 1)}
    assert metric.scores(stats, reference) == pytest.approx(f)


def test_the_columns_of_counts_are_named_where_they_do_not_fit():
    assert (Counts().primary, Counts(beta=0.5).primary) == ("f1", "f0.5")
    assert [*Counts(correct="tp", found="tp+fp", right="m").measured] == ["tp", "tp", "fp", "m"]
    nbest = counted([(1, 0, 2), (2, 1, 2)])
    with pytest.raises(DataError, match=r"s, tp, fp, fn, expected 'n'; .* \(in a recipe: metric.found\)"):
        Counts(correct="tp", found="n", right="fn").list_stats(nbest, ())
    with pytest.raises(DataError, match=r"x:5: list 3: candidate 1: 1 correct, 0 found, 2 right; expected 0 ≤ correct"):
        Counts(correct="tp", found="fp", right="fn").list_stats(nbest, ())
