"""Texts as scorers see them: code points, and words cut at all Unicode white space, like ``str.split``."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rerank.data.symbols import combine, mix, text_hash
from rerank.data.tokens import Tokens
from rerank.kernels.compile import kernel

_WORD = np.uint64(text_hash("word"))


class Characters(NamedTuple):
    """The code points of T texts, one text after the other."""

    first: np.ndarray  # int64 [T + 1]: those of text t are first[t]..first[t + 1]
    points: np.ndarray  # uint32 [n], read-only


def characters(texts: Sequence[bytes]) -> Characters:
    """The code points of UTF-8 ``texts``; a byte that is not UTF-8 is one of its own."""
    strings = [text.decode("utf-8", "surrogateescape") for text in texts]
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


_ONE = np.uint64(1)
_SPACE = np.array([byte in (0, *range(9, 14), *range(28, 33)) for byte in range(256)])  # with 0, which ends a text
# A byte turns the hash h of what precedes it into h·f + a, (f, a) = _STEP[byte]: a polynomial with random coefficients.
_STEP = np.random.default_rng(8).integers(0, 2**63, (256, 2), np.uint64) * np.uint64(2) + _ONE
_STEP[:, 0] = 0x9E3779B97F4A7C15
_STEP[_SPACE] = 0


@kernel
def blank_spaces(data: np.ndarray) -> None:
    """Overwrite the non-ASCII white space of UTF-8 text (uint8) with blanks."""
    last = data.shape[0] - 1
    for i in range(last):
        byte = data[i]
        if byte == 0xC2:  # next line, no-break space
            if data[i + 1] == 0x85 or data[i + 1] == 0xA0:
                data[i : i + 2] = 32
        elif 0xE1 <= byte <= 0xE3 and i + 1 < last:
            second, third = data[i + 1], data[i + 2]
            if (
                (byte == 0xE1 and second == 0x9A and third == 0x80)  # Ogham space mark
                or (
                    byte == 0xE2
                    and second == 0x80
                    and (0x80 <= third <= 0x8A or 0xA8 <= third <= 0xA9 or third == 0xAF)
                )
                or (byte == 0xE2 and second == 0x81 and third == 0x9F)  # mathematical space
                or (byte == 0xE3 and second == 0x80 and third == 0x80)  # ideographic space
            ):
                data[i : i + 3] = 32


@kernel
def cut(data: np.ndarray, first: np.ndarray, hashes: np.ndarray) -> bool:
    """Hash the words of texts that each end in a NUL (uint8; int64 [T + 1]; uint64, room for a word per two bytes).

    There is no branch on what a byte is, as the ends of words cannot be predicted: every byte writes a hash, and those
    that are not overwritten are the words'. Returns False, and nothing of use, if there are more NULs than texts.
    """
    first[0] = 0
    h, inside, count, text = np.uint64(0), np.uint64(0), np.uint64(0), np.uint64(0)
    for i in range(data.shape[0]):
        byte = data[i]
        now = _STEP[byte, 0] & _ONE  # 1: part of a word
        hashes[count] = h
        count += inside & ~now
        inside = now
        h = h * _STEP[byte, 0] + _STEP[byte, 1]
        if byte == 0:
            text += _ONE
            if text == np.uint64(first.shape[0]):
                return False
            first[text] = count
    for i in range(count):
        h = mix(hashes[i])
        hashes[i] = h if h != np.uint64(0) else _ONE
    return True


def joined(texts: Sequence[bytes]) -> np.ndarray:
    """The bytes of ``texts`` (uint8, read-only) for ``cut``: each followed by a NUL, with only ASCII white space."""
    raw = b"\0".join([*texts, b""])
    data = np.frombuffer(raw, np.uint8)
    if not raw.isascii():
        data = data.copy()
        blank_spaces(data)
        data.flags.writeable = False  # as the kernels are compiled for
    return data


def words(texts: Sequence[bytes]) -> Tokens:
    """The words of T texts as hashes of their bytes (not those of ``tokens.tokenise``), never 0."""
    data = joined(texts)
    first, hashes = np.empty(len(texts) + 1, np.int64), np.empty(data.size // 2 + 1, np.uint64)
    if not cut(data, first, hashes):  # a NUL is part of a word: replace it by two bytes that are not UTF-8
        return words([text.replace(b"\0", b"\xc0\x80") for text in texts])
    return Tokens(first, hashes[: first[-1]])
