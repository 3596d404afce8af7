"""The tables that the template Lexical learns from training lists: tables of all of them, and of all but each part of
them.

Part k of K has the lists whose place i among the L of the split, bad ones included, has i·K // L = k: neighbours, which
may be of one document, are in one part. Features of its lists come from the tables of all other parts, so that no list
of train sees its own reference, as none of dev, test and later does; these get the tables of all.
"""

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rerank.base.errors import RecipeError, RunError
from rerank.data.tokens import tokenise
from rerank.features.model1 import LexicalTables, estimate, some_texts
from rerank.readers.base import NBestList, SkippedList
from rerank.readers.texts.text_pairs import complete, text_list
from rerank.storage.arrays import read_array, save_arrays
from rerank.storage.files import new_directory

if TYPE_CHECKING:
    from rerank.features.text.lexical import Lexical

log = logging.getLogger("rerank")


class LearnedTables(NamedTuple):
    """Tables of all training lists, and which of them leave out the lists of which part.

    lists: how many there are, bad ones included; parts: the tables of the other parts, by part.
    """

    whole: LexicalTables
    lists: int
    parts: list[LexicalTables]

    def part(self, place: int) -> int:
        """The part of the list at a place (from 0)."""
        return place * len(self.parts) // max(self.lists, 1)


def learn(lexical: "Lexical", lists: Iterable[NBestList | SkippedList]) -> LearnedTables:
    """The tables of training lists, whose references are translations of their sources; bad lists teach nothing."""
    texts: tuple[list[bytes], list[bytes]] = [], []
    places, total, usable = list[int](), 0, 0
    for place, nbest in enumerate(lists):
        total = place + 1
        if isinstance(nbest, SkippedList):
            continue
        pair = complete(text_list(nbest), needs_references=False, needs_source=True)
        if isinstance(pair, SkippedList):
            continue
        usable += 1
        for reference in pair.references:
            texts[0].append(pair.source or b"")
            texts[1].append(reference)
            places.append(place)
    if usable and not places:
        message = "the template Lexical learns from references of training lists; found none: name their files with"
        raise RecipeError(f"{message} data.references, or leave it out", key="features.templates")
    sources, targets = map(tokenise, texts)
    parts = np.array(places, np.int64) * lexical.folds // max(total, 1)

    def of(chosen: np.ndarray) -> LexicalTables:
        some = np.flatnonzero(chosen)
        return estimate(some_texts(sources, some), some_texts(targets, some), lexical.iterations)

    whole = of(parts >= 0)
    log.info(
        "lexical tables: %s pairs of texts, %s words of sources, %s of references",
        *(f"{number:,}" for number in (parts.size, whole.source.size, whole.target.size)),
    )
    return LearnedTables(whole, total, [of(parts != part) for part in range(lexical.folds)])


def keep_tables(directory: Path, tables: LexicalTables) -> str:
    """Leave tables in a directory for ``kept_tables``, which finds them by their digest, the result."""
    with new_directory(_place(directory, tables.digest), keep=True, synced=False) as new:
        save_arrays(new, tables.arrays())
    return tables.digest


def kept_tables(directory: Path, digest: str) -> LexicalTables:
    """Tables of ``keep_tables``, memory-mapped."""
    files = sorted(_place(directory, digest).glob("*.npy"))
    if not files:
        raise RunError(f"cannot read the lexical tables in {directory}: the extraction was stopped")
    return LexicalTables.of({path.stem: read_array(path, mmap=True) for path in files})


def _place(directory: Path, digest: str) -> Path:
    return directory / f"lexical-{digest[:16]}"
