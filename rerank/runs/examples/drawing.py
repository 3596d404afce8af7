"""The figures of a recipe: what they need is measured, or taken from the results, and drawn."""

from collections.abc import Mapping, Sequence
from itertools import groupby

import numpy as np

from rerank.base.errors import RecipeError
from rerank.recipes.example_recipe import ClassificationRecipe, Spec
from rerank.recipes.figures import ExampleFigure, check_names
from rerank.runs.examples.curves import Trace, trace
from rerank.runs.examples.experiment import workers
from rerank.runs.examples.figures import NAMES, draw_scatter, parameter_lines
from rerank.runs.examples.results import Result
from rerank.runs.examples.sets import Draw
from rerank.runs.examples.tables import cells_of
from rerank.runs.examples.tuning import Tuned
from rerank.runs.report.lines import FigureDrawing, FigureLine, captioned, draw_lines

Traced = dict[str, dict[str, list[Trace]]]  # by set (and noise) and run, one per seed


def check_figures(recipe: ClassificationRecipe, specs: Sequence[Spec]) -> None:
    """Do the figures name runs, of ``specs``, and keys that there are?

    Raises
    ------
    RecipeError: one does not.
    """
    check_names(recipe.figures, [spec.run for spec in specs])
    for number, figure in enumerate(recipe.figures):
        if figure.kind == "parameter" and not any(figure.x in spec.point for spec in specs):
            known = ", ".join(sorted({key for spec in specs for key in spec.point})) or "none"
            raise RecipeError(f"no run has a grid over {figure.x!r}; keys of grids: {known}", key=f"figures.{number}.x")
        names = [spec.run for spec in specs]
        for axis in (figure.x, figure.y) if figure.kind == "scatter" else ():
            if axis not in names:
                raise RecipeError(f"found {axis!r}; runs: {', '.join(names)}", key=f"figures.{number}")


def traces_of(specs: Sequence[Spec], draw: Draw, figure: ExampleFigure, results: Sequence[Result]) -> Traced:
    """Passes of the learners of ``specs`` over one set, at every noise level with every seed: a single one over the
    first fold, or, for ``epochs``, as many as a run may make, over every fold. ``results``, those on the set, know the
    tuned parameters."""
    recipe, whole = specs[0].recipe, figure.kind == "epochs"
    seeds, levels = recipe.run_seeds, {spec.noise for spec in specs}
    sets = {seed: draw(seed) for seed in seeds}
    tuned = {(each.noise, each.spec.name): each.tuned for each in results if whole and each.tuned}
    found: Traced = {}
    for noise, at_noise in groupby(specs, key=lambda spec: spec.noise):
        panel = f"{specs[0].set}, noise {noise:g}" if len(levels) > 1 else specs[0].set
        folds = range(sets[seeds[0]].splits if whole else 1)
        parts = {(seed, fold): sets[seed].split(fold, noise, seed) for seed in seeds for fold in folds}
        shown = [spec for spec in at_noise if spec.baseline is None and figure.shows(spec.run)]
        jobs = [(spec, place) for spec in shown for place in parts]

        def look(job: tuple[Spec, tuple[int, int]], parts: dict = parts) -> Trace:
            spec, place = job
            part = parts[place].shared(spec.recipe.training.share, place[0])
            passes, every = 1, figure.every
            if whole:
                passes, every = (spec.recipe.tune or spec.recipe.training).epochs, max(1, part.train.size)
            if chosen := tuned.get((spec.noise, spec.name)):
                spec = spec.at(Tuned.from_dict(chosen).point)
            return trace(spec, part, seed=place[0], every=every, test=figure.kind != "online", passes=passes)

        with workers(recipe.training.workers) as run_all:
            for (spec, _), seen in zip(jobs, run_all(look, jobs), strict=True):
                found.setdefault(panel, {}).setdefault(spec.name, []).append(seen)
    return found


def draw_all(
    recipe: ClassificationRecipe, results: Sequence[Result], traced: Mapping[str, Traced]
) -> list[FigureDrawing]:
    """The figures that the recipe asks for; ``traced``: what those that are measured in passes of their own show."""
    drawings = []
    for figure in recipe.figures:
        drawings += draw_traces(figure, traced[figure.name]) if figure.traced else draw_results(recipe, figure, results)
    return drawings


def draw_traces(figure: ExampleFigure, traced: Traced) -> list[FigureDrawing]:
    """One figure per set and noise level: online mistakes, or the test measure, over the examples or epochs seen."""
    what = "online mistakes" if figure.kind == "online" else NAMES[figure.measure]
    drawings = []
    for panel, runs in traced.items():
        lines = []
        for name, seen in runs.items():
            values = np.array([each.mistakes if figure.kind == "online" else each.errors for each in seen], np.float64)
            if figure.kind != "online":
                values = 100 * (1 - values if figure.measure.endswith("accuracy") else values)
            spread = values.std(axis=0)
            if figure.kind == "epochs":
                spread /= np.sqrt(max(1, len(seen) - 1))
            epochs = range(1, values.shape[1] + 1)
            x = [float(each) for each in (epochs if figure.kind == "epochs" else seen[0].samples)]
            lines.append(FigureLine(name, x, values.mean(axis=0).tolist(), spread.tolist()))
        passes = max(len(seen) for seen in runs.values())
        if figure.kind == "epochs":
            text = f"{panel}: {what} after every epoch, mean of {passes} folds and standard error"
        else:
            text = _text(panel, f"{what} during one pass", passes)
        x_name = "epochs" if figure.kind == "epochs" else "examples"
        drawings.append(draw_lines(_name(figure, panel, traced), captioned(figure, text), lines, x_name, what))
    return drawings


def draw_results(recipe: ClassificationRecipe, figure: ExampleFigure, results: Sequence[Result]) -> list[FigureDrawing]:
    """Figures over the results: one per set for a parameter, a single one for a comparison of two runs."""
    results = [each for each in results if figure.shows(each.spec.run)]
    if figure.kind == "scatter":
        return [draw_scatter(figure, cells_of(recipe, results))]
    panels = parameter_lines(figure, results)
    drawings = []
    for panel, lines in panels.items():
        x = f"1 / (n · {str(figure.x).split('.')[-1]})" if figure.inverse else str(figure.x).split(".")[-1]
        caption = captioned(figure, _text(panel, f"{NAMES[figure.measure]} over {x}", len(recipe.run_seeds)))
        name = _name(figure, panel, panels)
        drawings.append(draw_lines(name, caption, lines, x, NAMES[figure.measure], logarithmic_x=True))
    return drawings


def _text(panel: str, what: str, seeds: int) -> str:
    spread = f", mean of {seeds} seeds and standard deviation" if seeds > 1 else ""
    return f"{panel}: {what}{spread}"


def _name(figure: ExampleFigure, panel: str, panels: dict) -> str:
    return figure.name if len(panels) == 1 else f"{figure.name}-{panel.replace(', noise ', '-noise')}"
