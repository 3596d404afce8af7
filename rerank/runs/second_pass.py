"""A second pass over the lists of a split, for what needs the candidates themselves beside their scores.

A corpus holds features and statistics, not texts: all lists of a split need not fit into memory. So decoding, which
compares candidates with one another, reads the files again, once for everything that visits the lists.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol, Self

import numpy as np

from rerank.base.progress import track
from rerank.data.shards import Corpora, list_sizes
from rerank.extraction.blocks import BLOCK_BYTES
from rerank.extraction.content import content_of
from rerank.extraction.content.base import Pair
from rerank.extraction.extraction import Extracted
from rerank.learn.scoring import candidate_scores
from rerank.models.decoding import Evidence, gain_functions
from rerank.pool import Engine
from rerank.readers.base import SkipCount
from rerank.readers.lists import Lists
from rerank.readers.score_columns import ScoreColumns
from rerank.recipes.recipe import ListRecipe
from rerank.runs.corpora import Data
from rerank.runs.run import Run

MAX_LISTS = 1 << 7  # of a stretch: even a small split has work for several workers
NumberedList = tuple[int, Lists]  # its number, -1 for one outside the corpus


class RereadList(NamedTuple):
    """A list of a corpus, read again: its number, its candidates in the corpus, and what these are."""

    number: int
    own: slice
    pair: Pair
    evidence: Evidence


class Visitor(Protocol):
    """Something that looks at the lists of a split one after the other, stretch by stretch, in any process."""

    def part(self, lists: int, candidates: slice) -> Self:
        """The same for some successive lists alone, which has seen nothing: numbers count from their first."""

    def see(self, again: RereadList) -> None:
        """Look at a list."""

    def skip(self) -> None:
        """Pass over a list that is not in the corpus, or has no candidates."""

    def join(self, part: Self, first: int, candidate: int) -> None:
        """Take over what a part has seen: from list ``first`` and ``candidate`` on, after all parts before it."""


class Stretch(NamedTuple):
    """Lists to be read again, a task: numbered in the stretch, with the sizes of those in the corpus. first, candidate:
    where it begins in the corpus."""

    first: int
    candidate: int
    recipe: ListRecipe
    columns: ScoreColumns | None
    lists: list[NumberedList]
    sizes: np.ndarray
    visitors: list[Visitor]

    def __str__(self) -> str:
        return f"{len(self.lists)} lists from number {self.first + 1} on"


def visit_lists(
    recipe: ListRecipe, data: Data, split: str, extracted: Extracted, visitors: Sequence[Visitor], engine: Engine | None
) -> int:
    """Read all lists of a split again, for all ``visitors``, by ``engine`` (this process if None, or where gains are a
    user's function, which may be known here alone); returns how many have more candidates than ``decode.most``."""
    engine = Engine() if engine is None or recipe.decode.gains is not None else engine

    def joined() -> Iterator[bool]:
        """Whether each list is long, once the visitors have taken over what their parts have seen."""
        stretches = _stretches(recipe, data, split, extracted, visitors)
        for first, candidate, parts, long in engine.map(visit, stretches):
            for visitor, part in zip(visitors, parts, strict=True):
                visitor.join(part, first, candidate)
            yield from long

    return sum(track(joined(), f"decode {split}", total=extracted.corpus.list_count))


def _stretches(
    recipe: ListRecipe, data: Data, split: str, extracted: Extracted, visitors: Sequence[Visitor]
) -> Iterator[Stretch]:
    """All lists of a split with parts of the visitors; MAX_LISTS, or as many bytes as a block has, at a time."""
    columns, sizes, first = ScoreColumns.of_table(data.table.about), list_sizes(extracted.corpus), 0
    ends = np.concatenate([[0], np.cumsum(sizes)]).tolist()

    def stretch(lists: list[NumberedList]) -> Stretch:
        last = first + sum(number >= 0 for number, _ in lists)
        own = slice(ends[first], ends[last])
        parts = [visitor.part(last - first, own) for visitor in visitors]
        numbered = [(number - first if number >= 0 else -1, nbest) for number, nbest in lists]
        return Stretch(first, own.start, recipe, columns, numbered, sizes[first:last], parts)

    lists, size = list[NumberedList](), 0
    content = content_of(recipe, columns=columns)
    for number, nbest in content.read_again(recipe.data, split, extracted.ids, sizes):
        if nbest.problem is None:
            nbest = nbest.changed(raw=None)  # needed only to write the list
            size += sum(map(len, nbest.texts))
        lists.append((number, nbest))
        if len(lists) == MAX_LISTS or size >= BLOCK_BYTES:
            yield (whole := stretch(lists))
            lists, size, first = [], 0, first + whole.sizes.size
    if lists:
        yield stretch(lists)


def visit(stretch: Stretch) -> tuple[int, int, list[Visitor], list[bool]]:
    """Let the visitors see the lists of a stretch: where it begins, they themselves, and whether each list has more
    candidates than ``decode.most``."""
    recipe, sizes, long = stretch.recipe, stretch.sizes, list[bool]()
    content = content_of(recipe, columns=stretch.columns)
    gains = None if recipe.decode.gains is None else gain_functions.get(recipe.decode.gains)
    ends = np.cumsum(sizes)
    for number, nbest in stretch.lists:
        usable = number >= 0 and nbest.problem is None and sizes[number] > 0
        pair = content.pair(nbest, SkipCount("skip")) if usable else None
        if pair is None:
            long.append(False)
            for visitor in stretch.visitors:
                visitor.skip()
            continue
        evidence = Evidence(content, pair.nbest, pair.content, recipe.decode.most, gains)
        long.append(len(pair.nbest) > recipe.decode.most and evidence.answers is None)
        again = RereadList(number, slice(int(ends[number] - sizes[number]), int(ends[number])), pair, evidence)
        for visitor in stretch.visitors:
            visitor.see(again)
    return stretch.first, stretch.candidate, stretch.visitors, long


def run_scores(run: Run, corpus: Corpora) -> np.ndarray:
    """float64 [N]: the scores of all candidates by the run's predictor."""
    return candidate_scores(corpus, run.weights[run.recipe.predictor])
