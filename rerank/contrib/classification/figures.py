"""The figures of a recipe over labelled examples: what they need is measured, or taken from the results, and drawn."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise, product

import numpy as np

from rerank.base.errors import RecipeError
from rerank.base.interrupts import check
from rerank.contrib.classification.fitting import FoldJob, error_of, make_learner, point_of, predicted, targets
from rerank.contrib.classification.recipe import ClassificationRecipe, ExampleFigure, Spec
from rerank.contrib.classification.results import Cell, Result, cells_of, grouped
from rerank.contrib.classification.sets import Draw, Split
from rerank.learn.trainer import epoch_order
from rerank.pool import Engine
from rerank.recipes.sections import check_names
from rerank.runs.report.numbers import Spread
from rerank.runs.report.plot import Figure, FigureLine, captioned, draw, linear, logarithmic

NAMES = {
    "error": "test error (%)",
    "accuracy": "test accuracy (%)",
    "train_error": "training error (%)",
    "train_accuracy": "training accuracy (%)",
}


def check_figures(recipe: ClassificationRecipe, specs: Sequence[Spec]) -> None:
    """Refuse figures of runs, or of keys of grids, that ``specs`` do not have."""
    names = [spec.run for spec in specs]
    check_names(recipe.figures, names)
    for number, figure in enumerate(recipe.figures):
        if figure.kind == "parameter" and not any(figure.x in spec.point for spec in specs):
            known = ", ".join(sorted({key for spec in specs for key in spec.point})) or "none"
            raise RecipeError(f"no run has a grid over {figure.x!r}; keys of grids: {known}", key=f"figures.{number}.x")
        for axis in (figure.x, figure.y) if figure.kind == "scatter" else ():
            if axis not in names:
                raise RecipeError(f"found {axis!r}; runs: {', '.join(names)}", key=f"figures.{number}")


# Passes of their own


@dataclass(frozen=True)
class Trace:
    """After ``samples[i]`` examples: ``mistakes`` so far, by the labels without noise, and the test ``errors``."""

    samples: list[int]
    mistakes: list[int]
    errors: list[float]


Traced = dict[str, dict[str, list[Trace]]]  # by set (and noise) and run, one per seed


def trace(spec: Spec, part: Split, *, seed: int, every: int, test: bool, passes: int = 1) -> Trace:
    """Go through ``part.train`` ``passes`` times and measure after ``every`` examples; ``test``: the test error too."""
    learner = make_learner(spec)
    corpus = part.train.corpus()
    held = part.test.corpus() if test else None
    oracle = targets(corpus, part.train.label)
    state = learner.init(corpus.width, corpus.candidate_count)
    seen = Trace([], [], [])
    mistakes = 0
    for epoch, start in product(range(passes), range(0, corpus.list_count, every)):
        check()
        order = epoch_order(corpus.list_count, seed, epoch, spec.recipe.training.shuffle)[start : start + every]
        ends = np.flatnonzero(np.diff(part.flipped[order])) + 1  # pieces whose labels are all flipped, or none
        for first, last in pairwise([0, *ends.tolist(), order.size]):
            piece = order[first:last]
            (stats,) = learner.epoch(corpus, oracle, piece, state)
            # By the true label, a prediction is right where it is a mistake by a flipped one, which a tie counts as.
            mistakes += piece.size - stats.mistakes if part.flipped[piece[0]] else stats.mistakes
        seen.samples.append(epoch * corpus.list_count + start + order.size)
        seen.mistakes.append(mistakes)
        if held is not None:
            main = spec.recipe.training.predictor
            weights = learner.last(state) if main == "last" else learner.average(state)
            seen.errors.append(error_of(predicted(held, weights), part.test.label))
    return seen


def trace_fold(figure: ExampleFigure, job: FoldJob) -> Trace:
    """The pass, or the passes of a figure over ``epochs``, of a learner over the training part of a fold."""
    spec, draw, seed, fold = job
    part = draw(seed).split(fold, spec.noise, seed).shared(spec.recipe.training.share, seed)
    if figure.kind != "epochs":
        return trace(spec, part, seed=seed, every=figure.every, test=figure.kind == "stream")
    epochs = (spec.recipe.tune or spec.recipe.training).epochs
    return trace(spec, part, seed=seed, every=max(1, part.train.size), test=True, passes=epochs)


def traces_of(
    specs: Sequence[Spec], draw: Draw, figure: ExampleFigure, results: Sequence[Result], engine: Engine
) -> Traced:
    """Passes of the learners of ``specs`` over one set, at every noise level with every seed: a single one over the
    first fold, or, for ``epochs``, as many as a run may make, over every fold. ``results``, those on the set, know the
    tuned parameters."""
    recipe, noisy = specs[0].recipe, len({spec.noise for spec in specs}) > 1
    folds = range(draw(recipe.run_seeds[0]).splits if figure.kind == "epochs" else 1)
    tuned = {(result.noise, result.spec.name): point_of(result.tuned) for result in results}
    drawn = [spec for spec in specs if spec.baseline is None and figure.shows(spec.run)]
    jobs = [
        FoldJob(spec.at(tuned[spec.noise, spec.name]), draw, seed, fold)
        for spec in drawn for seed in recipe.run_seeds for fold in folds
    ]  # fmt: skip
    traced: Traced = {}
    for job, one in zip(jobs, engine.map(partial(trace_fold, figure), jobs), strict=True):
        panel = f"{job.spec.set}, noise {job.spec.noise:g}" if noisy else job.spec.set
        traced.setdefault(panel, {}).setdefault(job.spec.name, []).append(one)
    return traced


# Drawing


def draw_all(recipe: ClassificationRecipe, results: Sequence[Result], traced: Mapping[str, Traced]) -> list[Figure]:
    """The figures that the recipe asks for; ``traced``: those that are measured in passes of their own."""
    figures = []
    for figure in recipe.figures:
        shown = [result for result in results if figure.shows(result.spec.run)]
        if figure.traced:
            figures += _draw_traces(figure, traced[figure.name])
        elif figure.kind == "scatter":
            levels = grouped(cells_of(recipe, shown), lambda cell: cell.noise)
            figures += [
                _draw_scatter(figure, cells, f"noise {noise:g}" if len(levels) > 1 else "")
                for noise, cells in levels.items()
            ]
        else:
            figures += _draw_parameter(figure, shown, len(recipe.run_seeds))
    return figures


def _draw_traces(figure: ExampleFigure, traced: Traced) -> list[Figure]:
    """One figure per set and noise level: online mistakes, or the test measure, over the examples or epochs seen."""
    online, by_epoch = figure.kind == "online", figure.kind == "epochs"
    what = "online mistakes" if online else NAMES[figure.measure]
    figures = []
    for panel, runs in traced.items():
        lines = []
        for name, seen in runs.items():
            values = np.array([trace.mistakes if online else trace.errors for trace in seen], np.float64)
            if not online:
                values = 100 * (1 - values if figure.measure.endswith("accuracy") else values)
            spread = values.std(axis=0) / (np.sqrt(max(1, len(seen) - 1)) if by_epoch else 1)
            x = range(1, values.shape[1] + 1) if by_epoch else seen[0].samples
            lines.append(FigureLine([*map(float, x)], values.mean(axis=0).tolist(), name, spread.tolist()))
        passes = max(len(seen) for seen in runs.values())
        over = f"after every epoch, mean of {passes} folds and standard error"
        caption = captioned(figure, f"{panel}: {what} {over if by_epoch else f'during one pass{_over_seeds(passes)}'}")
        x_label = "epochs" if by_epoch else "examples"
        figures.append(draw(_name(figure, panel, traced), caption, lines, x_label, what))
    return figures


def _draw_parameter(figure: ExampleFigure, results: Sequence[Result], seeds: int) -> list[Figure]:
    """One figure per set (and noise): a line per run over the values of a key of the grid, level for runs without."""
    key, noisy = str(figure.x), len({result.noise for result in results}) > 1

    def x_of(result: Result) -> float | None:
        if key not in result.spec.point:
            return None
        value = float(result.spec.point[key])
        return 1.0 / (result.size * value) if figure.inverse else value

    what, short = NAMES[figure.measure], key.split(".")[-1]
    x_label = f"1 / (n · {short})" if figure.inverse else short
    panels = grouped(results, lambda result: f"{result.set}, noise {result.noise:g}" if noisy else result.set)
    figures = []
    for panel, members in panels.items():
        places, lines = sorted({x for result in members if (x := x_of(result)) is not None}), []
        for run, alike in grouped(members, lambda result: result.spec.run).items():
            means = {
                x: [float(np.mean(result.values(figure.measure))) for result in at_x]
                for x, at_x in grouped(alike, x_of).items()
            }
            xs = places if None in means else sorted(x for x in means if x is not None)
            spreads = [Spread.of(means[x] if x in means else means[None]) for x in xs]
            deviations = [100 * (spread.deviation or 0.0) for spread in spreads]
            lines.append(FigureLine(xs, [100 * spread.mean for spread in spreads], run, deviations))
        caption = captioned(figure, f"{panel}: {what} over {x_label}{_over_seeds(seeds)}")
        scale = logarithmic([x for line in lines for x in line.x], margin=0.03)
        figures.append(draw(_name(figure, panel, panels), caption, lines, x_label, what, x=scale))
    return figures


def _draw_scatter(figure: ExampleFigure, cells: Sequence[Cell], level: str) -> Figure:
    """One point per set: the measure of run ``y`` over that of ``x``; ``level``: the noise, where there are several."""
    run_x, run_y, what = str(figure.x), str(figure.y), NAMES[figure.measure]
    values: dict[str, dict[str, float]] = {}
    for cell in cells:
        values.setdefault(cell.set, {})[cell.run] = 100 * cell.spread(figure.measure).mean
    points = [(name, of[run_x], of[run_y]) for name, of in values.items() if run_x in of and run_y in of]
    both = linear([value for _, a, b in points for value in (a, b)] or [0.0, 100.0], margin=0.05)
    lines = [FigureLine([a], [b], name, joined=False) for name, a, b in points]
    at_level = f"{level}: " if level else ""
    caption = captioned(figure, f"{at_level}{run_y} over {run_x}; above the line, {run_y} is higher")
    said = f"{caption} {'; '.join(f'{name}: {a:.2f} and {b:.2f}' for name, a, b in points)}"
    axes = f"{run_x}: {what}", f"{run_y}: {what}"
    name = f"{figure.name}-{level.replace(' ', '')}" if level else figure.name
    return draw(name, caption, lines, *axes, x=both, y=both, said=said, diagonal=True)


def _over_seeds(seeds: int) -> str:
    return f", mean of {seeds} seeds and standard deviation" if seeds > 1 else ""


def _name(figure: ExampleFigure, panel: str, panels: Mapping[str, object]) -> str:
    return figure.name if len(panels) == 1 else f"{figure.name}-{panel.replace(', noise ', '-noise')}"
