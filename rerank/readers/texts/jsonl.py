"""Lists in JSON, one object per line: texts of any system, with any named numbers.

Three lines this reads::

    {"id": "a", "source": "Es regnet .", "references": ["It rains ."], "candidates": ["It rains .", "It rain ."]}
    {"id": "b", "candidates": [{"text": "Yes .", "score": -1.5, "features": {"lm": -2.0, "rare": 1}}]}
    {"reference": "4", "candidates": [{"text": "4", "logprob": -0.7, "gain": 1.0}, {"text": "5", "logprob": -0.9}]}

An object needs only ``candidates``. A candidate is a text, or an object with the key ``text``. Its numbers are
the values of its other keys that are numbers (``score``, ``gain``, whatever there is) and those under ``columns`` and
``features``. A number that all candidates have, in nearly all of a file's first 1,000 lists, is a dense column, which
all candidates of the file must then have; the others are sparse features. Texts under ``segmentation`` and
``alignment`` are derivations, the one under ``answer`` is what the candidate comes to.
"""

import csv
import io
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from math import isfinite
from typing import Any, ClassVar

from rerank.base.encoding import decoded
from rerank.base.errors import DataError, RecipeError
from rerank.data.answers import check_rule, plain
from rerank.readers.detection import TABLES
from rerank.readers.lines import MAX_LINE, LineReader
from rerank.readers.lists import Lists, plain_texts
from rerank.readers.problems import Problem
from rerank.readers.reader import Order, Scores, check_names
from rerank.readers.texts.forms import NUMERAL, as_number
from rerank.readers.texts.json_lines import (
    FINISH,
    JsonReader,
    LinePieces,
    Object,
    as_bytes,
    derive,
    has_steps,
    json_line,
    number_of,
    plain_value,
    show,
    text_of,
    texts_of,
)
from rerank.readers.texts.responses import as_lists
from rerank.readers.texts.roles import WORDS
from rerank.readers.texts.text_list import BASE_SCORE, COLUMN_SAMPLE_LISTS, NUMBERS, PARTS, SCORE, Draft, Pieces
from rerank.storage.places import fetch, is_url
from rerank.storage.streams import PathLike, Writable, open_stream

EXTRA = "pip install 'rerank-nbest[frames]'"
UNLIKE_LISTS, MANY_KEYS = "lists that are not alike", 64
_NESTED = "columns", "features"
_NO_NUMBERS = "text", *_NESTED  # keys of candidates that are no numbers
_NUMERIC = {float, int, bool}


@dataclass(frozen=True)
class JsonlReader(JsonReader):
    """Lists in JSON lines.

    >>> (nbest,) = JsonlReader().parse(b'{"candidates": [{"text": "Yes .", "score": -1.5, "lm": -2}]}')
    >>> nbest.texts, nbest.names, nbest.scores
    ([b'Yes .'], ('score', 'lm'), array([[-1.5, -2. ]]))

    Parameters
    ----------
    duplicates, ids: see ``JsonReader``.
    labels: the keys of texts, such as ``model``, that are sparse features: ``model=a``.
    base: the name of the number that is the base score; in a file without any "score", all base scores are 0.
    dense: the names of the dense columns in addition to the base score; by default the file's first lists decide.
    answer: the rule for answers where the right one is known; by default as that suggests.
    roles: what keys are, where their names and kinds do not tell: ``{samples: candidates, response: text, passed:
        gain, reward: column}``.
    """

    form: ClassVar[str] = "jsonl"
    general: ClassVar[bool] = True
    draft_lists: ClassVar[int] = 1 << 5

    labels: tuple[str, ...] = ()
    base: str = SCORE
    dense: tuple[str, ...] | None = None
    answer: str | None = None
    roles: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_names(self.labels, "labels")
        if not isinstance(self.base, str) or not self.base:
            raise RecipeError(f"found {self.base!r}; expected the name of a number", key="base")
        if self.dense is not None:
            check_names(self.dense, "dense")
        check_rule(self.answer)
        more = list[str]()
        for key, role in (self.roles or {}).items():
            if role not in WORDS:
                message = f"found {role!r} as the role of {key!r}; expected one of {', '.join(WORDS)}"
                raise RecipeError(message, key="roles")
            more += [key] * (role == "label")
        object.__setattr__(self, "labels", tuple(dict.fromkeys([*self.labels, *more])))

    def can_split(self, traits: Mapping[str, Any]) -> bool:
        """Rows of one list may stand anywhere, and gains by answers are counted to the end of a file."""
        return super().can_split(traits) and "roles" in traits and not (traits["roles"].group or traits["roles"].right)

    def write(self, out: Writable, nbest: Lists, order: Order = None, scores: Scores = None) -> None:
        """A new score is "score", the old one "base_score" unless there is one already.

        Lists of other formats can be written too.
        """
        pieces = nbest.raw if isinstance(nbest.raw, Pieces) else None
        if pieces is None or not isinstance(pieces.head, dict) or "candidates" not in pieces.head:
            pieces = _describe(nbest)
        indices = range(len(nbest)) if order is None else order
        candidates = [pieces.candidates[i] for i in indices]
        for k, i in enumerate(indices):
            if scores is not None:
                entry = candidates[k] if isinstance(candidates[k], dict) else {"text": candidates[k]}
                old = entry.get(BASE_SCORE, entry.get(SCORE, float(nbest.base[i])))
                candidates[k] = {**entry, SCORE: float(scores[i]), BASE_SCORE: old}
        out.write(json_line({**pieces.head, "candidates": candidates}, nbest))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are known before a file is read: they are numbers however they are written."""
        return (*(self.dense or ()), *(() if self.model_columns is None else self.model_columns.names))

    def objects(self, lines: LineReader) -> Iterator[tuple[int, dict[str, Any] | Problem]]:
        keys = [*dict.fromkeys([*self.columns, *self.labels])]
        return as_lists(self.raw_objects(lines), self.roles or {}, lines, self.answer, keys, self.look, live=self.live)

    def raw_objects(self, lines: LineReader) -> Iterator[tuple[int, dict[str, Any] | Problem]]:
        """The objects as they stand in a file."""
        return super().objects(lines)

    def draft(self, content: dict[str, Any]) -> Draft:
        return self.together([content])

    def together(self, contents: Sequence[dict[str, Any]]) -> Draft:
        several, every = len(contents) > 1, list(map(_entries, contents))
        rows = [entry if isinstance(entry, dict) else {"text": entry} for entry in chain.from_iterable(every)]
        keys: dict[str, Any] = rows[0] if rows else {}
        if not keys.keys() >= set().union(*rows):
            keys = dict.fromkeys(chain.from_iterable(rows))
        if several and (len(keys) > MANY_KEYS or not all(every)):
            raise Problem("columns", UNLIKE_LISTS)
        references, sources = list(map(_references, contents)), [item.get("source") for item in contents]
        if (texts := plain_texts(sources)) is not None:
            sources = list(map(bytes.strip, texts))
        else:
            sources = [None if source is None else text_of(source, "the source") for source in sources]
        texts = plain_texts([row.get("text") for row in rows])
        raws: list[Pieces] = [
            LinePieces(one.line) if several and isinstance(one, Object) else Pieces(one, of)
            for one, of in zip(contents, every, strict=True)
        ]
        draft = Draft(raws, texts or [], {}, sides={"source": sources, "references": references})
        draft.sizes = list(map(len, every)) if several else ()
        if texts is None:
            draft.texts = draft.try_each(rows, _text, b"")
        steps = list[str]()
        for key in (key for key in keys if key not in _NO_NUMBERS):
            values = [row.get(key) for row in rows]
            if not (finite := _are_finite(values)) and key in self.columns:
                values = [as_number(one[0] if isinstance(one, list) and len(one) == 1 else one) for one in values]
                finite = _are_finite(values)
            score = key in NUMBERS and values.count(None) < len(values)
            if key in PARTS:
                draft.parts[key] = draft.try_each(values, partial(_part, key), None)
            elif finite or score or not _NUMERIC.isdisjoint(map(type, values)):
                draft.numbers[key] = values if finite else draft.try_each(values, partial(_number, key), None)
            if not finite and has_steps(values):
                steps.append(key)
        if not keys.keys().isdisjoint(_NESTED):
            draft.put(draft.try_each(rows, _nested_numbers, {}), sparse=True)
        if steps or FINISH in keys:
            draft.put(draft.try_each(rows, lambda row, k: derive(row, steps, k), {}))
        if self.labels:
            features = draft.features or [{}] * len(rows)
            draft.features = [
                one | {f"{key}={row[key]}": 1.0 for key in self.labels if isinstance(row.get(key), str) and row[key]}
                for one, row in zip(features, rows, strict=True)
            ]
        if several and (draft.bad or any(None in values for values in draft.parts.values())):
            raise Problem("columns", UNLIKE_LISTS)
        return draft


def _entries(content: Mapping[str, Any]) -> list[Any]:
    """The candidates of an object. Raises Problem."""
    entries = content.get("candidates")
    if not isinstance(entries, list):
        message = f"found {show(entries)} under 'candidates'; expected a list of texts or objects. If other keys hold "
        message += f"lists or texts, say so, as --roles query=group,answer=text; found {', '.join([*content][:20])}"
        raise Problem("text", message)
    return entries


def _text(row: Mapping[str, Any], k: int) -> bytes:
    """The text of candidate ``k``. Raises Problem."""
    if row.get("text") is None:
        message = f"candidate {k} has no 'text'; if it stands under another key, say so, as --roles answer=text"
        raise Problem("text", message)
    return as_bytes(row["text"], f"candidate {k}")


def _are_finite(values: Iterable[Any]) -> bool:
    """Whether all are numbers that an array can hold."""
    try:
        return isfinite(sum(map(abs, values)))
    except (TypeError, ValueError, OverflowError):
        return False


def _number(name: str, value: Any, k: int) -> float | None:
    """A value as a number of candidate ``k``; what is none is one that is missing, unless scores are called so."""
    if value is None or not (name in NUMBERS or isinstance(value, float | int)):
        return None
    return number_of(value, f"{name!r} of candidate {k}", keys=(name,))


def _nested_numbers(entry: Mapping[str, Any], k: int) -> dict[str, float]:
    """The numbers of candidate ``k`` that stand under "columns" and "features". Raises Problem."""
    numbers = dict[str, float]()
    for key in _NESTED:
        group = entry.get(key)
        if group is None:
            continue
        if not isinstance(group, dict):
            raise Problem("columns", f"found {show(group)} as {key!r} of candidate {k}; expected an object")
        if numbers.keys().isdisjoint(group) and entry.keys().isdisjoint(group):
            if {*map(type, group.values())} <= {float, int} and _are_finite(group.values()):
                numbers |= zip(group, map(float, group.values()), strict=True)
                continue
        what = key.removesuffix("s")
        for name, value in group.items():
            if name in numbers or isinstance(entry.get(name), float | int):
                raise Problem("columns", f"candidate {k} has two numbers called {name!r}; rename one of them")
            numbers[name] = number_of(value, f"{what} {name!r} of candidate {k}", "columns", (key, name))
    return numbers


def _part(key: str, value: Any, _: int) -> bytes | None:
    """The text under ``key``, if there is one; an answer may be a number. Raises Problem."""
    if key == "answer" and isinstance(value, int | float) and not isinstance(value, bool):
        if not abs(value) < float("inf"):
            raise Problem("infinite score", f"found {show(value)}; expected 'answer' as a string or a finite number")
        return plain(str(value)).encode()
    return None if value is None else text_of(value, f"'{key}'")


def _references(item: Mapping[str, Any]) -> tuple[bytes, ...]:
    """The texts under "references", or the one under "reference"."""
    one, many = item.get("reference"), item.get("references")
    if one is not None and many is not None:
        raise Problem("text", "both 'reference' and 'references'; expected one of them")
    if one is not None:
        return (text_of(one, "the reference"),)
    return () if many is None else texts_of(many, "the references")


def _describe(nbest: Lists) -> Pieces:
    """The object for a list that was read in another format."""
    head: dict[str, Any] = {"id": nbest.id}
    head |= {} if nbest.source is None else {"source": decoded(nbest.source)}
    head |= {"references": [decoded(text) for text in nbest.references]} if nbest.references else {}
    candidates = list[dict[str, Any]]()
    for one in nbest.candidates:
        features = {name: one.columns.get(name, 0.0) + value for name, value in one.features.items()}
        values = {**one.columns, **features}
        entry: dict[str, Any] = {"text": one.text, SCORE: one.score}
        if BASE_SCORE in values:
            entry[BASE_SCORE] = values.pop(BASE_SCORE)
        entry |= {"features": values} if values else {}
        candidates.append(entry | {part: text for part in PARTS if (text := getattr(one, part)) is not None})
    return Pieces({**head, "candidates": []}, candidates)


@dataclass(frozen=True)
class TableReader(JsonlReader):
    r"""Tables whose rows are candidates::

        query,text,score
        1,Yes .,-1.5
        1,No .,-2

    Or rows are lists of candidates beside one another (``response_1``, ``score_1``, ``response_2``, ...). CSV and TSV
    name the columns on the first line; Parquet, Arrow. A row is an object of the format ``jsonl``: rows with the same
    value of the key that tells their list, wherever they stand, are a list, and the roles of columns are found as those
    of keys are.

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
        return COLUMN_SAMPLE_LISTS

    def raw_objects(self, lines: LineReader) -> Iterator[tuple[int, dict[str, Any] | Problem]]:
        """The rows of a table, each with its line, or its number in a table that has no lines."""
        data = lines.rest()
        if data.startswith(TABLES):
            yield from enumerate(map(plain_value, table(lines.path, data).to_pylist()), start=1)
        elif data.strip():
            head = data.partition(b"\n")[0].decode("utf-8", "surrogateescape")
            yield from rows_of(data, max("\t;,", key=head.count), lines.path)


def rows_of(data: bytes, mark: str, path: str) -> Iterator[tuple[int, dict[str, Any] | Problem]]:
    """The rows below a line of names, each with its line; ``mark`` parts their fields. Raises DataError."""
    csv.field_size_limit(MAX_LINE)
    text = data.decode("utf-8", "surrogateescape")
    # A quotation mark that ends no field begins none, but would take the rows up to the next one for its text.
    bare = mark == "\t" and re.search(r'(?:^|[\t\n])"(?!(?:[^"\t]|"")*"(?:[\t\r\n]|$))', text)
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=mark, strict=True, quoting=csv.QUOTE_NONE if bare else 0)
    try:
        names = next(rows, [])
        columns = [name for name in names if name]  # that of an index has none
        if len(columns) < 2 or len({*columns}) < len(columns) or any(map(NUMERAL.fullmatch, columns)):
            header = text.partition("\n")[0][:80]
            message = f"found {header!r}; expected the names of columns, as in query,text,score"
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
    name = os.fspath(path) if isinstance(path, str | os.PathLike) else ""
    return name.lower().partition("?")[0].endswith((".parquet", ".arrow", ".feather"))


def table(path: PathLike, data: bytes | None = None) -> Any:
    """The table of Parquet or Arrow in a file, or in its ``data``, as a ``pyarrow.Table``."""
    name = os.fspath(path)
    if data is None:
        open_stream(name).close()  # which says what is wrong with a path
        data = fetch(name) if is_url(name) else None
    try:
        import pyarrow
        from pyarrow import ipc, parquet
    except ImportError:
        raise DataError(f"tables in files need pyarrow: {EXTRA}", path=name) from None

    try:
        with pyarrow.OSFile(name) if data is None else pyarrow.BufferReader(data) as source:
            start = source.read(6)
            source.seek(0)
            if start.startswith(b"PAR1"):
                frame = parquet.ParquetFile(source).read()
            else:
                frame = (ipc.open_file if start == b"ARROW1" else ipc.open_stream)(source).read_all()
        frame.validate(full=True)  # texts are UTF-8
        return frame
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(f"no table that can be read: {error}", path=name) from None
