"""Small files in every format of lists: four lists of three candidates, whole or damaged.

A format makes candidates (of the number of their list, their own, and their text), and lists of these. ``damages`` turn
a candidate into one that cannot be used; ``ruin`` turns a list into one that is bad as a whole.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

Damage = Callable[[bytes], bytes]


def replaced(old: bytes, new: bytes) -> Damage:
    """Replaces what must be there."""

    def damage(text: bytes) -> bytes:
        assert old in text, (old, text)
        return text.replace(old, new, 1)

    return damage


class Format(NamedTuple):
    """See above; ``trees`` says whether the candidates are trees."""

    candidate: Callable[[int, int], bytes]
    whole: Callable[[int, list[bytes]], bytes]
    damages: dict[str, tuple[str, Damage]]  # by what they are: the reason, what they do to a candidate
    ruin: Damage
    trees: bool = False


def _tree(i: int, k: int) -> bytes:
    return b"(S (NN a%d) (VP%d (VB b)))" % (i, k)


def _headed(i: int, candidates: list[bytes]) -> bytes:
    return b"%d\tid%d\n" % (len(candidates), i) + b"".join(candidates) + b"\n"


def _moses(i: int, k: int) -> bytes:
    return b"%d ||| a%d b%d ||| LM= -%d.5 ||| -%d\n" % (i, i, k, k, k + 1)


def _fairseq(i: int, k: int) -> bytes:
    return b"H-%d\t-%d.5\ta%d b%d\nP-%d\t-1 -%d\n" % (i, k, i, k, i, k)


def _sockeye(i: int, candidates: list[bytes]) -> bytes:
    pairs = [candidate.split(b"\t") for k, candidate in enumerate(candidates)]
    texts, scores = (b", ".join(column) for column in zip(*pairs, strict=True))
    return b'{"sentence_id": %d, "translations": [%s], "scores": [%s]}\n' % (i, texts, scores)


def _jsonl(i: int, candidates: list[bytes]) -> bytes:
    return b'{"id": "l%d", "candidates": [%s]}\n' % (i, b", ".join(candidates))


def _bare_jsonl(_: int, candidates: list[bytes]) -> bytes:
    return b'{"candidates": [%s]}\n' % b", ".join(candidates)


_SCORES = {
    "NaN": ("infinite score", replaced(b"-1.5", b"nan")),
    "a word for a score": ("score", replaced(b"-1.5", b"high")),
}
_JSON = {
    "a word for a score": ("score", replaced(b"-1.5", b'"high"')),
    "NaN": ("infinite score", replaced(b"-1.5", b"NaN")),
    "a number for a text": ("text", replaced(b'"a', b'1, "x": "a')),
    "NUL": ("nul", replaced(b" b", b"\\u0000b")),
}
_OBJECTS = Format(
    lambda i, k: json.dumps({"text": f"a{i} b{k}", "score": -k - 0.5, "lm": k}).encode(), _jsonl,
    {**_JSON, "no number": ("columns", replaced(b', "lm": 1', b""))}, replaced(b"candidates", b"candidate"),
)  # fmt: skip

FORMATS: dict[str, Format] = {
    "charniak": Format(
        lambda i, k: b"-%d.5 2\n%s\n" % (k, _tree(i, k)), _headed,
        {
            **_SCORES,
            "a score less": ("columns", replaced(b"-1.5 2", b"-1.5")),
            "a tree cut short": ("brackets", replaced(b")))", b")")),
            "no tree": ("tree", replaced(b"(S", b"S")),
            "NUL": ("nul", replaced(b"NN", b"N\0")),
        },
        replaced(b"3\t", b"4\t"), trees=True,
    ),
    "berkeley": Format(
        lambda i, k: b"-%d.5\t%s\n" % (k, _tree(i, k)), lambda _, candidates: b"".join(candidates) + b"\n",
        {
            **_SCORES,
            "no score": ("score", replaced(b"-1.5", b"")),
            "a tree cut short": ("brackets", replaced(b")))", b")")),
            "a line cut short": ("tree", lambda text: text[: text.index(b"\t")] + b"\n"),
        },
        lambda text: text.replace(b"-", b"x"), trees=True,
    ),
    "moses": Format(
        _moses, lambda _, candidates: b"".join(candidates),
        {
            "NaN": ("infinite score", replaced(b"-1.5", b"nan")),
            "a word for a value": ("score", replaced(b"-1.5", b"high")),
            "a line cut short": ("fields", lambda text: text[: text.index(b"LM")] + b"\n"),
            "an id that is none": ("id", lambda text: b"x" + text),
            "a column less": ("columns", replaced(b"LM= -1.5", b"")),
            "NUL": ("nul", replaced(b" b", b" \0")),
        },
        lambda text: text.replace(b"-", b"x"),
    ),
    "fairseq": Format(
        _fairseq, lambda i, candidates: b"S-%d\tx y\nT-%d\ta%d b1\n" % (i, i, i) + b"".join(candidates),
        {
            **_SCORES,
            "a line cut short": ("record", replaced(b"\ta", b"")),
            "no scores of words": ("columns", lambda text: text[: text.index(b"P-")]),
            "a word for the score of a word": ("score", replaced(b"-1 ", b"one ")),
            "NUL": ("nul", replaced(b" b", b" \0")),
        },
        replaced(b"P-", b"strange\nP-"),
    ),
    "sockeye": Format(
        lambda i, k: b'"a%d b%d"\t-%d.5' % (i, k, k), _sockeye,
        {**{what: damage for what, damage in _JSON.items() if what != "a number for a text"},
         "a score too many": ("columns", replaced(b"-1.5", b"[-1.5, 2]")),
         "no score": ("score", replaced(b"-1.5", b"[]")),
         "a number for a text": ("text", lambda text: b"7" + text[text.index(b"\t"):])},
        replaced(b"scores", b"score"),
    ),
    "jsonl": _OBJECTS,
    "jsonl without ids": _OBJECTS._replace(whole=_bare_jsonl),
}  # fmt: skip
LISTS, CANDIDATES = 4, 3
SCORE_LINES = [b"%d.25 %d\n" % (n, -n) for n in range(LISTS * CANDIDATES)]  # to be joined


class Case(NamedTuple):
    """A reader with the format that its files have; ``joined`` and ``merged`` have those of an inner reader."""

    name: str
    form: str
    options: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        return " ".join(
            [self.name, *([f"of {self.form}"] if self.name != self.form else []), *dict(self.options).values()]
        )

    @property
    def spec(self) -> dict[str, Any]:
        """The reader as a recipe names it."""
        inner = {"name": self.form.split()[0], **dict(self.options)}
        if self.name not in ("joined", "merged"):
            return inner
        return {"name": self.name, "of": inner, **({"duplicates": "keep"} if self.name == "merged" else {})}

    def write(self, place: Path, damage: Callable[[int, int, bytes], bytes], ruined: tuple[int, ...] = ()) -> str:
        """Write the files to the directory ``place``; the path that names them.

        damage: what becomes of candidate k of list i. ruined: the lists that are bad as a whole, or of which all
        candidates are, where scores are joined: else nobody could tell whose they are.
        """
        form = FORMATS[self.form]
        text = b""
        for i in range(LISTS):
            candidates = [damage(i, k, form.candidate(i, k)) for k in range(CANDIDATES)]
            if i in ruined and self.name == "joined":
                candidates = [
                    next(iter(form.damages.values()))[1](candidate.replace(b"-%d.5" % k, b"-1.5"))
                    for k, candidate in enumerate(candidates)
                ]
            whole = form.whole(i, candidates)
            text += form.ruin(whole) if i in ruined and self.name != "joined" else whole
        place.mkdir(parents=True, exist_ok=True)
        (place / "lists").write_bytes(text)
        if self.name == "joined":
            (place / "scores").write_bytes(b"".join(SCORE_LINES))
            return f"{place / 'lists'},{place / 'scores'}"
        if self.name == "merged":
            other = [form.whole(i, [form.candidate(i, k) for k in range(CANDIDATES)]) for i in range(LISTS)]
            (place / "other").write_bytes(b"".join(other))
            return f"{place / 'lists'},{place / 'other'}"
        return str(place / "lists")


TEXTS = [name for name, form in FORMATS.items() if not form.trees]
CASES = [
    *(Case(name.split()[0], name) for name in FORMATS),
    Case("moses", "moses", (("ids", "ordinal"),)),
    *(Case(name, form) for name in ("joined", "merged") for form in TEXTS),
]
