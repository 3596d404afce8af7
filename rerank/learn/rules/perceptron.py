"""The perceptron on lists (Collins 2002)."""

from dataclasses import dataclass
from typing import Any, ClassVar

from rerank.learn.base import Learner
from rerank.learn.predictor import subtract
from rerank.learn.workspace import Scratch


@dataclass(frozen=True, kw_only=True)
class Perceptron(Learner):
    """The structured perceptron.

    >>> from rerank.learn.learned import learned
    >>> learned(Perceptron(), {"fluent": 1}, {"fluent": -1, "short": 2})
    {'short': 2.0}

    Reference: Collins 2002 (EMNLP). Memory: 16 bytes a column, 8 without the average.

    Parameters
    ----------
    base: weight of the base score at the start, compared with updates of size 1; base_rate: see Learner.
    """

    name: ClassVar[str] = "perceptron"

    @staticmethod
    def learn(state: Any, scratch: Scratch, count: int, n: int, weight: float, params: Any) -> None:
        """On a mistake w ← w + φ(y*) − φ(ŷ), that is, w − g (Collins 2002, Fig. 2)."""
        subtract(state, scratch, count, weight)
