"""Reading and writing JSON as RFC 8259 defines it: no NaN, no repeated key, no endless nesting."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rerank.base.errors import RunError
from rerank.storage.arrays import check_plain


def as_json(value: Any, *, allow_nan: bool = False, **layout: Any) -> str:
    """``value`` as JSON; parameters as in ``json.dumps``. ``allow_nan`` is for values of the user's own files."""
    try:
        return json.dumps(value, allow_nan=allow_nan, **layout)
    except ValueError:
        for place, number in () if allow_nan else _infinite(value, ""):
            raise RunError(f"{place or 'the result'} is {number}, which no JSON file can hold") from None
        raise


def _infinite(value: Any, place: str) -> Iterator[tuple[str, float]]:
    """The numbers in ``value`` that are not finite, each with its dotted path."""
    if isinstance(value, float) and not math.isfinite(value):
        yield place, value
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list | tuple) else ()
    for key, part in inner:
        yield from _infinite(part, f"{place}.{key}" if place else str(key))


def read_object(path: Path) -> dict[str, Any]:
    """The object in a JSON file."""
    check_plain(path)
    try:
        return parse_object(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{path.name}: {error}") from None


def parse_object(text: bytes) -> dict[str, Any]:
    """The object that ``text`` holds."""
    try:
        value = json.loads(text.decode("utf-8"), parse_constant=_refuse, object_pairs_hook=_object)
    except RecursionError:
        raise ValueError("nested too deep") from None
    except ValueError as error:
        raise ValueError(f"not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise ValueError(f"found {type(value).__name__}; expected an object")
    return value


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not a number")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the key {next(key for key in keys if keys.count(key) > 1)!r} appears twice")
    return value
