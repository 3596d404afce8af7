"""Texts as Unicode code points, on which chrF works."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rerank.data.symbols import combine, text_hash
from rerank.data.tokens import Tokens
from rerank.kernels.compile import kernel

_WORD = np.uint64(text_hash("word"))


class Characters(NamedTuple):
    """The code points of T texts, one text after the other."""

    first: np.ndarray  # int64 [T + 1]: those of text t are first[t]..first[t + 1]
    points: np.ndarray  # uint32 [n], read-only


def characters(texts: Sequence[bytes], *, lowercase: bool = False) -> Characters:
    """The code points of UTF-8 ``texts``, lower-cased on request; a byte that is not UTF-8 is one of its own."""
    strings = [text.decode("utf-8", "surrogateescape") for text in texts]
    if lowercase:
        strings = [string.lower() for string in strings]
    first = np.zeros(len(strings) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, strings), np.int64, len(strings)), out=first[1:])
    return Characters(first, np.frombuffer("".join(strings).encode("utf-32-le", "surrogatepass"), "<u4"))


def without_space(texts: Characters) -> Characters:
    """The same texts without white space."""
    first, points = np.empty_like(texts.first), np.empty_like(texts.points)
    _drop_space(texts.first, texts.points, first, points)
    points.flags.writeable = False
    return Characters(first, points[: first[-1]])


def words_and_marks(texts: Characters) -> Tokens:
    """The words of ``texts`` as hashes; an ASCII mark at a word's end, or else at its beginning, is its own word."""
    first, hashes = np.empty_like(texts.first), np.empty(texts.points.size, np.uint64)
    _cut_words(texts.first, texts.points, first, hashes)
    return Tokens(first, hashes[: first[-1]])


@kernel
def is_space(point: int) -> bool:
    """Whether Python's ``str.split`` splits at this code point."""
    if point < 0x85:
        return point == 0x20 or 0x09 <= point <= 0x0D or 0x1C <= point <= 0x1F
    return (
        point == 0x85 or point == 0xA0 or point == 0x1680 or 0x2000 <= point <= 0x200A
        or point == 0x2028 or point == 0x2029 or point == 0x202F or point == 0x205F or point == 0x3000
    )  # fmt: skip


@kernel
def is_punctuation(point: int) -> bool:
    """Whether this is one of ASCII's 32 marks (Python's ``string.punctuation``)."""
    return 0x21 <= point <= 0x2F or 0x3A <= point <= 0x40 or 0x5B <= point <= 0x60 or 0x7B <= point <= 0x7E


@kernel
def _drop_space(first: np.ndarray, points: np.ndarray, new_first: np.ndarray, new_points: np.ndarray) -> None:
    count = 0
    for t in range(first.shape[0] - 1):
        new_first[t] = count
        for i in range(first[t], first[t + 1]):
            if not is_space(points[i]):
                new_points[count] = points[i]
                count += 1
    new_first[first.shape[0] - 1] = count


@kernel
def _hash_word(points: np.ndarray, first: int, last: int) -> np.uint64:
    h = _WORD
    for i in range(first, last):
        h = combine(h, np.uint64(points[i]))
    return h


@kernel
def _cut_words(first: np.ndarray, points: np.ndarray, word_first: np.ndarray, hashes: np.ndarray) -> None:
    count = 0
    for t in range(first.shape[0] - 1):
        word_first[t] = count
        i, end = first[t], first[t + 1]
        while i < end:
            if is_space(points[i]):
                i += 1
                continue
            begin = i
            while i < end and not is_space(points[i]):
                i += 1
            cut = i  # where the word's second part begins
            if i - begin > 1:
                if is_punctuation(points[i - 1]):
                    cut = i - 1
                elif is_punctuation(points[begin]):
                    cut = begin + 1
            hashes[count] = _hash_word(points, begin, cut)
            count += 1
            if cut < i:
                hashes[count] = _hash_word(points, cut, i)
                count += 1
    word_first[first.shape[0] - 1] = count
