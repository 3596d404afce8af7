"""The examples in the docstrings of parts: every part that begins with one shows what it says."""

import doctest
import sys
from typing import Any

import pytest

from rerank.features.fired import fired
from rerank.features.template import templates
from rerank.learn.base import Learner, learners
from rerank.metrics.metric import metrics
from rerank.readers.base import readers

PARTS = {
    f"{registry.kind} {name}": part for registry in (learners, metrics, readers, templates) for name, part in registry
}
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.mark.parametrize("name", PARTS)
def test_the_example_in_a_docstring_prints_what_it_shows(name: str) -> None:
    part: Any = PARTS[name]
    names = {"fired": fired} | vars(sys.modules[part.__module__])
    example = doctest.DocTestParser().get_doctest(part.__doc__ or "", dict(names), name, None, None)
    assert example.examples or not name.startswith("metric"), "no example"
    result = doctest.DocTestRunner(optionflags=FLAGS).run(example)
    assert result.failed == 0


@pytest.mark.parametrize(("name", "learner"), list(learners))
def test_learners_have_an_example_a_reference_and_their_memory(name: str, learner: type[Learner]) -> None:
    first = (learner.__doc__ or "").split("\n\n")[1]
    assert (">>> LambdaMart(" if name == "lambdamart" else ">>> learned(") in first, name  # trees need lists
    assert "Reference: " in (learner.__doc__ or "")
    assert "Memory: " in (learner.__doc__ or "")
