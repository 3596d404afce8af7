"""The results of a recipe on the terminal: what was read, tables of what was tested, signatures, the headline."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from rerank.base.registry import imported
from rerank.cli.answer import out, show
from rerank.recipes.recipe import TaskRecipe
from rerank.recipes.tasks import task_named
from rerank.runs.report.headline import crossed, headline, results_on_terminal, signatures
from rerank.runs.report.list_tables import reported_table
from rerank.runs.report.table import plain_text
from rerank.runs.stages import Metrics

if TYPE_CHECKING:
    from rich.console import RenderableType


def fitting(table: Table) -> "RenderableType":
    """A table as the output has room for it: as it is on a terminal, else as text of its natural width."""
    return table if out.is_terminal else plain_text(table).rstrip("\n")


def show_counts(recipe: TaskRecipe, corpora: Mapping[str, Any]) -> None:
    """Show what was read: ``corpora`` of metrics.json."""
    if sizes := task_named(recipe.task).sizes:
        show(fitting(imported(sizes)(corpora).rich()), corpora=corpora)
        return
    table = Table("split", "lists", "candidates", "nonzeros", "columns", "skipped lists", "skipped candidates")
    for split, counts in corpora.items():
        numbers = [f"{counts[key]:,}" for key in ("lists", "candidates", "nonzeros", "columns")]
        skipped = [f"{sum(counts[key].values()):,}" for key in ("skipped", "skipped_candidates")]
        table.add_row(split, *numbers, *skipped)
    show(table, corpora=corpora)


def show_training(result: Metrics, model: Path) -> None:
    """Show where the model is and, for lists, how it was trained."""
    training = result.get("training")
    if training is None:
        show(f"model: {model}", model=model)
        return
    line = f"{training['learner']}: {training['epochs']} epochs, {training['nonzero_weights']:,} nonzero weights"
    show(line, f"model: {model}", training=training, model=model)


def show_results(recipe: TaskRecipe, result: Metrics) -> None:
    """Show ``result``, the content of metrics.json."""
    if tables := task_named(recipe.task).tables:
        for table in imported(tables)(recipe, result["tables"]):
            show(fitting(table.rich()), f"{table.note}\n")
        show(metrics=result)
        return
    after = [] if out.is_terminal else ["\n"]
    for split in result["splits"]:
        show(fitting(results_on_terminal(result, split, wide=not out.is_terminal)), *after)
    show(*(f"{name}: {text}" for name, text in signatures(result)), metrics=result)
    show(*filter(None, [crossed(result)]))
    if said := headline(result):
        show(said["sentence"], headline=said["sentence"])
    if reported := reported_table(result):
        show(fitting(reported.rich()))
