"""Lists as JSON objects, one per line or in one array: what the formats of this kind share, and what objects hold on
the samples of a language model besides numbers: scores of their steps, how they ended, whose they are.
"""

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, time, timedelta
from itertools import chain
from sys import float_info
from typing import Any, Literal, cast
from uuid import UUID

import msgspec
import numpy as np

from rerank.base.encoding import decoded, encoded
from rerank.base.errors import DataError
from rerank.data.corpus import FLOAT32_MAX
from rerank.readers.lines import LineReader, Record
from rerank.readers.lists import Lists, plain_texts
from rerank.readers.problems import NUL, Problem
from rerank.readers.reader import excerpt, line_id
from rerank.readers.texts.text_list import Pieces, TextReader
from rerank.storage.documents import as_json
from rerank.storage.streams import Writable

FINISH, FINISH_LENGTH = "finish_reason", "finish_length"  # how a sample ended; the column: whether at its limit
LIMITS = ("length", "max_tokens", "max_output_tokens", "MAX_TOKENS", "incomplete")  # as servers call it
STEPS: dict[str, Callable[[Sequence[float]], float]] = {
    "min": min,
    "mean": lambda values: math.fsum(values) / len(values),
    "last": lambda values: values[-1],
    # cut to what a feature can hold, as that of numbers that are no probabilities may be large
    "prod": lambda values: 0.0 if 0.0 in values else max(-FLOAT32_MAX, min(math.prod(values), FLOAT32_MAX)),
}
JSON_TYPES = {str, float, int, type(None)}  # types of values that JSON has too
MAPPINGS = dict, Mapping  # ``isinstance`` knows a dict at once, and asks the abstract class about others
_DECODER = msgspec.json.Decoder()
_BLANK = re.compile(r"\s*")
ESCAPED_COLON = b"\\u003"  # the start of a colon that is none on the line


@dataclass(frozen=True)
class JsonReader(TextReader):
    """A reader of JSON lines, one object per list, or of an array of these; empty lines are ignored.

    Parameters
    ----------
    duplicates: "keep" candidates that repeat an earlier one of their list, or "drop" them; both count them.
    ids: the ids of the "file", which must be unique, or the "ordinal" of the list, from 0, as in files without ids.
    """

    ids: Literal["file", "ordinal"] = "file"

    @property
    def id_key(self) -> str:
        """The key that holds the list's id: the option ``id`` of formats that have it."""
        return str(getattr(self, "id", "id"))

    @property
    def nothing(self) -> dict[str, Any]:
        """The contents of an object without candidates besides its id."""
        return {"candidates": []}

    def can_split(self, traits: Mapping[str, Any]) -> bool:
        """An array can be cut nowhere."""
        return {"named", "columns"} <= traits.keys() and traits["by_line"]

    def records(self, lines: LineReader) -> Iterator[Record]:
        objects = iter(self.objects(lines))
        head, sound = list[tuple[int, Any]](), list[Any]()
        if "named" not in lines.traits:
            while len(sound) < self.look and (entry := next(objects, None)) is not None:
                head.append(entry)
                sound += [] if isinstance(entry[1], Problem) else [entry[1]]
            having = 2 * sum(item.get(self.id_key) is not None for item in sound) >= len(sound) > 0
            lines.traits["named"] = self.ids == "file" and having
        has_ids, key, of_file, name = lines.traits["named"], self.id_key, self.ids == "file", cast(str | None, None)
        for number, item in chain(head, objects):
            try:
                if isinstance(item, Problem):
                    raise item
                name = list_id(item, key) if of_file else None
                if has_ids != (name is not None):
                    message = f"there is {'no' if has_ids else 'a'} {key!r} here, unlike in most lists"
                    raise Problem("id", f"{message}; the reader's option ids: ordinal ignores ids")
                yield Record(name, number, item)
            except Problem as problem:
                yield Record(line_id(number) if has_ids else None, number, problem)

    def objects(self, lines: LineReader) -> Iterator[tuple[int, dict[str, Any] | Problem]]:
        """The objects of a file, or what is wrong with them, each with the line where it begins."""
        if lines.objects is not None:
            yield from enumerate(lines.objects, start=1)
            return
        by_line = lines.traits.setdefault("by_line", lines.one_per_line if self.general else lines.first_byte() != b"[")
        for number, text in lines if by_line else items_of(lines):
            if start := text.strip()[:1]:
                is_array = self.general and start == b"["  # an array is the candidates of a list
                line = b'{"candidates":' + text + b"}" if is_array else text
                try:
                    item = Object(parse_object(line))
                    item.line = line
                    yield number, item
                except Problem as problem:
                    yield number, problem

    def write_bad(self, out: Writable, bad: Problem, like: Lists | None) -> None:
        """The object has an id if those of the file have ids."""
        head = like.raw.head if like is not None and isinstance(like.raw, Pieces) else None
        has_id = not isinstance(head, dict) or self.id_key in head
        out.write(json_line(({self.id_key: bad.name} if has_id else {}) | self.nothing, bad))


class Object(dict[str, Any]):
    """A JSON object and the line that it is on."""

    __slots__ = ("line",)
    line: bytes


class LinePieces(Pieces):
    """The pieces of an object with candidates, whose line is read again where somebody asks for them."""

    def __init__(self, line: bytes) -> None:
        self.line = line

    def __getattr__(self, name: str) -> Any:
        if name not in ("head", "candidates"):
            raise AttributeError(name)
        super().__init__(head := parse_object(self.line), head["candidates"])
        return vars(self)[name]


def parse_object(line: bytes) -> dict[str, Any]:
    """The JSON object on a line; bytes that are not UTF-8 become surrogate escapes. Raises Problem."""
    if plain := plain_object(line):
        return plain
    try:
        item = json.loads(line.decode("utf-8", "surrogateescape"), object_pairs_hook=_unique_keys)
    except RecursionError:
        raise Problem("json", f"the JSON value {excerpt(line)} is nested too deeply; expected an object") from None
    except ValueError as error:  # also raised for a number of thousands of digits
        message = f"found {excerpt(line)}; expected a JSON object on one line: {error}"
        raise Problem("json", message) from None
    if not isinstance(item, dict):
        advice = " (jq -c '.[]' takes a list apart)" if isinstance(item, list) else ""
        raise Problem("json", f"found {excerpt(line)}; expected a JSON object, {{...}}{advice}")
    return item


def plain_object(line: bytes) -> dict[str, Any] | None:
    """The JSON object on a line, read fast; None where it may be none, or repeat a key."""
    try:
        item = _DECODER.decode(line)
    except (ValueError, RecursionError):
        return None
    if type(item) is not dict:
        return None
    keys, colons = len(item), line.count(b":")
    for rows in item.values():
        if type(rows) is list and {*map(type, rows)} == {dict}:
            keys += sum(map(len, rows))
            if keys != colons:
                keys += sum([len(value) for row in rows for value in row.values() if type(value) is dict])
    if keys == colons:  # all of them are behind keys
        return item
    # A repeated key would hide a value: the line has then more colons than the object as it would be written.
    return item if msgspec.json.encode(item).count(b":") == colons and ESCAPED_COLON not in line else None


def items_of(lines: LineReader) -> Iterator[tuple[int, bytes]]:
    """The lines and texts of what a JSON array holds, or of objects that are spread over lines: all that follows.
    Raises DataError where it is damaged: what follows cannot be told apart."""
    text, decoder = lines.rest().decode("utf-8", "surrogateescape"), json.JSONDecoder()

    def fault(at: int, what: str) -> DataError:
        start = excerpt(encoded(text[at : at + 41])) if at < len(text) else "the end of the file"
        return DataError(f"found {start}; expected {what}", path=lines.path, line=1 + text.count("\n", 0, at))

    def behind(at: int) -> int:
        """The place of what is no white space."""
        match = _BLANK.match(text, at)
        return match.end() if match else at

    at, line, mark = behind(0), 1, 0
    array = text[at : at + 1] == "["
    at = behind(at + array)
    more = not array or text[at : at + 1] != "]"
    at += not more
    while more:
        line, mark = line + text.count("\n", mark, at), at
        try:
            end = decoder.raw_decode(text, at)[1]
        except json.JSONDecodeError as error:
            raise fault(error.pos, f"a JSON array of objects: {error.msg}") from None
        except (ValueError, RecursionError):
            raise fault(at, "objects without thousands of digits or levels") from None
        yield line, encoded(text[at:end])
        sign = text[behind(end) : behind(end) + 1]
        if array and sign not in (",", "]"):
            raise fault(behind(end), "a comma and the next object, or the end of the array")
        at, more = behind(behind(end) + array), sign == "," if array else sign != ""
    if text[behind(at) :]:
        raise fault(behind(at), "nothing after the array, or objects on lines of their own")


def list_id(item: dict[str, Any], key: str) -> str | None:
    """The id of an object, a text or a whole number; None if there is none. Raises Problem."""
    value = item.get(key)
    if value is None:
        return None
    if isinstance(value, str) and value:
        return value
    if type(value) is int:
        return show(value)
    raise Problem("id", f"found {show(value)} under {key!r}; expected a text that is not empty, or a whole number")


def text_of(value: Any, what: str) -> bytes:
    """A JSON text as bytes, stripped. Raises Problem."""
    return as_bytes(value, what).strip()


def as_bytes(value: Any, what: str) -> bytes:
    """A JSON text as bytes, as it stands. Raises Problem."""
    if not isinstance(value, str):
        raise Problem("text", f"found {show(value)}; expected {what} as a string")
    if "\0" in value:
        raise Problem("nul", f"in {what}: {NUL}")
    return encoded(value)


def texts_of(value: Any, what: str) -> tuple[bytes, ...]:
    """A JSON list of texts. Raises Problem."""
    if not isinstance(value, list):
        raise Problem("text", f"found {show(value)}; expected {what} as a list of strings")
    if (plain := plain_texts(value)) is not None:
        return tuple(map(bytes.strip, plain))
    return tuple(text_of(one, what) for one in value)


def number_of(value: Any, what: str, reason: str = "score", keys: tuple[str, ...] = ()) -> float:
    """A JSON number; true and false are 1 and 0. Raises Problem, with ``reason`` and ``keys``, if it is not one."""
    numeric = isinstance(value, int | float)
    if numeric and abs(value) <= float_info.max:
        return float(value)
    finite = "a finite number" if numeric else "a number"
    problem = Problem("infinite score" if numeric else reason, f"found {show(value)}; expected {what} as {finite}")
    problem.keys = keys
    raise problem


def json_line(item: dict[str, Any], nbest: Lists | Problem) -> bytes:
    """An object as a line; values of the user's file that JSON does not allow, such as sockeye's ``Infinity``, stay."""
    try:
        return encoded(as_json(item, ensure_ascii=False, allow_nan=True)) + b"\n"
    except RecursionError:
        message = "the JSON value is nested too deeply to be written; leave this list out"
        raise DataError(message, path=nbest.path, line=nbest.line, list_id=nbest.id) from None


def plain_value(value: Any) -> Any:
    """A value as JSON has it; numbers, lists and mappings may be those of other libraries, dates become texts."""
    if type(value) is dict and JSON_TYPES.issuperset(map(type, value.values())) and set(map(type, value)) <= {str}:
        return value.copy()
    if isinstance(value, MAPPINGS):
        return {str(key): plain_value(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return list(map(plain_value, value))
    if isinstance(value, np.ndarray | np.generic):
        return plain_value(value.tolist())
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, bytes | date | time | timedelta | UUID):
        return decoded(value) if isinstance(value, bytes) else str(value)
    if hasattr(value, "__float__"):
        return float(value)
    raise TypeError(f"found {type(value).__name__}")


def show(value: Any) -> str:
    """The start of a JSON value for a message."""
    if isinstance(value, dict | list):
        return "an empty list" if value == [] else "a list" if isinstance(value, list) else "an object"
    try:
        text = as_json(value, ensure_ascii=False, allow_nan=True)
    except ValueError:  # a whole number with more digits than Python prints
        return "a number of thousands of digits"
    return (text if len(text) <= 40 else f"{text[:40]}...").encode("utf-8", "replace").decode()


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object without repeated keys, which would hide values."""
    item = dict(pairs)
    if len(item) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for place, key in enumerate(keys) if key in keys[:place])
        raise Problem("json", f"the key {show(twice)} appears twice in one object; remove one of them")
    return item


def is_conversation(value: Any) -> bool:
    """Whether it is a list of messages."""
    several = isinstance(value, list) and bool(value)
    return several and all(isinstance(one, dict) and one.keys() & {"role", "content", "parts"} for one in value)


def derive(entry: Mapping[str, Any], steps: Iterable[str], k: int = 0) -> dict[str, float]:
    """The numbers that follow from how candidate ``k`` ended, and from scores of its steps under the keys ``steps``.
    Raises Problem."""
    numbers = dict[str, float]()
    if FINISH in entry:  # a text or, as SGLang has it, an object with a type
        reason = entry[FINISH]
        numbers[FINISH_LENGTH] = float((reason.get("type") if isinstance(reason, dict) else reason) in LIMITS)
    for key in steps:
        if key in entry:
            known = [one for one in entry[key] if one is not None] if isinstance(entry[key], list) else []
            if not known:  # no token but the first, perhaps, which is given
                message = f"found {show(entry[key])} as {key!r} of candidate {k}; expected the scores of its steps"
                raise Problem("columns", f"{message}, numbers")
            values = [number_of(value, f"a score under {key!r} of candidate {k}", "columns") for value in known]
            numbers |= {f"{key}:{name}": of_steps(values) for name, of_steps in STEPS.items()}
    return numbers


def has_steps(values: Iterable[Any]) -> bool:
    """Whether any of the values are scores of steps: a list of numbers which, unlike ids of tokens, are not all
    whole."""
    return any(float in set(map(type, value)) <= {float, int, type(None)} for value in values if type(value) is list)
