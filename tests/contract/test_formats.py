"""Every format, alone, in every command and from every kind of source, and the two files of the parallel ones."""

import gzip
import io
import json
import re
from itertools import chain, product
from pathlib import Path
from typing import Any

import formats
import numpy as np
import pytest
import small_lists
import yaml
from commands import Command
from formats import CANDIDATES, CASES, FORMATS, LISTS, Case, lists_in, whole
from outcomes import read_lists

from rerank.base.errors import DataError
from rerank.readers.inputs import Side, in_step
from rerank.readers.lines import LineReader
from rerank.readers.lists import one_by_one
from rerank.readers.reader import Lists, SkipCount, make_reader
from rerank.recipes.loading import load_recipe
from rerank.storage.streams import InputStream

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
        for ended in (text, text.rstrip()):  # with the last line end, and without
            assert read(name, tmp_path / "other", ended) == expected, (end, mark, blank)


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
    lines.number, lines.records, lines.traits = line, ordinal, told
    return lines


@pytest.mark.parametrize("name", CUT)
def test_stretches_are_read_as_the_file_is(name: str) -> None:
    data, reader = lists_in(name), make_reader(spec_of(name))

    def lists(lines: LineReader) -> list[tuple[Any, ...]]:
        found = one_by_one(reader.lists(lines, reader.records(lines)))
        return [(one.id, one.texts, one.scores.tolist(), list(one.lines)) for one in found]

    expected = lists(whole := lines_of(data, {}))
    assert reader.can_split(whole.traits) == CUT[name]
    for count, size in ((1, 1), (2, 40), (3, 1 << 20)) if CUT[name] else ():
        parts = list(reader.stretches(InputStream(io.BytesIO(data), ""), count, size))
        found = [lists(lines_of(part, dict(whole.traits), line, ordinal)) for part, line, ordinal, _ in parts]
        assert (b"".join(part for part, *_ in parts), [*chain(*found)]) == (data, expected)
        assert list(map(len, found)) == [part[-1] for part in parts]


def test_rows_of_lists_and_arrays_are_cut_nowhere() -> None:
    reader = make_reader("jsonl")
    few = '[{"text": "x"}, {"text": "y"}]'
    arrays = ['[{"candidates": ["x"]},\n{"candidates": ["y"]}]\n', f'{{"a": {few}, "b": {few}}}\n']
    arrays += ["".join(f'{{"eval": {{"a{i}": {few}, "b{i}": {few}}}}}\n' for i in range(3))]
    for text in ('{"id": "a", "text": "x"}\n{"id": "a", "text": "y"}\n' * 2, *arrays):
        lines = lines_of(text.encode(), {})
        assert list(reader.lists(lines, reader.records(lines)))
        assert not reader.can_split(lines.traits)


TREES = [name for name, form in formats.FORMATS.items() if form.trees]
TEXTS = [name for name, form in small_lists.FORMATS.items() if ":" not in form.reader["name"] and not form.trees]
SETTINGS: dict[str, Any] = {
    "learner": {"name": "perceptron", "base": 1.0},
    "training": {"epochs": 1},
    "significance": {"samples": 100},
    "examples": 0,
}


def use(rerank: Command, root: Path, lists: str, gold: str, reader: dict[str, Any], more: dict[str, Any]) -> str:
    """Run a recipe over lists, rank them by its model, read what was written, and ask for their oracle."""
    data = {"nbest": lists, "reader": reader, "dev": None, "tests": ["test"], **more.pop("data")}
    (root / "recipe.json").write_text(json.dumps({"name": "formats", **SETTINGS, **more, "data": data}))
    shown, metric = (
        yaml.safe_dump(reader, default_flow_style=True, width=1000).strip(),
        more.get("metric", {"name": "parseval"})["name"],
    )
    for line in (
        ["run", root / "recipe.json", "-o", root / "run"],
        ["rank", root / "run/model", lists, "-o", root / "best"],
        ["rank", root / "run/model", lists, "-o", root / "ranked", "--n-best", 2],
        ["oracle", lists, gold, "--reader", shown, "--metric", metric],
    ):
        ended = rerank(*line)
        assert ended.code == 0, (line, ended.err)
    return ended.out


@pytest.mark.parametrize("name", TREES)
def test_trees(name: str, tmp_path: Path, rerank: Command) -> None:
    form, count = formats.FORMATS[name], formats.LISTS
    lists = [[form.candidate(i, k) for k in range(formats.CANDIDATES)] for i in range(count)]
    form.put(tmp_path / "lists", b"".join(form.whole(i, candidates) for i, candidates in enumerate(lists)))
    golds = [f"(S (NN a{i}) (VP1 (VB b)))\n" for i in range(count)]
    (tmp_path / "gold").write_text("".join(golds))
    reader = formats.Case(name.split()[0], name).spec
    more = {"task": "parse", "features": {"set": "minimal", "min_lists": 1}, "data": {"gold": str(tmp_path / "gold")}}
    shown = use(rerank, tmp_path, str(tmp_path / "lists"), str(tmp_path / "gold"), reader, more)
    assert f"candidates {count * formats.CANDIDATES}" in shown
    assert len((tmp_path / "best").read_text().splitlines()) == count
    assert [len(nbest) for nbest in read_lists(make_reader(reader), tmp_path / "ranked")] == [2] * count
    assert rerank("evaluate", tmp_path / "gold", tmp_path / "best").code == 0


@pytest.mark.parametrize("name", TEXTS)
def test_texts(name: str, tmp_path: Path, rerank: Command) -> None:
    form, count = small_lists.FORMATS[name], small_lists.LISTS
    lists, reader = form.write(tmp_path, small_lists.complete()), dict(form.reader)
    named = name in ("kaldi", "espnet")  # their lists have ids, which references have too, in any order
    words = [f"utt{i} w{i} b\n" if named else f"w{i} b\n" for i in range(count)]
    (tmp_path / "references").write_text("".join(words[::-1] if named else words))
    references = str(tmp_path / "references")
    more = {
        "task": "speech", "metric": {"name": "wer"}, "data": {"references": [references], "sources": None},
        "features": {"set": None, "templates": ["Dense", "TargetNGram"], "min_lists": 1},
    }  # fmt: skip
    assert f"candidates {3 * count}" in use(rerank, tmp_path, lists, references, reader, more)
    assert len((tmp_path / "best").read_text().splitlines()) == count
    kind = reader["name"] if reader["name"] in ("moses", "jsonl", "fairseq", "sockeye") else ""
    written = {"merged": "moses", "joined": "moses", "kaldi": "jsonl", "espnet": "jsonl", "table": "jsonl"}
    again = reader if not kind and name not in written else {"name": kind or written[name]}
    assert [len(nbest) for nbest in read_lists(make_reader(again), tmp_path / "ranked")] == [2] * count
    assert rerank("evaluate", references, tmp_path / "best", "--metric", "wer").code == 0
    recipe = load_recipe(tmp_path / "recipe.json")
    assert all(Path(path).is_file() for path in recipe.data.files("test")["nbest"])


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
