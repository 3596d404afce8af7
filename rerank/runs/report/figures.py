"""The figures of a run: training curves, oracle ranks, sparsity against quality.

The names of runs are in the page's legend.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from rerank.runs.report.canvas import PALETTE, Plot, PlotLine, dashes, ends
from rerank.runs.report.data import Curve, LearningCurve
from rerank.runs.report.measures import Measure, number, primary_of
from rerank.runs.report.rows import Group, base_on_dev, dev_of, groups_of, splits_of
from rerank.runs.report.scale import linear, logarithmic, short_count

POINTS = 400  # of a curve at most
BARS = 50  # of a histogram at most
LABELS = 8  # of a line at most; if there are more, only its ends have one


@dataclass(frozen=True)
class Series:
    """The place of a run's name in the legend; ``number`` from 1 is its colour and dash, 0 that of all others."""

    label: str
    number: int

    @property
    def dashes(self) -> str:
        """The value of an SVG's stroke-dasharray."""
        return dashes(self.number)


def legend(curves: Sequence[Curve], metrics: Mapping[str, Any]) -> list[Series]:
    """One entry per run name: the chosen run's, then the best on dev; names beyond the palette share the last one."""
    best: dict[str, float] = {}
    measure = primary_of(metrics)
    for curve in curves:
        scores = [measure.better(score) for score in curve.dev_scores]
        best[curve.run] = max([best.get(curve.run, -float("inf")), *scores])
    chosen = {str(run.get("name")) for group in groups_of(metrics) if group.chosen for run in group.runs}
    names = sorted(best, key=lambda name: (name not in chosen, -best[name], name))
    shown = len(PALETTE) if len(names) <= len(PALETTE) else len(PALETTE) - 1
    entries = [Series(name, position) for position, name in enumerate(names[:shown], start=1)]
    others = len(names) - shown
    return [*entries, Series(f"{others} others", 0)] if others > 0 else entries


def mistakes_figure(curves: Sequence[Curve], series: Sequence[Series]) -> str:
    """Cumulative mistakes over the lists processed."""
    return _lines([(c.run, c.samples, c.mistakes) for c in curves], series, "mistakes (cumulative)")


def weights_figure(curves: Sequence[Curve], series: Sequence[Series]) -> str:
    """Nonzero weights over the lists processed."""
    return _lines([(c.run, c.samples, c.nonzero_weights) for c in curves], series, "nonzero weights")


def dev_figure(curves: Sequence[Curve], series: Sequence[Series], measure: Measure, base: float | None) -> str:
    """The primary measure on dev over the lists processed, with the base as a line."""
    scaled = [(c.run, c.dev_samples, [measure.scale * score for score in c.dev_scores]) for c in curves]
    return _lines(scaled, series, f"{measure.name} on dev", _level(base, measure), marks=True)


def ranks_figure(ranks: Sequence[int]) -> str:
    """How often the oracle has which rank by base score: ``ranks[r]`` lists have rank r, from 0."""
    width = max(1, -(-len(ranks) // BARS))
    counts = [sum(ranks[first : first + width]) for first in range(0, len(ranks), width)]
    centres = [1 + first + (width - 1) / 2 for first in range(0, len(ranks), width)]
    above = [count for count in counts if count]
    log = bool(above) and max(above) > 20 * median(above)
    heights = logarithmic([0.7, *above], margin=0.05) if log else linear(counts, zero=True, integer=True)
    plot = Plot(
        x=linear([0.5, max(len(ranks), 1) + 0.5], integer=True),
        y=heights,
        x_label=f"rank of the oracle by base score{f' (bars of {width} ranks)' if width > 1 else ''}",
        y_label="lists (log scale)" if log else "lists",
        bars=[(x, count) for x, count in zip(centres, counts, strict=True) if count],
        bar_width=width,
    )
    return plot.svg(
        f"Histogram of the oracle's rank by base score: {sum(counts):,} lists, {sum(counts[:1]):,} at first"
    )


def learning_figure(curve: LearningCurve, measure: Measure) -> str:
    """The score on every split over the number of lists, or examples, that training had."""
    sizes = [float(size) for size in curve.sizes]
    lines = [
        PlotLine(sizes, [measure.scale * score for score in scores], series, split, marks=True)
        for series, (split, scores) in enumerate(curve.scores.items(), start=1)
    ]
    plot = Plot(
        x=logarithmic(sizes, margin=0.04),
        y=linear([y for line in lines for y in line.y], margin=0.08),
        x_label=f"training {curve.unit} (log scale)",
        y_label=measure.name,
        lines=lines,
    )
    said = "; ".join(ends(line.label, line.x, line.y) for line in lines)
    return plot.svg(f"{measure.name} over the number of training {curve.unit}. {said}")


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


def sweep_split(metrics: Mapping[str, Any], predictor: str) -> str:
    """The split that a sweep is shown on: dev if there are scores on it, else the first."""
    dev, key = dev_of(metrics), primary_of(metrics).key
    if any(group.dev_score(dev, predictor, key) for group in groups_of(metrics)):
        return dev
    return next(iter(splits_of(metrics)), dev)


def sweep_figure(metrics: Mapping[str, Any], predictor: str) -> str | None:
    """Quality against the number of nonzero weights, over λ, on ``sweep_split``; None without a grid."""
    families, measure = sweeps_of(metrics), primary_of(metrics)
    split, dev = sweep_split(metrics, predictor), dev_of(metrics)
    lines: list[PlotLine] = []
    notes: list[tuple[str, float, float, float, float]] = []
    for position, family in enumerate(families[: len(PALETTE)], start=1):
        points = []
        for group in family:
            scored = group.dev_score if split == dev else group.score
            score, weights = scored(split, predictor, measure.key), group.training("nonzero_weights")
            if score and weights:
                l1 = float(group.runs[0]["learner"]["l1"])
                points.append((max(weights.mean, 1.0), measure.scale * score.mean, l1))
        if points:
            ordered = sorted(points)
            lines.append(PlotLine([x for x, _, _ in ordered], [y for _, y, _ in ordered], position, marks=True))
            notes += _lambdas(ordered, label_all=len(families) == 1)
    if not lines:
        return None
    on_test = metrics.get("splits", {}).get(split, {}).get("base", {}).get(measure.key)
    level = _level(base_on_dev(metrics) if split == dev else on_test, measure)
    scores = [y for line in lines for y in line.y] + ([level[0]] if level else [])
    plot = Plot(
        x=logarithmic([x for line in lines for x in line.x], margin=0.08),
        y=linear(scores, margin=0.15),
        x_label="nonzero weights (log scale)",
        y_label=measure.name,
        lines=lines,
        level=level,
        notes=notes,
    )
    return plot.svg("Quality against the number of nonzero weights")


def _lambdas(
    points: Sequence[tuple[float, float, float]], *, label_all: bool
) -> list[tuple[str, float, float, float, float]]:
    """Labels of the points (weights, score, λ) of a line, on the side that it leaves free."""
    last = len(points) - 1
    found: list[tuple[str, float, float, float, float]] = []
    for place in range(len(points)) if label_all and len(points) <= LABELS else sorted({0, last}):
        weights, score, penalty = points[place]
        rises = place < last and points[place + 1][1] >= score
        found.append((f"λ = {number(penalty)}", weights, score, -4 if place == last else 4, 15 if rises else -7))
    return found


def _level(base: float | None, measure: Measure) -> tuple[float, str] | None:
    return None if base is None else (measure.scale * base, f"base {measure.text(base)}")


def _lines(
    curves: Sequence[tuple[str, Sequence[float], Sequence[float]]],
    series: Sequence[Series],
    label: str,
    level: tuple[float, str] | None = None,
    marks: bool = False,
) -> str:
    numbers = {entry.label: entry.number for entry in series}
    lines, said = [], []
    for run, xs, ys in sorted(curves, key=lambda curve: -(numbers.get(curve[0], 0) or len(PALETTE) + 1)):
        place, kept = numbers.get(run, 0), _thinned(len(xs))
        lines.append(PlotLine([xs[i] for i in kept], [ys[i] for i in kept], place, marks=marks and place > 0))
        if place:
            said.append(ends(run, lines[-1].x, lines[-1].y))
    heights = [y for line in lines for y in line.y] + ([level[0]] if level else [])
    plot = Plot(
        x=linear([x for line in lines for x in line.x], zero=True, text=short_count),
        y=linear(heights, margin=0.08) if marks else linear(heights, zero=True, text=short_count),
        x_label="lists processed in training",
        y_label=label,
        lines=lines,
        level=level,
    )
    return plot.svg(f"{label} over lists processed in training. {'; '.join(said[::-1])}")


def _thinned(size: int) -> list[int]:
    """At most ``POINTS`` positions, evenly spread, the last one included."""
    if size <= POINTS:
        return list(range(size))
    return sorted({round(step * (size - 1) / (POINTS - 1)) for step in range(POINTS)})
