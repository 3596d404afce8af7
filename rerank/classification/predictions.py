"""Predicted labels as text, and the significance of differences between runs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from rerank.base.names import file_name
from rerank.classification.data import ExampleSet
from rerank.classification.results import Result
from rerank.metrics.classification import Classification
from rerank.metrics.significance import compare
from rerank.recipes.example_recipe import ClassificationRecipe
from rerank.runs.evaluation import Selections
from rerank.storage.files import write_text
from rerank.storage.written import claim

MOST = 12  # up to so many runs are all compared with one another; of more, each with the best


def write_predictions(directory: Path, examples: ExampleSet, results: Sequence[Result]) -> None:
    """One file per noise level: lines with example (from 1), fold, label, and the label that each run predicts.

    They go into ``predictions`` of the output directory. Columns are separated by tabs; where there are several seeds,
    the predictions of the first are written.
    """
    tested, classes = examples.tested, examples.tested.classes
    folds = examples.folds if examples.folds is not None else np.zeros(tested.size, np.int64)
    for noise in dict.fromkeys(each.noise for each in results):
        own = _first_seed([each for each in results if each.noise == noise])
        lines = ["\t".join(["example", "fold", "label", *(each.spec.name for each in own)])]
        for i in range(tested.size):
            found = (classes[each.predicted[i]] for each in own)
            lines.append("\t".join([str(i + 1), str(folds[i]), classes[tested.label[i]], *found]))
        level = f"-noise{noise:g}" if noise else ""
        target = claim(directory, "predictions", f"{file_name(examples.name)}{level}.tsv")
        write_text(target, "\n".join(lines) + "\n")


def write_selections(path: Path, result: Result, label: np.ndarray) -> None:
    """What ``rerank compare`` needs from a single run: which of the tested examples every predictor gets wrong.

    label: int64 [n], those of the tested examples.
    """
    rows = {name: (found != label).astype(np.float64)[:, np.newaxis] for name, found in result.predictions.items()}
    ids = [str(i + 1) for i in range(label.size)]
    Selections(ids, Classification().signature, np.ones((label.size, 1)), rows).save(path)


def _first_seed(results: Sequence[Result]) -> list[Result]:
    return [each for each in results if each.seed == results[0].seed]


def significance_of(
    recipe: ClassificationRecipe, labels: dict[str, np.ndarray], results: Sequence[Result]
) -> dict[str, Any]:
    """By set (and noise level): the test of every pair of runs on the pooled test examples of all folds.

    The key is ``a_vs_b``, the difference a's error minus b's. labels: those of the tested examples of every set, for
    the first seed, which is the one that is tested.
    """
    test = recipe.significance.test
    if test is None:
        return {}
    found: dict[str, Any] = {}
    for place in dict.fromkeys((each.set, each.noise) for each in results):
        own = _first_seed([each for each in results if (each.set, each.noise) == place])
        label = labels[place[0]]
        wrong = [(each.predicted != label).astype(np.float64)[:, np.newaxis] for each in own]
        pairs = list(combinations(range(len(own)), 2))
        if len(own) > MOST:
            best = int(np.argmin([each.mean() for each in wrong]))
            pairs = [(i, best) for i in range(len(own)) if i != best]
        name = f"{place[0]}, noise {place[1]:g}" if place[1] else place[0]
        reference = np.ones((label.size, 1))
        for i, j in pairs:
            outcome = compare(
                Classification(),
                wrong[i],
                wrong[j],
                reference,
                test=test,
                samples=recipe.significance.samples,
                seed=recipe.seed,
            )
            found.setdefault(name, {})[f"{own[i].spec.name}_vs_{own[j].spec.name}"] = outcome.as_dict()
    return found
