"""A corpus on disk whose lists are written piece by piece, by any process: none needs memory for all of them."""

from pathlib import Path
from typing import NamedTuple

from rerank.data.corpus import DTYPES, Corpus
from rerank.storage.arrays import lay_array, write_rows


class Extent(NamedTuple):
    """How many there are of everything in some lists."""

    lists: int
    candidates: int
    nonzeros: int

    def and_those_of(self, other: "Extent") -> "Extent":
        """How many both have together."""
        return Extent(*(own + more for own, more in zip(self, other, strict=True)))


class Piece(NamedTuple):
    """A place in the corpus in ``directory``: for the lists after those of ``before``."""

    directory: str
    before: Extent

    def write(self, lists: Corpus) -> None:
        """Write these lists there; doing it again changes nothing.

        Raises
        ------
        OSError: they cannot be written.
        """
        for name, (first, offset) in _places(self.before).items():
            array = getattr(lists, name)
            rows = array if offset is None else array[1:] + offset
            write_rows(Path(self.directory, f"{name}.npy"), first, rows)


def _places(before: Extent) -> dict[str, tuple[int, int | None]]:
    """By array: the first row of lists that come after those of ``before``, and, of offsets, what is added to them."""
    lists, candidates, nonzeros = before
    by_candidate, by_list = ("base", "gain", "stats"), ("reference", "weight")
    return {
        "lists": (lists + 1, candidates),
        "rows": (candidates + 1, nonzeros),
        **dict.fromkeys(("columns", "values"), (nonzeros, None)),
        **dict.fromkeys(by_candidate, (candidates, None)),
        **dict.fromkeys(by_list, (lists, None)),
    }


def lay_corpus(directory: Path, size: Extent, stats: int, reference: int) -> None:
    """Make the files of a corpus of this size in a new directory; ``stats``, ``reference``: how many K and R are.

    Raises
    ------
    OSError: they cannot be written.
    """
    directory.mkdir()
    axes = {"stats": (stats,), "reference": (reference,)}
    for name, (rows, _) in _places(size).items():
        lay_array(directory / f"{name}.npy", DTYPES[name], (rows, *axes.get(name, ())))
