"""Best of n samples in one table: what needs no training, beside majority vote, and what learning adds to it.

Without training: the first sample, the best by each column, the vote of all samples for their answers
(self-consistency; Wang et al. 2023), and votes weighted by each column. Learned, by cross-validation over lists: the
columns, what they say of answers (means of columns, and how many gave them), and what else is registered to choose
(kind ``vote``).
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from rerank.base.encoding import amount
from rerank.base.errors import DataError, RecipeError
from rerank.base.registry import Registry
from rerank.data.corpus import Corpus, offsets, remarks_on_all
from rerank.extraction.kinds import content_of
from rerank.features.scores import groups, means_of_answers, votes
from rerank.learn.folds import best_trial, trials
from rerank.learn.rules.maxent import Maxent
from rerank.learn.scoring import Weights, scores
from rerank.metrics.gain import Gain
from rerank.metrics.metric import Metric, best_of_lists, oracles
from rerank.readers.detection import ACCOUNT_LISTS as FIRST_LISTS
from rerank.readers.detection import Account, account_entry, log_account
from rerank.readers.lists import Lists, answer_numbers, first_with_candidates
from rerank.readers.memory.reading import ListFile, lists_from, memory_blocks
from rerank.readers.reader import ScoreColumns, SkipCount, count_usable, filter_usable
from rerank.recipes.loading import measuring_recipe
from rerank.runs.compared import Compared, RowScore, doubts_about
from rerank.runs.report.table import TextTable, plain_text
from rerank.storage.documents import as_json
from rerank.storage.files import write_text

FIRST, MAJORITY = "first", "majority vote"
MAX_LISTS = 10_000  # lists that weights are learned from, drawn from all: some ten columns need no more
PENALTY_LISTS = 2_000  # lists, of those that weights are learned from, by which the penalty is chosen
PENALTY = 10.0  # of maxent, where none is chosen: with some ten columns and hundreds of lists 1 to 100 choose alike

System = Callable[["ListSource"], np.ndarray]  # int64 [L]: the candidate that is chosen of every list
PLUGIN_LISTS = 2_000  # lists that what is registered learns from, which takes more time
LISTS_AT_ONCE = 2_000  # that a way chooses from: what it computes of them is as large as they are
DRAWS = 4  # samples of k candidates of each list, for the curve
VERDICT_ORACLE, GAIN_ORACLE = "any (oracle, pass@n)", "best possible (oracle)"  # of gains of 0 and 1, and of others
log = logging.getLogger("rerank")
WORDS = "words"  # their number, which the scores of recognisers need beside them


class ListSource(NamedTuple):
    """Lists in memory: the candidates of list i are first[i]..first[i + 1] (int64 [L + 1]).

    answers: int32 [n], equal for equal ones of a list, -1 for none; names: those of the columns (float64 [K, n]);
    gain: float64 [n]; fold: int64 [L], in which part of the cross-validation a list is held out; stats, reference: of
    candidates and lists by the metric; base: the name of the base score, None if there is none; scores: its values, or
    zeros (float64 [n]); doubt: the reasons against claims.
    """

    first: np.ndarray
    answers: np.ndarray
    names: tuple[str, ...]
    columns: np.ndarray
    gain: np.ndarray
    fold: np.ndarray
    metric: Metric
    stats: np.ndarray
    reference: np.ndarray
    scores: np.ndarray
    base: str | None = None
    doubt: str = ""
    account: Account | None = None

    def take(self, indices: np.ndarray, first: np.ndarray) -> "ListSource":
        """The candidates ``indices``, in lists that begin at ``first``."""
        by_candidate = {key: getattr(self, key)[indices] for key in ("answers", "gain", "stats", "scores")}
        return self._replace(first=first, columns=self.columns[:, indices], **by_candidate)

    def lists(self, numbers: np.ndarray) -> "ListSource":
        """The lists ``numbers`` (int64 [L'])."""
        sizes = np.diff(self.first)[numbers]
        first = offsets(sizes)
        indices = np.repeat(self.first[numbers] - first[:-1], sizes) + np.arange(first[-1])
        return self.take(indices, first)._replace(fold=self.fold[numbers], reference=self.reference[numbers])

    @property
    def has_answers(self) -> bool:
        """True if some candidate has an answer."""
        return bool(self.answers.max(initial=-1) >= 0)

    @property
    def heading(self) -> str:
        """The heading of scores: "right" where the gain of every candidate is a verdict, else the measure."""
        return "right" if isinstance(self.metric, Gain) and np.isin(self.gain, (0, 1)).all() else self.metric.primary

    def percent_of(self, rows: np.ndarray) -> float:
        """The score of what is chosen of all lists (float64 [L, K]), in the unit that figures show."""
        return self.metric.percent * self.metric.score(rows, self.reference)

    def features(self, *, agree: bool) -> np.ndarray:
        """float64 [D, n]: the columns or, if asked for, their means over the samples of an answer, and the logarithm of
        how many these are; less their lists' means."""
        columns, sizes = np.array(self.columns), np.diff(self.first)
        if agree:
            means = means_of_answers(self.first, self.answers, columns.T).T
            columns = np.concatenate([means, votes(self.first, self.answers)[np.newaxis]])
        if columns.size:
            columns -= np.repeat(np.add.reduceat(columns, self.first[:-1], axis=1) / sizes, sizes, axis=1)
        return columns

    def corpus(self, *, agree: bool) -> Corpus:
        """The lists with their ``features`` as dense columns."""
        values = self.features(agree=agree).T.astype(np.float32)
        n, D = values.shape
        columns = np.tile(np.arange(D, dtype=np.int32), n)
        L, nothing = len(self.first) - 1, np.zeros(n)
        rows, stats, reference = np.arange(n + 1) * D, self.gain[:, None], np.ones((L, 1))
        return Corpus(
            self.first, rows, columns, values.ravel(), nothing, self.gain, stats, reference, np.ones(L), D, free=D
        )


def best_by(samples: ListSource, values: np.ndarray) -> np.ndarray:
    """int64 [L]: the candidate with the highest value (float64 [n]), of equals the first."""
    return best_of_lists(samples.first, values, values)


def vote_winners(samples: ListSource, weight: np.ndarray) -> np.ndarray:
    """int64 [L]: of every list the heaviest candidate of the answer with the most weight (float64 [n]).

    Without an answer a candidate votes for none; if none has one, the heaviest is chosen; the first of equals.
    """
    (indices, group), totals = groups(samples.first, samples.answers), np.full(weight.size, -np.inf)
    totals[indices] = np.bincount(group, weight[indices])[group]
    mask = samples.answers == np.repeat(samples.answers[best_by(samples, totals)], np.diff(samples.first))
    return best_by(samples, np.where(mask, weight, -np.inf))


def softmax(samples: ListSource, values: np.ndarray) -> np.ndarray:
    """float64 [n]: e^value over the sum of those of the list, for values in units of their deviation in the list."""
    sizes, starts = np.diff(samples.first), samples.first[:-1]
    shifts = values - np.repeat(np.maximum.reduceat(values, starts), sizes)
    mean = np.add.reduceat(shifts, starts) / sizes
    spread = np.sqrt(np.add.reduceat((shifts - np.repeat(mean, sizes)) ** 2, starts) / sizes)
    powers = np.exp(shifts / np.repeat(np.where(spread > 0, spread, 1.0), sizes))
    return np.asarray(powers / np.repeat(np.add.reduceat(powers, starts), sizes))


def maxent_weights(
    samples: ListSource, *, agree: bool, loss: Literal["log", "listnet"] = "log", folds: bool = False
) -> np.ndarray:
    """float64 [D]: those of the conditional log-linear model of ``features``; with the penalty that is best on
    ``folds``, or PENALTY."""
    corpus, learner = samples.corpus(agree=agree), Maxent(l2=PENALTY, base=0.0, loss=loss)
    if folds:
        sample = corpus.take(np.arange(min(PENALTY_LISTS, corpus.list_count)))
        attempts = trials(replace(learner, l2=None), sample, Gain(), oracles, any_ties=True)
        learner = replace(learner, l2=best_trial(attempts["all"]).l2)
    state = learner.init(corpus.width)
    learner.solve(corpus, oracles(corpus), state, any_ties=True)
    return learner.last(state).w


def fold_scores(samples: ListSource, weights: Sequence[np.ndarray], *, agree: bool) -> np.ndarray:
    """float64 [n]: the scores of candidates, by the weights of the folds that their lists are held out in."""
    by_list = np.array(weights)[samples.fold].T
    return np.asarray((samples.features(agree=agree) * np.repeat(by_list, np.diff(samples.first), axis=1)).sum(axis=0))


def baselines(source: ListSource) -> dict[str, System]:
    """Ways to choose, by name, that need no training."""
    ways: dict[str, System] = {FIRST: lambda lists: lists.first[:-1]}
    if source.has_answers:
        ways[MAJORITY] = lambda lists: vote_winners(lists, np.ones(lists.gain.size))
    for k, name in enumerate(source.names):
        ways[f"best {name}"] = lambda lists, k=k: best_by(lists, lists.columns[k])  # type: ignore[misc]
        if source.has_answers:
            ways[f"vote by {name}"] = lambda lists, k=k: vote_winners(lists, softmax(lists, lists.columns[k]))  # type: ignore[misc]
    return ways


def load_source(
    lists: Any,
    metric: str | Mapping[str, Any] | None,
    use: str | Sequence[str] | None,
    folds: int,
    seed: int,
    columns: Mapping[str, Any] | None = None,
    *,
    with_words: bool = False,
) -> ListSource:
    """The data of ``lists``, all of them in memory; the parameters are those of ``runs.vote.table_of_votes``;
    with_words: the WORDS of transcripts are a column too."""
    use = [use] if isinstance(use, str) else use
    several = isinstance(lists, list) and lists and all(isinstance(one, ListFile) for one in lists)
    sources = lists if several else [lists_from(lists, columns or {})]
    file = sources[0]
    path, reader = getattr(file, "path", ""), dict(file.settings) if isinstance(file, ListFile) else {}
    data = {"answer": getattr(file, "answer", None)} | ({"reader": reader} if reader else {})
    recipe, count = measuring_recipe("ranking", metric, data), SkipCount(getattr(file, "on_bad_list", "error"))
    blocks = (memory_blocks(one, texts=True, gains=True) for one in sources)
    first, rows = first_with_candidates(chain.from_iterable(blocks))
    if first is None:
        list(filter_usable(rows, count_usable, count))
        raise count.nothing(path)
    if first.of_trees:
        raise DataError("found a list of trees; expected texts; `rerank run` is for parses", path=first.path)
    example = first.with_names()
    score_columns = ScoreColumns(example.names, example.names[example.column])
    content = content_of(recipe, columns=score_columns, keeps_texts=False)
    base = None if first.unscored else content.column_names[0]
    names = [
        name
        for name in content.column_names
        if name in example.names and (base is not None or name != content.column_names[0])
    ]
    names += [WORDS] if with_words and content.metric.name == "wer" and WORDS not in names else []
    if unknown := set(use or ()) - set(names):
        raise RecipeError(f"found {min(unknown)!r}; the lists have {', '.join(names) or 'no numbers'}", key="columns")
    names = [name for name in names if use is None or name in use]
    parts, sample, empty = list[tuple[np.ndarray, ...]](), list[Lists](), 0
    for block in content.measure(rows, count):
        nbest, sizes = block.rows.with_names(), np.diff(block.lists.first)
        sample, empty = [*sample, *block.lists.each()][:FIRST_LISTS], empty + int((sizes == 0).sum())
        if len(nbest):
            base_scores = nbest.scores[:, nbest.names.index(base)] if base else np.zeros(len(nbest))
            arrays = answer_numbers(nbest), base_scores, block.stats, block.reference[sizes > 0], _columns(nbest, names)
            parts.append((sizes[sizes > 0], *arrays))
    count.warn()
    if empty:
        log.warning("lists left out of these figures: %d without candidates", empty)
    if not parts:
        raise count.nothing(path)
    *others, values = zip(*parts, strict=True)
    sizes, answers, scores, stats, reference = map(np.concatenate, others)
    if sizes.size < folds:
        message = f"found {amount(sizes.size, 'list')} with candidates; expected {folds} or more, one for each fold"
        fewer = f", or fewer folds: --folds {sizes.size} (folds={sizes.size})" if sizes.size > 1 else ""
        raise DataError(message + fewer)
    if data["answer"] is not None and answers.max(initial=-1) < 0:
        log.warning("no candidate has an answer by the rule %s, so there is no vote: see --answer", data["answer"])
    starts, matrix = offsets(sizes), np.concatenate(values, axis=1)
    del parts, others, values  # as much again as what is made of them
    gain = content.metric.gain(stats, np.repeat(reference, sizes, axis=0))
    for line in remarks_on_all(map("the score column {!r}".format, names), matrix, starts):
        log.warning("%s", line)
    doubts = doubts_about(sample, content.metric, reader, base, starts, gain, scores)
    log_account(account := Account.of("", sample, measure=content.metric.words))
    return ListSource(
        starts, answers, tuple(names), matrix, gain, np.random.default_rng(seed).permutation(sizes.size) % folds,
        content.metric, stats, reference, scores, base, " ".join(doubts), account,
    )  # fmt: skip


def _columns(nbest: Lists, names: Sequence[str]) -> np.ndarray:
    """float64 [K, n]: the numbers of these names, and how many WORDS candidates have where they do not say so."""
    columns = nbest.scores[:, [nbest.names.index(name) for name in names if name in nbest.names]].T
    return columns if len(columns) == len(names) else np.vstack([columns, [len(text.split()) for text in nbest.texts]])


def learned_systems(samples: ListSource, seed: int) -> dict[str, System]:
    """Ways to choose that are learned, each list by what the lists of other folds teach."""
    draws, ways = np.random.default_rng(seed), dict[str, System]()
    folds = range(int(samples.fold.max()) + 1)
    training = [draws.permutation(np.flatnonzero(samples.fold != fold))[:MAX_LISTS] for fold in folds]
    if len(samples.columns):
        linear = [maxent_weights(samples.lists(np.sort(lists)), agree=False, folds=True) for lists in training]
        ways["learned from columns"] = lambda lists: best_by(lists, fold_scores(lists, linear, agree=False))
    if samples.has_answers:
        of_answers = [maxent_weights(samples.lists(np.sort(lists)), agree=True, folds=True) for lists in training]
        ways["learned from answers"] = lambda lists: best_by(lists, fold_scores(lists, of_answers, agree=True))
    enough = min(map(len, training)) >= 2  # one to learn from, one to choose by
    for name, learn in Registry[Callable[[Corpus, int], Weights | None]]("vote") if enough and ways else ():
        corpora = (samples.lists(np.sort(lists[:PLUGIN_LISTS])).corpus(agree=samples.has_answers) for lists in training)
        predictors = [weights for part in corpora if (weights := learn(part, seed)) is not None]
        if predictors:
            ways[name] = partial(_choose_by_fold, predictors, samples.has_answers)
    return ways


def _choose_by_fold(predictors: Sequence[Weights], agree: bool, lists: ListSource) -> np.ndarray:
    """The candidate that is best by the predictor of the fold that a list is held out in."""
    total, folds = np.empty(lists.gain.size), np.repeat(lists.fold, np.diff(lists.first))
    for fold, weights in enumerate(predictors):
        part = lists.lists(np.flatnonzero(lists.fold == fold))
        total[folds == fold] = scores(part.corpus(agree=agree), weights)
    return best_by(lists, total)


@dataclass(frozen=True)
class SourceTable:
    """The value of choices from the lists of a source, see ``Compared``; where they are learned, by so many folds.

    curve: where that was asked for, see ``curve_of``.
    """

    results: Compared
    source: ListSource
    folds: int
    curve: Mapping[str, Any] | None = field(default=None, kw_only=True)

    @property
    def rows(self) -> Mapping[str, RowScore]:
        return self.results.row_scores

    def as_data(self) -> dict[str, Any]:
        """The table as JSON."""
        source = self.source
        counts = {"lists": source.fold.size, "candidates": source.gain.size, "doubt": self.results.doubt}
        rows = {"rows": self.results.as_data(), **account_entry(source.account), "folds": self.folds}
        curve = {} if self.curve is None else {"curve": self.curve}
        return {"metric": source.metric.signature, **counts, **rows, **curve}

    def table(self, note: str = "") -> TextTable:
        """The table, and a note, by default on what is learned."""
        caption = f"{amount(self.source.fold.size, 'list')}, {amount(self.source.gain.size, 'candidate')}"
        usual = f"Learned ways are cross-validated: choices in each of {self.folds} folds are learned from the rest."
        return self.results.table(caption, note or usual, heading=self.source.heading)

    def tables(self) -> tuple[TextTable, ...]:
        """All tables."""
        return (self.table(),)

    def __str__(self) -> str:
        tables = (plain_text(table.rich()) + table.note for table in self.tables())
        return "\n\n".join(filter(None, [self.results.doubt, *tables]))


def check_least(**numbers: tuple[int, int]) -> None:
    """Refuse a number, the first of each pair, that is less than the second."""
    for key, (number, least) in numbers.items():
        if number < least:
            raise RecipeError(f"found {number}; expected {least} or more", key=key)


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
) -> SourceTable:
    """One table of ways to choose from ``lists``, without training and learned, tested against majority vote, or the
    first candidate where there are no answers.

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
    check_least(folds=(folds, 2), samples=(samples, 1))
    source = load_source(lists, metric, use, folds, seed, columns)
    if source.metric.ordered:
        message = f"{source.metric.primary} measures the order of all candidates; votes choose one: expected gain"
        raise RecipeError(message, key="metric")
    oracle = VERDICT_ORACLE if source.heading == "right" else GAIN_ORACLE
    ways: dict[str, System] = {oracle: lambda lists: best_by(lists, lists.gain)}
    ways |= baselines(source) | learned_systems(source, seed)
    parts = np.array_split(np.arange(source.fold.size), -(-source.fold.size // LISTS_AT_ONCE))
    rows = {
        name: np.concatenate([part.stats[way(part)] for part in map(source.lists, parts)]) for name, way in ways.items()
    }
    rows = dict(
        sorted(rows.items(), key=lambda item: -source.metric.sign * source.metric.score(item[1], source.reference))
    )
    against = MAJORITY if MAJORITY in rows else FIRST
    results = Compared(
        source.metric, source.reference, rows, against, (oracle,), samples=samples, seed=seed, doubt=source.doubt
    )
    return SourceTable(results, source, folds, curve=curve_of(source, ways, seed) if curve else None)


def curve_of(source: ListSource, ways: Mapping[str, System], seed: int) -> dict[str, Any]:
    """The ``scores`` of every way with k = 1, 2, 4, ... ``candidates`` of every list, drawn without replacement.

    The draws of a k are the same for all ways, so that none is above the oracle. With one candidate all ways are the
    mean of all candidates, with all candidates they are the rows of the table.
    """
    rng, sizes = np.random.default_rng(seed), np.diff(source.first)
    numbers = np.repeat(np.arange(sizes.size), sizes)
    rank = np.arange(source.gain.size) - np.repeat(source.first[:-1], sizes)
    longest = int(sizes.max())
    counts = [*(1 << power for power in range(longest.bit_length()) if 1 << power < longest), longest]
    mean = source.percent_of(np.add.reduceat(source.stats, source.first[:-1]) / sizes[:, None])
    averages = {name: [mean] for name in ways}
    for k in counts[1:]:
        draw_sizes = np.minimum(sizes, k)
        scores: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(DRAWS if k < longest else 1):
            order = np.lexsort((rng.random(source.gain.size) if k < longest else rank, numbers))  # ties go to the first
            indices = order[rank < np.repeat(draw_sizes, sizes)]
            draw = source.take(indices, offsets(draw_sizes))
            for name, way in ways.items():
                scores[name].append(source.percent_of(source.stats[indices[way(draw)]]))
        for name in ways:
            averages[name].append(sum(scores[name]) / len(scores[name]))
    return {"candidates": counts, "scores": averages}


def write_curve(table: SourceTable, path: Path) -> None:
    """Write the curve as SVG, of each kind of ways the one that is best in the end, and all of it as JSON beside it;
    ``path`` may end in either."""
    from rerank.runs.report.page import FigureLine, draw, logarithmic

    assert table.curve is not None
    scores, metric = table.curve["scores"], table.source.metric
    sign, names = metric.sign, [name for name in scores if name != FIRST]
    for kind in ("best ", "vote by ", "learned from "):
        group = [name for name in names if name.startswith(kind) and name != GAIN_ORACLE]
        best = max(group, key=lambda name: sign * scores[name][-1], default="")
        names = [name for name in names if name not in group or name == best]
    x, heading = [float(k) for k in table.curve["candidates"]], table.source.heading
    scale = replace(logarithmic(x, margin=0.03), ticks=tuple((k, f"{k:g}") for k in x))
    caption = f"{heading} by the number of candidates that are drawn of each list"
    lines = [FigureLine(x, scores[name], name) for name in names]
    figure = draw(caption, lines, "candidates", heading, x=scale)
    name = path.name.removesuffix(".svg").removesuffix(".json")
    write_text(path.with_name(f"{name}.svg"), figure.standalone())
    write_text(path.with_name(f"{name}.json"), as_json(table.curve, indent=1) + "\n")
