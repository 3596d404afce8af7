"""Tables and figures of a run over lists: training, choice of settings, data, a paper's numbers."""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from rerank.runs.report.measures import Measure, all_measures, primary_of
from rerank.runs.report.numbers import NONE, count, duration, fixed, number
from rerank.runs.report.plot import PALETTE, Figure, FigureLine, draw, logarithmic
from rerank.runs.report.results import (
    BASELINES,
    SIGNIFICANT_BELOW,
    dev_of,
    groups_of,
    runs_of,
    splits_of,
    verdict,
    written_score,
)
from rerank.runs.report.table import Bar, TextTable

if TYPE_CHECKING:
    from rerank.runs.run import Run

LEFT_OUT = {"list": "skipped", "candidate": "skipped_candidates"}  # what was left out: the key of its counts

_table = partial(TextTable.of, merged=True)
Metrics = Mapping[str, Any]


def training_table(metrics: Metrics) -> TextTable:
    """The training of every run."""
    measure, runs = primary_of(metrics), runs_of(metrics)
    several = len({run.get("seed") for run in runs}) > 1
    rows = [
        {
            "run": str(run.get("name", "model")),
            "learner": learner_text(run.get("learner") or trained.get("learner")),
            "loss": str(trained.get("loss") or NONE),
            "seed": str(run.get("seed", NONE)) if several else "",
            "epochs": count(trained.get("epochs")),
            "updates": count(trained.get("updates")),
            "mistakes, first → last epoch": first_to_last(trained.get("mistakes") or []),
            f"{measure.heading} on {dev_of(metrics)}": measure.text(run.get("dev")),
            "nonzero weights": count(trained.get("nonzero_weights")),
            "time": duration(trained.get("seconds")),
            "nonzeros / s": count(trained.get("nonzeros_per_second")),
        }
        for run in runs
        for trained in [run.get("training", {})]
    ]
    return _table("Runs", rows, texts=3)


def learner_text(learner: Any) -> str:
    """A learner with its settings."""
    if not isinstance(learner, Mapping):
        return str(learner or NONE)
    settings = ", ".join(f"{key} {number(value)}" for key, value in learner.items() if key != "name")
    name = str(learner.get("name", ""))
    return f"{name}: {settings}" if name and settings else name or settings


def first_to_last(mistakes: list[float]) -> str:
    """The mistakes of the first epoch and of the last."""
    return " → ".join(count(value) for value in dict.fromkeys([mistakes[0], mistakes[-1]])) if mistakes else NONE


def mert_table(metrics: Metrics) -> TextTable:
    """Minimum error rate training, one line per run."""
    measure = primary_of(metrics)
    rows = [
        {
            "run": str(run.get("name", "model")),
            "tuned on": str(mert.get("split", NONE)),
            "seed": str(run.get("seed", NONE)),
            f"{measure.heading} there, before": measure.text(mert.get("start")),
            "after": measure.text(mert.get("score")),
            f"{measure.heading} on {dev_of(metrics)}": measure.text(mert.get("dev")),
            "time": duration(mert.get("seconds")),
        }
        for run in runs_of(metrics)
        if (mert := run.get("training", {}).get("mert"))
    ]
    return _table("Minimum error rate training", rows, texts=2)


def choice_table(metrics: Metrics) -> TextTable:
    """One line for all settings that were tried on the lists set apart; no lines where none were."""
    choice = metrics.get("choice")
    if not choice:
        return TextTable("", (), ())
    measure, rows = primary_of(metrics), []
    for point in choice["points"]:
        low, high = map(measure.text, point["interval"])
        behind = f"{measure.signed(point['difference'])} ±{measure.text(point['error'])}"
        rows.append(
            {
                "settings": point["name"],
                "near the best": "yes" if point["near"] else "",
                measure.heading: measure.text(point["score"]),
                "interval": f"[{low}, {high}]",
                "difference": "best" if point["name"] == choice["best"] else behind,
                f"{measure.heading} on dev": measure.text(point["dev"]),
                "length": fixed(point["report"].get("length_ratio"), 3),
                "nonzero weights": count(point["nonzero_weights"]),
            }
        )
    seeds = choice["points"][0]["seeds"]
    note = (
        f"Chosen: {choice['chosen']}, the fewest weights of those within one standard error (±) of the best. Means of "
        f"{seeds} seed{'s' if seeds > 1 else ''}; intervals and errors are over lists and seeds."
    )
    caption = f"Settings on {choice['lists']:,} training lists set apart"
    bars = [Bar(low, high, point["score"]) for point in choice["points"] for low, high in [point["interval"]]]
    return TextTable.of(caption, rows, texts=2, chosen=choice["chosen"], note=note, bars=bars, from_zero=False)


def corpora_table(corpora: Mapping[str, Any]) -> TextTable:
    """The sizes of the splits, and their sources where they have several."""
    rows = []
    for split, entry in corpora.items():
        left_out = [count(sum((entry.get(key) or {}).values())) for key in LEFT_OUT.values()]
        rows.append([split, *_sizes(entry), *left_out, duration(entry.get("seconds"))])
        for source, sizes in (entry.get("sources") or {}).items():
            rows.append([f"of which {source}", *_sizes(sizes), *[NONE] * (len(LEFT_OUT) + 1)])
    left_out = [f"{what}s left out" for what in LEFT_OUT]
    headings = ["split", "lists", "candidates", "nonzeros", "feature columns", *left_out, "time to build"]
    return TextTable("Corpora", headings, rows, merged=True)


def _sizes(entry: Mapping[str, Any]) -> list[str]:
    return [count(entry.get(key)) for key in ("lists", "candidates", "nonzeros", "columns")]


def remarks_table(metrics: Metrics) -> TextTable:
    """What was left out, by reason, and what is odd about scores and words."""
    rows: list[tuple[str, str, str]] = []
    for split, entry in metrics.get("corpora", {}).items():
        for what, key in LEFT_OUT.items():
            rows += [(split, f"{what}s left out: {reason}", count(n)) for reason, n in (entry.get(key) or {}).items()]
        for column, candidates in (entry.get("absent") or {}).items():
            rows.append((split, f"candidates without {column}, which is 0 there", count(candidates)))
        for column, lists in (entry.get("unknown_columns") or {}).items():
            rows.append((split, f"lists with {column}, which the model does not know", count(lists)))
        if lowest := entry.get("lowest_first"):
            text = f"lists, of {count(lowest['of'])}, whose first candidate has the lowest base score: are these costs?"
            rows.append((split, text, count(lowest["lists"])))
        for side, words in (entry.get("normalized") or {}).items():
            rows.append((split, f"words of {side} that were brought to one form", count(words)))
    return TextTable("Left out, and to look at", ["split", "what", "number"], rows, texts=2, merged=True)


def reported_table(metrics: Metrics) -> TextTable | None:
    """One line per row of the paper, every measure of ours beside the paper's; None for a recipe without any.

    A measure is a key, of the first test split, or ``split.key``. Rows that are no run of ours have no number of it.
    """
    reported = metrics.get("reported")
    if not reported:
        return None
    rows: Mapping[str, Mapping[str, Any]] = reported["rows"]
    groups = {str(group.runs[0].get("name")): group for group in groups_of(metrics)}
    measures, first = {measure.key: measure for measure in all_measures(metrics)}, next(iter(splits_of(metrics)), "")
    headings, lines = ["run"], [[name] for name in rows]
    for key in dict.fromkeys(key for row in rows.values() for key in row):
        split, dot, name = key.rpartition(".")
        measure = measures.get(name)
        heading = measure.heading if measure else name.replace("_", " ")
        headings += [f"{split} {heading}" if dot else heading, "paper"]
        systems = metrics.get("splits", {}).get(split or first, {})
        for line, (run, row) in zip(lines, rows.items(), strict=True):
            group, ours, paper = groups.get(run), "", row.get(key)
            if measure is not None and run in BASELINES:
                ours = measure.text(systems.get(run, {}).get(name))
            elif measure is not None and group is not None:
                ours = measure.spread(written_score(group, split or first, name))
            elif group is not None and (spread := group.training(name)) is not None:
                ours = fixed(spread.mean, 1) if name == "seconds" else count(spread.mean)
            if paper is not None and not isinstance(paper, str):  # other values in percent if they are fractions
                share = f"{100 * paper:.2f}" if abs(paper) <= 1 else count(paper)
                paper = share if measure is None else measure.text(paper)
            line += [ours or NONE, paper or NONE]
    return TextTable(f"Ours beside the paper's: {reported['source']}", headings, lines)


PROCESSED = "lists processed in training"


def training_figure(runs: Sequence["Run"], metrics: Mapping[str, Any]) -> Figure | None:
    """The scores on dev after every epoch or, without dev, the mistakes while training; of the chosen run and the best.

    Batch learners have no course: they have a point among the lines of others, and no figure if they are alone.
    """
    measure, dev, best = primary_of(metrics), dev_of(metrics), dict[str, float]()
    for run in runs:
        best[run.name] = max([best.get(run.name, -math.inf), *map(measure.better, dev_scores(run).values())])
    chosen = {str(run.get("name")) for group in groups_of(metrics) if group.chosen for run in group.runs}
    names = sorted(best, key=lambda name: (name not in chosen, -best[name], name))[: len(PALETTE)]
    scored, lines = any(map(dev_scores, runs)), list[FigureLine]()
    for run in sorted((run for run in runs if run.name in names), key=lambda run: names.index(run.name)):
        course = {epoch * run.training["lists"]: measure.scale * score for epoch, score in dev_scores(run).items()}
        if not scored:
            mistakes = accumulate(line["mistakes"] for line in run.history)
            course = {
                line["epoch"] * run.training["lists"]: total for line, total in zip(run.history, mistakes, strict=True)
            }
        lines.append(FigureLine([*course], [*course.values()], run.name, series=names.index(run.name) + 1))
    if not any(len(line.x) > 1 for line in lines):
        return None
    base = (metrics.get("corpora", {}).get(dev, {}).get("statistics") or {}).get("base", {}).get(measure.key)
    caption, label = f"Score on {dev} after every epoch.", f"{measure.name} on dev"
    if not scored:
        caption, label = "Mistakes made in training.", "mistakes (cumulative)"
    level = None if base is None or not scored else (measure.scale * base, f"base {measure.text(base)}")
    return draw(caption, lines, PROCESSED, label, level=level)


def dev_scores(run: "Run") -> dict[int, float]:
    """The scores on dev by epoch."""
    return {line["epoch"]: line["dev"] for line in run.history if "dev" in line}


def learning_figure(
    curve: Mapping[str, Any], measure: Measure, dev: str | None = None, unit: str = "lists"
) -> Figure | None:
    """The score on every split over how much training had, and whether more of it would help; None for no curve.

    curve: an entry of metrics.json, see ``runs.pipeline``. dev: the name of the dev split, if there is one; unit: what
    was trained on.
    """
    if not curve:
        return None
    points, split, test = curve["points"], curve["split"], curve["last"]
    sizes = [point[unit] for point in points]
    scores = {name: [point["splits"][name] for point in points] for name in points[0]["splits"]}
    if dev is not None and dev not in scores and all(point["dev"] is not None for point in points):
        scores[dev] = [point["dev"] for point in points]
    step = scores[split][-1] - scores[split][-2]
    doublings = math.log2(sizes[-1] / sizes[-2]) if sizes[-1] > sizes[-2] else 1.0
    rate = "" if abs(doublings - 1) < 0.05 else f", {measure.signed(step / doublings)} per doubling"
    helps = test["p"] < SIGNIFICANT_BELOW and measure.better(step) > 0
    caption = (
        f"Doubling the training {unit} changes {measure.heading} on {split} by {measure.signed(curve['slope'])} (least "
        f"squares over {len(points)} sizes). The last step, from {sizes[-2]:,} to {sizes[-1]:,} {unit}, brought "
        f"{measure.signed(step)}{rate}: {verdict(test, lower_is_better=measure.lower_is_better)}. More {unit} "
        f"{'are likely to' if helps else 'may not'} help."
    )
    lines = [FigureLine(sizes, [measure.scale * score for score in own], name) for name, own in scores.items()]
    x = logarithmic(sizes, margin=0.04)
    return draw(caption, lines, f"training {unit} (log scale)", measure.name, x=x)


def coverage_figure(metrics: Mapping[str, Any]) -> Figure | None:
    """The score over the share of lists that are answered, those with the largest margins; None without answers."""
    measure, lines, areas = primary_of(metrics), list[FigureLine](), list[str]()
    decoded = metrics.get("training", {}).get("decode") or {}
    for split, curve in decoded.get("coverage", {}).items():
        x, y = [100 * share for share in curve["coverage"]], [measure.scale * score for score in curve["score"]]
        lines.append(FigureLine(x, y, split))
        areas.append(f"{curve['aurc']:.4f} on {split}")
    caption = f"Score on the lists with the largest margins. AURC, the area under what is lost: {', '.join(areas)}."
    return draw(caption, lines, "lists that are answered (%)", measure.name) if lines else None
