"""The perceptron on lists (Collins 2002)."""

from dataclasses import dataclass
from typing import Any, ClassVar

from rerank.kernels.by_type import body
from rerank.learn.base import DualRule, learners
from rerank.learn.skeletons.additive import Additive
from rerank.learn.steps import rate_of


@learners.add("perceptron")
@dataclass(frozen=True, kw_only=True)
class Perceptron(Additive):
    """The structured perceptron.

    Parameters
    ----------
    base: weight of the base score at the start, compared with updates of size 1; base_rate: see Learner.
    """

    name: ClassVar[str] = "perceptron"

    def dual_rule(self) -> DualRule:
        """See ``Learner.dual_rule``: w = −s."""
        return DualRule(eta=0.0, l1=0.0, l2=0.0, base=float(self.base), base_rate=float(self.base_rate))


@body(rate_of, Perceptron)
def perceptron(state: Any, weight: float, q: Any) -> float:
    """On a mistake w ← w + φ(y*) − φ(ŷ), that is, w − g (Collins 2002, Fig. 2)."""
    return weight
