"""Best of n samples in one table: what needs no training, beside majority vote, and what learning adds to it.

Without training: the first sample, the best by each column, the vote of all samples for their answers
(self-consistency; Wang et al. 2023), and votes weighted by each column. Learned, by cross-validation over lists: the
columns, columns and agreement, the vote that these weigh, and what else is registered to choose (kind ``vote``).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rerank.base.encoding import amount
from rerank.base.errors import RecipeError
from rerank.base.registry import Registry
from rerank.data.corpus import Corpus
from rerank.learn.scoring import Weights, scores
from rerank.metrics.base import Metric
from rerank.metrics.gain import Gain
from rerank.metrics.significance import Significance, compare, score_interval
from rerank.readers.account import Account, said_of
from rerank.runs.gathered import Gathered, gathered
from rerank.runs.report.plot import Figure, FigureLine, draw, logarithmic
from rerank.runs.report.table import TextTable, plain_text
from rerank.runs.ways import (
    BY_COLUMN,
    FIRST,
    MAJORITY,
    MOST,
    Choose,
    Samples,
    best_by,
    maxent_weights,
    scored,
    softmax,
    systems,
    voted,
)  # fmt: skip
from rerank.storage.files import write_text
from rerank.storage.strict_json import as_json

GROWN = 2_000  # lists that these learn from, which take more time
SHARPNESS = np.array([0.25, 0.5, 1.0, 2.0, 4.0])  # of learned votes: the one that is best on what a fold learns from
DRAWS = 4  # samples of k candidates of each list, for the curve
ANY, BEST = "any (oracle, pass@n)", "best possible (oracle)"  # of gains of 0 and 1, and of others
LEARNED = "learned from "  # what scores of candidates are learned from


def learned(samples: Samples, seed: int) -> dict[str, Choose]:
    """Ways to choose that are learned, each list by what the lists of other folds teach."""
    folds = range(int(samples.fold.max()) + 1)
    draws = np.random.default_rng(seed)
    rest = [draws.permutation(np.flatnonzero(samples.fold != fold))[:MOST] for fold in folds]
    parts = [samples.lists(np.sort(lists)) for lists in rest]
    answered, ways = samples.answers.max(initial=-1) >= 0, dict[str, Choose]()
    if len(samples.columns):
        linear = [maxent_weights(part, agree=False) for part in parts]
        ways[LEARNED + "columns"] = lambda lists: best_by(lists, scored(lists, linear, agree=False))
    if answered:
        both = [maxent_weights(part, agree=True) for part in parts]
        sharp = [_sharpness(part, w) for part, w in zip(parts, both, strict=True)]

        def by_vote(lists: Samples) -> np.ndarray:
            """The vote of candidates by their scores."""
            raised = scored(lists, both, agree=True) * np.repeat(np.array(sharp)[lists.fold], np.diff(lists.first))
            return voted(lists, softmax(lists, raised, scaled=False))

        ways[LEARNED + "columns and agreement"] = lambda lists: best_by(lists, scored(lists, both, agree=True))
        ways["learned vote"] = by_vote
    enough = min(map(len, rest)) >= 2  # one to learn from, one to choose by
    for name, learn in Registry[Callable[[Corpus, int], Weights | None]]("vote") if enough else ():
        if not (answered or len(samples.columns)):
            continue
        few = [samples.lists(np.sort(lists[:GROWN])).corpus(agree=bool(answered)) for lists in rest]
        predictors = [weights for part in few if (weights := learn(part, seed)) is not None]
        if predictors:
            ways[name] = partial(_by_fold, predictors, bool(answered))
    return ways


def _sharpness(samples: Samples, weights: np.ndarray) -> float:
    """The sharpness of the vote by the candidates' scores that is best on these lists."""
    found = scored(samples._replace(fold=np.zeros_like(samples.fold)), [weights], agree=True)
    reached = [samples.gain[voted(samples, softmax(samples, a * found, scaled=False))].mean() for a in SHARPNESS]
    return float(SHARPNESS[int(np.argmax(reached))])


def _by_fold(predictors: Sequence[Weights], agree: bool, lists: Samples) -> np.ndarray:
    """The candidate that is best by the predictor of the fold that a list is held out in."""
    total, held = np.empty(lists.gain.size), np.repeat(lists.fold, np.diff(lists.first))
    for fold, weights in enumerate(predictors):
        own = lists.lists(np.flatnonzero(lists.fold == fold))
        total[held == fold] = scores(own.corpus(agree=agree), weights)
    return best_by(lists, total)


class VoteCurve(NamedTuple):
    """Scores by how many candidates of every list there are, for every way to choose."""

    candidates: tuple[int, ...]
    scores: Mapping[str, tuple[float, ...]]


@dataclass(frozen=True)
class VoteTable:
    """The scores of ways to choose from lists.

    rows: by name, the score, its interval, and the test against majority vote, or the first candidate where there are
    no answers (None for that itself and for what cannot be chosen). doubt: what speaks against claims: then there is no
    p. curve: by the number of candidates. account: what the lists were taken for.
    """

    metric: Metric
    lists: int
    candidates: int
    folds: int
    rows: Mapping[str, tuple[float, tuple[float, float] | None, Significance | None]]
    doubt: str
    curve: VoteCurve | None = None
    account: Account | None = None

    def as_data(self) -> dict[str, Any]:
        """The table as JSON."""
        rows = [
            {"name": name, "score": score, "interval": interval, "difference": test and test.difference,
             "p": test and test.p}
            for name, (score, interval, test) in self.rows.items()
        ]  # fmt: skip
        curve = {"curve": self.curve._asdict()} if self.curve is not None else {}
        counts = {"lists": self.lists, "candidates": self.candidates, "folds": self.folds, "doubt": self.doubt}
        return {"metric": self.metric.signature, **counts, "rows": rows, **curve, **said_of(self.account)}

    def table(self) -> TextTable:
        """The table, and what is tested."""
        reference = MAJORITY if MAJORITY in self.rows else FIRST
        lines = []
        for name, (score, interval, test) in self.rows.items():
            line = {"chosen by": name, self.metric.primary: self.metric.text(score)}
            line["95 % interval"] = "" if interval is None else " to ".join(map(self.metric.text, interval))
            line[f"less {reference}"] = "" if test is None else self.metric.signed(test.difference)
            lines.append(line | {"p": "" if test is None or self.doubt else f"{test.p:.2g}"})
        note = f"Learned ways are cross-validated: choices in each of {self.folds} folds are learned from the rest."
        note = f"{self.doubt} {note}".strip()
        return TextTable.of(f"{amount(self.lists, 'list')}, {amount(self.candidates, 'candidate')}", lines, note=note)

    def __str__(self) -> str:
        table = self.table()
        return plain_text(table.rich()) + table.note


def table_of_votes(
    lists: Any,
    metric: str | Mapping[str, Any] | None = None,
    *,
    folds: int = 5,
    samples: int = 1000,
    seed: int = 1,
    curve: bool = False,
    use: Sequence[str] | None = None,
    **columns: Any,
) -> VoteTable:
    """One table of ways to choose from ``lists``, without training and learned.

    Parameters
    ----------
    lists: as ``fit`` takes them, or several that ``read`` gives of files; their answers are those of candidates, or of
        the rule that ``read`` was given.
    metric: its name, or a mapping of name and options; by default the gain that lists hold.
    folds: ≥ 2; of the cross-validation.
    samples, seed: of intervals and tests, of folds and draws.
    curve: also for 1, 2, 4, ... candidates of every list, drawn DRAWS times.
    use: the numbers of candidates that are looked at, by name; by default all.
    columns: of a data frame, as in ``read``.

    Raises
    ------
    DataError: lists that cannot be used, or fewer than folds. RecipeError: an unknown metric, too few folds or samples.
    """
    for key, number, least in (("folds", folds, 2), ("samples", samples, 1)):
        if number < least:
            raise RecipeError(f"found {number}; expected {least} or more", key=key)
    found = gathered(lists, metric, use, folds, seed, columns)
    if found.metric.ordered:
        message = f"{found.metric.primary} measures the order of all candidates; votes choose one: expected gain"
        raise RecipeError(message, key="metric")
    how: dict[str, Any] = {"samples": samples, "seed": seed}
    every = found.samples
    ways = systems(every, found.names) | learned(every, seed)
    chosen = {name: found.stats[way(every)] for name, way in ways.items()}
    against, rows = chosen.get(MAJORITY, chosen[FIRST]), dict[str, Any]()
    sign = -1.0 if found.metric.lower_is_better else 1.0
    oracle = found.stats[best_by(every, every.gain)]
    passes = isinstance(found.metric, Gain) and np.isin(every.gain, (0, 1)).all()
    rows[ANY if passes else BEST] = found.score(oracle), None, None
    for name, picked in chosen.items():
        interval = score_interval(found.metric, picked, found.reference, **how)
        tested = picked is not against
        test = compare(found.metric, picked, against, found.reference, **how) if tested else None
        rows[name] = found.score(picked), interval, test
    ordered = dict(sorted(rows.items(), key=lambda item: -sign * item[1][0]))
    shown = curve_of(found, ways, seed) if curve else None
    shape = len(every.first) - 1, int(every.first[-1]), folds
    return VoteTable(found.metric, *shape, ordered, found.doubt, shown, found.account)


def curve_of(found: Gathered, ways: Mapping[str, Choose], seed: int) -> VoteCurve:
    """The results of every way with k = 1, 2, 4, ... candidates of every list, drawn without replacement.

    The draws of a k are the same for all ways, so that none is above the oracle. With one candidate all ways are the
    mean of all candidates, with all candidates they are the rows of the table.
    """
    every, rng = found.samples, np.random.default_rng(seed)
    sizes = np.diff(every.first)
    numbers = np.repeat(np.arange(sizes.size), sizes)
    rank = np.arange(every.gain.size) - np.repeat(every.first[:-1], sizes)
    longest = int(sizes.max())
    counts = [*(1 << power for power in range(longest.bit_length()) if 1 << power < longest), longest]
    every_way: dict[str, Choose] = {**ways, ANY: lambda lists: best_by(lists, lists.gain)}
    mean = found.percent_of(np.add.reduceat(found.stats, every.first[:-1]) / sizes[:, None])
    reached = {name: [mean] for name in every_way}
    for k in counts[1:]:
        kept = np.minimum(sizes, k)
        scores: dict[str, list[float]] = {name: [] for name in every_way}
        for _ in range(DRAWS if k < longest else 1):
            order = np.lexsort((rng.random(every.gain.size) if k < longest else rank, numbers))  # ties go to the first
            places = order[rank < np.repeat(kept, sizes)]
            drawn = every.some(places, np.concatenate([[0], np.cumsum(kept)]))
            for name, way in every_way.items():
                scores[name].append(found.percent_of(found.stats[places[way(drawn)]]))
        for name in every_way:
            reached[name].append(sum(scores[name]) / len(scores[name]))
    return VoteCurve(tuple(counts), {name: tuple(values) for name, values in reached.items()})


def figure_of(curve: VoteCurve, metric: Metric) -> Figure:
    """The curve, of each kind of ways the one that is best in the end."""
    sign, shown = -1.0 if metric.lower_is_better else 1.0, [name for name in curve.scores if name != FIRST]
    for kind in (*BY_COLUMN, LEARNED):
        alike = [name for name in shown if name.startswith(kind)]
        best = max(alike, key=lambda name: sign * curve.scores[name][-1], default="")
        shown = [name for name in shown if name not in alike or name == best]
    x = [float(k) for k in curve.candidates]
    scale = replace(logarithmic(x, margin=0.03), ticks=tuple((k, f"{k:g}") for k in x))
    lines = [FigureLine(x, curve.scores[name], name) for name in shown]
    caption = f"{metric.primary} by the number of candidates that are drawn of each list"
    return draw("curve", caption, lines, "candidates", metric.primary, x=scale)


def write_curve(table: VoteTable, path: Path) -> None:
    """Write the curve as SVG, and as JSON beside it; ``path`` may end in either."""
    assert table.curve is not None
    name = path.name.removesuffix(".svg").removesuffix(".json")
    write_text(path.with_name(f"{name}.svg"), figure_of(table.curve, table.metric).standalone())
    write_text(path.with_name(f"{name}.json"), as_json(table.curve._asdict(), indent=1) + "\n")
