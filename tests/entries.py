"""How a learner is tested: the entry that every registered learner needs, found in the modules of ``twins``."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import twins
from reference import Trace


def never(_: Any) -> bool:
    return False


class Entry(NamedTuple):
    """How a learner is tested.

    variants: parameters to test it with; twin: its dense twin (corpus, oracle, orders, any_ties, **parameters) → Trace;
    binary: the same rule on z = y·x, from (learner, X, y, epochs) to (w, mistakes); positive: parameters that must not
    be 0; exact: are the weights of this learner whole multiples of a power of two on dyadic corpora, but for one factor
    d? duals: does it keep a variable a candidate?
    """

    variants: list[dict[str, Any]]
    twin: Callable[..., Trace]
    binary: Callable[[Any, np.ndarray, np.ndarray, int], tuple[np.ndarray, int]]
    positive: frozenset[str] = frozenset()
    exact: Callable[[Any], bool] = never
    duals: bool = False


def find_entries() -> dict[str, Entry]:
    """ENTRIES of all modules of ``twins``, by the learner's name."""
    found: dict[str, Entry] = {}
    for module in pkgutil.iter_modules(twins.__path__):
        found |= importlib.import_module(f"twins.{module.name}").ENTRIES
    return found
