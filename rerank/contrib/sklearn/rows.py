"""The rows that a classifier is given: how much they count, and those held out for early stopping."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.metrics import accuracy_score
from sklearn.model_selection import train_test_split

from rerank.learn.base import State
from rerank.learn.log import UpdateLog
from rerank.learn.predictor import copy_state


def weights_of(sample_weight: Any, n: int) -> np.ndarray | None:
    """float64 [n], or None where there are no weights."""
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
    """Refuse labels that are not among ``classes``."""
    if not np.isin(y, classes).all():
        raise ValueError(f"y holds classes {np.setdiff1d(y, classes)!r} that are not among {classes!r}")


def with_class_weights(
    weight: np.ndarray | None, class_weight: Any, classes: np.ndarray, y: np.ndarray
) -> np.ndarray | None:
    """``weight`` (float64 [n], None for 1) times the weights of the rows' classes ``y``, which are among ``classes``.

    class_weight: None; {class: weight}, 1 for classes that are not in it; or "balanced": all classes weigh the same in
    sum, and an average row 1.
    """
    if class_weight is None:
        return weight
    label, weights = np.searchsorted(classes, y), np.ones(y.size) if weight is None else weight
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


@dataclass
class HeldOut:
    """Rows that are not trained on, and the best pass by them.

    X, y, weight: as in ``fit``; patience: passes without a better score before training stops; scores: after every
    pass; state, marks: the learner's state after the best pass, and the end of the log then.
    """

    X: Any
    y: np.ndarray
    weight: np.ndarray | None
    patience: int
    scores: list[float] = field(default_factory=list)
    state: Any = None
    marks: tuple[int, int] = (0, 0)

    def look(self, predicted: np.ndarray, state: State, log: UpdateLog | None) -> None:
        """Judge a pass by what its predictor says of the rows."""
        score = float(accuracy_score(self.y, predicted, sample_weight=self.weight))
        if not self.scores or score > max(self.scores):
            self.state, self.marks = copy_state(state), log.marks() if log is not None else self.marks
        self.scores.append(score)

    @property
    def stopped(self) -> bool:
        """Whether ``patience`` passes have gone by without a better score."""
        return len(self.scores) - 1 - int(np.argmax(self.scores)) >= self.patience


def hold_out(
    X: Any, y: np.ndarray, weight: np.ndarray | None, *, fraction: float, seed: int, patience: int
) -> tuple[Any, np.ndarray, np.ndarray | None, HeldOut]:
    """The rows to train on (X, y, weight), and those held out: ``fraction`` of every class, drawn by ``seed``."""
    try:
        kept, held = train_test_split(np.arange(y.size), test_size=fraction, stratify=y, random_state=seed % 2**32)
    except ValueError as error:
        raise ValueError(
            f"early_stopping holds out validation_fraction={fraction:g} of {y.size} rows, too few: {error}"
        ) from None
    kept_weight, others = (None, None) if weight is None else (weight[kept], weight[held])
    return X[kept], y[kept], kept_weight, HeldOut(X[held], y[held], others, patience)
