"""The values that parameters of parts and settings of recipes may have, said where they are declared: in annotations.

    C: Annotated[float, Range(above=0)] = 1.0
    top: Annotated[int, Range(1)] = 1
    update: Literal["always", "mistakes"] = "always"
    theta: Annotated[float, Range(above=0)] | None = None
    normalized: bool = False

Pydantic judges all of them, and ``requirement`` says for a message what was expected. Every ``float`` has to be finite,
and an ``int`` with a ``Range`` that has no upper end has to fit into 32 bits. Parts that derive from ``Checked`` are
checked when they are made; there, values of other types are left to the part.
"""

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from rerank.base.errors import RecipeError

if TYPE_CHECKING:
    from pydantic import TypeAdapter

MAX_INT = 2**31 - 1  # of a whole number
WORDS: dict[Any, str] = {bool: "true or false", str: "a string", NoneType: "null"}


@dataclass(frozen=True)
class Range:
    """The numbers from ``low`` to ``high``; ``above`` and ``below`` are bounds that a number may not reach."""

    low: float | None = None
    high: float | None = None
    above: float | None = None
    below: float | None = None

    def __get_pydantic_core_schema__(self, kind: type, handler: Any) -> Any:
        from pydantic_core.core_schema import no_info_before_validator_function

        bounds = {"ge": self.low, "le": self.high, "gt": self.above, "lt": self.below}
        if kind is int and self.high is None and self.below is None:
            bounds["le"] = MAX_INT
        schema = handler(kind) | {name: bound for name, bound in bounds.items() if bound is not None}
        return no_info_before_validator_function(_no_flag, schema)

    def __str__(self) -> str:
        last = "at most" if self.low is None else "to"
        bounds = {"from": self.low, "above": self.above, last: self.high, "below": self.below}
        words = [
            f"{word} {bound:,}" if isinstance(bound, int) else f"{word} {bound:g}"
            for word, bound in bounds.items()
            if bound is not None
        ]
        return (" and " if self.low is None or self.high is None else " ").join(words)


def _no_flag(value: Any) -> Any:
    """``value``, unless it is true or false, which pydantic takes for 1 and 0."""
    from pydantic_core import PydanticKnownError

    if isinstance(value, bool):
        raise PydanticKnownError("int_type")
    return value


Positive = Annotated[float, Range(above=0)]
NotNegative = Annotated[float, Range(0)]
Count = Annotated[int, Range(1)]


class Checked:
    """A dataclass whose fields are checked against their annotations when it is made.

    It is none of pydantic's own: of a plain dataclass that derives from one of those, as users write their parts, no
    field would be checked, those of this program neither.
    """

    def __post_init__(self) -> None:
        """Check the fields; classes that compare several fields do so after this."""
        for field in fields(type(self)):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if words := expectation(type(self), field.name, value):
                raise RecipeError(f"found {value!r}; expected {words}", key=field.name)


def expectation(kind: type, name: str, value: Any) -> str:
    """The values that the class ``kind`` expects for its field ``name`` instead of ``value``, in words; empty if the
    value fits."""
    from pydantic import ValidationError

    if (adapter := _adapter(kind, name)) is not None:
        try:
            adapter.validate_python(value, strict=True)
        except ValidationError as error:
            return requirement(hints_of(kind)[name], error.errors()[0])
    return ""


@functools.cache
def _adapter(kind: type, name: str) -> "TypeAdapter[Any] | None":
    """The adapter that judges the values of a field; None where the part itself does."""
    from pydantic import ConfigDict, TypeAdapter

    hint = hints_of(kind)[name]
    return TypeAdapter(hint, config=ConfigDict(allow_inf_nan=False)) if describe(hint) else None


@functools.cache
def hints_of(kind: type) -> dict[str, Any]:
    """The annotations of a class and of those that it derives from."""
    try:
        return get_type_hints(kind, include_extras=True)
    except (NameError, TypeError) as error:
        raise RecipeError(f"the annotations of {kind.__module__}.{kind.__name__} cannot be read: {error}") from None


def requirement(hint: Any, fault: Mapping[str, Any]) -> str:
    """The values that an annotation allows, in words, where pydantic found a ``fault``; empty if it cannot be said."""
    words = describe(hint)
    return f"{words}, at most {MAX_INT:,}" if words and fault.get("ctx", {}).get("le") == MAX_INT else words


def number_of(value: Any, hint: Any) -> Any:
    """A parameter as kernels take it, a number of the same type whatever its value: a choice is its place in the
    ``Literal``, None is ∞."""
    if get_origin(hint) is Literal:
        return get_args(hint).index(value)
    kind = getattr(hint, "__origin__", hint)
    if kind in (bool, int):
        return kind(value)
    return math.inf if value is None else float(value)


def describe(hint: Any, within: object = "") -> str:
    """The values that an annotation allows, in words; empty if it is none of numbers, strings, booleans and choices."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return describe(parts[0], next((part for part in parts[1:] if isinstance(part, Range)), ""))
    if origin in (Union, UnionType):
        words = [describe(part) for part in parts]
        return " or ".join(words) if all(words) else ""
    if origin is Literal:
        return f"{'one of ' * (len(parts) > 1)}{', '.join(map(str, parts))}"
    if origin is Mapping and get_origin(parts[0]) is Literal:
        return f"a mapping of {describe(parts[0]).removeprefix('one of ')} to {describe(parts[1])}"
    if hint in (int, float):
        return f"{'a whole' if hint is int else 'a finite'} number {within}".rstrip()
    return WORDS.get(hint, "") if isinstance(hint, type) else ""
