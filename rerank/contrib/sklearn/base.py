"""The base of all classifiers: rows and labels as lists of candidates, passes of a learner, linear predictions."""

from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from rerank.contrib.sklearn.matrix import examples_of
from rerank.contrib.sklearn.parameters import MATRIX, Share, as_value_errors, check_parameters, derive, plain, seed_of
from rerank.contrib.sklearn.probability import Probabilities
from rerank.contrib.sklearn.published import Ballots, Published
from rerank.contrib.sklearn.rows import HeldOut, hold_out, require_known, weights_of, with_class_weights
from rerank.contrib.sklearn.visits import Visits, visits_of
from rerank.data.corpus import Corpus
from rerank.data.labelled import Labelled
from rerank.learn.base import Learner
from rerank.learn.contract import accepted
from rerank.learn.log import UpdateLog
from rerank.learn.predictor import BY_COLUMN
from rerank.learn.settings import Count
from rerank.learn.stream import Stream
from rerank.learn.voting.votes import Votes
from rerank.learn.voting.voting import vote

Predictor = Literal["last", "average", "vote"]
KEPT, COPIED = 2**22, 2**18  # nonzeros of rows that are copied: once, up to KEPT (32 MB); else at a time


@dataclass(init=False, eq=False, repr=False, kw_only=True)
class OnlineClassifier(Probabilities, Published, ClassifierMixin, BaseEstimator):  # type: ignore[misc] # scikit-learn has no types
    """Base of the classifiers: linear, online, with one learner each.

    ``class Mine(OnlineClassifier, learner=MyLearner): ...`` makes a classifier of a learner. Its parameters are those
    of the learner, under the same names, with the same defaults and ranges, and those below.

    An example is a list whose candidates are the classes. With two classes the second one holds the features and the
    first one is empty; with more, every class has a copy of the features (the joint feature map). The intercept is the
    weight of a base score with two classes and a learner that treats that like a feature (``base_like_feature``), and
    the arrays of large sparse input are trained on as they are; else it is the weight of one more column. Where copies
    would take much memory, they are made of a few examples at a time, unless predictors vote or have dual variables.
    Values are read as float32, weights are float64.

    Parameters
    ----------
    epochs: passes over the examples in ``fit``, ≥ 1.
    shuffle: visit the examples in an order that is drawn again for every pass. Then the result does not depend on the
        order of the rows. Otherwise they are visited as given.
    average: the predictor. "last": the weights after the last update (trains fastest); "average": the mean of all
        weights, by the visits that they survived, the default but where the last is better on held-out training
        examples (CW, SGD, truncated gradients, Winnow: docs/estimators.md); "vote": all of them vote, each with as many
        votes (keeps a log of all updates).
    fit_intercept: learn a constant, as the weight of a feature that is always 1.
    class_weight: what the weight of a row is multiplied by: {class: weight}, or "balanced" (``fit`` alone), with which
        all classes weigh the same in sum.
    early_stopping: hold out a part of every class, and in ``fit`` stop when the accuracy there (of the average, for
        "vote") no longer rises; the best pass is kept.
    validation_fraction: the share of every class that is held out, above 0 and below 1.
    n_iter_no_change: how many passes in a row without a better accuracy end ``fit``, ≥ 1.
    warm_start: ``fit`` continues from what was learned before, as further passes.
    keep_state: pickles (and copies) hold what training continues from too, for ``partial_fit`` and ``warm_start``; else
        only what predictions need.
    random_state: seed of the orders: an int, a numpy RandomState, or None for a different one in each call of ``fit``.

    Attributes
    ----------
    classes_: [k], sorted.
    coef_: float64 [1, D] for two classes, else [k, D]; for "vote" those of the average. After ``partial_fit`` it is
        computed when it is first asked for.
    intercept_: float64 [1] or [k]; as coef_.
    n_iter_: passes made; validation_scores_: the accuracy on the rows held out after each of those of the last ``fit``.
    n_features_in_, feature_names_in_: D, and the names of the columns where X has some.
    """

    learner: ClassVar[type[Learner]]
    base_like_feature: ClassVar[bool] = False  # is the weight of a base score learned like that of any feature?

    epochs: Count = 10
    shuffle: bool = True
    average: Predictor = "average"
    fit_intercept: bool = True
    class_weight: Any = None
    early_stopping: bool = False
    validation_fraction: Share = 0.1
    n_iter_no_change: Count = 5
    warm_start: bool = False
    keep_state: bool = False
    random_state: Any = None

    def __init_subclass__(cls, *, learner: type[Learner] | None = None, **more: Any) -> None:
        """Give the class the parameters of ``learner``; without one it keeps those of the class it derives from."""
        super().__init_subclass__(**more)
        if learner is not None:
            cls.learner = learner
            derive(cls, learner)

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
            ``rerank.contrib.sklearn.visits``.

        Raises
        ------
        ValueError: names the argument or parameter that is wrong, what was found and what is expected.
        """
        warm = bool(self.warm_start) and hasattr(self, "classes_")
        X, y = self._validated(X, y, reset=not warm)
        check_classification_targets(y)
        classes = self.classes_ if warm else np.unique(y)
        if warm:
            require_known(y, classes)
        weight = with_class_weights(weights_of(sample_weight, y.size), self.class_weight, classes, y)
        trained = classes if weight is None else np.unique(y[weight > 0])
        if not warm and trained.size < 2:
            raise ValueError(
                f"{type(self).__name__} needs examples of at least two classes; "
                f"found one class, {trained[0]!r}{'' if weight is None else ', with a weight above 0'}"
            )
        with as_value_errors(type(self).__name__):
            learner = self._begin(None if warm else classes)
            held = None
            if self.early_stopping:
                how: dict[str, Any] = {"fraction": float(self.validation_fraction), "seed": self._seed}
                X, y, weight, held = hold_out(X, y, weight, patience=int(self.n_iter_no_change), **how)
            self._fit(learner, *self._visits(learner, X, y, weight), held)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Continue learning: one pass over a batch. With ``shuffle=False``, passes over batches make one pass over all.

        The cost is that of the batch's nonzeros, however many columns there are.

        Parameters
        ----------
        X: dense or sparse [n, D].
        y: [n], among ``classes``.
        classes: all classes that will ever be seen; needed in the first call only.
        sample_weight: [n], as in ``fit``.

        Raises
        ------
        ValueError: as ``fit``; no classes in the first call, different ones in a later call, or a label that is not
            among them; parameters that need all rows at once.
        """
        first = not hasattr(self, "classes_")
        if first and classes is None:
            raise ValueError("classes is None; the first call of partial_fit needs all classes that will be seen")
        X, y = self._validated(X, y, reset=first)
        if self.early_stopping or isinstance(self.class_weight, str):
            raise ValueError("early_stopping and class_weight='balanced' need all rows at once; call fit")
        known = np.unique(classes) if first else self.classes_
        if first:
            check_classification_targets(known)
        if classes is not None and not np.array_equal(np.unique(classes), known):
            raise ValueError(f"classes={np.unique(classes)!r} are not those of the first call, {known!r}")
        require_known(y, known)
        weight = with_class_weights(weights_of(sample_weight, y.size), self.class_weight, known, y)
        if known.size < 2:
            raise ValueError(f"{type(self).__name__} needs at least two classes; found one class, {known[0]!r}")
        with as_value_errors(type(self).__name__):
            learner = self._begin(known if first else None)
            examples, visits = self._visits(learner, X, y, weight)
            corpus, log = self._lists(examples), self._log()
            order = visits.order(bool(self.shuffle), self._seed, self.n_iter_)
            self._stream.learn(learner, corpus, corpus.lists[:-1] + examples.label, order, log)
            self.n_iter_ += 1
            self._conclude(log, examples)
            if not self._stream.finite(corpus):
                self._publish()
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores: float64 [n] for two classes, above 0 for the second one; else [n, k], the highest one wins.

        With ``average="vote"``: shares of the votes; for two classes the second one's minus the first one's.
        """
        check_is_fitted(self)
        X = validate_data(self, X, **MATRIX, reset=False)
        k = self.classes_.size
        if self._votes is not None:
            shares = self._shares(X, self._votes)
            return shares[:, 1] - shares[:, 0] if k == 2 else shares
        return self._scores(X)

    def predict(self, X: Any) -> np.ndarray:
        """The class of every row of ``X`` [n, D]; where classes tie, the first of them."""
        return self._winners(self.decision_function(X))

    def __sklearn_tags__(self) -> Any:
        """See scikit-learn: sparse input is accepted."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _rule(self) -> type[Learner]:
        """The class of the learner."""
        return self.learner

    def _learner(self, base_rate: float = 0.0) -> Learner:
        """The learner with this classifier's parameters; a base score weighs 0 at the start."""
        rule, known = self._rule(), vars(self)
        given = {field.name: plain(known[field.name]) for field in fields(rule) if field.name in known}
        return rule(**given, base=0.0, base_rate=base_rate)

    def _scores(self, X: Any) -> np.ndarray:
        scores = np.asarray(safe_sparse_dot(X, self.coef_.T, dense_output=True)) + self.intercept_
        return np.asarray(scores[:, 0] if self.classes_.size == 2 else scores)

    def _winners(self, scores: np.ndarray) -> np.ndarray:
        best = (scores > 0).astype(np.int64) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[best])

    def _validated(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, np.ndarray]:
        """X and y as arrays, after a check of the parameters that are not the learner's; it checks its own."""
        checked = {field.name for field in fields(self.learner)}
        check_parameters(self, (field.name for field in fields(self) if field.name not in checked))
        X, y = validate_data(self, X, y, **MATRIX, reset=reset)
        return X, y

    def _begin(self, classes: np.ndarray | None) -> Learner:
        """The learner to go on with; with ``classes`` everything that was learnt is forgotten."""
        if classes is None:
            learner = self._learner(float(self._apart))
            self._require_same_state(learner)
        else:
            apart = self.fit_intercept and self.base_like_feature and classes.size == 2 and self.average != "vote"
            learner = accepted(self._learner(float(apart)))
            self._start(learner, classes)  # after the checks, so that nothing wrong leaves a half-fitted classifier
        if self.average == "vote" and self._ballots is None:
            raise ValueError("average='vote' needs a log of all updates; set it before the first call of partial_fit")
        self._averaged = self.average != "last"
        return learner

    def _start(self, learner: Learner, classes: np.ndarray) -> None:
        """Forget everything learnt, and what was shown of it: an interrupted fit leaves what it has learnt so far."""
        self._forget()
        self._seed = seed_of(self.random_state)
        self._bias = bool(self.fit_intercept)
        self._apart = learner.base_rate > 0
        blocks = 1 if classes.size == 2 else classes.size
        self._columns = blocks * (self.n_features_in_ + (self._bias and not self._apart))
        self._light = self.average == "last"
        self._stream = Stream(learner, self._fresh(learner, self._columns))
        self._ballots: Ballots | None = Ballots() if self.average == "vote" else None
        self.classes_ = classes
        self.n_iter_ = 0

    def _fresh(self, learner: Learner, columns: int) -> Any:
        """A state with nothing learnt."""
        state = learner.init(columns)
        return learner.without_average(state) if self._light else state

    def _require_same_state(self, learner: Learner) -> None:
        """Refuse parameters that need a different state from the one that learning would continue from."""
        if not hasattr(self, "_stream"):
            raise ValueError(
                "the training state was left out when this classifier was pickled or copied; "
                "set keep_state=True before, or call fit without warm_start"
            )
        if self.average == "average" and self._light:
            raise ValueError("average='average' needs sums of all weights; set it before the first call of partial_fit")
        few = self._fresh(learner, 1)  # tells what is kept of a column
        same = type(few) is type(self._stream.state) and all(
            len(getattr(self._stream.state, name)) == (len(array) and len(array) - 1 + self._columns)
            for name, array in few._asdict().items()
            if name in BY_COLUMN
        )
        if not same or bool(self.fit_intercept) != self._bias:
            raise ValueError(
                f"{type(self).__name__}: these parameters need another state than the one so far; "
                "they cannot change between calls of partial_fit, call fit"
            )

    def _visits(self, learner: Learner, X: Any, y: np.ndarray, weight: np.ndarray | None) -> tuple[Labelled, Visits]:
        """The rows as examples, and a pass over them."""
        examples = examples_of(X, np.searchsorted(self.classes_, y), self.classes_, weight, double=True)
        visits = visits_of(examples, bool(self.shuffle), constant=self._bias)
        dual = learner.dual  # a dual variable stands for all equal rows, and so does its limit
        return replace(examples, weight=visits.weight if dual else visits.importance), visits

    def _lists(self, examples: Labelled, chosen: np.ndarray | None = None) -> Corpus:
        """The examples (``chosen``: those of them) as lists; a constant that is no column of theirs is the base score
        of the second class."""
        # columns are sorted, see ``SparseRows``
        lists = examples.corpus(chosen, bias=self._bias and not self._apart, trusted=True)
        return replace(lists, base=np.tile([0.0, 1.0], lists.list_count), trusted=True) if self._apart else lists

    def _whole(self, learner: Learner, examples: Labelled) -> Corpus | None:
        """All examples as lists, where that takes no copy, a small one or has to be; else None."""
        as_given = len(examples.classes) == 2 and (self._apart or not self._bias)
        needed = self.average == "vote" or learner.dual  # logs and variables count candidates
        return self._lists(examples) if as_given or needed or self._copied(examples) <= KEPT else None

    def _copied(self, examples: Labelled) -> int:
        """The nonzeros of all examples' copies: one for two classes, else one for each."""
        k = len(examples.classes)
        return (1 if k == 2 else k) * (examples.nonzeros + examples.size)

    def _log(self) -> UpdateLog | None:
        """The destination of updates where predictors vote."""
        return UpdateLog() if self.average == "vote" else None

    def _fit(self, learner: Learner, examples: Labelled, visits: Visits, held: HeldOut | None) -> None:
        """Pass over the examples, until ``held`` ends it, and publish the weights."""
        lists, log, stream = self._whole(learner, examples), self._log(), self._stream
        stream.close()
        stream.go_on(learner, len(examples.classes) * examples.size)
        for _ in range(self.epochs):  # an interrupt is raised between two passes, or two parts of one
            order = visits.order(bool(self.shuffle), self._seed, self.n_iter_)
            if lists is not None:
                learner.epoch(lists, lists.lists[:-1] + examples.label, order, stream.state, log=log)
            else:
                self._pass(learner, examples, order)
            self.n_iter_ += 1
            if held is not None:
                self._publish()
                held.look(self._winners(self._scores(held.X)), stream.state, log)
                if held.stopped:
                    break
        if held is not None:
            stream.state, log = held.state, log and log.cut(held.marks)
        self.validation_scores_ = held.scores if held is not None else []
        self._conclude(log, examples)
        self._complete()

    def _pass(self, learner: Learner, examples: Labelled, order: np.ndarray) -> None:
        """An epoch in which a few of the examples are copied at a time; the bits are the same."""
        self._stream.open(self._lists(examples, order[:1]), order.size)
        few = max(1, COPIED * examples.size // self._copied(examples))
        for first in range(0, order.size, few):
            chosen = order[first : first + few]
            some = self._lists(examples, chosen)
            self._stream.learn(learner, some, some.lists[:-1] + examples.label[chosen], np.arange(chosen.size))
        self._stream.close()

    def _shares(self, X: Any, votes: Votes) -> np.ndarray:
        """float64 [n, k]: the share of the votes that each class gets."""
        n, k = X.shape[0], self.classes_.size
        examples = examples_of(X, np.zeros(n, np.int64), self.classes_, double=True)
        parts = np.array_split(np.arange(n), max(1, -(-self._copied(examples) // KEPT)))
        counts = [vote(votes, examples.corpus(part, bias=self._bias, trusted=True)) for part in parts]
        return np.concatenate(counts).reshape(-1, k) / max(1, int(votes.survived.sum()))


SHARED = tuple(field.name for field in fields(OnlineClassifier))
