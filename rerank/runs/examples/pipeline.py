"""A recipe of classification carried out: experiments, tables, figures, predictions, model, report."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from rerank import __version__
from rerank.base.errors import RecipeError
from rerank.base.progress import track
from rerank.engines.settings import Engine
from rerank.metrics.classification import Classification
from rerank.recipes.example_recipe import ClassificationRecipe, Spec
from rerank.recipes.settings import files_named
from rerank.runs.course import carry_out
from rerank.runs.examples.drawing import Traced, draw_results, draw_traces, traces_of
from rerank.runs.examples.experiment import SetOrigin, run_spec
from rerank.runs.examples.kept import code_of, key_of, load_results, save_results
from rerank.runs.examples.learning import learning_curve
from rerank.runs.examples.models import train_model
from rerank.runs.examples.page import Outcome, write_page
from rerank.runs.examples.plan import Plan, check
from rerank.runs.examples.predictions import selections_of, significance_of, write_predictions
from rerank.runs.examples.results import Result
from rerank.runs.examples.shown import best_of, features_table, groups_of, hardest_table
from rerank.runs.examples.tables import as_data, tables_of
from rerank.runs.figures import write_figures
from rerank.runs.report.lines import FigureDrawing
from rerank.runs.results import RUNS, Metrics
from rerank.runs.stages import Stages
from rerank.storage.written import claim, remove_written

log = logging.getLogger("rerank")
RESULTS = (RUNS, "metrics.json", "history.jsonl", "report.html", "predictions", "figures", "model")


def extract(recipe: ClassificationRecipe) -> dict[str, Any]:
    """Read all sets of a recipe; returns their counts."""
    plan = check(recipe)
    for name in plan.sets:
        plan.draw(name)(recipe.run_seeds[0])
    return plan.counts


def run(
    recipe: ClassificationRecipe,
    directory: Path,
    *,
    resume: bool = False,
    stages: tuple[str, ...] = ("train", "test"),
    engine: Engine | None = None,
) -> Outcome:
    """Carry out a recipe and leave its artefacts in ``directory``.

    resume: keep the results that an interrupted call has finished. stages: with "train" alone, only the model is
    trained, on all training examples of the one set. engine: whose workers fit folds and points of tuning; threads of
    this process by default.

    Raises
    ------
    RerankError: see its subclasses.
    """
    plan, outcome = check(recipe), Outcome()
    if "test" not in stages and not plan.single:
        raise RecipeError("a model is of one set, one noise level and one run; leave the others out", key="runs")
    settings = recipe.model_dump(mode="json")
    outcome.metrics = carry_out(
        recipe,
        directory,
        lambda work: _stages(plan, directory, work, "test" in stages, engine, outcome),
        results=RESULTS,
        inputs=files_named(settings, recipe.data.root),
        resume=resume,
        last="report" if "test" in stages else "model",
        code=code_of(settings),
        clean=lambda: remove_written(directory, [RUNS]),
    )
    return outcome


def _stages(plan: Plan, directory: Path, work: Stages, tests: bool, engine: Engine | None, outcome: Outcome) -> Metrics:
    """Stage by stage, into ``outcome``; returns its metrics, without stages and code."""
    start = time.monotonic()
    recipe, results = plan.recipe, list[Result]()
    traced: dict[str, Traced] = {}
    if tests:
        with work.stage("experiments", sets=len(plan.sets), runs=len(plan.specs)) as found:
            results, traced = _experiments(plan, directory, engine, outcome)
            found["results"] = len(results)
        work.append(line for each in results for line in _history(each))
    if plan.single:
        with work.stage("model"):
            (name,) = plan.sets
            tuned = results[0].tuned if results else None
            model = train_model(recipe, plan.specs[0], plan.draw(name)(recipe.run_seeds[0]), tuned)
            model.save(directory / "model")
            outcome.features = features_table(model, plan.specs[0].recipe.training.predictor)
    if len(results) == 1:
        (only,) = results
        wrong = selections_of(only.predictions, plan.labels[only.set])
        wrong.save(claim(directory, "predictions", "test.selections.npz"))
    outcome.metrics = _metrics(plan, results) | ({"curve": outcome.curves} if outcome.curves else {})
    if results:
        with work.stage("report"):
            outcome.metrics["significance"] = significance_of(recipe, plan.labels, results)
            outcome.tables = tables_of(recipe, results)
            outcome.drawings = _draw(recipe, results, traced, directory)
            outcome.metrics["figures"] = [drawing.as_data() for drawing in outcome.drawings]
            outcome.metrics["seconds"] = round(time.monotonic() - start, 3)
            write_page(directory / "report.html", recipe, outcome, plan.labels, results)
    return outcome.metrics


def _experiments(
    plan: Plan, directory: Path, engine: Engine | None, outcome: Outcome
) -> tuple[list[Result], dict[str, Traced]]:
    """All results, set by set, and what the figures measure on the way; ``outcome`` gets the hardest examples."""
    recipe, seeds, results = plan.recipe, plan.recipe.run_seeds, list[Result]()
    traced: dict[str, Traced] = {}

    def jobs() -> Iterator[tuple[str, float, Spec]]:
        """Every run on every set at every noise level; after each set, what needs all of it."""
        for name in plan.sets:
            draw = plan.draw(name)
            for noise, spec in product(recipe.data.noise, plan.specs):
                yield name, noise, spec
            for figure in recipe.figures:
                if figure.traced:
                    traced.setdefault(figure.name, {}).update(traces_of(recipe, plan.specs, draw, figure, results))
            examples = draw(seeds[0])
            plan.labels[name] = examples.tested.label
            own = [each for each in results if each.set == name]
            if recipe.training.curve:
                best = best_of(groups_of(own)[name])
                again = partial(_fitted, plan, directory, engine, name, best.noise, seeds=seeds[:1])
                outcome.curves[name] = learning_curve(best, plan.labels[name], again)
            write_predictions(directory, examples, own)
            outcome.hardest[name] = hardest_table(examples, groups_of(own)[name])

    total = len(plan.sets) * len(recipe.data.noise) * len(plan.specs)
    for name, noise, spec in track(jobs(), recipe.name, total=total, unit="runs"):
        found = _fitted(plan, directory, engine, name, noise, spec, seeds)
        results += found
        error = float(np.mean([np.mean(each.values("error")) for each in found]))
        level = f", noise {noise:g}" if noise else ""
        chosen = f" ({_chosen(found[0].tuned)})" if found[0].tuned else ""
        log.info("%s%s, %s%s: error %.2f %%", name, level, spec.name, chosen, 100 * error)
    return results, traced


def _fitted(
    plan: Plan,
    directory: Path,
    engine: Engine | None,
    name: str,
    noise: float,
    spec: Spec,
    seeds: tuple[int, ...],
) -> list[Result]:
    """The results of a run on a set, unless they are stored already."""
    draw = plan.draw(name)
    key = key_of(draw(seeds[0]), noise, spec)
    found = load_results(directory / RUNS, key, spec)
    if found is None:
        origin = SetOrigin.of(plan.recipe.data, name, plan.sets[name])
        found = run_spec(spec, draw, noise, seeds, engine, origin)
        claim(directory, RUNS, key)
        save_results(directory / RUNS, key, found)
    return found


def _chosen(tuned: dict[str, Any]) -> str:
    """What tuning chose, in words."""
    values = [f"{key.split('.')[-1]} {value}" for key, value in tuned.items() if "." in key]
    if tuned["held_out_error"] == tuned.get("default_error") and not values:
        values = ["the recipe's settings"]
    return ", ".join([*values, *([f"{tuned['epochs']} epochs"] if tuned["epochs"] else [])]) or "nothing to tune"


def _metrics(plan: Plan, results: Sequence[Result]) -> Metrics:
    """The content of metrics.json except for significance and time."""
    recipe, single = plan.recipe, len(results) == 1
    return {
        "schema": 1,
        "task": recipe.task,
        "name": recipe.name,
        "seed": recipe.run_seeds[0],
        "version": __version__,
        "metric": Classification().signature,
        "corpora": plan.counts,
        "reported": recipe.reported.model_dump() if recipe.reported else None,
        "splits": {"test": results[0].splits()} if single else {},
        "tables": as_data(recipe, results) if results else {},
        "significance": {},
        "runs": [each.entry() for each in results],
    }


def _history(result: Result) -> list[dict[str, Any]]:
    place = {"run": result.spec.name, "set": result.set, "noise": result.noise, "seed": result.seed}
    return [place | line for line in result.history]


def _draw(
    recipe: ClassificationRecipe, results: Sequence[Result], traced: dict[str, Traced], directory: Path
) -> list[FigureDrawing]:
    drawings = []
    for figure in recipe.figures:
        if figure.traced:
            drawings += draw_traces(figure, traced[figure.name])
        else:
            drawings += draw_results(recipe, figure, results)
    write_figures(directory, drawings)
    return drawings
