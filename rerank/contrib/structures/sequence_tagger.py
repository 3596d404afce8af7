"""A tagger of sequences over dictionaries of attributes, as python-crfsuite and sklearn-crfsuite take them."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, compress, count, pairwise, repeat
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from rerank.base.errors import DataError
from rerank.contrib.structures.attributes import named_values
from rerank.contrib.structures.chain import UNKNOWN, Chains, chains_of, decode, k_best
from rerank.contrib.structures.training import marginals, train_chains
from rerank.kernels.compile import kernel
from rerank.learn.parameters import as_value_errors, check_parameters, learner_of, seed_of
from rerank.learn.rules.maxent import Maxent
from rerank.learn.settings import Count


@dataclass(eq=False, repr=False, kw_only=True)
class SequenceTagger(BaseEstimator):  # type: ignore[misc] # scikit-learn has no types
    """A tagger: it labels every token of a sequence, and knows which labels follow each other (a chain of first order).

    X is a list of sequences, these are lists of tokens, and a token is a dict (or a list or set of texts): see
    ``rerank.contrib.structures.attributes.named_values``. y has a list of labels for every sequence.

    Parameters
    ----------
    learner: the name of a learner ("perceptron", "pa", "arow", "vrda", ...), a dict of its name and parameters as in
        recipes ({"name": "vrda", "l1": 0.1}), or a learner. "maxent" makes a conditional random field: it finds the
        optimum, with the penalty ``l2`` (by default one of 1, .1, .01 and .001, by which most labels are right in
        sequences held out), and has no epochs and no seed.
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
        check_parameters(self)
        X, y = _sequences(X, "X"), _sequences(y, "y")
        if len(X) != len(y):
            raise ValueError(f"X has {len(X)} sequences and y has {len(y)}; expected labels for every sequence")
        for i, (tokens, labels) in enumerate(zip(X, y, strict=True)):
            if len(tokens) != len(labels):
                raise ValueError(f"sequence {i} has {len(tokens)} tokens and {len(labels)} labels; expected as many")
        different = {label for labels in y for label in labels}
        if len({type(label) for label in different}) > 1 or any(label != label for label in different):
            raise ValueError(f"found labels that cannot be sorted, {list(different)[:3]!r}; expected texts")
        classes = sorted(different)
        if not classes:
            raise ValueError("found no tokens; expected at least one sequence with tokens and labels")
        with as_value_errors(type(self).__name__):
            learner, _ = learner_of(self.learner)
            known: dict[str, int] = {}
            chains = _chains(X, y, classes, known, new=True)
            training = train_chains(
                learner, chains, epochs=int(self.epochs), seed=seed_of(self.random_state), shuffle=bool(self.shuffle),
                predictor=self.average,
            )  # fmt: skip
        K = len(classes)
        self.classes_, self.attributes_, self.n_iter_ = classes, known, training.epoch
        self._weights = training.weights[self.average].w
        self._probable = isinstance(learner, Maxent)
        self.transitions_, self.state_ = self._weights[: K * K].reshape(K, K), self._weights[K * K :].reshape(-1, K)
        return self

    def predict(self, X: Any) -> list[list[Any]]:
        """The best labels of every sequence."""
        chains = self._read(X)
        return _parted(chains, [self.classes_[label] for label in decode(chains, self._weights).tolist()])

    def predict_n_best(self, X: Any, n: int) -> list[list[tuple[float, list[Any]]]]:
        """For every sequence up to n (score, labels), the best ones, best first."""
        if not isinstance(n, (int, np.integer)) or isinstance(n, bool) or n < 1:
            raise ValueError(f"n={n!r}; expected a whole number from 1")
        chains = self._read(X)
        scores, labels = k_best(chains, self._weights, n)
        best = [_parted(chains, [self.classes_[label] for label in row]) for row in labels.tolist()]
        return [
            [(score, best[r][i]) for r, score in enumerate(row) if score > -math.inf]
            for i, row in enumerate(scores.tolist())
        ]

    def predict_marginals(self, X: Any) -> list[list[dict[Any, float]]]:
        """For every token {label: its probability}; of "maxent" alone, whose scores are logarithms of probabilities."""
        chains = self._read(X)
        if not self._probable:
            raise ValueError("only the learner maxent has probabilities")
        rows = marginals(chains, self._weights).tolist()
        return _parted(chains, [dict(zip(self.classes_, row, strict=True)) for row in rows])

    def score(self, X: Any, y: Any) -> float:
        """The share of the tokens whose label is right."""
        pairs = list(zip(self.predict(X), y, strict=True))
        right = sum(a == b for found, labels in pairs for a, b in zip(found, labels, strict=True))
        return float(right / max(1, sum(len(found) for found, _ in pairs)))

    def _read(self, X: Any) -> Chains:
        check_is_fitted(self)
        with as_value_errors(type(self).__name__):
            return _chains(_sequences(X, "X"), None, self.classes_, self.attributes_, new=False)


def _sequences(sequences: Any, name: str) -> list[list[Any]]:
    """``X`` or ``y`` as lists."""
    what = "a list of tokens, each a dict" if name == "X" else "a list of labels"
    made = _as_list(sequences, name, "a list of sequences")
    return [_as_list(sequence, f"sequence {i} of {name}", what) for i, sequence in enumerate(made)]


def _as_list(values: Any, name: str, expected: str) -> list[Any]:
    if not isinstance(values, Iterable) or isinstance(values, (str, Mapping)):
        raise ValueError(f"found {values!r} for {name}; expected {expected}")
    return values if type(values) is list else list(values)


def _parted(chains: Chains, rows: list[Any]) -> list[list[Any]]:
    """The rows of each sequence."""
    return [rows[first:end] for first, end in pairwise(chains.starts.tolist())]


def _chains(X: list[Any], y: Any, classes: Sequence[Any], known: dict[str, int], *, new: bool) -> Chains:
    """Sequences as arrays; with ``new``, attributes that are not ``known`` are added, else they are left out."""
    sizes, ids, values = _lists_of_texts(X, known, new=new) or _any_tokens(X, known, new=new)
    place, kept = {label: number for number, label in enumerate(classes)}, ids >= 0
    rows = np.concatenate([[0], np.cumsum(kept)])[np.concatenate([[0], np.cumsum(sizes)])]
    return chains_of(
        np.cumsum([0, *map(len, X)]), rows, ids[kept],
        None if y is None else [place[label] for labels in y for label in labels], len(classes),
        attribute_count=len(known), values=None if (values == 1.0).all() else values[kept],
    )  # fmt: skip


Entries = tuple[np.ndarray, np.ndarray, np.ndarray]  # of T tokens: how many (int64 [T]); numbers, -1: unknown; values


def _any_tokens(X: list[Any], known: dict[str, int], *, new: bool) -> Entries:
    """The attributes of tokens of any kind, see ``named_values``."""
    ends, ids, values = [0], list[int](), list[float]()
    for i, sequence in enumerate(X):
        for t, token in enumerate(sequence):
            where = f"sequence {i}, token {t}"
            try:
                for name, value in named_values(token, where):
                    ids.append(known.setdefault(name, len(known)) if new else known.get(name, UNKNOWN))
                    values.append(value)
            except RecursionError:
                raise DataError(f"{where}: found a dict or list that holds itself, or too many in each other") from None
            ends.append(len(ids))
    return np.diff(ends), np.array(ids, np.int64), np.array(values, np.float32)


def _lists_of_texts(X: list[Any], known: dict[str, int], *, new: bool) -> Entries | None:
    """The same for tokens that are lists of texts, none of them twice, several times as fast; None for others.

    No list of all texts is made: to look at every text again would take as long as to look it up. So of tokens to tag,
    only those are looked at of which nothing is known.
    """
    tokens = list(chain.from_iterable(X))
    if not {*map(type, tokens)} <= {list}:
        return None
    sizes = np.fromiter(map(len, tokens), np.int64, len(tokens))
    try:
        numbers = dict(zip(dict.fromkeys(chain.from_iterable(tokens)), count())) if new else known
        texts = chain.from_iterable(tokens)
        ids = np.fromiter(map(numbers.get, texts, repeat(UNKNOWN)), np.int64, sizes.sum())
    except TypeError:  # for what is no text, and cannot be a key
        return None
    apart, strange = inspect(sizes, ids, np.full(len(numbers), -1), np.zeros(sizes.size, np.bool_))
    others = numbers if new else chain.from_iterable(compress(tokens, strange))
    if not apart or not {*map(type, others)} <= {str}:
        return None
    known.update(numbers)
    return sizes, ids, np.zeros(0, np.float32)


@kernel
def inspect(sizes: np.ndarray, ids: np.ndarray, last: np.ndarray, strange: np.ndarray) -> tuple[bool, np.ndarray]:
    """Whether no token has a number twice; and ``strange``, which of them have none that is known.

    last: [A], all −1, scratch: the last token that has a number."""
    p = 0
    for t in range(sizes.shape[0]):
        strange[t] = True
        for _ in range(sizes[t]):
            if ids[p] >= 0:
                if last[ids[p]] == t:
                    return False, strange
                last[ids[p]], strange[t] = t, False
            p += 1
    return True, strange
