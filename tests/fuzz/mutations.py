"""Ways to damage a file: bytes, lines, numbers, encodings, structure."""

import bz2
import gzip
import json
import lzma
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import yaml
import zstandard

Rng = np.random.Generator
Mutation = Callable[[bytes, Rng], bytes]

TOKENS = (
    b"(", b")", b"((", b"))", b"()", b"(())", b"|||", b" ||| ", b"\t", b" ", b"  ", b"\n", b"\r", b"\r\n", b"\n\n",
    b"\0", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xe2\x80\xa8", b"\xc2\x85", b"\x0b", b"\x1c", b"\xef\xbb\xbf", b"#",
    b":", b"=", b"-", b"+", b".", b",", b"|", b"{", b"}", b"[", b"]", b'"', b"\\", b"\\u0000", b"\\ud800", b"null",
    b"true", b"-NONE-", b"H-1\t", b"S-0\t", b"P-7\t", b"0-0", b"0=0", b"1-0=3", b"qid:1", b"1:1", b"0:", b"---\n",
    b"*a", b"&a ", b"<<: ", b"!!", b"{root}", b"{}", b"%s", b"../", b"~", b"''", b"\xf0\x9f\x98\x80", "İ".encode(),
    "ß".encode(), "\u0661".encode(),
)  # fmt: skip
NUMBERS = (
    b"nan", b"NaN", b"-nan", b"inf", b"-inf", b"Infinity", b"-Infinity", b"1e999", b"-1e999", b"1e-999", b"5e-324",
    b"1e308", b"-1.7976931348623157e308", b"3.4028236e38", b"1e39", b"0", b"-0", b"-1", b"1", b"2", b"1000000",
    b"999999999999999999", b"2147483647", b"2147483648", b"-2147483649", b"4294967296", b"9223372036854775807",
    b"9223372036854775808", b"18446744073709551616", b"1" * 400, b"1" * 5000, b"0." + b"1" * 400, b"0x10", b"1_000",
    b"1,5", b"1.5.2", b"--1", b"1e", b".", b"1e+", b"00012", "\u0663".encode(), b"1d5", b"1e-46", b"0.1e-400", b"",
)  # fmt: skip
_NUMBER = re.compile(rb"[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?")


def place(data: bytes, rng: Rng) -> int:
    """A position in ``data``, its end included."""
    return int(rng.integers(0, len(data) + 1))


def span(data: bytes, rng: Rng) -> tuple[int, int]:
    """A range of bytes, mostly a short one."""
    first = place(data, rng)
    return first, min(len(data), first + int(rng.integers(1, 2 ** int(rng.integers(1, 12)))))


def flip_bit(data: bytes, rng: Rng) -> bytes:
    changed = bytearray(data)
    for _ in range(int(rng.integers(1, 5))):
        if changed:
            changed[int(rng.integers(len(changed)))] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def set_bytes(data: bytes, rng: Rng) -> bytes:
    first, last = span(data, rng)
    return data[:first] + rng.bytes(last - first) + data[last:]


def insert_bytes(data: bytes, rng: Rng) -> bytes:
    at = place(data, rng)
    return data[:at] + rng.bytes(int(rng.integers(1, 9))) + data[at:]


def delete_span(data: bytes, rng: Rng) -> bytes:
    first, last = span(data, rng)
    return data[:first] + data[last:]


def repeat_span(data: bytes, rng: Rng) -> bytes:
    first, last = span(data, rng)
    return data[:first] + data[first:last] * int(rng.integers(2, 40)) + data[last:]


def _lines(change: Callable[[list[bytes], int, Rng], list[bytes]]) -> Mutation:
    def mutation(data: bytes, rng: Rng) -> bytes:
        lines = data.split(b"\n")
        return b"\n".join(change(lines, int(rng.integers(len(lines))), rng))

    return mutation


def insert_token(data: bytes, rng: Rng) -> bytes:
    """Something that means something in one of the formats."""
    at = place(data, rng)
    return data[:at] + TOKENS[int(rng.integers(len(TOKENS)))] + data[at:]


def truncate(data: bytes, rng: Rng) -> bytes:
    return data[: place(data, rng)]


def behead(data: bytes, rng: Rng) -> bytes:
    return data[place(data, rng) :]


delete_line = _lines(lambda lines, i, _: lines[:i] + lines[i + 1 :])
repeat_line = _lines(lambda lines, i, rng: lines[:i] + [lines[i]] * int(rng.integers(2, 50)) + lines[i + 1 :])
blank_line = _lines(lambda lines, i, rng: [*lines[:i], b" \t\v"[: int(rng.integers(4))], *lines[i:]])
empty_line = _lines(lambda lines, i, _: [*lines[:i], b"", *lines[i + 1 :]])
move_line = _lines(lambda lines, i, rng: (rest := lines[:i] + lines[i + 1 :], rest.insert(
    int(rng.integers(len(rest) + 1)), lines[i]))[0])  # fmt: skip
shuffle_lines = _lines(lambda lines, _, rng: [lines[k] for k in rng.permutation(len(lines))])
sort_lines = _lines(lambda lines, _, __: sorted(lines))
long_line = _lines(lambda lines, i, rng: [*lines[:i], (lines[i] or b"x") * int(rng.integers(2, 300)), *lines[i + 1 :]])


def number(data: bytes, rng: Rng) -> bytes:
    """Numbers that are none, not finite, or too large, in the place of one or more."""
    found = list(_NUMBER.finditer(data))
    for _ in range(int(rng.integers(1, 4))):
        if not found:
            return data
        match = found.pop(int(rng.integers(len(found))))
        data = data[: match.start()] + NUMBERS[int(rng.integers(len(NUMBERS)))] + data[match.end() :]
        found = [other for other in found if other.end() <= match.start()]
    return data


def swap_numbers(data: bytes, rng: Rng) -> bytes:
    """One number of the file in the place of another: ids twice or out of order, wrong counts, spans that overlap."""
    found = list(_NUMBER.finditer(data))
    if not found:
        return data
    a, b = (found[int(k)] for k in rng.integers(len(found), size=2))
    return data[: a.start()] + b[0] + data[a.end() :]


def reencode(data: bytes, rng: Rng) -> bytes:
    """Another encoding, or a byte order mark."""
    kind = ("latin-1", "utf-16", "utf-16-le", "utf-8-sig", "utf-32", "utf-7")[int(rng.integers(6))]
    return data.decode("utf-8", "replace").replace("e", "é").encode(kind, "replace")


def white(_: bytes, rng: Rng) -> bytes:
    """Nothing, or nothing but white space."""
    return (b"", b"\n", b" ", b"\n\n\n", b"\r\n", b"\t \n ", b"\xef\xbb\xbf", b"\0", b"\x1a")[int(rng.integers(9))]


VALUES: list[Any] = [
    float("nan"), float("inf"), -float("inf"), 1e308, 5e-324, -1, 0, 1, 2**31, 2**63, 2**64, 10**400, -0.0, 0.5,
    "", " ", "nan", "1e3", "\ud800", "a\0b", "../x", "{root}", "{x}", "{", "name", "os:system", None, True, False,
    [], {}, [[]], [None], [1, "a"], {"name": "nothing"}, {"name": None}, {"": 1}, [{}], "x" * 5000,
]  # fmt: skip


def change_value(value: Any, rng: Rng) -> Any:
    """A nest of lists and mappings in which one value or key is another, is gone, or is new."""
    places: list[tuple[Any, Any]] = []

    def walk(node: Any) -> None:
        for key in list(node) if isinstance(node, dict) else range(len(node)):
            places.append((node, key))
            if isinstance(node[key], dict | list):
                walk(node[key])

    if not isinstance(value, dict | list):
        return VALUES[int(rng.integers(len(VALUES)))]
    walk(value)
    if not places:
        return VALUES[int(rng.integers(len(VALUES)))]
    node, key = places[int(rng.integers(len(places)))]
    match int(rng.integers(6)):
        case 0:
            del node[key]
        case 1 if isinstance(node, dict):
            node[str(VALUES[int(rng.integers(20, len(VALUES)))])[:50]] = node.pop(key)
        case 2:
            source, other = places[int(rng.integers(len(places)))]
            node[key] = json.loads(json.dumps(source[other]))
        case 3 if isinstance(node, dict):
            node[f"{key}x"] = node[key]
        case 4 if isinstance(node[key], int | float):
            node[key] = type(node[key])(node[key]) * (-1, 2, 1000)[int(rng.integers(3))] + int(rng.integers(-1, 2))
        case _:
            node[key] = VALUES[int(rng.integers(len(VALUES)))]
    return value


def json_value(data: bytes, rng: Rng) -> bytes:
    lines = data.split(b"\n")
    try:
        return json.dumps(change_value(json.loads(data), rng)).encode()
    except ValueError:
        i = int(rng.integers(len(lines)))
    try:
        lines[i] = json.dumps(change_value(json.loads(lines[i]), rng), ensure_ascii=bool(rng.integers(2))).encode(
            "utf-8", "surrogatepass"
        )
    except ValueError:
        return number(data, rng)
    return b"\n".join(lines)


def yaml_value(data: bytes, rng: Rng) -> bytes:
    try:
        changed = change_value(json.loads(json.dumps(yaml.safe_load(data))), rng)
    except (yaml.YAMLError, TypeError, ValueError, RecursionError):
        return insert_token(data, rng)
    return json.dumps(changed).encode() if rng.integers(2) else yaml.safe_dump(changed).encode("utf-8", "surrogatepass")


TEXT: tuple[Mutation, ...] = (
    flip_bit, set_bytes, insert_bytes, insert_token, insert_token, delete_span, repeat_span, truncate, behead,
    delete_line, repeat_line, blank_line, empty_line, move_line, shuffle_lines, sort_lines, long_line, number, number,
    number, swap_numbers, swap_numbers, reencode, white,
    lambda data, _: data.replace(b"\n", b"\r\n"), lambda data, _: data.replace(b"\n", b"\r"),
)  # fmt: skip
BINARY: tuple[Mutation, ...] = (flip_bit, set_bytes, insert_bytes, delete_span, repeat_span, truncate, behead)
COMPRESSIONS: tuple[Callable[[bytes], bytes], ...] = (
    lambda data: gzip.compress(data, mtime=0),
    bz2.compress,
    lzma.compress,
    lambda data: zstandard.ZstdCompressor().compress(data),
)


def splice(data: bytes, other: bytes, rng: Rng) -> bytes:
    """The beginning of one file and the end of another, cut anywhere or between lines."""
    if rng.integers(2):
        return data[: place(data, rng)] + other[place(other, rng) :]
    one, two = data.splitlines(keepends=True), other.splitlines(keepends=True)
    return b"".join(one[: int(rng.integers(len(one) + 1))] + two[int(rng.integers(len(two) + 1)) :])


def packed(data: bytes, rng: Rng) -> bytes:
    """``data`` compressed and, in half of the cases, what is compressed damaged."""
    compress = COMPRESSIONS[int(rng.integers(len(COMPRESSIONS)))]
    cut = place(data, rng) if rng.integers(4) == 0 else len(data)
    found = compress(data[:cut]) + (compress(data[cut:]) if cut < len(data) else b"")  # several members
    if rng.integers(2):
        return found
    return BINARY[int(rng.integers(len(BINARY)))](found, rng)


def mutated(data: bytes, rng: Rng, own: tuple[Mutation, ...], others: list[bytes]) -> bytes:
    """``data`` after one to four mutations, of the format's ``own`` in half of the cases, compressed in some."""
    for _ in range(int(rng.choice([1, 1, 1, 2, 2, 3, 4]))):
        draw = rng.random()
        if draw < 0.06:
            data = splice(data, others[int(rng.integers(len(others)))], rng)
        elif draw < 0.08:
            data = others[int(rng.integers(len(others)))]
        elif own and draw < 0.5:
            data = own[int(rng.integers(len(own)))](data, rng)
        else:
            data = TEXT[int(rng.integers(len(TEXT)))](data, rng)
        data = data[: 1 << 20]
    return packed(data, rng) if rng.random() < 0.12 else data
