"""A ranker over arrays: the rows of a matrix are candidates, and lists of them are learned from by the list trainer."""

import warnings
from dataclasses import dataclass, replace
from itertools import count
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted, validate_data

from rerank.base.ranges import Count, Range
from rerank.base.registry import build
from rerank.contrib.sklearn.matrix import MATRIX, lists_of, numbers, offsets_of, require_differences
from rerank.data.corpus import Corpus, remarks_on_all
from rerank.learn.base_weight import BaseSearch, start_weight
from rerank.learn.contract import as_value_errors, check_parameters, learner_of, seed_of
from rerank.learn.folds import mixture, with_base_column
from rerank.learn.learner import Weights
from rerank.learn.rules.maxent import Maxent
from rerank.learn.scoring import rows_of_weights
from rerank.learn.train import ListProblem, Training, score_on, train
from rerank.metrics.gain import Gain
from rerank.metrics.metric import best_of_lists, metrics, oracles, two_valued
from rerank.recipes.settings import as_settings


@dataclass(eq=False, repr=False, kw_only=True)
class ListRanker(BaseEstimator):  # type: ignore[misc] # scikit-learn has no types
    """A ranker, linear or of trees: learns which candidate of every list is best. Candidates are rows, those of a list
    together.

    Every learner and loss of recipes works, and the weights are to the bit those that a recipe trains on
    lists with the same features, gains and base scores. Values are float32, relative to the mean of their list where
    these would not tell its candidates apart (not for trees), weights float64. Trees see columns that are the same in
    a list, such as the length of a query; those of recipes do not.

    Parameters
    ----------
    learner: the name of a learner ("maxent", "perceptron", "arow", ...), a dict of its name and parameters as in
        recipes ({"name": "arow", "r": 1.0}), or a learner. "maxent" finds the optimum of the conditional log-linear
        model, with a penalty that is chosen by cross-validation over the lists and is on columns in units of their
        deviation where X is dense, and "lambdamart" grows trees, as many as are best on ``eval_set`` or, with early
        stopping, on the lists held out; epochs and orders are of the other learners. With base scores its
        ``base``, their weight, is a number or "auto" (the default unless a learner is given): one more column of these
        two, and for the others found on the lists that epochs are compared on.
    loss: the learner's loss; None for its default.
    epochs: passes over the lists, ≥ 1; with ``early_stopping`` at most this many.
    shuffle: visit the lists in an order that is drawn again for every pass.
    average: the predictor: "average", the mean of all weights by the lists that they survived, or "last".
    ties: where several candidates of a list have its highest gain: "any" of them is right, or the one with the highest
        "base" score; "auto" means any if there are no base scores, or no more than two different gains.
    early_stopping: stop when ``n_iter_no_change`` passes in a row bring no better score.
    validation_fraction: with early stopping, or to weigh base scores, and without ``eval_set``: the share of the lists,
        the last ones, that are not trained on but used for that; above 0, below 1, and at least one list.
    n_iter_no_change: with early stopping, the number of passes without a better score that end training, ≥ 1.
    random_state: seed of the orders: an int, a numpy RandomState, or None for a different one in each call of ``fit``.
    metric: what ``score`` measures and penalties, passes and the weight of base scores are chosen by: None for the
        mean gain of the best candidates, or a metric of the order for gains that are grades: "ndcg@10", "map", or a
        dict of its name and settings.

    Attributes
    ----------
    coef_: float64 [D]; all 0 where there are trees.
    trees_: the trees, whose ``gains`` say how much the columns bettered them, or None.
    base_weight_: what the base score weighs; 0 without base scores.
    n_iter_: passes made; best_iteration_: how many of them led to the weights.
    validation_scores_: the mean gain on ``eval_set`` (or the lists held out) after every pass; empty without either.
    n_features_in_, feature_names_in_: D, and the names of the columns where X has some.
    """

    __metadata_request__fit: ClassVar[Any] = {"gain": UNUSED, "group": True, "qid": True, "base": True}
    __metadata_request__predict: ClassVar[Any] = {"base": True}
    __metadata_request__score: ClassVar[Any] = {"gain": UNUSED, "group": True, "qid": True, "base": True}

    learner: Any = "maxent"
    loss: str | None = None
    epochs: Count = 10
    shuffle: bool = True
    average: Literal["last", "average"] = "average"
    ties: Literal["auto", "any", "base"] = "auto"
    early_stopping: bool = False
    validation_fraction: Annotated[float, Range(above=0, below=1)] = 0.1
    n_iter_no_change: Count = 5
    random_state: Any = None
    metric: Any = None

    def fit(
        self, X: Any, gain: Any, group: Any = None, qid: Any = None, base: Any = None, eval_set: Any = None
    ) -> Self:
        """Learn from lists, from the start.

        Parameters
        ----------
        X: dense, sparse or a data frame [n, D]: a row per candidate, the candidates of a list next to each other.
        gain: [n], how good a candidate is, higher for better; only comparisons within a list matter to most losses.
        group, qid: one of them: the sizes of the lists [L], or for every row the id of its list [n].
        base: [n], the score of the system that made the candidates, higher for better.
        eval_set: (X, gain, lists) or (X, gain, lists, base) of other lists, ``lists`` being what this call has as
            ``group`` or ``qid``. The pass after which the mean gain of the chosen is highest there is the one that
            counts.

        Raises
        ------
        ValueError: names the argument or parameter that is wrong, what was found and what is expected.
        """
        check_parameters(self)
        X = validate_data(self, X, **MATRIX)
        if gain is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None: it is the gain")
        with as_value_errors(type(self).__name__):
            learner, automatic = learner_of(self.learner, self.loss)
            automatic = automatic and base is not None
            plain = not learner.linear  # as trees compare values of different lists
            lists = self._with_statistics(lists_of(X, gain, group, qid, base, plain=plain))
            dev = None if eval_set is None else self._others(eval_set, qid is None, base is not None, plain)
            require_differences(lists)
            if not issparse(X):
                for line in remarks_on_all(map("column {} of X".format, count()), X.T, lists.lists):
                    warnings.warn(line, stacklevel=2)
                lists = replace(lists, free=lists.width) if isinstance(learner, Maxent) else lists
            if dev is None and (automatic or self.early_stopping) and not isinstance(learner, Maxent):
                lists, dev = self._split(lists)
            any_ties = self.ties == "any" or (self.ties == "auto" and (base is None or two_valued(lists)))
            seed = seed_of(self.random_state)
            problem = ListProblem(lists, oracles(lists), seed, bool(self.shuffle), any_ties)
            if isinstance(learner, Maxent):
                training, is_better = self._optimise(learner, problem, dev, automatic)
            elif automatic and dev is not None:
                training, is_better = self._search_base(learner, problem, dev)
            else:
                training, is_better = self._train(learner, problem, dev), True
        if not is_better:
            warnings.warn("nothing was better than the base scores: the ranker is the base itself", stacklevel=2)
            training.weights[self.average] = Weights(np.zeros(lists.width), 1.0)
        weights, self._has_base = training.weights[self.average], base is not None
        self.validation_scores_ = [line["dev"] for line in training.history if "dev" in line]
        self.coef_, self.trees_, self.base_weight_ = weights.w, weights.trees, weights.base if self._has_base else 0.0
        self.n_iter_, self.best_iteration_ = len(training.history), training.epoch
        return self

    def _train(self, learner: Any, problem: ListProblem, dev: Corpus | None, observer: Any = None) -> Training:
        """Train a learner, or grow trees; their scores on ``dev`` are in the history."""
        if not learner.linear:
            training: Training = learner.grow(problem.corpus, dev, problem.seed)
            training.history[-1] |= {} if dev is None else {"dev": self._measure(dev, training.weights["last"])}
            return training
        if observer is None and dev is not None:
            observer = score_on(lambda weights: self._measure(dev, weights))
        return train(
            learner, problem, epochs=int(self.epochs), predictor=self.average,
            patience=int(self.n_iter_no_change) if self.early_stopping else None,
            observers=[] if observer is None else [observer],
        )  # fmt: skip

    def _optimise(
        self, learner: Maxent, problem: ListProblem, dev: Corpus | None, automatic: bool
    ) -> tuple[Training, bool]:
        """The optimum for the best penalties, mixed with those of folds, and whether it is better than the base."""
        learner = with_base_column(learner, problem.corpus) if automatic else learner
        members = mixture(learner, problem.corpus, self._metric(), oracles, any_ties=problem.any_ties)
        ((columns, l2),) = members.final_penalties().items()
        training = self._train(replace(learner, l2=l2), problem, dev)
        mixed = members.combine({columns: training.weights["last"]}, problem.corpus.width)
        training.weights = dict.fromkeys(training.weights, mixed)
        return training, members.beaten or not automatic

    def _search_base(self, learner: Any, problem: ListProblem, dev: Corpus) -> tuple[Training, bool]:
        """Training with the best weight of the base score on ``dev``, and whether it is better than the base."""
        search = BaseSearch(dev, self._metric())
        start = start_weight(problem.corpus) if learner.linear else 0.0
        training = self._train(replace(learner, base=start), problem, dev, search.observe)
        if learner.linear:
            search.finish(training, self.average)
        return training, max(line["dev"] for line in training.history) > search.base_score

    def predict(self, X: Any, base: Any = None) -> np.ndarray:
        """float64 [n]: the scores of the rows of ``X``, higher for better; comparable within a list.

        base: [n], the base scores, if the ranker was fitted with some.
        """
        check_is_fitted(self)
        X = validate_data(self, X, **MATRIX, reset=False)
        if self._has_base and base is None:
            raise ValueError("base is None; this ranker was fitted with base scores, give those of the rows of X")
        if base is not None and not self._has_base:
            raise ValueError("base holds scores; this ranker was fitted without base scores, leave base out")
        if self.trees_ is not None:
            n = X.shape[0]
            scores = self.trees_.scores(lists_of(X, np.zeros(n), group=[n], base=base, plain=True))
        else:
            scores = X @ self.coef_
        return np.asarray(scores if base is None else scores + self.base_weight_ * numbers("base", base, X.shape[0]))

    def best(self, X: Any, group: Any = None, qid: Any = None, base: Any = None) -> np.ndarray:
        """int64 [L]: the row of the best candidate of every list; ties go to the higher base score, then the first row.

        group, qid, base: as in ``fit``.
        """
        return self._choose(self.predict(X, base), group, qid, base)

    def score(
        self, X: Any, gain: Any, group: Any = None, qid: Any = None, base: Any = None, sample_weight: Any = None
    ) -> float:
        """The mean gain of the best candidates of all lists, or ``metric``; arguments as in ``fit``.

        sample_weight: [n]; a list counts as the row that is chosen from it. Not for a metric of the order.
        """
        scores = self.predict(X, base)
        if self.metric is not None:
            if sample_weight is not None:
                raise ValueError(f"metric={self.metric!r} weighs all lists alike; leave sample_weight out")
            ties = None if base is None else np.asarray(base, np.float64)
            grades = numbers("gain", gain, scores.size)
            return float(self._metric().of_lists(offsets_of(group, qid, scores.size), scores, grades, ties))
        rows = self._choose(scores, group, qid, base)
        weight = None if sample_weight is None else numbers("sample_weight", sample_weight, scores.size)[rows]
        return float(np.average(numbers("gain", gain, scores.size)[rows], weights=weight))

    def _metric(self) -> Any:
        """The metric; one of an order has ``of_lists`` and ``statistics``."""
        if self.metric is None:
            return Gain()
        with as_value_errors(type(self).__name__):
            metric = build(metrics, as_settings(self.metric), "metric")
        if not metric.ordered:
            raise ValueError(f"metric={self.metric!r}; expected None or a metric of the order, such as 'ndcg@10'")
        return metric

    def _with_statistics(self, lists: Corpus) -> Corpus:
        """``lists`` with the statistics of the metric."""
        if not (metric := self._metric()).ordered:
            return lists
        stats, reference = metric.statistics(lists.lists, lists.gain)
        return replace(lists, stats=stats, reference=reference)

    def _measure(self, lists: Corpus, weights: Weights) -> float:
        """The score of ``weights`` on lists held out."""
        metric = self._metric()
        return float(metric.score(rows_of_weights(lists, weights, metric), lists.reference))

    def __sklearn_tags__(self) -> Any:
        """See scikit-learn: sparse input is accepted, and gains are needed."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags

    def _choose(self, scores: np.ndarray, group: Any, qid: Any, base: Any) -> np.ndarray:
        offsets = offsets_of(group, qid, scores.size)
        return best_of_lists(offsets, scores, np.zeros(scores.size) if base is None else np.asarray(base, np.float64))

    def _others(self, eval_set: Any, by_size: bool, has_base: bool, plain: bool) -> Corpus:
        """The lists of ``eval_set``."""
        form = f"(X, gain, {'group' if by_size else 'qid'}{', base' * has_base})"
        if not isinstance(eval_set, (tuple, list)) or len(eval_set) != 3 + has_base:
            value = f"{len(eval_set)} items" if isinstance(eval_set, (tuple, list)) else type(eval_set).__name__
            raise ValueError(f"eval_set is {value}; expected {form}, as in this call of fit")
        X = validate_data(self, eval_set[0], **MATRIX, reset=False)
        try:
            options = {"group" if by_size else "qid": eval_set[2], "base": eval_set[3] if has_base else None}
            return self._with_statistics(lists_of(X, eval_set[1], **options, plain=plain))
        except ValueError as error:
            raise ValueError(f"eval_set: {error}") from None

    def _split(self, lists: Corpus) -> tuple[Corpus, Corpus]:
        """All but the last lists, and these; no nonzeros are copied."""
        count = lists.list_count
        first = count - max(1, int(count * self.validation_fraction))
        if first < 1:
            raise ValueError(
                f"found {count} list, none of which can be held out to compare epochs or weigh base scores; expected "
                "two lists or more, or eval_set"
            )
        return lists.slice(0, first), lists.slice(first, count)
