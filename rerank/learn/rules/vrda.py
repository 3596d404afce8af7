"""Voted regularised dual averaging (Xu et al. 2013, Alg. 1; Gao et al. 2013, Fig. 1)."""

from dataclasses import dataclass
from typing import ClassVar

from rerank.learn.rules.rda import RDA
from rerank.learn.settings import Update


@dataclass(frozen=True, kw_only=True)
class VotedRDA(RDA):
    """Dual averaging that updates on mistakes only, so that few predictors vote; see RDA for the parameters.

    >>> from rerank.learn.learned import learned
    >>> learned(VotedRDA(l1=0.1), {"fluent": 1}, {"fluent": -1, "short": 2})
    {'short': 1.2728}

    Reference: Xu et al. 2013 (arXiv 1310.5007), Alg. 1. Memory: 16 bytes a column, 8 without the average, and 32 more
    in an epoch that keeps it.
    """

    name: ClassVar[str] = "vrda"

    update: Update = "mistakes"
