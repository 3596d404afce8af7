"""Best of n samples in one table: what needs no training, beside majority vote, and what learning adds to it.

Without training: the first sample, the best by each column, the vote of all samples for their answers
(self-consistency; Wang et al. 2023), and votes weighted by each column. Learned, by cross-validation over lists: the
columns, what they say of answers (means of columns, and how many gave them), and what else is registered to choose
(kind ``vote``).
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from rerank.base.encoding import amount, decoded
from rerank.base.errors import DataError, RecipeError, RunError
from rerank.base.registry import Registry
from rerank.data.corpus import Corpus, offsets, ranges_of, remarks_on_all
from rerank.extraction.content import Content
from rerank.extraction.kinds import content_of
from rerank.extraction.list_checks import doubts_of_lists
from rerank.features.scores import groups, means_of_answers, votes
from rerank.learn.folds import best_trial, trials
from rerank.learn.rules.maxent import Maxent
from rerank.learn.scoring import Weights, scores
from rerank.metrics.gain import Gain
from rerank.metrics.metric import Metric, best_of_lists, measured_corpus, oracles, owners
from rerank.readers.detection import ACCOUNT_LISTS as FIRST_LISTS
from rerank.readers.detection import Account, account_entry, log_account
from rerank.readers.lists import Lists, answer_numbers, first_with_candidates
from rerank.readers.memory.reading import ListFile, lists_from, memory_blocks
from rerank.readers.reader import ScoreColumns, SkipCount, count_usable, filter_usable
from rerank.recipes.loading import measuring_recipe
from rerank.runs.compared import Compared, RowScore, doubts_of_base
from rerank.runs.report.table import TextTable, plain_text
from rerank.storage.documents import as_json
from rerank.storage.files import write_text

FIRST, MAJORITY = "first", "majority vote"
MAX_LISTS = 10_000  # lists that weights are learned from, drawn from all: some ten columns need no more
PENALTY_LISTS = 2_000  # lists, of those that weights are learned from, by which the penalty is chosen
PENALTY = 10.0  # of maxent, where none is chosen: with some ten columns and hundreds of lists 1 to 100 choose alike

View = Callable[["ListSource"], "ListSource"]  # the same lists with the columns that one learns from
System = Callable[["ListSource"], np.ndarray]  # int64 [L]: the candidate that is chosen of every list
PLUGIN_LISTS = 2_000  # lists that what is registered learns from, which takes more time
LISTS_AT_ONCE = 2_000  # that a way chooses from: what it computes of them is as large as they are
DRAWS = 4  # samples of k candidates of each list, for the curve
VERDICT_ORACLE, GAIN_ORACLE = "any (oracle, pass@n)", "best possible (oracle)"  # of gains of 0 and 1, and of others
log = logging.getLogger("rerank")
REMARK_LISTS = 100  # lists that tell which numbers most candidates have
MAX_REMARKS = 3  # numbers that are named
WORDS = "words"  # their number, which the scores of recognisers need beside them


class ListSource(NamedTuple):
    """Lists to choose from.

    corpus: without features; its base scores are 0 where there are none. answers: int32 [N], equal for equal ones of a
    list, -1 for none; names: those of the columns (float64 [K, N]); fold: int64 [L], in which part of the
    cross-validation a list is held out; base: the name of the base score, None if there is none; doubt: the reasons
    against claims.
    """

    corpus: Corpus
    metric: Metric
    answers: np.ndarray
    names: tuple[str, ...]
    columns: np.ndarray
    fold: np.ndarray
    base: str | None = None
    doubt: str = ""
    account: Account | None = None

    def lists(self, numbers: np.ndarray) -> "ListSource":
        """The lists ``numbers`` (int64 [L'])."""
        corpus, indices = self.corpus.only(numbers), ranges_of(self.corpus.lists, numbers)
        answers, columns = self.answers[indices], self.columns[:, indices]
        return self._replace(corpus=corpus, answers=answers, columns=columns, fold=self.fold[numbers])

    def take(self, indices: np.ndarray, lists: np.ndarray) -> "ListSource":
        """The candidates ``indices`` in ``lists`` (int64 [L' + 1]), without what these are measured against."""
        corpus, ones = self.corpus, np.ones(lists.size - 1)
        rows = {key: getattr(corpus, key)[indices] for key in ("base", "gain", "stats")}
        rows |= {"rows": np.zeros(indices.size + 1), "reference": ones[:, None], "weight": ones}
        corpus = replace(corpus, lists=lists, cuts=corpus.cuts[:0], trusted=True, **rows)
        return self._replace(corpus=corpus, answers=self.answers[indices], columns=self.columns[:, indices])

    @property
    def has_answers(self) -> bool:
        """True if some candidate has an answer."""
        return bool(self.answers.max(initial=-1) >= 0)

    @property
    def heading(self) -> str:
        """The heading of scores: "right" where the gain of every candidate is a verdict, else the measure."""
        verdicts = isinstance(self.metric, Gain) and np.isin(self.corpus.gain, (0, 1)).all()
        return "right" if verdicts else self.metric.heading

    def percent_of(self, rows: np.ndarray) -> float:
        """The score of what is chosen of all lists (float64 [L, K]), in the unit that figures show."""
        return self.metric.percent * self.metric.score(rows, self.corpus.reference)

    def of_answers(self) -> "ListSource":
        """The lists with columns of what is said of answers: the means of columns over the samples of an answer, and
        the logarithm of how many these are."""
        lists, answers = self.corpus.lists, self.answers
        columns = [means_of_answers(lists, answers, self.columns.T).T, votes(lists, answers)[np.newaxis]]
        return self._replace(columns=np.concatenate(columns))

    def features(self) -> np.ndarray:
        """float64 [D, N]: the columns less their lists' means."""
        columns, lists, sizes = np.array(self.columns), self.corpus.lists, np.diff(self.corpus.lists)
        if columns.size:
            columns -= np.repeat(np.add.reduceat(columns, lists[:-1], axis=1) / sizes, sizes, axis=1)
        return columns

    def learnable(self) -> Corpus:
        """The lists with their ``features`` as dense columns, and without base scores, measured by their gain."""
        values, corpus = self.features().T.astype(np.float32), self.corpus
        N, D = values.shape
        columns, ones = np.tile(np.arange(D, dtype=np.int32), N), np.ones(corpus.list_count)
        return replace(
            corpus, rows=np.arange(N + 1) * D, columns=columns, values=values.ravel(), base=np.zeros(N),
            stats=corpus.gain[:, None], reference=ones[:, None], width=D, free=D,
        )  # fmt: skip


def best_by(samples: ListSource, values: np.ndarray) -> np.ndarray:
    """int64 [L]: the candidate with the highest value (float64 [N]), of equals the first."""
    return best_of_lists(samples.corpus.lists, values, values)


def vote_winners(samples: ListSource, weight: np.ndarray) -> np.ndarray:
    """int64 [L]: of every list the heaviest candidate of the answer with the most weight (float64 [N]).

    Without an answer a candidate votes for none; if none has one, the heaviest is chosen; the first of equals.
    """
    lists, totals = samples.corpus.lists, np.full(weight.size, -np.inf)
    indices, group = groups(lists, samples.answers)
    totals[indices] = np.bincount(group, weight[indices])[group]
    mask = samples.answers == np.repeat(samples.answers[best_by(samples, totals)], np.diff(lists))
    return best_by(samples, np.where(mask, weight, -np.inf))


def softmax(samples: ListSource, values: np.ndarray) -> np.ndarray:
    """float64 [N]: e^value over the sum of those of the list, for values in units of their deviation in the list."""
    sizes, starts = np.diff(samples.corpus.lists), samples.corpus.lists[:-1]
    shifts = values - np.repeat(np.maximum.reduceat(values, starts), sizes)
    mean = np.add.reduceat(shifts, starts) / sizes
    spread = np.sqrt(np.add.reduceat((shifts - np.repeat(mean, sizes)) ** 2, starts) / sizes)
    powers = np.exp(shifts / np.repeat(np.where(spread > 0, spread, 1.0), sizes))
    return np.asarray(powers / np.repeat(np.add.reduceat(powers, starts), sizes))


def maxent_weights(samples: ListSource, *, loss: Literal["log", "listnet"] = "log", folds: bool = False) -> np.ndarray:
    """float64 [D]: those of the conditional log-linear model of ``features``; with the penalty that is best on
    ``folds``, or PENALTY."""
    corpus, learner = samples.learnable(), Maxent(l2=PENALTY, base=0.0, loss=loss)
    if folds:
        sample = corpus.take(np.arange(min(PENALTY_LISTS, corpus.list_count)))
        attempts = trials(replace(learner, l2=None), sample, Gain(), oracles, any_ties=True)
        learner = replace(learner, l2=best_trial(attempts["all"]).l2)
    state = learner.init(corpus.width)
    learner.solve(corpus, oracles(corpus), state, any_ties=True)
    return learner.last(state).w


def fold_scores(samples: ListSource, weights: Sequence[np.ndarray]) -> np.ndarray:
    """float64 [N]: the scores of candidates, by the weights of the folds that their lists are held out in."""
    by_candidate = np.repeat(np.array(weights)[samples.fold].T, np.diff(samples.corpus.lists), axis=1)
    return np.asarray((samples.features() * by_candidate).sum(axis=0))


def baselines(source: ListSource) -> dict[str, System]:
    """Ways to choose, by name, that need no training."""
    ways: dict[str, System] = {FIRST: lambda lists: lists.corpus.lists[:-1]}
    if source.has_answers:
        ways[MAJORITY] = lambda lists: vote_winners(lists, np.ones(lists.answers.size))
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
    names = [name for name in content.column_names[base is None :] if name in example.names]
    names += [WORDS] if with_words and content.metric.name == "wer" and WORDS not in names else []
    if unknown := set(use or ()) - set(names):
        raise RecipeError(f"found {min(unknown)!r}; the lists have {', '.join(names) or 'no numbers'}", key="columns")
    names = [name for name in names if use is None or name in use]
    corpus, answers, matrix, sample = _candidates(content, rows, count, base, names, path)
    if (count_of_lists := corpus.list_count) < folds:
        message = f"found {amount(count_of_lists, 'list')} with candidates; expected {folds} or more, one for each fold"
        fewer = f", or fewer folds: --folds {count_of_lists} (folds={count_of_lists})" if count_of_lists > 1 else ""
        raise DataError(message + fewer)
    if data["answer"] is not None and answers.max(initial=-1) < 0:
        log.warning("no candidate has an answer by the rule %s, so there is no vote: see --answer", data["answer"])
    for line in (*remarks_on_all(map("the score column {!r}".format, names), matrix, corpus.lists), *_remarks(sample)):
        log.warning("%s", line)
    doubts = doubts_of_lists(sample, content.metric, reader.get("roles")) + doubts_of_base(base, reader, [corpus])
    log_account(account := Account.of("", sample, metric=content.metric))
    fold = np.random.default_rng(seed).permutation(corpus.list_count) % folds
    about = base, " ".join(doubts), account
    return ListSource(corpus, content.metric, answers, tuple(names), matrix, fold, *about)


def _candidates(
    content: Content[Any], lists: Iterable[Lists], count: SkipCount, base: str | None, names: Sequence[str], path: str
) -> tuple[Corpus, np.ndarray, np.ndarray, list[Lists]]:
    """The lists that have candidates; answers and columns of these, as ``ListSource`` has them; and the first lists."""
    parts, sample, empty, late = list[tuple[np.ndarray, ...]](), list[Lists](), 0, b""
    for block in content.measure(lists, count):
        nbest, sizes = block.pair.nbest.with_names(), np.diff(block.pair.nbest.first)
        sample, empty = [*sample, *block.pair.nbest.each()][:FIRST_LISTS], empty + int((sizes == 0).sum())
        if not late and nbest.sparse and not any(one.sparse for one in sample):
            late = next(iter(nbest.sparse.names), b"")
        if len(nbest):
            base_scores = nbest.scores[:, nbest.names.index(base)] if base else np.zeros(len(nbest))
            measured = offsets(sizes[sizes > 0]), base_scores, block.stats, block.reference[sizes > 0]
            parts.append((*measured, answer_numbers(nbest), _columns(nbest, names)))
    count.warn()
    if empty:
        log.warning("lists left out of these figures: %d without candidates", empty)
    if late:
        log.warning("%r is no column here: the first %s lack it", decoded(late), amount(len(sample), "list"))
    if not parts:
        raise count.nothing(path)
    corpus = measured_corpus((measured for *measured, _, _ in parts), content.metric)
    answers, matrix = (np.concatenate([part[k] for part in parts], axis=-1) for k in (-2, -1))
    return corpus, answers, matrix, sample


def _remarks(sample: Sequence[Lists]) -> Iterator[str]:
    """A sentence for every number that most candidates of the first lists have, but not all: it is no column."""
    few = sample[:REMARK_LISTS]
    counts, N = Counter(chain.from_iterable(one.sparse.names for one in few if one.sparse)), sum(map(len, few))
    often = [(decoded(name), N - count) for name, count in counts.most_common(MAX_REMARKS) if 2 * count > N]
    for name, lacking in often:
        seen = amount(N, "candidate")
        where = f"{lacking:,} of the first {seen} lack it" if lacking else f"some after the first {seen} lack it"
        message = f"{name!r} is no column here: {where}; the reader's "
        message += f"option dense: [{name}] makes it one, and these candidates bad (--on-bad-list skip leaves them out)"
        yield message


def _columns(nbest: Lists, names: Sequence[str]) -> np.ndarray:
    """float64 [K, N]: the numbers of these names, and how many WORDS candidates have where they do not say so."""
    columns = nbest.scores[:, [nbest.names.index(name) for name in names if name in nbest.names]].T
    return columns if len(columns) == len(names) else np.vstack([columns, [len(text.split()) for text in nbest.texts]])


def learned_systems(samples: ListSource, seed: int) -> dict[str, System]:
    """Ways to choose that are learned, each list by what the lists of other folds teach."""
    draws, views, ways = np.random.default_rng(seed), dict[str, View](), dict[str, System]()
    folds = range(int(samples.fold.max()) + 1)
    training = [draws.permutation(np.flatnonzero(samples.fold != fold))[:MAX_LISTS] for fold in folds]
    if len(samples.columns):
        views["learned from columns"] = lambda lists: lists
    if samples.has_answers:
        views["learned from answers"] = ListSource.of_answers
    for name, view in views.items():
        linear = [maxent_weights(view(samples.lists(np.sort(lists))), folds=True) for lists in training]
        ways[name] = lambda lists, of=view, by=linear: best_by(lists, fold_scores(of(lists), by))  # type: ignore[misc]
    enough = min(map(len, training)) >= 2  # one to learn from, one to choose by
    for name, learn in Registry[Callable[[Corpus, int], Weights | None]]("vote") if enough and ways else ():
        *_, view = views.values()  # what has most columns
        corpora = (view(samples.lists(np.sort(lists[:PLUGIN_LISTS]))).learnable() for lists in training)
        try:
            predictors = [weights for part in corpora if (weights := learn(part, seed)) is not None]
        except RunError as error:
            log.warning("no row of %s: %s", name, error)
            continue
        if predictors:
            ways[name] = partial(_choose_by_fold, predictors, view)
    return ways


def _choose_by_fold(predictors: Sequence[Weights], view: View, lists: ListSource) -> np.ndarray:
    """The candidate that is best by the predictor of the fold that a list is held out in."""
    total, folds = np.empty(lists.answers.size), np.repeat(lists.fold, np.diff(lists.corpus.lists))
    for fold, weights in enumerate(predictors):
        part = view(lists.lists(np.flatnonzero(lists.fold == fold)))
        total[folds == fold] = scores(part.learnable(), weights)
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
        source, corpus = self.source, self.source.corpus
        counts = {"lists": corpus.list_count, "candidates": corpus.candidate_count, "doubt": self.results.doubt}
        rows = {"rows": self.results.as_data(), **account_entry(source.account), "folds": self.folds}
        curve = {} if self.curve is None else {"curve": self.curve}
        return {"metric": source.metric.signature, **counts, **rows, **curve}

    def table(self, note: str) -> TextTable:
        """The table, and a note."""
        corpus = self.source.corpus
        caption = f"{amount(corpus.list_count, 'list')}, {amount(corpus.candidate_count, 'candidate')}"
        return self.results.table(caption, note, heading=self.source.heading)

    def tables(self) -> tuple[TextTable, ...]:
        """All tables."""
        how = f"Learned ways are cross-validated: choices in each of {self.folds} folds are learned from the rest."
        return (self.table(how),)

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
    ways: dict[str, System] = {oracle: lambda lists: best_by(lists, lists.corpus.gain)}
    ways |= baselines(source) | learned_systems(source, seed)
    measure, reference, L = source.metric, source.corpus.reference, source.corpus.list_count
    parts = np.array_split(np.arange(L), -(-L // LISTS_AT_ONCE))
    rows = {
        name: np.concatenate([part.corpus.stats[way(part)] for part in map(source.lists, parts)])
        for name, way in ways.items()
    }
    rows = dict(sorted(rows.items(), key=lambda item: -measure.sign * measure.score(item[1], reference)))
    how: dict[str, Any] = {"against": MAJORITY if MAJORITY in rows else FIRST, "samples": samples, "seed": seed}
    results = Compared(measure, reference, rows, oracles=(oracle,), **how, doubt=source.doubt)
    return SourceTable(results, source, folds, curve=curve_of(source, ways, seed) if curve else None)


def curve_of(source: ListSource, ways: Mapping[str, System], seed: int) -> dict[str, Any]:
    """The ``scores`` of every way with k = 1, 2, 4, ... ``candidates`` of every list, drawn without replacement.

    The draws of a k are the same for all ways, so that none is above the oracle. With one candidate all ways are the
    mean of all candidates, with all candidates they are the rows of the table.
    """
    rng, lists, stats = np.random.default_rng(seed), source.corpus.lists, source.corpus.stats
    sizes, numbers = np.diff(lists), owners(lists)
    rank = np.arange(numbers.size) - lists[numbers]
    longest = int(sizes.max())
    counts = [*(1 << power for power in range(longest.bit_length()) if 1 << power < longest), longest]
    mean = source.percent_of(np.add.reduceat(stats, lists[:-1]) / sizes[:, None])
    averages = {name: [mean] for name in ways}
    for k in counts[1:]:
        draw_sizes = np.minimum(sizes, k)
        scores: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(DRAWS if k < longest else 1):
            order = np.lexsort((rng.random(numbers.size) if k < longest else rank, numbers))  # ties go to the first
            indices = order[rank < np.repeat(draw_sizes, sizes)]
            draw = source.take(indices, offsets(draw_sizes))
            for name, way in ways.items():
                scores[name].append(source.percent_of(stats[indices[way(draw)]]))
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
