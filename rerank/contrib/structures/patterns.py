"""Templates of attributes of tokens, in the syntax of CRF++ (https://taku910.github.io/crfpp/#templ); a default set.

    # a comment
    U01:%x[-1,0]/%x[0,0]
    B

A line is a template. ``%x[row,column]`` stands for a column of the token ``row`` places away (up to 99), ``_B-1`` or
``_B+1`` where that is beyond the sentence; a template gives an attribute per token, its line with these filled in.
Besides ``x`` there are ``lower``, ``shape``, ``short``, ``marks``, ``prefix3`` and ``suffix3`` (of any length), and the
names of clusters (``brown``, or ``brown4`` for the first four characters) and gazetteers. A template gives nothing for
a token whose word is shorter, or unknown to a cluster.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from rerank.base.encoding import decoded
from rerank.base.errors import DataError, RecipeError
from rerank.base.registry import nearest
from rerank.readers.lines import LineReader
from rerank.readers.streams import PathLike, open_stream

_MACRO = re.compile(r"%([A-Za-z_]+)([0-9]*)\[\s*(-?[0-9]{1,2})\s*,\s*([0-9]{1,2})\s*\]")
SIZED = "prefix", "suffix"


class Macro(NamedTuple):
    """The value that a template looks at: a function of a column of the token ``row`` places away; size: of an affix,
    0: all."""

    function: str
    size: int
    row: int
    column: int


class Pattern(NamedTuple):
    """A template: its line, the texts between its macros, one more than these, and the macros."""

    line: str
    texts: tuple[str, ...]
    macros: tuple[Macro, ...]


def shape(word: str) -> str:
    """Its letters as x and X, its digits as 9.

    >>> shape("McDonald's-7")
    "XxXxxxxx'x-9"
    """
    return "".join("X" if c.isupper() else "x" if c.isalpha() else "9" if c.isdigit() else c for c in word)


def short(word: str) -> str:
    """Its shape with every run of one kind as one.

    >>> short("McDonald's-7")
    "XxXx'x-9"
    """
    return re.sub(r"(.)\1+", r"\1", shape(word))


def marks(word: str) -> str | None:
    """The kinds of characters in it: digits, a hyphen, capitals at the start, within, or nothing else.

    >>> marks("Mid-1990s")
    'digit hyphen first'
    """
    kinds = {
        "digit": any(map(str.isdigit, word)),
        "hyphen": "-" in word,
        "first": word[:1].isupper(),
        "within": any(map(str.isupper, word[1:])),
        "all": word.isupper(),
    }
    return " ".join(name for name, is_so in kinds.items() if is_so) or None


def cut(text: str | None, size: int) -> str | None:
    """The first ``size`` characters, or the last −``size``; 0: all of them; None for a text that is shorter.

    >>> cut("dogs", 3), cut("dogs", -1), cut("dogs", 5)
    ('dog', 's', None)
    """
    if text is None or len(text) < abs(size):
        return None
    return text[size:] if size < 0 else text[: size or None]


FUNCTIONS: dict[str, Callable[[str, int], str | None]] = {  # of a word and a size, which is 0 but for affixes
    "x": cut,
    "lower": lambda word, _: word.lower(),
    "shape": lambda word, _: shape(word),
    "short": lambda word, _: short(word),
    "marks": lambda word, _: marks(word),
    "prefix": cut,
    "suffix": lambda word, size: cut(word, -size),
}


def read_patterns(lines: Iterable[str], known: Collection[str] = (), key: str = "features.templates") -> list[Pattern]:
    """The templates that lines are; known: names of clusters and gazetteers.

    Raises
    ------
    RecipeError: a line that is no template, or asks for what there is not.
    """
    patterns, functions = [], [*FUNCTIONS, *known]
    for number, line in enumerate(lines, start=1):
        line = line.strip()
        if not line or line.startswith("#") or line == "B":  # every transition has a weight anyway
            continue
        texts = tuple(_MACRO.sub("\0", line).split("\0"))
        macros = [Macro(name, int(size or 0), int(i), int(j)) for name, size, i, j in _MACRO.findall(line)]
        wrong = ""
        if line.startswith("B"):
            wrong = f"found {line!r}; transitions have weights of their own that do not look at words: write B"
        elif not line.startswith("U"):
            wrong = f"found {line!r}; expected U, a name, and what is looked at: U01:%x[-1,0]"
        elif any(text.count("%") != text.count("%%") * 2 for text in texts):
            wrong = f"found {line!r}; expected a macro as %x[-1,0] after %"
        for name, size, *_ in macros:
            if name not in functions:
                wrong = wrong or f"unknown function {name!r}; {nearest(name, functions)}"
            elif (name in SIZED) != (size > 0) and name not in known:
                wrong = wrong or f"found {name}{size or ''}; expected x, prefix3, ..."
        if wrong:
            raise RecipeError(f"line {number}: {wrong}", key=key)
        patterns.append(Pattern(line, texts, tuple(macros)))
    return patterns


def template_file(path: str | Path) -> list[str]:
    """The lines of a file of templates."""
    with open_stream(path) as stream:
        return decoded(b"".join(iter(lambda: stream.read(1 << 16), b""))).splitlines()


def default_patterns(width: int) -> list[str]:
    """The lines of the default set for tokens of this many columns: words, affixes, shapes, windows of all columns."""
    lower = [f"%lower[{row},0]" for row in range(-2, 3)]
    texts = ["%x[0,0]", *lower, *(f"%{kind}{size}[0,0]" for kind in SIZED for size in range(1, 5))]
    texts += ["/".join(lower[1:3]), "/".join(lower[2:4]), "/".join((lower[1], lower[3]))]
    texts += ["%shape[0,0]", *(f"%short[{row},0]" for row in (-1, 0, 1)), "%marks[0,0]"]
    texts += [f"%suffix3[{row},0]" for row in (-1, 1)]
    for column in range(1, width):
        window = [f"%x[{row},{column}]" for row in range(-2, 3)]
        runs = [window[first : first + size] for size in (1, 2, 3) for first in range(6 - size)]
        texts += ["/".join(run) for run in runs] + [f"{lower[2]}/{window[2]}"]
    return ["U:", *(f"U{number:02}:{text}" for number, text in enumerate(texts))]


NAMELESS = "in"  # the kind of entries whose gazetteer has but one


@dataclass(frozen=True)
class Gazetteer:
    """Names of one or several words (joined by blanks) with their kinds."""

    kinds: Mapping[str, str]
    longest: int = field(init=False)
    first: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "longest", max((entry.count(" ") + 1 for entry in self.kinds), default=0))
        object.__setattr__(self, "first", frozenset(entry.partition(" ")[0] for entry in self.kinds))

    def values(self, words: Sequence[str]) -> list[str | None]:
        """For every word ``B-KIND`` at the start of an entry, ``I-KIND`` within, else None; the longest from the left.

        >>> Gazetteer({"New York": "city"}).values(["in", "New", "York"])
        [None, 'B-city', 'I-city']
        """
        found: list[str | None] = [None] * len(words)
        i = 0
        while i < len(words):
            sizes = range(min(self.longest, len(words) - i), 0, -1) if words[i] in self.first else ()
            size = next((size for size in sizes if " ".join(words[i : i + size]) in self.kinds), 0)
            if size:
                kind = self.kinds[" ".join(words[i : i + size])]
                found[i : i + size] = [f"B-{kind}", *[f"I-{kind}"] * (size - 1)]
            i += size or 1
        return found


def read_gazetteer(path: PathLike) -> Gazetteer:
    """A file with an entry per line, or an entry, a tab and its kind."""
    rows = _rows(path, (1, 2), "an entry, or an entry, a tab and its kind")
    return Gazetteer({" ".join(entry.split()): next(iter(kind), NAMELESS) for entry, *kind in rows})


def read_clusters(path: PathLike) -> dict[str, str]:
    """A file with a word, a tab and its cluster per line; or, as Brown clusters have it, bits, a word and its count."""
    return dict(row[1::-1] if len(row) == 3 else row for row in _rows(path, (2, 3), "a word, a tab and its cluster"))


def _rows(path: PathLike, sizes: tuple[int, int], expected: str) -> Iterator[list[str]]:
    """The fields of lines that are not empty, as many as ``sizes`` allow."""
    with open_stream(path) as stream:
        for number, line in LineReader(stream):
            fields = decoded(line).split("\t")
            if line.strip() and (len(fields) not in sizes or not fields[0].strip()):
                raise DataError(f"expected {expected}", path=str(path), line=number)
            if line.strip():
                yield fields
