"""How much memory a learner needs for so many columns, before any of it is taken."""

from rerank.learn.base import Learner

PREDICTORS = 4 * 8  # bytes per column: last and average, of the epoch under way and of the best one
SCRATCH = 8  # bytes per column: its place in the sum of an update
FEW = 1024  # columns of the states that are measured


def bytes_needed(learner: Learner, columns: int) -> int:
    """Bytes for training on so many columns: the learner's state, that of the best epoch, predictors, scratch space."""
    small, large = (sum(int(array.nbytes) for array in learner.init(width)) for width in (FEW, 2 * FEW))
    return columns * (2 * (large - small) // FEW + PREDICTORS + SCRATCH)
