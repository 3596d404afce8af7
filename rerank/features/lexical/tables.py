"""The tables of IBM model 1 in both directions, as flat arrays: what a model keeps of them, and how it is checked."""

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

DIRECTIONS = "forward", "backward"


class Translations(NamedTuple):
    """t(w | g) of V words w given G words g of the other language, where it is not small.

    Word 0 of either language stands for all rare and unknown words. Row 0 is the empty word, row 1 + g the word g.
    """

    first: np.ndarray  # int64 [G + 2]: the cells of row r are first[r]..first[r + 1]
    word: np.ndarray  # int32 [C]: the translated words, rising within a row
    probability: np.ndarray  # float32 [C]: t(w | g), above 0
    share: np.ndarray  # float64 [V]: the share of every word among all words, above 0
    fertility: np.ndarray  # float64 [G + 1]: how many words the given word of a row is translated to on average


class LexicalTables(NamedTuple):
    """Translations of target words given those of the source (``forward``), and the reverse (``backward``)."""

    source: np.ndarray  # uint64 [S]: hashes of the words of the source, rising; word 1 + i is source[i]
    target: np.ndarray  # uint64 [T]
    forward: Translations
    backward: Translations

    def arrays(self) -> dict[str, np.ndarray]:
        """All arrays by name."""
        return dict(zip(self.names(), (self.source, self.target, *self.forward, *self.backward), strict=True))

    @staticmethod
    def names() -> list[str]:
        """The names of ``arrays``."""
        own = [f"{direction}_{name}" for direction in DIRECTIONS for name in Translations._fields]
        return [*LexicalTables._fields[:2], *own]

    @staticmethod
    def of(arrays: Mapping[str, np.ndarray]) -> "LexicalTables":
        """The inverse of ``arrays``."""
        source, target, *others = (_frozen(arrays[name]) for name in LexicalTables.names())
        size = len(Translations._fields)
        tables = LexicalTables(source, target, Translations(*others[:size]), Translations(*others[size:]))
        for words in (tables.source, tables.target):
            if words.dtype != np.uint64 or words.ndim != 1 or np.any(words[1:] <= words[:-1]):
                raise ValueError("the words of its lexical tables are not hashes that rise")
        sizes = tables.source.size + 1, tables.target.size + 1
        _check(tables.forward, *sizes)
        _check(tables.backward, *sizes[::-1])
        return tables

    def __reduce__(self) -> tuple[Any, ...]:
        """For another process, where the arrays are as little to be written as here."""
        return LexicalTables.of, (self.arrays(),)

    @property
    def digest(self) -> str:
        """SHA-256 of all arrays."""
        found = hashlib.sha256()
        for name, array in self.arrays().items():
            found.update(f"{name} {array.dtype} {array.shape}\n".encode())
            found.update(np.ascontiguousarray(array).tobytes())
        return found.hexdigest()


def same_tables(a: LexicalTables | None, b: LexicalTables | None) -> bool:
    """Do both hold the same, or are there none?"""
    return (a.digest if a is not None else None) == (b.digest if b is not None else None)


def word_numbers(words: np.ndarray, hashes: np.ndarray) -> np.ndarray:
    """int32 [n]: which of ``words`` (uint64, rising) have these ``hashes``, counted from 1; 0 for others."""
    if not words.size:
        return np.zeros(hashes.size, np.int32)
    place = np.minimum(np.searchsorted(words, hashes), words.size - 1)
    return np.where(words[place] == hashes, place + 1, 0).astype(np.int32)


def _frozen(array: np.ndarray) -> np.ndarray:
    """A view of an array that cannot be written: kernels are compiled for that alone."""
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view


def _check(found: Translations, given: int, words: int) -> None:
    """Raise a ValueError unless the cells are of ``given`` × ``words`` words: kernels find their places by them."""
    cells = (found.word.size,)
    expected = (
        (np.int64, (given + 2,)),
        (np.int32, cells),
        (np.float32, cells),
        (np.float64, (words,)),
        (np.float64, (given + 1,)),
    )
    for name, array, (dtype, shape) in zip(Translations._fields, found, expected, strict=True):
        if array.dtype != dtype or array.shape != shape:
            raise ValueError(f"{name} of its lexical tables is {array.dtype} {array.shape}; expected {dtype} {shape}")
    begins = np.zeros(found.word.size + 1, np.bool_)
    if found.first[0] != 0 or found.first[-1] != found.word.size or np.any(np.diff(found.first) < 0):
        raise ValueError("the rows of its lexical tables are out of order")
    begins[found.first] = True
    if found.word.size and not (
        found.word.min() >= 0 and found.word.max() < words and np.all(begins[1:-1] | (np.diff(found.word) > 0))
    ):
        raise ValueError("the cells of its lexical tables are out of order")
    for name in ("probability", "share"):
        array = getattr(found, name)
        if not np.all((array > 0) & (array <= 1)):
            raise ValueError(f"{name} of its lexical tables holds what is no probability")
    if not np.all((found.fertility >= 0) & np.isfinite(found.fertility)):
        raise ValueError("a fertility in its lexical tables is below 0 or not finite")
