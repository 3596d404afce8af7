"""How much every row counts: by its sample weight, and by its class."""

from collections.abc import Mapping
from typing import Any

import numpy as np


def weights_of(sample_weight: Any, n: int) -> np.ndarray | None:
    """float64 [n], or None where there are no weights.

    Raises
    ------
    ValueError: of another shape, not finite, negative, or all 0.
    """
    if sample_weight is None:
        return None
    weight = np.asarray(sample_weight, np.float64)
    if weight.shape != (n,):
        raise ValueError(f"sample_weight has shape {weight.shape}; ({n},) is expected, a number for every row of X")
    if not np.isfinite(weight).all() or (weight < 0).any():
        raise ValueError("sample_weight holds a negative weight, NaN or infinity; finite numbers from 0 are expected")
    if not weight.any():
        raise ValueError("all sample weights are zero; at least one weight above 0 is expected")
    return weight


def require_known(y: np.ndarray, classes: np.ndarray) -> None:
    """Refuse labels that are not among ``classes``.

    Raises
    ------
    ValueError: names them.
    """
    if not np.isin(y, classes).all():
        raise ValueError(f"y holds classes {np.setdiff1d(y, classes)!r} that are not among {classes!r}")


def with_class_weights(
    weight: np.ndarray | None, class_weight: Any, classes: np.ndarray, y: np.ndarray
) -> np.ndarray | None:
    """``weight`` (float64 [n], None for 1) times the weights of the rows' classes ``y``, which are among ``classes``.

    class_weight: None; {class: weight}, 1 for classes that are not in it; or "balanced": all classes weigh the same in
    sum, and an average row 1.

    Raises
    ------
    ValueError: says what class_weight is and what is expected.
    """
    if class_weight is None:
        return weight
    label, own = np.searchsorted(classes, y), np.ones(y.size) if weight is None else weight
    if isinstance(class_weight, Mapping):
        factor = _factors(class_weight, classes)
    elif isinstance(class_weight, str) and class_weight == "balanced":
        total = np.bincount(label, own, minlength=classes.size)
        mean = total.sum() / max(1, np.count_nonzero(total))
        factor = np.divide(mean, total, out=np.zeros(total.size), where=total > 0)
    else:
        raise ValueError(f"class_weight={class_weight!r}; expected a dict of class and weight, 'balanced' or None")
    return np.asarray(own * factor[label])


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
