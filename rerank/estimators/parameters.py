"""What a classifier takes from its learner: the parameters, their defaults and types, and what they mean."""

import re
from dataclasses import MISSING, Field, dataclass, fields
from inspect import cleandoc, get_annotations, signature
from typing import Any, get_type_hints

from rerank.learn.base import Learner

HEADING = "Parameters\n----------\n"
ENTRY = re.compile(r"^([\w, ]+):(.*(?:\n .*)*)", re.MULTILINE)


def parameters_of(learner: type[Learner]) -> list[Field[Any]]:
    """The fields of a learner without those of all learners: examples have no base scores."""
    return [field for field in fields(learner) if field.name not in {each.name for each in fields(Learner)}]


def derive(cls: type, learner: type[Learner]) -> None:
    """Make ``cls``, which derives from a dataclass, one with the fields of ``learner`` too.

    A default that the class body gives replaces the learner's, fields that it declares come after them, and what its
    docstring says of a parameter stands for what the learner's does.
    """
    own, kinds = parameters_of(learner), get_type_hints(learner, include_extras=True)
    for field in own:
        if field.name not in vars(cls) and field.default is not MISSING:
            setattr(cls, field.name, field.default)
    cls.__annotations__ = {field.name: kinds[field.name] for field in own} | get_annotations(cls)
    cls.__doc__ = described(cls, learner)
    dataclass(eq=False, repr=False, kw_only=True)(cls)
    shown = get_type_hints(cls)  # without the ranges, which the docstring tells
    vars(cls)["__init__"].__annotations__.update({name: shown[name] for name in signature(cls).parameters})


def described(cls: type, learner: type[Learner]) -> str:
    """The docstring of a classifier: its own, and what the learner's says of the parameters that it leaves out."""
    own, rule = cleandoc(cls.__doc__ or ""), cleandoc(learner.__doc__ or "")
    summary, _, given = own.partition(HEADING)
    entries, _, notes = rule.partition(HEADING)[2].partition("\n\n")
    lines = given.splitlines()
    missing = {field.name for field in parameters_of(learner)} - {
        name for names, _ in ENTRY.findall(given) for name in names.split(", ")
    }
    for names, meaning in ENTRY.findall(entries):
        if told := [name for name in names.split(", ") if name in missing]:
            lines.append(f"{', '.join(told)}:{meaning}")
    parent: Any = cls.__mro__[1]
    lines.append(f"{', '.join(field.name for field in fields(parent))}: see {parent.__name__}.")
    head = (summary or rule.partition(HEADING)[0]).strip()
    return "\n".join([f"{head}\n\n{HEADING.rstrip()}", *lines, *([f"\n{notes}"] if notes else [])])
