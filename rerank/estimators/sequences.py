"""A tagger of sequences over dictionaries of attributes, as python-crfsuite and sklearn-crfsuite take them."""

import math
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from rerank.estimators.parameters import as_value_errors, check_parameters, seed_of
from rerank.estimators.ranker import learner_of
from rerank.learn.rules.maxent import Maxent
from rerank.learn.settings import Count
from rerank.learn.spaces.chain import UNKNOWN, Chains, chains_of
from rerank.learn.spaces.decoding import decode, k_best, marginals
from rerank.learn.spaces.training import train_chains


@dataclass(eq=False, repr=False, kw_only=True)
class SequenceTagger(BaseEstimator):  # type: ignore[misc] # scikit-learn has no types
    """A tagger: it labels every token of a sequence, and knows which labels follow each other (a chain of first order).

    X is a list of sequences, these are lists of tokens, and a token is a dict: a text makes an attribute of key and
    value, a number is the value of the attribute ``key``, True and False are 1 and 0; a list or set of texts, or a
    dict, is read as a token of its own, with ``key:`` before all attributes. A token may also be a list or set of
    texts. y has a list of labels for every sequence.

    Parameters
    ----------
    learner: the name of a learner ("perceptron", "pa", "arow", "vrda", ...), a dict of its name and parameters as in
        recipes ({"name": "vrda", "l1": 0.1}), or a learner. "maxent" makes a conditional random field: it finds the
        optimum, with the penalty ``l2`` (1 by default), and has no epochs and no seed.
    epochs: passes over the sequences, ≥ 1.
    shuffle: visit the sequences in an order that is drawn again for every pass.
    average: the predictor: "average", the mean of all weights by the sequences that they survived, or "last".
    random_state: seed of the orders: an int, a numpy RandomState, or None for a different one in each call of ``fit``.

    Attributes
    ----------
    classes_: the labels, sorted.
    attributes_: {attribute: its number}, those of the training set.
    transitions_: float64 [K, K], the weight of one label after another (from, to); state_: float64 [A, K], that of
        an attribute with a label.
    n_iter_: passes made.

    Reference for the formats of tokens: python-crfsuite.readthedocs.io, ItemSequence.
    """

    learner: Any = "perceptron"
    epochs: Count = 10
    shuffle: bool = True
    average: Literal["last", "average"] = "average"
    random_state: Any = None

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from sequences ``X`` with labels ``y``, from the start.

        Raises
        ------
        ValueError: names the parameter, or the sequence and token (from 0), with what was found and what is expected.
        """
        check_parameters(self, ("epochs", "shuffle", "average"))
        X, y = list(X), [list(labels) for labels in y]
        if len(X) != len(y):
            raise ValueError(f"X has {len(X)} sequences and y has {len(y)}; expected labels for every sequence")
        for i, (tokens, labels) in enumerate(zip(X, y, strict=True)):
            if len(tokens) != len(labels):
                raise ValueError(f"sequence {i} has {len(tokens)} tokens and {len(labels)} labels; expected as many")
        classes = sorted({label for labels in y for label in labels})
        if not classes:
            raise ValueError("found no tokens; expected at least one sequence with tokens and labels")
        with as_value_errors(type(self).__name__):
            learner, _ = learner_of(self.learner, None)
            known: dict[str, int] = {}
            chains = _chains(X, y, classes, known, new=True)
            how: dict[str, Any] = {"epochs": int(self.epochs), "shuffle": bool(self.shuffle)}
            how |= {"seed": seed_of(self.random_state), "predictor": self.average}
            training = train_chains(learner, chains, **how)
        K = len(classes)
        self.classes_, self.attributes_, self.n_iter_ = classes, known, training.epoch
        self._weights = training.weights[self.average].w
        self._probable = isinstance(learner, Maxent)
        self.transitions_, self.state_ = self._weights[: K * K].reshape(K, K), self._weights[K * K :].reshape(-1, K)
        return self

    def predict(self, X: Any) -> list[list[Any]]:
        """The best labels of every sequence."""
        chains = self._read(X)
        return [[self.classes_[label] for label in labels] for labels in _parted(chains, decode(chains, self._weights))]

    def predict_n_best(self, X: Any, n: int) -> list[list[tuple[float, list[Any]]]]:
        """For every sequence up to n (score, labels), the best ones, best first."""
        chains = self._read(X)
        scores, labels = k_best(chains, self._weights, n)
        found = zip(scores, *(_parted(chains, row) for row in labels), strict=True)
        return [
            [(float(s), [self.classes_[y] for y in row]) for s, row in zip(score, rows, strict=True) if s > -math.inf]
            for score, *rows in found
        ]

    def predict_marginals(self, X: Any) -> list[list[dict[Any, float]]]:
        """For every token {label: its probability}; of "maxent" alone, whose scores are logarithms of probabilities."""
        chains = self._read(X)
        if not self._probable:
            raise ValueError(
                f"predict_marginals needs probabilities, which learner={self.learner!r} has not; maxent has"
            )
        found = _parted(chains, marginals(chains, self._weights))
        return [[dict(zip(self.classes_, token, strict=True)) for token in tokens.tolist()] for tokens in found]

    def score(self, X: Any, y: Any) -> float:
        """The share of the tokens whose label is right."""
        pairs = list(zip(self.predict(X), y, strict=True))
        right = sum(a == b for found, labels in pairs for a, b in zip(found, labels, strict=True))
        return float(right / max(1, sum(len(found) for found, _ in pairs)))

    def _read(self, X: Any) -> Chains:
        check_is_fitted(self)
        with as_value_errors(type(self).__name__):
            return _chains(list(X), None, self.classes_, self.attributes_, new=False)


def _parted(chains: Chains, rows: np.ndarray) -> list[np.ndarray]:
    """The rows of each sequence."""
    return [rows[first:end] for first, end in pairwise(chains.starts.tolist())]


def _chains(X: list[Any], y: Any, classes: Sequence[Any], known: dict[str, int], *, new: bool) -> Chains:
    """Sequences as arrays; with ``new``, attributes that are not ``known`` are added, else they are left out."""
    ids: list[int] = []
    values: list[float] = []
    rows = [0]
    for i, tokens in enumerate(X):
        if isinstance(tokens, (str, Mapping)):
            raise ValueError(f"sequence {i} is a {type(tokens).__name__}; expected a list of tokens, each a dict")
        for t, token in enumerate(tokens):
            for name, value in attributes(token, f"sequence {i}, token {t}"):
                number = known.setdefault(name, len(known)) if new else known.get(name, UNKNOWN)
                if number >= 0:
                    ids.append(number)
                    values.append(value)
            rows.append(len(ids))
    place = {label: number for number, label in enumerate(classes)}
    x = np.array(values, np.float32)
    return chains_of(
        np.cumsum([0, *map(len, X)]), np.array(rows), np.array(ids, np.uint32),
        None if y is None else np.array([place[label] for labels in y for label in labels], np.int32), len(classes),
        attribute_count=len(known), values=None if (x == 1.0).all() else x,
    )  # fmt: skip


def attributes(token: Any, where: str) -> Iterator[tuple[str, float]]:
    """(attribute, value) of all that a token has; see ``SequenceTagger``.

    Raises
    ------
    ValueError: says where, what was found and what is expected.
    """
    if isinstance(token, Mapping):
        for key, value in token.items():
            if not isinstance(key, str):
                raise ValueError(f"{where}: found the key {key!r}; expected a text")
            if isinstance(value, str):
                yield f"{key}={value}", 1.0
            elif isinstance(value, (Mapping, list, tuple, Set)):
                yield from ((f"{key}:{name}", x) for name, x in attributes(value, f"{where}, {key}"))
            elif isinstance(value, (bool, int, float, np.bool_, np.number)) and math.isfinite(value):
                yield key, float(value)
            else:
                raise ValueError(
                    f"{where}: {key!r} has the value {value!r}; expected a text, a finite number, True or False, "
                    "or a list, set or dict of them"
                )
    elif isinstance(token, (list, tuple, Set)) and all(isinstance(name, str) for name in token):
        names = sorted(token) if isinstance(token, Set) else token
        yield from ((name, 1.0) for name in dict.fromkeys(names))
    else:
        raise ValueError(f"{where}: found {token!r}; expected a dict of attributes, or a list or set of texts")
