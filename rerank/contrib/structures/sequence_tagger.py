"""A tagger of sequences over dictionaries of attributes, as python-crfsuite and sklearn-crfsuite take them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import chain, compress, count, repeat
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from rerank.base.errors import DataError
from rerank.base.ranges import Count
from rerank.contrib.structures.chain import UNKNOWN, Chains, chains_of, decode, named_k_best
from rerank.contrib.structures.training import ChainProblem, marginals
from rerank.data.corpus import FLOAT32_MAX, offsets
from rerank.learn.contract import as_value_errors, check_parameters, learner_of, seed_of
from rerank.learn.rules.maxent import Maxent
from rerank.learn.train import train


@dataclass(eq=False, repr=False, kw_only=True)
class SequenceTagger(BaseEstimator):  # type: ignore[misc] # scikit-learn has no types
    """A tagger: it labels every token of a sequence, and knows which labels follow each other (a chain of first order).

    X is a list of sequences, these are lists of tokens, and a token is a dict (or a list or set of texts): see
    ``rerank.contrib.structures.sequence_tagger.named_values``. y has a list of labels for every sequence.

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
        values = {label for labels in y for label in labels}
        if len({type(label) for label in values}) > 1 or any(label != label for label in values):
            raise ValueError(f"found labels that cannot be sorted, {list(values)[:3]!r}; expected texts")
        classes = sorted(values)
        if not classes:
            raise ValueError("found no tokens; expected at least one sequence with tokens and labels")
        with as_value_errors(type(self).__name__):
            learner, _ = learner_of(self.learner)
            numbers: dict[str, int] = {}
            chains = _chains(X, y, classes, numbers, new=True)
            problem = ChainProblem(chains, seed_of(self.random_state), bool(self.shuffle))
            training = train(learner, problem, epochs=int(self.epochs), predictor=self.average)
        K = len(classes)
        self.classes_, self.attributes_, self.n_iter_ = classes, numbers, training.epoch
        self._weights = training.weights[self.average].w
        self._probable = isinstance(learner, Maxent)
        self.transitions_, self.state_ = self._weights[: K * K].reshape(K, K), self._weights[K * K :].reshape(-1, K)
        return self

    def predict(self, X: Any) -> list[list[Any]]:
        """The best labels of every sequence."""
        chains = self._read(X)
        return chains.split([self.classes_[label] for label in decode(chains, self._weights).tolist()])

    def predict_n_best(self, X: Any, n: int) -> list[list[tuple[float, list[Any]]]]:
        """For every sequence up to n (score, labels), the best ones, best first."""
        if not isinstance(n, (int, np.integer)) or isinstance(n, bool) or n < 1:
            raise ValueError(f"n={n!r}; expected a whole number from 1")
        return named_k_best(self._read(X), self._weights, n, self.classes_)

    def predict_marginals(self, X: Any) -> list[list[dict[Any, float]]]:
        """For every token {label: its probability}; of "maxent" alone, whose scores are logarithms of probabilities."""
        chains = self._read(X)
        if not self._probable:
            raise ValueError("only the learner maxent has probabilities")
        rows = marginals(chains, self._weights).tolist()
        return chains.split([dict(zip(self.classes_, row, strict=True)) for row in rows])

    def score(self, X: Any, y: Any) -> float:
        """The share of the tokens whose label is right."""
        pairs = list(zip(self.predict(X), y, strict=True))
        right = sum(a == b for guesses, labels in pairs for a, b in zip(guesses, labels, strict=True))
        return float(right / max(1, sum(len(guesses) for guesses, _ in pairs)))

    def _read(self, X: Any) -> Chains:
        check_is_fitted(self)
        with as_value_errors(type(self).__name__):
            return _chains(_sequences(X, "X"), None, self.classes_, self.attributes_, new=False)


def _sequences(sequences: Any, name: str) -> list[list[Any]]:
    """``X`` or ``y`` as lists."""
    form = "a list of tokens, each a dict" if name == "X" else "a list of labels"
    lists = _as_list(sequences, name, "a list of sequences")
    return [_as_list(sequence, f"sequence {i} of {name}", form) for i, sequence in enumerate(lists)]


def _as_list(values: Any, name: str, form: str) -> list[Any]:
    if not isinstance(values, Iterable) or isinstance(values, (str, Mapping)):
        raise ValueError(f"found {values!r} for {name}; expected {form}")
    return values if type(values) is list else list(values)


def _chains(X: list[Any], y: Any, classes: Sequence[Any], numbers: dict[str, int], *, new: bool) -> Chains:
    """Sentences as arrays; with ``new``, attributes without ``numbers`` get one, else they are left out."""
    rows, ids, values = _lists_of_texts(X, numbers, new=new) or _any_tokens(X, numbers, new=new)
    gold, K = {label: k for k, label in enumerate(classes)}, len(classes)
    return chains_of(
        offsets([*map(len, X)]), rows, ids, None if y is None else [gold[label] for labels in y for label in labels],
        np.ones((K + 2, K)), attribute_count=len(numbers), values=values,
    )  # fmt: skip


# Of T tokens: int64 [T + 1], where their attributes begin; their numbers (int64 [nnz]); their values, None for 1.
Entries = tuple[np.ndarray, np.ndarray, np.ndarray | None]


def _any_tokens(X: list[Any], ids: dict[str, int], *, new: bool) -> Entries:
    """The attributes of tokens of any kind, see ``named_values``."""
    ends, numbers, values = [0], list[int](), list[float]()
    for i, sequence in enumerate(X):
        for t, token in enumerate(sequence):
            where = f"sequence {i}, token {t}"
            try:
                for name, value in named_values(token, where):
                    if new or name in ids:
                        numbers.append(ids.setdefault(name, len(ids)))
                        values.append(value)
            except RecursionError:
                raise DataError(f"{where}: found a dict or list that holds itself, or too many in each other") from None
            ends.append(len(numbers))
    return np.array(ends), np.array(numbers, np.int64), np.array(values, np.float32)


def _lists_of_texts(X: list[Any], vocabulary: dict[str, int], *, new: bool) -> Entries | None:
    """The same for tokens that are lists of texts, several times as fast; None for others.

    No list of all texts is made: to look at every text again would take as long as to look it up. So of tokens to tag,
    only those without a known attribute are looked at.
    """
    tokens = list(chain.from_iterable(X))
    if not {*map(type, tokens)} <= {list}:
        return None
    rows = offsets(np.fromiter(map(len, tokens), np.int64, len(tokens)))
    try:
        numbers = dict(zip(dict.fromkeys(chain.from_iterable(tokens)), count())) if new else vocabulary
        ids = np.fromiter(map(numbers.get, chain.from_iterable(tokens), repeat(UNKNOWN)), np.int64, rows[-1])
    except TypeError:  # for what is no text, and cannot be a key
        return None
    rows = offsets(ids >= 0)[rows]
    others = numbers if new else chain.from_iterable(compress(tokens, rows[1:] == rows[:-1]))
    if not {*map(type, others)} <= {str}:
        return None
    vocabulary.update(numbers)
    return rows, ids[ids >= 0], None


def named_values(token: Any, where: str) -> Iterator[tuple[str, float]]:
    """Yield (attribute, value) of a token in any of the forms that CRFsuite's wrappers take.

    Of a dict, a text makes an attribute of key and value, a number is the value of the attribute ``key``, True and
    False are 1 and 0; a list or set of texts, or a dict, is read as a token of its own, with ``key:`` before all
    attributes. A token may also be a list or set of texts.

    Raises DataError: says where, what was found and what is expected.

    Reference: python-crfsuite.readthedocs.io, ItemSequence.
    """
    if isinstance(token, Iterator):
        token = list(token)
    if isinstance(token, Mapping):
        for key, value in token.items():
            if not isinstance(key, str):
                raise DataError(f"{where}: found the key {key!r}; expected a text")
            if isinstance(value, str):
                yield f"{key}={value}", 1.0
            elif isinstance(value, (Mapping, list, tuple, Set)):
                yield from ((f"{key}:{name}", x) for name, x in named_values(value, f"{where}, {key}"))
            elif isinstance(value, (int, float, np.bool_, np.number)) and -FLOAT32_MAX <= value <= FLOAT32_MAX:
                yield key, float(value)
            else:
                raise DataError(
                    f"{where}: {key!r} has the value {str(value)[:40]}; expected a text, a finite number of float32, "
                    "True or False, or a list, set or dict of them"
                )
    elif isinstance(token, (list, tuple, Set)) and all(isinstance(name, str) for name in token):
        names = sorted(token) if isinstance(token, Set) else token
        yield from ((name, 1.0) for name in names)
    else:
        raise DataError(f"{where}: found {token!r}; expected a dict of attributes, or a list or set of texts")
