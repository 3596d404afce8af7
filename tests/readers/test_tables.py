"""Tables whose rows are candidates."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rerank
from rerank.base.errors import DataError
from rerank.readers.base import make_reader, readers
from rerank.readers.detection import format_of

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


def test_columns_of_rows_are_named_as_those_of_frames(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("q,a,lm,am,ok\n1,yes,-1.5,3,1\n1,no,-2,4,0\n2,yes,-1,5,0\n2,no,-3,6,1\n")
    named: dict[str, Any] = {"group": "q", "text": "a", "score": "lm", "gain": "ok", "columns": ["am"]}
    first, second = rerank.read(tmp_path / "x.csv", **named)
    assert (first.gains, second.gains) == ((1, 0), (0, 1))
    assert [one.text for one in first.candidates] == ["yes", "no"]
    with pytest.raises(DataError, match="chosen names a column of a data frame; of a file, name the roles of keys"):
        rerank.read(tmp_path / "x.csv", chosen="a", rejected="q")
