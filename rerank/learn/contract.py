"""Learners and parameters of estimators as users give them: checked.

A learner of a user's own is checked on a few small lists. The tests of this project check much more of its own
learners; this is what voting, averages and resumed runs rely on, and what a rule with a slip in it breaks.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, replace
from itertools import pairwise
from typing import Any, NoReturn

import numpy as np

from rerank.base.errors import RecipeError, RerankError, RunError
from rerank.base.ranges import expectation
from rerank.data.corpus import Corpus
from rerank.learn.base_weight import AUTO, make_learner
from rerank.learn.epoch import UpdateLog, Votes
from rerank.learn.learner import Learner, Weights
from rerank.learn.predictor import State
from rerank.learn.train import ListProblem, Training, train

LISTS, CANDIDATES, WIDTH, EPOCHS = 12, 3, 6, 3
TOLERANCE = 1e-8  # relative: averages and votes may round differently
_USER_LEARNERS: set[str] = set()  # those that keep the contract, in this process


def accept(learner: Learner) -> Learner:
    """Return ``learner`` if it is one of this program's or keeps the contract."""
    description = f"{type(learner).__module__}.{learner!r}"
    if not description.startswith("rerank.") and description not in _USER_LEARNERS:
        check_contract(learner)
        _USER_LEARNERS.add(description)
    return learner


def check_contract(learner: Learner) -> None:
    """Refuse a learner that breaks the contract."""
    try:
        training = train_on_lists(learner, EPOCHS)
        state, last, average = training.state, training.weights["last"], training.weights["average"]
        log = training.log or UpdateLog()
        votes, repeat = learner.votes(log, lists()[0]), train_on_lists(learner, EPOCHS).state
        continuation = train_on_lists(learner, 1, train_on_lists(learner, EPOCHS - 1)).state
    except RunError:
        _refuse(learner, "its weights are not finite after a few small lists")
    except RerankError:
        raise
    except Exception as error:  # whatever a user's code may raise
        raise RecipeError(f"{learner.name} fails on small lists: {reason_of(error)}") from error
    if log.updates == 0:
        _refuse(
            learner, "it learns nothing from lists whose oracles lose: does it have a `learn` (or an `update_pair`)?"
        )
    if _bits(state) != _bits(repeat):
        _refuse(learner, "the same lists in the same order give different states")
    if _bits(state) != _bits(continuation):
        _refuse(
            learner,
            "an epoch from a stored state differs from one that follows directly: not all that it remembers is there",
        )
    if int(votes.survived.sum()) != EPOCHS * LISTS or learner.updates(state) != log.updates:
        _refuse(learner, "its counts of updates and of survived lists are not those of its log")
    predictors = list(replay(votes))
    if not _alike(predictors[-1], last):
        _refuse(learner, "repeating its logged updates gives other weights: `learn` depends on more than state and log")
    shares = votes.survived / votes.survived.sum()
    mean = sum(share * predictor.w for share, predictor in zip(shares, predictors, strict=True))
    base = sum(float(share) * predictor.base for share, predictor in zip(shares, predictors, strict=True))
    if not _alike(Weights(np.asarray(mean), base), average):
        _refuse(learner, "its average is not that of its predictors, weighted by the lists that they survived")


def reason_of(error: Exception) -> str:
    """The message of an exception, on one line; of numba's, which tell of every caller, the part about the
    innermost."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error)).split("raised a specific error:")[-1]
    return f"{type(error).__name__}: {' '.join(text.split())[:400]}"


def lists() -> tuple[Corpus, np.ndarray]:
    """A few lists with ties, lists of one candidate and of none among them, and their oracles."""
    random = np.random.default_rng(1)
    sizes = np.array([0, 1, 2, *[CANDIDATES] * (LISTS - 3)])
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    N, row = int(bounds[-1]), WIDTH // 2
    columns = np.sort(np.argsort(random.random((N, WIDTH)), axis=1)[:, :row], axis=1)
    gain = random.integers(0, 3, N) / 2
    corpus = Corpus(
        lists=bounds, rows=np.arange(N + 1) * row, columns=columns.ravel(), values=random.integers(1, 4, N * row) / 2,
        base=-random.random(N), gain=gain, stats=np.zeros((N, 0)), reference=np.zeros((LISTS, 0)),
        weight=np.ones(LISTS), width=WIDTH,
    )  # fmt: skip
    best = [first + int(np.argmax(gain[first:end])) if end > first else -1 for first, end in pairwise(bounds)]
    return corpus, np.array(best)


def train_on_lists(learner: Learner, epochs: int, start: Training | None = None) -> Training:
    """Train for this many epochs, from the beginning or from where ``start`` ended; all updates are logged."""
    origin = None if start is None else (start.state, start.epoch)
    return train(learner, ListProblem(*lists(), 1, shuffle=False), epochs=epochs, start=origin, keep_log=True)


def replay(votes: Votes) -> Iterator[Weights]:
    """Yield all predictors, one after the other (see ``epoch``)."""
    a, v = np.zeros((2, WIDTH))
    for k in range(votes.survived.size):
        if k > 0:
            entries = slice(votes.first[k - 1], votes.first[k])
            a[votes.columns[entries]] = votes.value[entries]
            v[votes.columns[entries]] = votes.slope[entries] if votes.slope.size else np.sign(votes.value[entries])
        threshold = votes.threshold[k] if votes.threshold.size else 0.0
        w = np.sign(a) * np.maximum(np.abs(a) - threshold * np.abs(v), 0.0)
        yield Weights(votes.scale[k] * w, float(votes.beta[k]))


def _refuse(learner: Learner, reason: str) -> NoReturn:
    raise RecipeError(f"{learner.name} breaks the contract of learners: {reason}")


def _alike(one: Weights, other: Weights) -> bool:
    size = TOLERANCE * max(1e-100, np.abs(other.w).max(initial=abs(other.base)))
    return bool(np.allclose(one.w, other.w, TOLERANCE, size) and np.isclose(one.base, other.base, TOLERANCE, size))


def _bits(state: State) -> list[bytes]:
    return [np.asarray(array).tobytes() for array in state]


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


def check_parameters(estimator: Any, exclude: Collection[str] = ()) -> None:
    """Check the parameters of an estimator, except ``exclude``, against their annotations."""
    for name in (field.name for field in fields(estimator) if field.name not in exclude):
        value = getattr(estimator, name)
        if form := expectation(type(estimator), name, plain(value)):
            raise ValueError(f"{name}={value!r}; expected {form}")


def seed_of(random_state: Any) -> int:
    """An int as it is; else a number drawn from the generator, the global one for None."""
    from sklearn.utils import check_random_state

    if isinstance(random_state, (int, np.integer)) and random_state >= 0:
        return int(random_state)
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def learner_of(learner: Any, loss: str | None = None) -> tuple[Learner, bool]:
    """The learner that a parameter ``learner`` describes, and whether the weight of base scores is to be found."""
    if isinstance(learner, Learner):
        if loss is not None and not hasattr(learner, "loss"):
            raise RecipeError(f"found {loss!r}; the learner {learner.name} has no loss to choose", key="loss")
        return accept(learner if loss is None else replace(learner, loss=loss)), False  # type: ignore[call-arg]
    if not isinstance(learner, (str, Mapping)):
        raise RecipeError(
            f"found {learner!r}; expected a name, a dict of name and parameters, or a learner", key="learner"
        )
    settings = {"base": AUTO, **({"name": learner} if isinstance(learner, str) else learner)}
    settings |= {} if loss is None else {"loss": loss}
    return accept(make_learner(settings)), settings["base"] == AUTO
