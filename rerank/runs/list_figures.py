"""The figures of a recipe over lists: courses of training, quality against size, quality over epochs."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rerank.base.errors import RecipeError
from rerank.recipes.figures import ListFigure, check_names
from rerank.recipes.recipe import ListRecipe
from rerank.runs.report.data import Curve
from rerank.runs.report.measures import primary_of
from rerank.runs.report.numbers import Spread
from rerank.runs.report.plot import Figure, FigureLine, captioned, draw_bars, draw_lines
from rerank.runs.report.rows import dev_of, groups_of, splits_of, written_score

AXES = {"mistakes": "mistakes (cumulative)", "nonzero_weights": "nonzero weights"}


def check_figures(recipe: ListRecipe) -> None:
    """Refuse figures of runs, points of grids or test splits that the recipe does not have."""
    names = run_names(recipe)
    check_names(recipe.figures, [*names.values(), *names])
    for number, figure in enumerate(recipe.figures):
        if figure.split not in (None, *recipe.data.tests):
            message = f"found {figure.split!r}; test splits: {', '.join(recipe.data.tests)}"
            raise RecipeError(message, key=f"figures.{number}.split")


def run_names(recipe: ListRecipe) -> dict[str, str]:
    """By the name of a run with the point of its grid: the name of the run."""
    return {single.name: single.run for single in recipe.expand()}


def draw_figures(recipe: ListRecipe, metrics: Mapping[str, Any], curves: Sequence[Curve]) -> list[Figure]:
    """The figures that the recipe asks for, from the content of metrics.json and one curve for every run."""
    names, drawings = run_names(recipe), []
    for figure in recipe.figures:
        shown = {name: run for name, run in names.items() if figure.shows(name, run)}
        by_name = {name: found for name in shown if (found := [curve for curve in curves if curve.run == name])}
        if figure.kind == "size":
            drawings.append(_size(figure, metrics, shown))
        elif figure.kind == "course":
            drawings.append(_course(figure, by_name))
        else:
            drawings.append(_epochs(figure, metrics, by_name))
    return drawings


def _course(figure: ListFigure, curves: Mapping[str, Sequence[Curve]]) -> Figure:
    """Counts that add up over the lists processed in training."""
    lines = []
    for name, runs in curves.items():
        values = np.array([getattr(curve, figure.measure) for curve in runs], dtype=np.float64)
        spread = values.std(axis=0, ddof=1).tolist() if len(runs) > 1 else []
        lines.append(FigureLine([float(x) for x in runs[0].samples], values.mean(axis=0).tolist(), name, spread))
    what, seeds = AXES[figure.measure], max(map(len, curves.values()), default=1)
    mean = f", mean of {seeds} seeds and standard deviation" if seeds > 1 else ""
    caption = captioned(figure, f"{what} over the lists processed in training{mean}")
    return draw_lines(figure.name, caption, lines, "lists processed in training", what)


def _size(figure: ListFigure, metrics: Mapping[str, Any], shown: Mapping[str, str]) -> Figure:
    """The gain over the base against the share of columns with a weight, with a paper's points."""
    measure, first = primary_of(metrics), next(iter(splits_of(metrics)), "")
    split = figure.split or first
    key = measure.key if split == first else f"{split}.{measure.key}"
    base = metrics["splits"].get(split, {}).get("base", {}).get(measure.key, 0.0)
    columns = max(entry["columns"] for entry in metrics["corpora"].values())
    points: dict[str, list[tuple[float, float]]] = {}
    for group in groups_of(metrics):
        run, weights = shown.get(str(group.runs[0]["name"])), group.training("nonzero_weights")
        score = written_score(metrics, group, split, measure.key)
        if run is not None and score is not None and weights is not None:
            size, gain = 100 * weights.mean / columns, measure.scale * (score.mean - base)
            points.setdefault(run, []).append((size, gain))
    lines = []
    for run, gained in points.items():
        paper = _reported(metrics.get("reported") or {}, run, key, measure.scale)
        lines.append(FigureLine(*_axes(gained), run))
        lines += [FigureLine(*_axes(paper), f"{run}, paper", faint=True)] if paper else []
    text = f"what {split} gains over the base, {measure.text(base)}, by the size of the model"
    y = f"{measure.name}, less the base's"
    return draw_lines(figure.name, captioned(figure, text), lines, "columns with a weight (%)", y, logarithmic_x=True)


def _axes(points: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    """x and y of ``points``, from left to right."""
    ordered = sorted(points)
    return [x for x, _ in ordered], [y for _, y in ordered]


def _reported(reported: Mapping[str, Any], run: str, key: str, scale: float) -> list[tuple[float, float]]:
    """The points, as those of ``_size``, that a paper gives for a run and its grid."""
    columns, rows = reported.get("columns"), reported.get("rows", {})
    base, found = rows.get("base", {}).get(key), []
    for name, row in rows.items():
        known = columns and base is not None and {key, "nonzero_weights"} <= set(row)
        if known and (name == run or re.match(rf"{re.escape(run)} \w+=", name)):
            found.append((100 * row["nonzero_weights"] / columns, scale * (row[key] - base)))
    return found


def _epochs(figure: ListFigure, metrics: Mapping[str, Any], curves: Mapping[str, Sequence[Curve]]) -> Figure:
    """How well the predictors of all epochs do on dev, and how much they differ."""
    measure, bars = primary_of(metrics), []
    for place, (name, runs) in enumerate(curves.items(), start=1):
        spread = Spread.known(measure.scale * score for curve in runs for score in curve.dev_scores)
        if spread is not None:
            bars.append(FigureLine([float(place)], [spread.mean], name, [spread.deviation or 0.0]))
    y = f"{measure.name} on {dev_of(metrics)}"
    return draw_bars(figure.name, captioned(figure, f"{y} after every epoch, mean and standard deviation"), bars, y)
