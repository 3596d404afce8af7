"""Labels of values written label=value, as Joshua and cdec write them: which are columns, and what is missing."""

from pathlib import Path

import pytest

from rerank.readers.base import SkipCount, read_lists
from rerank.readers.lists import Lists
from rerank.readers.moses import Moses
from rerank.readers.score_columns import ScoreColumns


def lists_of(path: Path, lines: list[str], reader: Moses | None = None) -> list[Lists]:
    path.write_text("".join(line + "\n" for line in lines))
    found = list((reader or Moses()).read(path))
    assert all(nbest.problem is None for nbest in found), found
    return [nbest for nbest in found if nbest.problem is None]


def joshua(i: int, y: int, more: str = "") -> str:
    return f"{i} ||| w{y} ||| lm_0={-1.5 * y - 1} tm_0={y - 3}{more} ||| {-y}"


def test_one_candidate_with_one_more_label_leaves_the_columns_as_they_are(tmp_path: Path) -> None:
    lines = [joshua(i, y, " oov=1" * (i == y == 1)) for i in range(3) for y in range(3)]
    found = lists_of(tmp_path / "lists", lines)
    assert {nbest.names for nbest in found} == {("lm_0", "tm_0", "score")}
    assert found[1].scores.tolist() == [[-1, -3, 0], [-2.5, -2, -1], [-4, -1, -2]]
    assert found[1].sparse is not None
    assert (found[1].sparse.names, found[1].sparse.values.tolist()) == ([b"oov"], [1])


def test_a_value_that_is_missing_is_0_and_counted(tmp_path: Path) -> None:
    lines = [joshua(i, y) for i in range(5) for y in range(4)]
    lines[6] = "1 ||| w2 ||| lm_0=-7 ||| -2"
    found = lists_of(tmp_path / "lists", lines)
    assert {nbest.names for nbest in found} == {("lm_0", "tm_0", "score")}
    assert found[1].scores[2].tolist() == [-7, 0, -2]
    assert [dict(nbest.absent) for nbest in found] == [{}, {"tm_0": 1}, {}, {}, {}]
    count = SkipCount()
    assert len(list(read_lists(Moses(), tmp_path / "lists", count=count))) == 5
    assert count.as_dict()["absent"] == {"tm_0": 1}
    assert "1 candidate without a value of the score column 'tm_0': it is 0 there" in str(count)


@pytest.mark.parametrize(("having", "dense"), [(18, True), (17, False)])
def test_a_label_of_nine_candidates_in_ten_is_a_column(tmp_path: Path, having: int, dense: bool) -> None:
    lines = [joshua(i, y, " gap=2" * (4 * i + y < having)) for i in range(5) for y in range(4)]
    names = lists_of(tmp_path / "lists", lines)[0].names
    assert names == (("lm_0", "tm_0", "gap", "score") if dense else ("lm_0", "tm_0", "score"))


def test_a_label_that_comes_twice_is_none(tmp_path: Path) -> None:
    lines = [joshua(i, y, " rule=1" * (2 if i == y == 0 else 1)) for i in range(5) for y in range(4)]
    assert lists_of(tmp_path / "lists", lines)[0].names == ("lm_0", "tm_0", "score")


def test_a_label_that_comes_twice_where_another_candidate_lacks_it_is_not_shared_by_all(tmp_path: Path) -> None:
    lines = [f"0 ||| w{y} ||| lm= -1{' T_a= 1' * (2 if y == 0 else y > 1)} ||| {-y}" for y in range(4)]
    assert lists_of(tmp_path / "lists", lines)[0].names == ("lm", "score")


def test_what_was_decided_in_training_holds_for_other_files(tmp_path: Path) -> None:
    known = ScoreColumns(("lm_0", "gap", "score"), "score")
    lines = [joshua(i, y, " gap=2" * (i == 1 and y > 0)) for i in range(3) for y in range(3)]
    found = lists_of(tmp_path / "lists", lines, Moses().knowing(known))
    assert {nbest.names for nbest in found} == {("lm_0", "gap", "score")}
    assert [nbest.absent.get("gap", 0) for nbest in found] == [3, 1, 3]
    assert found[0].others == ("tm_0",)  # all have it: a column that nobody asked for, whose values are kept
    assert found[0].sparse is not None
    assert set(found[0].sparse.names) == {b"tm_0"}


def test_a_file_that_shows_a_column_late_lacks_it_before(tmp_path: Path) -> None:
    known = ScoreColumns(("lm_0", "gap", "score"), "score")
    late = [joshua(i, y, " gap=1" * (i > 22)) for i in range(25) for y in range(3)]
    (tmp_path / "late").write_text("".join(f"{line}\n" for line in late))
    found = list(Moses().knowing(known).read(tmp_path / "late"))  # the first lists do not show that 0 is left out
    assert [nbest.problem is not None for nbest in found] == [True] * 23 + [False] * 2
