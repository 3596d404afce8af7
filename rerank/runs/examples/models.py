"""The model of a single run: trained on all training examples, with names of features and classes."""

from collections.abc import Sequence

import numpy as np

from rerank.features.table import FeatureTable
from rerank.models.model import Model
from rerank.models.provenance import provenance
from rerank.recipes.example_recipe import Spec
from rerank.recipes.settings import Settings
from rerank.runs.examples.fitting import train_on
from rerank.runs.examples.sets import ExampleSet
from rerank.runs.examples.tuning import Tuned, tune


def class_table(classes: Sequence[str], width: int, names: Sequence[str], shown: np.ndarray) -> FeatureTable:
    """A feature table of ``width`` columns per class (of the second class alone, where there are two).

    Each template is a class, so that a feature is called ``class|name``. Without ``names`` a feature is called by its
    number from 1, as in svmlight files; ``shown`` (int [m]) are the features that then have a text at all.
    """
    labels = tuple(classes) if len(classes) > 2 else (classes[1],)
    k = len(labels)
    texts = {j + 1: name for j, name in enumerate(names)}
    texts |= {int(j) + 1: str(int(j) + 1) for j in shown if int(j) + 1 not in texts}
    return FeatureTable(
        hashes=np.arange(1, k * width + 1, dtype=np.uint64),
        template=np.repeat(np.arange(k, dtype=np.int32), width),
        first=np.arange(k * width + 1, dtype=np.int64),
        symbols=np.tile(np.arange(1, width + 1, dtype=np.uint64), k),
        templates=labels,
        texts=texts,
        about={"seen": width, "kept": width, "classes": list(classes), "templates": {}},
    )


def train_model(spec: Spec, examples: ExampleSet, tuned: Settings | None = None) -> Model:
    """Train a single run on all training examples of its set; tuned first, unless ``tuned`` is given."""
    seed = spec.recipe.run_seeds[0]
    noisy = examples.noisy(spec.noise, seed)
    if spec.recipe.tune is not None:
        if tuned:
            chosen = Tuned.from_dict(tuned)
        else:
            chosen = tune(spec, noisy, examples.examples)
        spec = chosen.applied(spec)
    epochs = spec.recipe.training.epochs
    noisy = noisy.shared(spec.recipe.training.share, seed)
    corpus = noisy.corpus()
    voting = spec.recipe.training.vote or spec.recipe.training.predictor == "voted"
    training = train_on(spec, corpus, noisy.label, epochs=epochs, seed=seed, keep_log=voting)
    votes = {}
    if training.log is not None:
        votes = training.learner.votes(training.log, corpus).arrays()
    weighted = np.zeros(corpus.width, np.bool_)
    for weights in training.weights.values():
        weighted |= weights.w != 0
    biased = spec.recipe.data.bias is not None
    names = [*examples.names[: noisy.width - biased], *(["bias"] if biased and examples.names else [])]
    about = provenance(
        learner=spec.recipe.learner["name"],
        run="",
        seed=seed,
        epochs=epochs,
        dev=None,
        training_data="",
        files={},
    )
    about["classes"] = list(noisy.classes)
    table = class_table(noisy.classes, noisy.width, names, np.unique(np.flatnonzero(weighted) % noisy.width))
    state = {key: np.asarray(array) for key, array in training.state._asdict().items()}
    return Model(spec.recipe.model_dump(mode="json"), about, table, training.weights, state, votes)
