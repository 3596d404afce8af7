"""Figures as inline SVG: training curves, oracle ranks, sparsity against quality.

The page colours them: every colour is a CSS variable with a fallback (``--series-1`` ... ``--series-7``, ``--rule``,
``--muted``, text in ``currentColor``), so that one figure serves light and dark pages. Series differ in dashes as well
as in colour. No text of a user enters a figure; names are in the page's legend.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from rerank.runs.report.canvas import (
    DASHES,
    MARKERS,
    MUTED,
    PALETTE,
    SERIES,
    new_axes,
    plain_counts,
    round_ticks,
    styled,
    to_svg,
)
from rerank.runs.report.data import Curve
from rerank.runs.report.measures import Measure, number, primary_of
from rerank.runs.report.rows import Group, base_on_dev, dev_of, groups_of, splits_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
        return " ".join(f"{1.5 * length:g}" for length in DASHES[self.number - 1]) if self.number else ""


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
    return _lines("mistakes", [(c.run, c.samples, c.mistakes) for c in curves], series, "mistakes (cumulative)")


def weights_figure(curves: Sequence[Curve], series: Sequence[Series]) -> str:
    """Nonzero weights over the lists processed."""
    return _lines("weights", [(c.run, c.samples, c.nonzero_weights) for c in curves], series, "nonzero weights")


def dev_figure(curves: Sequence[Curve], series: Sequence[Series], measure: Measure, base: float | None) -> str:
    """The primary measure on dev over the lists processed, with the base as a line."""
    scaled = [(c.run, c.dev_samples, [measure.scale * score for score in c.dev_scores]) for c in curves]
    return _lines(
        "dev", scaled, series, f"{measure.name} on dev", base=None if base is None else measure.scale * base, marks=True
    )


def ranks_figure(ranks: Sequence[int], number: int = 1) -> str:
    """How often the oracle has which rank by base score: ``ranks[r]`` lists have rank r, from 0.

    ``number`` tells the figures of one page apart.
    """
    width = max(1, -(-len(ranks) // BARS))
    counts = [sum(ranks[first : first + width]) for first in range(0, len(ranks), width)]
    with styled():
        figure, axes = new_axes()
        centres = [1 + first + (width - 1) / 2 for first in range(0, len(ranks), width)]
        axes.bar(centres, counts, width=0.85 * width, color=SERIES[0], linewidth=0)
        above = [count for count in counts if count]
        if above and max(above) > 20 * median(above):
            axes.set_yscale("log")
            axes.set_ylim(bottom=0.7)
            plain_counts(axes.yaxis)
            axes.set_ylabel("lists (log scale)")
        else:
            axes.set_ylabel("lists")
            round_ticks(axes.yaxis, integer=True)
        axes.grid(visible=False, axis="x")
        axes.set_xlim(0.5, max(len(ranks), 1) + 0.5)
        round_ticks(axes.xaxis, integer=True)
        axes.set_xlabel(f"rank of the oracle by base score{f' (bars of {width} ranks)' if width > 1 else ''}")
        return to_svg(figure, f"ranks{number}", "Histogram of the oracle's rank by base score")


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
    if not families:
        return None
    split, dev = sweep_split(metrics, predictor), dev_of(metrics)
    with styled():
        figure, axes = new_axes((5.6, 3.3))
        drawn = False
        for position, family in enumerate(families[: len(PALETTE)]):
            points = []
            for group in family:
                scored = group.dev_score if split == dev else group.score
                score, weights = scored(split, predictor, measure.key), group.training("nonzero_weights")
                if score and weights:
                    l1 = float(group.runs[0]["learner"]["l1"])
                    points.append((max(weights.mean, 1.0), measure.scale * score.mean, l1))
            if points:
                drawn = True
                _sweep_line(axes, points, position, label_all=len(families) == 1)
        if not drawn:
            return None
        on_test = metrics.get("splits", {}).get(split, {}).get("base", {}).get(measure.key)
        base = base_on_dev(metrics) if split == dev else on_test
        _base_line(axes, None if base is None else measure.scale * base)
        axes.set_xscale("log")
        plain_counts(axes.xaxis)
        axes.margins(0.08, 0.15)
        axes.set_xlabel("nonzero weights (log scale)")
        axes.set_ylabel(measure.name)
        return to_svg(figure, "sweep", "Quality against the number of nonzero weights")


def _sweep_line(axes: Axes, points: Sequence[tuple[float, float, float]], position: int, *, label_all: bool) -> None:
    """A line through (weights, score, λ); labels stand on the side that the line leaves free."""
    ordered = sorted(points)
    weights, scores, lambdas = zip(*ordered, strict=True)
    axes.plot(
        weights, scores, color=SERIES[position], dashes=DASHES[position], marker=MARKERS[position], markersize=4.5
    )
    last = len(ordered) - 1
    for place in range(len(ordered)) if label_all and len(ordered) <= LABELS else sorted({0, last}):
        rises = place < last and scores[place + 1] >= scores[place]
        axes.annotate(
            f"λ = {number(lambdas[place])}",
            (weights[place], scores[place]),
            xytext=(3, -12) if rises else (3, 6),
            textcoords="offset points",
            ha="center" if place == last else "left",
            fontsize=8,
        )


def _lines(
    name: str,
    curves: Sequence[tuple[str, Sequence[float], Sequence[float]]],
    series: Sequence[Series],
    label: str,
    base: float | None = None,
    marks: bool = False,
) -> str:
    numbers = {entry.label: entry.number for entry in series}
    with styled():
        figure, axes = new_axes()
        for run, xs, ys in sorted(curves, key=lambda curve: -(numbers.get(curve[0], 0) or len(PALETTE) + 1)):
            place, kept = numbers.get(run, 0), _thinned(len(xs))
            axes.plot(
                [xs[i] for i in kept],
                [ys[i] for i in kept],
                color=SERIES[place - 1] if place else MUTED,
                dashes=DASHES[place - 1] if place else (None, None),
                linewidth=1.5 if place else 0.6,
                marker=MARKERS[place - 1] if place and marks else None,
                markersize=3.5,
            )
        _base_line(axes, base)
        round_ticks(axes.xaxis)
        plain_counts(axes.xaxis)
        round_ticks(axes.yaxis)
        if not marks:
            plain_counts(axes.yaxis)
            axes.set_ylim(bottom=0)
        axes.set_xlim(left=0)
        axes.set_xlabel("lists processed in training")
        axes.set_ylabel(label)
        return to_svg(figure, name, f"{label} over lists processed in training")


def _base_line(axes: Axes, base: float | None) -> None:
    if base is not None:
        axes.axhline(base, color=MUTED, linewidth=1.0, dashes=(2, 2))
        axes.annotate(
            f"base {base:.2f}",
            (1.0, base),
            xycoords=("axes fraction", "data"),
            xytext=(0, 3),
            textcoords="offset points",
            ha="right",
            fontsize=8,
        )


def _thinned(size: int) -> list[int]:
    """At most ``POINTS`` positions, evenly spread, the last one included."""
    if size <= POINTS:
        return list(range(size))
    return sorted({round(step * (size - 1) / (POINTS - 1)) for step in range(POINTS)})
