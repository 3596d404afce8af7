"""What a paper reports, beside what a run has found."""

from collections.abc import Mapping
from typing import Any

from rerank.runs.report.measures import MEASURES, NONE, Measure, count, fixed
from rerank.runs.report.rows import BESIDE, Group, groups_of, splits_of
from rerank.runs.report.spread import Spread
from rerank.runs.report.table import TextTable, spread_text

TRAINED = ("nonzero_weights", "seconds")  # numbers of the training
_MEASURES = {measure.key: measure for measure in MEASURES}


def reported_table(metrics: Mapping[str, Any]) -> TextTable | None:
    """One line per row of the paper, every measure of ours beside the paper's; None for a recipe without any.

    A measure is a key, of the first test split, or ``split.key``. Rows that are no run of ours have no number of it.
    """
    reported = metrics.get("reported")
    if not reported:
        return None
    rows: Mapping[str, Mapping[str, Any]] = reported["rows"]
    keys = list(dict.fromkeys(key for row in rows.values() for key in row))
    groups = {str(group.runs[0].get("name")): group for group in groups_of(metrics)}
    lines = []
    for name, row in rows.items():
        cells = [(_ours(metrics, groups.get(name), name, key), _paper(key, row.get(key))) for key in keys]
        lines.append([name, *(text for pair in cells for text in pair)])
    headings = [text for key in keys for text in (_heading(key), "paper")]
    return TextTable(f"Ours beside the paper's: {reported['source']}", ["run", *headings], lines)


def _split(metrics: Mapping[str, Any], key: str) -> tuple[str, str]:
    """The split and the measure that a key of the paper's names."""
    split, dot, measure = key.rpartition(".")
    return (split, measure) if dot else (next(iter(splits_of(metrics)), ""), key)


def _heading(key: str) -> str:
    split, dot, name = key.rpartition(".")
    measure = _MEASURES.get(name)
    return f"{split}{' ' if dot else ''}{measure.heading if measure else name.replace('_', ' ')}"


def _ours(metrics: Mapping[str, Any], group: Group | None, name: str, key: str) -> str:
    split, own = _split(metrics, key)
    systems, measure = metrics.get("splits", {}).get(split, {}), _MEASURES.get(own)
    if name in BESIDE and measure is not None:
        return measure.text(systems.get(name, {}).get(own))
    if group is None:
        return NONE
    if own in TRAINED:
        spread = group.training(own)
        return NONE if spread is None else count(spread.mean) if own == "nonzero_weights" else fixed(spread.mean, 1)
    return NONE if measure is None else spread_text(written_score(metrics, group, split, own), measure) or NONE


def written_score(metrics: Mapping[str, Any], group: Group, split: str, key: str) -> Spread | None:
    """The score of what MERT has tuned, where there is that, else of the predictor that is written out."""
    return group.score(split, "mert", key) or group.score(
        split, str(metrics.get("ranked_by") or metrics.get("predictor", "average")), key
    )


def _paper(key: str, value: float | str | None) -> str:
    """A measure as its metric shows it, a count as a count; other values in percent if they are fractions."""
    if value is None or isinstance(value, str):
        return value or NONE
    measure: Measure | None = _MEASURES.get(key.rpartition(".")[2])
    if measure is not None:
        return measure.text(value)
    return f"{100 * value:.2f}" if abs(value) <= 1 else count(value)
