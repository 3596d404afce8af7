"""The report of a classification recipe as one self-contained HTML page."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from rerank.contrib.classification.example_figures import fold_figures
from rerank.contrib.classification.metric import Classification
from rerank.contrib.classification.recipe import ClassificationRecipe
from rerank.contrib.classification.results import Result, best_of, groups_of, mean_error
from rerank.contrib.classification.tables import sets_table, significance_tables, tables_of, training_table, tuned_table
from rerank.contrib.classification.tested import Tested, confusion_table, selections_of
from rerank.runs.learning import shown_curve
from rerank.runs.report.html import page
from rerank.runs.report.list_figures import learning_figure
from rerank.runs.report.measures import MEASURES
from rerank.runs.report.numbers import Spread, count, duration, fixed, signed
from rerank.runs.report.plot import Figure
from rerank.runs.report.rows import verdict
from rerank.runs.report.table import TextTable
from rerank.runs.results import environment
from rerank.storage.files import write_text

UNIT = "examples"
ERROR = next(measure for measure in MEASURES if measure.key == Classification.primary)
LARGEST_CLASS = "the largest class"


def write_page(
    path: Path,
    recipe: ClassificationRecipe,
    metrics: Mapping[str, Any],
    *,
    seconds: float,
    results: Sequence[Result],
    tested: Mapping[str, Tested],
    features: TextTable | None,
    figures: Sequence[Figure],
) -> None:
    """Write the report to ``path``; tested: the tested examples of every set; features: the strongest of the model."""
    curves = [shown_curve(curve, ERROR, unit=UNIT) for curve in metrics.get("curve", {}).values()]
    text = page(
        "classification.html.j2",
        metrics,
        recipe=recipe.as_yaml(),
        date=datetime.now().astimezone(),
        seconds=seconds,
        environment=environment(),
        runs="result",
        about=recipe.about,
        summary=headline(recipe, metrics, tested, results),
        tables=tables_of(recipe, metrics["tables"]),
        significance=significance_tables(metrics),
        tuned=tuned_table(metrics),
        data=sets_table(metrics["corpora"]),
        training=training_table(metrics),
        learning=[learning_figure(curve, ERROR) for curve in curves],
        figures=figures,
        errors=[_errors(name, runs, tested[name]) for name, runs in groups_of(results).items()],
        features=features,
    )
    write_text(path, text)


def _errors(name: str, results: Sequence[Result], tested: Tested) -> dict[str, Any]:
    """The errors on one set."""
    confusions = confusion_table(best_of(results), tested.label, tested.classes)
    tables = [confusions, *([tested.hardest] if tested.hardest.rows else [])]
    return {"set": name, "figures": fold_figures(results), "tables": tables}


def headline(
    recipe: ClassificationRecipe,
    metrics: Mapping[str, Any],
    tested: Mapping[str, Tested],
    results: Sequence[Result],
) -> dict[str, Any]:
    """Tiles and a sentence: the best run of the one set, or the best mean rank over several."""
    groups = groups_of(results)
    if len(groups) > 1:
        return _over_sets(metrics, groups)
    ((name, runs),) = groups.items()
    best, *others = sorted(runs, key=mean_error)
    label, classes = tested[name].label, tested[name].classes
    usual = int(np.bincount(label, minlength=len(classes)).argmax())
    chance = float(np.mean(label != usual))
    said = _against_largest(recipe, best, label, usual)
    error, spread = mean_error(best), Spread.of(best.values("error"))
    folds = f"mean of {spread.values} folds" if spread.values > 1 else "of the test part"
    width = f" ±{fixed(100 * spread.error)}" if spread.error is not None else ""
    sentence = (
        f"On {name}, {best.spec.name} errs on {fixed(100 * error)} % of the test examples ({folds}{width}); "
        f"to say {classes[usual]} always would be wrong in {fixed(100 * chance)} %: {said}."
    )
    training_error = f"{fixed(100 * float(np.mean(best.train_errors)))} %"
    tiles = [
        (f"Always {classes[usual]}", f"{fixed(100 * chance)} %", "error of the largest class"),
        ("Error", f"{fixed(100 * error)} %", f"{best.spec.name}, {folds}{width}"),
        ("Difference", signed(100 * (error - chance)), said),
        ("Error in training", training_error, "of the same"),
        ("Time of a fold", duration(float(np.mean(best.seconds))), f"{count(best.size)} examples"),
    ]
    if others:
        second, against = others[0], _against(metrics, best, others[0])
        next_error = f"{fixed(100 * mean_error(second))} %"
        sentence += f" Next is {second.spec.name} with {next_error}: the first is {against}."
        tiles[3] = ("Next", next_error, f"{second.spec.name}; the first is {against}")
    return {"tiles": tiles, "sentence": sentence}


def _against_largest(recipe: ClassificationRecipe, best: Result, label: np.ndarray, usual: int) -> str:
    settings, pair = recipe.significance, ("best", LARGEST_CLASS)
    if settings.test is None:
        return "not tested"
    wrong = selections_of({"best": best.predicted, LARGEST_CLASS: np.full(label.size, usual)}, label)
    (test,) = wrong.significance(Classification(), [pair], settings.test, settings.samples, recipe.seed).values()
    return verdict(test, lower_is_better=True)


def _against(metrics: Mapping[str, Any], a: Result, b: Result) -> str:
    """The verdict on ``a`` compared with ``b``, by the tests of metrics.json."""
    tests = metrics["significance"].get(f"{a.set}, noise {a.noise:g}" if a.noise else a.set, {})
    for first, second, sign in ((a, b, 1), (b, a, -1)):
        if test := tests.get(f"{first.spec.name}_vs_{second.spec.name}"):
            return verdict(test | {"difference": sign * test["difference"]}, lower_is_better=True)
    return "not tested against it"


def _over_sets(metrics: Mapping[str, Any], groups: Mapping[str, Sequence[Result]]) -> dict[str, Any]:
    """The headline of several sets: which run has the best mean rank, or the mean error of a single run."""
    sets = len(groups)
    tiles = [("Sets", str(sets), f"{len(metrics['runs'])} results")]
    ranks = metrics["tables"]["ranks"][0]["ranks"] if metrics["tables"].get("ranks") else {}
    if len(ranks) < 2:
        error = fixed(100 * float(np.mean([mean_error(each) for runs in groups.values() for each in runs])))
        tiles.append(("Mean error", f"{error} %", f"over {sets} sets"))
        return {"tiles": tiles, "sentence": f"Over {sets} sets, {error} % of the test examples are wrong."}
    first, second, *_ = sorted(ranks, key=lambda run: ranks[run])
    tiles.append(("Best mean rank", fixed(ranks[first]), f"{first}, of {len(ranks)} runs"))
    tiles.append(("Next", fixed(ranks[second]), second))
    sentence = (
        f"Over {sets} sets, {first} has the best mean rank among {len(ranks)} runs, {fixed(ranks[first])}. "
        f"{second} follows with {fixed(ranks[second])}; see below which differences are significant."
    )
    return {"tiles": tiles, "sentence": sentence}
