"""Symbols: hashes by their formulas, ids and texts that never mix up."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rerank.data.symbols import SymbolTable, combine, hash_bytes, mix, text_hash
from rerank.data.trees import parse_brackets

MASK = (1 << 64) - 1
M1, M2 = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def naive_mix(z: int) -> int:
    """splitmix64's finaliser in Python integers."""
    z = (z ^ (z >> 30)) * M1 & MASK
    z = (z ^ (z >> 27)) * M2 & MASK
    return z ^ (z >> 31)


def naive_hash(data: bytes) -> int:
    """64-bit FNV-1a, then mix."""
    h = 0xCBF29CE484222325
    for byte in data:
        h = (h ^ byte) * 0x100000001B3 & MASK
    return naive_mix(h) or 1


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=30), st.integers(0, 5), st.integers(0, 5))
def test_hash_bytes_is_fnv_1a_and_mix(data: bytes, before: int, after: int) -> None:
    array = np.frombuffer(b"x" * before + data + b"y" * after, np.uint8)
    assert int(hash_bytes(array, before, before + len(data))) == naive_hash(data)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, MASK), st.integers(0, MASK))
def test_mix_and_combine(a: int, b: int) -> None:
    assert int(mix(np.uint64(a))) == naive_mix(a)
    h = (a ^ b) * M1 & MASK
    assert int(combine(np.uint64(a), np.uint64(b))) == (h ^ (h >> 32)) * M2 & MASK


def test_known_values() -> None:
    # splitmix64 seeded with 0 returns the finaliser of its increment first.
    assert int(mix(np.uint64(0x9E3779B97F4A7C15))) == 0xE220A8397B1DCDAF
    # FNV-1a of "a" is 0xaf63dc4c8601ec8c.
    assert text_hash("a") == naive_mix(0xAF63DC4C8601EC8C)
    assert text_hash("naïve") == naive_hash("naïve".encode())
    assert text_hash("") == naive_hash(b"")


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=4), max_size=60))
def test_ids_count_from_zero_in_the_order_of_first_sight(texts: list[str]) -> None:
    table, expected = SymbolTable(), dict[str, int]()
    for text in texts:
        symbol = table.intern(text)
        for new in (text, text.lower()):
            expected.setdefault(new, len(expected))
        assert symbol == expected[text]
    assert len(table) == len(expected)
    for text, symbol in expected.items():
        assert table.text(symbol) == text
        assert table.hashes[symbol] == text_hash(text)
        assert table.text_of_hash(text_hash(text)) == text
        assert table.intern(text) == symbol
    assert [table.text(i) for i in table.lower] == [text.lower() for text in expected]


def test_the_table_grows() -> None:
    table = SymbolTable()
    count = 20_000
    assert [table.intern(f"w{i}") for i in range(count)] == list(range(count))
    assert [table.intern(f"w{i}") for i in range(count)] == list(range(count))
    assert len(table) == count
    assert np.count_nonzero(table.index.keys) == count
    assert table.index.keys.size >= 2 * count  # half empty, so that probes end


def test_unknown_hashes_have_no_text() -> None:
    table = SymbolTable()
    assert table.text_of_hash(text_hash("S")) is None
    table.intern("S")
    assert table.text_of_hash(text_hash("NP")) is None


def test_bytes_that_are_not_utf8_keep_their_hash() -> None:
    text = b"caf\xe9".decode("utf-8", "surrogateescape")
    assert text_hash(text) == naive_hash(b"caf\xe9")


def test_symbols_of_trees_and_interned_ones_are_the_same() -> None:
    one, two = SymbolTable(), SymbolTable()
    np_, art = one.intern("NP"), one.intern("Art")
    parsed = parse_brackets([b"(NP (NN Art))"], one)
    assert one.text(int(parsed.label[0])) == "NP"
    assert (int(parsed.label[0]), int(parsed.word[1])) == (np_, art)
    parsed = parse_brackets([b"(NP (NN Art))"], two)
    assert two.intern("Art") == int(parsed.word[1])
    assert two.text(int(two.lower[parsed.word[1]])) == "art"
