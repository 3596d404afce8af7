"""What all classifiers share: rows and labels as lists of candidates, passes of a learner, linear predictions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from rerank.base.errors import RerankError
from rerank.base.ranges import expected, hints_of
from rerank.estimators.ballots import Ballots
from rerank.estimators.matrix import examples_of
from rerank.estimators.parameters import derive
from rerank.estimators.visits import visits_of
from rerank.learn.base import Learner
from rerank.learn.contract import accepted
from rerank.learn.log import UpdateLog
from rerank.learn.settings import Count
from rerank.learn.skeletons.dual import DualVariables
from rerank.learn.voting.votes import Votes
from rerank.learn.voting.voting import vote


@dataclass(init=False, eq=False, repr=False, kw_only=True)
class OnlineClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc] # scikit-learn has no types
    """Base of the classifiers: linear, online, with one learner each.

    ``class Mine(OnlineClassifier, learner=MyLearner): ...`` makes a classifier of a learner. Its parameters are those
    of the learner, under the same names, with the same defaults and ranges, and those below.

    An example is a list whose candidates are the classes. With two classes the second one holds the features and the
    first one is empty; with more, every class has a copy of the features (the joint feature map). Values are float32,
    weights float64.

    Parameters
    ----------
    epochs: passes over the examples in ``fit``, ≥ 1.
    shuffle: visit the examples in an order that is drawn again for every pass. Then the result does not depend on the
        order of the rows. Otherwise they are visited as given.
    average: the predictor. "last": the weights after the last update (trains fastest); "average": the mean of all
        weights, by the visits that they survived; "vote": all of them vote, each with as many votes (keeps a log of all
        updates).
    fit_intercept: learn a constant, as the weight of a feature that is always 1.
    random_state: seed of the orders: an int, a numpy RandomState, or None for a different one in each call of ``fit``.

    Attributes
    ----------
    classes_: [k], sorted.
    coef_: float64 [1, D] for two classes, else [k, D]; for "vote" those of the average.
    intercept_: float64 [1] or [k].
    n_iter_: passes made.
    n_features_in_, feature_names_in_: D, and the names of the columns where X has some.
    """

    learner: ClassVar[type[Learner]]

    epochs: Count = 10
    shuffle: bool = True
    average: Literal["last", "average", "vote"] = "average"
    fit_intercept: bool = True
    random_state: Any = None

    def __init_subclass__(cls, *, learner: type[Learner] | None = None, **more: Any) -> None:
        """Give the class the parameters of ``learner``; without one it keeps those of the class it derives from."""
        super().__init_subclass__(**more)
        if learner is not None:
            cls.learner = learner
            derive(cls, learner, SHARED)

    def __init__(self, **parameters: Any) -> None:  # noqa: ARG002 - those of the classes with a learner
        name = type(self).__name__
        raise TypeError(f"{name} has no learner; expected class {name}(OnlineClassifier, learner=...)")

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from the rows of ``X``, from the start.

        Parameters
        ----------
        X: dense or sparse [n, D].
        y: [n], the classes; at least two of them.
        sample_weight: [n], ≥ 0, 1 by default. A whole weight is the same as so many equal rows; in between, see
            ``rerank.estimators.visits``.

        Raises
        ------
        ValueError: names the argument or parameter that is wrong, what was found and what is expected.
        """
        X, y = self._validated(X, y, reset=True)
        weight = weights_of(sample_weight, y.size)
        classes = np.unique(y)
        trained = classes if weight is None else np.unique(y[weight > 0])
        if trained.size < 2:
            raise ValueError(
                f"{type(self).__name__} needs examples of at least two classes; "
                f"found one class, {trained[0]!r}{'' if weight is None else ', with a weight above 0'}"
            )
        with as_value_errors(type(self).__name__):
            self._start(classes)
            self._learn(X, y, weight, self.epochs)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Continue learning: one pass over a batch. With ``shuffle=False``, passes over batches make one pass over all.

        Parameters
        ----------
        X: dense or sparse [n, D].
        y: [n], among ``classes``.
        classes: all classes that will ever be seen; needed in the first call only.
        sample_weight: [n], as in ``fit``.

        Raises
        ------
        ValueError: as ``fit``; no classes in the first call, different ones in a later call, or a label that is not
            among them.
        """
        first = not hasattr(self, "classes_")
        if first and classes is None:
            raise ValueError("classes is None; the first call of partial_fit needs all classes that will be seen")
        X, y = self._validated(X, y, reset=first)
        weight = weights_of(sample_weight, y.size)
        known = np.unique(classes if first else self.classes_)
        if classes is not None and not np.array_equal(np.unique(classes), known):
            raise ValueError(f"classes={np.unique(classes)!r} are not those of the first call, {known!r}")
        if not np.isin(y, known).all():
            raise ValueError(f"y holds classes {np.setdiff1d(y, known)!r} that are not among {known!r}")
        if known.size < 2:
            raise ValueError(f"{type(self).__name__} needs at least two classes; found one class, {known[0]!r}")
        with as_value_errors(type(self).__name__):
            if first:
                self._start(known)
            else:
                self._require_same_state()
            self._learn(X, y, weight, 1)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores: float64 [n] for two classes, above 0 for the second one; else [n, k], the highest one wins.

        With ``average="vote"``: shares of the votes; for two classes the second one's minus the first one's.
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        k = self.classes_.size
        if self._votes is not None:
            shares = self._shares(X, self._votes)
            return shares[:, 1] - shares[:, 0] if k == 2 else shares
        scores = np.asarray(X @ self.coef_.T) + self.intercept_
        return np.asarray(scores[:, 0] if k == 2 else scores)

    def predict(self, X: Any) -> np.ndarray:
        """The class of every row of ``X`` [n, D]; where classes tie, the first of them."""
        scores = self.decision_function(X)
        best = (scores > 0).astype(np.int64) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[best])

    def __sklearn_tags__(self) -> Any:
        """See scikit-learn: sparse input is accepted."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _rule(self) -> type[Learner]:
        """The class of the learner."""
        return self.learner

    def _learner(self) -> Learner:
        """The learner with this classifier's parameters; there are no base scores."""
        rule, known = self._rule(), self.get_params()
        return rule(**{each.name: plain(known[each.name]) for each in fields(rule) if each.name in known}, base=0.0)

    def _validated(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, np.ndarray]:
        """X and y as arrays, after a check of the parameters that are not the learner's; it checks its own."""
        cls: type = type(self)
        kinds, checked = hints_of(cls), {field.name for field in fields(self.learner)}
        for name, value in ((field.name, getattr(self, field.name)) for field in fields(self)):
            if name not in checked and (wanted := expected(kinds[name], plain(value))):
                raise ValueError(f"{name}={value!r}; expected {wanted}")
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], reset=reset)
        check_classification_targets(y)
        return X, y

    def _start(self, classes: np.ndarray) -> None:
        """Forget everything learnt."""
        learner = accepted(self._learner())  # first, so that nothing wrong leaves a half-fitted classifier
        self._seed = seed_of(self.random_state)
        self._bias = bool(self.fit_intercept)
        blocks = 1 if classes.size == 2 else classes.size
        self._columns = blocks * (self.n_features_in_ + self._bias)
        self._light = self.average == "last"
        state = learner.init(self._columns)
        self._state = learner.light(state) if self._light else state
        self._ballots: Ballots | None = Ballots() if self.average == "vote" else None
        self.classes_ = classes
        self.n_iter_ = 0

    def _require_same_state(self) -> None:
        """Refuse parameters that need a different state from the one that learning would continue from."""
        if self.average == "average" and self._light:
            raise ValueError("average='average' needs sums of all weights; set it before the first call of partial_fit")
        fresh = self._learner().init(self._columns)
        same = type(fresh) is type(self._state) and all(
            name in ("alpha", "u") or own.shape == getattr(fresh, name).shape
            for name, own in self._state._asdict().items()
        )
        if not same or bool(self.fit_intercept) != self._bias:
            raise ValueError(
                f"{type(self).__name__}: these parameters need another state than the one so far; "
                "they cannot change between calls of partial_fit, call fit"
            )

    def _learn(self, X: Any, y: np.ndarray, weight: np.ndarray | None, epochs: int) -> None:
        """Make ``epochs`` passes over the examples, and publish the resulting weights."""
        if self.average == "vote" and self._ballots is None:
            raise ValueError("average='vote' needs a log of all updates; set it before the first call of partial_fit")
        label = np.searchsorted(self.classes_, y)
        examples = examples_of(X, label, self.classes_, weight, bias=self._bias)
        visits = visits_of(examples, bool(self.shuffle))
        learner, log = self._learner(), UpdateLog() if self.average == "vote" else None
        dual = isinstance(learner, DualVariables)  # a dual variable stands for all equal rows, and so does its limit
        examples = replace(examples, weight=visits.weight if dual else visits.importance)
        corpus = examples.corpus()
        self._state = learner.adopt(self._state, corpus.candidate_count)
        for _ in range(epochs):  # an interrupt is raised between two passes
            order = visits.order(bool(self.shuffle), self._seed, self.n_iter_)
            learner.epoch(corpus, corpus.lists[:-1] + label, order, self._state, log=log)
            self.n_iter_ += 1
        self._publish(learner)
        if log is None:
            self._ballots = self._votes = None  # what is not logged cannot vote later
        elif self._ballots is not None:
            self._ballots.add(log, examples)
            self._votes = self._ballots.votes(learner)

    def _publish(self, learner: Learner) -> None:
        """Set the weights as scikit-learn has them."""
        with np.errstate(all="ignore"):  # what is not finite is refused below
            w = (learner.last if self.average == "last" else learner.average)(self._state).w
        if not np.isfinite(w).all():
            raise ValueError(
                f"{type(self).__name__}: the weights overflowed in {self.n_iter_} passes; scale X or take smaller steps"
            )
        w = w.reshape(-1, self.n_features_in_ + self._bias)
        self.coef_ = w[:, : self.n_features_in_].copy()
        self.intercept_ = w[:, -1].copy() if self._bias else np.zeros(w.shape[0])

    def _shares(self, X: Any, votes: Votes) -> np.ndarray:
        """float64 [n, k]: the share of the votes that each class gets."""
        k = self.classes_.size
        examples = examples_of(X, np.zeros(X.shape[0], np.int64), self.classes_, bias=self._bias)
        counts = vote(votes, examples.corpus())
        return counts.reshape(-1, k) / max(1, int(votes.survived.sum()))


SHARED = tuple(field.name for field in fields(OnlineClassifier))


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


def seed_of(random_state: Any) -> int:
    """An int as it is; else a number drawn from the generator, the global one for None."""
    if isinstance(random_state, (int, np.integer)) and random_state >= 0:
        return int(random_state)
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def weights_of(sample_weight: Any, n: int) -> np.ndarray | None:
    """float64 [n], or None where there are no weights.

    Raises
    ------
    ValueError: of another shape, not finite, negative, or all 0.
    """
    if sample_weight is None:
        return None
    weight = np.asarray(sample_weight, np.float64)
    if weight.shape != (n,):
        raise ValueError(f"sample_weight has shape {weight.shape}; ({n},) is expected, a number for every row of X")
    if not np.isfinite(weight).all() or (weight < 0).any():
        raise ValueError("sample_weight holds a negative weight, NaN or infinity; finite numbers from 0 are expected")
    if not weight.any():
        raise ValueError("all sample weights are zero; at least one weight above 0 is expected")
    return weight
