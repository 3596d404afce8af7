"""Texts as scorers see them, code points and words, and how many n-grams a text shares with its references."""

import re
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from rerank.data.symbols import combine, find_slot
from rerank.data.tokens import Tokens, lines, words_of_lines
from rerank.kernels.compile import kernel

_SPACE = re.compile(r"[^\S\x00-\x7f]")
_MARK, _PART = rb"[!-/:-@\[-`{-~]", rb"[^ \t-\r\x1c-\x1f]"  # punctuation of ASCII; what white space does not cut
# What a blank comes after: a word up to a mark at its end, else a mark at its beginning.
_EDGE = re.compile(rb"(?<!%b)(?:%b+(?=%b(?!%b))|%b(?=%b))" % (_PART, _PART, _MARK, _PART, _MARK, _PART))
FREE = np.uint64(0)


def blanked(raw: bytes) -> np.ndarray:
    """UTF-8 text (uint8, read-only) with blanks for the white space that is not ASCII's."""
    if not raw.isascii():
        raw = _SPACE.sub(" ", raw.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
    return np.frombuffer(raw, np.uint8)


def words(texts: Sequence[bytes]) -> Tokens:
    """The words of T texts as hashes, cut at all Unicode white space, like ``str.split``."""
    return words_of_lines(blanked(lines(texts)), len(texts), 1)


def words_and_marks(texts: Sequence[bytes]) -> Tokens:
    """Words as hashes; an ASCII mark at a word's end, or else at its beginning, is a word of its own."""
    apart = _EDGE.sub(rb"\g<0> ", blanked(lines(texts)).tobytes())
    return words_of_lines(np.frombuffer(apart, np.uint8), len(texts), 1)


def characters(texts: Sequence[bytes], *, space: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """The code points of T texts, with white ``space`` or without it; a byte that is not UTF-8 is one of its own.

    int64 [T + 1] and uint32, read-only: those of text t are ``points[first[t]:first[t + 1]]``.
    """
    strings = [text.decode("utf-8", "surrogateescape") for text in texts]
    strings = strings if space else ["".join(text.split()) for text in strings]
    first = np.fromiter(accumulate(map(len, strings), initial=0), np.int64, len(texts) + 1)
    return first, np.frombuffer("".join(strings).encode("utf-32-le", "surrogatepass"), "<u4")


class NgramTable(NamedTuple):
    """N-grams by hash (open addressing), a power of two in size; of these arrays, ``keys`` alone begins with zeros."""

    keys: np.ndarray  # uint64: the n-gram's hash, 0: free
    limit: np.ndarray  # int32: how often it is in the reference that has it most often
    seen: np.ndarray  # int32: how often it was counted in the text ``stamp``
    stamp: np.ndarray  # int32: the number of the last text that has it, from 0


def ngram_table(ngrams: int) -> NgramTable:
    """A table with room for ``ngrams`` n-grams at a load of at most one half."""
    capacity = 1 << int(2 * ngrams + 1).bit_length()
    return NgramTable(np.zeros(capacity, np.uint64), *(np.empty(capacity, np.int32) for _ in range(3)))


@kernel
def _slot(table: NgramTable, h: np.uint64) -> int:
    """The slot of an n-gram by its hash, or the free one where it belongs; no hash is that of a free slot."""
    return int(find_slot(table.keys, h if h != FREE else np.uint64(1)))


@kernel
def enter_ngrams(symbols: np.ndarray, order: int, seed: np.uint64, text: int, table: NgramTable) -> None:
    """Add the n-grams of up to ``order`` symbols of reference ``text``; a hash continues that of one symbol less."""
    for i in range(symbols.shape[0]):
        h = seed
        for j in range(i, min(i + order, symbols.shape[0])):
            h = combine(h, np.uint64(symbols[j]))
            slot = _slot(table, h)
            if table.keys[slot] == FREE:
                table.keys[slot] = h if h != FREE else np.uint64(1)
                table.limit[slot], table.stamp[slot] = 0, -1
            if table.stamp[slot] != text:
                table.stamp[slot], table.seen[slot] = text, 0
            table.seen[slot] += 1
            table.limit[slot] = max(table.limit[slot], table.seen[slot])


@kernel
def match_ngrams(
    symbols: np.ndarray, order: int, seed: np.uint64, text: int, table: NgramTable, row: np.ndarray, step: int
) -> None:
    """Add to row[step * (n - 1)] how many n-grams of a text are in a reference; none longer than one that is not."""
    L = symbols.shape[0]
    for i in range(L):
        h = seed
        for n in range(min(order, L - i)):
            h = combine(h, np.uint64(symbols[i + n]))
            slot = _slot(table, h)
            if table.keys[slot] == FREE:
                break
            if table.stamp[slot] != text:
                table.stamp[slot], table.seen[slot] = text, 0
            if table.seen[slot] < table.limit[slot]:
                table.seen[slot] += 1
                row[step * n] += 1
