"""The parameters of estimators: taken from learners with what they mean, and checked as scikit-learn's users expect."""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import MISSING, Field, dataclass, fields
from inspect import cleandoc, get_annotations, signature
from typing import Annotated, Any, get_type_hints

import numpy as np
from sklearn.utils import check_random_state

from rerank.base.errors import RerankError
from rerank.base.ranges import Range, expected
from rerank.learn.base import Learner

Share = Annotated[float, Range(above=0, below=1)]
MATRIX: dict[str, Any] = {"accept_sparse": "csr", "dtype": [np.float64, np.float32]}  # for ``validate_data``


@contextmanager
def as_value_errors(name: str) -> Iterator[None]:
    """The package's errors about parameters and data, as the errors that scikit-learn's users expect."""
    try:
        yield
    except RerankError as error:
        raise ValueError(f"{name}: {error}") from error


def plain(value: Any) -> Any:
    """A parameter without numpy's types."""
    return value.item() if isinstance(value, np.generic) else value


def check_parameters(estimator: Any, names: Iterable[str]) -> None:
    """Check the parameters ``names`` of an estimator against their annotations."""
    cls: type = type(estimator)
    for name in names:
        value = getattr(estimator, name)
        if wanted := expected(cls, name, plain(value)):
            raise ValueError(f"{name}={value!r}; expected {wanted}")


def seed_of(random_state: Any) -> int:
    """An int as it is; else a number drawn from the generator, the global one for None."""
    if isinstance(random_state, (int, np.integer)) and random_state >= 0:
        return int(random_state)
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def numbers(name: str, values: Any, n: int) -> np.ndarray:
    """``values`` as float64 [n], one finite number for every row of X."""
    try:
        array = np.asarray(values, np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} does not hold numbers ({error}); expected a number for every row of X") from None
    if array.shape != (n,):
        raise ValueError(f"{name} has shape {array.shape}; expected ({n},), a number for every row of X")
    if not np.isfinite(array).all():
        row = int(np.flatnonzero(~np.isfinite(array))[0])
        raise ValueError(f"{name} holds {array[row]} in row {row}; expected finite numbers, no NaN or infinity")
    return array


HEADING = "Parameters\n----------\n"
ENTRY = re.compile(r"^([\w, ]+):.*(?:\n .*)*", re.MULTILINE)


def parameters_of(learner: type[Learner]) -> list[Field[Any]]:
    """The fields of a learner without those of all learners, as examples have no base scores, and without Winnow's form
    of positive weights, which could have no threshold above 0 with a constant of 1."""
    left_out = {*(common.name for common in fields(Learner)), "balanced"}
    return [field for field in fields(learner) if field.name not in left_out]


def derive(cls: type, learner: type[Learner]) -> None:
    """Make ``cls``, which derives from a dataclass, one with the fields of ``learner`` too.

    A default that the class body gives replaces the learner's, and fields that it declares come after them.
    """
    parameters, kinds = parameters_of(learner), get_type_hints(learner, include_extras=True)
    for field in parameters:
        if field.name not in vars(cls) and field.default is not MISSING:
            setattr(cls, field.name, field.default)
    cls.__annotations__ = {field.name: kinds[field.name] for field in parameters} | get_annotations(cls)
    cls.__doc__ = described(cls, learner)
    dataclass(eq=False, repr=False, kw_only=True)(cls)
    shown = get_type_hints(cls)  # without the ranges, which the docstring tells
    vars(cls)["__init__"].__annotations__.update({name: shown[name] for name in signature(cls).parameters})


def described(cls: type, learner: type[Learner]) -> str:
    """The docstring of a classifier: its own, and what the learner's says of the parameters."""
    (summary, _, own), (rule, _, its) = (cleandoc(each.__doc__ or "").partition(HEADING) for each in (cls, learner))
    names = {field.name for field in parameters_of(learner)}
    entries = [entry[0] for entry in ENTRY.finditer(its) if entry[1].split(", ")[0] in names]
    parent: Any = cls.__mro__[1]
    entries += [*own.splitlines(), f"{', '.join(field.name for field in fields(parent))}: see {parent.__name__}."]
    return "\n".join([(summary or rule).strip(), "", HEADING.rstrip(), *entries])
