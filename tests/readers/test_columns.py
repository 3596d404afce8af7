"""Scores from other files beside lists, tables whose rows are candidates, and what samples have besides texts."""

import datetime
import gzip
import io
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from outcomes import good, problem_of, read_lists, written

import rerank
from rerank.base.errors import DataError, RecipeError
from rerank.readers.combined import JoinedReader
from rerank.readers.detection import format_of
from rerank.readers.memory.nbest import InputError, as_list
from rerank.readers.reader import ScoreColumns, SkipCount, make_reader, readers

LISTS = b"0 ||| a b ||| LM= -1 ||| -3\n0 ||| a c ||| LM= -2 ||| -4\n2 ||| z ||| LM= 0 ||| -1\n"
SCORES = b"# nmt back\n-1.5 2\n-2.5\t3\n 4 5e-1 \n"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("joined")


@pytest.mark.parametrize(
    ("name", "key"),
    [("joined", "names"), ("kaldi", "costs"), ("moses", "columns"), ("jsonl", "dense"), ("jsonl", "labels")],
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


@pytest.mark.parametrize(
    ("scores", "line", "part"),
    [
        (b"1\n2\n", 2, "2 lines of scores for at least 3 candidates"),
        (b"# x\n1\n", 2, "1 lines of scores for at least 2 candidates"),
        (b"", None, "0 lines of scores for at least 2 candidates"),
        (b"1\n2\n3\n4\n", 4, "at least 4 lines of scores for 3 candidates"),
        (b"1\n2\n3\n\n", 4, "at least 4 lines of scores for 3 candidates"),
        (b"# a b a\n1\n2\n3\n", 1, "found the column name 'a' twice"),
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


def test_after_a_list_of_nobody_knows_how_many_candidates_the_scores_have_lost_their_places(place: Path) -> None:
    both = path(place, b'{"candidates": ["a"]}\n{"candidates": \n{"candidates": ["b"]}\n', b"1\n2\n3\n")
    with pytest.raises(DataError, match=r"0.gz:2: list 1.*nothing tells which lines of scores"):
        list(read_lists(JoinedReader(of="jsonl"), both, count=SkipCount("skip")))


def test_a_list_with_an_id_used_before_keeps_its_scores(place: Path) -> None:
    lists = [json.dumps({"id": name, "candidates": ["a", "b"]}).encode() + b"\n" for name in "xxy"]
    first, again, last = read(place, b"".join(lists), b"1\n2\n3\n4\n5\n6\n", of="jsonl")
    assert (again.problem.reason, again.size) == ("duplicate id", 2)
    assert (first.scores[:, 1].tolist(), last.scores[:, 1].tolist()) == ([1.0, 2.0], [5.0, 6.0])


@pytest.mark.parametrize("bad", [1, 2])
def test_a_model_leaves_out_bad_candidates_alone_where_lists_have_gains(bad: int, tmp_path: Path) -> None:
    """Gains are nothing to a model, so those of lists that are read one by one, for one that is bad, are not missed."""
    candidates = [[{"text": f"{y}", "score": -y, "lm": y, "gain": y} for y in range(2)] for _ in range(4)]
    del candidates[bad][1]["lm"]
    lines = [json.dumps({"id": str(i), "candidates": of_list}) for i, of_list in enumerate(candidates)]
    (tmp_path / "lists").write_text("\n".join(lines))
    reader = make_reader("jsonl").for_columns(ScoreColumns(("score", "lm"), "score"), live=True)
    found = list(read_lists(reader, str(tmp_path / "lists"), count=SkipCount("skip")))
    assert [len(one) for one in found] == [2 - (i == bad) for i in range(4)]


@pytest.mark.parametrize("first", ["garbage", '{"id": "a", "candidates": [{"text": "b"}]}'])
def test_a_first_list_tells_a_model_neither_of_ids_nor_of_scores(first: str, tmp_path: Path) -> None:
    (tmp_path / "lists").write_text(first + '\n{"id": "c", "candidates": [{"text": "d", "score": 2}]}\n')
    reader = make_reader("jsonl").for_columns(ScoreColumns(("score",), "score"), live=True)
    _, second = reader.read(str(tmp_path / "lists"))
    assert (second.problem, second.id, second.base.tolist()) == (None, "c", [2.0])


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
    assert written(again, twice.select([0])) == b"1\tx\n-1.0\t5.0\n(S1 (NN x))\n\n"


NAMES = ("prompt_id", "response", "reward", "correct", "note")
ROWS = [
    (1, "Yes, it is.", -0.5, True, "x"),
    (2, 'A "b"', -3.0, False, None),
    (1, "No\nit is not.", -2.25, False, "y"),
    (2, "c", -1.0, True, "z"),
]


def delimited(mark: str) -> bytes:
    def field(value: object) -> str:
        text = "" if value is None else str(value)
        return '"' + text.replace('"', '""') + '"' if {mark, '"', "\n"} & {*text} else text

    return "".join(mark.join(map(field, row)) + "\r\n" for row in (NAMES, *ROWS)).encode()


def columnar(kind: str) -> bytes:
    pa, ipc, parquet = (pytest.importorskip(name) for name in ("pyarrow", "pyarrow.ipc", "pyarrow.parquet"))
    table, out = pa.table(dict(zip(NAMES, map(list, zip(*ROWS, strict=True)), strict=True))), io.BytesIO()
    if kind == "parquet":
        parquet.write_table(table, out)
    else:
        with (ipc.new_file if kind == "file" else ipc.new_stream)(out, table.schema) as writer:
            writer.write_table(table)
    return out.getvalue()


def test_a_table_holds_what_json_does_not(tmp_path: Path) -> None:
    pa, parquet = (pytest.importorskip(name) for name in ("pyarrow", "pyarrow.parquet"))
    day, numbers = datetime.date(2024, 1, 2), [[Decimal("0.1"), Decimal("-2.5")], [Decimal("1.0"), Decimal("3.0")]]
    rows = [
        {"day": day, "candidates": [{"text": t, "lm": lm, "at": day} for t, lm in zip((b"a", b"b"), pair, strict=True)]}
        for pair in numbers
    ]
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "lists.parquet")
    first, second = make_reader("table", "").read(tmp_path / "lists.parquet")
    assert (first.texts, first.names, first.scores[:, 1].tolist()) == ([b"a", b"b"], ("score", "lm"), [0.1, -2.5])
    make_reader("table", "").write(out := io.BytesIO(), second, order=[1])
    assert json.loads(out.getvalue())["candidates"] == [{"text": "b", "lm": 3.0, "at": "2024-01-02"}]


@pytest.mark.parametrize(
    ("ending", "data"),
    [
        ("csv", lambda: delimited(",")), ("csv", lambda: delimited(";")), ("tsv", lambda: delimited("\t")),
        ("parquet", lambda: columnar("parquet")), ("arrow", lambda: columnar("file")),
        ("feather", lambda: columnar("stream")),
    ],
)  # fmt: skip
def test_rows_with_one_value_of_the_group_are_a_list(ending: str, data: Callable[[], bytes], tmp_path: Path) -> None:
    path = tmp_path / f"lists.{ending}"
    path.write_bytes(data())
    assert format_of(str(path), readers) == "table"
    lists = rerank.read(path)
    found = {nbest.id: ([each.text for each in nbest.candidates], [*nbest.gains]) for nbest in lists}
    assert found == {"1": (["Yes, it is.", "No\nit is not."], [1, 0]), "2": (['A "b"', "c"], [0, 1])}
    assert [each.columns["reward"] for nbest in lists for each in nbest.candidates] == [-0.5, -2.25, -3, -1]
    assert lists.account.lines[-1] == "not used: note (texts, 3 of 4)"
    (_, second) = make_reader({"name": "table", "roles": {"reward": "base"}}, "reader").read(path)
    assert second.base.tolist() == [-3, -1]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"id,text\n1,a\n1,x\n1,b,c\n", "csv:4: .*found 3 fields; expected 2, as on the first line"),
        (b'id,text\n1,"a\n', "csv:2: unexpected end of data"),
        (b"1,text\n1,a\n", "csv:1: found '1,text'; expected the names of columns"),
        (b"text\na\n", "csv:1: found 'text'; expected the names of columns"),
        (b"text,,text\na,b,c\n", "csv:1: found 'text,,text'; expected the names of columns"),
        (b"q,phrase\n1,a\n1,b\n", "say so, as --roles query=group,answer=text; found q, phrase"),
        (b"PAR1 no table", "no table that can be read"),
        (b"PK\x03\x04" + bytes(26) + b"[Content_Types].xml", "a workbook of Excel or LibreOffice, .*import pandas"),
    ],
)
def test_what_is_wrong_with_a_table(data: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / ("lists.xlsx" if data.startswith(b"PK") else "lists.csv")
    path.write_bytes(data)
    with pytest.raises(DataError, match=said):
        list(rerank.read(path))


def test_quotes_between_tabs_that_end_no_field_are_text(tmp_path: Path) -> None:
    texts = ['"', "b", "c", '"', '"Yes," he said .', '" d "']
    rows = [f"{k // 2}\t{text}\t{k}" for k, text in enumerate(texts)]
    (tmp_path / "x.tsv").write_text("\n".join(["query\ttext\tlm", *rows, ""]))
    assert [[one.text for one in nbest.candidates] for nbest in rerank.read(tmp_path / "x.tsv")] == [
        texts[:2], texts[2:4], texts[4:],
    ]  # fmt: skip


def test_a_key_of_which_some_values_are_numbers_is_doubted(tmp_path: Path) -> None:
    rows = "".join(f"{k // 3},{k},{'None' if k % 3 == 2 else k}\n" for k in range(6))
    (tmp_path / "x.csv").write_text(f"query,text,lm\n{rows}")
    first, _ = make_reader("table", "").read(tmp_path / "x.csv")
    assert first.roles.doubtful == ("lm",)


def test_commas_of_decimals_are_read_where_semicolons_part_fields(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("query;text;lm\n1;a, b;-0,5\n1;1,2,3;2\n")
    (one,) = rerank.read(tmp_path / "x.csv")
    assert [(each.text, each.columns["lm"]) for each in one.candidates] == [("a, b", -0.5), ("1,2,3", 2.0)]


@pytest.mark.parametrize("head", [",query,text", "query,text,", "Unnamed: 0,query,text"])
def test_an_index_is_no_column(head: str, tmp_path: Path) -> None:
    rows = [dict.fromkeys(head.split(","), str(k)) | {"query": k // 2, "text": "xyzw"[k]} for k in range(4)]
    lines = [head, *(",".join(str(row[name]) for name in head.split(",")) for row in rows)]
    (tmp_path / "x.csv").write_text("\n".join(lines))
    first, second = rerank.read(tmp_path / "x.csv")
    assert ([*first.candidates[0].columns], [one.text for one in second.candidates]) == ([], ["z", "w"])


def test_columns_of_rows_are_named_as_those_of_frames(tmp_path: Path) -> None:
    rows = "q,a,lm,am,n,ok", "1,yes,-1.5,3,7,1", "1,no,-2,4,8,0", "2,yes,-1,5,8,0", "2,no,-3,6,7,1"
    (tmp_path / "x.csv").write_text("\n".join(rows))
    named: dict[str, Any] = {"group": "q", "text": "a", "score": "lm", "gain": "ok", "columns": ["am"]}
    first, second = rerank.read(tmp_path / "x.csv", **named)
    assert (first.gains, second.gains) == ((1, 0), (0, 1))
    assert [one.text for one in first.candidates] == ["yes", "no"]
    assert [one.columns for one in first.candidates] == [{"am": 3.0, "gain": 1.0}, {"am": 4.0, "gain": 0.0}]
    with pytest.raises(DataError, match="chosen names a column of a data frame; of a file, name the roles of keys"):
        rerank.read(tmp_path / "x.csv", chosen="a", rejected="q")


PRM = ("prm:min", "prm:mean", "prm:last", "prm:prod")
STEPS, VALUES = [[0.5, 0.25, 1], [0.75]], [[0.25, 1.75 / 3, 1.0, 0.125], [0.75, 0.75, 0.75, 0.75]]
SHAPES: dict[str, Any] = {
    "jsonl": lambda key, one: {
        "candidates": [{"text": text, key: value} for text, value in zip("ab", one, strict=True)]
    },
    "openai": lambda key, one: {"choices": [{"text": text, key: value} for text, value in zip("ab", one, strict=True)]},
    "parallel": lambda key, one: {"responses": ["a", "b"], key: one},
}


def sampled(root: Path, name: str, *items: Any, **options: Any) -> list[Any]:
    (root / "lists").write_text("".join(json.dumps(item) + "\n" for item in items))
    roles = {} if name == "jsonl" else {"roles": {"prm": "column"}}
    return list(make_reader({"name": "jsonl", **roles, **options}).read(root / "lists"))


@pytest.mark.parametrize("name", SHAPES)
def test_scores_of_steps_are_columns(name: str, tmp_path: Path) -> None:
    item = SHAPES[name]("prm", STEPS)
    one = good(*sampled(tmp_path, name, item))
    assert one.names == ("score", *PRM)
    np.testing.assert_array_equal(one.scores[:, 1:], VALUES)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize(
    ("value", "found"), [([], "an empty list"), (0.5, "0.5"), ([0.5, "x"], '"x"; expected a score under')]
)
def test_what_is_no_list_of_scores_beside_some_is_bad(name: str, value: Any, found: str, tmp_path: Path) -> None:
    one = good(*sampled(tmp_path, name, SHAPES[name]("prm", [[0.5], value])))
    (bad,) = one.bad
    assert (bad.reason, bad.index) == ("columns", 1)
    assert f"found {found}" in bad.message


def test_lists_of_whole_numbers_are_ids_of_tokens_and_products_have_a_largest(tmp_path: Path) -> None:
    numbers = {"ids": [1, 2], "lm": [-9.5] * 401, "x": [1e300] * 2, "y": [1e300, 1e300, 0]}
    one = good(*sampled(tmp_path, "jsonl", {"candidates": [{"text": "a", **numbers}]}))
    products = {name: one.scores[0, k] for k, name in enumerate(one.names) if name.endswith(":prod")}
    largest = float(np.finfo(np.float32).max)
    assert products == {"lm:prod": -largest, "x:prod": largest, "y:prod": 0}


@pytest.mark.parametrize(
    ("reason", "cut"), [("length", 1.0), ("incomplete", 1.0), ("stop", 0.0), (None, 0.0), (7, 0.0)]
)
def test_a_reason_to_end_is_a_column(reason: Any, cut: float, tmp_path: Path) -> None:
    for name in ("jsonl", "openai"):
        one = good(*sampled(tmp_path, name, SHAPES[name]("finish_reason", [reason, "stop"])))
        assert (one.names, one.scores[:, 1].tolist()) == (("score", "finish_length"), [cut, 0.0])


@pytest.mark.parametrize("name", SHAPES)
def test_texts_are_sparse_features_where_they_are_asked_for(name: str, tmp_path: Path) -> None:
    items = SHAPES[name]("model", ["x", "y"]), SHAPES[name]("model", ["x", None])
    assert all(one.sparse is None for one in sampled(tmp_path, name, *items))
    one, two = (good(found) for found in sampled(tmp_path, name, *items, labels=["model", "system"]))
    assert (one.names, one.sparse.names, one.sparse.values.tolist()) == (("score",), [b"model=x", b"model=y"], [1, 1])
    assert (two.sparse.names, two.sparse.first.tolist()) == ([b"model=x"], [0, 1, 1])


def test_candidates_in_memory_have_what_lines_have(tmp_path: Path) -> None:
    entries: list[dict[str, Any]] = [
        {"text": "a", "prm": [0.5, 0.25, 1], "finish_reason": "length"},
        {"text": "b", "prm": [0.75], "finish_reason": {"type": "stop"}, "ids": [1]},
    ]
    one = good(*sampled(tmp_path, "jsonl", {"candidates": entries}))
    given = as_list(entries, texts=True, name="0")
    assert set(given.names) == set(one.names)
    assert given.scores[:, [given.names.index(name) for name in one.names]].tolist() == one.scores.tolist()
    with pytest.raises(DataError, match="found NaN; expected a score under 'prm' of candidate 1 as a finite number"):
        as_list([{"text": "a", "prm": [0.5, float("nan")]}], texts=True, name="0")


COLUMNS = ScoreColumns(("score", "length", "reward"), "score")
NAMED = ScoreColumns(("logprob", "reward"), "logprob")


@pytest.mark.parametrize(
    ("columns", "rows"),
    [
        (COLUMNS, [{"text": f" {y}", "score": y, "columns": {"reward": -0.5, "length": 2}} for y in range(3)]),
        (
            COLUMNS,
            [
                {"text": "a", "score": 1.0, "reward": 0.25, "length": 2},
                {"text": "a", **dict.fromkeys(COLUMNS.names, 1)},
            ],
        ),
        (
            NAMED,
            [
                {"text": "a", "score": 1.0, "columns": {"reward": 2}},
                {"text": "", "score": 3, "columns": {"reward": 1e300}},
            ],
        ),
        (NAMED, [{"text": "a", "logprob": -1.0, "reward": 2}]),
    ],
)
def test_candidates_that_are_alike_are_the_list_that_others_are(columns: ScoreColumns, rows: list[Any]) -> None:
    """A tuple of them is looked at candidate by candidate."""
    alike, one_by_one = (vars(as_list(each, columns, texts=True, name="0")) for each in (rows, tuple(rows)))
    given = ("scores", "first", "lines", "sides")
    assert {key: value for key, value in alike.items() if key not in given} == {
        key: value for key, value in one_by_one.items() if key not in given
    }
    for key in ("scores", "first", "lines"):
        assert np.array_equal(alike[key], one_by_one[key])
    plain = as_list([{**rows[0], key: 1} for key in [list(rows[0])[1]]], columns, texts=True, name="0").scores
    for number in ("1", True, np.True_):  # as in files
        one = as_list([{**rows[0], list(rows[0])[1]: number}], columns, texts=True, name="0").scores
        assert np.array_equal(one, plain)
    for wrong in ("high", None, float("inf")):
        messages = list[str]()
        for each in ([*rows, {**rows[0], list(rows[0])[1]: wrong}], (*rows, {**rows[0], list(rows[0])[1]: wrong})):
            with pytest.raises(InputError) as raised:
                as_list(each, columns, texts=True, name="0")
            messages.append(str(raised.value))
        assert messages[0] == messages[1]


def test_a_gain_that_most_lists_lack_is_not_said_to_be_common(tmp_path: Path) -> None:
    rows = [
        {"qid": f"{i}", "response": f"{k}", "rm": k, **({"gain": k} if i % 2 else {})}
        for i in range(10)
        for k in (0, 1)
    ]
    (tmp_path / "lists.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    with pytest.raises(rerank.RerankError, match="does not have the number 'gain', as others of the file do; without"):
        list(rerank.read(tmp_path / "lists.jsonl"))
