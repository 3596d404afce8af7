"""The parameters of a learner as kernels take them: a named tuple of numbers, made from the fields of its dataclass."""

import math
import threading
from dataclasses import fields
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

from rerank.base.ranges import Range
from rerank.learn.losses import LOSSES

Positive = Annotated[float, Range(above=0)]
NotNegative = Annotated[float, Range(0)]
Count = Annotated[int, Range(1)]
Update = Literal["always", "mistakes"]

# What every pass looks at: the loss, whether a loss suffices for an update (or only a mistake), whether candidates with
# the oracle's gain are oracles too, how many rivals of a list are learned from, and ``Learner.judges_after_update``.
COMMON = ("loss", "always", "any_ties", "top", "judges_after_update")


class SettingsClass:
    """``Learner.Settings``: a class of its own for every learner, by which kernels know which learner they work for.

    It holds what is COMMON to all, and then the learner's other parameters under their names: numbers and switches as
    they are, None as ∞, a choice as its place in the ``Literal`` of the field.
    """

    _making = threading.Lock()  # threads that meet a learner at once are to get the same class

    def __get__(self, instance: Any, owner: type) -> Any:
        with self._making:
            return _settings_class(owner)


@cache
def _settings_class(owner: Any) -> Any:
    """The class; kernels in the disk cache name it by module and qualified name."""
    names = [item.name for item in fields(owner) if item.name not in COMMON and item.name != "update"]
    made: Any = NamedTuple("Settings", [(name, Any) for name in (*COMMON, *names)])  # type: ignore[misc]
    made.__module__ = owner.__module__
    made.__qualname__ = f"{owner.__qualname__}.Settings"
    setattr(made, "learner", owner)  # noqa: B010 - mypy takes it for a tuple
    return made


_kinds = cache(get_type_hints)


def settings_of(learner: Any, any_ties: bool) -> Any:
    """The settings of a learner."""
    owner: Any = type(learner)
    made, kinds = owner.Settings, _kinds(owner)
    common = {
        "loss": LOSSES[getattr(learner, "loss", "perceptron")],
        "always": getattr(learner, "update", "mistakes") == "always",
        "any_ties": any_ties,
        "top": int(getattr(learner, "top", 1)),
        "judges_after_update": bool(learner.judges_after_update),
    }
    numbers = {name: number_of(getattr(learner, name), kinds[name]) for name in made._fields if name not in COMMON}
    return made(**common | numbers)


def number_of(value: Any, kind: Any) -> Any:
    """A parameter as a number of always the same type, whatever its value; ``kind``: its annotation."""
    if get_origin(kind) is Literal:
        return get_args(kind).index(value)
    if kind in (bool, int):
        return kind(value)
    return math.inf if value is None else float(value)
