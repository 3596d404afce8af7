"""Texts as scorers see them, code points and words, and how many n-grams a text shares with its references."""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rerank.base.encoding import decoded
from rerank.data.corpus import frozen, offsets
from rerank.data.symbols import combine, find_slot
from rerank.data.tokens import Tokens, tokenise
from rerank.kernels.compile import kernel

# What ``str.split`` splits at and ``tokenise`` does not: some of ASCII's control characters, and Unicode's white space.
_ODD = re.compile(rb"[\x1c-\x1f]|\xc2[\x85\xa0]|\xe1\x9a\x80|\xe2(?:\x80[\x80-\x8a\xa8\xa9\xaf]|\x81\x9f)|\xe3\x80\x80")
_SUSPECT = b"\x1c\x1d\x1e\x1f\xc2\xe1\xe2\xe3"  # with which that begins
_MARKED = re.compile(r"(.+)([!-/:-@[-`{-~])|([!-/:-@[-`{-~])(.+)")  # ASCII's 32 marks
_SPACE = np.array([chr(point).isspace() for point in range(0x3002)])  # the last stands for all after it
BEYOND = 1 << 32  # where numbers of words begin, so that none is a code point
FREE = np.uint64(0)


def words(texts: Sequence[bytes]) -> Tokens:
    """The words of T texts as hashes, cut at all Unicode white space, like ``str.split``."""
    raw = b"".join(texts)
    if len(raw.translate(None, _SUSPECT)) < len(raw):
        texts = [_ODD.sub(b" ", text) for text in texts]
    return tokenise(texts)


def words_and_marks(texts: Sequence[bytes]) -> Tokens:
    """Words by number; an ASCII mark at a word's end, or else at its beginning, is a word of its own."""
    number: dict[str, int] = {}
    cut = [[part for word in decoded(text).split() for part in _parts(word)] for text in texts]
    numbers = [number.setdefault(part, BEYOND + len(number)) for parts in cut for part in parts]
    return Tokens(offsets(list(map(len, cut))), np.array(numbers, np.uint64))


def _parts(word: str) -> Sequence[str]:
    return [part for part in marked.groups() if part] if (marked := _MARKED.fullmatch(word)) else (word,)


def characters(texts: Sequence[bytes], *, space: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """The code points of T texts, with white ``space`` or without it; a byte that is not UTF-8 is one of its own.

    int64 [T + 1] and uint32, read-only: those of text t are ``points[first[t]:first[t + 1]]``.
    """
    strings = [decoded(text) for text in texts]
    first = offsets(list(map(len, strings)))
    points = np.frombuffer("".join(strings).encode("utf-32-le", "surrogatepass"), "<u4")
    if space:
        return first, points
    stays = ~_SPACE[np.minimum(points, _SPACE.size - 1)]
    return offsets(stays)[first], frozen(points[stays])


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
