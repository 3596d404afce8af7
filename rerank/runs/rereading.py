"""Lists of a split, read again by the blocks and the workers of extraction, once for all that looks at them.

A corpus holds features and statistics, not texts: all lists of a split need not fit into memory. So what compares
candidates with one another, or writes them, reads the files again.
"""

import logging
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from rerank.base.errors import DataError, RerankError
from rerank.base.progress import counting
from rerank.extraction.blocks import Block, BlockJob, Spool, carried_out, cut
from rerank.extraction.content import Pair
from rerank.extraction.extraction import Extracted
from rerank.models.decoding import Evidence, gain_functions
from rerank.readers.base import ScoreColumns
from rerank.readers.lines import Place
from rerank.readers.lists import Lists, one_by_one
from rerank.recipes.recipe import ListRecipe
from rerank.runs.corpora import Data

log = logging.getLogger("rerank")


class RereadList(NamedTuple):
    """A list of the corpus, read again. stats: of its candidates (float64 [N, K]); pair, evidence: what these are, None
    where nobody asks, or there are none; found: by those who looked at it before."""

    nbest: Lists
    stats: np.ndarray
    pair: Pair | None
    evidence: Evidence | None
    found: list[Any]


class Visitor(NamedTuple):
    """Something that looks at the lists of a split.

    add: takes over what is found, in the order of the lists, with the place of the list in the files and its number in
    the corpus. see: finds it in a list, in any process, given what the arrays ``of_candidates`` (N values each) have
    for its candidates, and ``of_lists`` (L values each) for itself. opens: whether it asks what candidates are;
    compares: and compares them all with one another; whole: whether lists that the corpus lacks, with the number -1,
    are taken over as they are.
    """

    add: Callable[[int, int, Any], None] | None
    see: Callable[..., Any]
    of_candidates: Sequence[np.ndarray] = ()
    of_lists: Sequence[np.ndarray] = ()
    opens: bool = True
    compares: bool = False
    whole: bool = False

    def part(self, lists: slice, own: slice) -> "Visitor":
        """What looks at some of the lists, which have the candidates ``own``."""
        of_candidates, of_lists = [each[own] for each in self.of_candidates], [each[lists] for each in self.of_lists]
        return self._replace(add=None, of_candidates=of_candidates, of_lists=of_lists)


class Known(NamedTuple):
    """What is known of a block. place, number: of its first list, in the files and in the corpus; of its lists in the
    corpus: ids, places in the block, where their candidates begin and end (int64 [l + 1]), and statistics."""

    place: int
    number: int
    ids: Sequence[str]
    places: Sequence[int]
    starts: np.ndarray
    stats: np.ndarray
    visitors: Sequence[Visitor]


class Reread(NamedTuple):
    """The result of a block: of each list place, number, and what each visitor has found; how many lists have more
    candidates than are compared; and the places of the lists of a stretch, by their ids."""

    lists: list[tuple[int, int, list[Any]]]
    long: int
    seen: Mapping[str, Place]


def reread(job: BlockJob, block: Block) -> Reread:
    """Read the lists of a block, and look at them; those of the corpus have its candidates alone."""
    known, content, decode, met = block.known, job.content(), job.recipe.decode, dict(block.seen)
    gains, lists, long = None if decode.gains is None else gain_functions.get(decode.gains), [], 0
    numbers = {key: number for number, key in enumerate(zip(known.places, known.ids, strict=True))}
    for place, nbest in enumerate(one_by_one(block.read(met))):
        number = numbers.get((place, nbest.id), -1) if nbest.problem is None else -1
        if number < 0:
            lists.append((known.place + place, -1, [nbest if visitor.whole else None for visitor in known.visitors]))
            continue
        own, pair, evidence = slice(*known.starts[number : number + 2].tolist()), None, None
        if len(nbest) != own.stop - own.start:
            nbest = content.without_bad(nbest)
        if own.stop > own.start and any(visitor.opens for visitor in known.visitors):
            if (pair := content.compared(nbest)) is not None:
                evidence = Evidence(content, pair.nbest, pair.content, decode.most, gains)
                long += len(pair.nbest) > decode.most and evidence.answers is None
        again = RereadList(nbest, known.stats[own], pair, evidence, [])
        for visitor in known.visitors:
            values = [*(each[own] for each in visitor.of_candidates), *(each[number] for each in visitor.of_lists)]
            again.found.append(visitor.see(again, *values))
        lists.append((known.place + place, known.number + number, again.found))
    return Reread(lists, long, {name: at for name, at in met.items() if name not in block.seen})


def visit_lists(
    recipe: ListRecipe, data: Data, split: str, extracted: Extracted, visitors: Sequence[Visitor]
) -> int:  # fmt: skip
    """Read all lists of a split again, for all ``visitors``, by the workers of ``data``; returns how many the files
    have."""
    corpus, starts, places = extracted.corpus, extracted.corpus.lists, extracted.places
    failure, count, seen, long = list[RerankError](), 0, np.zeros(corpus.list_count, np.bool_), 0
    job = BlockJob(recipe, Spool(None), tuple(sys.path), ScoreColumns.of_table(data.table.about))

    def blocks() -> Iterator[Block]:
        nonlocal count
        for block in cut(job.content(), recipe.data, split, failure, again=True):
            begin, count = count, count + block.list_count
            first, last = np.searchsorted(places, [begin, count]).tolist()
            if first < last or any(visitor.whole for visitor in visitors):
                lists, own = slice(first, last), slice(int(starts[first]), int(starts[last]))
                within = (places[lists] - begin).tolist(), starts[first : last + 1] - own.start, corpus.stats[own]
                parts = [visitor.part(lists, own) for visitor in visitors]
                yield block._replace(known=Known(begin, first, extracted.ids[lists], *within, parts))

    with counting(f"read {split} again", total=corpus.list_count) as progress:
        for block, result in carried_out(data.engine, partial(reread, job), blocks()):
            for place, number, every in result.lists:
                seen[number] |= number >= 0
                for visitor, found in zip(visitors, every, strict=True):
                    if visitor.add is not None and found is not None:
                        visitor.add(place, number, found)
            long += result.long
            progress.advance(more=len(block.known.ids))
    if failure:
        raise failure[0]
    if not seen.all():
        name = extracted.ids[int(np.argmin(seen))]
        message = f"the list {name} of {split} is not found when lists are read again; have files changed?"
        raise DataError(message, list_id=name)
    if long and any(visitor.compares for visitor in visitors):
        message = "%s: of %d lists only the %d candidates with the best scores were compared with each other"
        log.warning(f"{message} (decode.most)", split, long, recipe.decode.most)
    return count
