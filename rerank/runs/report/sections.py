"""The parts of the page as plain values: tables of texts, figures, examples. The template only lays them out."""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from markupsafe import Markup

from rerank.runs.report import figures
from rerank.runs.report.data import Example, LearningCurve, Report
from rerank.runs.report.measures import (
    NONE,
    Measure,
    count,
    duration,
    fixed,
    measures_of,
    number,
    primary_of,
    reals,
)
from rerank.runs.report.rows import base_on_dev, decided_by, dev_of, runs_of
from rerank.runs.report.table import TextTable
from rerank.runs.report.trees import draw_example
from rerank.runs.report.words import mark_example

_table = partial(TextTable, merged=True)

CANDIDATES = 1000  # of a list at most
TEXTS = ("translation", "speech", "ranking")  # tasks whose candidates are texts

_CHOICES = {
    "base": "base",
    "oracle": "oracle",
    "corpus_oracle": "oracle of the corpus score",
    "anti_oracle": "anti-oracle",
    "random": "random choice (expected)",
}


def training(metrics: Mapping[str, Any]) -> TextTable:
    """How every run was trained."""
    rows, measure, runs = [], primary_of(metrics), runs_of(metrics)
    several = len({run.get("seed") for run in runs}) > 1
    for run in runs:
        score = run.get("dev")
        trained = run.get("training", {})
        mistakes = trained.get("mistakes") or []
        span = " → ".join(count(value) for value in dict.fromkeys([mistakes[0], mistakes[-1]])) if mistakes else NONE
        rows.append(
            [
                str(run.get("name", "model")),
                _learner(run.get("learner") or trained.get("learner")),
                str(trained.get("loss") or NONE),
                str(run.get("seed", NONE)) if several else "",
                count(trained.get("epochs")),
                count(trained.get("updates")),
                span,
                measure.text(score if isinstance(score, float) else None),
                count(trained.get("nonzero_weights")),
                duration(trained.get("seconds")),
                count(trained.get("nonzeros_per_second")),
            ]
        )
    headings = ["run", "learner", "loss", "seed", "epochs", "updates", "mistakes, first → last epoch"]
    headings += [f"{measure.heading} on {dev_of(metrics)}", "nonzero weights", "time", "nonzeros / s"]
    return _table("Runs", headings, rows, texts=3)


def mert(metrics: Mapping[str, Any]) -> TextTable:
    """What minimum error rate training made of every run, one line per run."""
    measure = primary_of(metrics)
    rows = [
        [
            str(run.get("name", "model")),
            str(found.get("split", NONE)),
            str(run.get("seed", NONE)),
            measure.text(found.get("start")),
            measure.text(found.get("score")),
            measure.text(found.get("dev")),
            duration(found.get("seconds")),
        ]
        for run in runs_of(metrics)
        if (found := run.get("training", {}).get("mert"))
    ]
    headings = ["run", "tuned on", "seed", f"{measure.heading} there, before", "after"]
    headings += [f"{measure.heading} on {dev_of(metrics)}", "time"]
    return _table("Minimum error rate training", headings, rows, texts=2)


def mert_weights(metrics: Mapping[str, Any]) -> TextTable:
    """The weights that MERT set in the chosen run, and those it started from."""
    found = metrics.get("training", {}).get("mert") or {}
    start, weights = found.get("start_weights", {}), found.get("weights", {})
    before, after = reals([start.get(name, math.nan) for name in weights]), reals(list(weights.values()))
    rows = list(zip(weights, before, after, strict=True))
    return _table("Weights set by it in the chosen run", ["score", "before", "after"], rows)


def bound(metrics: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The chosen run's mistake bound, value by value."""
    return _flat(metrics.get("training", {}).get("bound") or {})


_SIZES = "lists", "candidates", "nonzeros", "columns"
LEFT_OUT = {"list": "skipped", "candidate": "skipped_candidates"}  # what was left out: the key of its counts


def corpora(metrics: Mapping[str, Any]) -> TextTable:
    """How large the splits are, and their sources where they have several."""
    rows = []
    for split, entry in metrics.get("corpora", {}).items():
        left_out = (count(sum((entry.get(key) or {}).values())) for key in LEFT_OUT.values())
        rows.append([split, *(count(entry.get(key)) for key in _SIZES), *left_out, duration(entry.get("seconds"))])
        for source, sizes in (entry.get("sources") or {}).items():
            rows.append([f"of which {source}", *(count(sizes.get(key)) for key in _SIZES), *[NONE] * 3])
    headings = ["split", "lists", "candidates", "nonzeros", "feature columns"]
    return _table("Corpora", [*headings, *(f"{what}s left out" for what in LEFT_OUT), "time to build"], rows)


def skipped(metrics: Mapping[str, Any]) -> TextTable:
    """Lists, and candidates of other lists, that were left out, by reason."""
    rows = [
        [split, what, str(reason), count(number)]
        for split, entry in metrics.get("corpora", {}).items()
        for what, key in LEFT_OUT.items()
        for reason, number in (entry.get(key) or {}).items()
    ]
    return _table("Left out", ["split", "what", "reason", "how many"], rows, texts=3)


def scores(metrics: Mapping[str, Any]) -> TextTable:
    """What is to be reported about the scores of the lists, and about their words."""
    rows = []
    for split, entry in metrics.get("corpora", {}).items():
        for column, candidates in (entry.get("absent") or {}).items():
            rows.append([split, f"candidates without {column}, which is 0 there", count(candidates)])
        for column, lists in (entry.get("unknown_columns") or {}).items():
            rows.append([split, f"lists with {column}, which the model does not know", count(lists)])
        if found := entry.get("lowest_first"):
            text = f"lists, of {count(found['of'])}, whose first candidate has the lowest base score: are these costs?"
            rows.append([split, text, count(found["lists"])])
        for side, words in (entry.get("normalized") or {}).items():
            rows.append([split, f"words of {side} that were brought to one form", count(words)])
    return _table("Scores and words to look at", ["split", "what", "number"], rows, texts=2)


def lists(metrics: Mapping[str, Any]) -> TextTable:
    """How long the lists are."""
    rows = [
        [
            split,
            count(found.get("smallest")),
            fixed(found.get("mean"), 1),
            fixed(found.get("median"), 1),
            count(found.get("largest")),
            count(found.get("empty")),
            count(found.get("singletons")),
            fixed(_percent(found.get("unique_oracle")), 1),
        ]
        for split, found in _statistics(metrics)
    ]
    headings = ["split", "smallest", "mean", "median", "largest", "empty", "of one candidate", "one best candidate (%)"]
    return _table("Candidates per list", headings, rows)


def choices(metrics: Mapping[str, Any]) -> TextTable:
    """The scores of the best, worst and blind choices from the lists."""
    measures = measures_of(metrics)
    rows = [
        [split, text, *(measure.text(found[name].get(measure.key)) for measure in measures)]
        for split, found in _statistics(metrics)
        for name, text in _CHOICES.items()
        if name in found
    ]
    return _table("What the lists allow", ["split", "choice", *(m.heading for m in measures)], rows, texts=2)


def ranks(metrics: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A histogram of the oracle's rank for every split that has lists."""
    found = []
    for split, entry in _statistics(metrics):
        counts = [int(lists) for lists in entry.get("oracle_ranks") or ()]
        if sum(counts):
            first = fixed(100 * counts[0] / sum(counts), 1)
            caption = f"{split}: the base candidate is the oracle in {first} % of {count(sum(counts))} lists."
            found.append({"svg": Markup(figures.ranks_figure(counts)), "caption": caption})
    return found


def curves(report: Report, legend: Sequence[figures.Series]) -> list[dict[str, Any]]:
    """The training curves that there are values for."""
    if not any(curve.samples for curve in report.curves):
        return []
    measure = primary_of(report.metrics)
    found = [
        (figures.mistakes_figure(report.curves, legend), "Mistakes made in training."),
        (figures.weights_figure(report.curves, legend), "Weights other than zero."),
    ]
    if any(curve.dev_samples for curve in report.curves):
        base = base_on_dev(report.metrics)
        found.append(
            (
                figures.dev_figure(report.curves, legend, measure, base),
                f"Score on {dev_of(report.metrics)} after every epoch.",
            )
        )
    return [{"svg": Markup(svg), "caption": caption} for svg, caption in found]


def sweep(metrics: Mapping[str, Any]) -> dict[str, Any] | None:
    """The figure of a grid over λ; None if there is no such grid."""
    predictor = decided_by(metrics)
    svg = figures.sweep_figure(metrics, predictor)
    if svg is None:
        return None
    split = figures.sweep_split(metrics, predictor)
    return {"svg": Markup(svg), "caption": f"Score on {split} against the size of the model, as λ varies."}


# What there is to say about the corpora.
DATA = (corpora, skipped, scores, lists, choices)


def learning(curve: LearningCurve | None, measure: Measure) -> dict[str, Any] | None:
    """The figure of a learning curve, with what it says; None without one."""
    if curve is None:
        return None
    return {"svg": Markup(figures.learning_figure(curve, measure)), "caption": curve.verdict}


def example(shown: Example, task: str, measure: Measure) -> dict[str, Any]:
    """One list: its gains, its trees (task ``parse``) or its texts with their differences, its strongest contributions.

    Raises
    ------
    DataError: a tree of a ``parse`` example is not a tree.
    """
    drawings = draw_example(shown.gold, shown.base, shown.chosen, shown.list_id) if task == "parse" else []
    references = shown.gold.splitlines()
    texts = mark_example(shown.source, references, shown.base, shown.chosen) if task in TEXTS else []
    heading = "gain" if measure.lower_is_better else measure.heading
    gains = {"base": shown.base_gain, "chosen": shown.chosen_gain, "oracle": shown.oracle_gain}
    largest = max((abs(part.contribution) for part in shown.contributions), default=0.0) or 1.0
    weights, differences, contributions = (
        reals([getattr(part, name) for part in shown.contributions])
        for name in ("weight", "difference", "contribution")
    )
    parts = [
        {
            "feature": part.feature,
            "weight": weights[place],
            "difference": differences[place],
            "contribution": contributions[place],
            "width": f"{100 * abs(part.contribution) / largest:.1f}",
            "sign": "against" if part.contribution < 0 else "for",
        }
        for place, part in enumerate(shown.contributions)
    ]
    return {
        "split": shown.split,
        "list_id": shown.list_id,
        "gains": [(f"{name} {heading}", measure.gain(gain)) for name, gain in gains.items()],
        "drawings": [{"role": d.role, "title": d.title, "svg": Markup(d.svg)} for d in drawings],
        "texts": texts,
        "contributions": {"rows": parts},
        "columns": _columns(shown) if len(shown.columns) > 1 else None,
        "candidates": _candidates(shown, measure, heading) if shown.candidates else None,
        "same": shown.base == shown.chosen,
        "gold": shown.gold,
        "base": shown.base,
        "chosen": shown.chosen,
    }


def _columns(shown: Example) -> TextTable:
    """The scores that a list brings, of base and chosen side by side."""
    rows = [[each.name, *reals([each.base, each.chosen, each.chosen - each.base])] for each in shown.columns]
    return TextTable("Scores of the list", ["score", "base", "chosen", "chosen − base"], rows)


def _candidates(shown: Example, measure: Measure, heading: str) -> TextTable:
    """All candidates of a list in the model's order."""
    listed = shown.candidates[:CANDIDATES]
    scored, base = reals([each.score for each in listed]), reals([each.base for each in listed])
    rows = [
        [str(k + 1), each.role, each.text, scored[k], base[k], measure.gain(each.gain)] for k, each in enumerate(listed)
    ]
    left = len(shown.candidates) - len(rows)
    note = f"{count(left)} more candidates are not shown." if left else ""
    headings = ["rank", "which", "candidate", "score", "base score", heading]
    return TextTable("Candidates by the model's score", headings, rows, texts=3, note=note, style="long-3")


def _learner(learner: Any) -> str:
    if not isinstance(learner, Mapping):
        return str(learner or NONE)
    settings = ", ".join(f"{key} {number(value)}" for key, value in learner.items() if key != "name")
    name = str(learner.get("name", ""))
    return f"{name}: {settings}" if name and settings else name or settings


def _flat(values: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for key, value in values.items():
        name = f"{prefix}{key}".replace("_", " ")
        if isinstance(value, Mapping):
            found += _flat(value, f"{name}, ")
        else:
            found.append((name, number(value)))
    return found


def _statistics(metrics: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    corpora = metrics.get("corpora", {})
    return [(split, entry["statistics"]) for split, entry in corpora.items() if entry.get("statistics")]


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share
