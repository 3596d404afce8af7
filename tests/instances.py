"""Which instances of the tests are run, in which order, and how many examples they try."""

from collections.abc import Callable, Iterable

import pytest
from hypothesis import settings

SETTINGS = "_hypothesis_internal_use_settings"  # where hypothesis and its pytest plugin keep those of a test
# What needs the same kernels, from first to last: all learners, while others need none of them; and who trains.
TURNS = (
    ("contract/test_learners.py",),
    ("tests/base/", "tests/data/", "tests/features/", "tests/metrics/", "tests/readers/", "/storage/"),
    ("",),
    ("contract/test_learner_twins", "/learn/", "/contrib/sklearn/"),
)


def in_turn(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """Tests in the order of ``TURNS``, so that no two processes compile the same at once.

    Processes take whole files in this order; what others have compiled they find in the cache.
    """

    def turn(item: pytest.Item) -> int:
        return next(k for k in (0, 1, 3, 2) if any(part in item.nodeid for part in TURNS[k]))

    return sorted(items, key=turn)


def first_instances(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """Of tests with parameters, the first instance."""
    found: dict[str, pytest.Item] = {}
    for item in items:
        found.setdefault(item.nodeid.partition("[")[0], item)
    return [*found.values()]


def multiply_examples(tests: Iterable[Callable[..., object]], factor: float) -> None:
    """Have each of ``tests`` that generates examples try ``factor`` times as many; parameters share a function."""
    functions = {getattr(test, "__func__", test) for test in tests}
    for function in functions:
        own = getattr(function, SETTINGS, None)
        if own is not None and factor != 1:
            setattr(function, SETTINGS, settings(own, max_examples=max(1, round(factor * own.max_examples))))
