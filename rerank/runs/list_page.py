"""The report of a run over lists: everything that it shows, gathered."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from rerank.data.shards import Lists, list_sizes
from rerank.extraction.content import metric_of
from rerank.metrics.oracle import list_gains
from rerank.models.inspection import shares
from rerank.models.model import Model
from rerank.recipes.recipe import ListRecipe
from rerank.runs.closer_look import Answers, Example, look_again
from rerank.runs.corpora import Data
from rerank.runs.evaluation import Selections
from rerank.runs.learning import shown_curve
from rerank.runs.losses import LossDetails, changes_row, changes_table, loss_table
from rerank.runs.report import headline, list_tables
from rerank.runs.report.html import page
from rerank.runs.report.list_figures import (
    Curve,
    LearningCurve,
    coverage_figure,
    draw_figures,
    learning_figure,
    rank_figures,
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
    changes: how many lists got better or worse; losses: by split, where it gains and loses; weights: of the model.
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
    losses: Mapping[str, Sequence[TextTable]] = field(default_factory=dict)
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
    losses: dict[str, list[TextTable]] = {}
    changes: list[dict[str, str]] = []
    for split in recipe.data.tests:
        extracted, choices, served = data.others[split], chosen.choices[split], decided_by(metrics)
        both = choices["base"], choices.get(served, choices[recipe.predictor])
        answers = None if served in choices else answers_of(directory, split, chosen.selections[split], served, recipe)
        shown, details = look_again(recipe, split, extracted, model, *both, measure, answers)
        examples += shown
        gains = [list_gains(extracted.corpus, choice) for choice in both]
        if answers is not None:
            gains[1] = answers.gains
            rows = chosen.selections[split].rows
            both = both[0], np.where((rows[served] == rows["base"]).all(axis=1), both[0], -2)
        changes.append(changes_row(split, *both, (gains[0], gains[1])))
        losses[split] = loss_tables(recipe, extracted.corpus, chosen.selections[split], details, metrics)
    report = Report(
        metrics=metrics,
        recipe=recipe.as_yaml(),
        date=datetime.now().astimezone(),
        seconds=seconds,
        curves=curves,
        figures=figures,
        examples=examples,
        environment=environment(),
        changes=changes_table(changes) if changes else None,
        losses=losses,
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
        losses=report.losses,
        weights=report.weights,
        examples=[example.parts(task, measure) for example in report.examples],
        curves=training_figures(report.curves, metrics),
        learning=[learning_figure(report.learning, measure), sweep_figure(metrics)],
        tables=[table(metrics) for table in list_tables.TRAINING],
        bound=list_tables.bound(metrics),
        data=[table(metrics) for table in list_tables.DATA],
        ranks=rank_figures(metrics),
    )


def answers_of(directory: Path, split: str, selections: Selections, predictor: str, recipe: ListRecipe) -> Answers:
    """The answers of a split's lists, and their score."""
    return Answers(
        answers_written(directory, split), metric_of(recipe).gain(selections.rows[predictor], selections.reference)
    )


def loss_tables(
    recipe: ListRecipe, corpus: Lists, selections: Selections, details: LossDetails, metrics: Metrics
) -> list[TextTable]:
    """The gains and losses of the chosen run's predictor on a split: by length, by list length, by label or word."""
    table = details.table()  # what is found last; it settles the lengths
    how = metric_of(recipe), primary_of(metrics), selections, decided_by(metrics)
    length = None
    if details.length.size and details.length.min() >= 0:
        length = loss_table(f"length of the {details.length_of}", "words", details.length, *how)
    by_list = loss_table("length of the list", "candidates", list_sizes(corpus), *how)
    return [shown for shown in (table, length, by_list) if shown is not None]


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
