"""Charniak lists: good ones as they are, bad ones in their places with the reason, and the ones behind them."""

import io
from pathlib import Path

import numpy as np
import pytest
from outcomes import good, outline, problem_of

from rerank.readers.lists import Lists
from rerank.readers.trees.charniak import CharniakReader

A = b"2\ta\n-1.5\n(S1 (NN one))\n-2.25\n(S1 (NN two))\n\n"
B = b"1\tb\n-3\n(S1 (NN three))\n\n"
C = b"1\tc\n-4.5\n(S1 (NN four))\n\n"


def read(tmp_path: Path, data: bytes, reader: CharniakReader | None = None) -> list[Lists]:
    path = tmp_path / "lists"
    path.write_bytes(data)
    return list((reader or CharniakReader()).read(path))


def test_a_list_has_its_texts_scores_and_lines(tmp_path: Path) -> None:
    first, second = map(good, read(tmp_path, A + B))
    assert (first.id, first.line, first.path) == ("a", 1, str(tmp_path / "lists"))
    assert first.texts == [b"(S1 (NN one))", b"(S1 (NN two))"]
    assert list(first.lines) == [3, 5]
    assert first.scores.tolist() == [[-1.5], [-2.25]]
    assert first.base.dtype == np.float64
    assert first.base.tolist() == [-1.5, -2.25]
    assert (second.id, second.line, list(second.lines), second.base.tolist()) == ("b", 7, [9], [-3.0])


def test_headers(tmp_path: Path) -> None:
    tail = b"\n-1\n(NN x)\n\n"
    heads = [b"1", b"1 wsj 0001 (x)", b"1\t\tid ", b" 1  7"]
    found = read(tmp_path, b"".join(head + tail for head in heads))
    assert outline(found) == [("0", 1), ("wsj 0001 (x)", 1), ("id", 1), ("7", 1)]
    numbered = read(tmp_path, b"".join(head + tail for head in heads), CharniakReader(ids="ordinal"))
    assert outline(numbered) == [("0", 1), ("1", 1), ("2", 1), ("3", 1)]


def test_lists_without_candidates_are_valid(tmp_path: Path) -> None:
    for blank in (b"\n", b""):
        found = read(tmp_path, b"0\tnone\n" + blank + A + b"0\tmore\n" + blank + B + b"0\tlast")
        assert outline(found) == [("none", 0), ("a", 2), ("more", 0), ("b", 1), ("last", 0)]
        empty = good(found[0])
        assert (empty.base.shape, empty.scores.shape[0], list(empty.candidates)) == ((0,), 0, [])


def test_several_scores_and_the_column_of_the_base(tmp_path: Path) -> None:
    data = b"2\ta\n0.5\t-1 3e2\n(NN x)\n.25 -2 1\n(NN y)\n"
    first = good(read(tmp_path, data)[0])
    assert first.scores.tolist() == [[0.5, -1, 300], [0.25, -2, 1]]
    assert first.base.tolist() == [0.5, 0.25]
    assert good(read(tmp_path, data, CharniakReader(score=1))[0]).base.tolist() == [-1, -2]
    (bad,) = read(tmp_path, data, CharniakReader(score=3))
    assert (bad.problem.reason, bad.line) == ("columns", 2)
    assert "found 3 scores" in bad.problem.message


def test_white_space_before_trees_and_scores(tmp_path: Path) -> None:
    found = read(tmp_path, b"2\tx\n  -1 \n\t(NN x) \n -2\n (NN y)\n\n" + B)
    assert outline(found) == [("x", 2), ("b", 1)]
    assert good(found[0]).base.tolist() == [-1, -2]


BAD = {
    # reason, what it is, the bad list's line in error (from 1), part of the message
    "garbage header": ("header", b"x\ty\n-1\n(NN x)\n\n", 1, "expected its header"),
    "endless count": ("header", b"9" * 5000 + b"\tx\n-1\n(NN x)\n\n", 1, "..."),
    "tree first": ("header", b"(NN x)\n\n", 1, "'(NN x)'"),
    "tree for an id": ("header", b"1\t( (NN x) )\n\n", 1, "expected its header"),
    "one missing": ("too few", b"3\tx\n-1\n(NN x)\n-2\n(NN y)\n\n", 6, "says 3 candidates; found 2"),
    "tree missing": ("too few", b"2\tx\n-1\n(NN x)\n-2\n\n", 5, "found 1 and a score without its tree"),
    "blank inside": ("too few", b"2\tx\n-1\n(NN x)\n\n-2\n(NN y)\n\n", 4, "found 1"),
    "a large claim": ("too few", b"999999999\tx\n" + b"-1\n(NN x)\n" * 9000 + b"\n", 18002, "found 9000"),
    "one more": ("too many", b"1\tx\n-1\n(NN x)\n-2.5\n(NN y)\n\n", 4, "found '-2.5'"),
    "one more, indented": ("too many", b"1\tx\n-1\n  (NN x)\n-2.5\n(NN y)\n\n", 4, "found '-2.5'"),
    "a word": ("score", b"2\tx\n-1\n(NN x)\nhigh\n(NN y)\n\n", 4, "found 'high'"),
    "no score": ("score", b"2\tx\n-1\n(NN x)\n(NN y)\n-2\n\n", 4, "found '(NN y)'"),
    "white space": ("too few", b"1\tx\n \n(NN x)\n\n", 2, "found 0"),
    "nan": ("infinite score", b"2\tx\n-1\n(NN x)\nnan\n(NN y)\n\n", 4, "found 'nan'"),
    "overflow": ("infinite score", b"1\tx\n1 1e999\n(NN x)\n\n", 2, "1e999"),
    "columns": ("columns", b"2\tx\n-1 2\n(NN x)\n-1\n(NN y)\n\n", 4, "found 1 scores; most candidates of the list"),
    "a word for a tree": ("tree", b"1\tx\n-1\nNN\n\n", 3, "found 'NN'; expected the candidate's tree"),
    "nul": ("nul", b"1\tx\n-1\n(NN \0)\n\n", 3, "NUL"),
    "nul in the id": ("nul", b"1\tx\0\n-1\n(NN y)\n\n", 1, "NUL"),
    "used id": ("duplicate id", b"1\ta\n-1\n(NN y)\n\n", 1, "list at line 1; the reader's option ids: ordinal"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_lists_stand_in_their_places(tmp_path: Path, name: str) -> None:
    reason, data, line, message = BAD[name]
    found = read(tmp_path, A + data + B + C)
    bad = found[1]
    assert [kind for _, kind in outline(found)] == [2, reason, 1, 1]
    assert [one.id for one in (found[0], *found[2:])] == ["a", "b", "c"]
    assert (problem_of(bad).path, problem_of(bad).line) == (str(tmp_path / "lists"), A.count(b"\n") + line)
    assert message in problem_of(bad).message
    assert bad.id == {"header": "1", "duplicate id": "a"}.get(reason, bad.id)
    assert [kind for _, kind in outline(read(tmp_path, A + data.rstrip()))] == [2, reason]  # at the end of a file


@pytest.mark.parametrize("reason", ["too few", "header"])
def test_lists_without_ids_and_damaged_headers_behind_a_bad_list(tmp_path: Path, reason: str) -> None:
    bare = {"too few": b"1\n\n", "header": b"x\n-1\n(NN x)\n\n"}[reason]
    found = read(tmp_path, BAD["one missing"][1] + bare + b"1\n-1\n(NN x)\n\n" + b"0\n\n" + C)
    assert outline(found) == [("x", "too few"), ("1", reason), ("2", 1), ("3", 0), ("c", 1)]


@pytest.mark.parametrize("name", [name for name, bad in BAD.items() if bad[0] not in ("header", "too many")])
def test_the_next_list_is_found_without_blank_lines_too(tmp_path: Path, name: str) -> None:
    reason, data, _, _ = BAD[name]
    if name != "blank inside":
        data = data.replace(b"\n\n", b"\n")
    text = A.replace(b"\n\n", b"\n") + data + B.replace(b"\n\n", b"\n") + C
    assert [kind for _, kind in outline(read(tmp_path, text))] == [2, reason, 1, 1]


def test_write_gives_back_what_was_read(tmp_path: Path) -> None:
    text = A.replace(b"-2.25", b"-2.25\t0.1").replace(b"-1.5", b"-1.5\t1e-300") + B.replace(b"-3", b"-3.0")
    out = io.BytesIO()
    for nbest in read(tmp_path, text + b"0\tnone\n\n"):
        CharniakReader().write(out, good(nbest))
    assert out.getvalue() == text + b"0\tnone\n\n"
