"""Passes over the examples, measured on the way: online mistakes, and the error on the test part."""

from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np

from rerank.base.interrupts import check
from rerank.learn.trainer import epoch_order
from rerank.recipes.example_recipe import Spec
from rerank.runs.examples.fitting import make_learner, predicted, targets
from rerank.runs.examples.sets import Split


@dataclass(frozen=True)
class Trace:
    """After ``samples[i]`` examples: ``mistakes`` so far, by the labels without noise, and the test ``errors``."""

    samples: list[int]
    mistakes: list[int]
    errors: list[float]


def trace(spec: Spec, part: Split, *, seed: int, every: int, test: bool, passes: int = 1) -> Trace:
    """Go through ``part.train`` so many times and measure every so many examples; ``test``: measure the test error too.

    Where a label is flipped, the prediction before the update is right by the true label exactly when it is a mistake
    by the given one. (A tie, as before the first update, counts as a mistake by the given label.)
    """
    learner = make_learner(spec)
    corpus = part.train.corpus()
    held = part.test.corpus() if test else None
    oracle = targets(corpus, part.train.label)
    state = learner.init(corpus.width, corpus.candidate_count)
    found = Trace([], [], [])
    mistakes = 0
    for epoch, start in product(range(passes), range(0, corpus.list_count, every)):
        check()
        order = epoch_order(corpus.list_count, seed, epoch, spec.recipe.training.shuffle)[start : start + every]
        for first, last in _alike(part.flipped[order]):
            piece = order[first:last]
            (stats,) = learner.epoch(corpus, oracle, piece, state)
            mistakes += piece.size - stats.mistakes if part.flipped[piece[0]] else stats.mistakes
        found.samples.append(epoch * corpus.list_count + start + order.size)
        found.mistakes.append(mistakes)
        if held is not None:
            main = spec.recipe.training.predictor
            weights = learner.last(state) if main == "last" else learner.average(state)
            found.errors.append(float(np.mean(predicted(held, weights) != part.test.label)))
    return found


def _alike(marks: np.ndarray) -> list[tuple[int, int]]:
    """The longest runs of equal marks, (first, last + 1)."""
    ends = np.flatnonzero(np.diff(marks)) + 1
    return list(pairwise([0, *ends.tolist(), marks.size]))
