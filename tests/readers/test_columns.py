"""Scores from other files beside lists: every line goes to its candidate, or there is an error."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from outcomes import problem_of, written

from rerank.base.errors import DataError, RecipeError
from rerank.readers.base import SkipCount, make_reader, read_lists
from rerank.readers.combined import JoinedReader

LISTS = b"0 ||| a b ||| LM= -1 ||| -3\n0 ||| a c ||| LM= -2 ||| -4\n2 ||| z ||| LM= 0 ||| -1\n"
SCORES = b"# nmt back\n-1.5 2\n-2.5\t3\n 4 5e-1 \n"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("joined")


@pytest.mark.parametrize(
    ("name", "key"), [("joined", "names"), ("kaldi", "costs"), ("moses", "columns"), ("jsonl", "dense")]
)
@pytest.mark.parametrize("found", [7, "a", ["a", "a"], [1], [""], {"a": 1}], ids=str)
def test_names_of_columns_are_a_list_with_each_of_them_once(name: str, key: str, found: Any) -> None:
    with pytest.raises(RecipeError) as caught:
        make_reader({"name": name, key: found})
    assert (caught.value.key, caught.value.message) == (
        f"data.reader.{key}", f"found {found!r}; expected a list of names, each of them once",
    )  # fmt: skip


def path(place: Path, *contents: bytes) -> str:
    names = [place / f"{k}.gz" for k in range(len(contents))]
    for name, content in zip(names, contents, strict=True):
        name.write_bytes(gzip.compress(content))
    return ",".join(map(str, names))


def read(place: Path, lists: bytes, scores: bytes, **options: Any) -> list[Any]:
    return list(JoinedReader(**options).read(path(place, lists, scores)))


def test_scores_are_columns_behind_those_of_the_lists(place: Path) -> None:
    zero, one, two = read(place, LISTS, SCORES)
    assert zero.names == one.names == two.names == ("LM", "score", "nmt", "back")
    assert zero.scores.tolist() == [[-1, -3, -1.5, 2], [-2, -4, -2.5, 3]]
    assert (one.scores.shape, two.scores.tolist()) == ((0, 4), [[0, -1, 4, 0.5]])
    assert zero.base.tolist() == [-3, -4]


def test_names_come_from_the_option_the_file_or_are_numbers(place: Path) -> None:
    bare = SCORES.partition(b"\n")[2]
    assert read(place, LISTS, bare)[0].names[2:] == ("column_1", "column_2")
    assert read(place, LISTS, bare, names=["x", "y"])[0].names[2:] == ("x", "y")
    assert read(place, LISTS, SCORES, names=["x", "y"])[0].names[2:] == ("x", "y")
    assert read(place, LISTS, b"#x\n1\n2\n3", names=[])[0].names[2:] == ("x",)
    assert read(place, b"", b"# a\n") == read(place, b"", b"") == []


def test_lists_are_written_by_their_own_reader(place: Path) -> None:
    reader = JoinedReader()
    zero, *_ = read(place, LISTS, SCORES)
    assert written(reader, zero, [1, 0]).splitlines() == LISTS.splitlines()[1::-1]
    assert float(written(reader, zero, [1], np.array([1.0, 2.0])).split(b" ||| ")[3]) == 2.0
    item = {"candidates": ["a", {"text": "b", "x": 1}], "y": 2}
    (found,) = read(place, json.dumps(item).encode(), b"1\n2\n", of="jsonl")
    assert json.loads(written(JoinedReader(of="jsonl"), found)) == item


@pytest.mark.parametrize(
    ("scores", "line", "part"),
    [
        (b"1\n2\n", 2, "2 lines of scores for at least 3 candidates"),
        (b"# x\n1\n", 2, "1 lines of scores for at least 2 candidates"),
        (b"", None, "0 lines of scores for at least 2 candidates"),
        (b"1\n2\n3\n4\n", 4, "at least 4 lines of scores for 3 candidates"),
        (b"1\n2\n3\n\n", 4, "at least 4 lines of scores for 3 candidates"),
        (b"# a b a\n1\n2\n3\n", 1, "a name appears twice"),
        (b"# LM\n1\n2\n3\n", 1, "the lists have a column 'LM' too"),
    ],
)
def test_scores_that_do_not_fit_have_their_place(place: Path, scores: bytes, line: int | None, part: str) -> None:
    with pytest.raises(DataError) as error:
        read(place, LISTS, scores)
    assert part in str(error.value)
    assert (error.value.path, error.value.line) == (str(place / "1.gz"), line)


@pytest.mark.parametrize(
    ("scores", "line", "reason", "part"),
    [
        (b"1 2\n1 x\n3 4", 2, "score", "found '1 x'; expected 2 numbers"),
        (b"1\n\n3", 2, "score", "expected 1 numbers"),
        (b"1 2\n1\n3 4", 2, "columns", "found 1 numbers; expected 2 (column_1, column_2)"),
        (b"1 2\n1 nan\n3 4", 2, "infinite score", "found '1 nan'"),
        (b"1 2\n1 1e999\n3 4", 2, "infinite score", "finite"),
        (b"1\n1_0\n3", 2, "score", "1_0"),
    ],
)
def test_a_score_that_is_none_is_a_bad_one(place: Path, scores: bytes, line: int, reason: str, part: str) -> None:
    zero, _, two = read(place, LISTS, scores)
    problem = problem_of(zero)
    assert (problem.reason, problem.line, problem.path) == (reason, line, str(place / "1.gz"))
    assert part in problem.message
    assert len(zero) == 1
    assert two.scores[0, 2] == 3.0


def test_the_scores_of_a_bad_candidate_go_with_it(place: Path) -> None:
    zero, _, two = read(place, LISTS.replace(b"-4", b"x"), b"1\n2\n3\n")
    assert (problem_of(zero).path, problem_of(zero).line) == (str(place / "0.gz"), 2)
    assert (zero.scores[:, 2].tolist(), two.scores[:, 2].tolist()) == ([1.0], [3.0])
    whole, _, two = read(place, LISTS.replace(b"-4", b"x").replace(b"-3", b"x"), b"1\n2\n3\n")
    assert whole.problem is not None
    assert two.scores[:, 2].tolist() == [3.0]


def test_after_a_list_of_nobody_knows_how_many_candidates_the_scores_have_lost_their_places(place: Path) -> None:
    both = path(place, b'{"candidates": ["a"]}\n{"candidates": \n{"candidates": ["b"]}\n', b"1\n2\n3\n")
    with pytest.raises(DataError, match=r"0.gz:2: list 1.*nothing tells which lines of scores"):
        list(read_lists(JoinedReader(of="jsonl"), both, count=SkipCount("skip")))


def test_a_list_with_an_id_used_before_keeps_its_scores(place: Path) -> None:
    lists = [json.dumps({"id": name, "candidates": ["a", "b"]}).encode() + b"\n" for name in "xxy"]
    first, again, last = read(place, b"".join(lists), b"1\n2\n3\n4\n5\n6\n", of="jsonl")
    assert (again.problem.reason, again.size) == ("duplicate id", 2)
    assert (first.scores[:, 1].tolist(), last.scores[:, 1].tolist()) == ([1.0, 2.0], [5.0, 6.0])


def test_options_and_paths_are_checked(place: Path) -> None:
    drops = {"name": "moses", "duplicates": "drop"}
    for of in (drops, {"name": "merged"}, {"name": "merged", "of": ["moses", drops], "duplicates": "keep"}):
        with pytest.raises(RecipeError, match="duplicates: keep"):
            JoinedReader(of=of)
    for of in ("x", None):
        with pytest.raises(RecipeError):
            JoinedReader(of=of)
    with pytest.raises(DataError, match="names 1 files; expected 2"):
        list(JoinedReader().read(path(place, LISTS)))
    with pytest.raises(DataError, match="only one input can be '-'"):
        list(JoinedReader().read("-,-"))
    with pytest.raises(DataError, match="2 columns are named here; the reader's option names has 1"):
        read(place, LISTS, SCORES, names=["x"])


PARSES = b"2\tx\n-1 5\n(S1 (NN x))\n-2 6\n(S1 (VB x))\n\n0\ty\n\n1\tz\n-3 7\n(S1 (NN z))\n\n"


@pytest.mark.parametrize(("of", "base"), [("charniak", [-1, -2]), ({"name": "charniak", "scores": "cost"}, [1, 2])])
def test_scores_of_parses_are_columns_and_are_not_written(place: Path, of: Any, base: list[float]) -> None:
    reader = JoinedReader(of=of)
    first, empty, last = read(place, PARSES, b"# lm\n.5\n.25\n.125\n", of=of)
    assert first.names == last.names == ("score", "number_2", "lm")
    assert (first.scores[:, 1:].tolist(), first.base.tolist()) == ([[5, 0.5], [6, 0.25]], base)
    assert (len(empty), last.scores[0, 1:].tolist()) == (0, [7, 0.125])
    assert first.candidates[1].named_scores == {"score": base[1], "number_2": 6, "lm": 0.25}
    new = b"-8.0" if base[0] > 0 else b"8.0"
    assert written(reader, first, [1], np.array([9.0, 8.0])) == b"1\tx\n" + new + b"\t-2.0\t6.0\n(S1 (VB x))\n\n"
    again = JoinedReader(of=JoinedReader(of=of))
    twice, *_ = again.read(path(place, PARSES, b"1\n2\n3\n", b"# lm\n4\n5\n6\n"))
    assert (twice.names[2:], twice.scores[:, 2:].tolist()) == (("column_1", "lm"), [[1, 4], [2, 5]])
    assert written(again, twice.some([0])) == b"1\tx\n-1.0\t5.0\n(S1 (NN x))\n\n"


NUMBER = st.floats(allow_nan=False, allow_infinity=False)


@settings(max_examples=100, deadline=None)
@given(sizes=st.lists(st.integers(0, 4), min_size=1, max_size=5), width=st.integers(1, 3), data=st.data())
def test_every_line_goes_to_its_candidate(place: Path, sizes: list[int], width: int, data: Any) -> None:
    total = sum(sizes)
    rows = data.draw(st.lists(st.lists(NUMBER, min_size=width, max_size=width), min_size=total, max_size=total))
    lists = b"".join(json.dumps({"candidates": ["t"] * size}).encode() + b"\n" for size in sizes)
    scores = "".join("\t".join(map(repr, row)) + "\n" for row in rows).encode()
    found = read(place, lists, scores, of="jsonl", names=[f"n{k}" for k in range(width)])
    assert [len(one) for one in found] == sizes
    assert [row for one in found for row in one.scores[:, 1:].tolist()] == rows
