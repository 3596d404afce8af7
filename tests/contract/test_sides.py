"""What every reader's lists must do next to another file: each has its entry, and nothing goes to another list."""

import re
from pathlib import Path
from typing import Any

import pytest
from formats import CANDIDATES, CASES, FORMATS, LISTS, Case, whole

from rerank.base.errors import DataError
from rerank.readers.base import Lists, make_reader
from rerank.readers.sides import Side, in_step

every_case = pytest.mark.parametrize("case", CASES, ids=str)


def beside(case: Case, path: str, of: str, entries: int) -> list[tuple[Lists, tuple[Any, ...]]]:
    """The lists of a file with the numbers of the lines of another that has so many of them."""
    lines = ((number, number) for number in range(1, entries + 1))
    return list(in_step(make_reader(case.spec), path, [Side(["side"], lines, ("line", "lines"), of)]))


@every_case
def test_bad_lists_use_up_their_entries(tmp_path: Path, case: Case) -> None:
    path = case.write(tmp_path, whole, (0, 2))
    found = beside(case, path, "list", LISTS)
    assert [entry for _, entries in found for entry in entries] == [1, 2, 3, 4]
    if not FORMATS[case.form].trees:  # whose trees are looked into later
        assert [nbest.problem is not None for nbest, _ in found] == [True, False, True, False]


@every_case
def test_candidates_have_their_entries(tmp_path: Path, case: Case) -> None:
    per_list = CANDIDATES * (1 + (case.name == "merged"))
    found = beside(case, case.write(tmp_path, whole), "candidate", LISTS * per_list)
    numbers = range(1, LISTS * per_list + 1)
    assert [entries for _, entries in found] == [([*numbers[i * per_list : (i + 1) * per_list]],) for i in range(LISTS)]


@every_case
@pytest.mark.parametrize("of", ["list", "candidate"])
def test_too_few_and_too_many_entries_are_an_error_that_says_where(tmp_path: Path, case: Case, of: str) -> None:
    if case.form == "fairseq" and of == "list":
        pytest.skip("its numbers tell what belongs together")
    path = case.write(tmp_path, whole)
    due = LISTS if of == "list" else LISTS * CANDIDATES * (1 + (case.name == "merged"))
    rule = f"every {of} needs one line, in the same order"
    for entries in (0, due - 1):
        with pytest.raises(DataError) as caught:
            beside(case, path, of, entries)
        assert (caught.value.path, caught.value.line) == ("side", entries or None)
        assert f"{entries} lines for at least " in caught.value.message
        assert re.search(rf"{of}s? of {re.escape(path)} \(list ", caught.value.message)
        assert rule in caught.value.message
    with pytest.raises(DataError) as caught:
        beside(case, path, of, due + 1)
    assert str(caught.value) == f"side:{due + 1}: at least {due + 1} lines for {due} {of}s of {path}; {rule}"
