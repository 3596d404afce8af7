"""Texts as sequences of words: 64-bit hashes in flat arrays, cut at white space."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rerank.data.symbols import SymbolTable, find_slot, hash_bytes
from rerank.kernels.compile import kernel

_ROOM = 1 << 12  # new words that the first attempt has room for


class Tokens(NamedTuple):
    """The words of T texts, one text after the other."""

    first: np.ndarray  # int64 [T + 1]: the words of text t are first[t]..first[t + 1]
    hashes: np.ndarray  # uint64 [n]: see symbols.hash_bytes


@kernel
def cut_words(data: np.ndarray, bounds: np.ndarray, first: np.ndarray, hashes: np.ndarray) -> None:
    """Hash the words of the texts ``data[bounds[t]:bounds[t + 1]]`` (uint8; int64 [T + 1]); white space is ASCII's."""
    count = 0
    for t in range(bounds.shape[0] - 1):
        first[t] = count
        position = bounds[t]
        while position < bounds[t + 1]:
            if data[position] == 32 or 9 <= data[position] <= 13:
                position += 1
                continue
            begin = position
            while position < bounds[t + 1] and not (data[position] == 32 or 9 <= data[position] <= 13):
                position += 1
            hashes[count] = hash_bytes(data, begin, position)
            count += 1
    first[bounds.shape[0] - 1] = count


@kernel
def enter_words(
    data: np.ndarray, bounds: np.ndarray, hashes: np.ndarray, keys: np.ndarray, ids: np.ndarray, known: int,
    new: np.ndarray,
) -> int:  # fmt: skip
    """Add the words of ``cut_words`` that ``keys, ids`` (a HashIndex with room) lack, as ids known, known + 1, ...

    Their places (first and last byte) go to ``new`` (int64 [:, 2]); returns how many there are, -1 if ``new`` is full.
    """
    at, fresh = 0, 0
    position, end = bounds[0], bounds[bounds.shape[0] - 1]
    text = 0
    while at < hashes.shape[0]:
        while position >= bounds[text + 1]:
            text += 1
        if data[position] == 32 or 9 <= data[position] <= 13:
            position += 1
            continue
        begin, stop = position, min(end, bounds[text + 1])
        while position < stop and not (data[position] == 32 or 9 <= data[position] <= 13):
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


def tokenise(texts: Sequence[bytes], symbols: SymbolTable | None = None) -> Tokens:
    """The words of ``texts``; new ones are added to ``symbols``, if given, so that they can be shown."""
    raw = b"".join(texts)
    data = np.frombuffer(raw, np.uint8)
    bounds = np.zeros(len(texts) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)), out=bounds[1:])
    first, hashes = np.empty(len(texts) + 1, np.int64), np.empty(len(raw) // 2 + len(texts) + 1, np.uint64)
    cut_words(data, bounds, first, hashes)
    tokens = Tokens(first, hashes[: first[-1]])
    fresh, room = (-1 if symbols is not None else 0), _ROOM
    while symbols is not None and fresh < 0:
        symbols.reserve(room)
        new = np.empty((room, 2), np.int64)
        index = symbols.index
        fresh = enter_words(data, bounds, tokens.hashes, index.keys, index.number, len(symbols), new)
        symbols.adopt(raw, new[:fresh] if fresh >= 0 else new)  # the others are added in the next round
        room *= 4
    return tokens
