"""What users give, checked: parameters, seeds, numbers; and errors as scikit-learn's users expect them."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import numpy as np
from sklearn.utils import check_random_state

from rerank.base.errors import RerankError
from rerank.base.ranges import Range, expected

Share = Annotated[float, Range(above=0, below=1)]
MATRIX: dict[str, Any] = {"accept_sparse": "csr", "dtype": [np.float64, np.float32]}  # for ``validate_data``


@contextmanager
def as_value_errors(name: str) -> Iterator[None]:
    """What the package reports about parameters and data, as the errors that scikit-learn's users expect."""
    try:
        yield
    except RerankError as error:
        raise ValueError(f"{name}: {error}") from error


def plain(value: Any) -> Any:
    """A parameter without numpy's types."""
    return value.item() if isinstance(value, np.generic) else value


def check_parameters(estimator: Any, names: Iterable[str]) -> None:
    """Check the parameters ``names`` of an estimator against their annotations.

    Raises
    ------
    ValueError: names the parameter, what was found and what is expected.
    """
    cls: type = type(estimator)
    for name in names:
        value = getattr(estimator, name)
        if wanted := expected(cls, name, plain(value)):
            raise ValueError(f"{name}={value!r}; expected {wanted}")


def seed_of(random_state: Any) -> int:
    """An int as it is; else a number drawn from the generator, the global one for None."""
    if isinstance(random_state, (int, np.integer)) and random_state >= 0:
        return int(random_state)
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def numbers(name: str, values: Any, n: int) -> np.ndarray:
    """``values`` as float64 [n], one finite number for every row of X.

    Raises
    ------
    ValueError: names the argument, what was found (and in which row), and what is expected.
    """
    try:
        found = np.asarray(values, np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} does not hold numbers ({error}); expected a number for every row of X") from None
    if found.shape != (n,):
        raise ValueError(f"{name} has shape {found.shape}; expected ({n},), a number for every row of X")
    if not np.isfinite(found).all():
        row = int(np.flatnonzero(~np.isfinite(found))[0])
        raise ValueError(f"{name} holds {found[row]} in row {row}; expected finite numbers, no NaN or infinity")
    return found
