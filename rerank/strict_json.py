"""JSON files as RFC 8259 has them: no NaN, no key twice, no nesting without end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rerank.arrays import open_plain


def read_object(path: Path) -> dict[str, Any]:
    """The object in a JSON file.

    Raises
    ------
    ValueError: damaged, or no object; begins with the file's name.
    OSError: it cannot be read.
    """
    with open_plain(path) as stream:
        text = stream.read()
    try:
        found = json.loads(text.decode("utf-8"), parse_constant=_refuse, object_pairs_hook=_object)
    except RecursionError:
        raise ValueError(f"{path.name}: nested too deep") from None
    except ValueError as error:
        raise ValueError(f"{path.name}: not valid JSON: {error}") from None
    if not isinstance(found, dict):
        raise ValueError(f"{path.name}: found {type(found).__name__}; expected an object")
    return found


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no number")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the key {next(key for key in keys if keys.count(key) > 1)!r} stands twice")
    return found
