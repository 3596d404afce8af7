"""Lists of trees without scores, in all their variants."""

import io
from pathlib import Path

import numpy as np
import pytest

from rerank.base.errors import DataError
from rerank.data.symbols import SymbolTable
from rerank.readers.base import read_lists
from rerank.readers.trees.charniak import BareReader
from rerank.readers.trees.treebank import open_list

ONE = b"(S1 (S (NP (PRP It)) (VP (VBD rained)) (. .)))"
TWO = b"(S1 (S (NP (PRP It)) (VP (VBN rained)) (. .)))"
THREE = b"(S1 (NP (NN Art)))"
SPREAD = b"(S1 (S (NP (PRP It))\n  (VP (VBN rained))\n\t(. .)))"
VARIANTS = {
    "groups": b"%s\n%s\n\n%s\n\n" % (ONE, TWO, THREE),
    "spread": b"%s\n%s\n\n%s\n" % (ONE, SPREAD, THREE),
    "counted": b"2\twsj-1\n%s\n%s\n\n1\twsj-2\n%s\n" % (ONE, TWO, THREE),
    "counted, no blank lines": b"2 wsj-1\n%s\n%s\n1 wsj-2\n%s\n" % (ONE, SPREAD, THREE),
    "counted, no ids": b"2\n%s\n%s\n1\n%s\n" % (ONE, TWO, THREE),
}


def _file(root: Path, data: bytes) -> Path:
    (root / "lists").write_bytes(data)
    return root / "lists"


@pytest.mark.parametrize("variant", VARIANTS)
def test_trees_have_base_scores_of_0_and_the_ids_of_headers(variant: str, tmp_path: Path) -> None:
    first, second = read_lists(BareReader(), _file(tmp_path, VARIANTS[variant]))
    assert (first.texts, second.texts) == ([ONE, TWO], [THREE])
    assert (first.base.tolist(), second.base.tolist()) == ([0.0, 0.0], [0.0])
    named = variant.startswith("counted") and "no ids" not in variant
    assert [first.id, second.id] == (["wsj-1", "wsj-2"] if named else ["0", "1"])


def test_what_is_written_is_what_was_read_and_new_scores_come_first(tmp_path: Path) -> None:
    for variant in ("groups", "counted"):
        lists = list(read_lists(BareReader(), _file(tmp_path, VARIANTS[variant])))
        out, scored = io.BytesIO(), io.BytesIO()
        for nbest in lists:
            BareReader().write(out, nbest)
            BareReader().write(scored, nbest, scores=np.arange(len(nbest)) - 1.5)
        assert out.getvalue().rstrip() == VARIANTS[variant].rstrip()
        again = list(read_lists(BareReader(), _file(tmp_path, scored.getvalue())))
        assert [nbest.base.tolist() for nbest in again] == [[-1.5, -0.5], [-1.5]]
        twice = io.BytesIO()
        BareReader().write(twice, again[0], [1, 0], np.array([1.0, 2.0]))
        (last,) = read_lists(BareReader(score=1), _file(tmp_path, twice.getvalue()))
        assert (last.texts, last.scores.tolist()) == ([TWO, ONE], [[2.0, -0.5], [1.0, -1.5]])
        assert last.id == ("wsj-1" if variant == "counted" else "0")


def test_a_failed_parse_is_no_candidate(tmp_path: Path) -> None:
    lists = list(BareReader().read(_file(tmp_path, b"(())\n\n%s\n(())\n\n( () )\n\n" % ONE)))
    assert [one.texts for one in lists if one.problem is None] == [[], [ONE], []]
    (only,) = list(BareReader().read(_file(tmp_path, b"1\tx\n(())\n\n")))
    assert (only.id, only.size) == ("x", 0)


@pytest.mark.parametrize("line", [b")y(", b"y (())", b"-1 )y("])
def test_a_line_that_is_neither_a_tree_nor_a_failed_parse_is_an_error(line: bytes, tmp_path: Path) -> None:
    for lists in (b"%s\n%s\n\n%s\n%s\n\n", b"-1 %s\n-2 %s\n\n%s\n-3 %s\n\n"):
        path = _file(tmp_path, lists % (ONE, TWO, line, THREE))
        with pytest.raises(DataError, match=r"lists:4: list 1: "):
            [open_list(nbest, SymbolTable()) for nbest in read_lists(BareReader(), path)]


def test_a_tree_that_does_not_end_is_a_bad_candidate_of_its_list(tmp_path: Path) -> None:
    path = _file(tmp_path, b"%s\n%s\n\n(()\n%s\n\n" % (ONE, TWO, THREE))
    _, last = (open_list(nbest, SymbolTable())[0] for nbest in read_lists(BareReader(), path))
    assert last.texts == [THREE]
    assert [(bad.reason, bad.line) for bad in last.bad] == [("brackets", 4)]


@pytest.mark.parametrize(
    ("text", "reason", "line", "message"),
    [
        (b"3\tx\n%s\n%s\n\n1\ty\n%s\n" % (ONE, TWO, THREE), "too few", 4, "the header says 3 candidates; found 2"),
        (b"1\tx\n%s\n%s\n\n1\ty\n%s\n" % (ONE, TWO, THREE), "too many", 3, "more follows than the 1 candidates"),
        (b"1\ty\n%s\n\n%s\n\n1\tz\n%s\n" % (ONE, TWO, THREE), "header", 4, "expected its header: number of candidates"),
    ],
)
def test_faults_of_headers_end_with_a_list(text: bytes, reason: str, line: int, message: str, tmp_path: Path) -> None:
    found = list(BareReader().read(_file(tmp_path, text)))
    bad = next(one for one in found if one.problem is not None)
    assert (bad.problem.reason, bad.line) == (reason, line)
    assert message in bad.problem.message
    last = found[-1]
    assert last.texts == [THREE]
