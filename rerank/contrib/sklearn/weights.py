"""How much the rows that a classifier is given count: sample weights times those of their classes."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from rerank.contrib.sklearn.parameters import numbers


def weights_of(y: np.ndarray, classes: np.ndarray, sample_weight: Any, class_weight: Any) -> np.ndarray:
    """float64 [n]: the weights of the rows, whose classes ``y`` are among ``classes``.

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
    label = np.searchsorted(classes, y)
    if isinstance(class_weight, Mapping):
        factor = _factors(class_weight, classes)
    elif isinstance(class_weight, str) and class_weight == "balanced":
        total = np.bincount(label, weights, minlength=classes.size)
        mean = total.sum() / max(1, np.count_nonzero(total))
        factor = np.divide(mean, total, out=np.zeros(total.size), where=total > 0)
    else:
        raise ValueError(f"class_weight={class_weight!r}; expected a dict of class and weight, 'balanced' or None")
    return np.asarray(weights * factor[label])


def _factors(class_weight: Mapping[Any, Any], classes: np.ndarray) -> np.ndarray:
    """float64 [k]: the weights by class."""
    names = classes.tolist()
    if unknown := [name for name in class_weight if name not in names]:
        raise ValueError(f"class_weight names the class {unknown[0]!r}; expected classes among {classes!r}")
    try:
        factor = np.array([float(class_weight.get(name, 1.0)) for name in names])
    except (TypeError, ValueError):
        factor = np.array([np.nan])
    if not np.isfinite(factor).all() or (factor < 0).any():
        raise ValueError(f"class_weight={dict(class_weight)!r}; finite weights from 0 are expected")
    return factor
