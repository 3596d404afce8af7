"""What every reader's lists must do next to another file: each has its entry, and nothing goes to another list."""

import re
from pathlib import Path
from typing import Any

import pytest
from formats import CANDIDATES, CASES, FORMATS, LISTS, Case, whole

from rerank.base.errors import DataError
from rerank.extraction.content.base import make_reader
from rerank.readers.base import NBestList, SkippedList
from rerank.readers.sides import Side, in_step

every_case = pytest.mark.parametrize("case", CASES, ids=str)


def beside(case: Case, path: str, of: str, entries: int) -> list[tuple[NBestList | SkippedList, tuple[Any, ...]]]:
    """The lists of a file with the numbers of the lines of another that has so many of them."""
    spec = case.spec if case.form != "fairseq" else _by_id(case.spec)
    lines = ((number, number) for number in range(1, entries + 1))
    return list(in_step(make_reader(spec), path, [Side(["side"], lines, ("line", "lines"), of)]))


def _by_id(spec: dict[str, Any]) -> dict[str, Any]:
    return {**spec, "of": _by_id(spec["of"])} if "of" in spec else {**spec, "order": "id"}


@every_case
def test_bad_lists_use_up_their_entries(tmp_path: Path, case: Case) -> None:
    path = case.write(tmp_path, whole, (0, 2))
    found = beside(case, path, "list", LISTS)
    assert [entry for _, entries in found for entry in entries] == [1, 2, 3, 4]
    if not FORMATS[case.form].trees:  # whose trees are looked into later
        assert [isinstance(nbest, SkippedList) for nbest, _ in found] == [True, False, True, False]


@every_case
def test_candidates_have_their_entries(tmp_path: Path, case: Case) -> None:
    per_list = CANDIDATES * (1 + (case.name == "merged"))
    found = beside(case, case.write(tmp_path, whole), "candidate", LISTS * per_list)
    numbers = range(1, LISTS * per_list + 1)
    assert [entries for _, entries in found] == [([*numbers[i * per_list : (i + 1) * per_list]],) for i in range(LISTS)]


@every_case
@pytest.mark.parametrize("of", ["list", "candidate"])
def test_too_few_and_too_many_entries_are_an_error_that_says_where(tmp_path: Path, case: Case, of: str) -> None:
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


@pytest.mark.parametrize("case", [case for case in CASES if case.form == "fairseq"], ids=str)
def test_lists_in_an_order_of_their_own_go_with_no_other_file(tmp_path: Path, case: Case) -> None:
    """Sources are in the order of the inputs, so a list in another place would get those of another input."""
    turned = {0: 2, 1: 0, 2: 3, 3: 1}
    path = case.write(tmp_path, lambda i, _, text: text.replace(b"-%d\t" % i, b"-%d\t" % turned[i]))
    for name in path.split(","):
        text = Path(name).read_bytes()
        for i in range(LISTS):
            text = text.replace(b"S-%d\t" % i, b"s-%d\t" % turned[i]).replace(b"T-%d\t" % i, b"t-%d\t" % turned[i])
        Path(name).write_bytes(text.replace(b"s-", b"S-").replace(b"t-", b"T-"))
    if case.name == "merged":  # the other system has the same lists in the same order
        (tmp_path / "other").write_bytes((tmp_path / "lists").read_bytes())
    reader = make_reader(case.spec)
    with pytest.raises(DataError, match=r"list 2: the list is number 1 of the file.*set data\.reader\.order: id"):
        list(in_step(reader, path, [Side(["side"], [(1, b"x")] * LISTS, ("source", "sources"))]))
