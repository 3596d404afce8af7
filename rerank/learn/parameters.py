"""Parameters of estimators, checked as scikit-learn's users expect."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import Any

import numpy as np

from rerank.base.errors import RecipeError, RerankError
from rerank.base.ranges import expected
from rerank.learn.base import Learner
from rerank.learn.base_weight import AUTO, make_learner
from rerank.learn.contract import accepted


@contextmanager
def as_value_errors(name: str) -> Iterator[None]:
    """The package's errors about parameters and data, as the errors that scikit-learn's users expect."""
    try:
        yield
    except RerankError as error:
        raise ValueError(f"{name}: {error}") from error


def plain(value: Any) -> Any:
    """A parameter without numpy's types."""
    return value.item() if isinstance(value, np.generic) else value


def check_parameters(estimator: Any, besides: Collection[str] = ()) -> None:
    """Check the parameters of an estimator, ``besides`` some, against their annotations."""
    for name in (field.name for field in fields(estimator) if field.name not in besides):
        value = getattr(estimator, name)
        if wanted := expected(type(estimator), name, plain(value)):
            raise ValueError(f"{name}={value!r}; expected {wanted}")


def seed_of(random_state: Any) -> int:
    """An int as it is; else a number drawn from the generator, the global one for None."""
    from sklearn.utils import check_random_state

    if isinstance(random_state, (int, np.integer)) and random_state >= 0:
        return int(random_state)
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def learner_of(given: Any, loss: str | None = None) -> tuple[Learner, bool]:
    """The learner that a parameter ``learner`` describes, and whether the weight of base scores is to be found."""
    if isinstance(given, Learner):
        if loss is not None and not hasattr(given, "loss"):
            raise RecipeError(f"found {loss!r}; the learner {given.name} has no loss to choose", key="loss")
        return accepted(given if loss is None else replace(given, loss=loss)), False  # type: ignore[call-arg]
    if not isinstance(given, (str, Mapping)):
        raise RecipeError(
            f"found {given!r}; expected a name, a dict of name and parameters, or a learner", key="learner"
        )
    settings = {"base": AUTO, **({"name": given} if isinstance(given, str) else given)}
    settings |= {} if loss is None else {"loss": loss}
    return accepted(make_learner(settings)), settings["base"] == AUTO
