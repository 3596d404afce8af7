"""The base of all classifiers: rows and labels as lists of candidates, passes of a learner, linear predictions.

Sample weights are repeated visits. An example of weight s is visited ⌈s⌉ times per pass with importance s/⌈s⌉, so a
whole weight is the same as so many equal rows. It is visited ``MAX_VISITS`` times at most, and importance, by which
every rule scales its steps, does the rest: a million visits would take too long. In a shuffled fit equal rows are one
example, whose weight is the sum of theirs, and examples are sorted by their content before the seed shuffles their
visits: neither the order of the rows nor their repetition changes the result.
"""

import re
from dataclasses import MISSING, dataclass, fields, replace
from inspect import cleandoc, get_annotations
from typing import Any, ClassVar, Literal, NamedTuple, Self, get_type_hints

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from rerank.base.ranges import Count
from rerank.contrib.sklearn.matrix import MATRIX, examples_of, weights_of
from rerank.data.corpus import Corpus
from rerank.data.labelled import Labelled
from rerank.data.symbols import combine, mix
from rerank.kernels.compile import kernel
from rerank.learn.contract import accept, as_value_errors, check_parameters, plain, seed_of
from rerank.learn.learner import Learner, State, Weights, learners
from rerank.learn.train import ListProblem, train

MAX_PASS_VISITS = 10**8
MAX_VISITS = 1000  # of a row in a pass
ROUNDING = 1e-9  # sums of weights this close to a whole number are meant to be one
ONE_BITS, HALF = np.uint64(np.float32(1.0).view(np.uint32)), np.uint64(32)


class Visits(NamedTuple):
    """One pass over n examples before it is shuffled."""

    sequence: np.ndarray  # int64 [V]: examples
    weight: np.ndarray  # float64 [n]: of all equal rows together; 0 for examples that are not visited
    importance: np.ndarray  # float64 [n]: of a visit


@kernel
def hash_examples(
    rows: np.ndarray, columns: np.ndarray, values: np.ndarray, label: np.ndarray, constant: int, hashes: np.ndarray
) -> None:
    """hashes[i] (uint64) ← a hash of the columns, values and label of example i.

    constant: a column of ones that all rows end with although they do not hold it; -1 for none.
    """
    for i in range(hashes.shape[0]):
        h = mix(np.uint64(label[i] + 1))
        for p in range(np.uint64(rows[i]), np.uint64(rows[i + 1])):
            h = combine(h, (np.uint64(columns[p]) << HALF) | np.uint64(np.float32(values[p]).view(np.uint32)))
        hashes[i] = combine(h, (np.uint64(constant) << HALF) | ONE_BITS) if constant >= 0 else h


def visits_of(examples: Labelled, shuffle: bool, *, constant: bool = False) -> Visits:
    """The visits of a pass over ``examples``: as they are, or (``shuffle``) with equal ones joined, sorted by content.

    constant: sort them as if they had a last column of ones.
    """
    weight, n = examples.weight, examples.label.size
    rows, equal = np.arange(n), np.ones(n, np.int64)
    if shuffle:
        values = np.ascontiguousarray(examples.values)
        values.flags.writeable = False
        hashes = np.empty(n, np.uint64)
        last = examples.width if constant else -1
        hash_examples(examples.rows, examples.columns, values, examples.label, last, hashes)
        order = np.lexsort((weight, hashes))  # by weight too, so that sums have the same bits in any order of rows
        # different rows of a million have the same 64 bits with a probability of 3e-8
        starts = np.flatnonzero(np.append(True, hashes[order[1:]] != hashes[order[:-1]]))
        equal = np.diff(np.append(starts, n))
        rows, weight = order[starts], np.add.reduceat(weight[order], starts)
    times = np.minimum(np.ceil(weight * (1.0 - ROUNDING)), MAX_VISITS * equal).astype(np.int64)
    if times.sum() > MAX_PASS_VISITS:
        raise ValueError(
            f"the sample weights ask for {times.sum():.3g} visits per pass, more than {MAX_PASS_VISITS:.0e}; "
            "divide them by a constant"
        )
    total, importance = np.zeros((2, n))
    total[rows], importance[rows] = weight, weight / np.maximum(times, 1)
    return Visits(np.repeat(rows, times), total, importance)


Predictor = Literal["last", "average"]


@dataclass(frozen=True)
class Blocks:
    """The layout of weights: D ``features`` in each block, of which there are as many as classes (one of two).

    bias: is there an intercept? as_base: is that the weight of the base score, and no column's? averages: is the
    average kept?
    """

    features: int
    blocks: int
    bias: bool
    as_base: bool
    averages: bool

    @property
    def extra(self) -> bool:
        """Whether a block has a column for the intercept."""
        return self.bias and not self.as_base

    def start(self, learner: Learner) -> State:
        """A state with nothing learnt."""
        state = learner.init(self.blocks * (self.features + self.extra))
        return state if self.averages else learner.without_average(state)

    def lists(self, examples: Labelled) -> Corpus:
        """The examples as lists; a constant that is no column of theirs is the base score of the second class."""
        examples = examples.with_bias() if self.extra else examples
        lists = examples.corpus(trusted=True)  # columns are sorted, see ``rows_of``
        return replace(lists, base=np.tile([0.0, 1.0], lists.list_count), trusted=True) if self.as_base else lists

    def parts(self, weights: Weights) -> tuple[np.ndarray, np.ndarray]:
        """``coef_`` and ``intercept_``."""
        w = weights.w.reshape(self.blocks, -1)
        constant = w[:, -1].copy() if self.extra else np.full(self.blocks, weights.base)
        return w[:, : self.features].copy(), constant


HEADING = "Parameters\n----------\n"
ENTRY = re.compile(r"^([\w, ]+):.*(?:\n .*)*", re.MULTILINE)


def derive(cls: type, learner: type[Learner]) -> None:
    """Make ``cls``, which derives from a dataclass, one with the fields of ``learner`` too, and with their docstring.

    A default that the class body gives replaces the learner's, and fields that it declares come after them. The fields
    of all learners are left out, as examples have no base scores.
    """
    common = {field.name for field in fields(Learner)}
    names, kinds = [each.name for each in fields(learner) if each.name not in common], get_type_hints(learner)
    for field in fields(learner):
        if field.name in names and field.name not in vars(cls) and field.default is not MISSING:
            setattr(cls, field.name, field.default)
    cls.__annotations__ = {name: kinds[name] for name in names} | get_annotations(cls)
    (summary, _, own), (rule, _, its) = (cleandoc(each.__doc__ or "").partition(HEADING) for each in (cls, learner))
    entries = list[str]()
    for entry in ENTRY.finditer(its):
        if parameters := ", ".join(name for name in entry[1].split(", ") if name in names):
            entries.append(parameters + entry[0].removeprefix(entry[1]))
    parent: Any = cls.__mro__[1]
    rest = f"{', '.join(field.name for field in fields(parent))}: see {parent.__name__}."
    cls.__doc__ = "\n".join([(summary or rule).strip(), "", HEADING.rstrip(), *entries, *own.splitlines(), rest])
    dataclass(eq=False, repr=False, kw_only=True)(cls)


@dataclass(init=False, eq=False, repr=False, kw_only=True)
class OnlineClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc] # scikit-learn has no types
    """Base of the classifiers: linear, online, with one learner each.

    ``class Mine(OnlineClassifier, learner=MyLearner): ...`` makes a classifier of a learner. Its parameters are those
    of the learner, under the same names, with the same defaults and ranges, and those below.

    An example is a list whose candidates are the classes. With two classes the second one holds the features and the
    first one is empty; with more, every class has a copy of the features (the joint feature map). The intercept is the
    weight of a base score with two classes and a learner that treats that like a feature (``base_like_feature``), and
    float32 nonzeros of sparse input are trained on as they are; else it is the weight of one more column. Values are
    read as float32, weights are float64.

    Parameters
    ----------
    epochs: passes over the examples in ``fit``, ≥ 1.
    shuffle: visit the examples in an order that is drawn again for every pass. Then the result does not depend on the
        order of the rows. Otherwise they are visited as given.
    average: the predictor. "last": the weights after the last update (trains fastest); "average": the mean of all
        weights, by the visits that they survived, the default but where the last is better on held-out training
        examples (CW, SGD, truncated gradients, Winnow: docs/estimators.md).
    fit_intercept: learn a constant, as the weight of a feature that is always 1.
    class_weight: what the weight of a row is multiplied by: {class: weight}, or "balanced" (``fit`` alone), with which
        all classes weigh the same in sum.
    random_state: seed of the orders: an int, a numpy RandomState, or None for a different one in each call of ``fit``.

    Attributes
    ----------
    classes_: [k], sorted.
    coef_: float64 [1, D] for two classes, else [k, D].
    intercept_: float64 [1] or [k].
    n_iter_: passes made.
    n_features_in_, feature_names_in_: D, and the names of the columns where X has some.
    """

    learner: ClassVar[type[Learner]]
    base_like_feature: ClassVar[bool] = False  # is the weight of a base score learned like that of any feature?

    epochs: Count = 10
    shuffle: bool = True
    average: Predictor = "average"
    fit_intercept: bool = True
    class_weight: Any = None
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
            ``rerank.contrib.sklearn.classifiers``.

        Raises
        ------
        ValueError: names the argument or parameter that is wrong, what was found and what is expected.
        """
        X, y = self._validated(X, y, reset=True)
        check_classification_targets(y)
        classes = np.unique(y)
        weight = weights_of(y, classes, sample_weight, self.class_weight)
        present = np.unique(y[weight > 0])
        if present.size < 2:
            condition = "" if present.size == classes.size else ", with a weight above 0"
            message = f"found one class, {present.tolist()[0]!r}{condition}"
            raise ValueError(f"{type(self).__name__} needs examples of at least two classes; {message}")
        return self._train(X, y, weight, classes, epochs=int(self.epochs), fresh=True)

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
            among them; parameters that need all rows at once.
        """
        first = not hasattr(self, "classes_")
        if first and classes is None:
            raise ValueError("classes is None; the first call of partial_fit needs all classes that will be seen")
        X, y = self._validated(X, y, reset=first)
        if isinstance(self.class_weight, str):
            raise ValueError("class_weight='balanced' needs all rows at once; call fit")
        every = np.unique(classes) if first else self.classes_
        if first:
            check_classification_targets(every)
        if classes is not None and not np.array_equal(np.unique(classes), every):
            raise ValueError(f"classes={np.unique(classes).tolist()} are not those of the first call, {every.tolist()}")
        weight = weights_of(y, every, sample_weight, self.class_weight)
        if every.size < 2:
            raise ValueError(f"{type(self).__name__} needs at least two classes; found one class, {every[0]!r}")
        return self._train(X, y, weight, every, epochs=1, fresh=first)

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores: float64 [n] for two classes, above 0 for the second one; else [n, k], the highest one wins."""
        check_is_fitted(self)
        X = validate_data(self, X, **MATRIX, reset=False)
        scores = np.asarray(safe_sparse_dot(X, self.coef_.T, dense_output=True)) + self.intercept_
        return np.asarray(scores[:, 0] if self.intercept_.size == 1 else scores)

    def predict(self, X: Any) -> np.ndarray:
        """The class of every row of ``X`` [n, D]; where classes tie, the first of them."""
        scores = self.decision_function(X)
        return np.asarray(self.classes_[(scores > 0).astype(np.int64) if scores.ndim == 1 else scores.argmax(axis=1)])

    def __sklearn_tags__(self) -> Any:
        """See scikit-learn: sparse input is accepted."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _learner(self, base_rate: float = 0.0) -> Learner:
        """The learner with this classifier's parameters; a base score weighs 0 at the start."""
        own = vars(self)
        parameters = {field.name: plain(own[field.name]) for field in fields(self.learner) if field.name in own}
        return self.learner(**parameters, base=0.0, base_rate=base_rate)

    def _validated(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, np.ndarray]:
        """X and y as arrays, after a check of the parameters that are not the learner's; it checks its own."""
        check_parameters(self, exclude=[field.name for field in fields(self.learner)])
        X, y = validate_data(self, X, y, **MATRIX, reset=reset)
        return X, y

    def _train(
        self, X: Any, y: np.ndarray, weight: np.ndarray, classes: np.ndarray, *, epochs: int, fresh: bool
    ) -> Self:
        """Make passes over the rows, from the start (``fresh``) or from what was learnt, and take what they lead to."""
        with as_value_errors(type(self).__name__):
            learner, layout, seed, state, done = self._begin(classes, fresh=fresh)
            examples = examples_of(X, np.searchsorted(classes, y), classes, weight)
            visits = visits_of(examples, bool(self.shuffle), constant=layout.bias)
            weight = visits.weight if learner.dual else visits.importance  # a dual variable stands for all equal rows
            lists = layout.lists(replace(examples, weight=weight))
            right, shuffle = lists.lists[:-1] + examples.label, bool(self.shuffle)
            training = train(
                learner, ListProblem(lists, right, seed, shuffle, visits=visits.sequence), epochs=epochs,
                predictor=self.average, start=(learner.for_corpus(state, lists.candidate_count), done),
            )  # fmt: skip
        self._trained, self.classes_ = (learner, layout, seed, training.state), classes
        self.coef_, self.intercept_ = layout.parts(training.weights[self.average])
        self.n_iter_ = done + len(training.history)
        return self

    def _begin(self, classes: np.ndarray, *, fresh: bool) -> tuple[Learner, Blocks, int, State, int]:
        """The learner, its layout, the seed of orders and the state to go on with, and the passes made so far."""
        bias, two = bool(self.fit_intercept), classes.size == 2
        as_base = bias and two and self.base_like_feature
        layout = Blocks(self.n_features_in_, 1 if two else classes.size, bias, as_base, self.average != "last")
        learner = self._learner(float(as_base))
        if fresh:
            learner = accept(learner)
            return learner, layout, seed_of(self.random_state), layout.start(learner), 0
        old_learner, old_layout, seed, state = self._trained
        shapes, old_shapes = (
            [array.shape for array in replace(layout, features=1).start(each)] for each in (learner, old_learner)
        )
        if layout != old_layout or shapes != old_shapes:
            message = "these parameters need another state than the one so far; they cannot change between calls of"
            raise ValueError(f"{message} partial_fit: call fit")
        return learner, layout, seed, state, self.n_iter_


SHARED_FIELDS = tuple(field.name for field in fields(OnlineClassifier))


class PerceptronClassifier(OnlineClassifier, learner=learners.get("perceptron")):
    """The perceptron (Rosenblatt 1958; averaged and voted: Freund & Schapire 1999): a mistake adds the example."""

    base_like_feature = True


class PassiveAggressiveClassifier(OnlineClassifier, learner=learners.get("pa")):
    """Passive-aggressive: the smallest step that gives the example a margin of 1 (Crammer et al. 2006)."""

    base_like_feature = True


class SGDClassifier(OnlineClassifier, learner=learners.get("sgd")):
    """Stochastic gradient descent."""

    base_like_feature = True
    average: Predictor = "last"


class TruncatedGradientClassifier(OnlineClassifier, learner=learners.get("tg")):
    """Gradient descent whose weights are shrunk towards 0 now and then (Langford et al. 2009)."""

    average: Predictor = "last"


class RDAClassifier(OnlineClassifier, learner=learners.get("rda")):
    """Regularised dual averaging (Xiao 2010); with ``update="mistakes"`` its voted form (Xu et al. 2013)."""


class ARDAClassifier(OnlineClassifier, learner=learners.get("arda")):
    """Dual averaging with a step size for every weight, whatever the units of the features (Duchi et al. 2011)."""


class FTRLClassifier(OnlineClassifier, learner=learners.get("ftrl")):
    """Follow the proximally regularised leader: a rate of its own for every weight (McMahan et al. 2013)."""


class SecondOrderPerceptronClassifier(OnlineClassifier, learner=learners.get("sop")):
    """The second-order perceptron (Cesa-Bianchi et al. 2005)."""

    base_like_feature = True


class CWClassifier(OnlineClassifier, learner=learners.get("cw")):
    """Confidence-weighted learning (Crammer et al. 2008): an update makes the example right with a probability."""

    base_like_feature = True
    average: Predictor = "last"


class AROWClassifier(OnlineClassifier, learner=learners.get("arow")):
    """Adaptive regularisation of weights (Crammer et al. 2009): confidence-weighted learning that tolerates noise."""

    base_like_feature = True


class SCWClassifier(OnlineClassifier, learner=learners.get("scw")):
    """Soft confidence-weighted learning (Wang et al. 2012)."""

    base_like_feature = True


class NHERDClassifier(OnlineClassifier, learner=learners.get("nherd")):
    """Normal herd: a Gaussian over weights that moves and shrinks with every margin below 1 (Crammer & Lee 2010)."""

    base_like_feature = True
    C = 0.01  # the learner's own default is for lists with base scores


class WinnowClassifier(OnlineClassifier, learner=learners.get("lm-uwin")):
    """Regularised Winnow (Zhang 2001), balanced: weights may have both signs."""

    average: Predictor = "last"
