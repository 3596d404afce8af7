"""How a learner is tested: the entry that every registered learner needs, found in the modules of ``twins``."""

import importlib
import pkgutil
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import twins
from reference import Trace
from reference_walks import descend, walk

from rerank.learn.learner import learners

ONLINE = [name for name, cls in learners if not cls.batch]  # those that learn from one list after the other
BASES = {"base": [0.0, 0.5, 1.0], "base_rate": [0.0, 0.0, 0.5]}
UPDATES: dict[str, list[Any]] = {"update": ["always", "mistakes"]}


def never(_: Any) -> bool:
    return False


def exact_loss(learner: Any) -> bool:
    return learner.loss in ("perceptron", "hinge", "cost")


class Entry(NamedTuple):
    """How a learner is tested.

    variants: parameters to test it with; choices: the values to draw others from; twin: its dense twin (corpus, oracle,
    orders, any_ties, **parameters) → Trace; positive: parameters that must not be 0; exact: are the weights of this
    learner whole multiples of a power of two on dyadic corpora, but for one factor d? duals: does it keep a variable a
    candidate?
    """

    variants: list[dict[str, Any]]
    choices: dict[str, list[Any]]
    twin: Callable[..., Trace]
    positive: frozenset[str] = frozenset()
    exact: Callable[[Any], bool] = never
    duals: bool = False


def losses(names: str) -> dict[str, list[Any]]:
    """Those to draw from. A learner is shown coefficients, whatever loss they are of, and an epoch is compiled for each
    of its losses: every learner has one of pairs with a kink, a smooth one and one of lists, in its variants or here,
    and every loss has several learners; ``sgd`` has all."""
    return {"loss": names.split()}


def descending(
    step: Callable[..., Any], variants: list[dict[str, Any]], choices: dict[str, list[Any]], positive: str = "",
    exact: Callable[[Any], bool] = never,
) -> Entry:  # fmt: skip
    """A learner that takes steps along subgradients of a loss (``descend``)."""
    return Entry(variants, choices | BASES, partial(descend, step), frozenset(positive.split()), exact)


def walking(
    rule: Callable[..., Any], variants: list[dict[str, Any]], choices: dict[str, list[Any]], positive: str
) -> Entry:
    """A learner that is shown the pairs of a list in turn (``walk``)."""
    choices = choices | BASES | {"top": [1, 1, 2, 5]}
    return Entry(variants, choices, partial(walk, rule), frozenset(positive.split()))


def find_entries() -> dict[str, Entry]:
    """ENTRIES of all modules of ``twins``, by the learner's name."""
    found: dict[str, Entry] = {}
    for module in pkgutil.iter_modules(twins.__path__):
        found |= importlib.import_module(f"twins.{module.name}").ENTRIES
    return found
