"""The remains of the blocks of an extraction until the corpus is written, and which columns their features get."""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from rerank.data.symbols import HashIndex, SymbolTable
from rerank.features.table import HashedTable, Table, hashed_columns, index_of, numbers_of
from rerank.pool import check_visible
from rerank.storage.arrays import read_array, save_arrays
from rerank.storage.files import new_directory, new_file, remove
from rerank.storage.strict_json import as_json

ABOUT = "about.json"  # in a block's directory
TABLE = "table.npy"  # in the spool: the hashes of the table's features
T = TypeVar("T")


class Texts(NamedTuple):
    """The texts of a block's symbols."""

    text_hashes: np.ndarray  # uint64 [n]
    text_first: np.ndarray  # int64 [n + 1]: text i is text_bytes[text_first[i]:text_first[i + 1]]
    text_bytes: np.ndarray  # uint8

    @staticmethod
    def of(symbols: SymbolTable) -> "Texts":
        """All texts of a table."""
        texts = [symbols.text(i).encode("utf-8", "surrogateescape") for i in range(len(symbols))]
        first = np.zeros(len(texts) + 1, np.int64)
        np.cumsum([len(text) for text in texts], out=first[1:])
        return Texts(np.array(symbols.hashes), first, np.frombuffer(b"".join(texts), np.uint8))

    def some(self, hashes: np.ndarray) -> dict[int, str]:
        """The texts of those ``hashes`` (uint64) that are here, by hash."""
        texts = {}
        for i in np.flatnonzero(np.isin(self.text_hashes, hashes)):
            text = self.text_bytes[self.text_first[i] : self.text_first[i + 1]].tobytes()
            texts[int(self.text_hashes[i])] = text.decode("utf-8", "surrogateescape")
        return texts


class Shared(NamedTuple):
    """For hashed features: the whole hash of the first of every identity, and whether others share the identity."""

    owner: np.ndarray  # uint64 [U]
    shared: np.ndarray  # bool [U]


@dataclass(frozen=True)
class Spool:
    """The directory where blocks are left, by number and name of array."""

    directory: str

    def path(self, number: int) -> Path:
        """The directory of a block."""
        return Path(self.directory) / f"{number:06d}"

    def save(self, number: int, arrays: dict[str, np.ndarray], about: Mapping[str, Any]) -> None:
        """Leave a block; one that is there already, of a task that was done twice, is the same."""
        check_visible(self.directory)
        with new_directory(self.path(number), keep=True, synced=False) as new:
            save_arrays(new, arrays)
            sizes = {file.name: file.stat().st_size for file in new.iterdir()}
            (new / ABOUT).write_text(as_json({**about, "sizes": sizes}))

    def about(self, number: int) -> dict[str, Any] | None:
        """The record of a block that an extraction has left which was stopped; None where it is not all there."""
        path = self.path(number)
        with suppress(OSError, ValueError, KeyError):  # not there, or not all of it: blocks are not synced
            about = json.loads((path / ABOUT).read_text())
            if all((path / name).stat().st_size == size for name, size in about.pop("sizes").items()):
                return dict(about)
        remove(path)
        return None

    def array(self, number: int, name: str) -> np.ndarray:
        """An array of a block, memory-mapped."""
        return np.asarray(read_array(self.path(number) / f"{name}.npy", mmap=True))

    def load(self, number: int, kind: Callable[..., T]) -> T:
        """Arrays of a block, memory-mapped; ``kind`` is one of the tuples of arrays here."""
        return kind(*(self.array(number, name) for name in kind._fields))  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Numbering:
    """The columns that the features of blocks have.

    table: a file with a FeatureTable's hashes, None for hashed columns; width, free: how many columns there are, and
    how many of them are free; known: the columns were known before the lists were read, and blocks have them already.
    """

    spool: Spool
    table: str | None
    width: int
    free: int
    known: bool

    @staticmethod
    def of(table: Table, spool: Spool, *, known: bool) -> "Numbering":
        """The columns of ``table``, which is left in the spool."""
        if isinstance(table, HashedTable):
            return Numbering(spool, None, table.width, 0, known)
        with new_file(place := Path(spool.directory, TABLE)) as new, new.open("wb") as out:
            np.save(out, table.hashes, allow_pickle=False)
        return Numbering(spool, str(place), table.width, table.free, known)

    def of_block(self, block: int) -> np.ndarray | None:
        """int32 [U]: the columns of a block's features; None if it has columns."""
        return None if self.known else self.of_features(self.spool.array(block, "hashes"))

    def of_features(self, hashes: np.ndarray) -> np.ndarray:
        """int32 [F]: the columns of features, ABSENT for those that have none."""
        if self.table is None:
            return hashed_columns(hashes)
        return numbers_of(_index(self.table, Path(self.table).stat().st_ino), hashes)


@lru_cache(maxsize=1)
def _index(table: str, inode: int) -> HashIndex:  # noqa: ARG001 - inode: another table may get the same name
    return index_of(read_array(Path(table), np.uint64, 1))
