"""Early stopping of a classifier: rows held out, their accuracy after every pass, and the state of the best pass."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.metrics import accuracy_score
from sklearn.model_selection import train_test_split

from rerank.learn.base import State
from rerank.learn.log import UpdateLog
from rerank.learn.trainer import copy_state


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
    state: State = None
    marks: tuple[int, int] = (0, 0)

    def look(self, predicted: np.ndarray, state: State, log: UpdateLog | None) -> None:
        """Judge a pass by what its predictor says of the rows."""
        score = float(accuracy_score(self.y, predicted, sample_weight=self.weight))
        if not self.scores or score > max(self.scores):
            self.state, self.marks = copy_state(state), log.marks() if log is not None else self.marks
        self.scores.append(score)

    @property
    def stopped(self) -> bool:
        """Have ``patience`` passes gone by without a better score?"""
        return len(self.scores) - 1 - int(np.argmax(self.scores)) >= self.patience


def hold_out(
    X: Any, y: np.ndarray, weight: np.ndarray | None, *, fraction: float, seed: int, patience: int
) -> tuple[Any, np.ndarray, np.ndarray | None, HeldOut]:
    """The rows to train on (X, y, weight), and those held out: ``fraction`` of every class, drawn by ``seed``.

    Raises
    ------
    ValueError: there are too few rows of a class for that.
    """
    try:
        kept, held = train_test_split(np.arange(y.size), test_size=fraction, stratify=y, random_state=seed % 2**32)
    except ValueError as error:
        raise ValueError(
            f"early_stopping holds out validation_fraction={fraction:g} of {y.size} rows, too few: {error}"
        ) from None
    own, others = (None, None) if weight is None else (weight[kept], weight[held])
    return X[kept], y[kept], own, HeldOut(X[held], y[held], others, patience)
