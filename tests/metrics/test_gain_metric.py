"""The metrics that are columns of the lists."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rerank.base.errors import DataError
from rerank.metrics.gain import Counts, Gain
from rerank.metrics.metric import chosen_rows
from rerank.readers.lists import Lists

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
