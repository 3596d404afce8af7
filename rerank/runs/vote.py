"""Best of n samples in one table: what needs no training, beside majority vote, and what learning adds to it.

Without training: the first sample, the best by each column, the vote of all samples for their answers
(self-consistency; Wang et al. 2023), and votes weighted by each column. Learned, by cross-validation over lists: the
columns, columns and agreement, the vote that these weigh, and trees if LightGBM is installed.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rerank.base.errors import DataError, RecipeError
from rerank.extraction.blocks import pair_of, partly_flat
from rerank.extraction.content import content_of
from rerank.extraction.content.base import Pair
from rerank.extraction.flat import FlatPair
from rerank.kernels.compile import kernel
from rerank.learn.rules.lambdamart import LambdaMart
from rerank.learn.rules.maxent import Maxent
from rerank.learn.scoring import Weights, scores
from rerank.metrics.base import Metric
from rerank.metrics.gain import Gain
from rerank.metrics.oracle import oracles
from rerank.metrics.order import OrderMetric
from rerank.metrics.significance import Significance, compare, score_interval
from rerank.readers.base import NBestList, SkipCount, SkippedList, usable
from rerank.readers.block import Item, ListBlock
from rerank.readers.given.reading import ListFile, lists_from, lists_given
from rerank.readers.nbest import numbered
from rerank.readers.score_columns import ScoreColumns
from rerank.readers.texts.text_list import TextList
from rerank.recipes.loading import read_settings
from rerank.recipes.recipe import ListRecipe
from rerank.recipes.settings import named
from rerank.runs.report.plot import Figure, FigureLine, draw, logarithmic
from rerank.runs.report.table import TextTable, plain_text
from rerank.runs.ways import BY_COLUMN, FIRST, MAJORITY, Choose, Samples, best_by, softmax, systems, voted
from rerank.storage.files import write_text
from rerank.storage.strict_json import as_json

GROWN = 2_000  # lists that trees are grown on, which take more time
PENALTY = 10.0  # of maxent: with some ten columns and hundreds of lists any from 1 to 100 gives the same choices
MOST = 10_000  # lists that a fold learns from, drawn from the others: weights of some ten columns need no more
SHARPNESS = np.array([0.25, 0.5, 1.0, 2.0, 4.0])  # of learned votes: the one that is best on what a fold learns from
DRAWS = 4  # samples of k candidates of each list, for the curve
ANY = "any (oracle, pass@n)"
LEARNED = "learned from "  # what scores of candidates are learned from


@kernel
def expect_best(first: np.ndarray, gain: np.ndarray, k: int, expected: np.ndarray) -> None:
    """The mean of the highest gain over all ways to take k candidates of a list, or all if there are fewer.

    gain: float64 [n], falling within lists; expected: float64 [L]. With gains of 0 and 1 it is pass@k without bias
    (Chen et al. 2021, arXiv:2107.03374).
    """
    for i in range(expected.shape[0]):
        n, total = first[i + 1] - first[i], 0.0
        few = min(k, n)
        weight = few / n  # how probable it is that the r-th from below is the best of those taken
        for r in range(n, few - 1, -1):
            total += weight * gain[first[i] + n - r]
            weight *= (r - few) / max(r - 1, 1)
        expected[i] = total


def gathered(
    lists: "Sequence[ListFile] | list[Any]",
    metric: str | Mapping[str, Any] | None,
    use: Sequence[str] | None,
    folds: int,
    seed: int,
) -> "Gathered":
    """What is known of lists: see ``table_of_votes``."""
    file = lists[0] if lists and isinstance(lists[0], ListFile) else None
    rule = None if file is None else file.answer
    settings = {"name": "vote", "task": "ranking", "features": {"set": "base"}, "data": {"answer": rule}}
    recipe = read_settings(settings if metric is None else settings | {"metric": named(metric)})
    assert isinstance(recipe, ListRecipe)
    count = SkipCount("error" if file is None else file.on_bad_list)
    first, rows = _with_first(_rows(lists), count, None if file is None else file.path)
    shown = first.named()
    content = content_of(recipe, columns=ScoreColumns(shown.names, shown.names[shown.column]))
    names = [name for name in content.held if name in shown.names and not (first.unscored and name == content.held[0])]
    if use is not None:
        if unknown := set(use) - set(names):
            raise RecipeError(
                f"found {min(unknown)!r}; the lists have {', '.join(names) or 'no numbers'}", key="columns"
            )
        names = [name for name in names if name in use]
    if isinstance(content.metric, OrderMetric):
        message = f"{content.metric.primary} measures the order of all candidates; votes choose one: expected gain"
        raise RecipeError(message, key="metric")
    sizes, parts = [0], list[tuple[np.ndarray, ...]]()
    references = list[np.ndarray]()
    items = chain.from_iterable(partly_flat(content, item) for item in rows)
    pairs: Iterator[Pair | FlatPair] = usable(items, partial(pair_of, content), count)
    for found in pairs:
        if isinstance(found, Pair):
            nbest, own = found.nbest.named(), [len(found.nbest)]
            of_list, stats = content.stats(*found)
            reference = of_list[None]
        else:
            nbest, reference, stats = found.held, found.reference, found.stats
            own = np.diff(found.block.lists).tolist()
        if not len(nbest):
            continue
        values = nbest.scores[:, [nbest.names.index(name) for name in names]]
        parts.append((numbered(nbest), values.T, stats))
        references += list(reference)
        sizes += own
    count.warn()
    if not parts:
        raise count.nothing("" if file is None else file.path)
    if len(references) < folds:
        raise DataError(f"found {len(references)} lists with candidates; expected {folds} or more, one for each fold")
    answers, columns, stats = zip(*parts, strict=True)
    reference, statistics, starts = np.stack(references), np.concatenate(stats), np.cumsum(sizes)
    gain = content.metric.gain(statistics, np.repeat(reference, np.diff(starts), axis=0))
    fold = np.random.default_rng(seed).permutation(len(references)) % folds
    every = Samples(starts, np.concatenate(answers), np.concatenate(columns, axis=1), gain, fold)
    return Gathered(every, tuple(names), content.metric, statistics, reference)


def _rows(lists: Sequence[Any]) -> Iterator[Item]:
    """The lists as readers give them."""
    if lists and isinstance(lists[0], ListFile):
        return chain.from_iterable(file.blocks() for file in lists)
    return lists_given(lists, texts=True, gains=True)


def _with_first(rows: Iterable[Item], count: SkipCount, path: str | None) -> tuple[TextList, Iterator[Item]]:
    """The first list with candidates and all lists, which are read once.

    Raises
    ------
    DataError: there is none, or it is one of trees.
    """
    ahead, rest = list[Item](), iter(rows)
    for item in rest:
        ahead.append(item)
        first = next(iter(item)) if isinstance(item, ListBlock) else item
        if isinstance(first, TextList) and len(first):
            return first, chain(ahead, rest)
        if isinstance(first, NBestList) and len(first):
            raise DataError("found a list of trees; votes are for texts, `rerank run` is for parses", path=first.path)
    for item in ahead:
        if isinstance(item, SkippedList):
            count.bad(item)
    raise count.nothing(path or "")


class Gathered(NamedTuple):
    """Lists, the names of their columns, and the statistics of their candidates and references by the metric."""

    samples: Samples
    names: tuple[str, ...]
    metric: Metric
    stats: np.ndarray
    reference: np.ndarray


def learned(samples: Samples, seed: int) -> dict[str, Choose]:
    """Ways to choose that are learned, each list by what the lists of other folds teach."""
    folds = range(int(samples.fold.max()) + 1)
    draws = np.random.default_rng(seed)
    rest = [draws.permutation(np.flatnonzero(samples.fold != fold))[:MOST] for fold in folds]
    parts = [samples.lists(np.sort(lists)) for lists in rest]
    answered, ways = samples.answers.max(initial=-1) >= 0, dict[str, Choose]()
    if len(samples.columns):
        linear = [_weights(part, agree=False) for part in parts]
        ways[LEARNED + "columns"] = lambda lists: best_by(lists, _scored(lists, linear, agree=False))
    if answered:
        both = [_weights(part, agree=True) for part in parts]
        sharp = [_sharpness(part, w) for part, w in zip(parts, both, strict=True)]

        def by_vote(lists: Samples) -> np.ndarray:
            """The vote of candidates by their scores."""
            raised = _scored(lists, both, agree=True) * np.repeat(np.array(sharp)[lists.fold], np.diff(lists.first))
            return voted(lists, softmax(lists, raised, scaled=False))

        ways[LEARNED + "columns and agreement"] = lambda lists: best_by(lists, _scored(lists, both, agree=True))
        ways["learned vote"] = by_vote
    enough = min(map(len, rest)) >= 2  # one to grow trees on, one to choose their number
    if enough and find_spec("lightgbm") is not None and (answered or len(samples.columns)):
        few = [samples.lists(np.sort(lists[:GROWN])) for lists in rest]
        forests = [_forest(part, bool(answered), seed) for part in few]

        def by_trees(lists: Samples) -> np.ndarray:
            """The candidate that trees find best."""
            total, held = np.empty(lists.gain.size), np.repeat(lists.fold, np.diff(lists.first))
            for fold, forest in enumerate(forests):
                own = lists.lists(np.flatnonzero(lists.fold == fold))
                total[held == fold] = scores(own.corpus(agree=bool(answered)), forest)
            return best_by(lists, total)

        ways["LambdaMART"] = by_trees
    return ways


def _weights(samples: Samples, *, agree: bool) -> np.ndarray:
    """float64 [D]: those of the conditional log-linear model."""
    corpus, learner = samples.corpus(agree=agree), Maxent(l2=PENALTY, base=0.0)
    state = learner.init(corpus.width)
    learner.solve(corpus, oracles(corpus), state, any_ties=True)
    return learner.last(state).w


def _scored(samples: Samples, weights: Sequence[np.ndarray], *, agree: bool) -> np.ndarray:
    """float64 [n]: the scores of candidates, by the weights of the folds that their lists are held out in."""
    by_list = np.array(weights)[samples.fold].T
    return np.asarray((samples.features(agree=agree) * np.repeat(by_list, np.diff(samples.first), axis=1)).sum(axis=0))


def _sharpness(samples: Samples, weights: np.ndarray) -> float:
    """How sharp the vote of the candidates' scores is to be: as is best on these lists."""
    found = _scored(samples._replace(fold=np.zeros_like(samples.fold)), [weights], agree=True)
    reached = [samples.gain[voted(samples, softmax(samples, a * found, scaled=False))].mean() for a in SHARPNESS]
    return float(SHARPNESS[int(np.argmax(reached))])


def _forest(samples: Samples, agree: bool, seed: int) -> Weights:
    """Trees, as many as are best on a tenth of the lists."""
    corpus = samples.corpus(agree=agree)
    count = corpus.list_count
    last = count - max(1, count // 10)
    return LambdaMart(base=0.0).grown(corpus.slice(0, last), corpus.slice(last, count), seed).weights["last"]


class VoteCurve(NamedTuple):
    """Scores by how many candidates of every list there are, for every way to choose."""

    candidates: tuple[int, ...]
    scores: Mapping[str, tuple[float, ...]]


@dataclass(frozen=True)
class VoteTable:
    """What ways to choose from lists are worth.

    rows: by name, the score, its interval, and the test against majority vote, or the first candidate where there are
    no answers (None for that itself and for what cannot be chosen). curve: by the number of candidates.
    """

    metric: Metric
    lists: int
    candidates: int
    folds: int
    rows: Mapping[str, tuple[float, tuple[float, float] | None, Significance | None]]
    curve: VoteCurve | None = None

    def as_data(self) -> dict[str, Any]:
        """The table as JSON."""
        rows = [
            {"name": name, "score": score, "interval": interval, "difference": test and test.difference,
             "p": test and test.p}
            for name, (score, interval, test) in self.rows.items()
        ]  # fmt: skip
        curve = {"curve": self.curve._asdict()} if self.curve is not None else {}
        counts = {"lists": self.lists, "candidates": self.candidates, "folds": self.folds}
        return {"metric": self.metric.signature, **counts, "rows": rows, **curve}

    def table(self) -> TextTable:
        """The table, and what is tested."""
        reference = MAJORITY if MAJORITY in self.rows else FIRST
        lines = []
        for name, (score, interval, test) in self.rows.items():
            line = {"chosen by": name, self.metric.primary: self.metric.text(score)}
            line["95 % interval"] = "" if interval is None else " to ".join(map(self.metric.text, interval))
            line[f"less {reference}"] = "" if test is None else self.metric.signed(test.difference)
            lines.append(line | {"p": "" if test is None else f"{test.p:.2g}"})
        note = f"Learned ways are of {self.folds} folds: each list is chosen from by what the others teach."
        return TextTable.of(f"{self.lists:,} lists, {self.candidates:,} candidates", lines, note=note)

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
    if isinstance(use, str):
        use = [use]
    if isinstance(lists, ListFile):
        lists = [lists]
    files = isinstance(lists, list) and lists and all(isinstance(one, ListFile) for one in lists)
    found = gathered(lists if files else list(lists_from(lists, columns)), metric, use, folds, seed)
    how: dict[str, Any] = {"samples": samples, "seed": seed}
    every = found.samples
    ways = systems(every, found.names) | learned(every, seed)
    chosen = {name: found.stats[way(every)] for name, way in ways.items()}
    against, rows = chosen.get(MAJORITY, chosen[FIRST]), dict[str, Any]()
    sign = -1.0 if found.metric.lower_is_better else 1.0
    oracle = found.stats[best_by(every, every.gain)]
    rows[ANY] = _score(found, oracle), None, None
    for name, picked in chosen.items():
        interval = score_interval(found.metric, picked, found.reference, **how)
        tested = picked is not against
        test = compare(found.metric, picked, against, found.reference, **how) if tested else None
        rows[name] = _score(found, picked), interval, test
    ordered = dict(sorted(rows.items(), key=lambda item: -sign * item[1][0]))
    shown = curve_of(found, ways, seed) if curve else None
    return VoteTable(found.metric, len(every.first) - 1, int(every.first[-1]), folds, ordered, shown)


def _score(found: Gathered, picked: np.ndarray) -> float:
    """The score of what is chosen of all lists."""
    return float(found.metric.scores(picked.sum(axis=0), found.reference.sum(axis=0)))


def curve_of(found: Gathered, ways: Mapping[str, Choose], seed: int) -> VoteCurve:
    """How the ways do with k = 1, 2, 4, ... candidates of every list, drawn without replacement, in a random order."""
    every, rng = found.samples, np.random.default_rng(seed)
    sizes = np.diff(every.first)
    numbers = np.repeat(np.arange(sizes.size), sizes)
    rank = np.arange(every.gain.size) - np.repeat(every.first[:-1], sizes)
    longest = int(sizes.max())
    counts = [*(1 << power for power in range(longest.bit_length()) if 1 << power < longest), longest]
    every_way: dict[str, Choose] = {**ways, ANY: lambda lists: best_by(lists, lists.gain)}
    reached = {name: np.zeros(len(counts)) for name in every_way}
    for place, k in enumerate(counts):
        kept = np.minimum(sizes, k)
        for _ in range(DRAWS):
            order = np.lexsort((rng.random(every.gain.size), numbers))
            places = order[rank < np.repeat(kept, sizes)]
            drawn = every.some(places, np.concatenate([[0], np.cumsum(kept)]))
            for name, way in every_way.items():
                reached[name][place] += found.metric.percent * _score(found, found.stats[places[way(drawn)]]) / DRAWS
    if isinstance(found.metric, Gain):
        best, expected = every.gain[np.lexsort((-every.gain, numbers))], np.empty(sizes.size)
        for place, k in enumerate(counts):
            expect_best(every.first, best, k, expected)
            reached[ANY][place] = expected.mean()
    return VoteCurve(tuple(counts), {name: tuple(values.tolist()) for name, values in reached.items()})


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
