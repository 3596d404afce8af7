"""EVALB's parameter files (``.prm``).

Three lines this reads::

    DELETE_LABEL TOP
    EQ_LABEL ADVP PRT
    CUTOFF_LEN 40

Lines that start with '#' and empty lines are ignored. Keys that may be repeated add up; of the others, the last counts.
"""

from pathlib import Path
from typing import Any

from rerank.base.errors import DataError
from rerank.base.registry import nearest

# key → setting of Parseval
_LABELS = {"DELETE_LABEL": "delete", "DELETE_LABEL_FOR_LENGTH": "delete_for_length", "QUOTE_LABEL": "quote_labels"}
_PAIRS = {"EQ_LABEL": "equal_labels", "EQ_WORD": "equal_words"}
_NUMBERS = {"MAX_ERROR": "max_error", "CUTOFF_LEN": "cutoff", "LABELED": "labeled", "DEBUG": ""}  # which only prints


def read_prm(path: Path | str) -> dict[str, Any]:
    """The settings of ``Parseval`` in the EVALB parameter file ``path``; what it does not set has EVALB's defaults."""
    try:
        text = Path(path).read_text("utf-8", "surrogateescape")
    except OSError as error:
        raise DataError(f"cannot read the parameter file: {error.strerror or error}", path=str(path)) from error
    settings: dict[str, Any] = dict.fromkeys((*_LABELS.values(), *_PAIRS.values()), ())
    settings |= {"max_error": 10, "cutoff": 40, "labeled": True}
    for number, line in enumerate(text.split("\n"), start=1):
        key, *values = line.split() or ["#"]
        if key.startswith("#"):
            continue
        try:
            _set(settings, key, values)
        except ValueError as error:
            raise DataError(str(error), path=str(path), line=number) from None
    return settings


def _set(settings: dict[str, Any], key: str, values: list[str]) -> None:
    """Add one line to ``settings``; a ValueError says what is wrong with it."""
    if key in _LABELS:
        _expect(key, values, 1, "one label")
        settings[_LABELS[key]] += (values[0],)
    elif key in _PAIRS:
        _expect(key, values, 2, "two values that count as equal")
        settings[_PAIRS[key]] += (tuple(values),)
    elif key in _NUMBERS:
        _expect(key, values, 1, "one number")
        most = 1 if key == "LABELED" else 1 << 31
        if not (values[0].isascii() and values[0].isdigit() and int(values[0]) <= most):
            raise ValueError(f"{key} is {values[0]!r}; expected {'0 or 1' if most == 1 else 'a number from 0'}")
        if name := _NUMBERS[key]:
            settings[name] = bool(int(values[0])) if key == "LABELED" else int(values[0])
    else:
        raise ValueError(f"unknown key {key!r}; {nearest(key, [*_LABELS, *_PAIRS, *_NUMBERS])}")


def _expect(key: str, values: list[str], count: int, what: str) -> None:
    if len(values) != count:
        raise ValueError(f"{key} has {len(values)} values; expected {what}")
