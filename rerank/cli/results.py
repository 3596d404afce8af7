"""The results of a run on the terminal: a table for every test split, signatures, the headline, what was reported."""

from __future__ import annotations

from rerank.cli.answer import out, show
from rerank.recipes.recipe import ListRecipe
from rerank.runs.report.reported import reported_table
from rerank.runs.report.summary import signatures, summary
from rerank.runs.report.table import plain_text, results_table
from rerank.runs.results import Metrics


def show_results(recipe: ListRecipe, result: Metrics) -> None:
    """Show ``result``, the content of metrics.json."""
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
