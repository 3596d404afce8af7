"""The results of a recipe on the terminal: what was read, tables of what was tested, signatures, the headline."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.table import Table

from rerank.cli.answer import out, show
from rerank.recipes.recipe import ListRecipe, TaskRecipe
from rerank.runs.report.reported import reported_table
from rerank.runs.report.summary import signatures, summary
from rerank.runs.report.table import plain_text, results_table
from rerank.runs.steps import Metrics


def show_counts(recipe: TaskRecipe, corpora: Mapping[str, Any]) -> None:
    """Show what was read: ``corpora`` of metrics.json."""
    if not isinstance(recipe, ListRecipe):
        from rerank.runs.examples.page import sets_table

        table = sets_table(corpora).rich()
        show(table if out.is_terminal else plain_text(table), corpora=corpora)
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
    if not isinstance(recipe, ListRecipe):
        _show_tables(recipe, result)
        return
    for split in dict.fromkeys(recipe.data.tests):
        table = results_table(result, split, wide=not out.is_terminal)
        show(table if out.is_terminal else plain_text(table))
    show(*(f"{name}: {text}" for name, text in signatures(result)), metrics=result)
    headline = summary(result)
    if headline is not None:
        show(headline["sentence"], headline=headline["sentence"])
    reported = reported_table(result)
    if reported is not None:
        show(reported.rich() if out.is_terminal else plain_text(reported.rich()).rstrip("\n"))


def _show_tables(recipe: Any, result: Metrics) -> None:
    """The tables that a recipe over labelled examples asks for."""
    from rerank.runs.examples.tables import tables_of

    shown = [(table.rich(), table.note) for table in tables_of(recipe, result["tables"])]
    lines = [(table if out.is_terminal else plain_text(table).rstrip("\n"), f"{note}\n") for table, note in shown]
    show(*(line for pair in lines for line in pair), metrics=result)
