"""Symbols: labels, words, bins and constants as 64-bit hashes, with the texts of those that are shown.

Two ways to name a symbol: its *hash* (64 bits of its UTF-8 bytes, the same on every machine, what features are
made of) and its *id* (a small integer in the order of first sight, what trees store). ``SymbolTable`` maps both
ways and back to text.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rerank.compile import kernel

FNV_OFFSET = np.uint64(0xCBF29CE484222325)
FNV_PRIME = np.uint64(0x100000001B3)
_M1 = np.uint64(0xBF58476D1CE4E5B9)
_M2 = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S32 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(32)


@kernel
def mix(z: np.uint64) -> np.uint64:
    """splitmix64's finaliser: spreads every input bit over the whole word (Steele et al. 2014)."""
    z = (z ^ (z >> _S30)) * _M1
    z = (z ^ (z >> _S27)) * _M2
    return z ^ (z >> _S31)


@kernel
def combine(h: np.uint64, symbol: np.uint64) -> np.uint64:
    """Running hash of a symbol sequence: order matters, two multiplications a symbol."""
    h = (h ^ symbol) * _M1
    return (h ^ (h >> _S32)) * _M2


@kernel
def hash_bytes(data: np.ndarray, first: int, last: int) -> np.uint64:
    """Hash of ``data[first:last]`` (uint8): FNV-1a, then ``mix``; never 0, which marks an empty slot."""
    h = FNV_OFFSET
    for i in range(first, last):
        h = (h ^ np.uint64(data[i])) * FNV_PRIME
    h = mix(h)
    return h if h != np.uint64(0) else np.uint64(1)


@kernel
def find_slot(keys: np.ndarray, h: np.uint64) -> int:
    """Slot of hash ``h`` in the open-addressing table ``keys`` (uint64, a power of two long): its own or a free one."""
    mask = np.uint64(keys.shape[0] - 1)
    slot = h & mask
    while keys[slot] != h and keys[slot] != np.uint64(0):
        slot = (slot + np.uint64(1)) & mask
    return int(slot)


class SymbolIndex(NamedTuple):
    """What kernels see of a SymbolTable: ``keys[slot]`` is a hash (0: free), ``ids[slot]`` its symbol id."""

    keys: np.ndarray  # uint64 [capacity]
    ids: np.ndarray  # int32 [capacity]


def text_hash(text: str) -> int:
    """The 64-bit hash of ``text``'s UTF-8 bytes as a Python integer: ``hash_bytes`` for module constants and names."""
    word = (1 << 64) - 1
    h = int(FNV_OFFSET)
    for byte in text.encode("utf-8", "surrogateescape"):
        h = (h ^ byte) * int(FNV_PRIME) & word
    h = (h ^ (h >> 30)) * int(_M1) & word
    h = (h ^ (h >> 27)) * int(_M2) & word
    return (h ^ (h >> 31)) or 1


@kernel
def _rehash(keys: np.ndarray, ids: np.ndarray, new_keys: np.ndarray, new_ids: np.ndarray) -> None:
    for slot in range(keys.shape[0]):
        if keys[slot] != np.uint64(0):
            target = find_slot(new_keys, keys[slot])
            new_keys[target] = keys[slot]
            new_ids[target] = ids[slot]


class SymbolTable:
    """Texts ↔ ids ↔ hashes. Ids count from 0 in the order of first sight.

    Texts that are not UTF-8 survive a round trip (surrogateescape).
    ``hashes[id]`` (uint64) and ``lower[id]`` (int32, the id of the lower-cased text) are arrays for kernels.
    """

    def __init__(self) -> None:
        self.index = SymbolIndex(np.zeros(1 << 12, np.uint64), np.zeros(1 << 12, np.int32))
        self._texts: list[str] = []
        self._hashes = np.zeros(1 << 11, np.uint64)
        self._lower = np.zeros(1 << 11, np.int32)

    def __len__(self) -> int:
        return len(self._texts)

    @property
    def hashes(self) -> np.ndarray:
        """uint64 [n]: hash of every id."""
        return self._hashes[: len(self)]

    @property
    def lower(self) -> np.ndarray:
        """int32 [n]: id of the lower-cased text of every id."""
        return self._lower[: len(self)]

    def text(self, symbol: int) -> str:
        """The text of a symbol id."""
        return self._texts[symbol]

    def text_of_hash(self, h: int) -> str | None:
        """The text whose hash is ``h``, or None where it is unknown."""
        slot = find_slot(self.index.keys, np.uint64(h))
        return self._texts[self.index.ids[slot]] if self.index.keys[slot] else None

    def intern(self, text: str) -> int:
        """The id of ``text``, new or old."""
        h = np.uint64(text_hash(text))
        slot = find_slot(self.index.keys, h)
        if self.index.keys[slot]:
            return int(self.index.ids[slot])
        symbol = len(self._texts)
        self.index.keys[slot] = h
        self.index.ids[slot] = symbol
        self._append(text, h)
        self._set_lower(symbol)
        return symbol

    def adopt(self, texts: list[str]) -> None:
        """Append texts whose slots a kernel has already filled with the ids len(self), len(self) + 1, ..."""
        first = len(self)
        for text in texts:
            self._append(text, np.uint64(text_hash(text)))
        for symbol in range(first, first + len(texts)):
            self._set_lower(symbol)

    def reserve(self, more: int) -> None:
        """Make room for ``more`` new symbols at a load of at most one half."""
        need = 2 * (len(self) + 2 * more)
        if need > self.index.keys.shape[0]:
            capacity = 1 << int(need).bit_length()
            index = SymbolIndex(np.zeros(capacity, np.uint64), np.zeros(capacity, np.int32))
            _rehash(self.index.keys, self.index.ids, index.keys, index.ids)
            self.index = index

    def _append(self, text: str, h: np.uint64) -> None:
        symbol = len(self._texts)
        if symbol == self._hashes.shape[0]:
            self._hashes = np.concatenate([self._hashes, np.zeros_like(self._hashes)])
            self._lower = np.concatenate([self._lower, np.zeros_like(self._lower)])
        self._texts.append(text)
        self._hashes[symbol] = h
        self._lower[symbol] = symbol
        self.reserve(1)

    def _set_lower(self, symbol: int) -> None:
        low = self._texts[symbol].lower()
        self._lower[symbol] = self.intern(low) if low != self._texts[symbol] else symbol
