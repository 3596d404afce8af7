"""The report of a run over lists: everything that it shows, gathered."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from rerank.extraction.content import metric_of
from rerank.metrics.oracle import list_gains
from rerank.models.inspection import shares
from rerank.models.model import Model
from rerank.recipes.recipe import ListRecipe
from rerank.runs.closer_look import Answers, Example, look_again
from rerank.runs.corpora import Data
from rerank.runs.evaluation import Selections
from rerank.runs.learning import shown_curve
from rerank.runs.report import headline, list_tables
from rerank.runs.report.html import page
from rerank.runs.report.list_figures import (
    Curve,
    LearningCurve,
    coverage_figure,
    draw_figures,
    learning_figure,
    sweep_figure,
    training_figures,
)
from rerank.runs.report.measures import primary_of
from rerank.runs.report.numbers import count, fixed, reals
from rerank.runs.report.plot import Figure, write_figures
from rerank.runs.report.rows import decided_by, dev_of, splits_of
from rerank.runs.report.table import TextTable
from rerank.runs.results import answers_written, environment
from rerank.runs.run import Run
from rerank.runs.stages import Metrics
from rerank.storage.files import write_text

CHANGES = "Lists whose chosen candidate is better or worse than the base candidate"
SAME = 1e-12  # gains that are this close are equal
STRONGEST, TEMPLATES, NAMED = 20, 25, 3  # rows of the tables of weights, and features named for a template


@dataclass(frozen=True)
class Report:
    """Everything that the report of a run over lists shows.

    Parameters
    ----------
    metrics: the content of metrics.json; ``runs`` holds all runs of the recipe, the top level the chosen one. A run's
        name and seed identify it; runs with one name and one learner are taken to be the same run with several seeds.
        ``dev_split`` names the split that runs are chosen on, if that is not "dev"; a run's ``dev`` is its score there.
    recipe: the resolved recipe, as YAML.
    date: when the run ended; ``seconds``: how long it took. environment: lines about machine, Python and libraries.
    curves: one for every run that kept a history. figures: those that the recipe asks for.
    changes: how many lists got better or worse; weights: of the model.
    learning: how results depend on the number of training lists.
    """

    metrics: dict[str, Any]
    recipe: str
    date: datetime
    seconds: float
    curves: Sequence[Curve] = ()
    figures: Sequence[Figure] = ()
    examples: Sequence[Example] = ()
    environment: Sequence[str] = ()
    changes: TextTable | None = None
    weights: Sequence[TextTable] = ()
    learning: LearningCurve | None = None


def write_page(
    recipe: ListRecipe,
    directory: Path,
    data: Data,
    model: Model,
    runs: list[Run],
    chosen: Run,
    metrics: Metrics,
    seconds: float,
) -> None:
    """Write the report, with a closer look at every test split, and the figures, which ``metrics`` then has as
    numbers."""
    measure, curves = primary_of(metrics), [run.curve() for run in runs]
    figures = draw_figures(recipe, metrics, curves)
    write_figures(directory, figures, metrics)
    examples: list[Example] = []
    changes: list[dict[str, str]] = []
    for split in recipe.data.tests:
        extracted, choices, served = data.others[split], chosen.choices[split], decided_by(metrics)
        both = choices["base"], choices.get(served, choices[recipe.predictor])
        answers = None if served in choices else answers_of(directory, split, chosen.selections[split], served, recipe)
        examples += look_again(recipe, split, extracted, model, *both, measure, answers)
        gains = [list_gains(extracted.corpus, choice) for choice in both]
        if answers is not None:
            gains[1] = answers.gains
            rows = chosen.selections[split].rows
            both = both[0], np.where((rows[served] == rows["base"]).all(axis=1), both[0], -2)
        changes.append(changes_row(split, *both, (gains[0], gains[1])))
    report = Report(
        metrics=metrics,
        recipe=recipe.as_yaml(),
        date=datetime.now().astimezone(),
        seconds=seconds,
        curves=curves,
        figures=figures,
        examples=examples,
        environment=environment(),
        changes=TextTable.of(CHANGES, changes) if changes else None,
        weights=weight_tables(model, recipe.predictor),
        learning=shown_curve(metrics.get("curve") or {}, measure, dev_of(metrics)),
    )
    write_text(directory / "report.html", render(report))


def render(report: Report) -> str:
    """The page of a run over lists."""
    metrics = report.metrics
    measure, task = primary_of(metrics), str(metrics.get("task", ""))
    return page(
        "lists.html.j2",
        metrics,
        recipe=report.recipe,
        date=report.date,
        seconds=report.seconds,
        environment=report.environment,
        runs="run",
        summary=headline.headline(metrics),
        results=[
            *(headline.results_on_page(metrics, split) for split in splits_of(metrics)),
            *list_tables.coverage_tables(metrics),
        ],
        notes=headline.notes(metrics),
        steps=headline.next_steps(metrics),
        reported=list_tables.reported_table(metrics),
        figures=[*report.figures, coverage_figure(metrics)],
        signature=metrics.get("metric"),
        signatures=headline.signatures(metrics),
        changes=report.changes,
        weights=report.weights,
        examples=[example.parts(task, measure) for example in report.examples],
        curves=training_figures(report.curves, metrics),
        learning=[learning_figure(report.learning, measure), sweep_figure(metrics)],
        tables=[table(metrics) for table in list_tables.TRAINING],
        bound=list_tables.bound(metrics),
        data=[table(metrics) for table in list_tables.DATA],
    )


def answers_of(directory: Path, split: str, selections: Selections, predictor: str, recipe: ListRecipe) -> Answers:
    """The answers of a split's lists, and their score."""
    return Answers(
        answers_written(directory, split), metric_of(recipe).gain(selections.rows[predictor], selections.reference)
    )


def changes_row(
    split: str, base: np.ndarray, chosen: np.ndarray, gains: tuple[np.ndarray, np.ndarray]
) -> dict[str, str]:
    """The number of lists of a split that got better or worse by their gain, or stayed as they were.

    base, chosen: candidates (int64 [L]); gains: theirs (float64 [L]).
    """
    difference = gains[1] - gains[0]
    better, worse = difference > SAME, difference < -SAME
    other = ~better & ~worse & (chosen != base)
    lists = max(base.size, 1)
    return {
        "split": split,
        "better": f"{count(better.sum())} ({fixed(100 * better.sum() / lists, 1)} %)",
        "worse": f"{count(worse.sum())} ({fixed(100 * worse.sum() / lists, 1)} %)",
        "another candidate, as good": count(other.sum()),
        "the same candidate": count(np.sum(chosen == base)),
        "lists": count(base.size),
    }


def weight_tables(model: Model, predictor: str) -> list[TextTable]:
    """The strongest weights, and the share of all weights that each template has; none for a model without weights."""
    w = model.weights[predictor].strength
    if not np.any(w):
        return []
    order = np.argsort(-np.abs(w), kind="stable")[:STRONGEST]
    order = order[w[order] != 0.0]
    names = [model.table.name(int(j)) for j in order]
    rows = list(zip(names, reals(w[order].tolist()), strict=True))
    note = "A weight is for one unit of its feature: weights of scores depend on what these are measured in."
    return [TextTable("Strongest weights", ["feature", "weight"], rows, note=note), _shares_table(model, predictor)]


def _shares_table(model: Model, predictor: str) -> TextTable:
    """Every template with its share of the sum of all weights' sizes."""
    weighted = [share for share in shares(model, predictor, NAMED) if share.nonzero]
    rows = [
        {
            "template": share.template,
            "its strongest": "; ".join(
                f"{name.removeprefix(f'{share.template}|')} {reals([w])[0]}" for name, w in share.strongest
            ),
            "share of weights": f"{fixed(100 * share.share, 1)} %",
            "nonzero weights": count(share.nonzero),
            "columns": count(share.columns),
        }
        for share in weighted[:TEMPLATES]
    ]
    left = len(weighted) - TEMPLATES
    note = f"{left} more templates have smaller shares." if left > 0 else ""
    return TextTable.of("Templates", rows, texts=2, note=note, style="long-2")
