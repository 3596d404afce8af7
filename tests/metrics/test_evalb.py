"""EVALB's report, number by number: of its own sample, where that is at hand, and of trees made for the same rules."""

import os
from pathlib import Path

import pytest

from rerank.metrics.evaluation import ParsevalResult, evaluate
from rerank.metrics.parseval import Parseval
from rerank.readers.trees.treebank import read_sentences

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


def test_the_sample_of_evalb() -> None:
    shared = Path(os.environ.get("RERANK_SHARED") or Path(__file__).resolve().parents[3] / "shared")
    sample = shared / "data" / "evalb"
    if not sample.exists():
        pytest.skip(f"EVALB's sample is not there ({sample}); RERANK_SHARED names its directory")
    metric = Parseval.from_prm(sample / "sample.prm")
    found = evaluate(*(read_sentences(sample / name) for name in ("sample.gld", "sample.tst")), metric)
    lines = [line for line in found.table() if not line.startswith("Bracketing FMeasure")]  # later versions print it
    assert lines == (sample / "sample.rsl").read_text().splitlines()
