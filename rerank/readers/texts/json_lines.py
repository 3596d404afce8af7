"""Lists as JSON objects, one per line: what the formats of this kind share."""

from __future__ import annotations

import json
import re
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from rerank.base.errors import DataError
from rerank.readers.base import BadList, NBestList, Reader, check_choice, excerpt, nameless
from rerank.readers.lines import LineReader
from rerank.readers.streams import PathLike, open_stream
from rerank.readers.texts.pieces import ListError, Pieces
from rerank.readers.texts.text_list import TextList
from rerank.storage.strict_json import as_json

_HALF = re.compile("([\ud800-\udc7f\udd00-\udfff]+)")  # surrogates that do not escape a byte

Build = Callable[
    [dict[str, Any], str, str, int], TextList | BadList
]  # takes an object, an id, path and line; raises ListError


@dataclass(frozen=True)
class JsonReader(Reader):
    """A reader of JSON lines.

    Parameters
    ----------
    duplicates: "keep" candidates that repeat the text of an earlier one, or "drop" them; both count them.
    ids: those of the "file", which must be unique, or the "ordinal" of the list, from 0, as in files without ids.
    """

    duplicates: Literal["keep", "drop"] = "keep"
    ids: Literal["file", "ordinal"] = "file"

    def __post_init__(self) -> None:
        check_choice("duplicates", self.duplicates, ("keep", "drop"))
        check_choice("ids", self.ids, ("file", "ordinal"))

    def read(self, path: PathLike) -> Iterator[NBestList | BadList]:
        """See ``Reader.read``; empty lines are ignored."""
        with open_stream(path) as stream:
            lines, ordinal = LineReader(stream), 0
            seen: dict[str, int] = {}
            named: bool | None = None
            build = self._builder()
            for number, line in lines:
                if not line.strip():
                    continue
                place, ordinal = str(ordinal), ordinal + 1
                name = nameless(number) if self.ids == "file" and named is not False else place
                try:
                    item = parse_object(line)
                    if self.ids == "file":
                        found = list_id(item, self._id_key())
                        named = found is not None if named is None else named
                        if named != (found is not None):
                            message = (
                                f"there is {'no' if named else 'a'} {self._id_key()!r} here, unlike in the file's "
                            )
                            raise ListError(
                                "id", message + "first list; the reader's option ids: ordinal looks at none"
                            )
                        name = place if found is None else found
                    if name in seen:
                        message = f"the id is also that of the list at line {seen[name]}; "
                        raise ListError("duplicate id", message + "the reader's option ids: ordinal numbers the lists")
                    seen[name] = number
                    yield build(item, name, lines.path, number)
                except ListError as fault:
                    yield BadList(name, lines.path, number, fault.reason, fault.message)

    def _empty_item(self, bad: BadList, like: NBestList | None) -> dict[str, Any]:
        """The start of an object in place of a bad list: its id, if the lists of the file have ids."""
        head = like.raw.head if isinstance(like, TextList) and isinstance(like.raw, Pieces) else None
        named = not isinstance(head, dict) or self._id_key() in head
        return {self._id_key(): bad.name} if named else {}

    @abstractmethod
    def _id_key(self) -> str:
        """The key that holds the list's id."""

    @abstractmethod
    def _builder(self) -> Build:
        """The function that turns the objects of one file into lists."""


def parse_object(line: bytes) -> dict[str, Any]:
    """The JSON object on a line; bytes that are not UTF-8 become surrogate escapes. Raises ListError."""
    try:
        item = json.loads(line.decode("utf-8", "surrogateescape"), object_pairs_hook=_unique)
    except RecursionError:
        raise ListError("json", f"the JSON value {excerpt(line)} is nested too deeply; expected an object") from None
    except ValueError as error:  # also raised for a number of thousands of digits
        raise ListError("json", f"found {excerpt(line)}; expected a JSON object on one line: {error}") from None
    if not isinstance(item, dict):
        raise ListError("json", f"found {excerpt(line)}; expected a JSON object, {{...}}")
    return item


def list_id(item: dict[str, Any], key: str) -> str | None:
    """The id of an object, a text or a whole number; None if there is none. Raises ListError."""
    value = item.get(key)
    if value is None:
        return None
    if type(value) is int:
        return shown(value)
    if isinstance(value, str) and value:
        return value
    raise ListError("id", f"found {shown(value)} under {key!r}; expected a text that is not empty, or a whole number")


def text_of(value: Any, what: str) -> bytes:
    """A JSON text as bytes, stripped. Raises ListError."""
    if not isinstance(value, str):
        raise ListError("text", f"found {shown(value)}; expected {what}, a text")
    if "\0" in value:
        raise ListError("nul", f"a NUL character in {what}; the file is damaged or not a text file")
    return encoded(value).strip()


def texts_of(value: Any, what: str) -> tuple[bytes, ...]:
    """A JSON list of texts. Raises ListError."""
    if not isinstance(value, list):
        raise ListError("text", f"found {shown(value)}; expected {what}, a list of texts")
    return tuple(text_of(one, what) for one in value)


def number_of(value: Any, what: str, reason: str = "score") -> float:
    """A JSON number. Raises ListError, with ``reason``, if it is not one."""
    if type(value) is not float and type(value) is not int:  # bool is a subclass of int
        raise ListError(reason, f"found {shown(value)}; expected {what}, a number")
    try:
        number = float(value)
    except OverflowError:
        number = float("inf")
    if number - number != 0.0:
        raise ListError("infinite score", f"found {shown(value)}; expected {what}, a finite number")
    return number


def encoded(text: str) -> bytes:
    """``text`` in UTF-8; surrogate escapes become their bytes again, and half a surrogate pair stays."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        errors = ("surrogateescape", "surrogatepass")
        return b"".join(part.encode("utf-8", errors[k % 2]) for k, part in enumerate(_HALF.split(text)))


def json_line(item: dict[str, Any], nbest: NBestList | BadList) -> bytes:
    """An object as a line; values of the user's file that JSON does not allow, such as sockeye's ``Infinity``, stay.

    Raises
    ------
    DataError: it is nested too deeply to be written.
    """
    try:
        return encoded(as_json(item, ensure_ascii=False, allow_nan=True)) + b"\n"
    except RecursionError:
        message = "the JSON value is nested too deeply to be written; leave this list out"
        raise DataError(message, path=nbest.path, line=nbest.line, list_id=nbest.id) from None


def shown(value: Any) -> str:
    """The start of a JSON value for a message."""
    if isinstance(value, dict | list):
        return "a list" if isinstance(value, list) else "an object"
    try:
        text = as_json(value, ensure_ascii=False, allow_nan=True)
    except ValueError:  # a whole number with more digits than Python prints
        return "a number of thousands of digits"
    return (text if len(text) <= 40 else f"{text[:40]}...").encode("utf-8", "replace").decode()


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object without repeated keys, which would hide values."""
    item = dict(pairs)
    if len(item) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for place, key in enumerate(keys) if key in keys[:place])
        raise ListError("json", f"the key {shown(twice)} comes twice in one object; remove one of them")
    return item
