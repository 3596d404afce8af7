"""The figures of a recipe: what they need is measured, or taken from the results, and drawn."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rerank.base.errors import RecipeError
from rerank.classification.curves import Trace, trace
from rerank.classification.experiment import Draw, workers
from rerank.classification.figures import NAMES, ErrorCurve, FigureDrawing, draw_lines, draw_scatter, parameter_lines
from rerank.classification.results import Result
from rerank.classification.tables import cells_of
from rerank.recipes.example_recipe import ClassificationRecipe, FigureSettings, Spec

Traced = dict[str, dict[str, list[Trace]]]  # by set (and noise) and run, one per seed


def check_figures(recipe: ClassificationRecipe, specs: Sequence[Spec]) -> None:
    """Do the figures name runs, of ``specs``, and keys that there are?

    Raises
    ------
    RecipeError: one does not.
    """
    for number, figure in enumerate(recipe.figures):
        if figure.kind == "parameter" and not any(figure.x in spec.point for spec in specs):
            known = ", ".join(sorted({key for spec in specs for key in spec.point})) or "none"
            raise RecipeError(f"no run has a grid over {figure.x!r}; keys of grids: {known}", key=f"figures.{number}.x")
        names = [spec.run for spec in specs]
        for axis in (figure.x, figure.y) if figure.kind == "scatter" else ():
            if axis not in names:
                raise RecipeError(f"found {axis!r}; runs: {', '.join(names)}", key=f"figures.{number}")
    if len({figure.name for figure in recipe.figures}) < len(recipe.figures):
        raise RecipeError("two figures have the same name", key="figures")


def traces_of(recipe: ClassificationRecipe, specs: Sequence[Spec], draw: Draw, figure: FigureSettings) -> Traced:
    """A single pass of every learner over one set, at every noise level with every seed, on the first fold."""
    seeds = recipe.run_seeds
    sets = {seed: draw(seed) for seed in seeds}
    name = sets[seeds[0]].name
    found: Traced = {}
    for noise in recipe.data.noise:
        panel = f"{name}, noise {noise:g}" if len(recipe.data.noise) > 1 else name
        parts = {seed: sets[seed].split(0, noise, seed) for seed in seeds}
        jobs = [(spec, seed) for spec in specs if spec.baseline is None for seed in seeds]

        def look(job: tuple[Spec, int], parts: dict = parts) -> Trace:
            spec, seed = job
            return trace(spec, parts[seed], seed=seed, every=figure.every, test=figure.kind == "stream")

        with workers(recipe.training.workers) as run_all:
            for (spec, _), seen in zip(jobs, run_all(look, jobs), strict=True):
                found.setdefault(panel, {}).setdefault(spec.name, []).append(seen)
    return found


def draw_traces(figure: FigureSettings, traced: Traced) -> list[FigureDrawing]:
    """One figure per set and noise level: online mistakes, or the test measure, over the examples seen."""
    drawings = []
    for panel, runs in traced.items():
        lines = []
        for name, seen in runs.items():
            if figure.kind == "online":
                values = np.array([each.mistakes for each in seen], dtype=np.float64)
            else:
                errors = np.array([each.errors for each in seen])
                values = 100 * (1 - errors if figure.measure.endswith("accuracy") else errors)
            x = [float(sample) for sample in seen[0].samples]
            lines.append(ErrorCurve(name, x, values.mean(axis=0).tolist(), values.std(axis=0).tolist()))
        what = "online mistakes" if figure.kind == "online" else NAMES[figure.measure]
        seeds = max(len(seen) for seen in runs.values())
        caption = _caption(figure, panel, f"{what} during one pass", seeds)
        drawings.append(draw_lines(_name(figure, panel, traced), caption, lines, "examples", what))
    return drawings


def draw_results(
    recipe: ClassificationRecipe, figure: FigureSettings, results: Sequence[Result]
) -> list[FigureDrawing]:
    """Figures over the results: one per set for a parameter, a single one for a comparison of two runs."""
    if figure.kind == "scatter":
        return [draw_scatter(figure, cells_of(recipe, results))]
    panels = parameter_lines(figure, results)
    drawings = []
    for panel, lines in panels.items():
        x = f"1 / (n · {str(figure.x).split('.')[-1]})" if figure.inverse else str(figure.x).split(".")[-1]
        caption = _caption(figure, panel, f"{NAMES[figure.measure]} over {x}", len(recipe.run_seeds))
        name = _name(figure, panel, panels)
        drawings.append(draw_lines(name, caption, lines, x, NAMES[figure.measure], logarithmic=True))
    return drawings


def _caption(figure: FigureSettings, panel: str, what: str, seeds: int) -> str:
    spread = f", mean of {seeds} seeds and standard deviation" if seeds > 1 else ""
    return f"{figure.title or figure.name}, {panel}: {what}{spread}."


def _name(figure: FigureSettings, panel: str, panels: dict) -> str:
    return figure.name if len(panels) == 1 else f"{figure.name}-{panel.replace(', noise ', '-noise')}"
