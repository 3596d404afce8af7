"""Oddities in the scores of usable lists: no reason to reject them, but worth a message."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

NEARLY, FEWEST = 0.9, 10  # the share of lists that tells costs from scores, and the least number of lists


@dataclass
class ScoreCount:
    """Counts of lists and candidates.

    absent: candidates that lack the value of a score column, which is 0 then, by column; unknown: lists that have a
    score column which the model does not know, by column; compared: lists in which base scores differ; lowest_first:
    those among them whose first candidate has the lowest.
    """

    absent: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    compared: int = 0
    lowest_first: int = 0

    def __post_init__(self) -> None:
        self.absent, self.unknown = Counter(self.absent), Counter(self.unknown)

    def look(self, base: np.ndarray, absent: Mapping[str, int]) -> None:
        """Count a list, given its base scores (float64 [N]) and its numbers of missing values by column."""
        self.absent.update(absent)
        if base.size > 1 and (lowest := base.min()) < base.max():
            self.compared += 1
            self.lowest_first += int(base[0] == lowest)

    def add(self, more: "ScoreCount") -> None:
        """Add the counts of the lists that follow."""
        self.absent += more.absent
        self.unknown += more.unknown
        self.compared += more.compared
        self.lowest_first += more.lowest_first

    @property
    def like_costs(self) -> bool:
        """Whether the first candidate of nearly every list has the lowest base score."""
        return self.compared >= FEWEST and self.lowest_first >= NEARLY * self.compared

    def as_dict(self) -> dict[str, Any]:
        """The counts worth mentioning, for reports and provenance."""
        said = {"absent": dict(sorted(self.absent.items())), "unknown_columns": dict(sorted(self.unknown.items()))}
        costs = {"lowest_first": {"lists": self.lowest_first, "of": self.compared}} if self.like_costs else {}
        return {key: counts for key, counts in said.items() if counts} | costs

    def lines(self) -> list[str]:
        """The same in words."""
        lines = []
        for column, count in sorted(self.absent.items()):
            lines.append(
                f"{count:,} candidate{'s' * (count > 1)} without a value of the score column {column!r}: it is 0 there"
            )
        if self.unknown:
            columns = f"{len(self.unknown)} score column{'s' * (len(self.unknown) > 1)}"
            lines.append(f"{columns} the model does not know: {', '.join(sorted(self.unknown))}")
        if self.like_costs:
            share = f"{100 * self.lowest_first / self.compared:.0f} % of the lists"
            advice = "if these are costs, set data.reader.scores: cost (or score, where it is cost)"
            lines.append(f"the first candidate has the lowest base score in {share}; {advice}")
        return lines
