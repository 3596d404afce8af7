"""Lists that a program holds, as the lists of a file: a recipe reads them like any others.

The file holds their digest alone; it stands for them wherever a recipe's results depend on its files.
"""

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from rerank.base.errors import DataError
from rerank.readers.base import NBestList, Reader, SkippedList
from rerank.readers.streams import PathLike, Writable
from rerank.readers.texts.jsonl import JsonlReader
from rerank.readers.texts.text_list import TextList

Rows = Callable[[Reader], Iterator[NBestList | SkippedList]]  # for a reader that was told what to look for


@dataclass(frozen=True)
class HeldReader(Reader):
    """The reader of lists that a program holds."""

    places: ClassVar[dict[str, Rows]] = {}

    def read(self, path: PathLike) -> Iterator[NBestList | SkippedList]:
        """See ``Reader.read``.

        Raises
        ------
        DataError: no lists are held there.
        """
        if os.fspath(path) not in self.places:
            raise DataError("a file that stands for lists of a program that has ended", path=os.fspath(path))
        yield from self.places[os.fspath(path)](self)

    def write(
        self, out: Writable, nbest: NBestList, order: Sequence[int] | None = None, scores: np.ndarray | None = None
    ) -> None:
        """See ``Reader.write``; they are written as JSON."""
        JsonlReader().write(out, nbest, order, scores)


NAME = f"{HeldReader.__module__}:{HeldReader.__name__}"  # in a recipe


@contextmanager
def holding(directory: Path, splits: Mapping[str, tuple[Rows, str]]) -> Iterator[None]:
    """Within the block, the files ``directory``/SPLIT have these lists, whose digests they hold."""
    places = {os.fspath(directory / split): rows for split, (rows, _) in splits.items()}
    for split, (_, digest) in splits.items():
        (directory / split).write_text(f"{digest}\n")
    HeldReader.places.update(places)
    try:
        yield
    finally:
        for place in places:
            del HeldReader.places[place]


def digest_of(lists: Iterable[NBestList]) -> str:
    """SHA-256 of everything that lists hold."""
    digest = hashlib.sha256()
    for rows in lists:
        held: list[object] = [rows.id, rows.texts, rows.names, rows.column, rows.gold and rows.gold.text]
        arrays = [rows.scores]
        if isinstance(rows, TextList):
            held += [rows.source, rows.references, rows.segmentation, rows.alignment]
            held += [] if rows.sparse is None else [rows.sparse.names]
            arrays += [] if rows.sparse is None else [rows.sparse.first, rows.sparse.values]
        digest.update(repr(held).encode("utf-8", "surrogateescape"))
        for array in arrays:
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
