"""Labels as texts: one text per class, in an order that does not depend on the order of the examples."""

import re
from collections.abc import Iterable

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def is_number(label: str) -> bool:
    """Whether the label is a decimal number."""
    return _NUMBER.fullmatch(label) is not None


def canonical(label: str) -> str:
    """The same text for all ways to write a number ("+1", "1", "1.0"); other labels stay as they are."""
    if not is_number(label):
        return label
    number = float(label)
    return str(int(number)) if number.is_integer() and abs(number) < 2**53 else repr(number)


def canonical_order(labels: Iterable[str]) -> tuple[str, ...]:
    """The distinct canonical labels in order: by value if all are numbers, else by text."""
    distinct = set(labels)
    if all(is_number(name) for name in distinct):
        return tuple(sorted(distinct, key=lambda name: (float(name), name)))
    return tuple(sorted(distinct))
