"""IBM model 1: probabilities of words given words of another language, by EM (Brown et al. 1993, section 4.1).

    p(w_1..w_n | g_1..g_m) = Π_j 1/(m + 1) Σ_{i=0..m} t(w_j | g_i),  g_0 the empty word,

for which EM's next t is the share of the expected counts

    c(w | g) = Σ_pairs Σ_{j: w_j = w} Σ_{i: g_i = g} t(w | g) / Σ_{k=0..m} t(w | g_k).

The likelihood never falls; all t start equal. Only cells of words that occur together exist. Words that occur once are
one word, the unknown, which thereby gets probabilities that words never seen can have; for the same reason cells that
do not exist, or are small, are smoothed where the tables are used (see ``text/lexical.py``), as Moore (2004) advises,
if not in his way.
"""

import hashlib
import logging
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from rerank.data.corpus import frozen
from rerank.data.symbols import find_slot, mix
from rerank.data.tokens import Tokens
from rerank.kernels.compile import kernel

log = logging.getLogger("rerank")
LEAST = 2  # a word that occurs less often is unknown
SMALL = 1e-3  # cells below are left out
MOST = 1 << 26  # word pairs, each of which takes 4 bytes while the tables are made
ROOM = 1 << 16  # cells that the first attempt has room for
TINY = float(np.finfo(np.float64).tiny)  # what a row gives may come to nothing, after very many iterations
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
        directed = [f"{direction}_{name}" for direction in DIRECTIONS for name in Translations._fields]
        return [*LexicalTables._fields[:2], *directed]

    @staticmethod
    def of(arrays: Mapping[str, np.ndarray]) -> "LexicalTables":
        """The inverse of ``arrays``."""
        source, target, *others = (frozen(arrays[name]) for name in LexicalTables.names())
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
        digest = hashlib.sha256()
        for name, array in self.arrays().items():
            digest.update(f"{name} {array.dtype} {array.shape}\n".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()


def same_tables(a: LexicalTables | None, b: LexicalTables | None) -> bool:
    """Whether both hold the same, or neither is there."""
    return (a.digest if a is not None else None) == (b.digest if b is not None else None)


def word_numbers(words: np.ndarray, hashes: np.ndarray) -> np.ndarray:
    """int32 [n]: which of ``words`` (uint64, rising) have these ``hashes``, counted from 1; 0 for others."""
    if not words.size:
        return np.zeros(hashes.size, np.int32)
    place = np.minimum(np.searchsorted(words, hashes), words.size - 1)
    return np.where(words[place] == hashes, place + 1, 0).astype(np.int32)


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


class NumberedTexts(NamedTuple):
    """The words of P texts as numbers."""

    first: np.ndarray  # int64 [P + 1]: the words of text p are first[p]..first[p + 1]
    words: np.ndarray  # int32 [n]: 0 is the unknown word


class Cells(NamedTuple):
    """The C pairs of a given word and a word that occur together, in the order of their first appearance."""

    row: np.ndarray  # int32 [C]: 0 for the empty word, 1 + g for the given word g
    word: np.ndarray  # int32 [C]
    cell: (
        np.ndarray
    )  # int32: for every pair of texts, for every word, the cells of the given words, the empty one first


@kernel
def number_cells(
    given: NumberedTexts, texts: NumberedTexts, keys: np.ndarray, number: np.ndarray, row: np.ndarray, word: np.ndarray,
    cell: np.ndarray,
) -> int:  # fmt: skip
    """Fill the arrays of ``Cells``; returns how many there are, -1 if ``row`` and ``word`` have too little room.

    Scratch: keys (uint64, zeroed, a power of two, twice that room at least) and number (int32), of one size.
    """
    seen, at = 0, 0
    for p in range(texts.first.shape[0] - 1):
        for j in range(texts.first[p], texts.first[p + 1]):
            for i in range(given.first[p] - 1, given.first[p + 1]):
                r = 1 + given.words[i] if i >= given.first[p] else 0
                h = mix((np.uint64(r) << np.uint64(32)) + np.uint64(texts.words[j]) + np.uint64(1))
                slot = find_slot(keys, h)  # mix is one-to-one: equal hashes are equal cells
                if keys[slot] != h:
                    if seen == row.shape[0]:
                        return -1
                    keys[slot], number[slot], row[seen], word[seen] = h, seen, r, texts.words[j]
                    seen += 1
                cell[at] = number[slot]
                at += 1
    return seen


@kernel
def expect(given: NumberedTexts, texts: NumberedTexts, cell: np.ndarray, t: np.ndarray, counts: np.ndarray) -> float:
    """Add the expected count of every cell to ``counts`` (float64 [C], zeroed); returns log p of all texts."""
    at, likelihood = 0, 0.0
    for p in range(texts.first.shape[0] - 1):
        rows = given.first[p + 1] - given.first[p] + 1
        for _ in range(texts.first[p], texts.first[p + 1]):
            total = 0.0
            for i in range(rows):
                total += t[cell[at + i]]
            for i in range(rows):
                counts[cell[at + i]] += t[cell[at + i]] / total
            likelihood += np.log(total / rows)
            at += rows
    return likelihood


def occurring_cells(given: NumberedTexts, texts: NumberedTexts) -> Cells:
    """The cells of pairs of texts."""
    total = int(cell_counts(given.first, texts.first).sum())
    cell, room = np.empty(total, np.int32), min(ROOM, total)
    while True:
        size = 1 << (2 * room + 1).bit_length()
        row, word = np.empty(room, np.int32), np.empty(room, np.int32)
        seen = number_cells(given, texts, np.zeros(size, np.uint64), np.empty(size, np.int32), row, word, cell)
        if seen >= 0:
            return Cells(row[:seen], word[:seen], cell)
        room = min(4 * room, total)


def cell_counts(given: np.ndarray, texts: np.ndarray) -> np.ndarray:
    """int64 [P]: how many pairs of words each pair of texts has, whose words begin at these places (int64 [P + 1])."""
    return np.asarray((np.diff(given) + 1) * np.diff(texts))


class Trained(NamedTuple):
    """The result of EM."""

    cells: Cells
    t: np.ndarray  # float64 [C]: t of every cell
    expected: np.ndarray  # float64 [G + 1]: how many words every row was expected to give in the last iteration
    likelihood: list[float]  # log p of all texts, before every iteration


def train(given: NumberedTexts, known: int, texts: NumberedTexts, words: int, iterations: int) -> Trained:
    """EM over pairs of texts; known, words: how many words there are, given and translated."""
    cells = occurring_cells(given, texts)
    t, likelihood = np.full(cells.row.size, 1 / words), list[float]()
    expected: np.ndarray = np.zeros(known + 1)
    for _ in range(iterations):
        counts = np.zeros(t.size)
        likelihood.append(expect(given, texts, cells.cell, t, counts))
        expected = np.bincount(cells.row, counts, minlength=known + 1)
        t = counts / np.maximum(expected, TINY)[cells.row]
    return Trained(cells, t, expected, likelihood)


def translations(given: NumberedTexts, known: int, texts: NumberedTexts, words: int, iterations: int) -> Translations:
    """One direction; the parameters are those of ``train``."""
    cells, t, expected, _ = train(given, known, texts, words, iterations)
    kept = np.flatnonzero(t >= SMALL)
    kept = kept[np.lexsort((cells.word[kept], cells.row[kept]))]
    first = np.searchsorted(cells.row[kept], np.arange(known + 2))
    share = (np.bincount(texts.words, minlength=words) + 1) / (texts.words.size + words)
    times = np.concatenate([[given.first.size - 1], np.bincount(given.words, minlength=known)])  # every row occurs
    return Translations(first, cells.word[kept], t[kept].astype(np.float32), share, expected / np.maximum(times, 1))


def estimate(sources: Tokens, targets: Tokens, iterations: int) -> LexicalTables:
    """The tables of pairs of a source and its translation: text p of both. Of more than ``MOST`` pairs of words in all,
    the texts that have the fewest are used, and the log says so."""
    size = np.maximum(cell_counts(sources.first, targets.first), cell_counts(targets.first, sources.first))
    order = np.argsort(size, kind="stable")
    if size.sum() > MOST:
        order = order[np.cumsum(size[order]) <= MOST]
        log.info("lexical tables: of the %s shortest of %s pairs of texts", f"{order.size:,}", f"{size.size:,}")
    chosen = np.sort(order)
    (source, source_texts), (target, target_texts) = (_numbered(side, chosen) for side in (sources, targets))
    known, words = source.size + 1, target.size + 1
    forward = translations(source_texts, known, target_texts, words, iterations)
    backward = translations(target_texts, words, source_texts, known, iterations)
    return LexicalTables.of(LexicalTables(source, target, forward, backward).arrays())


def some_texts(tokens: Tokens, chosen: np.ndarray) -> Tokens:
    """The texts with the numbers ``chosen`` (int64, rising)."""
    lengths = np.diff(tokens.first)
    kept = np.zeros(lengths.size, np.bool_)
    kept[chosen] = True
    first = np.concatenate([[0], np.cumsum(lengths[chosen])])
    return Tokens(first, tokens.hashes[np.repeat(kept, lengths)])


def _numbered(tokens: Tokens, chosen: np.ndarray) -> tuple[np.ndarray, NumberedTexts]:
    """The words that are not rare (uint64, rising), and the chosen texts in their numbers."""
    some = some_texts(tokens, chosen)
    hashes, counts = np.unique(some.hashes, return_counts=True)
    words = hashes[counts >= LEAST]
    return words, NumberedTexts(some.first, word_numbers(words, some.hashes))
