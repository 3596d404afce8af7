"""The figures of every run over lists: training and learning curves, oracle ranks, sparsity against quality.

The names of runs are in the page's legend.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Any, NamedTuple

from rerank.runs.report.data import Curve, LearningCurve
from rerank.runs.report.measures import Measure, primary_of
from rerank.runs.report.numbers import count, fixed, number
from rerank.runs.report.plot import PALETTE, Figure, FigureLine, Plot, dashes, ends
from rerank.runs.report.rows import Group, base_on_dev, decided_by, dev_of, groups_of, splits_of
from rerank.runs.report.scale import linear, logarithmic, short_count

POINTS = 400  # of a curve at most
BARS = 50  # of a histogram at most
LABELS = 8  # of a line at most; if there are more, only its ends have one


class Series(NamedTuple):
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


def training_figures(curves: Sequence[Curve], metrics: Mapping[str, Any]) -> list[Figure]:
    """Mistakes, weights and, where there are any, dev scores over the lists processed; none without values."""
    if not any(curve.samples for curve in curves):
        return []
    series, measure, dev = legend(curves, metrics), primary_of(metrics), dev_of(metrics)
    mistakes = [FigureLine(curve.samples, curve.mistakes, curve.run) for curve in curves]
    weights = [FigureLine(curve.samples, curve.nonzero_weights, curve.run) for curve in curves]
    figures = [
        _course("Mistakes made in training.", mistakes, series, "mistakes (cumulative)"),
        _course("Weights other than zero.", weights, series, "nonzero weights"),
    ]
    if any(curve.dev_samples for curve in curves):
        scores = [
            FigureLine(curve.dev_samples, [measure.scale * score for score in curve.dev_scores], curve.run, marks=True)
            for curve in curves
        ]
        level = _level(base_on_dev(metrics), measure)
        figures.append(_course(f"Score on {dev} after every epoch.", scores, series, f"{measure.name} on dev", level))
    return figures


def _course(
    caption: str,
    curves: Sequence[FigureLine],
    series: Sequence[Series],
    label: str,
    level: tuple[float, str] | None = None,
) -> Figure:
    """One line per curve, those of the legend's first entries on top; a level, if any, is the base's."""
    numbers = {entry.label: entry.number for entry in series}
    lines, said = [], []
    for curve in sorted(curves, key=lambda curve: -(numbers.get(curve.name, 0) or len(PALETTE) + 1)):
        kept, place = _thinned(len(curve.x)), numbers.get(curve.name, 0)
        x, y = [curve.x[i] for i in kept], [curve.y[i] for i in kept]
        # The page's legend has the names.
        lines.append(replace(curve, x=x, y=y, name="", series=place, marks=curve.marks and place > 0))
        if place:
            said.append(ends(FigureLine(x, y, curve.name)))
    heights = [y for line in lines for y in line.y] + ([level[0]] if level else [])
    scores = any(curve.marks for curve in curves)
    plot = Plot(
        x=linear([x for line in lines for x in line.x], zero=True, text=short_count),
        y=linear(heights, margin=0.08) if scores else linear(heights, zero=True, text=short_count),
        x_label="lists processed in training",
        y_label=label,
        lines=lines,
        level=level,
    )
    return plot.figure(label, caption, f"{label} over lists processed in training. {'; '.join(said[::-1])}")


def _thinned(size: int) -> list[int]:
    """At most ``POINTS`` positions, evenly spread, the last one included."""
    if size <= POINTS:
        return list(range(size))
    return sorted({round(step * (size - 1) / (POINTS - 1)) for step in range(POINTS)})


def _level(base: float | None, measure: Measure) -> tuple[float, str] | None:
    return None if base is None else (measure.scale * base, f"base {measure.text(base)}")


def rank_figures(metrics: Mapping[str, Any]) -> list[Figure]:
    """A histogram of the oracle's rank for every split that has lists."""
    figures = []
    for split, entry in metrics.get("corpora", {}).items():
        ranks = [int(lists) for lists in (entry.get("statistics") or {}).get("oracle_ranks") or ()]
        if sum(ranks):
            figures.append(rank_figure(split, ranks))
    return figures


def rank_figure(split: str, ranks: Sequence[int]) -> Figure:
    """How often the oracle has which rank by base score: ``ranks[r]`` lists have rank r, from 0."""
    width = max(1, -(-len(ranks) // BARS))
    counts = [sum(ranks[first : first + width]) for first in range(0, len(ranks), width)]
    centres = [1 + first + (width - 1) / 2 for first in range(0, len(ranks), width)]
    above = [lists for lists in counts if lists]
    log = bool(above) and max(above) > 20 * median(above)
    plot = Plot(
        x=linear([0.5, max(len(ranks), 1) + 0.5], integer=True),
        y=logarithmic([0.7, *above], margin=0.05) if log else linear(counts, zero=True, integer=True),
        x_label=f"rank of the oracle by base score{f' (bars of {width} ranks)' if width > 1 else ''}",
        y_label="lists (log scale)" if log else "lists",
        bars=[(x, lists) for x, lists in zip(centres, counts, strict=True) if lists],
        bar_width=width,
    )
    first = fixed(100 * ranks[0] / sum(ranks), 1) if any(ranks) else "0"
    caption = f"{split}: the base candidate is the oracle in {first} % of {count(sum(ranks))} lists."
    said = f"{sum(counts):,} lists, {sum(counts[:1]):,} at first"
    return plot.figure(split, caption, f"Histogram of the oracle's rank by base score: {said}")


def learning_figure(curve: LearningCurve | None, measure: Measure) -> Figure | None:
    """The score on every split over the number of lists, or examples, that training had, with a verdict."""
    if curve is None:
        return None
    sizes = [float(size) for size in curve.sizes]
    lines = [
        FigureLine(sizes, [measure.scale * score for score in scores], split, series=series, marks=True)
        for series, (split, scores) in enumerate(curve.scores.items(), start=1)
    ]
    plot = Plot(
        x=logarithmic(sizes, margin=0.04),
        y=linear([y for line in lines for y in line.y], margin=0.08),
        x_label=f"training {curve.unit} (log scale)",
        y_label=measure.name,
        lines=lines,
    )
    said = f"{measure.name} over the number of training {curve.unit}. {'; '.join(map(ends, lines))}"
    return plot.figure("learning", curve.verdict, said)


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
    families = sweeps_of(metrics)
    lines: list[FigureLine] = []
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
            points.sort()
            lines.append(FigureLine([x for x, _, _ in points], [y for _, y, _ in points], series=position, marks=True))
            notes += _lambdas(points, label_all=len(families) == 1)
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
    caption = f"Score on {split} against the size of the model, as λ varies."
    return plot.figure("sweep", caption, "Quality against the number of nonzero weights")


def _lambdas(
    points: Sequence[tuple[float, float, float]], *, label_all: bool
) -> list[tuple[str, float, float, float, float]]:
    """Labels of the points (weights, score, λ) of a line, on the side that it leaves free."""
    last = len(points) - 1
    labels: list[tuple[str, float, float, float, float]] = []
    for place in range(len(points)) if label_all and len(points) <= LABELS else sorted({0, last}):
        weights, score, penalty = points[place]
        rises = place < last and points[place + 1][1] >= score
        labels.append((f"λ = {number(penalty)}", weights, score, -4 if place == last else 4, 15 if rises else -7))
    return labels
