"""The weights that learners make of a few differences, for examples in docstrings and documentation."""

import numpy as np
from scipy.sparse import csr_matrix

from rerank.data.corpus import Corpus
from rerank.learn.base import Learner
from rerank.learn.train import ListProblem, train


def learned(learner: Learner, *differences: dict[str, float]) -> dict[str, float]:
    """The weights that are not 0, to four places, after one pass over lists of an oracle and its rival.

    differences: for each list, what the oracle's features have in addition to the rival's. Base scores are 0.

    >>> from rerank.learn.rules.additive import Perceptron
    >>> learned(Perceptron(), {"fluent": 1}, {"fluent": -1, "short": 2})
    {'short': 2.0}
    """
    names, count = sorted({name for difference in differences for name in difference}), len(differences)
    table = np.zeros((2 * count, len(names)))
    table[::2] = [[difference.get(name, 0.0) for name in names] for difference in differences]
    rows = csr_matrix(table)  # the rival's are empty
    corpus = Corpus(
        lists=np.arange(0, 2 * count + 1, 2), rows=rows.indptr, columns=rows.indices, values=rows.data,
        base=np.zeros(2 * count), gain=np.tile([1.0, 0.0], count),
        stats=np.zeros((2 * count, 0)), reference=np.zeros((count, 0)), weight=np.ones(count), width=len(names),
    )  # fmt: skip
    training = train(learner, ListProblem(corpus, np.arange(0, 2 * count, 2), 1, shuffle=False), epochs=1)
    weights = np.round(training.weights["last"].w, 4).tolist()
    return {name: weight for name, weight in zip(names, weights, strict=True) if weight}
