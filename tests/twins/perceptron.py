"""The perceptron."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from entries import Entry
from reference import Predictor, Trace, dense
from reference_pairs import ORACLES, Pairs

from rerank.data.corpus import Corpus
from rerank.learn.rules.perceptron import Perceptron


def perceptron(
    corpus: Corpus,
    oracle: np.ndarray,
    orders: Iterable[Sequence[int]],
    *,
    base: float,
    base_rate: float,
    any_ties: bool = False,
    pairs: Pairs = ORACLES,
) -> Trace:
    """Collins (2002), Fig. 2, with the counts of Freund & Schapire (1999), Fig. 1; ρ·b is the last feature."""
    phi, D = dense(corpus), corpus.width
    rows = np.column_stack([phi, base_rate * corpus.base])
    w = np.zeros(D + 1)
    trace = Trace([Predictor(w[:D], 1.0, base)])
    for epoch, order in enumerate(orders):
        trace.begin_epoch()
        for i in order:
            of_list = slice(corpus.lists[i], corpus.lists[i + 1])
            f = trace.predictors[-1].scores(phi[of_list], corpus.base[of_list])
            found = pairs.judge(
                epoch, i, "perceptron", f, corpus.gain[of_list], oracle[i] - corpus.lists[i], any_ties
            )  # fmt: skip
            if found is None or not found.mistake:
                trace.survived[-1] += 1
                continue
            star, rival = found.star, found.rival
            z = rows[of_list][star] - rows[of_list][rival]
            w = w + corpus.weight[i] * z
            trace.update(i, Predictor(w[:D], 1.0, base + base_rate * w[D]), -corpus.weight[i] * z, z)
            trace.mistakes[-1] += 1
            trace.loss[-1] += f[rival] - f[star]
    return trace


def binary_perceptron(_: Perceptron, X: np.ndarray, y: np.ndarray, epochs: int) -> tuple[np.ndarray, int]:
    """Rosenblatt's rule on examples z = y·x: (w, mistakes)."""
    w, mistakes = np.zeros(X.shape[1]), 0
    for z in np.tile(y[:, None] * X, (epochs, 1)):
        if w @ z <= 0.0:
            w, mistakes = w + z, mistakes + 1
    return w, mistakes


ENTRIES = {
    "perceptron": Entry(
        [{}, {"base": 0.0}, {"base": 0.5, "base_rate": 0.25}], perceptron, binary_perceptron, exact=lambda _: True
    ),
}
