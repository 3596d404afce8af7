"""What every reader must do with files as they come: line ends, archives, nothing at all, and candidates twice."""

import gzip
import io
from itertools import chain, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from formats import CANDIDATES, CASES, FORMATS, LISTS, Case, lists_in

from rerank.base.errors import DataError
from rerank.readers.base import SkipCount, make_reader, read_lists
from rerank.readers.lines import LineReader, ListReader
from rerank.readers.lists import one_by_one
from rerank.readers.streams import InputStream

every_format = pytest.mark.parametrize("name", [name for name, form in FORMATS.items() if name != "espnet"])
PLAIN = [case for case in CASES if case.name not in ("joined", "merged")]


def spec_of(name: str) -> dict[str, Any]:
    """The reader of a format."""
    return Case(name.split()[0], name).spec


def read(name: str, path: Path, data: bytes) -> list[tuple[str, list[bytes], list[list[float]]]]:
    """What is in the lists of a file."""
    path.write_bytes(data)
    found = read_lists(make_reader(spec_of(name)), str(path))
    return [(nbest.id if "ids" not in name else "", nbest.texts, nbest.scores.tolist()) for nbest in found]


@every_format
def test_line_ends_byte_order_marks_and_blank_lines_are_free(tmp_path: Path, name: str) -> None:
    expected = read(name, tmp_path / "plain", lists_in(name))
    assert [len(texts) for _, texts, _ in expected] == [CANDIDATES] * LISTS
    blanks = [b"", b"\n", b"\n \t\n\n"] if FORMATS[name].blank else [b""]
    for end, mark, blank in product([b"\n", b"\r\n"], [b"", b"\xef\xbb\xbf"], blanks):
        text = (mark + lists_in(name, blank=blank)).replace(b"\n", end)
        for whole in (text, text.rstrip()):  # with the last line end, and without
            assert read(name, tmp_path / "other", whole) == expected, (end, mark, blank)


@every_format
def test_files_of_nothing_have_no_lists(tmp_path: Path, name: str) -> None:
    for data in (b"", b"\n\r\n  \n")[: 1 + FORMATS[name].blank]:
        assert read(name, tmp_path / "lists", data) == []


@every_format
def test_archives_are_read_and_cut_ones_are_an_error_under_both_policies(tmp_path: Path, name: str) -> None:
    data, path = gzip.compress(lists_in(name)), tmp_path / "lists"
    assert read(name, path, data) == read(name, tmp_path / "plain", lists_in(name))
    for size in range(3, len(data), 7):
        path.write_bytes(data[:size])
        for policy in ("error", "skip"):
            with pytest.raises(DataError, match="again"):
                list(read_lists(make_reader(spec_of(name)), str(path), policy))


@pytest.mark.parametrize("case", PLAIN, ids=str)
def test_candidates_that_come_twice_are_counted_and_kept_or_dropped(tmp_path: Path, case: Case) -> None:
    """The last candidate of a list has the text of the first; what is written of a list without it can be read."""
    if case.form == "trec":
        pytest.skip("a document that comes twice makes a bad list: see tests/contrib/search")

    def twice(i: int, k: int, text: bytes) -> bytes:
        return text.replace(b"b2", b"b0").replace(b"VP2", b"VP0") if (i, k) == (1, 2) else text

    path, found = case.write(tmp_path, twice), {}
    for policy in ("keep", "drop"):
        count, reader = SkipCount(), make_reader({**case.spec, "duplicates": policy})
        found[policy] = list(read_lists(reader, path, count=count))[1]
        assert found[policy].duplicates == count.duplicates == 1
    kept, dropped = found["keep"], found["drop"]
    assert kept.texts == [*dropped.texts, dropped.texts[0]]
    assert (dropped.scores.tolist(), list(dropped.lines)) == (kept.scores[:2].tolist(), list(kept.lines)[:2])
    out, reader = io.BytesIO(), make_reader(case.again)
    make_reader(case.spec).write(out, dropped, [1, 0], np.array([0.25, 4.5]))
    (tmp_path / "written").write_bytes(out.getvalue())
    again = [nbest for nbest in reader.read(str(tmp_path / "written")) if nbest.problem is None and len(nbest)]
    assert [(nbest.texts, nbest.base.tolist()) for nbest in again] == [(dropped.texts[::-1], [4.5, 0.25])]


# The formats of files that can be cut between lists, and those of files that cannot, though they are alike.
CUT = {"moses": True, "charniak": False, "jsonl": True, "sockeye": True, "trees": False, "stanford": False}


def lines_of(data: bytes, told: dict[str, Any], line: int = 0, ordinal: int = 0) -> LineReader:
    """The lines of a stretch, given what is told of the file, and the numbers of lines and lists before it."""
    lines = LineReader(InputStream(io.BytesIO(data), ""))
    lines.number, lines.records, lines.told = line, ordinal, told
    return lines


@pytest.mark.parametrize("name", CUT)
def test_stretches_are_read_as_the_file_is(name: str) -> None:
    data, reader = lists_in(name), make_reader(spec_of(name))
    assert isinstance(reader, ListReader)

    def lists(lines: LineReader) -> list[tuple[Any, ...]]:
        found = one_by_one(reader.lists(lines, reader.records(lines)))
        return [(one.id, one.texts, one.scores.tolist(), list(one.lines)) for one in found]

    expected = lists(whole := lines_of(data, {}))
    assert reader.parts(whole.told) == CUT[name]
    for count, size in ((1, 1), (2, 40), (3, 1 << 20)) if CUT[name] else ():
        parts = list(reader.stretches(InputStream(io.BytesIO(data), ""), count, size))
        found = [lists(lines_of(part, dict(whole.told), line, ordinal)) for part, line, ordinal, _ in parts]
        assert (b"".join(part for part, *_ in parts), [*chain(*found)]) == (data, expected)
        assert list(map(len, found)) == [part[-1] for part in parts]


def test_rows_of_lists_and_arrays_are_cut_nowhere() -> None:
    reader = make_reader("jsonl")
    assert isinstance(reader, ListReader)
    few = '[{"text": "x"}, {"text": "y"}]'
    arrays = ['[{"candidates": ["x"]},\n{"candidates": ["y"]}]\n', f'{{"a": {few}, "b": {few}}}\n']
    arrays += ["".join(f'{{"eval": {{"a{i}": {few}, "b{i}": {few}}}}}\n' for i in range(3))]
    for text in ('{"id": "a", "text": "x"}\n{"id": "a", "text": "y"}\n' * 2, *arrays):
        lines = lines_of(text.encode(), {})
        assert list(reader.lists(lines, reader.records(lines)))
        assert not reader.parts(lines.told)
