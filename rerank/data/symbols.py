"""Symbols: labels, words, bins and constants as 64-bit hashes, with the texts of those that are shown; and the words of
texts, cut at white space.

A symbol is named by its *hash* (64 bits of its UTF-8 bytes, the same on every machine), of which features are made, or
by its *id* (a small integer, in order of first appearance), which trees store. ``SymbolTable`` maps each to the other,
and both to the text.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from rerank.data.corpus import freeze
from rerank.kernels.compile import kernel

FNV_OFFSET = np.uint64(0xCBF29CE484222325)
FNV_PRIME = np.uint64(0x100000001B3)
_M1 = np.uint64(0xBF58476D1CE4E5B9)
_M2 = np.uint64(0x94D049BB133111EB)
ABSENT = -1
_S30, _S27, _S31, _S32 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(32)


@kernel
def mix(z: np.uint64) -> np.uint64:
    """splitmix64's finaliser: spreads every input bit over the whole word (Steele et al. 2014)."""
    z = (z ^ (z >> _S30)) * _M1
    z = (z ^ (z >> _S27)) * _M2
    return z ^ (z >> _S31)


@kernel
def combine(h: np.uint64, symbol: np.uint64) -> np.uint64:
    """Running hash of a symbol sequence: order matters; two multiplications per symbol."""
    h = (h ^ symbol) * _M1
    return (h ^ (h >> _S32)) * _M2


@kernel
def finish_hash(h: np.uint64) -> np.uint64:
    """A hash whose bits are spread; never 0, which marks an empty slot."""
    h = mix(h)
    return h if h != np.uint64(0) else np.uint64(1)


@kernel
def hash_bytes(data: np.ndarray, first: int, last: int) -> np.uint64:
    """Hash of ``data[first:last]`` (uint8): FNV-1a, then ``finish_hash``."""
    h = FNV_OFFSET
    for i in range(first, last):
        h = (h ^ np.uint64(data[i])) * FNV_PRIME
    return finish_hash(h)


@kernel
def find_slot(keys: np.ndarray, h: np.uint64) -> int:
    """Slot of hash ``h`` in the open-addressing table ``keys`` (uint64, size a power of two): its own or a free one."""
    mask = np.uint64(keys.shape[0] - 1)
    slot = h & mask
    while keys[slot] != h and keys[slot] != np.uint64(0):
        slot = (slot + np.uint64(1)) & mask
    return int(slot)


def lengthen(array: np.ndarray, size: int) -> np.ndarray:
    """``array`` or, if it is shorter than ``size``, a longer one, with zeros behind it."""
    if size <= array.size:
        return array
    return np.concatenate([array, np.zeros(max(size, 2 * array.size) - array.size, array.dtype)])


class HashIndex(NamedTuple):
    """Open addressing from hashes to numbers: ``number[slot]`` is that of the hash ``keys[slot]``."""

    keys: np.ndarray  # uint64 [2^b], 0: free
    number: np.ndarray  # int32 [2^b]


def new_index(room: int) -> HashIndex:
    """An empty index for ``room`` entries, at most half full."""
    slots = 1 << max(4, int(2 * room).bit_length())
    return HashIndex(np.zeros(slots, np.uint64), np.empty(slots, np.int32))


def index_of(hashes: np.ndarray, room: int = 0) -> HashIndex:
    """An index of ``hashes`` (uint64), numbered in their order, with ``room`` for others."""
    index = new_index(max(hashes.size, room))
    enter_all(index, freeze(hashes), 0, np.empty(hashes.size, np.int32))
    return index


def enlarge(index: HashIndex, need: int) -> HashIndex:
    """``index``, or a larger copy of it, with room for ``need`` entries."""
    if 2 * need <= index.keys.size:
        return index
    mask = index.keys != 0
    larger = index_of(index.keys[mask], 2 * need)
    larger_mask = larger.keys != 0
    larger.number[larger_mask] = index.number[mask][larger.number[larger_mask]]
    return larger


@kernel
def enter(index: HashIndex, h: np.uint64, new: int) -> int:
    """The number of a hash: ``new`` if it was not in the index."""
    slot = find_slot(index.keys, h)
    if index.keys[slot] != h:
        index.keys[slot], index.number[slot] = h, new
    return int(index.number[slot])


@kernel
def enter_all(index: HashIndex, hashes: np.ndarray, new: int, numbers: np.ndarray) -> int:
    """The number of every hash (int32), for those that were not in the index from ``new`` on; returns ``new`` then."""
    for i in range(hashes.shape[0]):
        numbers[i] = enter(index, hashes[i], new)
        if numbers[i] == new:
            new += 1
    return new


@kernel
def look_up(index: HashIndex, hashes: np.ndarray, out: np.ndarray) -> None:
    """The number of every hash (int32), ABSENT if it is unknown."""
    for i in range(hashes.shape[0]):
        slot = find_slot(index.keys, hashes[i])
        out[i] = index.number[slot] if index.keys[slot] == hashes[i] else ABSENT


def numbers_of(index: HashIndex, hashes: np.ndarray) -> np.ndarray:
    """int32 [n]: the number of every hash, ABSENT for those that are not in the index."""
    numbers = np.empty(hashes.size, np.int32)
    look_up(index, hashes, numbers)
    return numbers


def text_hash(text: str) -> int:
    """The 64-bit hash of ``text``'s UTF-8 bytes as a Python integer: ``hash_bytes`` for module constants and names."""
    word = (1 << 64) - 1
    h = int(FNV_OFFSET)
    for byte in text.encode("utf-8", "surrogateescape"):
        h = (h ^ byte) * int(FNV_PRIME) & word
    h = (h ^ (h >> 30)) * int(_M1) & word
    h = (h ^ (h >> 27)) * int(_M2) & word
    return (h ^ (h >> 31)) or 1


def hash_all(h: int, *symbols: int) -> int:
    """``combine`` for Python integers, symbol after symbol."""
    word = (1 << 64) - 1
    for symbol in symbols:
        h = (h ^ symbol) * int(_M1) & word
        h = (h ^ (h >> 32)) * int(_M2) & word
    return h


@lru_cache(maxsize=1 << 12)
def quick_hash(text: str | bytes) -> int:
    """``text_hash`` of a text (bytes are UTF-8), fast for a recently seen one."""
    return text_hash(text if isinstance(text, str) else text.decode("utf-8", "surrogateescape"))


class SymbolTable:
    """Texts ↔ ids ↔ hashes. Ids count from 0 in order of first appearance.

    Texts that are not UTF-8 survive a round trip (surrogateescape).
    ``hashes[id]`` (uint64) and ``lower[id]`` (int32, the id of the lower-cased text) are arrays for kernels.
    """

    def __init__(self) -> None:
        self.index = new_index(1 << 10)
        self._texts: list[str] = []
        self._hashes = np.zeros(1 << 11, np.uint64)
        self._lower = np.zeros(1 << 11, np.int32)
        self._hash_cache: dict[str | bytes, int] = {}  # results of ``hash_of``

    def copy(self) -> "SymbolTable":
        """An independent table with the same texts and ids."""
        new = SymbolTable.__new__(SymbolTable)
        new.index = HashIndex(self.index.keys.copy(), self.index.number.copy())
        new._texts, new._hash_cache = self._texts.copy(), self._hash_cache.copy()
        new._hashes, new._lower = self._hashes.copy(), self._lower.copy()
        return new

    def __len__(self) -> int:
        return len(self._texts)

    @property
    def hashes(self) -> np.ndarray:
        """uint64 [n]: the hash of every id."""
        return self._hashes[: len(self)]

    @property
    def lower(self) -> np.ndarray:
        """int32 [n]: the id of the lower-cased text of every id."""
        return self._lower[: len(self)]

    def text(self, symbol: int) -> str:
        """The text of a symbol id."""
        return self._texts[symbol]

    def text_of_hash(self, h: int) -> str | None:
        """The text whose hash is ``h``, or None if it is unknown."""
        slot = self._slot(h)
        return self._texts[self.index.number[slot]] if self.index.keys[slot] else None

    def _slot(self, h: int) -> int:
        """``find_slot`` without compiled code: most programs begin with this."""
        keys = self.index.keys
        slot = h & (keys.size - 1)
        while keys[slot] and keys[slot] != h:
            slot = (slot + 1) & (keys.size - 1)
        return slot

    def intern(self, text: str) -> int:
        """The id of ``text``, a new one if it is not in the table yet."""
        h = quick_hash(text)
        slot = self._slot(h)
        if self.index.keys[slot]:
            return int(self.index.number[slot])
        symbol = len(self._texts)
        self.index.keys[slot] = h
        self.index.number[slot] = symbol
        self._fit(1)
        self._hashes[symbol], self._lower[symbol] = h, symbol
        self._texts.append(text)
        self.reserve(1)
        if (low := text.lower()) != text:
            self._lower[symbol] = self.intern(low)
        return symbol

    def hash_of(self, text: str | bytes) -> int:
        """The hash of a text (bytes are UTF-8), which is added to the table; fast for a repeated text."""
        code = self._hash_cache.get(text)
        if code is None:
            self.intern(text if isinstance(text, str) else text.decode("utf-8", "surrogateescape"))
            code = self._hash_cache[text] = quick_hash(text)
        return code

    def adopt(self, data: bytes, spans: np.ndarray) -> None:
        """Append the texts ``data[spans[i, 0]:spans[i, 1]]`` with the hashes ``spans[i, 2]`` (int64 [n, 3]).

        A kernel has already filled their slots with the ids len(self), len(self) + 1, ...
        """
        first, more = len(self), spans.shape[0]
        self._fit(more)
        self._hashes[first : first + more] = spans[:, 2].astype(np.uint64)
        self._lower[first : first + more] = np.arange(first, first + more)
        texts = [data[a:b].decode("utf-8", "surrogateescape") for a, b, _ in spans.tolist()]
        self._texts += texts
        self.reserve(1)
        for symbol, text in enumerate(texts, start=first):
            if (low := text.lower()) != text:
                self._lower[symbol] = self.intern(low)

    def reserve(self, more: int) -> None:
        """Make room for ``more`` new symbols, and the lower-cased texts of these."""
        self.index = enlarge(self.index, len(self) + 2 * more)

    def _fit(self, more: int) -> None:
        """Make room for ``more`` hashes."""
        size = len(self) + more
        self._hashes, self._lower = lengthen(self._hashes, size), lengthen(self._lower, size)


class LabelArray:
    """A number for every symbol: given for some texts, which are added to ``symbols``, and 0 for all others."""

    def __init__(self, symbols: SymbolTable, numbers: Mapping[str, int], kind: Any) -> None:
        ids = [symbols.intern(text) for text in numbers]
        self._of = np.zeros(len(symbols), kind)
        self._of[ids] = list(numbers.values())

    def of(self, size: int) -> np.ndarray:
        """The numbers of the ids below ``size`` of the table or a copy of it, whatever has been added since."""
        self._of = of = lengthen(self._of, size)  # threads may get here at the same time: all of them compute the same
        return of[:size]


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
        hashes[i] = finish_hash(hashes[i])
    return True


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
    if symbols is not None:
        if (new := np.flatnonzero(numbers_of(symbols.index, tokens.hashes) == ABSENT)).size:
            words = raw.split()
            for word in dict.fromkeys(words[i] for i in new.tolist()):
                symbols.intern(word.decode("utf-8", "surrogateescape"))
    return tokens
