"""The figures of a run over lists: those that every report has, and those that its recipe asks for."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rerank.base.errors import RecipeError
from rerank.recipes.recipe import ListRecipe
from rerank.recipes.sections import ListFigure, check_names
from rerank.runs.report.measures import Measure, primary_of
from rerank.runs.report.numbers import Spread, number
from rerank.runs.report.plot import PALETTE, Figure, FigureLine, captioned, draw, ends, linear, logarithmic
from rerank.runs.report.rows import (
    Group,
    base_on_dev,
    coverage_of,
    decided_by,
    dev_of,
    groups_of,
    splits_of,
    written_score,
)

POINTS = 400  # of a curve at most
LABELS = 8  # of a line at most; if there are more, only its ends have one
PROCESSED = "lists processed in training"
AXES = {"mistakes": "mistakes (cumulative)", "nonzero_weights": "nonzero weights"}


@dataclass(frozen=True)
class Curve:
    """The course of one run: what had happened when ``samples[i]`` lists had been processed (counted over all epochs).

    ``mistakes`` (cumulative) and ``nonzero_weights`` belong to ``samples``; ``dev_scores``, the metric's primary
    measure on the dev split, to ``dev_samples`` (one per epoch).
    """

    run: str
    seed: int
    samples: Sequence[int]
    mistakes: Sequence[int]
    nonzero_weights: Sequence[int]
    dev_samples: Sequence[int] = ()
    dev_scores: Sequence[float] = ()


@dataclass(frozen=True)
class LearningCurve:
    """Scores of models that were trained on this many lists (or examples): by split, one per entry of ``sizes``.

    ``verdict``: a sentence on whether more of them would help; ``unit``: what they are.
    """

    sizes: Sequence[int]
    scores: Mapping[str, Sequence[float]]
    verdict: str
    unit: str = "lists"


# Figures of every report


def names_of(curves: Sequence[Curve], metrics: Mapping[str, Any]) -> list[str]:
    """The names of the runs: the chosen run's, then the best on dev."""
    best: dict[str, float] = {}
    measure = primary_of(metrics)
    for curve in curves:
        scores = [measure.better(score) for score in curve.dev_scores]
        best[curve.run] = max([best.get(curve.run, -float("inf")), *scores])
    chosen = {str(run.get("name")) for group in groups_of(metrics) if group.chosen for run in group.runs}
    return sorted(best, key=lambda name: (name not in chosen, -best[name], name))


def training_figures(curves: Sequence[Curve], metrics: Mapping[str, Any]) -> list[Figure]:
    """Mistakes, weights and, where there are any, dev scores over the lists processed.

    Batch learners have no course: they have a dev score beside those of others, and no figures if they are alone.
    """
    courses = [curve for curve in curves if len(curve.samples) > 1]
    if not courses:
        return []
    names, measure, dev = names_of(curves, metrics), primary_of(metrics), dev_of(metrics)
    captions = {"mistakes": "Mistakes made in training.", "nonzero_weights": "Weights other than zero."}
    figures = []
    for key, caption in captions.items():
        counts = [FigureLine(curve.samples, getattr(curve, key), curve.run) for curve in courses]
        figures.append(_over_training(caption, counts, names, AXES[key]))
    if any(curve.dev_samples for curve in curves):
        scored = [
            FigureLine(curve.dev_samples, [measure.scale * score for score in curve.dev_scores], curve.run)
            for curve in curves
        ]
        label, level = f"{measure.name} on dev", _level(base_on_dev(metrics), measure)
        figures.append(
            _over_training(f"Score on {dev} after every epoch.", scored, names, label, scores=True, level=level)
        )
    return figures


def _over_training(
    caption: str, lines: Sequence[FigureLine], names: Sequence[str], label: str, *, scores: bool = False, **more: Any
) -> Figure:
    """A line for every curve, in the order of ``names``; those beyond the palette share the legend's last place."""
    shown = len(PALETTE) if len(names) <= len(PALETTE) else len(PALETTE) - 1
    drawn = []
    for line in sorted(lines, key=lambda line: names.index(line.name)):
        kept = np.unique(np.linspace(0, len(line.x) - 1, min(len(line.x), POINTS)).astype(int)).tolist()
        line = replace(line, x=[line.x[i] for i in kept], y=[line.y[i] for i in kept])
        place = names.index(line.name) + 1
        others = {"name": f"{len(names) - shown} others", "series": 0, "marks": False}
        drawn.append(replace(line, **(others if place > shown else {"series": place, "marks": scores})))
    x = linear([x for line in drawn for x in line.x], zero=True)
    y = None if scores else linear([y for line in drawn for y in line.y], zero=True)
    said = f"{label} over {PROCESSED}. {'; '.join(ends(line) for line in drawn if line.series)}"
    return draw(label, caption, drawn, PROCESSED, label, x=x, y=y, said=said, **more)


def _level(base: float | None, measure: Measure) -> tuple[float, str] | None:
    return None if base is None else (measure.scale * base, f"base {measure.text(base)}")


def learning_figure(curve: LearningCurve | None, measure: Measure) -> Figure | None:
    """The score on every split over the number of lists, or examples, that training had, with a verdict."""
    if curve is None:
        return None
    lines = [
        FigureLine(curve.sizes, [measure.scale * score for score in scores], split)
        for split, scores in curve.scores.items()
    ]
    said = f"{measure.name} over the number of training {curve.unit}. {'; '.join(map(ends, lines))}"
    label, x = f"training {curve.unit} (log scale)", logarithmic(curve.sizes, margin=0.04)
    return draw("learning", curve.verdict, lines, label, measure.name, x=x, said=said)


def coverage_figure(metrics: Mapping[str, Any]) -> Figure | None:
    """The score over the share of lists that are answered, those with the largest margins; None without answers."""
    measure, lines = primary_of(metrics), list[FigureLine]()
    for split, curve in coverage_of(metrics).items():
        scores = [measure.scale * score for score in curve["score"]]
        lines.append(FigureLine([100 * share for share in curve["coverage"]], scores, split, marks=False))
    if not lines:
        return None
    caption, label = "Score on the lists with the largest margins.", "lists that are answered (%)"
    return draw("coverage", caption, lines, label, measure.name, said=f"{label}: {'; '.join(map(ends, lines))}")


def sweeps_of(metrics: Mapping[str, Any]) -> list[list[Group]]:
    """Runs that differ only in the weight of the L1 term, with at least three values of it, from small to large."""
    families: dict[str, list[tuple[float, Group]]] = {}
    for group in groups_of(metrics):
        learner = dict(group.runs[0].get("learner") or {})
        l1 = learner.pop("l1", None)
        if isinstance(l1, int | float) and group.training("nonzero_weights"):
            families.setdefault(repr(sorted(learner.items(), key=repr)), []).append((float(l1), group))
    return [
        [group for _, group in sorted(family, key=lambda pair: pair[0])]
        for family in families.values()
        if len({l1 for l1, _ in family}) >= 3
    ]


def sweep_figure(metrics: Mapping[str, Any]) -> Figure | None:
    """Quality against the number of nonzero weights, over λ, on dev if there are scores on it, else on the first split;
    None without a grid."""
    measure, predictor, dev = primary_of(metrics), decided_by(metrics), dev_of(metrics)
    on_dev = any(group.dev_score(dev, predictor, measure.key) for group in groups_of(metrics))
    split = dev if on_dev else next(iter(splits_of(metrics)), dev)
    families = sweeps_of(metrics)[: len(PALETTE)]
    lines: list[FigureLine] = []
    notes: list[tuple[str, float, float, float, float]] = []
    for family in families:
        points = []
        for group in family:
            scored = group.dev_score if split == dev else group.score
            score, weights = scored(split, predictor, measure.key), group.training("nonzero_weights")
            if score and weights:
                points.append((max(weights.mean, 1.0), measure.scale * score.mean, group.runs[0]["learner"]["l1"]))
        if points:
            points.sort()
            lines.append(FigureLine([x for x, _, _ in points], [y for _, y, _ in points], marks=True))
            notes += _lambdas(points, label_all=len(families) == 1)
    if not lines:
        return None
    on_test = metrics.get("splits", {}).get(split, {}).get("base", {}).get(measure.key)
    return draw(
        "sweep",
        f"Score on {split} against the size of the model, as λ varies.",
        lines,
        "nonzero weights (log scale)",
        measure.name,
        x=logarithmic([x for line in lines for x in line.x], margin=0.08),
        said="Quality against the number of nonzero weights",
        level=_level(base_on_dev(metrics) if split == dev else on_test, measure),
        notes=notes,
    )


def _lambdas(
    points: Sequence[tuple[float, float, float]], *, label_all: bool
) -> list[tuple[str, float, float, float, float]]:
    """Labels of the points (weights, score, λ) of a line, on the side that it leaves free."""
    last = len(points) - 1
    labels: list[tuple[str, float, float, float, float]] = []
    for place in range(len(points)) if label_all and len(points) <= LABELS else sorted({0, last}):
        weights, score, penalty = points[place]
        rises = place < last and points[place + 1][1] >= score
        labels.append(
            (f"λ = {number(float(penalty))}", weights, score, -4 if place == last else 4, 15 if rises else -7)
        )
    return labels


# Figures of recipes


def check_figures(recipe: ListRecipe) -> None:
    """Refuse figures of runs, points of grids or test splits that the recipe does not have."""
    names = run_names(recipe)
    check_names(recipe.figures, [*names.values(), *names])
    for place, figure in enumerate(recipe.figures):
        if figure.split not in (None, *recipe.data.tests):
            message = f"found {figure.split!r}; test splits: {', '.join(recipe.data.tests)}"
            raise RecipeError(message, key=f"figures.{place}.split")


def run_names(recipe: ListRecipe) -> dict[str, str]:
    """By the name of a run with the point of its grid: the name of the run."""
    return {single.name: single.run for single in recipe.expand()}


def draw_figures(recipe: ListRecipe, metrics: Mapping[str, Any], curves: Sequence[Curve]) -> list[Figure]:
    """The figures that the recipe asks for, from the content of metrics.json and one curve for every run."""
    names, figures = run_names(recipe), []
    for figure in recipe.figures:
        shown = {name: run for name, run in names.items() if figure.shows(name, run)}
        by_name = {name: alike for name in shown if (alike := [curve for curve in curves if curve.run == name])}
        if figure.kind == "size":
            figures.append(_size(figure, metrics, shown))
        elif figure.kind == "course":
            figures.append(_course(figure, by_name))
        else:
            figures.append(_epochs(figure, metrics, by_name))
    return figures


def _course(figure: ListFigure, curves: Mapping[str, Sequence[Curve]]) -> Figure:
    """Counts that add up over the lists processed in training."""
    lines = []
    for name, runs in curves.items():
        values = np.array([getattr(curve, figure.measure) for curve in runs], dtype=np.float64)
        spread = values.std(axis=0, ddof=1).tolist() if len(runs) > 1 else []
        lines.append(FigureLine([float(x) for x in runs[0].samples], values.mean(axis=0).tolist(), name, spread))
    what, seeds = AXES[figure.measure], max(map(len, curves.values()), default=1)
    mean = f", mean of {seeds} seeds and standard deviation" if seeds > 1 else ""
    return draw(figure.name, captioned(figure, f"{what} over the {PROCESSED}{mean}"), lines, PROCESSED, what)


def _size(figure: ListFigure, metrics: Mapping[str, Any], shown: Mapping[str, str]) -> Figure:
    """The gain over the base against the share of columns with a weight, with a paper's points."""
    measure, first = primary_of(metrics), next(iter(splits_of(metrics)), "")
    split = figure.split or first
    key = measure.key if split == first else f"{split}.{measure.key}"
    base = metrics["splits"].get(split, {}).get("base", {}).get(measure.key, 0.0)
    columns = max(entry["columns"] for entry in metrics["corpora"].values())
    points: dict[str, list[tuple[float, float, float]]] = {}
    for group in groups_of(metrics):
        run, weights = shown.get(str(group.runs[0]["name"])), group.training("nonzero_weights")
        score = written_score(group, split, measure.key)
        if run is not None and score is not None and weights is not None and weights.mean > 0:  # the scale is a log
            size, gain = 100 * weights.mean / columns, measure.scale * (score.mean - base)
            points.setdefault(run, []).append((size, gain, measure.scale * (score.deviation or 0.0)))
    lines = []
    for run, gained in points.items():
        paper = _reported(metrics.get("reported") or {}, run, key, measure.scale)
        lines.append(_joined(gained, run))
        lines += [replace(_joined(paper, f"{run}, paper"), faint=True)] if paper else []
    spread = ", mean of seeds and standard deviation" if any(any(line.spread) for line in lines) else ""
    what = f"what {split} gains over the base, {measure.text(base)}, by the size of the model{spread}"
    caption = captioned(figure, what)
    x = logarithmic([value for line in lines for value in line.x], margin=0.03)
    return draw(figure.name, caption, lines, "columns with a weight (%)", f"{measure.name}, less the base's", x=x)


def _joined(points: Sequence[tuple[float, float, float]], name: str) -> FigureLine:
    """A line through ``points``, each with its spread, from left to right."""
    x, y, spread = ([point[k] for point in sorted(points)] for k in range(3))
    return FigureLine(x, y, name, spread if any(spread) else (), bars=True)


def _reported(reported: Mapping[str, Any], run: str, key: str, scale: float) -> list[tuple[float, float, float]]:
    """The points, as those of ``_size``, that a paper gives for a run and its grid."""
    columns, rows = reported.get("columns"), reported.get("rows", {})
    base, points = rows.get("base", {}).get(key), list[tuple[float, float, float]]()
    for name, row in rows.items():
        known = columns and base is not None and {key, "nonzero_weights"} <= set(row)
        if known and (name == run or re.match(rf"{re.escape(run)} \w+=", name)):
            points.append((100 * row["nonzero_weights"] / columns, scale * (row[key] - base), 0.0))
    return points


def _epochs(figure: ListFigure, metrics: Mapping[str, Any], curves: Mapping[str, Sequence[Curve]]) -> Figure:
    """The mean and the deviation of all epochs' predictors on dev."""
    measure, points = primary_of(metrics), []
    for place, (name, runs) in enumerate(curves.items(), start=1):
        spread = Spread.known(measure.scale * score for curve in runs for score in curve.dev_scores)
        if spread is not None:
            points.append(FigureLine([float(place)], [spread.mean], name, [spread.deviation or 0.0], joined=False))
    what = f"{measure.name} on {dev_of(metrics)}"
    caption = captioned(figure, f"{what} after every epoch, mean and standard deviation")
    x = replace(linear([0.5, len(curves) + 0.5]), ticks=())
    return draw(figure.name, caption, points, "run", what, x=x)
