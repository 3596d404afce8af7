"""Small files in every format of lists: four lists of three candidates, whole or damaged.

A format makes candidates (of the number of their list, their own, and their text), and lists of these. ``damages`` turn
a candidate into one that cannot be used; ``ruin`` turns a list into one that is bad as a whole. ``put`` writes lists to
more than one file, ``written`` names the reader of what is written where that is another.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

Damage = Callable[[bytes], bytes]
OWN = "table_format:TableReader"  # that of docs/adding-a-format.md


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
    options: tuple[tuple[str, Any], ...] = ()
    put: Callable[[Path, bytes], None] = Path.write_bytes  # type: ignore[assignment]
    written: str = ""
    blank: bool = True  # whether blank lines between lists mean nothing


def _tree(i: int, k: int) -> bytes:
    return b"(S (NN a%d) (VP%d (VB b)))" % (i, k)


def _headed(i: int, candidates: list[bytes]) -> bytes:
    return b"%d\tid%d\n" % (len(candidates), i) + b"".join(candidates) + b"\n"


def _together(_: int, candidates: list[bytes]) -> bytes:
    return b"".join(candidates)


def _apart(_: int, candidates: list[bytes]) -> bytes:
    return b"".join(candidates) + b"\n"


def _renumbered(_: int, candidates: list[bytes]) -> bytes:
    marks = [re.sub(rb"# Parse \d+", b"# Parse %d" % k, text) for k, text in enumerate(candidates, start=1)]
    return b"".join(marks)


def _within(line: bytes) -> Callable[[int, list[bytes]], bytes]:
    """Candidates on a line with the number of their list."""
    return lambda i, candidates: line % (i, b", ".join(candidates))


def _beside(line: bytes) -> Callable[[int, list[bytes]], bytes]:
    """Texts and scores on a line with the number of their list."""

    def whole(i: int, candidates: list[bytes]) -> bytes:
        pairs = [candidate.split(b"\t") for candidate in candidates]
        texts, scores = (b", ".join(column) for column in zip(*pairs, strict=True))
        return line % (i, texts, scores)

    return whole


def _answer(i: int, k: int) -> bytes:
    return b'"a%d b%d"\t-%d.5' % (i, k, k)


def _ranked(_: int, candidates: list[bytes]) -> bytes:
    return b"".join(b"%d %s" % (k, text.partition(b" ")[2]) for k, text in enumerate(candidates, start=1))


def _put_espnet(place: Path, text: bytes) -> None:
    """Lines with their ranks in the folders of these."""
    for line in text.splitlines(keepends=True):
        rank, _, rest = line.partition(b" ")
        folder = place / f"{rank.decode()}best_recog"
        folder.mkdir(parents=True, exist_ok=True)
        words, _, score = rest.partition(b"\t")
        with (folder / "text").open("ab") as texts, (folder / "score").open("ab") as scores:
            texts.write(words + b"\n")
            scores.write(rest.split(b" ")[0] + b" " + score)


LISTS, CANDIDATES = 4, 3
_BRACKETS = {
    "a tree cut short": ("brackets", replaced(b")))", b")")),
    "no tree": ("tree", replaced(b"(S", b"S")),
    "NUL": ("nul", replaced(b"NN", b"N\0")),
}
_NUL = {"NUL": ("nul", replaced(b" b", b" \0"))}
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
_GROUPED = {
    **_SCORES,
    "no score": ("score", replaced(b"-1.5\t", b"")),
    "a tree cut short": ("brackets", replaced(b")))", b")")),
    "a line cut short": ("tree", lambda text: text[: text.index(b"\t")] + b"\n"),
}
_NO_TEXT = {"a number for a text": ("text", lambda text: b"7" + text[text.index(b"\t"):])}  # fmt: skip
_OBJECTS = Format(
    lambda i, k: json.dumps({"text": f"a{i} b{k}", "score": -k - 0.5, "lm": k}).encode(),
    _within(b'{"id": "l%d", "candidates": [%s]}\n'),
    {**_JSON, "no number": ("columns", replaced(b', "lm": 1', b""))},
    lambda text: re.sub(rb"\[.*\]", b"null", text), options=(("dense", ["lm"]),),  # which few lists do not tell
)  # fmt: skip

_TREES = Format(
    lambda i, k: _tree(i, k).replace(b" (V", b"\n  (V", 1) + b"\n", _apart,
    _BRACKETS, lambda text: text.replace(b"(S", b"S"), trees=True,
)  # fmt: skip

FORMATS: dict[str, Format] = {
    "charniak": Format(
        lambda i, k: b"-%d.5 2\n%s\n" % (k, _tree(i, k)), _headed,
        {**_SCORES, "a score less": ("columns", replaced(b"-1.5 2", b"-1.5")), **_BRACKETS},
        replaced(b"3\t", b"4\t"), trees=True,
    ),
    "berkeley": Format(
        lambda i, k: b"-%d.5\t%s\n" % (k, _tree(i, k)), _apart,
        {**_GROUPED, "no score": ("score", replaced(b"-1.5", b""))},
        lambda text: text.replace(b"-", b"x"), trees=True,
    ),
    "trees": _TREES,
    "trees with counts": _TREES._replace(whole=_headed, ruin=replaced(b"3\t", b"4\t")),
    "trees with scores": _TREES._replace(
        candidate=lambda i, k: b"-%d.5\t%s\n" % (k, _tree(i, k)), ruin=lambda text: text.replace(b"-", b"x"),
        damages=_GROUPED,
    ),
    "stanford": Format(
        lambda i, k: b"# Parse %d with score -%d.5\n%s\n" % (k + 1, k, _tree(i, k).replace(b" (V", b"\n  (V", 1)),
        _renumbered,
        {**_SCORES, "no score": ("score", replaced(b" -1.5", b"")), **_BRACKETS},
        lambda text: text.replace(b"\n(S", b"\nS"), trees=True,
    ),
    "moses": Format(
        lambda i, k: b"%d ||| a%d b%d ||| LM= -%d.5 ||| -%d\n" % (i, i, k, k, k + 1), _together,
        {
            "NaN": ("infinite score", replaced(b"-1.5", b"nan")),
            "a word for a value": ("score", replaced(b"-1.5", b"high")),
            "a line cut short": ("fields", lambda text: text[: text.index(b"LM")] + b"\n"),
            "an id that is none": ("id", lambda text: b"x" + text),
            "a column less": ("columns", replaced(b"LM= -1.5", b"")),
            **_NUL,
        },
        lambda text: text.replace(b"-", b"x"),
    ),
    "fairseq": Format(
        lambda i, k: b"H-%d\t-%d.5\ta%d b%d\nP-%d\t-1 -%d\n" % (i, k, i, k, i, k),
        lambda i, candidates: b"S-%d\tx y\nT-%d\ta%d b1\n" % (i, i, i) + b"".join(candidates),
        {
            **_SCORES,
            "a line cut short": ("record", replaced(b"\ta", b"")),
            "no scores of words": ("columns", lambda text: text[: text.index(b"P-")]),
            "a word for the score of a word": ("score", replaced(b"-1 ", b"one ")),
            **_NUL,
        },
        replaced(b"P-", b"strange\nP-"),
    ),
    "sockeye": Format(
        _answer, _beside(b'{"sentence_id": %d, "translations": [%s], "scores": [%s]}\n'),
        {**_JSON, **_NO_TEXT, "a score too many": ("columns", replaced(b"-1.5", b"[-1.5, 2]")),
         "no score": ("score", replaced(b"-1.5", b"[]"))},
        replaced(b"scores", b"score"),
    ),
    "opennmt": Format(
        lambda i, k: b"-%d.5 ||| a%d b%d\n" % (k, i, k), _together,
        {**_SCORES, **_NUL},
        lambda text: text.replace(b"-", b"x"), options=(("n", CANDIDATES),), blank=False,
    ),
    "kaldi": Format(
        lambda i, k: b"utt%d-%d a%d b%d\n" % (i, k + 1, i, k), _together,
        {"NUL": ("nul", replaced(b" b", b" \0")), "a key without a number": ("id", replaced(b"-2 ", b" "))},
        lambda text: re.sub(rb"-\d", b"", text), written="jsonl",
    ),
    "espnet": Format(
        lambda i, k: b"%d utt%d a%d b%d\ttensor(-%d.5)\n" % (k + 1, i, i, k, k), _ranked,
        {**_SCORES, **_NUL},
        lambda text: text.replace(b"-", b"x"), put=_put_espnet, written="jsonl",
    ),
    "trec": Format(
        lambda i, k: b"q%d Q0 a%db%d %d -%d.5 run\n" % (i, i, k, k + 1, k), _together,
        {**_SCORES, "a line cut short": ("fields", replaced(b" run", b"")), "NUL": ("nul", replaced(b"b", b"\0"))},
        lambda text: text.replace(b" Q0 ", b" "),
    ),
    "letor": Format(
        lambda i, k: b"%d qid:q%d 1:%d 2:-%d.5 # a%d b%d\n" % (k, i, k, k, i, k),
        _together,
        {what: ("fields", damage) for what, (_, damage) in _SCORES.items()}
        | {"no number": ("fields", replaced(b"1:1", b"1")), **_NUL},
        lambda text: text.replace(b"2:", b"x:"),
    ),
    OWN: Format(
        lambda i, k: b"l%d\t-%d.5\t-%d\ta%d b%d\n" % (i, k, k, i, k), _together,
        {**_SCORES, "a line cut short": ("fields", replaced(b"\ta", b" a"))},
        lambda text: text.replace(b"-", b"x"), blank=False,
    ),
    "jsonl": _OBJECTS,
    "jsonl without ids": _OBJECTS._replace(whole=lambda _, each: b'{"candidates": [%s]}\n' % b", ".join(each)),
}  # fmt: skip
# Those that others are read through: of trees and texts, with and without ids, in folders, with options of their own.
INNER = ("charniak", "trees with scores", "moses", "fairseq", "opennmt", "kaldi", "espnet", "jsonl without ids", OWN)
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
        inner = {"name": self.form.split()[0], **dict(FORMATS[self.form].options), **dict(self.options)}
        if self.name not in ("joined", "merged"):
            return inner
        return {"name": self.name, "of": inner, **({"duplicates": "keep"} if self.name == "merged" else {})}

    @property
    def again(self) -> dict[str, Any]:
        """The reader of what this one writes."""
        inner = Case(self.form.split()[0], self.form, self.options).spec
        written = FORMATS[self.form].written
        if self.name == "merged" and self.form != "opennmt" and not written:
            return self.spec
        return {"name": written or "jsonl"} if written or self.name == "merged" else inner

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
        form.put(place / "lists", text)
        if self.name == "joined":
            (place / "scores").write_bytes(b"".join(SCORE_LINES))
            return f"{place / 'lists'},{place / 'scores'}"
        if self.name == "merged":
            form.put(place / "other", lists_in(self.form))
            return f"{place / 'lists'},{place / 'other'}"
        return str(place / "lists")


CASES = [
    *(Case(name.split()[0], name) for name in FORMATS),
    Case("moses", "moses", (("ids", "ordinal"),)),
    *(Case(name, form) for name in ("joined", "merged") for form in INNER),
]


def whole(_i: int, _k: int, text: bytes) -> bytes:
    """No damage."""
    return text


def lists_in(name: str, lists: int = LISTS, ruined: tuple[int, ...] = (), blank: bytes = b"") -> bytes:
    """A file of a format with something before, between and after its lists, of which some are bad."""
    form = FORMATS[name]
    texts = [form.whole(i, [form.candidate(i, k) for k in range(CANDIDATES)]) for i in range(lists)]
    return blank + blank.join(form.ruin(text) if i in ruined else text for i, text in enumerate(texts)) + blank
