"""The parameters of a part as kernels take them: a named tuple of numbers, made from the fields of its dataclass."""

import threading
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from rerank.base.ranges import Checked, Range, hints_of, number_of
from rerank.kernels.compile import take_methods

Positive = Annotated[float, Range(above=0)]
NotNegative = Annotated[float, Range(0)]
Count = Annotated[int, Range(1)]
Update = Literal["always", "mistakes"]


class SettingsClass:
    """``Settings`` of a part: a class of its own, by which kernels know which part they work for.

    It holds what the class of parts says that kernels take beside its parameters (``extra``), and then the part's other
    parameters under their names: numbers and switches as they are, None as ∞, a choice as its place in the ``Literal``
    of the field. A record of the same numbers would not do: two parts whose parameters have the same names would be one
    type, and the type says which update is compiled. Templates, of which one kernel takes many, are records.
    """

    _making = threading.Lock()  # threads that meet a part at once are to get the same class

    def __get__(self, instance: Any, owner: type) -> Any:
        with self._making:
            return _settings_class(owner)


class KernelPart(Checked):
    """A part that kernels work for: a frozen dataclass of parameters, whose static methods are compiled with them."""

    name: ClassVar[str] = ""  # that of the class if it says no other
    extra: ClassVar[tuple[str, ...]] = ()  # what its settings hold beside its parameters
    Settings = SettingsClass()  # no annotation: it is not a parameter

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        take_methods(cls)
        if "name" not in vars(cls):
            cls.name = cls.__name__


@cache
def _settings_class(owner: Any) -> Any:
    """The class; kernels in the disk cache name it by module and qualified name."""
    names = [item.name for item in fields(owner) if item.name not in owner.extra and item.name != "update"]
    made: Any = NamedTuple("Settings", [(name, Any) for name in (*owner.extra, *names)])  # type: ignore[misc]
    made.__module__ = owner.__module__
    made.__qualname__ = f"{owner.__qualname__}.Settings"
    setattr(made, "owner", owner)  # noqa: B010 - mypy takes it for a tuple
    return made


def settings_of(part: Any, extra: Mapping[str, Any]) -> Any:
    """The settings of a part, with the values of what kernels take beside them."""
    owner: Any = type(part)
    hints = hints_of(owner)
    numbers = {
        name: number_of(getattr(part, name), hints[name]) for name in owner.Settings._fields if name not in extra
    }
    return owner.Settings(**extra, **numbers)
