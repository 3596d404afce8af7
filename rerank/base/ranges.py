"""What the parameters of a part may be, said where they are declared: in the annotations of its dataclass.

    C: Annotated[float, Range(above=0)] = 1.0
    top: Annotated[int, Range(1)] = 1
    update: Literal["always", "mistakes"] = "always"
    theta: Annotated[float, Range(above=0)] | None = None
    normalized: bool = False

Parts that derive from ``Checked`` refuse everything else when they are made. Every ``float`` has to be finite, every
``int`` has to fit into 32 bits, and what other types may hold is left to the part.
"""

import functools
import sys
from dataclasses import dataclass, fields
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from rerank.base.errors import RecipeError

MOST = 2**31 - 1  # of a whole number


@dataclass(frozen=True)
class Range:
    """The numbers from ``low`` to ``high``; ``above`` and ``below`` are bounds that a number may not reach."""

    low: float | None = None
    high: float | None = None
    above: float | None = None
    below: float | None = None

    def holds(self, value: float) -> bool:
        """Does the number lie within the bounds?"""
        return (
            (self.low is None or value >= self.low)
            and (self.high is None or value <= self.high)
            and (self.above is None or value > self.above)
            and (self.below is None or value < self.below)
        )

    def __str__(self) -> str:
        last = "at most" if self.low is None else "to"
        bounds = {"from": self.low, "above": self.above, last: self.high, "below": self.below}
        words = [
            f"{word} {bound:,}" if isinstance(bound, int) else f"{word} {bound:g}"
            for word, bound in bounds.items()
            if bound is not None
        ]
        return (" and " if self.low is None or self.high is None else " ").join(words)


class Checked:
    """A dataclass whose fields are checked against their annotations when it is made."""

    def __post_init__(self) -> None:
        """Check the fields; classes that compare several fields do so after this.

        Raises
        ------
        RecipeError: names the field, what was found and what was expected.
        """
        kind: type = type(self)
        hints = hints_of(kind)
        for field in fields(kind):
            value = getattr(self, field.name)
            if wanted := expected(hints[field.name], value):
                raise RecipeError(f"found {value!r}; expected {wanted}", key=field.name)


@functools.cache
def hints_of(kind: type) -> dict[str, Any]:
    """The annotations of a class and of those that it derives from.

    Raises
    ------
    RecipeError: one of them names something that is not there, or is imported for type checkers only.
    """
    try:
        return get_type_hints(kind, include_extras=True)
    except (NameError, TypeError) as error:
        raise RecipeError(f"the annotations of {kind.__module__}.{kind.__name__} cannot be read: {error}") from None


def expected(hint: Any, value: Any, within: Range | None = None) -> str:
    """What is expected by ``hint`` instead of ``value``, in words; empty if the value fits."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return expected(parts[0], value, next((each for each in parts[1:] if isinstance(each, Range)), None))
    if origin in (Union, UnionType):
        found = [expected(part, value) for part in parts]
        return " or ".join(found) if all(found) else ""
    if origin is Literal:
        return "" if value in parts else f"{'one of ' * (len(parts) > 1)}{', '.join(map(str, parts))}"
    if hint in (int, float):
        return _expected_number(hint, value, within or Range())
    words = {bool: "true or false", str: "a text", NoneType: "null"}
    return words[hint] if hint in words and not isinstance(value, hint) else ""


def _expected_number(kind: type, value: Any, within: Range) -> str:
    whole = isinstance(value, int) and not isinstance(value, bool)
    limit = MOST if kind is int else sys.float_info.max
    if (whole or (kind is float and isinstance(value, float))) and abs(value) <= limit and within.holds(value):
        return ""
    if kind is int and whole and value > MOST and within.high is None:
        within = Range(within.low, MOST, within.above)
    return f"{'a whole' if kind is int else 'a finite'} number {within}".rstrip()
