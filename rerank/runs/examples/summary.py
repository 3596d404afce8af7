"""What a classification recipe found, in one sentence and a few large numbers."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rerank.metrics.classification import Classification
from rerank.recipes.example_recipe import ClassificationRecipe
from rerank.runs.examples.predictions import Tested, selections_of
from rerank.runs.examples.results import Result
from rerank.runs.examples.shown import groups_of, mean_error
from rerank.runs.report.measures import count, duration, fixed, signed
from rerank.runs.report.spread import Spread
from rerank.runs.report.verdict import verdict

LARGEST = "the largest class"


def summary(
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
    label, classes, *_ = tested[name]
    usual = int(np.bincount(label, minlength=len(classes)).argmax())
    chance = float(np.mean(label != usual))
    found = _against_largest(recipe, best, label, usual)
    error, spread = mean_error(best), Spread.of(best.values("error"))
    folds = f"mean of {spread.values} folds" if spread.values > 1 else "of the test part"
    width = f" ±{fixed(100 * spread.error)}" if spread.error is not None else ""
    sentence = (
        f"On {name}, {best.spec.name} errs on {fixed(100 * error)} % of the test examples ({folds}{width}); "
        f"to say {classes[usual]} always would be wrong in {fixed(100 * chance)} %: {found}."
    )
    tiles = [
        {"name": f"Always {classes[usual]}", "value": f"{fixed(100 * chance)} %", "note": "error of the largest class"},
        {"name": "Error", "value": f"{fixed(100 * error)} %", "note": f"{best.spec.name}, {folds}{width}"},
        {"name": "Difference", "value": signed(100 * (error - chance)), "note": found},
        {
            "name": "Error in training",
            "value": f"{fixed(100 * float(np.mean(best.train_errors)))} %",
            "note": "of the same",
        },
        {
            "name": "Time of a fold",
            "value": duration(float(np.mean(best.seconds))),
            "note": f"{count(best.size)} examples",
        },
    ]
    if others:
        (second, *_), said = others, _said(metrics, best, others[0])
        sentence += f" Next is {second.spec.name} with {fixed(100 * mean_error(second))} %: the first is {said}."
        note = f"{second.spec.name}; the first is {said}"
        tiles[3] = {"name": "Next", "value": f"{fixed(100 * mean_error(second))} %", "note": note}
    return {"tiles": tiles, "sentence": sentence}


def _against_largest(recipe: ClassificationRecipe, best: Result, label: np.ndarray, usual: int) -> str:
    settings = recipe.significance
    if settings.test is None:
        return "not tested"
    wrong = selections_of({"best": best.predicted, LARGEST: np.full(label.size, usual)}, label)
    pair = ("best", LARGEST)
    found = wrong.significance(Classification(), [pair], settings.test, settings.samples, recipe.seed)
    return verdict(found["_vs_".join(pair)], lower_is_better=True)


def _said(metrics: Mapping[str, Any], a: Result, b: Result) -> str:
    """How ``a`` is, compared with ``b``, by the tests of metrics.json."""
    place = f"{a.set}, noise {a.noise:g}" if a.noise else a.set
    tests, names = metrics["significance"].get(place, {}), (a.spec.name, b.spec.name)
    if found := tests.get("_vs_".join(names)):
        return verdict(found, lower_is_better=True)
    if found := tests.get("_vs_".join(names[::-1])):
        return verdict({**found, "difference": -found["difference"]}, lower_is_better=True)
    return "not tested against it"


def _over_sets(metrics: Mapping[str, Any], groups: Mapping[str, Sequence[Result]]) -> dict[str, Any]:
    """The headline of several sets: which run has the best mean rank, or the mean error of a single run."""
    sets = len(groups)
    tiles = [{"name": "Sets", "value": str(sets), "note": f"{len(metrics['runs'])} results"}]
    ranks = metrics["tables"]["ranks"][0]["ranks"] if metrics["tables"].get("ranks") else {}
    if len(ranks) < 2:
        error = float(np.mean([mean_error(each) for runs in groups.values() for each in runs]))
        tiles.append({"name": "Mean error", "value": f"{fixed(100 * error)} %", "note": f"over {sets} sets"})
        return {"tiles": tiles, "sentence": f"Over {sets} sets, {fixed(100 * error)} % of the test examples are wrong."}
    first, second, *_ = sorted(ranks, key=lambda run: ranks[run])
    tiles.append({"name": "Best mean rank", "value": fixed(ranks[first]), "note": f"{first}, of {len(ranks)} runs"})
    tiles.append({"name": "Next", "value": fixed(ranks[second]), "note": second})
    tested = f"{second} follows with {fixed(ranks[second])}; see below which differences are significant"
    sentence = (
        f"Over {sets} sets, {first} has the best mean rank among {len(ranks)} runs, {fixed(ranks[first])}. {tested}."
    )
    return {"tiles": tiles, "sentence": sentence}
