"""The changes of learning to a state: the rows that differ, which are few where there are many columns.

Sections that are trained separately touch the columns of their own lists. Only what they have changed travels, and only
the columns that one of them has touched are combined; the others are what they were.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rerank.learn.predictor import BY_COLUMN, State
from rerank.storage.arrays import read_array


class Rows(NamedTuple):
    """The rows of an array that have changed (int64), and what is there now."""

    at: np.ndarray
    values: np.ndarray


Change = dict[str, Rows | np.ndarray]  # by field: rows, or the array as a whole


def save_change(directory: Path, start: State, state: State) -> None:
    """Write what differs in ``state`` from ``start``, bit for bit."""
    for name, array in state._asdict().items():
        before = getattr(start, name)
        if name in BY_COLUMN and array.shape == before.shape:
            at = np.flatnonzero(_differs(array, before))
            np.save(directory / f"{name}.at.npy", at, allow_pickle=False)
            array = array[at]
        np.save(directory / f"{name}.npy", array, allow_pickle=False)


def _differs(array: np.ndarray, before: np.ndarray) -> np.ndarray:
    """bool [rows]: whether any bit differs."""
    bits = np.uint8 if array.dtype == np.bool_ else np.uint64
    other = array.view(bits) != before.view(bits)
    return np.asarray(other if other.ndim == 1 else other.any(axis=1))


def load_change(kind: type[Any], directory: Path) -> Change:
    """Read what ``save_change`` wrote about a state of the class ``kind``."""
    change: Change = {}
    for name in kind._fields:
        array, at = read_array(directory / f"{name}.npy"), directory / f"{name}.at.npy"
        change[name] = Rows(read_array(at), array) if at.exists() else array
    return change


def applied(start: State, change: Change) -> State:
    """A new state: ``start`` with the change."""
    arrays = {name: np.array(array) for name, array in start._asdict().items()}
    for name, new in change.items():
        if isinstance(new, Rows):
            arrays[name][new.at] = new.values
        else:
            arrays[name] = np.array(new)
    return type(start)(**arrays)


def touched(changes: Sequence[Change], columns: int) -> np.ndarray:
    """int64, rising: the columns that one of ``changes`` is about, of D = ``columns``."""
    marks = np.zeros(columns + 1, np.bool_)
    for change in changes:
        for new in change.values():
            if isinstance(new, Rows):
                marks[new.at] = True
    return np.flatnonzero(marks[:columns])


def narrowed(state: State, chosen: np.ndarray, columns: int) -> State:
    """``state`` as if there were only the columns ``chosen`` (int64), of D = ``columns``."""
    return state._replace(
        **{
            name: np.concatenate([array[:columns][chosen], array[columns:]])
            for name, array in state._asdict().items()
            if name in BY_COLUMN and len(array)
        }
    )


def narrowed_change(change: Change, chosen: np.ndarray, columns: int) -> Change:
    """``change`` for a ``narrowed`` state; ``chosen`` has all of its columns."""
    narrow: Change = {}
    for name, new in change.items():
        if isinstance(new, Rows):
            place = np.searchsorted(chosen, new.at)
            narrow[name] = Rows(np.where(new.at >= columns, chosen.size + new.at - columns, place), new.values)
        else:
            narrow[name] = new
    return narrow


def widened(start: State, narrow: State, chosen: np.ndarray, columns: int) -> State:
    """The inverse of ``narrowed``: the columns ``chosen`` are as in ``narrow``, the others as in ``start``."""
    arrays = {}
    for name, array in narrow._asdict().items():
        before = getattr(start, name)
        if name in BY_COLUMN and len(before):
            new = np.array(before)
            new[chosen], new[columns:] = array[: chosen.size], array[chosen.size :]
            arrays[name] = new
        else:
            arrays[name] = array
    return type(start)(**arrays)
