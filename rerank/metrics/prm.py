"""EVALB's parameter files (``.prm``).

Three lines this reads::

    DELETE_LABEL TOP
    EQ_LABEL ADVP PRT
    CUTOFF_LEN 40

Lines that start with '#' and empty lines are ignored. Keys that may be repeated add up; of the others, the last counts.
"""

import difflib
from dataclasses import dataclass
from pathlib import Path

from rerank.base.errors import DataError

Pair = tuple[str, str]

# key → field of Prm
_LABELS = {"DELETE_LABEL": "delete", "DELETE_LABEL_FOR_LENGTH": "delete_for_length", "QUOTE_LABEL": "quote_labels"}
_PAIRS = {"EQ_LABEL": "equal_labels", "EQ_WORD": "equal_words"}
_NUMBERS = {"DEBUG": "debug", "MAX_ERROR": "max_error", "CUTOFF_LEN": "cutoff", "LABELED": "labeled"}


@dataclass(frozen=True)
class Prm:
    """The settings of a parameter file; numbers that it does not set have EVALB's defaults.

    ``debug`` controls what EVALB prints and changes no result.
    """

    delete: tuple[str, ...] = ()
    delete_for_length: tuple[str, ...] = ()
    quote_labels: tuple[str, ...] = ()
    equal_labels: tuple[Pair, ...] = ()
    equal_words: tuple[Pair, ...] = ()
    labeled: bool = True
    cutoff: int = 40
    max_error: int = 10
    debug: int = 0


def read_prm(path: Path | str) -> Prm:
    """The settings in the EVALB parameter file ``path``.

    Raises
    ------
    DataError: no such file, an unknown key, or a value that its key does not accept; says the line.
    """
    try:
        text = Path(path).read_text("utf-8", "surrogateescape")
    except OSError as error:
        raise DataError(f"cannot read the parameter file: {error.strerror or error}", path=str(path)) from error
    found: dict[str, list[str] | list[Pair] | int] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        key, *values = line.split() or ["#"]
        if key.startswith("#"):
            continue
        try:
            _set(found, key, values)
        except ValueError as error:
            raise DataError(str(error), path=str(path), line=number) from None
    fields = {name: tuple(value) if isinstance(value, list) else value for name, value in found.items()}
    fields["labeled"] = bool(fields.get("labeled", 1))
    return Prm(**fields)  # type: ignore[arg-type]


def _set(found: dict[str, list[str] | list[Pair] | int], key: str, values: list[str]) -> None:
    """Add one line to ``found``; a ValueError says what is wrong with it."""
    if key in _LABELS:
        _expect(key, values, 1, "one label")
        found.setdefault(_LABELS[key], []).append(values[0])  # type: ignore[union-attr,arg-type]
    elif key in _PAIRS:
        _expect(key, values, 2, "two values that count as equal")
        found.setdefault(_PAIRS[key], []).append((values[0], values[1]))  # type: ignore[union-attr,arg-type]
    elif key in _NUMBERS:
        _expect(key, values, 1, "one number")
        most = 1 if key == "LABELED" else 1 << 31
        if not (values[0].isascii() and values[0].isdigit() and int(values[0]) <= most):
            raise ValueError(f"{key} is {values[0]!r}; expected {'0 or 1' if most == 1 else 'a number from 0'}")
        found[_NUMBERS[key]] = int(values[0])
    else:
        known = [*_LABELS, *_PAIRS, *_NUMBERS]
        near = difflib.get_close_matches(key, known, n=2)
        hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(known)}"
        raise ValueError(f"unknown key {key!r}; {hint}")


def _expect(key: str, values: list[str], count: int, what: str) -> None:
    if len(values) != count:
        raise ValueError(f"{key} has {len(values)} values; expected {what}")
