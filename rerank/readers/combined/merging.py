"""Lists of several systems, or of several iterations of one, over the same inputs as one list each.

One path names the files of the systems, separated by commas: ``a.nbest.gz,b.nbest.gz``. Lists are matched by their
ids, which must come in the same order in all files; if all ids are whole numbers, one that a system does not have
stands for a list without candidates. Candidates follow each other system by system.

The columns are those of all systems: one name is one column. A candidate whose system lacks a column has 0 there, and
its own base score in the column of the base score. ``system_1``, ``system_2``... are 1 for the candidates of a system
and 0 for others, so that weights can make up for what a system lacks. What several systems have is kept once, as the
first of them has it, with the indicators of all of them; columns that the first lacks come from the next.

Parsers do not name their scores: in lists of trees the base score of each system is a column of its own, ``score_1``,
``score_2``...
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from rerank.base.errors import DataError, RecipeError
from rerank.base.ranges import Checked
from rerank.readers.base import NBestList, Reader, SkippedList, readers
from rerank.readers.combined.systems import (
    Duplicates,
    Origin,
    System,
    UnitedColumns,
    next_lists,
    other_columns,
    system_name,
)
from rerank.readers.several import format_of, make_reader
from rerank.readers.streams import PathLike, Writable, split_paths, stream_name
from rerank.readers.texts.jsonl import JsonlReader
from rerank.readers.texts.text_list import Pieces, TextList
from rerank.readers.trees.parses import ParseReader


@readers.add("merged")
@dataclass(frozen=True)
class MergedReader(Checked, Reader):
    """Lists of several systems; the path names a file for each, separated by commas.

    Parameters
    ----------
    of: the reader of all files, or a list with one reader per file: names, or mappings of a name and options.
    duplicates: "drop" candidates that are repeated in a list, or "keep" them; both count them. Trees are equal whatever
        their white space and the label of their root (S1, TOP, ROOT or none); in normal form, however words are spelt.
    base: the name of the column that is the base score; by default that of the first system.
    """

    of: Any = "moses"
    duplicates: Duplicates = "drop"
    base: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.within

    @cached_property
    def within(self) -> tuple[Reader, ...]:
        """The reader of all files, or one per file."""
        if not isinstance(self.of, list | tuple):
            return (make_reader(self.of, "of"),)
        if not self.of:
            raise RecipeError("found an empty list; expected the readers of the files", key="of")
        return tuple(make_reader(spec, f"of.{place}") for place, spec in enumerate(self.of))

    @property
    def files(self) -> int | None:
        return sum(reader.files or 1 for reader in self.within) if isinstance(self.of, list | tuple) else None

    def paths(self, path: PathLike) -> list[str]:
        return [file for reader, own in self.systems(path) for file in reader.paths(own)]

    def read(self, path: PathLike) -> Iterator[NBestList | SkippedList]:
        """See ``Reader.read``; a list that is bad in one system is bad."""
        systems = [System(k, reader, own) for k, (reader, own) in enumerate(self.systems(path), start=1)]
        columns = UnitedColumns(systems, self.base)
        seen: set[str] = set()
        while heads := next_lists(systems, seen):
            bad = next((head for _, head in heads if isinstance(head, SkippedList)), None)
            parts = [(system, head) for system, head in heads if isinstance(head, NBestList)]
            if bad is None:
                bad = next((problem for system, head in parts if (problem := other_columns(system, head))), None)
            yield (
                columns.join(parts, self.duplicates, normal=self.normal)
                if bad is None
                else replace(bad, size=_size(heads))
            )

    def systems(self, path: PathLike) -> list[tuple[Reader, str]]:
        """The reader and the path of each system."""
        names = split_paths(path)
        chosen = self.within
        if self.files is None:
            chosen *= len(names) // (chosen[0].files or len(names))
        counts = [reader.files or 1 for reader in chosen]
        if sum(counts) != len(names):
            message = f"names {len(names)} files, separated by commas; the readers of the systems need {sum(counts)}"
            raise DataError(message, path=stream_name(path))
        firsts = np.cumsum([0, *counts]).tolist()
        spans = pairwise(firsts)
        parts = [self.known and self.known.of_source(system_name(k)) for k in range(1, len(chosen) + 1)]
        told = [reader.knowing(part, normal=self.normal) for reader, part in zip(chosen, parts, strict=True)]
        return [(reader, ",".join(names[a:b])) for reader, (a, b) in zip(told, spans, strict=True)]

    def write(
        self, out: Writable, nbest: NBestList, order: Sequence[int] | None = None, scores: np.ndarray | None = None
    ) -> None:
        """See ``Reader.write``; writes the format of the systems, or JSON lines if that cannot be.

        Trees are written in the format of the first system, each with the base score that it has here.
        """
        inner = self._format
        if not isinstance(nbest, TextList):
            base = nbest.base.reshape(-1, 1)
            (inner or self.within[0]).write(out, nbest.changed(scores=base, column=0, raw=None), order, scores)
            return
        if inner is None:
            JsonlReader().write(out, replace(nbest, raw=None), order, scores)
            return
        origin: Origin = nbest.raw
        raws = [part.raw for part in origin.parts]
        if all(isinstance(raw, Pieces) for raw in raws) and raws:
            candidates = [raws[part].candidates[place] for part, place in origin.places]
            inner.write(out, replace(nbest, raw=Pieces(raws[0].head, candidates)), order, scores)
            return
        new = [None if scores is None else np.zeros(len(part)) for part in origin.parts]
        for i, (part, place) in enumerate(origin.places):
            if scores is not None:
                new[part][place] = scores[i]  # type: ignore[index]
        for i in range(len(nbest)) if order is None else order:
            part, place = origin.places[i]
            inner.write(out, origin.parts[part], [place], new[part])

    def write_bad(self, out: Writable, bad: SkippedList, like: NBestList | None) -> None:
        inner, origin = self._format, None if like is None else like.raw
        if inner is None:
            JsonlReader().write_bad(out, bad, None)
        else:
            inner.write_bad(out, bad, origin.parts[0] if isinstance(origin, Origin) and origin.parts else None)

    @property
    def _format(self) -> Reader | None:
        """The reader that writes the lists; None if they are texts and the systems have several formats, or one that
        cannot hold them."""
        formats = [format_of(reader) for reader in self.within]
        trees = all(isinstance(reader, ParseReader) for reader in formats)
        return self.within[0] if trees or (len(set(map(type, formats))) == 1 and not self.bounded) else None


def _size(heads: list[tuple[System, NBestList | SkippedList]]) -> int | None:
    """How many candidates all systems have together; None if that is unknown."""
    sizes = [head.size for _, head in heads]
    return None if None in sizes else sum(size for size in sizes if size is not None)
