"""Large inputs: long lines, deep and wide trees, lists of a million candidates, small archives of large texts."""

import gzip
import lzma
from collections.abc import Callable
from typing import Any

import numpy as np
import zstandard

Rng = np.random.Generator
MILLION = 1_000_000


def _one(rng: Rng, *values: Any) -> Any:
    return values[int(rng.integers(len(values)))]


def _bomb(rng: Rng) -> bytes:
    """Text of up to half a GiB, compressed to thousands of bytes: members of 16 MiB, one after the other."""
    lines = b"0 ||| a ||| ||| -1\n", b"1 1:1\n", b"\r\n", b"(S (NP (PRP It)) (VP (VBD rained)))\n"
    piece = _one(rng, b"\0", b"x", b"(", b" ", b"[", *lines)
    member = piece * ((1 << 24) // len(piece))
    pack = _one(rng, gzip.compress, lambda data: lzma.compress(data, preset=0), zstandard.ZstdCompressor().compress)
    return pack(member) * (((1 << 25) if b"\n" in piece else (1 << 29)) // len(member))


def _deep(rng: Rng) -> bytes:
    depth = _one(rng, 10_000, 100_000, MILLION)
    return b"(S " * depth + b"(NN x)" + b")" * (depth - int(rng.integers(2)))


def _nested(rng: Rng) -> bytes:
    depth, (opening, closing) = _one(rng, 900, 100_000), _one(rng, (b"[", b"]"), (b'{"a":', b"}"))
    return opening * depth + b"1" + closing * depth


def _candidates(rng: Rng) -> bytes:
    line = _one(rng, b"0 ||| a b ||| LM= -1 ||| -2\n", b"0 ||| a |0-0| b |1-1| ||| LM= -1 x%d= 1 ||| -2\n")
    return b"".join(line.replace(b"%d", b"%d" % k) for k in range(_one(rng, 100_000, MILLION)))


def _laughs(_: Rng) -> bytes:
    lines = [b"a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [b"a%d: &a%d [%s]" % (k, k, b", ".join([b"*a%d" % (k - 1)] * 10)) for k in range(1, 10)]
    return b"\n".join([*lines, b"task: parse", b"grid: {learner.eta: *a9}", b""])


def _grid(_: Rng) -> bytes:
    values = b", ".join(b"%d" % k for k in range(1000))
    return b"grid: {learner.a: [%s], learner.b: [%s], learner.c: [%s]}\n" % (values, values, values)


def _numbered(text: bytes, *counts: int, head: bytes = b"", tail: bytes = b"") -> Callable[[Rng], bytes]:
    """``text`` again and again, with the numbers from 0 in it where it has a place for them."""
    return lambda rng: head + b"".join(text.replace(b"%d", b"%d" % k) for k in range(_one(rng, *counts))) + tail


def _features(rng: Rng) -> bytes:
    return b"1 %s\n2 1:1\n" % b" ".join(b"%d:%d" % (k, k % 3) for k in rng.permutation(np.arange(1, MILLION)).tolist())


def _parses(rng: Rng) -> bytes:
    count = _one(rng, 100_000, MILLION)
    return b"%d\tmany\n" % count + b"-1.5\n(NP (NN Art))\n" * count


EVERYWHERE = (
    lambda rng: b"x" * _one(rng, MILLION, 10 * MILLION, 17 * MILLION),
    _numbered(b"w%d ", 100_000, MILLION),
    _bomb,
    _deep,
    _nested,
)
PARSES = (
    _parses, _numbered(b"1\tlist-%d\n-1\n(NN x)\n\n", 10_000, 100_000), lambda _: b"999999999999\tx\n-1\n(NN x)\n",
)  # fmt: skip
KEYS = _numbered(b',"k%d": 1', 200_000, head=b'{"candidates": ["a"]', tail=b"}\n")
OBJECTS = _numbered(
    b'{"text": "a", "score": -1},', 500_000, head=b'{"candidates": [', tail=b'{"text": "b", "score": -1}]}\n'
)
OWN: dict[str, tuple[Callable[[Rng], bytes], ...]] = {
    "charniak": PARSES,
    "berkeley": PARSES,
    "trees": (_numbered(b"(NN x) ", 500_000, head=b"(S ", tail=b")"),),
    "moses": (_candidates,),
    "fairseq": (
        _numbered(b"H-0\t-1\ta b\nP-0\t-1 -2\n", MILLION // 2, head=b"S-0\tx\n"),
        lambda _: b"H-0\t-1\ta\nH-99999\t-1\ta\n",
    ),
    "jsonl": (OBJECTS, KEYS),
    "sockeye": (KEYS,),
    "svmlight": (_features, _numbered(b"class%d 1:1\n", 100_000)),
    "references": (_numbered(b"a\t", MILLION, tail=b"\n"), _numbered(b"0 ||| a reference\n", 500_000)),
    "recipe": (_laughs, _grid, _numbered(b"key%d: 1\n", 20_000)),
}


def giant(target: str, data: bytes, rng: Rng) -> bytes:
    """A large input for ``target``: alone, or behind or before the lines of ``data``."""
    found: bytes = _one(rng, *EVERYWHERE, *OWN.get(target, ()) * 3)(rng)
    match int(rng.integers(4)):
        case 0 if len(found) > 1 << 17:  # no archive
            return data + found
        case 1 if len(found) > 1 << 17:
            return found + b"\n" + data
    return found
