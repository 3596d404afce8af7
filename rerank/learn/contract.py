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
from rerank.base.ranges import expected
from rerank.data.corpus import Corpus
from rerank.learn.base import Learner, Weights
from rerank.learn.base_weight import AUTO, make_learner
from rerank.learn.epoch import UpdateLog, Votes
from rerank.learn.predictor import State
from rerank.learn.train import ListProblem, Training, train

LISTS, CANDIDATES, WIDTH, EPOCHS = 12, 3, 6, 3
NEAR = 1e-8  # relative: averages and votes may round differently
_ACCEPTED: set[str] = set()  # learners of users, in this process


def accepted(learner: Learner) -> Learner:
    """``learner``, if it is one of this program's or keeps the contract."""
    described = f"{type(learner).__module__}.{learner!r}"
    if not described.startswith("rerank.") and described not in _ACCEPTED:
        check_contract(learner)
        _ACCEPTED.add(described)
    return learner


def check_contract(learner: Learner) -> None:
    """Refuse a learner that breaks the contract."""
    try:
        training = trained(learner, EPOCHS)
        state, last, average = training.state, training.weights["last"], training.weights["average"]
        log = training.log or UpdateLog()
        votes, again = learner.votes(log, lists()[0]), trained(learner, EPOCHS).state
        continued = trained(learner, 1, trained(learner, EPOCHS - 1)).state
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
    if _bits(state) != _bits(again):
        _refuse(learner, "the same lists in the same order give different states")
    if _bits(state) != _bits(continued):
        _refuse(
            learner,
            "an epoch from a stored state differs from one that follows directly: not all that it remembers is there",
        )
    if int(votes.survived.sum()) != EPOCHS * LISTS or learner.updates(state) != log.updates:
        _refuse(learner, "its counts of updates and of survived lists are not those of its log")
    predictors = list(replayed(votes))
    if not _alike(predictors[-1], last):
        _refuse(learner, "repeating its logged updates gives other weights: `learn` depends on more than state and log")
    shares = votes.survived / votes.survived.sum()
    mean = sum(share * predictor.w for share, predictor in zip(shares, predictors, strict=True))
    base = sum(float(share) * predictor.base for share, predictor in zip(shares, predictors, strict=True))
    if not _alike(Weights(np.asarray(mean), base), average):
        _refuse(learner, "its average is not that of its predictors, weighted by the lists that they survived")


def reason_of(error: Exception) -> str:
    """The message of an exception, on one line; of numba's, which tell of every caller, what it says of the
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


def trained(learner: Learner, epochs: int, start: Training | None = None) -> Training:
    """Train for this many epochs, from the beginning or from where ``start`` ended; all updates are logged."""
    before = None if start is None else (start.state, start.epoch)
    return train(learner, ListProblem(*lists(), 1, shuffle=False), epochs=epochs, start=before, keep_log=True)


def replayed(votes: Votes) -> Iterator[Weights]:
    """All predictors, one after the other (see ``epoch``)."""
    a, v = np.zeros((2, WIDTH))
    for k in range(votes.survived.size):
        if k > 0:
            touched = slice(votes.first[k - 1], votes.first[k])
            a[votes.columns[touched]] = votes.value[touched]
            v[votes.columns[touched]] = votes.slope[touched] if votes.slope.size else np.sign(votes.value[touched])
        threshold = votes.threshold[k] if votes.threshold.size else 0.0
        w = np.sign(a) * np.maximum(np.abs(a) - threshold * np.abs(v), 0.0)
        yield Weights(votes.scale[k] * w, float(votes.beta[k]))


def _refuse(learner: Learner, reason: str) -> NoReturn:
    raise RecipeError(f"{learner.name} breaks the contract of learners: {reason}")


def _alike(one: Weights, other: Weights) -> bool:
    size = NEAR * max(1e-100, np.abs(other.w).max(initial=abs(other.base)))
    return bool(np.allclose(one.w, other.w, NEAR, size) and np.isclose(one.base, other.base, NEAR, size))


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
