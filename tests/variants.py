"""Every registered learner as it is tested: its variants."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from entries import find_entries

import rerank.learn
from rerank.base.registry import build
from rerank.learn.base import Learner, learners

assert rerank.learn  # importing it registers the learners

LEARNERS = find_entries()


def variants() -> Iterator[Any]:
    """Every variant of every registered learner that has an entry."""
    for name, _ in learners:
        for parameters in LEARNERS[name].variants if name in LEARNERS else []:
            text = ",".join(f"{key}={value}" for key, value in parameters.items())
            yield pytest.param(name, parameters, id=f"{name}({text})")


def make(name: str, parameters: dict[str, Any]) -> Learner:
    return build(learners, {"name": name, **parameters}, "learner")
