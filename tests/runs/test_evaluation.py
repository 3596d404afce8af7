"""PARSEVAL of two streams of trees: EVALB's rows and totals, and what is wrong with the streams."""

import nltk
import pytest

from rerank.base.errors import DataError
from rerank.metrics.evaluation import evaluate
from rerank.metrics.parseval import Parseval

IT_RAINS = "(S1 (S (NP (PRP It)) (VP (VBZ rains)) (. .)))"
GOLD = "(S1 (S (NP (NN a)) (: -) (VP (VB b))))"
TEST = "(S1 (S (NP (NN a) (NN -)) (VP (VB b))))"  # '-' is a word here, and punctuation in the reference


def test_rows_and_scores():
    result = evaluate([IT_RAINS, "(S1 (. .))", GOLD], [IT_RAINS.encode(), "(S1 (: .))",
                      nltk.Tree.fromstring(TEST)], Parseval(punctuation="evalb"))  # fmt: skip
    first, second, third = result.sentences()
    assert first == (1, 3, 0, 1.0, 1.0, 3, 3, 3, 0, 2, 2, 1.0)
    assert (second.status, second.length, second.gold) == (2, 1, 0)
    assert (third.status, third.gold, third.test, third.words) == (1, 0, 0, 0)
    assert result.scores()["f1"] == 1.0
    lines = list(result.table())
    assert lines[3].split() == ["1", "3", "0", "100.00", "100.00", "3", "3", "3", "0", "2", "2", "100.00"]
    assert "Number of Error sentence  =      1" in lines
    assert "-- length <= 40 --" in lines


def test_no_trees():
    assert evaluate([], []).scores()["sentences"] == 0


def test_numbers_of_trees_differ():
    with pytest.raises(DataError, match=r"^t: the test trees end after 1, but there are more reference trees"):
        evaluate([IT_RAINS] * 3, [IT_RAINS], test_path="t")
    with pytest.raises(DataError, match=r"^g: the reference trees end after 0"):
        evaluate([], [IT_RAINS], gold_path="g")


def test_other_words_name_the_line():
    with pytest.raises(DataError, match=r"^t:2: .*at word 1 found 'b', the reference has 'a'"):
        evaluate([IT_RAINS, "(S (NN a))"], [IT_RAINS, "(S (NN b))"], test_path="t")


def test_unreadable_trees_name_the_line():
    with pytest.raises(DataError, match=r"^t:2: the tree is not closed"):
        evaluate([IT_RAINS] * 2, [IT_RAINS, "(S (NN a)"], test_path="t")


def test_too_many_refused():
    gold, test = [GOLD] * 3, [TEST] * 3
    assert evaluate(gold, test, Parseval(punctuation="evalb", max_error=2)).scores()["refused"] == 3
    with pytest.raises(DataError, match=r"3 of the first 3 sentences are refused.*MAX_ERROR is 1"):
        evaluate(gold, test, Parseval(punctuation="evalb", max_error=1))
