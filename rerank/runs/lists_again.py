"""The lists of a split, read again beside their scores, for what needs the candidates themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from rerank.base.progress import track
from rerank.data.shards import Lists, list_sizes, parts
from rerank.extraction.content import content_of
from rerank.extraction.content.base import Pair
from rerank.extraction.extraction import Extracted
from rerank.learn.scoring import scores
from rerank.models.decoding import Evidence, gain_functions
from rerank.readers.base import BadList, SkipCount
from rerank.readers.score_columns import ScoreColumns
from rerank.recipes.recipe import ListRecipe
from rerank.runs.corpora import Data
from rerank.runs.run import Run


class ListAgain(NamedTuple):
    """A list of a corpus, read again: its number, which candidates of the corpus it has, and what these are."""

    number: int
    own: slice
    pair: Pair
    evidence: Evidence


class Reading(Protocol):
    """What looks at one list after the other."""

    def see(self, again: ListAgain) -> None:
        """Look at a list."""

    def skip(self) -> None:
        """Pass over a list that is not in the corpus, or has no candidates."""


def see_again(recipe: ListRecipe, data: Data, split: str, extracted: Extracted, readings: Sequence[Reading]) -> int:
    """Read all lists of a split again, for all ``readings``; returns how many have more candidates than
    ``decode.most``."""
    content = content_of(recipe, columns=ScoreColumns.of_table(data.table.about))
    gains = None if recipe.decode.gains is None else gain_functions.get(recipe.decode.gains)
    sizes, long = list_sizes(extracted.corpus), 0
    ends = np.cumsum(sizes)
    lists = content.read_again(recipe.data, split, extracted.ids, sizes)
    for number, raw in track(lists, f"decode {split}", total=sizes.size):
        usable = number >= 0 and not isinstance(raw.nbest, BadList) and sizes[number] > 0
        pair = content.pair(raw, SkipCount("skip")) if usable else None
        if pair is None:
            for reading in readings:
                reading.skip()
            continue
        evidence = Evidence(content, pair.nbest, pair.content, recipe.decode.most, gains)
        long += len(pair.nbest) > recipe.decode.most
        again = ListAgain(number, slice(int(ends[number] - sizes[number]), int(ends[number])), pair, evidence)
        for reading in readings:
            reading.see(again)
    return long


def run_scores(run: Run, corpus: Lists) -> np.ndarray:
    """float64 [N]: the scores of all candidates by the run's predictor."""
    weights = run.weights[run.recipe.predictor]
    return np.concatenate([scores(part, weights) for _, part in parts(corpus)])
