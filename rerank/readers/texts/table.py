"""Tables whose rows are candidates, or lists of candidates that stand beside one another (``response_1``, ``score_1``,
``response_2``, ...): CSV and TSV with the names of the columns on the first line, Parquet, Arrow.

What a row holds is what an object of the format ``jsonl`` holds: rows with the same value of the key that tells their
list, wherever they stand, are a list, and the roles of columns are found as the roles of keys are.
"""

import csv
import io
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from rerank.base.errors import DataError
from rerank.readers.detection import TABLES
from rerank.readers.lines import LONGEST, LineReader
from rerank.readers.problems import Problem
from rerank.readers.streams import PathLike, open_stream
from rerank.readers.texts.forms import NUMERAL
from rerank.readers.texts.jsonl import JsonlReader
from rerank.readers.texts.text_list import LOOK
from rerank.storage.places import fetched, is_url

EXTRA = "pip install 'rerank-nbest[frames]'"


@dataclass(frozen=True)
class TableReader(JsonlReader):
    r"""Lists in tables; they are written as JSON lines.

    >>> (nbest,) = TableReader().parse(b"query,text,score\n1,Yes .,-1.5\n1,No .,-2\n")
    >>> nbest.texts, nbest.base
    ([b'Yes .', b'No .'], array([-1.5, -2. ]))

    Parameters
    ----------
    duplicates, ids, labels, base, dense, answer, roles: see ``jsonl``.
    """

    form: ClassVar[str] = "table"

    @property
    def look(self) -> int:
        return LOOK

    def found(self, lines: LineReader) -> Iterator[tuple[int, dict[str, Any] | Problem]]:
        """The rows of a table, each with its line, or its number in a table that has no lines."""
        data = lines.rest()
        if data.startswith(TABLES):
            yield from enumerate(table(lines.path, data).to_pylist(), start=1)
            return
        if data.strip():
            head = data.partition(b"\n")[0].decode("utf-8", "surrogateescape")
            yield from rows_of(data, max("\t;,", key=head.count), lines.path)


def rows_of(data: bytes, mark: str, path: str) -> Iterator[tuple[int, dict[str, Any] | Problem]]:
    """The rows below a line of names, each with its line; ``mark`` parts their fields. Raises DataError."""
    csv.field_size_limit(LONGEST)
    text = data.decode("utf-8", "surrogateescape")
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=mark, strict=True)
    try:
        names = next(rows, [])
        named = [name for name in names if name]  # that of an index has none
        if len(named) < 2 or len({*named}) < len(named) or any(map(NUMERAL.fullmatch, named)):
            found = text.partition("\n")[0][:80]
            message = f"found {found!r}; expected the names of columns, as in query,text,score"
            raise DataError(message, path=path, line=1)
        for values in filter(None, rows):
            if len(values) == len(names):
                if mark == ";":  # where commas may be those of decimals
                    values = [re.sub(r"^(-?\d+),(\d+)$", r"\1.\2", value) for value in values]
                yield rows.line_num, {key: value or None for key, value in zip(names, values, strict=True) if key}
            else:
                message = f"found {len(values)} fields; expected {len(names)}, as on the first line"
                yield rows.line_num, Problem("columns", message)
    except csv.Error as error:
        raise DataError(f"{error}; expected fields in quotes to end", path=path, line=rows.line_num) from None


def is_table(path: Any) -> bool:
    """Whether a path is that of a table of Parquet or Arrow, by its ending."""
    return isinstance(path, str | os.PathLike) and os.fspath(path).lower().partition("?")[0].endswith(
        (".parquet", ".arrow", ".feather")
    )


def table(path: PathLike, data: bytes | None = None) -> Any:
    """The table of Parquet or Arrow in a file, or in its ``data``, as a ``pyarrow.Table``."""
    name = os.fspath(path)
    if data is None:
        open_stream(name).close()  # which says what is wrong with a path
        data = fetched(name) if is_url(name) else None
    try:
        import pyarrow
        from pyarrow import ipc, parquet
    except ImportError:
        raise DataError(f"tables in files need pyarrow: {EXTRA}", path=name) from None

    def read() -> Any:
        with pyarrow.OSFile(name) if data is None else pyarrow.BufferReader(data) as source:
            start = source.read(6)
            source.seek(0)
            if start.startswith(b"PAR1"):
                return parquet.ParquetFile(source).read()
            return (ipc.open_file if start == b"ARROW1" else ipc.open_stream)(source).read_all()

    try:
        frame = read()
        frame.validate(full=True)  # texts are UTF-8
        return frame
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(f"no table that can be read: {error}", path=name) from None
