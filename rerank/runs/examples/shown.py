"""What the report of a classification recipe shows of its results: confusions, hard examples, features, curves."""

from collections.abc import Mapping, Sequence
from itertools import zip_longest

import numpy as np

from rerank.models.model import Model
from rerank.runs.examples.results import Result
from rerank.runs.examples.sets import ExampleSet
from rerank.runs.report.canvas import PALETTE
from rerank.runs.report.lines import FigureDrawing, FigureLine, draw_lines
from rerank.runs.report.measures import NONE, count, fixed, reals
from rerank.runs.report.table import TextTable

CLASSES = 12  # that a confusion matrix shows; of more, the commonest confusions
PAIRS, HARDEST, STRONGEST, FEATURES = 20, 15, 25, 8  # rows of the tables; features named for an example


def mean_error(result: Result) -> float:
    """The mean error over the folds."""
    return float(np.mean(result.values("error")))


def best_of(results: Sequence[Result]) -> Result:
    """The result with the lowest error, the first of equals."""
    return min(results, key=mean_error)


def confusion_table(result: Result, label: np.ndarray, classes: Sequence[str]) -> TextTable:
    """True classes in rows, predicted ones in columns; of many classes, which are most often taken for which.

    label: the true classes of the tested examples (int64 [n]).
    """
    k = len(classes)
    counts = np.bincount(label * k + result.predicted, minlength=k * k).reshape(k, k)
    name = f"{result.spec.name} on {result.set}"
    sizes = counts.sum(axis=1)
    if k > CLASSES:
        wrong = np.where(np.eye(k, dtype=np.bool_), 0, counts)
        order = [np.unravel_index(i, (k, k)) for i in np.argsort(-wrong, axis=None, kind="stable")[:PAIRS]]
        rows = [
            [classes[a], classes[b], count(int(wrong[a, b])), f"{fixed(100 * wrong[a, b] / sizes[a], 1)} %"]
            for a, b in order
            if wrong[a, b]
        ]
        return TextTable(f"Commonest confusions: {name}", ["class", "taken for", "examples", "of the class"], rows, 2)
    rows = [
        [
            classes[a],
            *(count(n) for n in counts[a]),
            f"{fixed(100 * counts[a, a] / sizes[a], 1) if sizes[a] else NONE} %",
        ]
        for a in range(k)
    ]
    headings = ["true class", *(f"as {each}" for each in classes), "right"]
    return TextTable(f"Confusion matrix: {name}", headings, rows, best={(a, a + 1) for a in range(k)})


def hardest_table(examples: ExampleSet, results: Sequence[Result]) -> TextTable:
    """The examples of a set that most runs get wrong, those first that the best run is furthest from getting right."""
    best, label = best_of(results), examples.tested.label
    wrong = np.sum([each.predicted != label for each in results], axis=0)
    margin = best.margins if best.margins.size else np.full(label.size, np.nan)
    order = np.lexsort((np.arange(label.size), np.nan_to_num(margin), -wrong))[:HARDEST]
    folds = examples.folds if examples.folds is not None else np.full(label.size, -1)
    classes = examples.tested.classes
    often = np.bincount(examples.tested.columns, minlength=examples.tested.width)
    order = order[wrong[order] > 0]
    shown = reals(margin[order].tolist())
    rows = [
        [
            str(i + 1),
            classes[label[i]],
            features_of(examples, i, often),
            classes[best.predicted[i]],
            shown[place],
            f"{wrong[i]} of {len(results)}" if len(results) > 1 else "",
            str(folds[i]) if folds[i] >= 0 else "",
        ]
        for place, i in enumerate(order.tolist())
    ]
    headings = ["example", "class", "features that set it apart", "predicted", "margin", "runs that are wrong", "fold"]
    note = f"Predictions and margins of {best.spec.name}. Margin: the score of the true class less the best other one."
    return TextTable(f"Hardest examples of {examples.name}", headings, rows, texts=4, note=note, style="long-3")


def features_of(examples: ExampleSet, i: int, often: np.ndarray) -> str:
    """The features that set a tested example apart, large and rare ones first, by name, or by number from 1.

    often: in how many examples each feature is (int64 [D]).
    """
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
    return TextTable("Strongest features", ["feature", "speaks for", "weight"], rows, texts=2)


def fold_figures(results: Sequence[Result]) -> list[FigureDrawing]:
    """Curves of the results of one set: the error fold by fold, and the mistakes of training epoch by epoch."""
    shown = sorted(results, key=mean_error)[: len(PALETTE)]
    found = []
    if all(len(each.values("error")) > 1 for each in shown):
        lines = [
            FigureLine(each.spec.name, [float(k + 1) for k in range(len(errors))], [100 * e for e in errors])
            for each in shown
            for errors in [each.values("error")]
        ]
        found.append(draw_lines("folds", "Test error of every fold.", lines, "fold", "test error (%)"))
    trained = [each for each in shown if len(each.mistakes[0]) > 1]
    if trained:
        lines = [_mistakes(each) for each in trained]
        title = "Mistakes while training, epoch by epoch"
        title += ": mean and standard deviation over the folds." if len(trained[0].mistakes) > 1 else "."
        found.append(draw_lines("epochs", title, lines, "epoch", "mistakes (% of examples)"))
    return found


def _mistakes(result: Result) -> FigureLine:
    epochs = [np.array(own, np.float64) for own in zip_longest(*result.mistakes, fillvalue=np.nan)]
    shares = [100 * epoch[np.isfinite(epoch)] / result.size for epoch in epochs]
    spread = [float(np.std(own, ddof=1)) if own.size > 1 else 0.0 for own in shares]
    places = [float(k + 1) for k in range(len(shares))]
    return FigureLine(result.spec.name, places, [float(np.mean(own)) for own in shares], spread)


def groups_of(results: Sequence[Result]) -> Mapping[str, list[Result]]:
    """The results of the first seed and the lowest noise, by set."""
    found: dict[str, list[Result]] = {}
    for each in results:
        if each.seed == results[0].seed and each.noise == results[0].noise:
            found.setdefault(each.set, []).append(each)
    return found
