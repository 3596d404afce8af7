"""One fit: a run trained on a training part and tried on a test part."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rerank.base.registry import build
from rerank.classification.baselines import fit_baseline, predict_baseline
from rerank.data.corpus import Corpus
from rerank.data.labelled import Labelled
from rerank.learn.base import Learner, Weights, learners
from rerank.learn.mixing.mixing import Mixing, divided, train_mixed
from rerank.learn.scoring import best, scores
from rerank.learn.trainer import Training, train
from rerank.learn.voting.voting import vote
from rerank.recipes.example_recipe import Spec


@dataclass
class Fit:
    """The result of a fit: ``predictions``, the class of every test example by predictor (int64 [n]).

    train_error: of the main predictor (of the average where that votes); mistakes: by epoch; seconds: of training;
    apart: errors by predictor, as means over models whose predictions are not kept, if these were asked for.
    """

    predictions: dict[str, np.ndarray]
    train_error: float
    seconds: float
    updates: int = 0
    mistakes: list[int] = field(default_factory=list)
    history: list[dict[str, Any]] = field(default_factory=list)
    training: Training | None = None
    apart: dict[str, float] | None = None

    def errors(self, label: np.ndarray) -> dict[str, float]:
        """The share of examples that each predictor gets wrong."""
        if self.apart is not None:
            return self.apart
        return {name: float(np.mean(found != label)) for name, found in self.predictions.items()}


def make_learner(spec: Spec) -> Learner:
    """The learner of a run with its parameters."""
    return build(learners, spec.recipe.learner, "learner")


def targets(corpus: Corpus, label: np.ndarray) -> np.ndarray:
    """int64 [n]: the candidate that is the true class of every example."""
    return np.asarray(corpus.lists[:-1] + label)


def classes_of(corpus: Corpus, value: np.ndarray) -> np.ndarray:
    """int64 [n]: the class of highest ``value`` (float64 [N]); the first of equals."""
    return np.asarray(best(corpus, value) - corpus.lists[:-1])


def predicted(corpus: Corpus, weights: Weights) -> np.ndarray:
    """int64 [n]: the class that a predictor gives to every example."""
    return classes_of(corpus, scores(corpus, weights))


def fit(spec: Spec, train_part: Labelled, test_part: Labelled, *, seed: int, threads: int | None = 1) -> Fit:
    """Train ``spec`` for its number of epochs and predict ``test_part``; ``threads``: of voting."""
    settings = spec.recipe.training
    if spec.baseline is not None:
        start = time.perf_counter()
        fitted = fit_baseline(spec.baseline, train_part)
        seconds = time.perf_counter() - start
        wrong = predict_baseline(fitted, train_part) != train_part.label
        return Fit({settings.predictor: predict_baseline(fitted, test_part)}, float(np.mean(wrong)), seconds)
    if settings.mixing is not None and settings.mixing.alone:
        return fit_apart(spec, train_part, test_part, seed=seed)
    corpus, test = train_part.corpus(), test_part.corpus()
    voting = settings.vote or settings.predictor == "voted"
    training = train_on(spec, corpus, train_part.label, epochs=settings.epochs, seed=seed, keep_log=voting)
    predictions = {name: predicted(test, weights) for name, weights in training.weights.items()}
    if voting and training.log is not None:
        votes = vote(training.learner.votes(training.log, corpus), test, threads)
        predictions["voted"] = classes_of(test, votes)
    main = training.weights["last" if settings.predictor == "last" else "average"]
    return Fit(
        predictions,
        train_error=float(np.mean(predicted(corpus, main) != train_part.label)),
        seconds=sum(line["seconds"] for line in training.history),
        updates=training.learner.updates(training.state),
        mistakes=[line["mistakes"] for line in training.history],
        history=training.history,
        training=training,
    )


def fit_apart(spec: Spec, train_part: Labelled, test_part: Labelled, *, seed: int) -> Fit:
    """A model for each of the sections that mixing would combine; the predictions are the first one's."""
    mixing = spec.recipe.training.mixing
    assert mixing is not None
    once = spec.recipe.training.model_copy(update={"mixing": None, "vote": False})
    single = spec.model_copy(update={"recipe": spec.recipe.model_copy(update={"training": once})})
    order = shuffled(train_part.size, seed)
    fits = []
    for first, last, own in divided(train_part.size, mixing.shards, seed):
        done = fit(single, train_part.take(order[first:last]), test_part, seed=own)
        done.training = None
        fits.append(done)
    errors = [done.errors(test_part.label) for done in fits]
    return Fit(
        fits[0].predictions,
        train_error=float(np.mean([done.train_error for done in fits])),
        seconds=sum(done.seconds for done in fits),
        updates=sum(done.updates for done in fits),
        mistakes=[sum(every) for every in zip(*(done.mistakes for done in fits), strict=True)],
        apart={name: float(np.mean([each[name] for each in errors])) for name in errors[0]},
    )


def shuffled(examples: int, seed: int) -> np.ndarray:
    """int64 [n]: the order in which examples are divided into sections; files may be sorted by class."""
    return np.random.default_rng([seed, examples]).permutation(examples)


def train_on(
    spec: Spec, corpus: Corpus, label: np.ndarray, *, epochs: int, seed: int, keep_log: bool = False, **more: Any
) -> Training:
    """Train the learner of ``spec``; ``more`` goes to ``rerank.learn.trainer.train``, or to ``train_mixed``."""
    settings = spec.recipe.training
    how = {"epochs": epochs, "seed": seed, "shuffle": settings.shuffle} | more
    if settings.mixing is not None:
        order = shuffled(corpus.list_count, seed)
        mixing = Mixing(**settings.mixing.model_dump(exclude={"alone"}))
        corpus, label = corpus.take(order), label[order]
        return train_mixed(make_learner(spec), corpus, targets(corpus, label), mixing=mixing, **how)
    return train(make_learner(spec), corpus, targets(corpus, label), keep_log=keep_log, **how)
