"""Where a run gains and loses: lists that got better or worse, and the score by length of sentence and of list."""

from collections.abc import Sequence

import numpy as np

from rerank.metrics.base import Metric
from rerank.runs.evaluation import Selections
from rerank.runs.report.measures import Measure, count, fixed
from rerank.runs.report.table import TextTable

GROUPS = 5  # of lists by size, with about as many lists each
SAME = 1e-12  # gains that are this close are equal


def changes_row(split: str, base: np.ndarray, chosen: np.ndarray, gains: tuple[np.ndarray, np.ndarray]) -> list[str]:
    """A row for ``changes_table``. base, chosen: candidates (int64 [L]); gains: theirs (float64 [L])."""
    difference = gains[1] - gains[0]
    better, worse = difference > SAME, difference < -SAME
    other = ~better & ~worse & (chosen != base)
    lists = max(base.size, 1)
    cells = [f"{count(n)} ({fixed(100 * n / lists, 1)} %)" for n in (int(better.sum()), int(worse.sum()))]
    return [split, *cells, count(int(other.sum())), count(int(np.sum(chosen == base))), count(base.size)]


def changes_table(rows: Sequence[Sequence[str]]) -> TextTable:
    """How many lists of every split got better or worse by their gain, and how many stayed as they were."""
    headings = ["split", "better", "worse", "another candidate, as good", "the same candidate", "lists"]
    return TextTable("Lists whose chosen candidate is better or worse than the base candidate", headings, rows)


def size_groups(sizes: np.ndarray) -> tuple[list[str], np.ndarray]:
    """Lists grouped by a size (int64 [L]): names such as ``4–9`` and the group of every list (int64 [L])."""
    if not sizes.size:
        return [], np.zeros(0, np.int64)
    edges, largest = np.unique(np.quantile(sizes, np.arange(1, GROUPS) / GROUPS, method="higher")), sizes.max()
    if edges[0] == largest > sizes.min():  # most lists are full: the others are the other group
        edges = sizes[sizes < largest].max(keepdims=True)
    _, group = np.unique(np.searchsorted(edges, sizes, side="left"), return_inverse=True)
    ends = [(int(sizes[group == k].min()), int(sizes[group == k].max())) for k in range(int(group.max()) + 1)]
    return [f"{low:,}" if low == high else f"{low:,}–{high:,}" for low, high in ends], np.asarray(group, np.int64)


def loss_table(
    by: str, unit: str, sizes: np.ndarray, metric: Metric, measure: Measure, selections: Selections, predictor: str
) -> TextTable | None:
    """Scores of base, ``predictor`` and oracle by the size of lists (int64 [L]), and what each group has left to gain.

    None where all lists are in one group. by, unit: what the size is, for the caption and the first heading.
    """
    names, group = size_groups(sizes)
    systems = "base", predictor, "oracle"
    if len(names) < 2 or not all(name in selections.rows for name in systems):
        return None
    rows, reference = [selections.rows[name] for name in systems], selections.reference
    everything, chosen, oracle = reference.sum(axis=0), rows[1], rows[2]
    total = chosen.sum(axis=0)
    cells = []
    for k, name in enumerate(names):
        own = group == k
        base, score, best = (float(metric.scores(r[own].sum(axis=0), reference[own].sum(axis=0))) for r in rows)
        with_oracle = total + oracle[own].sum(axis=0) - chosen[own].sum(axis=0)
        left = float(metric.scores(with_oracle, everything) - metric.scores(total, everything))
        shown = [measure.text(base), measure.text(score), measure.signed(score - base), measure.text(best)]
        cells.append([name, count(own.sum()), *shown, measure.signed(left)])
    heading = measure.heading
    return TextTable(
        f"By {by}",
        [unit, "lists", f"base {heading}", f"chosen {heading}", f"Δ{heading}", f"oracle {heading}", "left to gain"],
        cells,
        note=f"Left to gain: how {heading} of all lists would change if the oracles of these lists were chosen.",
    )
