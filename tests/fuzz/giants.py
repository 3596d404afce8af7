"""Large inputs: long lines, deep and wide trees, lists of a million candidates, small archives of large texts."""

import gzip
import lzma
from collections.abc import Callable

import numpy as np
import zstandard

Rng = np.random.Generator
MILLION = 1_000_000
TREE = b"(S (NP (PRP It)) (VP (VBD rained)))"


def bomb(piece: bytes, size: int, rng: Rng) -> bytes:
    """``size`` bytes of text, compressed to thousands: members of 16 MiB, one after the other."""
    member = piece * ((1 << 24) // len(piece))
    kinds: tuple[Callable[[bytes], bytes], ...] = (
        gzip.compress,
        lambda data: lzma.compress(data, preset=0),
        zstandard.ZstdCompressor().compress,
    )
    return kinds[int(rng.integers(3))](member) * (size // len(member))


def _deep(rng: Rng) -> bytes:
    depth = int(rng.choice([10_000, 100_000, MILLION]))
    return b"(S " * depth + b"(NN x)" + b")" * (depth - int(rng.integers(2)))


def _long(rng: Rng) -> bytes:
    return b"x" * int(rng.choice([MILLION, 10 * MILLION, 17 * MILLION]))


def _words(rng: Rng) -> bytes:
    return b" ".join(b"w%d" % k for k in range(int(rng.choice([100_000, MILLION]))))


def _bomb(rng: Rng) -> bytes:
    piece = (b"\0", b"x", b"(", b" ", b"[", b"0 ||| a ||| ||| -1\n", b"1 1:1\n", b"\r\n", TREE + b"\n")[
        int(rng.integers(9))
    ]
    return bomb(piece, (1 << 25) if b"\n" in piece else (1 << 29), rng)


def _nested(rng: Rng) -> bytes:
    depth, (opening, closing) = int(rng.choice([900, 100_000])), ((b"[", b"]"), (b'{"a":', b"}"))[int(rng.integers(2))]
    return opening * depth + b"1" + closing * depth


def _parses(rng: Rng) -> bytes:
    count = int(rng.choice([100_000, MILLION]))
    return b"%d\tmany\n" % count + b"-1.5\n(NP (NN Art))\n" * count


def _many_lists(rng: Rng) -> bytes:
    return b"".join(b"1\tlist-%d\n-1\n(NN x)\n\n" % k for k in range(int(rng.choice([10_000, 100_000]))))


def _claimed(_: Rng) -> bytes:
    return b"999999999999\tx\n-1\n(NN x)\n"


def _wide(_: Rng) -> bytes:
    return b"(S " + b"(NN x) " * 500_000 + b")"


def _candidates(rng: Rng) -> bytes:
    lines = (b"0 ||| a b ||| LM= -1 ||| -2\n", b"0 ||| a |0-0| b |1-1| ||| LM= -1 x%d= 1 ||| -2\n")[
        int(rng.integers(2))
    ]
    return b"".join(lines.replace(b"%d", b"%d" % k) for k in range(int(rng.choice([100_000, MILLION]))))


def _hypotheses(_: Rng) -> bytes:
    return b"S-0\tx\n" + b"H-0\t-1\ta b\nP-0\t-1 -2\n" * (MILLION // 2)


def _gap(_: Rng) -> bytes:
    return b"H-0\t-1\ta\nH-99999\t-1\ta\n"


def _objects(_: Rng) -> bytes:
    return b'{"candidates": [' + b",".join([b'{"text": "a", "score": -1}'] * 500_000) + b"]}\n"


def _keys(_: Rng) -> bytes:
    return b'{"candidates": ["a"],' + b",".join(b'"k%d": 1' % k for k in range(200_000)) + b"}\n"


def _features(rng: Rng) -> bytes:
    return (
        b"1 " + b" ".join(b"%d:%d" % (k, k % 3) for k in rng.permutation(np.arange(1, MILLION)).tolist()) + b"\n2 1:1\n"
    )


def _labels(_: Rng) -> bytes:
    return b"".join(b"class%d 1:1\n" % k for k in range(100_000))


def _tabs(_: Rng) -> bytes:
    return b"a\t" * MILLION + b"\n"


def _one_id(_: Rng) -> bytes:
    return b"0 ||| a reference\n" * 500_000


def _laughs(_: Rng) -> bytes:
    lines = [b"a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [b"a%d: &a%d [%s]" % (k, k, b", ".join([b"*a%d" % (k - 1)] * 10)) for k in range(1, 10)]
    return b"\n".join([*lines, b"task: parse", b"grid: {learner.eta: *a9}", b""])


def _grid(_: Rng) -> bytes:
    values = b", ".join(b"%d" % k for k in range(1000))
    return b"grid: {learner.a: [%s], learner.b: [%s], learner.c: [%s]}\n" % (values, values, values)


def _settings(_: Rng) -> bytes:
    return b"".join(b"key%d: 1\n" % k for k in range(20_000))


EVERYWHERE = (_long, _words, _bomb, _deep, _nested)
OWN: dict[str, tuple[Callable[[Rng], bytes], ...]] = {
    "charniak": (_parses, _many_lists, _claimed),
    "berkeley": (_parses, _many_lists, _claimed),
    "trees": (_wide,),
    "moses": (_candidates,),
    "fairseq": (_hypotheses, _gap),
    "jsonl": (_objects, _keys),
    "sockeye": (_keys,),
    "svmlight": (_features, _labels),
    "references": (_tabs, _one_id),
    "recipe": (_laughs, _grid, _settings),
}


def giant(target: str, data: bytes, rng: Rng) -> bytes:
    """A large input for ``target``: alone, or behind or before the lines of ``data``."""
    kinds = (*EVERYWHERE, *OWN.get(target, ()) * 3)
    found = kinds[int(rng.integers(len(kinds)))](rng)
    match int(rng.integers(4)):
        case 0 if len(found) > 1 << 17:  # no archive
            return data + found
        case 1 if len(found) > 1 << 17:
            return found + b"\n" + data
    return found
