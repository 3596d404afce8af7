"""One list of a report: its trees, or its texts with their differences, its contributions and candidates as tables."""

from typing import Any

from rerank.runs.report.data import Example
from rerank.runs.report.measures import Measure
from rerank.runs.report.numbers import count, reals
from rerank.runs.report.table import TextTable
from rerank.runs.report.trees import draw_example
from rerank.runs.report.words import mark_example

CANDIDATES = 1000  # of a list at most
TEXTS = ("translation", "speech", "ranking")  # tasks whose candidates are texts


def example_parts(example: Example, task: str, measure: Measure) -> dict[str, Any]:
    """The parts of ``example`` as the page lays them out."""
    texts = example.gold, example.base, example.chosen
    heading = "gain" if measure.lower_is_better else measure.heading
    gains = {"base": example.base_gain, "chosen": example.chosen_gain, "oracle": example.oracle_gain}
    marked = mark_example(example.source, example.gold.splitlines(), *texts[1:]) if task in TEXTS else []
    return {
        "list": example,
        "gains": [(f"{name} {heading}", measure.gain(gain)) for name, gain in gains.items()],
        "drawings": draw_example(*texts, example.list_id) if task == "parse" else [],
        "texts": marked,
        "marks": any(piece.mark for text in marked for piece in text.pieces),
        "contributions": _contributions(example),
        "columns": _columns(example) if len(example.columns) > 1 else None,
        "candidates": _candidates(example, measure, heading) if example.candidates else None,
    }


def _contributions(example: Example) -> list[dict[str, str]]:
    """The strongest contributions, each with the width and sign of its bar."""
    parts = example.contributions
    largest = max((abs(part.contribution) for part in parts), default=0.0) or 1.0
    weights = reals([part.weight for part in parts])
    differences = reals([part.difference for part in parts])
    contributions = reals([part.contribution for part in parts])
    return [
        {
            "feature": part.feature,
            "weight": weight,
            "difference": difference,
            "contribution": contribution,
            "width": f"{100 * abs(part.contribution) / largest:.1f}",
            "sign": "against" if part.contribution < 0 else "for",
        }
        for part, weight, difference, contribution in zip(parts, weights, differences, contributions, strict=True)
    ]


def _columns(example: Example) -> TextTable:
    """The scores that a list brings, of base and chosen side by side."""
    rows = [[name, *reals([base, chosen, chosen - base])] for name, base, chosen in example.columns]
    return TextTable("Scores of the list", ["score", "base", "chosen", "chosen − base"], rows)


def _candidates(example: Example, measure: Measure, heading: str) -> TextTable:
    """All candidates of a list in the model's order."""
    shown = example.candidates[:CANDIDATES]
    scores, base = reals([one.score for one in shown]), reals([one.base for one in shown])
    rows = [[str(k + 1), one.role, one.text, scores[k], base[k], measure.gain(one.gain)] for k, one in enumerate(shown)]
    left = len(example.candidates) - len(rows)
    note = f"{count(left)} more candidates are not shown." if left else ""
    headings = ["rank", "which", "candidate", "score", "base score", heading]
    return TextTable("Candidates by the model's score", headings, rows, texts=3, note=note, style="long-3")
