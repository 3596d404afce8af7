"""Attributes of tokens as numbers, by templates for every token of many sentences.

Templates are in the syntax of CRF++ (https://taku910.github.io/crfpp/#templ):

    # a comment
    U01:%x[-1,0]/%x[0,0]
    B

A line is a template. ``%x[row,column]`` stands for a column of the token ``row`` places away (up to 99), ``_B-1`` or
``_B+1`` where that is beyond the sentence; a template gives an attribute per token, its line with these filled in.
Besides ``x`` there are ``lower``, ``shape``, ``short``, ``marks``, ``prefix3`` and ``suffix3`` (of any length). A
template gives nothing for a token whose word is shorter.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple
from unicodedata import category

import numpy as np

from rerank.base.errors import RecipeError
from rerank.base.registry import nearest
from rerank.contrib.structures.readers import Token
from rerank.data.corpus import offsets

_MACRO = re.compile(r"%([A-Za-z_]+)([0-9]*)\[\s*(-?[0-9]{1,2})\s*,\s*([0-9]{1,2})\s*\]")


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
    """A word's letters as x and X, those of scripts without capitals as o, its digits as 9. Signs that change a letter,
    as most vowels of Indic scripts, belong to it.

    >>> shape("McDonald's-7"), shape("किताब")
    ("XxXxxxxx'x-9", 'ooo')
    """
    return "".join(
        "X" if c.isupper() else "x" if c.islower() else "o" if c.isalpha() else "9" if c.isdigit() else c
        for c in word if category(c)[0] != "M"
    )  # fmt: skip


def short(word: str) -> str:
    """A word's shape with every run of one kind as one.

    >>> short("McDonald's-7")
    "XxXx'x-9"
    """
    return re.sub(r"(.)\1+", r"\1", shape(word))


def marks(word: str) -> str | None:
    """The kinds of characters in a word: digits, a hyphen, capitals at the start, within, or nothing else.

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


def cut(word: str, size: int) -> str | None:
    """The first ``size`` characters of a word, or the last −``size``; None for one that is shorter.

    >>> cut("dogs", 3), cut("dogs", -1), cut("dogs", 5)
    ('dog', 's', None)
    """
    if len(word) < abs(size):
        return None
    return word[size:] if size < 0 else word[:size]


FUNCTIONS: dict[str, Callable[[str], str | None]] = {
    "x": str, "lower": str.lower, "shape": shape, "short": short, "marks": marks
}  # fmt: skip
AFFIXES = {"prefix": 1, "suffix": -1}  # the factors of sizes for ``cut``


def read_patterns(lines: Iterable[str]) -> list[Pattern]:
    """The templates that lines are.

    Raises RecipeError: a line that is no template, or asks for what there is not.
    """
    patterns = list[Pattern]()
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
            if name not in FUNCTIONS | AFFIXES:
                wrong = wrong or f"unknown function {name!r}; {nearest(name, FUNCTIONS | AFFIXES)}"
            elif (name in AFFIXES) != (size > 0):
                wrong = wrong or f"found {name}{size or ''}; expected x, prefix3, ..."
        if wrong:
            raise RecipeError(f"line {number}: {wrong}", key="features.templates")
        patterns.append(Pattern(line, texts, tuple(macros)))
    return patterns


def default_patterns(width: int) -> list[str]:
    """The lines of the default set for tokens of this many columns: words, affixes, shapes, windows of all columns."""
    lower = [f"%lower[{row},0]" for row in range(-2, 3)]
    texts = ["%x[0,0]", *lower, *(f"%{kind}{size}[0,0]" for kind in AFFIXES for size in range(1, 5))]
    texts += ["/".join(lower[1:3]), "/".join(lower[2:4]), "/".join((lower[1], lower[3]))]
    texts += ["%shape[0,0]", *(f"%short[{row},0]" for row in (-1, 0, 1)), "%marks[0,0]"]
    texts += [f"%suffix3[{row},0]" for row in (-1, 1)]
    for column in range(1, width):
        window = [f"%x[{row},{column}]" for row in range(-2, 3)]
        runs = [window[first : first + size] for size in (1, 2, 3) for first in range(6 - size)]
        texts += ["/".join(run) for run in runs] + [f"{lower[2]}/{window[2]}"]
    return ["U:", *(f"U{number:02}:{text}" for number, text in enumerate(texts))]


# int64 [L + 1], the first token of every sentence; int64 [T + 1], where the attributes of a token begin; int64 [nnz].
Attributes = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass
class TokenFeatures:
    """The maker of attributes: templates, and the numbers of known attributes by their text."""

    patterns: Sequence[Pattern]
    ids: dict[str, int] = field(default_factory=dict)

    def learn(self, sentences: Sequence[Sequence[Token]], cutoff: int = 1) -> Attributes:
        """The attributes of training sentences that ``cutoff`` tokens or more have; they are known from now on."""
        starts, rows, numbers = self.extract(sentences, grow=True)
        mask = np.bincount(numbers, minlength=len(self.ids)) >= cutoff
        number = np.cumsum(mask) - 1
        self.ids = {text: int(number[j]) for text, j in self.ids.items() if mask[j]}
        entries = mask[numbers]
        return starts, offsets(entries)[rows], number[numbers[entries]]

    def extract(self, sentences: Sequence[Sequence[Token]], *, grow: bool = False) -> Attributes:
        """The known attributes of sentences; ``grow``: others become known."""
        starts = offsets([len(sentence) for sentence in sentences])
        view = _View(sentences, starts)
        table = np.array([view.pattern(pattern, self.ids, grow) for pattern in self.patterns], np.int64)
        table = table.reshape(len(self.patterns), view.size).T
        owner, numbers = np.nonzero(table >= 0)[0], table[table >= 0]
        if len({pattern.texts for pattern in self.patterns}) < len(self.patterns):  # two can give the same attribute
            _, first = np.unique(owner * max(len(self.ids), 1) + numbers, return_index=True)
            owner, numbers = owner[first], numbers[first]
        return starts, offsets(np.bincount(owner, minlength=view.size)), numbers


class _View:
    """Sentences as arrays; values of macros are numbers of texts."""

    def __init__(self, sentences: Sequence[Sequence[Token]], starts: np.ndarray) -> None:
        self._sentences, self.size = sentences, int(starts[-1])
        lengths = np.diff(starts)
        self._first, self._end = np.repeat(starts[:-1], lengths), np.repeat(starts[1:], lengths)
        self._columns = dict[int, tuple[list[str], np.ndarray]]()
        self._values = dict[tuple[str, int, int], np.ndarray]()
        self._number: dict[str | None, int] = {None: -1}  # of texts

    def pattern(self, pattern: Pattern, ids: dict[str, int], grow: bool) -> np.ndarray:
        """int64 [T]: the attribute that a template gives for every token, -1 for none that is in ``ids``."""
        parts = [self._macro(macro) for macro in pattern.macros]
        key, mask = np.zeros(self.size, np.int64), np.ones(self.size, np.bool_)
        for part in parts:
            key = np.unique(key, return_inverse=True)[1] * np.int64(len(self._number) - 1) + part
            mask &= part >= 0
        attribute = np.full(self.size, -1, np.int64)
        _, first, inverse = np.unique(key[mask], return_index=True, return_inverse=True)
        every, numbers = [text or "" for text in self._number][1:], np.empty(first.size, np.int64)
        for k, row in enumerate(np.stack(parts, axis=-1)[mask][first].tolist() if parts else [()] * first.size):
            pieces = chain.from_iterable(zip(pattern.texts, (every[value] for value in row), strict=False))
            text = "".join(pieces) + pattern.texts[-1]
            numbers[k] = ids.setdefault(text, len(ids)) if grow else ids.get(text, -1)
        attribute[mask] = numbers[inverse] if first.size else -1
        return attribute

    def _macro(self, macro: Macro) -> np.ndarray:
        """int64 [T]: the number of the text that stands for a macro at every token, -1 for none."""
        name, size, _, column = macro
        if (name, size, column) not in self._values:
            words, tokens = self._words(column)
            cuts = name in AFFIXES
            texts = [cut(word, AFFIXES[name] * size) if cuts else FUNCTIONS[name](word) for word in words]
            self._values[name, size, column] = np.array([*map(self._text, texts)], np.int64)[tokens]
        values = self._values[name, size, column]
        positions = np.arange(self.size) + macro.row
        before, behind = self._first - positions, positions - self._end + 1
        numbers = values[np.clip(positions, 0, max(self.size - 1, 0))] if self.size else values
        for away in range(1, abs(macro.row) + 1):
            numbers = np.where(before == away, self._text(f"_B-{away}"), numbers)
            numbers = np.where(behind == away, self._text(f"_B+{away}"), numbers)
        return numbers

    def _words(self, column: int) -> tuple[list[str], np.ndarray]:
        """The different words in a column, and which of them every token has (int64 [T])."""
        if column not in self._columns:
            number = dict[str, int]()
            try:
                tokens = chain.from_iterable(self._sentences)
                numbers = [number.setdefault(token[column], len(number)) for token in tokens]
            except IndexError:
                width = min(len(token) for tokens in self._sentences for token in tokens)
                message = f"a template looks at column {column}; the tokens have {width}, counted from 0"
                raise RecipeError(message, key="features.templates") from None
            self._columns[column] = list(number), np.array(numbers, np.int64)
        return self._columns[column]

    def _text(self, text: str | None) -> int:
        return self._number.setdefault(text, len(self._number) - 1)
