"""One fit: a run trained on a training part and tried on a test part."""

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rerank.base.registry import build
from rerank.contrib.classification.recipe import Spec
from rerank.contrib.classification.scikit import fit_baseline, predict_baseline
from rerank.data.corpus import Corpus
from rerank.data.labelled import Labelled
from rerank.learn.base import Learner, Weights, learners
from rerank.learn.mixing import Mixing, divided, train_mixed
from rerank.learn.scoring import best, scores
from rerank.learn.trainer import Training, train
from rerank.learn.voting.voting import vote


@dataclass
class Fit:
    """The result of a fit.

    predictions: the class of every test example by predictor (int64 [n]); errors: the share of wrong ones by predictor;
    train_error: of the main predictor (of the average where that votes); seconds: of training; mistakes: by epoch;
    margins: by how much the main predictor prefers the true class of every test example to the best other one (float64
    [n]; empty for a baseline, which need not score).
    """

    predictions: dict[str, np.ndarray]
    errors: dict[str, float]
    train_error: float
    seconds: float
    updates: int = 0
    mistakes: list[int] = field(default_factory=list)
    history: list[dict[str, Any]] = field(default_factory=list)
    margins: np.ndarray = field(default_factory=lambda: np.zeros(0))


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


def error_of(classes: np.ndarray, label: np.ndarray) -> float:
    """The share of wrong classes."""
    return float(np.mean(classes != label))


def margins(value: np.ndarray, label: np.ndarray) -> np.ndarray:
    """float64 [n]: the value of the true class less the best other one, of values of all classes (float64 [N])."""
    by_class = value.reshape(label.size, -1).copy()
    examples = np.arange(label.size)
    true = by_class[examples, label]
    by_class[examples, label] = -np.inf
    return np.asarray(true - by_class.max(axis=1))


def fit(spec: Spec, train_part: Labelled, test_part: Labelled, *, seed: int) -> Fit:
    """Train ``spec`` for its number of epochs and predict ``test_part``."""
    settings = spec.recipe.training
    if spec.baseline is not None:
        start = time.perf_counter()
        fitted = fit_baseline(spec.baseline, train_part)
        seconds = time.perf_counter() - start
        wrong = error_of(predict_baseline(fitted, train_part), train_part.label)
        classes = predict_baseline(fitted, test_part)
        name: str = settings.predictor
        return Fit({name: classes}, {name: error_of(classes, test_part.label)}, wrong, seconds)
    if settings.mixing is not None and settings.mixing.alone:
        return fit_apart(spec, train_part, test_part, seed=seed)
    corpus, test = train_part.corpus(), test_part.corpus()
    voting = settings.vote or settings.predictor == "voted"
    training = train_on(spec, corpus, train_part.label, epochs=settings.epochs, seed=seed, keep_log=voting)
    values = {name: scores(test, weights) for name, weights in training.weights.items()}
    if voting and training.log is not None:
        values["voted"] = vote(training.learner.votes(training.log, corpus), test, 1)
    predictions = {name: classes_of(test, value) for name, value in values.items()}
    main = training.weights["last" if settings.predictor == "last" else "average"]
    return Fit(
        predictions,
        {name: error_of(classes, test_part.label) for name, classes in predictions.items()},
        train_error=error_of(predicted(corpus, main), train_part.label),
        seconds=sum(line["seconds"] for line in training.history),
        updates=sum(line["updates"] for line in training.history),
        mistakes=[line["mistakes"] for line in training.history],
        history=training.history,
        margins=margins(values[settings.predictor], test_part.label),
    )


def fit_apart(spec: Spec, train_part: Labelled, test_part: Labelled, *, seed: int) -> Fit:
    """A model for each of the sections that mixing would combine; the predictions are the first one's."""
    mixing = spec.recipe.training.mixing
    assert mixing is not None
    single = spec.at({"training.mixing": None, "training.vote": False})
    order = shuffled(train_part.size, seed)
    fits = [
        fit(single, train_part.take(order[first:last]), test_part, seed=section_seed)
        for first, last, section_seed in divided(train_part.size, mixing.shards, seed)
    ]
    return Fit(
        fits[0].predictions,
        {name: float(np.mean([done.errors[name] for done in fits])) for name in fits[0].errors},
        train_error=float(np.mean([done.train_error for done in fits])),
        seconds=sum(done.seconds for done in fits),
        updates=sum(done.updates for done in fits),
        mistakes=[sum(every) for every in zip(*(done.mistakes for done in fits), strict=True)],
        margins=fits[0].margins,
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
