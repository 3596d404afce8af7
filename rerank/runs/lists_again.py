"""The lists of a split, read again beside their scores, for what needs the candidates themselves."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol, Self

import numpy as np

from rerank.base.progress import track
from rerank.data.shards import Lists, list_sizes
from rerank.extraction.blocks import BLOCK_BYTES
from rerank.extraction.content import content_of
from rerank.extraction.content.base import Pair
from rerank.extraction.extraction import Extracted
from rerank.learn.scoring import candidate_scores
from rerank.models.decoding import Evidence, gain_functions
from rerank.pool import Engine
from rerank.readers.base import NBestList, SkipCount, SkippedList
from rerank.readers.score_columns import ScoreColumns
from rerank.recipes.recipe import ListRecipe
from rerank.runs.corpora import Data
from rerank.runs.run import Run

LISTS = 1 << 7  # at most, in a stretch: even a small split has work for several workers


class ListAgain(NamedTuple):
    """A list of a corpus, read again: its number, which candidates of the corpus it has, and what these are."""

    number: int
    own: slice
    pair: Pair
    evidence: Evidence


class Reading(Protocol):
    """Readings of one list after the other: at those of a split, stretch by stretch, by any process."""

    def part(self, lists: int, candidates: slice) -> Self:
        """The same for some successive lists alone, which has seen nothing: numbers count from their first."""

    def see(self, again: ListAgain) -> None:
        """Look at a list."""

    def skip(self) -> None:
        """Pass over a list that is not in the corpus, or has no candidates."""

    def join(self, part: Self, first: int, candidate: int) -> None:
        """Take over what a part has seen: from list ``first`` and ``candidate`` on, after all parts before it."""


class Stretch(NamedTuple):
    """Lists to be read again, a task: with their numbers in the stretch, -1 for those outside the corpus, and the
    sizes of the others. first, candidate: where it begins in the corpus."""

    first: int
    candidate: int
    recipe: ListRecipe
    columns: ScoreColumns | None
    lists: list[tuple[int, NBestList | SkippedList]]
    sizes: np.ndarray
    readings: list[Reading]

    def __str__(self) -> str:
        return f"{len(self.lists)} lists from number {self.first + 1} on"


class Seen(NamedTuple):
    """The findings of readings in a stretch, and which of its lists have more candidates than ``decode.most``."""

    first: int
    candidate: int
    readings: list[Reading]
    long: list[bool]


def see_again(
    recipe: ListRecipe, data: Data, split: str, extracted: Extracted, readings: Sequence[Reading], engine: Engine | None
) -> int:
    """Read all lists of a split again, for all ``readings``, by ``engine`` (this process if None, or where gains are a
    user's function, which may be known here alone); returns how many have more candidates than ``decode.most``."""
    engine = Engine() if engine is None or recipe.decode.gains is not None else engine
    stretches = _stretches(recipe, data, split, extracted, readings)
    seen = _joined(readings, engine.map(look_at, stretches))
    return sum(track(seen, f"decode {split}", total=extracted.corpus.list_count))


def _stretches(
    recipe: ListRecipe, data: Data, split: str, extracted: Extracted, readings: Sequence[Reading]
) -> Iterator[Stretch]:
    """All lists of a split, with parts of the readings."""
    columns, sizes, first = ScoreColumns.of_table(data.table.about), list_sizes(extracted.corpus), 0
    ends = np.concatenate([[0], np.cumsum(sizes)]).tolist()
    content = content_of(recipe, columns=columns)
    for lists in _cut(content.read_again(recipe.data, split, extracted.ids, sizes)):
        last = first + sum(number >= 0 for number, _ in lists)
        own = slice(ends[first], ends[last])
        counted = [(number - first if number >= 0 else -1, nbest) for number, nbest in lists]
        parts = [reading.part(last - first, own) for reading in readings]
        yield Stretch(first, own.start, recipe, columns, counted, sizes[first:last], parts)
        first = last


def _joined(readings: Sequence[Reading], stretches: Iterable[Seen]) -> Iterator[bool]:
    """Let the readings take over what their parts have seen; yields of every list whether it is long."""
    for seen in stretches:
        for reading, part in zip(readings, seen.readings, strict=True):
            reading.join(part, seen.first, seen.candidate)
        yield from seen.long


def _cut(lists: Iterable[tuple[int, NBestList | SkippedList]]) -> Iterator[list[tuple[int, NBestList | SkippedList]]]:
    """The lists in stretches: of LISTS, or of as many bytes of texts as a block has."""
    stretch, size = list[tuple[int, NBestList | SkippedList]](), 0
    for number, nbest in lists:
        if isinstance(nbest, NBestList):
            nbest = nbest.changed(raw=None)  # needed only to write the list
            size += sum(map(len, nbest.texts))
        stretch.append((number, nbest))
        if len(stretch) == LISTS or size >= BLOCK_BYTES:
            yield stretch
            stretch, size = [], 0
    if stretch:
        yield stretch


def look_at(stretch: Stretch) -> Seen:
    """Let the readings of a stretch see its lists."""
    recipe, sizes, long = stretch.recipe, stretch.sizes, list[bool]()
    content = content_of(recipe, columns=stretch.columns)
    gains = None if recipe.decode.gains is None else gain_functions.get(recipe.decode.gains)
    ends = np.cumsum(sizes)
    for number, nbest in stretch.lists:
        long.append(False)
        usable = number >= 0 and not isinstance(nbest, SkippedList) and sizes[number] > 0
        pair = content.pair(nbest, SkipCount("skip")) if usable else None
        if pair is None:
            for reading in stretch.readings:
                reading.skip()
            continue
        evidence = Evidence(content, pair.nbest, pair.content, recipe.decode.most, gains)
        long[-1] = len(pair.nbest) > recipe.decode.most and evidence.answers is None
        again = ListAgain(number, slice(int(ends[number] - sizes[number]), int(ends[number])), pair, evidence)
        for reading in stretch.readings:
            reading.see(again)
    return Seen(stretch.first, stretch.candidate, stretch.readings, long)


def run_scores(run: Run, corpus: Lists) -> np.ndarray:
    """float64 [N]: the scores of all candidates by the run's predictor."""
    return candidate_scores(corpus, run.weights[run.recipe.predictor])
