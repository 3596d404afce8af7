"""EVALB: its report number by number, its parameter files, and what is wrong with two streams of trees."""

from pathlib import Path

import nltk
import pytest
from small import SHARED, needs

from rerank.base.errors import DataError
from rerank.metrics.evaluation import ParsevalResult, evaluate
from rerank.metrics.parseval import Parseval, read_prm
from rerank.readers.trees.treebank import SentenceText, read_sentences

PRM = """\
MAX_ERROR 10
CUTOFF_LEN 4
DELETE_LABEL TOP
DELETE_LABEL -NONE-
DELETE_LABEL :
DELETE_LABEL_FOR_LENGTH -NONE-
EQ_LABEL V W
EQ_WORD  Go go
"""

# gold, parse, EVALB's columns: length, status, recall, precision, matched, gold, test, crossing, words, tags, accuracy
SENTENCES = [
    ("(S (NP (N dogs)) (VP (V go)))", "(S (NP (N dogs)) (VP (W Go)))", "2 0 100.00 100.00 3 3 3 0 2 2 100.00"),
    ("(S (NP (N dogs)) (VP (V go)))", "(S (NP (N dogs)) (X (V run)))", "2 1 0.00 0.00 0 0 0 0 2 0 0.00"),
    ("(S (NP (N dogs)) (VP (V go)))", "(S (NP (N dogs)))", "2 1 0.00 0.00 0 0 0 0 2 0 0.00"),
    ("(S (NP (N dogs)) (VP (V go)))", "", "2 2 0.00 0.00 0 0 0 0 2 0 0.00"),
    ("(S (NP (N dogs)) (VP (V go)))", "(())", "2 2 0.00 0.00 0 0 0 0 2 0 0.00"),
    ("(S (NP (N dogs)) (VP (V go)))", "(S1)", "2 2 0.00 0.00 0 0 0 0 2 0 0.00"),
    ("(S (NP (N dogs)) (VP (V go)))", "(N dogs) (X go)", "2 0 0.00 0.00 0 3 0 0 2 1 50.00"),
    ("(S (NP (N a)) (VP (V b) (N c)))", "(TOP (S (X (N a) (V b)) (N c)))", "3 0 33.33 50.00 1 3 2 1 3 3 100.00"),
    ("(S (N a) (: -) (N b) (N c) (N d))", "(S (N a) (: ;) (N b) (N c) (N d))", "5 0 100.00 100.00 1 1 1 0 4 4 100.00"),
    ("(S (N a) (-NONE- *))", "(S (N a) (NONE *))", "1 1 0.00 0.00 0 0 0 0 1 0 0.00"),
]
TOTAL = "50.00 83.33 5 10 6 3 11 10 90.91"


@pytest.fixture
def found(tmp_path: Path) -> ParsevalResult:
    (tmp_path / "some.prm").write_text(PRM)
    for name, side in (("gold", 0), ("test", 1)):
        (tmp_path / name).write_text("".join(f"{line[side]}\n" for line in SENTENCES))
    metric = Parseval.from_prm(tmp_path / "some.prm")
    assert metric.punctuation == "evalb"
    return evaluate(*(read_sentences(tmp_path / name) for name in ("gold", "test")), metric)


def test_every_rule_of_a_status(found: ParsevalResult) -> None:
    lines = [line.split() for line in found.table()]
    assert lines[3:13] == [[str(i), *line[2].split()] for i, line in enumerate(SENTENCES, start=1)]
    assert lines[14] == TOTAL.split()


def test_the_summary(found: ParsevalResult) -> None:
    lines = list(found.table())
    assert lines[15:21] == [
        "=== Summary ===",
        "",
        "-- All --",
        "Number of sentence        =     10",
        "Number of Error sentence  =      3",
        "Number of Skip  sentence  =      3",
    ]
    assert "Number of Valid sentence  =      4" in lines
    assert "-- len<=4 --" in lines
    assert "Number of Valid sentence  =      3" in lines


@needs("evalb")
def test_the_sample_of_evalb() -> None:
    sample = SHARED / "evalb"
    metric = Parseval.from_prm(sample / "sample.prm")
    found = evaluate(*(read_sentences(sample / name) for name in ("sample.gld", "sample.tst")), metric)
    lines = [line for line in found.table() if not line.startswith("Bracketing FMeasure")]  # later versions print it
    assert lines == (sample / "sample.rsl").read_text().splitlines()


FULL = """\
##------------------------------------------##
#   what to print
DEBUG 0
MAX_ERROR 3

CUTOFF_LEN\t25
LABELED 0
DELETE_LABEL TOP
  DELETE_LABEL -NONE-
DELETE_LABEL #
DELETE_LABEL ``
DELETE_LABEL_FOR_LENGTH -NONE-
QUOTE_LABEL POS
EQ_LABEL ADVP PRT
EQ_LABEL\tNX   NP
EQ_WORD Example example
"""


@pytest.fixture
def prm(tmp_path):
    def write(text: str):
        path = tmp_path / "some.prm"
        path.write_text(text)
        return path

    return write


def test_defaults_are_evalbs(prm):
    lists = dict.fromkeys(("delete", "delete_for_length", "quote_labels", "equal_labels", "equal_words"), ())
    expected = {**lists, "labeled": True, "cutoff": 40, "max_error": 10}
    assert read_prm(prm("# nothing\n\n   \n")) == expected
    assert read_prm(prm("CUTOFF_LEN 10\nDEBUG 1\nCUTOFF_LEN 20\n")) == {**expected, "cutoff": 20}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("DELET_LABEL TOP", "unknown key 'DELET_LABEL'; did you mean DELETE_LABEL"),
        ("XYZ 1", "unknown key 'XYZ'; known: CUTOFF_LEN, "),
        ("DELETE_LABEL", "DELETE_LABEL has 0 values; expected one label"),
        ("EQ_LABEL ADVP", "EQ_LABEL has 1 values; expected two"),
        ("LABELED yes", "LABELED is 'yes'; expected 0 or 1"),
        ("CUTOFF_LEN -1", "CUTOFF_LEN is '-1'; expected a number from 0"),
        ("MAX_ERROR 9999999999999", "MAX_ERROR is '9999999999999'"),
        ("DEBUG", "DEBUG has 0 values"),
    ],
)
def test_errors_name_file_line_and_what_is_wrong(prm, line, message):
    path = prm(f"# first\nDEBUG 0\n{line}\n")
    with pytest.raises(DataError) as caught:
        read_prm(path)
    assert str(caught.value).startswith(f"{path}:3: {message}")


def test_parseval_takes_all_settings_from_the_file(prm):
    metric = Parseval.from_prm(prm(FULL), punctuation="evalb")
    assert metric == Parseval(
        punctuation="evalb",
        labeled=False,
        delete=("TOP", "-NONE-", "#", "``"),
        delete_for_length=("-NONE-",),
        quote_labels=("POS",),
        equal_labels=(("ADVP", "PRT"), ("NX", "NP")),
        equal_words=(("Example", "example"),),
        cutoff=25,
        max_error=3,
    )
    assert metric.signature != Parseval().signature


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
    assert "-- len<=40 --" in list(result.table())


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
