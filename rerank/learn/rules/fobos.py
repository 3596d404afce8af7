"""Forward-backward splitting with L1 (Duchi & Singer 2009, section 5.1)."""

from dataclasses import dataclass
from typing import Any, ClassVar

from rerank.kernels.by_type import body
from rerank.learn.base import learners
from rerank.learn.losses import Loss
from rerank.learn.rules.tg import LARGEST
from rerank.learn.settings import Update
from rerank.learn.skeletons.truncated import Truncating, step_size, truncation


@learners.add("fobos")
@dataclass(frozen=True, kw_only=True)
class Fobos(Truncating):
    """A gradient step, then the truncation of all weights by α_k·λ₁.

    Parameters
    ----------
    loss, eta, l1, update, base, base_rate: see TruncatedGradient.
    """

    name: ClassVar[str] = "fobos"

    loss: Loss = "hinge"
    update: Update = "always"


@body(truncation, Fobos)
def fobos(k: int, q: Any) -> float:
    """w ← sign(w − α_k·g)·max(|w − α_k·g| − α_k·λ₁, 0)."""
    return float(min(step_size(k, q) * q.l1, LARGEST))
