"""The parameters of estimators: taken from learners with what they mean, and checked as scikit-learn's users expect."""

import re
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from inspect import cleandoc, get_annotations
from typing import Annotated, Any, get_type_hints

import numpy as np

from rerank.base.ranges import Range
from rerank.learn.base import Learner

Share = Annotated[float, Range(above=0, below=1)]
MATRIX: dict[str, Any] = {"accept_sparse": "csr", "dtype": [np.float64, np.float32]}  # for ``validate_data``
HEADING = "Parameters\n----------\n"
ENTRY = re.compile(r"^([\w, ]+):.*(?:\n .*)*", re.MULTILINE)


def numbers(name: str, values: Any, n: int) -> np.ndarray:
    """``values`` as float64 [n], one finite number for every row of X."""
    try:
        array = np.asarray(values, np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} does not hold numbers ({error}); expected a number for every row of X") from None
    if array.shape != (n,):
        raise ValueError(f"{name} has shape {array.shape}; expected ({n},), a number for every row of X")
    if not np.isfinite(array).all():
        row = int(np.argmin(np.isfinite(array)))
        raise ValueError(f"{name} holds {array[row]} in row {row}; expected finite numbers, no NaN or infinity")
    return array


def weights_of(y: np.ndarray, classes: np.ndarray, sample_weight: Any, class_weight: Any) -> np.ndarray:
    """float64 [n]: how much the rows count, whose classes ``y`` are among ``classes``: their weights times those of
    their classes.

    sample_weight: None for 1; class_weight: None; {class: weight}, 1 for classes that are not in it; or "balanced": all
    classes weigh the same in sum, and an average row 1.
    """
    if not np.isin(y, classes).all():
        raise ValueError(f"y holds classes {np.setdiff1d(y, classes)!r} that are not among {classes!r}")
    weights = np.ones(y.size) if sample_weight is None else numbers("sample_weight", sample_weight, y.size)
    if (weights < 0).any() or not weights.any():
        found = "a negative weight" if weights.any() else "no weight but zero"
        raise ValueError(f"sample_weight holds {found}; numbers from 0, one of them above, are expected")
    if class_weight is None:
        return weights
    label, names = np.searchsorted(classes, y), classes.tolist()
    if isinstance(class_weight, Mapping):
        if unknown := [name for name in class_weight if name not in names]:
            raise ValueError(f"class_weight names the class {unknown[0]!r}; expected classes among {classes!r}")
        try:
            factor = np.array([float(class_weight.get(name, 1.0)) for name in names])
        except (TypeError, ValueError):
            factor = np.array([np.nan])
        if not ((factor >= 0) & (factor < np.inf)).all():
            raise ValueError(f"class_weight={dict(class_weight)!r}; finite weights from 0 are expected")
    elif isinstance(class_weight, str) and class_weight == "balanced":
        total = np.bincount(label, weights, minlength=classes.size)
        mean = total.sum() / np.count_nonzero(total)
        factor = np.divide(mean, total, out=np.zeros(total.size), where=total > 0)
    else:
        raise ValueError(f"class_weight={class_weight!r}; expected a dict of class and weight, 'balanced' or None")
    return np.asarray(weights * factor[label])


def derive(cls: type, learner: type[Learner]) -> None:
    """Make ``cls``, which derives from a dataclass, one with the fields of ``learner`` too, and with their docstring.

    A default that the class body gives replaces the learner's, and fields that it declares come after them. The fields
    of all learners are left out, as examples have no base scores, and so is Winnow's form of positive weights, which
    could have no threshold above 0 with a constant of 1.
    """
    left_out = {*(common.name for common in fields(Learner)), "balanced"}
    names, kinds = [each.name for each in fields(learner) if each.name not in left_out], get_type_hints(learner)
    for field in fields(learner):
        if field.name in names and field.name not in vars(cls) and field.default is not MISSING:
            setattr(cls, field.name, field.default)
    cls.__annotations__ = {name: kinds[name] for name in names} | get_annotations(cls)
    (summary, _, own), (rule, _, its) = (cleandoc(each.__doc__ or "").partition(HEADING) for each in (cls, learner))
    entries = [entry[0] for entry in ENTRY.finditer(its) if entry[1].split(", ")[0] in names]
    parent: Any = cls.__mro__[1]
    shared = f"{', '.join(field.name for field in fields(parent))}: see {parent.__name__}."
    cls.__doc__ = "\n".join([(summary or rule).strip(), "", HEADING.rstrip(), *entries, *own.splitlines(), shared])
    dataclass(eq=False, repr=False, kw_only=True)(cls)
