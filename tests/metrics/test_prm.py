"""EVALB parameter files: what they set, what is wrong with them, and that the settings count."""

import pytest

from rerank.base.errors import DataError, RecipeError
from rerank.metrics.evaluation import evaluate
from rerank.metrics.parseval import Parseval, read_prm

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


def test_missing_file(tmp_path):
    with pytest.raises(DataError, match="cannot read the parameter file: No such file"):
        read_prm(tmp_path / "none.prm")


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


def test_only_what_the_file_deletes_is_deleted(prm):
    metric = Parseval.from_prm(prm("DELETE_LABEL TOP\nDELETE_LABEL .\n"))
    # S1, S, NP, the comma's X: all brackets of this file; ADVP and PRT differ
    text = "(S1 (S (NP (NN a)) (X (, ,)) (ADVP (RB b)) (. .)))"
    result = evaluate([text], [text.replace("ADVP", "PRT")], metric)
    (row,) = result.sentences()
    assert [row[key] for key in ("matched", "gold", "test", "words")] == [4, 5, 5, 3]


def test_max_error_cannot_be_below_none():
    """Else an evaluation without any error would have too many."""
    with pytest.raises(RecipeError, match="max_error: found -2; expected a whole number from 0 or null"):
        Parseval(max_error=-2)


def test_max_error_of_the_file_stops_an_evaluation(prm):
    metric = Parseval.from_prm(prm("DELETE_LABEL :\nMAX_ERROR 0\n"), punctuation="evalb")
    gold, test = "(S (NN a) (: -))", "(S (NN a) (NN -))"
    assert evaluate([gold], [test], metric).scores()["refused"] == 1
    with pytest.raises(DataError, match="MAX_ERROR is 0"):
        evaluate([gold] * 2, [test] * 2, metric)
