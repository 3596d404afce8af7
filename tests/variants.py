"""Every registered learner as it is tested: its variants, its twin, and what it is written as in Python."""

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from entries import ONLINE, find_entries
from reference import EPS, Trace
from reference_pairs import ORACLES, Pairs
from strategies import orders, targets

from rerank.base.registry import build
from rerank.data.corpus import Corpus
from rerank.kernels.compile import Kernel
from rerank.learn.learner import Learner, learners

LEARNERS = find_entries()
MAGNIFIED = 1000.0  # rounding, by the sums of two epochs, which feel one another


def variants() -> Iterator[Any]:
    """Every variant of every registered online learner that has an entry."""
    for name in ONLINE:
        for parameters in LEARNERS[name].variants if name in LEARNERS else []:
            text = ",".join(f"{key}={value}" for key, value in parameters.items())
            yield pytest.param(name, parameters, id=f"{name}({text})")


EPOCHS = 3
FAMILIES = ("sgd", "rda", "tg", "ftrl", "pa", "arow", "sop", "nwin", "lm-nwin")  # a learner for each kind of state
FULL = [variant for variant in variants() if variant.values[1].get("covariance") == "full"]
FIRST = [*{variant.values[0]: variant for variant in reversed(list(variants()))}.values(), FULL[0]]


def every(instances: list[Any]) -> pytest.MarkDecorator:
    """Instances of a test of learners."""
    return pytest.mark.parametrize(("name", "parameters"), instances)


every_variant = every(list(variants()))
every_learner = every(FIRST)  # with its first variant; a full matrix once
every_family = every([variant for variant in FIRST if variant.values[0] in FAMILIES])


def make(name: str, parameters: dict[str, Any]) -> Learner:
    return build(learners, {"name": name, **parameters}, "learner")


def twin_of(learner: Any, corpus: Corpus, epochs: int, any_ties: bool = False, pairs: Pairs = ORACLES) -> Trace:
    """What the dense twin of a learner does in the order of ``orders``."""
    chosen = {} if pairs is ORACLES else {"pairs": pairs}  # learners with duals know no others
    return LEARNERS[learner.name].twin(
        corpus, targets(corpus), orders(corpus, epochs), any_ties=any_ties, **chosen, **dataclasses.asdict(learner)
    )


def exact(learner: Learner) -> bool:
    """Whether sums of dyadic numbers are exact."""
    return LEARNERS[learner.name].exact(learner)


def rounding_of(learner: Learner, trace: Trace) -> float:
    """How far a learner and its twin may be apart, relative to the weights.

    Steps that adapt to small subgradients magnify the rounding in them; others add it up with all the rest.
    """
    return max(1e-10, MAGNIFIED * EPS * trace.condition) if learner.name in ("arda", "ftrl") else 1e-10


@contextmanager
def in_python() -> Iterator[None]:
    """Kernels are run as the Python that they are written in, within the block: what is tried there with many types,
    and elsewhere with those that users have, need not be compiled for all of them."""
    with pytest.MonkeyPatch.context() as patch, np.errstate(over="ignore", invalid="ignore"):
        patch.setattr(Kernel, "__call__", lambda kernel, *given: kernel.function(*given))
        yield
