"""Predicted labels as text, and the significance of differences between runs."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rerank.base.encoding import file_name
from rerank.metrics.classification import Classification
from rerank.recipes.example_recipe import ClassificationRecipe
from rerank.runs.evaluation import Selections
from rerank.runs.examples.results import Result
from rerank.runs.examples.sets import ExampleSet
from rerank.runs.examples.shown import groups_of, hardest_table
from rerank.runs.report.table import TextTable
from rerank.storage.files import write_text
from rerank.storage.outputs import output_file

MOST = 12  # up to so many runs are all compared with one another; of more, each with the best


class Tested(NamedTuple):
    """The examples of a set that are in some test part, by the first seed: their classes, as indices of ``classes``
    (``label``, int64 [n]), folds (int64 [n]), and those that most runs get wrong."""

    label: np.ndarray
    classes: tuple[str, ...]
    folds: np.ndarray
    hardest: TextTable

    @staticmethod
    def of(examples: ExampleSet, results: Sequence[Result]) -> "Tested":
        """Those of a set, with the results on it."""
        part = examples.tested
        folds = examples.folds if examples.folds is not None else np.zeros(part.size, np.int64)
        (own,) = groups_of(results).values()
        return Tested(part.label, part.classes, folds, hardest_table(examples, own))


def write_predictions(directory: Path, name: str, tested: Tested, results: Sequence[Result]) -> None:
    """One file per noise level of a set: lines with example (from 1), fold, label, and what each run predicts.

    They go into ``predictions`` of the output directory. Columns are separated by tabs; where there are several seeds,
    the predictions of the first are written.
    """
    label, classes, folds, _ = tested
    for noise in dict.fromkeys(each.noise for each in results):
        own = _first_seed([each for each in results if each.noise == noise])
        lines = ["\t".join(["example", "fold", "label", *(each.spec.name for each in own)])]
        for i in range(label.size):
            found = (classes[each.predicted[i]] for each in own)
            lines.append("\t".join([str(i + 1), str(folds[i]), classes[label[i]], *found]))
        level = f"-noise{noise:g}" if noise else ""
        target = output_file(directory, "predictions", f"{file_name(name)}{level}.tsv")
        write_text(target, "\n".join(lines) + "\n")


def selections_of(predictions: dict[str, np.ndarray], label: np.ndarray) -> Selections:
    """Which of the tested examples, whose classes are ``label`` (int64 [n]), are wrong by each of ``predictions``."""
    rows = {name: (found != label).astype(np.float64)[:, np.newaxis] for name, found in predictions.items()}
    ids = [str(i + 1) for i in range(label.size)]
    return Selections(ids, Classification().signature, np.ones((label.size, 1)), rows)


def _first_seed(results: Sequence[Result]) -> list[Result]:
    return [each for each in results if each.seed == results[0].seed]


def significance_of(
    recipe: ClassificationRecipe, tested: Mapping[str, Tested], results: Sequence[Result]
) -> dict[str, Any]:
    """By set (and noise level): the test of every pair of runs on the pooled test examples of all folds.

    The key is ``a_vs_b``, the difference a's error minus b's. The first seed is the one that is tested.
    """
    settings = recipe.significance
    if settings.test is None:
        return {}
    found: dict[str, Any] = {}
    for name, noise in dict.fromkeys((each.set, each.noise) for each in results):
        own = _first_seed([each for each in results if (each.set, each.noise) == (name, noise)])
        wrong = selections_of({each.spec.name: each.predicted for each in own}, tested[name].label)
        pairs = list(combinations(wrong.rows, 2))
        if len(own) > MOST:
            best = min(wrong.rows, key=lambda run: wrong.rows[run].mean())
            pairs = [(run, best) for run in wrong.rows if run != best]
        if pairs:
            place = f"{name}, noise {noise:g}" if noise else name
            found[place] = wrong.significance(Classification(), pairs, settings.test, settings.samples, recipe.seed)
    return found
