"""The weights of a model as tables for people."""

import numpy as np

from rerank.models.inspection import shares
from rerank.models.model import Model
from rerank.runs.report.measures import count, fixed, reals
from rerank.runs.report.table import TextTable

STRONGEST, TEMPLATES, EXAMPLES = 20, 25, 3  # rows of the tables, and features named for a template


def weight_tables(model: Model, predictor: str) -> list[TextTable]:
    """The strongest weights, and what share of all weights each template has; none for a model without weights."""
    w = model.weights[predictor].w
    if not np.any(w):
        return []
    return [strongest_table(model, predictor), shares_table(model, predictor)]


def strongest_table(model: Model, predictor: str) -> TextTable:
    """The features with the largest weights, of either sign."""
    w = model.weights[predictor].w
    order = np.argsort(-np.abs(w), kind="stable")[:STRONGEST]
    order = order[w[order] != 0.0]
    rows = [[model.table.name(int(j)), value] for j, value in zip(order, reals(w[order].tolist()), strict=True)]
    note = "A weight is for one unit of its feature: weights of scores depend on what these are measured in."
    return TextTable("Strongest weights", ["feature", "weight"], rows, note=note)


def shares_table(model: Model, predictor: str) -> TextTable:
    """Every template with its share of the sum of all weights' sizes."""
    found = [share for share in shares(model, predictor, EXAMPLES) if share.nonzero]
    rows = [
        [
            each.template,
            "; ".join(f"{name.removeprefix(f'{each.template}|')} {reals([w])[0]}" for name, w in each.strongest),
            f"{fixed(100 * each.share, 1)} %",
            count(each.nonzero),
            count(each.columns),
        ]
        for each in found[:TEMPLATES]
    ]
    headings = ["template", "its strongest", "share of weights", "nonzero weights", "columns"]
    left = len(found) - TEMPLATES
    note = f"{left} more templates have smaller shares." if left > 0 else ""
    return TextTable("Templates", headings, rows, texts=2, note=note, style="long-2")
