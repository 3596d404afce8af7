"""Sections of the examples, in a random order, learned separately; their predictors are combined.

Last predictors are averaged, or (KL) Gaussians are weighted by how sure they are of every weight (Crammer, Dredze &
Pereira 2012, section 7.10): μ = (Σ_s Σ_s⁻¹)⁻¹ Σ_s Σ_s⁻¹μ_s.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from rerank.base.errors import RecipeError
from rerank.learn.base import Learner, Weights
from rerank.learn.predictor import named
from rerank.learn.rules.gaussian import Gaussian
from rerank.learn.train import Training


def require_rule(learner: Learner, rule: str) -> None:
    """Refuse learners without epochs, and KL for those without variances of single weights."""
    if learner.batch:
        raise RecipeError(f"{learner.name} finds one optimum, in one go; leave it out", key="training.sections")
    if rule == "kl" and (not isinstance(learner, Gaussian) or learner.full):
        message = f"{learner.name} keeps no variance of each weight; take mean"
        raise RecipeError(message, key="training.sections.rule")


def divided(examples: int, count: int, seed: int) -> list[tuple[np.ndarray, int]]:
    """``count`` sections (int64, examples in a random order) whose sizes differ by one at most, each with a seed of its
    own; one of every example where these are fewer, and a single one with the seed itself."""
    order, count = np.random.default_rng([seed, examples]).permutation(examples), max(1, min(count, examples))
    bounds = [examples * number // count for number in range(count + 1)]
    seeds = [int(np.random.SeedSequence([seed, number]).generate_state(1)[0]) for number in range(count)]
    seeds = seeds if count > 1 else [seed]
    return [(order[first:last], own) for (first, last), own in zip(pairwise(bounds), seeds, strict=True)]


def combined(trainings: Sequence[Training], rule: str) -> dict[str, Weights]:
    """The predictors of all sections as one of each kind; the average is that over all predictors of all sections, each
    weighted by the examples that it survived."""
    every = {name: np.array([one.weights[name].w for one in trainings]) for name in ("last", "average")}
    seen = np.array([named(one.state).counts.seen for one in trainings], np.float64)
    last = every["last"].mean(axis=0)
    if rule == "kl":
        learner = trainings[0].learner
        assert isinstance(learner, Gaussian)
        certainty = 1.0 / np.array([learner.variances(one.state) for one in trainings])
        last = (certainty * every["last"]).sum(axis=0) / certainty.sum(axis=0)
    average = (seen[:, np.newaxis] * every["average"]).sum(axis=0) / seen.sum()
    base = trainings[0].learner.base
    return {"last": Weights(last, base), "average": Weights(average, base)}
