"""Best of n samples in one table: what needs no training, beside majority vote, and what learning adds to it.

Without training: the first sample, the best by each column, the vote of all samples for their answers
(self-consistency; Wang et al. 2023), and votes weighted by each column. Learned, by cross-validation over lists: the
columns, what they say of answers (means of columns, and how many gave them), and what else is registered to choose
(kind ``vote``).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rerank.base.encoding import amount
from rerank.base.errors import RecipeError
from rerank.base.registry import Registry
from rerank.data.corpus import Corpus
from rerank.learn.scoring import Weights, scores
from rerank.readers.account import said_of
from rerank.runs.compared import Compared, Scored
from rerank.runs.gathered import Gathered, gathered
from rerank.runs.report.table import TextTable, plain_text
from rerank.runs.ways import (
    FIRST,
    MAJORITY,
    MOST,
    Choose,
    Samples,
    best_by,
    maxent_weights,
    right_or_wrong,
    scored,
    systems,
)
from rerank.storage.files import write_text
from rerank.storage.strict_json import as_json

GROWN = 2_000  # lists that these learn from, which take more time
DRAWS = 4  # samples of k candidates of each list, for the curve
ANY, BEST = "any (oracle, pass@n)", "best possible (oracle)"  # of gains of 0 and 1, and of others


def learned(samples: Samples, seed: int) -> dict[str, Choose]:
    """Ways to choose that are learned, each list by what the lists of other folds teach."""
    draws, ways = np.random.default_rng(seed), dict[str, Choose]()
    folds = range(int(samples.fold.max()) + 1)
    rest = [draws.permutation(np.flatnonzero(samples.fold != fold))[:MOST] for fold in folds]
    parts = [samples.lists(np.sort(lists)) for lists in rest]
    answered = bool(samples.answers.max(initial=-1) >= 0)
    if len(samples.columns):
        linear = [maxent_weights(part, agree=False, folds=True) for part in parts]
        ways["learned from columns"] = lambda lists: best_by(lists, scored(lists, linear, agree=False))
    if answered:
        of_answers = [maxent_weights(part, agree=True, folds=True) for part in parts]
        ways["learned from answers"] = lambda lists: best_by(lists, scored(lists, of_answers, agree=True))
    enough = min(map(len, rest)) >= 2  # one to learn from, one to choose by
    for name, learn in Registry[Callable[[Corpus, int], Weights | None]]("vote") if enough else ():
        if not (answered or len(samples.columns)):
            continue
        few = [samples.lists(np.sort(lists[:GROWN])).corpus(agree=bool(answered)) for lists in rest]
        predictors = [weights for part in few if (weights := learn(part, seed)) is not None]
        if predictors:
            ways[name] = partial(_by_fold, predictors, bool(answered))
    return ways


def _by_fold(predictors: Sequence[Weights], agree: bool, lists: Samples) -> np.ndarray:
    """The candidate that is best by the predictor of the fold that a list is held out in."""
    total, held = np.empty(lists.gain.size), np.repeat(lists.fold, np.diff(lists.first))
    for fold, weights in enumerate(predictors):
        own = lists.lists(np.flatnonzero(lists.fold == fold))
        total[held == fold] = scores(own.corpus(agree=agree), weights)
    return best_by(lists, total)


def heading_of(source: Gathered) -> str:
    """What the scores of lists are called: verdicts are right."""
    return "right" if right_or_wrong(source.metric, source.samples.gain) else source.metric.primary


def about(compared: Compared, source: Gathered) -> dict[str, Any]:
    """What choices from the lists of a source are worth, as JSON."""
    counts = {"lists": source.samples.fold.size, "candidates": source.samples.gain.size, "doubt": source.doubt}
    return {"metric": source.metric.signature, **counts, "rows": compared.as_data(), **said_of(source.account)}


def table_of(compared: Compared, source: Gathered, note: str) -> TextTable:
    """The same as a table."""
    caption = f"{amount(source.samples.fold.size, 'list')}, {amount(source.samples.gain.size, 'candidate')}"
    return compared.table(caption, note, heading=heading_of(source), doubt=source.doubt)


class VoteCurve(NamedTuple):
    """Scores by how many candidates of every list there are, for every way to choose."""

    candidates: tuple[int, ...]
    scores: Mapping[str, tuple[float, ...]]


@dataclass(frozen=True)
class VoteTable:
    """The scores of ways to choose from the lists of a source, tested against majority vote, or the first candidate
    where there are no answers; curve: by the number of candidates."""

    compared: Compared
    source: Gathered
    folds: int
    curve: VoteCurve | None = None

    @property
    def rows(self) -> Mapping[str, Scored]:
        return self.compared.scored

    def as_data(self) -> dict[str, Any]:
        """The table as JSON."""
        curve = {"curve": self.curve._asdict()} if self.curve is not None else {}
        return about(self.compared, self.source) | {"folds": self.folds} | curve

    def table(self) -> TextTable:
        """The table, and what is tested."""
        note = f"Learned ways are cross-validated: choices in each of {self.folds} folds are learned from the rest."
        return table_of(self.compared, self.source, note)

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
    source = gathered(lists, metric, use, folds, seed, columns)
    if source.metric.ordered:
        message = f"{source.metric.primary} measures the order of all candidates; votes choose one: expected gain"
        raise RecipeError(message, key="metric")
    every = source.samples
    oracle = ANY if right_or_wrong(source.metric, every.gain) else BEST
    ways: dict[str, Choose] = {oracle: lambda lists: best_by(lists, lists.gain)}
    ways |= systems(every, source.names) | learned(every, seed)
    rows = {name: source.stats[way(every)] for name, way in ways.items()}
    sign = -1.0 if source.metric.lower_is_better else 1.0
    ordered = dict(sorted(rows.items(), key=lambda item: -sign * source.score(item[1])))
    against = MAJORITY if MAJORITY in rows else FIRST
    compared = Compared(source.metric, source.reference, ordered, against, (oracle,), samples=samples, seed=seed)
    return VoteTable(compared, source, folds, curve_of(source, ways, seed) if curve else None)


def curve_of(source: Gathered, ways: Mapping[str, Choose], seed: int) -> VoteCurve:
    """The results of every way with k = 1, 2, 4, ... candidates of every list, drawn without replacement.

    The draws of a k are the same for all ways, so that none is above the oracle. With one candidate all ways are the
    mean of all candidates, with all candidates they are the rows of the table.
    """
    every, rng = source.samples, np.random.default_rng(seed)
    sizes = np.diff(every.first)
    numbers = np.repeat(np.arange(sizes.size), sizes)
    rank = np.arange(every.gain.size) - np.repeat(every.first[:-1], sizes)
    longest = int(sizes.max())
    counts = [*(1 << power for power in range(longest.bit_length()) if 1 << power < longest), longest]
    mean = source.percent_of(np.add.reduceat(source.stats, every.first[:-1]) / sizes[:, None])
    reached = {name: [mean] for name in ways}
    for k in counts[1:]:
        kept = np.minimum(sizes, k)
        scores: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(DRAWS if k < longest else 1):
            order = np.lexsort((rng.random(every.gain.size) if k < longest else rank, numbers))  # ties go to the first
            places = order[rank < np.repeat(kept, sizes)]
            drawn = every.some(places, np.concatenate([[0], np.cumsum(kept)]))
            for name, way in ways.items():
                scores[name].append(source.percent_of(source.stats[places[way(drawn)]]))
        for name in ways:
            reached[name].append(sum(scores[name]) / len(scores[name]))
    return VoteCurve(tuple(counts), {name: tuple(values) for name, values in reached.items()})


def write_curve(table: VoteTable, path: Path) -> None:
    """Write the curve as SVG, of each kind of ways the one that is best in the end, and all of it as JSON beside it;
    ``path`` may end in either."""
    from dataclasses import replace

    from rerank.runs.report.plot import FigureLine, draw, logarithmic

    assert table.curve is not None
    scores, metric = table.curve.scores, table.source.metric
    sign, names = -1.0 if metric.lower_is_better else 1.0, [name for name in scores if name != FIRST]
    for kind in ("best ", "vote by ", "learned from "):
        alike = [name for name in names if name.startswith(kind) and name != BEST]
        best = max(alike, key=lambda name: sign * scores[name][-1], default="")
        names = [name for name in names if name not in alike or name == best]
    x, heading = [float(k) for k in table.curve.candidates], heading_of(table.source)
    scale = replace(logarithmic(x, margin=0.03), ticks=tuple((k, f"{k:g}") for k in x))
    caption = f"{heading} by the number of candidates that are drawn of each list"
    lines = [FigureLine(x, scores[name], name) for name in names]
    figure = draw(caption, lines, "candidates", heading, x=scale)
    name = path.name.removesuffix(".svg").removesuffix(".json")
    write_text(path.with_name(f"{name}.svg"), figure.standalone())
    write_text(path.with_name(f"{name}.json"), as_json(table.curve._asdict(), indent=1) + "\n")
