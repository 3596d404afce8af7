"""IBM model 1: probabilities of words given words of another language, by EM (Brown et al. 1993, section 4.1).

    p(w_1..w_n | g_1..g_m) = Π_j 1/(m + 1) Σ_{i=0..m} t(w_j | g_i),  g_0 the empty word,

for which EM's next t is the share of the expected counts

    c(w | g) = Σ_pairs Σ_{j: w_j = w} Σ_{i: g_i = g} t(w | g) / Σ_{k=0..m} t(w | g_k).

The likelihood never falls; all t start equal. Only cells of words that occur together exist. Words that occur once are
one word, the unknown, which thereby gets probabilities that words never seen can have; for the same reason cells that
do not exist, or are small, are smoothed where the tables are used (see ``columns``), as Moore (2004) advises, if not
in his way.
"""

import logging
from typing import NamedTuple

import numpy as np

from rerank.data.symbols import find_slot, mix
from rerank.data.tokens import Tokens
from rerank.features.lexical.tables import LexicalTables, Translations, word_numbers
from rerank.kernels.compile import kernel

log = logging.getLogger("rerank")
LEAST = 2  # a word that occurs less often is unknown
SMALL = 1e-3  # cells below are left out
MOST = 1 << 26  # word pairs, each of which takes 4 bytes while the tables are made
ROOM = 1 << 16  # cells that the first attempt has room for
TINY = float(np.finfo(np.float64).tiny)  # what a row gives may come to nothing, after very many iterations


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
    """What EM has found."""

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
    (source, source_texts), (target, target_texts) = (_numbered(each, chosen) for each in (sources, targets))
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
    found, counts = np.unique(some.hashes, return_counts=True)
    words = found[counts >= LEAST]
    return words, NumberedTexts(some.first, word_numbers(words, some.hashes))
