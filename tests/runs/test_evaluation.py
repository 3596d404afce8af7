"""PARSEVAL of two streams of trees: EVALB's rows and totals, and what is wrong with the streams."""

import nltk
import pytest

from rerank.base.errors import DataError
from rerank.metrics.evaluation import evaluate
from rerank.metrics.parseval import Parseval
from rerank.readers.trees.treebank import SentenceText

IT_RAINS = "(S1 (S (NP (PRP It)) (VP (VBZ rains)) (. .)))"
GOLD = "(S1 (S (NP (NN a)) (: -) (VP (VB b))))"
TEST = "(S1 (S (NP (NN a) (NN -)) (VP (VB b))))"  # '-' is a word here, and punctuation in the reference


def test_rows_and_scores():
    result = evaluate([IT_RAINS, "(S1 (. .))", GOLD], [IT_RAINS.encode(), "(S1 (: .))",
                      nltk.Tree.fromstring(TEST)], Parseval(punctuation="evalb"))  # fmt: skip
    first, second, third = result.sentences()
    assert tuple(first.values()) == (1, 3, 0, 1.0, 1.0, 3, 3, 3, 0, 2, 2, 1.0)
    assert (second["status"], second["length"], second["gold"]) == (2, 1, 0)
    assert [third[key] for key in ("status", "gold", "test", "words")] == [1, 0, 0, 2]
    assert result.scores()["f1"] == 1.0
    lines = list(result.table())
    assert lines[3].split() == ["1", "3", "0", "100.00", "100.00", "3", "3", "3", "0", "2", "2", "100.00"]
    assert "Number of Error sentence  =      1" in lines
    assert "Number of Valid sentence  =      1" in lines
    assert "-- len<=40 --" in lines


def test_numbers_of_trees_differ():
    with pytest.raises(DataError, match=r"^t: the test trees end after 1, but there are more reference trees"):
        evaluate([IT_RAINS] * 3, [IT_RAINS], test_path="t")
    with pytest.raises(DataError, match=r"^g: the reference trees end after 0"):
        evaluate([], [IT_RAINS], gold_path="g")


@pytest.mark.parametrize("mode", ["reference", "own", "evalb"])
def test_other_words_are_an_error_of_their_sentence(mode):
    tests = [IT_RAINS, "(S (NN b))", "(S (NN b))", IT_RAINS]
    found = evaluate([IT_RAINS, "(S (NN a))", "(S (NN b) (NN b))", IT_RAINS], tests, Parseval(mode), test_path="t")
    assert [row["status"] for row in found.sentences()] == [0, 1, 1, 0]
    scores = found.scores()
    assert [scores[key] for key in ("sentences", "refused", "skipped", "valid", "recall")] == [4, 2, 0, 2, 1]
    assert found.first_error.startswith("t:2: ")
    assert found.first_error.endswith("at word 1 found 'b', the reference has 'a'")


def test_the_line_of_an_error_is_that_of_its_tree():
    tests = [SentenceText(IT_RAINS.encode(), 4), SentenceText(b"(S\n(NN b))", 9)]
    assert evaluate([IT_RAINS, "(S (NN a))"], tests, test_path="t").first_error.startswith("t:9: ")
    with pytest.raises(DataError, match=r"^t:10: "):
        evaluate([IT_RAINS] * 2, [tests[0], SentenceText(b"(S\n(NN b c))", 9)], test_path="t")


def test_empty_texts_at_the_end_belong_to_no_sentence():
    many = [IT_RAINS] * 4095
    for gold, test in (
        ([*many, "", ""], many),
        (many, [*many, "", "", ""]),
        ([*many, "", ""], [*many, "", "", "", ""]),
    ):
        found = evaluate(gold, test).scores()
        assert (found["valid"], found["refused"]) == (4095, 0)
    with pytest.raises(DataError, match=r"the test trees end after 4095.*every line is a sentence, empty ones too"):
        evaluate([*many, "", "", IT_RAINS], many)


def test_too_many_refused():
    gold, test = [GOLD] * 3, [TEST] * 3
    assert evaluate(gold, test, Parseval(punctuation="evalb", max_error=2)).scores()["refused"] == 3
    with pytest.raises(DataError, match=r"^3 of 3 sentences have other words .*; the first: t:1: .*MAX_ERROR is 1"):
        evaluate(gold, test, Parseval(punctuation="evalb", max_error=1), test_path="t")


def test_references_of_other_sentences():
    """Some errors may be real, most of many are not."""
    some = evaluate([IT_RAINS] * 30, [IT_RAINS] * 15 + ["(S (NN b))"] * 15)
    assert some.scores()["refused"] == 15
    assert evaluate([IT_RAINS] * 10, ["(S (NN b))"] * 10).scores()["refused"] == 10
    with pytest.raises(DataError, match=r"^16 of 30 sentences.*t:1: .*'b'.*are these the references of the same sent"):
        evaluate([IT_RAINS] * 30, ["(S (NN b))"] * 16 + [IT_RAINS] * 14, test_path="t")
    assert evaluate([IT_RAINS] * 30, ["(S (NN b))"] * 30, Parseval(max_error=29)).scores()["valid"] == 0
