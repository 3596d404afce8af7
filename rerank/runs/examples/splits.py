"""Which examples train and which test: drawn folds, given folds, and a part that is held out."""

import numpy as np

from rerank.base.errors import DataError


def draw_folds(label: np.ndarray, count: int, seed: int) -> np.ndarray:
    """int64 [n]: fold numbers 0..count - 1, each fold with its share of every class, and sizes that differ by at most
    one.

    Raises
    ------
    DataError: fewer examples than folds.
    """
    if label.size < count:
        raise DataError(f"{label.size} examples cannot make {count} folds; expected data.folds.count of at most that")
    order = np.random.default_rng(seed).permutation(label.size)
    order = order[np.argsort(label[order], kind="stable")]  # one class after the other, each in random order
    folds = np.empty(label.size, np.int64)
    folds[order] = np.arange(label.size) % count
    return folds


def fold_numbers(folds: np.ndarray, path: str) -> np.ndarray:
    """The different fold numbers, ascending.

    Raises
    ------
    DataError: there is only one, so that nothing is left to train on.
    """
    numbers = np.unique(folds)
    if numbers.size < 2:
        raise DataError(f"all examples are in fold {numbers[0]}; expected at least two folds", path=path)
    return numbers


def divided(label: np.ndarray, share: float | None, folds: int, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """How tuning divides examples, as indices that train and indices that judge: by ``folds``, or once by ``share``.

    With fewer examples than folds, each is a fold of its own.

    Raises
    ------
    DataError: too few examples for two parts.
    """
    if share is not None or label.size < 2:
        return [held_out(label, share or 0.5, seed)]
    drawn = draw_folds(label, min(folds, label.size), seed)
    return [(np.flatnonzero(drawn != k), np.flatnonzero(drawn == k)) for k in range(int(drawn.max()) + 1)]


def held_out(label: np.ndarray, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Indices (ascending) of a part to train on and of one to test on, with ``share`` of every class.

    Raises
    ------
    DataError: too few examples for two parts.
    """
    if label.size < 2:
        raise DataError(f"{label.size} training examples leave nothing to hold out for tuning; give more examples")
    rng = np.random.default_rng(seed)
    taken = np.zeros(label.size, np.bool_)
    for each in np.unique(label):
        members = rng.permutation(np.flatnonzero(label == each))
        taken[members[: round(share * members.size)]] = True
    if not taken.any() or taken.all():  # classes too small to be divided class by class
        order = rng.permutation(label.size)
        taken[:] = False
        taken[order[: min(max(1, round(share * label.size)), label.size - 1)]] = True
    return np.flatnonzero(~taken), np.flatnonzero(taken)
