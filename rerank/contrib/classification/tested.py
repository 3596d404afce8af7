"""The tested examples of a set: predictions as text, confusions, hard examples, differences between runs."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rerank.base.encoding import file_name
from rerank.contrib.classification.metric import Classification
from rerank.contrib.classification.recipe import ClassificationRecipe
from rerank.contrib.classification.results import Result, best_of, first_seeds, groups_of
from rerank.contrib.classification.sets import ExampleSet
from rerank.contrib.classification.tables import place_of
from rerank.models.model import Model
from rerank.runs.compared import Compared
from rerank.runs.report.numbers import NONE, count, fixed, reals
from rerank.runs.report.table import TextTable
from rerank.storage.files import write_text
from rerank.storage.outputs import output_file

CLASSES = 12  # that a confusion matrix shows; of more, the commonest confusions
PAIRS, HARDEST, STRONGEST, FEATURES = 20, 15, 25, 8  # rows of the tables; features named for an example
MOST = 12  # up to this many runs are all compared with one another; of more, each with the best


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
        (first,) = groups_of(results).values()
        return Tested(part.label, part.classes, folds, hardest_table(examples, first))


def write_predictions(directory: Path, name: str, tested: Tested, results: Sequence[Result]) -> None:
    """One file in ``predictions`` per noise level of a set: example (from 1), fold, label, and what each run predicts
    with the first seed, separated by tabs."""
    label, classes, folds, _ = tested
    for (_, noise), alike in first_seeds(results).items():
        lines = ["\t".join(["example", "fold", "label", *(result.spec.name for result in alike)])]
        for i in range(label.size):
            predicted = (classes[result.predicted[i]] for result in alike)
            lines.append("\t".join([str(i + 1), str(folds[i]), classes[label[i]], *predicted]))
        level = f"-noise{noise:g}" if noise else ""
        target = output_file(directory, "predictions", f"{file_name(name)}{level}.tsv")
        write_text(target, "\n".join(lines) + "\n")


def selections_of(predictions: dict[str, np.ndarray], label: np.ndarray, **how: Any) -> Compared:
    """The tested examples, with classes ``label`` (int64 [n]), that each of ``predictions`` gets wrong."""
    ids = [str(i + 1) for i in range(label.size)]
    rows = {name: (classes != label).astype(np.float64)[:, np.newaxis] for name, classes in predictions.items()}
    return Compared(Classification(), np.ones((label.size, 1)), rows, ids=ids, **how)


def significance_of(
    recipe: ClassificationRecipe, tested: Mapping[str, Tested], results: Sequence[Result]
) -> dict[str, Any]:
    """By set (and noise level) and ``a_vs_b``: the test of every pair of runs, with the first seed, on the pooled test
    examples of all folds; the difference is a's error minus b's."""
    settings = recipe.significance
    if settings.test is None:
        return {}
    tests: dict[str, Any] = {}
    for (name, noise), alike in first_seeds(results).items():
        how: dict[str, Any] = {"test": settings.test, "samples": settings.samples, "seed": recipe.seed}
        wrong = selections_of({result.spec.name: result.predicted for result in alike}, tested[name].label, **how)
        pairs = list(combinations(wrong.rows, 2))
        if len(alike) > MOST:
            best = min(wrong.rows, key=lambda run: wrong.rows[run].mean())
            some = {best, *settings.against}
            pairs = [(a, b) for a, b in pairs if a in some or b in some]
        if pairs:
            tests[place_of(name, noise)] = wrong.significance(pairs)
    return tests


def confusion_table(result: Result, label: np.ndarray, classes: Sequence[str]) -> TextTable:
    """True classes (``label``, int64 [n]) in rows, predicted ones in columns; of many, the commonest confusions."""
    k, name = len(classes), f"{result.spec.name} on {result.set}"
    counts = np.bincount(label * k + result.predicted, minlength=k * k).reshape(k, k)
    sizes, right = counts.sum(axis=1), counts.diagonal()
    if k > CLASSES:
        wrong = np.where(np.eye(k, dtype=np.bool_), 0, counts)
        pairs = [divmod(int(i), k) for i in np.argsort(-wrong, axis=None, kind="stable")[:PAIRS]]
        rows = [
            [classes[a], classes[b], count(int(wrong[a, b])), f"{fixed(100 * wrong[a, b] / sizes[a], 1)} %"]
            for a, b in pairs
            if wrong[a, b]
        ]
        return TextTable(f"Commonest confusions: {name}", ["class", "taken for", "examples", "of the class"], rows, 2)
    rows = [
        [classes[a], *map(count, counts[a]), f"{fixed(100 * right[a] / sizes[a], 1) if sizes[a] else NONE} %"]
        for a in range(k)
    ]
    headings = ["true class", *(f"as {label}" for label in classes), "right"]
    return TextTable(f"Confusion matrix: {name}", headings, rows, best={(a, a + 1) for a in range(k)})


def hardest_table(examples: ExampleSet, results: Sequence[Result]) -> TextTable:
    """The examples of a set that most runs get wrong, those first that the best run is furthest from getting right."""
    best, label = best_of(results), examples.tested.label
    wrong = np.sum([result.predicted != label for result in results], axis=0)
    margin = best.margins if best.margins.size else np.full(label.size, np.nan)
    order = np.lexsort((np.arange(label.size), np.nan_to_num(margin), -wrong))[:HARDEST]
    folds = examples.folds if examples.folds is not None else np.full(label.size, -1)
    classes = examples.tested.classes
    often = np.bincount(examples.tested.columns, minlength=examples.tested.width)
    order = order[wrong[order] > 0]
    rows = [
        {
            "example": str(i + 1),
            "class": classes[label[i]],
            "features that set it apart": features_of(examples, i, often),
            "predicted": classes[best.predicted[i]],
            "margin": shown,
            "runs that are wrong": f"{wrong[i]} of {len(results)}" if len(results) > 1 else "",
            "fold": str(folds[i]) if folds[i] >= 0 else "",
        }
        for i, shown in zip(order.tolist(), reals(margin[order].tolist()), strict=True)
    ]
    note = f"Predictions and margins of {best.spec.name}. Margin: the score of the true class less the best other one."
    return TextTable.of(f"Hardest examples of {examples.name}", rows, texts=4, note=note)


def features_of(examples: ExampleSet, i: int, often: np.ndarray) -> str:
    """The features that set a tested example apart, large and rare ones first, by name, or by number from 1; ``often``:
    in how many examples each is (int64 [D])."""
    part, names = examples.tested, examples.names
    first, last = part.rows[i : i + 2]
    columns = part.columns[first:last]
    weight = np.abs(part.values[first:last]) * np.log((part.size + 1) / often[columns])
    order = columns[np.argsort(-weight, kind="stable")[:FEATURES]].tolist()
    shown = [names[j] if j < len(names) else str(j + 1) for j in order]
    return ", ".join(shown) + (", …" if last - first > FEATURES else "")


def features_table(model: Model, predictor: str) -> TextTable:
    """The features of a model with the largest weights, and what they speak for."""
    w, table = model.weights[predictor if predictor in model.weights else "average"].w, model.table
    classes = model.about["classes"]
    rows = []
    order = np.argsort(-np.abs(w), kind="stable")[:STRONGEST]
    order = order[w[order] != 0.0]
    for j, size in zip(order.tolist(), reals(np.abs(w[order]).tolist()), strict=True):
        label, _, feature = table.name(j).partition("|")
        other = classes[0] if len(classes) == 2 else f"not {label}"
        rows.append([feature, label if w[j] > 0 else other, size])
    numbered = sum(row[0].isdigit() for row in rows) > len(rows) / 2
    note = "Features are the numbers of the file; data.vocabulary names a file with their names." if numbered else ""
    return TextTable("Strongest features", ["feature", "speaks for", "weight"], rows, texts=2, note=note)
