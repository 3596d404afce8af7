"""The attributes of a trained classifier: weights and votes, made when they are asked for."""

from dataclasses import replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from rerank.contrib.sklearn.probability import Covariance
from rerank.data.labelled import Labelled
from rerank.learn.base import Learner
from rerank.learn.log import UpdateLog
from rerank.learn.stream import Stream
from rerank.learn.voting.votes import Votes


class Ballots:
    """A log over the examples of several batches: their updates in order, as if made on one corpus.

    Examples without an update are not kept.
    """

    def __init__(self) -> None:
        self._examples: list[Labelled] = []
        self._logs: list[dict[str, np.ndarray]] = []

    def __len__(self) -> int:
        """The number of times that updates were added."""
        return len(self._logs)

    def add(self, log: UpdateLog, examples: Labelled) -> None:
        """The updates of further passes, made on ``examples``."""
        arrays, k = log.arrays(), len(examples.classes)  # k candidates per example
        used, place = np.unique(arrays["lists"], return_inverse=True)
        kept = sum(part.size for part in self._examples)
        cause, choice = np.divmod(arrays["candidate"], k)
        self._examples.append(examples.take(used))
        self._logs.append(
            arrays | {"lists": kept + place, "candidate": (kept + np.searchsorted(used, cause)) * k + choice}
        )

    def votes(self, learner: Learner) -> Votes:
        """All predictors of ``learner`` from the first."""
        logs = self._logs
        joined = {name: np.concatenate([log[name] for log in logs]) for name in ("lists", "candidate", "a", "rate")}
        entries = np.cumsum(np.concatenate([np.diff(log["first"]) for log in logs]))
        joined["first"] = np.concatenate([[0], entries]).astype(np.int64)
        joined["survived"] = np.concatenate([*(log["survived"][:-1] for log in logs), logs[-1]["survived"][-1:]])
        return learner.votes(UpdateLog.from_arrays(joined), join(self._examples).corpus())


def join(parts: list[Labelled]) -> Labelled:
    """The examples of all ``parts`` in order; they have the same classes and columns."""
    rows = np.concatenate([[0], np.cumsum(np.concatenate([np.diff(part.rows) for part in parts]))])
    names = ("columns", "values", "label", "weight")
    arrays: dict[str, Any] = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    return replace(parts[0], rows=rows, **arrays)


LAZY = ("coef_", "intercept_", "_votes")
TRAINING = ("_stream", "_ballots")  # what predictions do not need


class Published:
    """Weights and votes of a classifier whose training state is ``_stream``, with ``_ballots`` where predictors vote.

    Of batches nothing is made that has as many numbers as there are columns: ``_conclude`` forgets what was shown
    before, and the first who asks has it made. Nothing that is shown changes with the state.
    """

    keep_state: bool
    n_features_in_: int
    n_iter_: int
    _stream: Stream
    _ballots: Ballots | None
    _averaged: bool  # is the predictor the average?
    _bias: bool
    _apart: bool  # is the intercept the weight of the base score, and no column's?

    @cached_property
    def coef_(self) -> Any:
        """See the attributes of the class."""
        self._publish()
        return vars(self)["coef_"]

    @cached_property
    def intercept_(self) -> Any:
        """See the attributes of the class."""
        self._publish()
        return vars(self)["intercept_"]

    @cached_property
    def _votes(self) -> Votes | None:
        """All predictors, where they vote."""
        return self._ballots.votes(self._stream.learner) if self._ballots else None

    def sparsify(self) -> Self:
        """Keep ``coef_`` as a sparse matrix, for weights most of which are 0; the next pass makes it dense again."""
        check_is_fitted(self)
        self.coef_ = sparse.csr_array(self.coef_)
        return self

    def densify(self) -> Self:
        """Keep ``coef_`` as an array, as it is after a fit."""
        check_is_fitted(self)
        self.coef_ = self.coef_.toarray() if sparse.issparse(self.coef_) else self.coef_
        return self

    def __getstate__(self) -> dict[str, Any]:
        """The state for a pickle; see ``keep_state``."""
        if hasattr(self, "_stream"):
            self._complete()
        held: dict[str, Any] = super().__getstate__()  # type: ignore[assignment] # scikit-learn's
        return held if self.keep_state else {name: value for name, value in held.items() if name not in TRAINING}

    def _conclude(self, log: UpdateLog | None, examples: Labelled) -> None:
        """Forget what was shown, which is no longer true after further passes over ``examples``, with a ``log`` where
        they vote."""
        self._forget()
        if log is None:
            self._ballots = None  # what is not logged cannot vote later
        elif self._ballots is not None:
            self._ballots.add(log, self._wide(examples))
        state, blocks = self._stream.state, 1 if len(examples.classes) == 2 else len(examples.classes)
        gaussian = getattr(self, "probability", False)
        self._covariance = Covariance.of(state, blocks, base=self._apart) if gaussian else None

    def _wide(self, examples: Labelled) -> Labelled:
        """The examples with a column for the intercept, if it has one."""
        return examples.with_bias() if self._bias and not self._apart else examples

    def _forget(self) -> None:
        """Nothing is shown until somebody asks for it again."""
        shown: dict[str, Any] = self.__dict__
        for name in LAZY:
            shown.pop(name, None)
        self._covariance = None

    def _complete(self) -> None:
        """Make all that can be asked for."""
        for name in LAZY:
            getattr(self, name)

    def _publish(self) -> None:
        """Set the weights as scikit-learn has them."""
        learner = self._stream.learner
        with np.errstate(all="ignore"):  # what is not finite is refused below
            w, base, _ = (learner.average if self._averaged else learner.last)(self._stream.closed())
        if not (np.isfinite(w).all() and np.isfinite(base)):
            raise ValueError(
                f"{type(self).__name__}: the weights overflowed in {self.n_iter_} passes; scale X or take smaller steps"
            )
        w = w.reshape(-1, self.n_features_in_ + (self._bias and not self._apart))
        self.coef_ = w[:, : self.n_features_in_].copy()
        self.intercept_ = w[:, -1].copy() if self._bias and not self._apart else np.full(w.shape[0], base)
