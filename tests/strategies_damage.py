"""Damaged files: strategies that draw what has become of good ones, and values and command lines that are odd."""

import bz2
import gzip
import io
import json
import lzma
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import yaml
import zstandard
from hypothesis import strategies as st

Files = dict[str, bytes]  # that belong together, by their names below a directory
Draw = Callable[[list[Any]], Any]  # one of some values

MARKS = st.sampled_from([
    b"(", b")", b"()", b"(())", b"|||", b" ||| ", b"\t", b" ", b"\n", b"\r", b"\n\n", b"\0", b"\x1a", b"\xff", b"\xc3",
    b"\xed\xa0\x80", b"\xe2\x80\xa8", b"\xc2\x85", b"\x0b", b"\x1c", b"\x1b[2J", b"\xef\xbb\xbf", b"#", b":", b"=",
    b"-", b"|", b"{", b"}", b"[", b"]", b",", b'"', b"\\", b"\\u0000", b"\\ud800", b"null", b"true", b"-NONE-",
    b"H-1\t", b"S-0\t", b"P-7\t", b"0-0", b"0=0", b"1-0=3", b"qid:1", b"1:1", b"0:", b"---\n", b"*a", b"&a ", b"<<: ",
    b"!!", b"{root}", b"{}", b"%s", b"../", b"~", b"''", "😀".encode(), "İ".encode(), "\u0661".encode(),
    b"(" * 100_000, b"(S " * 2_000, b")" * 100_000, b"[" * 100_000, b'{"a":' * 900, b"w " * 20_000, b"x" * 100_000,
])  # fmt: skip
FIGURES = st.sampled_from([
    b"nan", b"NaN", b"inf", b"-inf", b"Infinity", b"1e999", b"1e-999", b"5e-324", b"1e308", b"-1.7976931348623157e308",
    b"3.4028236e38", b"1e39", b"0", b"-0", b"-1", b"1", b"2", b"1000000", b"999999999999999999", b"2147483647",
    b"2147483648", b"-2147483649", b"4294967296", b"9223372036854775807", b"18446744073709551616", b"1" * 400,
    b"1" * 5000, b"0." + b"1" * 400, b"0x10", b"1_000", b"1,5", b"1.5.2", b"--1", b"1e", b".", b"00012",
    "\u0663".encode(), b"1d5", b"1e-46", b"",
])  # fmt: skip
NUMBERS = re.compile(rb"[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?")
UNITS = st.sampled_from([NUMBERS, re.compile(rb"\S+"), re.compile(rb"[^\n]*\n|[^\n]+"), re.compile(rb"(?s).")])
RUNS = st.sampled_from([1] * 6 + [2, 3, 10, 100])  # units in a row
CHANGES = st.sampled_from(
    ["mark", "mark", "other", "other", "drop", "insert", "flip", "repeat", "move", "cut", "start"]
)
WHOLE = st.sampled_from([
    lambda data: data.replace(b"\n", b"\r\n"), lambda data: data.replace(b"\n", b"\r"), lambda _: b"", lambda _: b"\n ",
    *(lambda data, name=name: data.decode("utf-8", "replace").replace("e", "é").encode(name, "replace")
      for name in ("latin-1", "utf-16", "utf-16-le", "utf-8-sig", "utf-7")),
])  # fmt: skip
ARCHIVES = st.sampled_from(
    [lambda data: gzip.compress(data, mtime=0), bz2.compress, lzma.compress, zstandard.ZstdCompressor().compress]
)
TIMES = st.sampled_from([1, 1, 1, 2, 2, 3, 4])
ONE_IN_TEN, EVEN = st.integers(0, 9).map(lambda drawn: drawn == 9), st.booleans()

VALUES = st.sampled_from([
    0, 1, -1, 0.5, -0.0, "", " ", "nan", "1e3", "a\0b", "\x1b[2J", "../x", "{root}", "{x}", "{", "name", "os:system",
    None, True, False, [], {}, [[]], [None], [1, "a"], [{}], {"name": "nothing"}, {"name": None}, {"": 1}, "x" * 5000,
    float("nan"), float("inf"), -float("inf"), 1e308, 5e-324, 2**31, 2**63, 2**64, 10**400, "\ud800", "\u2028",
])  # fmt: skip
EXTREMES = st.sampled_from([0, 1, -1, 2**31 - 1, 2**31, 2**40, 2**62, -(2**62), np.inf, np.nan, 1e300, 5e-324])
TYPES = st.sampled_from(["f8", "f4", "i8", "i4", "u1", "bool", "U8", "c16", "O"])


@st.composite
def edited(draw: st.DrawFn, data: bytes) -> bytes:
    """One change: some bytes, numbers, words or lines in a row are gone, repeated, moved, or something else."""
    unit = draw(UNITS)
    places = [match.span() for match in unit.finditer(data)]
    if not places:
        return data + draw(MARKS)
    index = st.integers(0, len(places) - 1)
    first = draw(index)
    start, end = places[first][0], places[min(first + draw(RUNS), len(places)) - 1][1]
    part = data[start:end]
    match draw(CHANGES):
        case "mark":
            part = draw(FIGURES if unit is NUMBERS else MARKS)
        case "other":
            part = data[slice(*places[draw(index)])]
        case "drop":
            part = b""
        case "insert":
            part = draw(MARKS) + part
        case "flip":
            part = bytes([part[0] ^ 1 << draw(st.integers(0, 7))]) + part[1:]
        case "repeat":
            part *= draw(st.sampled_from([2, 3, 40]))
        case "move":
            rest = data[:start] + data[end:]
            start = end = min(places[draw(index)][0], len(rest))
            data = rest
        case "cut":
            return data[:start]
        case "start":
            return data[start:]
    return (data[:start] + part + data[end:])[: 1 << 20]


@st.composite
def changed(draw: st.DrawFn, value: Any) -> Any:
    """A nest of lists and mappings in which one value or key is another, is gone, or is new."""
    places: list[tuple[Any, Any]] = []

    def walk(node: Any) -> None:
        for key in list(node) if isinstance(node, dict) else range(len(node) if isinstance(node, list) else 0):
            places.append((node, key))
            walk(node[key])

    value = json.loads(json.dumps(value, default=str))  # not that of others
    walk(value)
    if not places:
        return draw(VALUES)
    node, key = draw(st.sampled_from(places))
    match draw(st.sampled_from(["value", "value", "other", "drop", "name", "again"])):
        case "drop":
            del node[key]
        case "name" if isinstance(node, dict):
            node[str(draw(VALUES))[:50]] = node.pop(key)
        case "again" if isinstance(node, dict):
            node[f"{key}x"] = node[key]
        case "other":
            source, other = draw(st.sampled_from(places))
            node[key] = json.loads(json.dumps(source[other]))
        case _ if isinstance(node[key], int | float) and draw(EVEN):
            node[key] = node[key] * draw(st.sampled_from([-1, 2, 1000])) + draw(st.integers(-1, 1))
        case _:
            node[key] = draw(VALUES)
    return value


@st.composite
def changed_json(draw: st.DrawFn, data: bytes) -> bytes:
    """JSON, or a line of it, with another value; an edit of what is none."""
    try:
        return json.dumps(draw(changed(json.loads(data)))).encode()
    except ValueError:
        lines = data.split(b"\n")
        i = draw(st.integers(0, len(lines) - 1))
    try:
        found = draw(changed(json.loads(lines[i])))
    except ValueError:
        return draw(edited(data))
    lines[i] = json.dumps(found, ensure_ascii=draw(EVEN)).encode("utf-8", "surrogatepass")
    return b"\n".join(lines)


@st.composite
def changed_yaml(draw: st.DrawFn, data: bytes) -> bytes:
    """YAML, as such or as JSON, with another value."""
    found = draw(changed(yaml.safe_load(data)))
    return (json.dumps(found) if draw(EVEN) else yaml.safe_dump(found)).encode("utf-8", "surrogatepass")


@st.composite
def changed_array(draw: st.DrawFn, data: bytes) -> bytes:
    """An array with other values, of another type or shape, or with objects."""
    array = np.array(np.load(io.BytesIO(data), allow_pickle=False))
    with np.errstate(all="ignore"):
        match draw(st.sampled_from(["value", "value", "type", "shape", "size"])):
            case "value" if array.size:
                for _ in range(draw(TIMES)):
                    array.flat[draw(st.integers(0, array.size - 1))] = np.array(draw(EXTREMES)).astype(array.dtype)
            case "shape":
                array = array.reshape(draw(st.sampled_from([(-1, 1), (1, -1), (array.size,)])))
            case "size":
                array = np.resize(array, draw(st.integers(0, array.size + 5)))
            case _:
                array = array.astype(draw(TYPES))
    out = io.BytesIO()
    np.save(out, array, allow_pickle=True)
    return out.getvalue()


KINDS = {".json": changed_json, ".jsonl": changed_json, ".yaml": changed_yaml, ".npy": changed_array}


@st.composite
def damaged(draw: st.DrawFn, data: bytes, kind: str = "", others: tuple[bytes, ...] = ()) -> bytes:
    """What has become of a file: edits, another's end or encoding, an archive of it, whole or damaged.

    kind: of KINDS, what it holds; then a value is another, mostly. others: files of other kinds.
    """
    if kind and not draw(ONE_IN_TEN):
        return draw(KINDS[kind](data))
    for _ in range(draw(TIMES)):
        data = draw(edited(data))
    if draw(ONE_IN_TEN):
        data = draw(WHOLE)(data)
    if others and draw(ONE_IN_TEN):
        data = b"" if draw(EVEN) else data[: draw(st.integers(0, len(data)))]
        data += draw(st.sampled_from(others))
    if draw(ONE_IN_TEN):
        data = b"".join(map(draw(ARCHIVES), [data] if draw(EVEN) else [data, data]))  # of one or two members
        data = draw(edited(data)) if draw(EVEN) else data
    return data


@st.composite
def damaged_files(
    draw: st.DrawFn, files: Files, fixed: tuple[str, ...] = (), others: tuple[bytes, ...] = (), json_lines: bool = False
) -> Files:
    """Files of which one is damaged, gone, or a copy of another; those whose names start as ``fixed`` says are whole.

    json_lines: whether those without an ending hold JSON.
    """
    name = draw(st.sampled_from([name for name in files if not name.startswith(fixed or ("\0",))]))
    ending = f".{name.rpartition('.')[2]}" if "." in name else ".jsonl" if json_lines else ""
    if len(files) > 1 and draw(ONE_IN_TEN):
        if draw(EVEN):
            return {other: data for other, data in files.items() if other != name}
        return files | {name: files[draw(st.sampled_from(list(files)))]}
    return files | {name: draw(damaged(files[name], ending if ending in KINDS else "", others))}
