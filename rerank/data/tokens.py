"""Texts as sequences of words: 64-bit hashes in flat arrays, cut at white space."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rerank.data.symbols import FNV_OFFSET, FNV_PRIME, SymbolTable, find_slot, finished
from rerank.kernels.compile import kernel

_ROOM = 1 << 12  # new words that the first attempt has room for
# By which a byte continues a hash (see symbols.hash_bytes), 0 if it is white space: in C and, below, for str.split.
_WHITE = b" \t\n\v\f\r", b" \t\n\v\f\r\x1c\x1d\x1e\x1f"
FACTORS = np.array([[0 if byte in white else int(FNV_PRIME) for byte in range(256)] for white in _WHITE], np.uint64)


class Tokens(NamedTuple):
    """The words of T texts, one text after the other."""

    first: np.ndarray  # int64 [T + 1]: the words of text t are first[t]..first[t + 1]
    hashes: np.ndarray  # uint64 [n]: see symbols.hash_bytes


@kernel
def cut_words(data: np.ndarray, controls: int, first: np.ndarray, hashes: np.ndarray) -> bool:
    """Hash the words of texts that each end in a line feed (uint8; int64 [T + 1]; uint64, room for a word per two
    bytes). Returns False, and nothing of use, if there are more line feeds than texts.

    White space is ASCII's; with ``controls`` (1, not 0), the separators of files, groups, records and units too.
    No branch depends on whether a byte is white space, as ends of words cannot be predicted: every byte writes the hash
    of what precedes it in its word, and those that are not overwritten are the words'.
    """
    first[0] = 0
    h, inside, count, text = np.uint64(0), np.uint64(0), np.uint64(0), 0
    for i in range(data.shape[0]):
        factor = FACTORS[controls, data[i]]
        hashes[count] = h
        count += inside & ~factor
        h = (h ^ (np.uint64(data[i]) ^ (FNV_OFFSET & (inside - np.uint64(1))))) * factor
        inside = factor & np.uint64(1)
        if data[i] == 10:
            text += 1
            if text == first.shape[0]:
                return False
            first[text] = count
    for i in range(count):
        hashes[i] = finished(hashes[i])
    return True


@kernel
def enter_words(
    data: np.ndarray, hashes: np.ndarray, keys: np.ndarray, ids: np.ndarray, known: int, new: np.ndarray
) -> int:
    """Add the words of ``cut_words`` that ``keys, ids`` (a HashIndex with room) lack, as ids known, known + 1, ...

    Their places (first and last byte) go to ``new`` (int64 [:, 2]); returns how many there are, -1 if ``new`` is full.
    """
    at, fresh, position = 0, 0, 0
    while at < hashes.shape[0]:
        if FACTORS[0, data[position]] == np.uint64(0):
            position += 1
            continue
        begin = position
        while FACTORS[0, data[position]] != np.uint64(0):
            position += 1
        slot = find_slot(keys, hashes[at])
        if keys[slot] != hashes[at]:
            if fresh == new.shape[0]:
                return -1
            keys[slot], ids[slot] = hashes[at], known + fresh
            new[fresh, 0], new[fresh, 1] = begin, position
            fresh += 1
        at += 1
    return fresh


def lines(texts: Sequence[bytes]) -> bytes:
    """The texts, each with a line feed at its end, and none within."""
    if b"\n" in b"".join(texts):
        texts = [text.replace(b"\n", b" ") for text in texts]
    return b"\n".join([*texts, b""])


def words_of_lines(data: np.ndarray, texts: int, controls: int = 0) -> Tokens:
    """The words of so many ``lines`` (uint8, read-only); ``controls`` are those of ``cut_words``."""
    first, hashes = np.empty(texts + 1, np.int64), np.empty(data.size // 2 + 1, np.uint64)
    cut_words(data, controls, first, hashes)
    return Tokens(first, hashes[: first[-1]])


def tokenise(texts: Sequence[bytes], symbols: SymbolTable | None = None) -> Tokens:
    """The words of ``texts``; new ones are added to ``symbols``, if given, so that they can be shown."""
    raw = lines(texts)
    tokens = words_of_lines(np.frombuffer(raw, np.uint8), len(texts))
    fresh, room = (-1 if symbols is not None else 0), _ROOM
    while symbols is not None and fresh < 0:
        symbols.reserve(room)
        new = np.empty((room, 2), np.int64)
        index = symbols.index
        fresh = enter_words(np.frombuffer(raw, np.uint8), tokens.hashes, index.keys, index.number, len(symbols), new)
        symbols.adopt(raw, new[:fresh] if fresh >= 0 else new)  # the others are added in the next round
        room *= 4
    return tokens
