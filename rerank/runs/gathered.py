"""Lists in memory, for commands that compare ways to choose from any of them."""

import logging
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from rerank.base.errors import DataError, RecipeError
from rerank.extraction.content import content_of
from rerank.extraction.list_checks import doubts_of_lists
from rerank.features.dense import said_of_all
from rerank.metrics.base import Metric
from rerank.readers.account import MOST, Account, tell
from rerank.readers.base import SkipCount, counted, usable
from rerank.readers.given.reading import ListFile, blocks_given, lists_from
from rerank.readers.lists import Lists, first_filled, numbered
from rerank.readers.score_columns import ScoreColumns
from rerank.readers.several import says_scores
from rerank.recipes.loading import read_settings
from rerank.recipes.recipe import ListRecipe
from rerank.recipes.settings import named
from rerank.runs.compared import doubt_of_base
from rerank.runs.ways import Samples

log = logging.getLogger("rerank")
WORDS = "words"  # their number, which the scores of recognisers need beside them


class Gathered(NamedTuple):
    """Lists, the names of their columns, and the statistics of their candidates and references by the metric.

    base: the name of the base score, None if there is none, and ``scores``: its values, or zeros (float64 [n]); told:
    whether the user says that it is a score, or a cost.
    """

    samples: Samples
    names: tuple[str, ...]
    metric: Metric
    stats: np.ndarray
    reference: np.ndarray
    base: str | None
    scores: np.ndarray
    told: bool
    amiss: tuple[str, ...] = ()
    account: Account | None = None

    @property
    def doubt(self) -> str:
        """What speaks against claims: ``amiss``, see ``doubts_of_lists``, and ``doubt_of_base``, where there is a base
        score and nobody has said what it is."""
        pieces = [(self.samples.first, self.samples.gain, self.scores)]
        of_base = "" if self.base is None or self.told else doubt_of_base(self.base, pieces)
        return " ".join(filter(None, [*self.amiss, of_base]))

    def lists(self, chosen: np.ndarray) -> "Gathered":
        """The lists ``chosen`` (int64 [L'])."""
        places, _ = self.samples.places(chosen)
        held = {"stats": self.stats[places], "scores": self.scores[places], "reference": self.reference[chosen]}
        return self._replace(samples=self.samples.lists(chosen), **held)

    def score(self, rows: np.ndarray) -> float:
        """The score of what is chosen of all lists (float64 [L, K])."""
        return float(self.metric.scores(rows.sum(axis=0), self.reference.sum(axis=0)))

    def percent_of(self, rows: np.ndarray) -> float:
        """The same in the unit that figures show."""
        return self.metric.percent * self.score(rows)


def gathered(
    lists: Any,
    metric: str | Mapping[str, Any] | None,
    use: str | Sequence[str] | None,
    folds: int,
    seed: int,
    columns: Mapping[str, Any] | None = None,
    *,
    with_words: bool = False,
) -> Gathered:
    """The data of ``lists``, all of them in memory; the parameters are those of ``runs.vote.table_of_votes``;
    with_words: the WORDS of transcripts are a column too."""
    use = [use] if isinstance(use, str) else use
    several = isinstance(lists, list) and lists and all(isinstance(one, ListFile) for one in lists)
    every_one = lists if several else [lists_from(lists, columns or {})]
    file = every_one[0]
    path = file.path if isinstance(file, ListFile) else ""
    data = {
        "answer": getattr(file, "answer", None),
        **({"reader": dict(file.settings)} if isinstance(file, ListFile) else {}),
    }
    settings = {"name": "vote", "task": "ranking", "features": {"set": "base"}, "data": data}
    recipe = read_settings(settings if metric is None else settings | {"metric": named(metric)})
    assert isinstance(recipe, ListRecipe)
    count = SkipCount(getattr(file, "on_bad_list", "error"))
    given = (blocks_given(one, texts=True, gains=True) for one in every_one)
    first, rows = first_filled(chain.from_iterable(given))
    if first is None:
        list(usable(rows, counted, count))
        raise count.nothing(path)
    if first.of_trees:
        raise DataError("found a list of trees; expected texts; `rerank run` is for parses", path=first.path)
    shown = first.named()
    content = content_of(recipe, columns=ScoreColumns(shown.names, shown.names[shown.column]))
    base = None if first.unscored else content.held[0]
    names = [name for name in content.held if name in shown.names and (base is not None or name != content.held[0])]
    names += [WORDS] if with_words and content.metric.name == "wer" and WORDS not in names else []
    if unknown := set(use or ()) - set(names):
        raise RecipeError(f"found {min(unknown)!r}; the lists have {', '.join(names) or 'no numbers'}", key="columns")
    names = [name for name in names if use is None or name in use]
    sizes, parts, references, seen = [0], list[tuple[np.ndarray, ...]](), list[np.ndarray](), list[Lists]()
    for found in content.measured(rows, count):
        nbest = found.held.named()
        seen += [*found.lists.each()][: MOST - len(seen)]
        if not len(nbest):
            continue
        scores = nbest.scores[:, nbest.names.index(base)] if base else np.zeros(len(nbest))
        parts.append((numbered(nbest), _columns(nbest, names), scores, found.stats))
        references += list(found.reference)
        sizes += np.diff(found.lists.first).tolist()
    count.warn()
    if not parts:
        raise count.nothing(path)
    if (found_lists := len(references)) < folds:
        message = f"found {found_lists} lists with candidates; expected {folds} or more, one for each fold"
        fewer = f", or fewer folds: --folds {found_lists} (folds={found_lists})" if found_lists > 1 else ""
        raise DataError(message + fewer)
    answers, values, scores, stats = zip(*parts, strict=True)
    reference, statistics, starts = np.stack(references), np.concatenate(stats), np.cumsum(sizes)
    gain = content.metric.gain(statistics, np.repeat(reference, np.diff(starts), axis=0))
    held, drawn = np.concatenate(values, axis=1), np.random.default_rng(seed).permutation(len(references))
    every = Samples(starts, np.concatenate(answers), held, gain, drawn % folds)
    amiss = said_of_all(map("the score column {!r}".format, names), every.columns, starts)
    for line in amiss:
        log.warning("%s", line)
    about = content.metric, statistics, reference, base, np.concatenate(scores)
    return _told(Gathered(every, tuple(names), *about, told=False), file, seen)


def _told(found: Gathered, file: Any, seen: Sequence[Lists]) -> Gathered:
    """The lists with what is said of them: an account of the first of them, ``seen``, and what is amiss."""
    settings = file.settings if isinstance(file, ListFile) else {}
    account = Account.of("", seen, measure=found.metric.signature)
    tell(account)
    amiss = tuple(doubts_of_lists(seen, found.metric, settings.get("roles")))
    return found._replace(account=account, amiss=amiss, told=bool(settings) and says_scores(settings))


def _columns(nbest: Lists, names: Sequence[str]) -> np.ndarray:
    """float64 [K, n]: the numbers of these names, and how many WORDS candidates have where they do not say so."""
    held = nbest.scores[:, [nbest.names.index(name) for name in names if name in nbest.names]].T
    return held if len(held) == len(names) else np.vstack([held, [len(text.split()) for text in nbest.texts]])
