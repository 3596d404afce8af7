"""The labelled values of candidates, and which of them are columns, as the first lists decide."""

import re
from itertools import chain, compress
from operator import itemgetter
from typing import Literal, NamedTuple

import numpy as np

from rerank.data.corpus import offsets
from rerank.readers.base import Problem, excerpt
from rerank.readers.lines import DECIMAL
from rerank.readers.moses.layout import as_number

TOTAL = "score"  # the column of totals

_DECIMAL = re.compile(DECIMAL)
_PIECE = re.compile(rb"(\S+?=%s);+|(\S+)" % DECIMAL)  # a semicolon after a whole label=value separates
_EQUALS, _COLON, _JOINED = b"=: "


class Key(NamedTuple):
    """What a value is: its place among those of its label, and how many these are. A label with another number of
    values has other columns, instead of values that are silently shifted."""

    label: bytes  # b"": there is none
    place: int
    of: int

    @property
    def name(self) -> bytes:
        """Its name as a sparse feature: the label, and its place unless there is no other."""
        place = b"" if self.label and self.of == 1 else b"%d" % self.place
        return b"_".join(filter(None, (self.label, place)))

    @property
    def column(self) -> str:
        """Its name as a column."""
        name = self.name.decode("utf-8", "surrogateescape")
        return f"{TOTAL}_0" if name == TOTAL else name


class Values(NamedTuple):
    """The m labelled values of some lines, in their order."""

    keys: list[Key]
    which: np.ndarray  # int64 [m]: their places in ``keys``
    rows: np.ndarray  # int64 [m]: their lines
    values: np.ndarray  # float64 [m]
    inline: np.ndarray  # bool [m]: written as label=value, without a space

    def some(self, chosen: np.ndarray) -> "Values":
        """The values that are ``chosen`` (bool [m])."""
        return Values(self.keys, *(array[chosen] for array in self[1:]))

    def first(self) -> tuple[list[int], list[int]]:
        """The keys that there are, in order of first appearance, as places in ``keys``, and the first value of each."""
        found, at = np.unique(self.which, return_index=True)
        order = np.argsort(at)
        return found[order].tolist(), at[order].tolist()


def read_values(fields: list[bytes], problems: dict[int, Problem]) -> Values:
    """The labelled values of feature fields; ``problems`` gets those of the fields that are damaged."""
    damaged = dict[int, Problem]()
    two = _read_words(fields[:2], damaged)
    first, second = two.which[two.rows == 0], two.which[two.rows == 1]
    if not damaged and np.array_equal(first, second) and b";" not in fields[0]:
        pattern, texts = _pattern(fields[0]), list[bytes]()
        for match in map(pattern.fullmatch, fields):
            if match is None:
                break
            texts += match.groups()
        else:  # all have the labels of the first
            values, wrong = _numbers(texts)
            if not wrong:
                which, inline = (np.tile(array[: first.size], len(fields)) for array in (two.which, two.inline))
                return Values(two.keys, which, np.repeat(np.arange(len(fields)), first.size), values, inline)
    return _read_words(fields, problems)


def _pattern(field: bytes) -> re.Pattern[bytes]:
    """Matches the fields with the labels of this one, which has no semicolon; its groups are the values."""
    words = []
    for word in _pieces([field])[0]:
        label = re.escape(word.rstrip()) if word.endswith((b"=", b":", b" ")) else rb"([-+.0-9eE]++)"
        words.append(label if word.endswith(b" ") else label + rb"\s++")
    return re.compile(b"".join(words).removesuffix(rb"\s++"))


def _read_words(fields: list[bytes], problems: dict[int, Problem]) -> Values:
    """The same, word by word: a label ends with ``=`` or ``:`` and precedes its values, or is joined to its only (or
    first) value."""
    pieces = _pieces(fields)
    sizes, words = np.array(list(map(len, pieces)), np.int64), list(chain.from_iterable(pieces))
    rows, ends = np.repeat(np.arange(len(fields)), sizes), np.frombuffer(bytes(map(itemgetter(-1), words)), np.uint8)
    opens = (ends == _EQUALS) | (ends == _COLON) | (ends == _JOINED)
    # A run is a label with its values, or the values that precede the first label of a field.
    starts = opens.copy()
    starts[offsets(sizes)[:-1][sizes > 0]] = True
    first, texts, labels = np.flatnonzero(starts), list(compress(words, ~opens)), list(compress(words, opens))
    counts = np.bincount((np.cumsum(starts) - 1)[~opens], minlength=first.size)
    names = {b"": 0}
    known = {word: names.setdefault(word.rstrip()[:-1], len(names)) for word in dict.fromkeys(labels)}
    name = np.zeros(first.size, np.int64)
    name[opens[first]] = list(map(known.__getitem__, labels))
    most, every = int(counts.max(initial=0)) + 1, list(names)
    kinds, kind = np.unique(name * most + counts, return_inverse=True)
    ahead = offsets(kinds % most)[kind] - offsets(counts)[:-1]
    values, wrong = _numbers(texts)
    bare = [] if {b"=", b":"}.isdisjoint(known) else [k for k, word in enumerate(words) if word in (b"=", b":")]
    faults = dict.fromkeys(first[counts == 0].tolist(), " after it")
    faults |= dict.fromkeys([*np.flatnonzero(~opens)[np.array(wrong, np.int64)].tolist(), *bare], "")
    for k, where in sorted(faults.items()):
        problems.setdefault(int(rows[k]), Problem("score", f"found {excerpt(words[k])}; expected a number{where}"))
    return Values(
        [Key(every[k // most], place, k % most) for k in kinds.tolist() for place in range(k % most)],
        np.repeat(ahead, counts) + np.arange(len(texts)), rows[~opens], values,
        np.repeat((ends[first] == _JOINED) & (counts == 1), counts),
    )  # fmt: skip


def _pieces(fields: list[bytes]) -> list[list[bytes]]:
    """The words of fields, which also end at a semicolon if a whole ``label=value`` precedes it. A label that is joined
    to its value is a word of its own, with a blank at its end."""
    pieces = [[a or b for a, b in _PIECE.findall(field)] if b";" in field else field.split() for field in fields]
    ends = b" ".join([*fields, b""])
    if ends.count(b"=") + ends.count(b":") == ends.count(b"= ") + ends.count(b": "):
        return pieces
    return [[part for word in words for part in _cut(word)] for words in pieces]


def _cut(word: bytes) -> tuple[bytes, ...]:
    """A label, with its sign and a blank, and the value that is joined to it; or the whole word. The last sign counts,
    as labels may be made of words; a sign at the beginning is none, as it would leave an empty label."""
    equals, colon = word.rfind(b"="), word.rfind(b":")
    cut = equals if equals > 0 else colon
    if cut <= 0 or word.endswith((b"=", b":")):
        return (word,)
    if colon > cut and not _DECIMAL.fullmatch(word, cut + 1) and _DECIMAL.fullmatch(word, colon + 1):
        cut = colon  # a label with = in it, joined by a colon
    return word[: cut + 1] + b" ", word[cut + 1 :]


def _numbers(texts: list[bytes]) -> tuple[np.ndarray, list[int]]:
    """float64: what the texts denote, and the places of those that are no numbers."""
    try:
        if b"_" not in b"".join(texts):
            return np.array(texts, np.float64), []
    except ValueError:
        pass
    found = list(map(as_number, texts))
    wrong = [k for k, value in enumerate(found) if value is None]
    return np.array([0.0 if value is None else value for value in found]), wrong


class Label(NamedTuple):
    """A labelled value of some candidates."""

    key: Key
    inline: bool  # written label=value
    dense: bool  # looks like a column
    shared: bool  # all candidates have it


def find_labels(values: Values, total: int) -> dict[str, Label]:
    """The labelled values of ``total`` candidates by name, in order of first appearance; of one name, the first."""
    found, at = values.first()
    counts = np.bincount(values.which, minlength=len(values.keys)).tolist()
    once = np.unique(values.rows * len(values.keys) + values.which) % max(1, len(values.keys))
    candidates, inline = np.bincount(once, minlength=len(values.keys)).tolist(), values.inline[at].tolist()
    labels = dict[str, Label]()
    for k, joined in zip(found, inline, strict=True):
        key, shared, usual = values.keys[k], candidates[k] == total, 10 * candidates[k] >= 9 * total
        if all(inline):
            dense = usual and candidates[k] == counts[k]
        else:  # sparse features do not have several values, and have "_" in their names
            dense = not joined and usual and (shared or key.name != key.label or "_" not in key.column)
        labels.setdefault(key.column, Label(key, joined, dense, shared))
    return labels


class Columns(NamedTuple):
    """The labelled values that all candidates of a file have, or nearly all."""

    names: tuple[str, ...] = ()
    keys: tuple[Key | None, ...] = ()  # None if no candidate has had the label yet
    optional: tuple[bool, ...] = ()  # written label=value, as by programs that may leave out a 0
    others: tuple[str, ...] = ()  # labels that all candidates have, though they were not asked for

    def completed(self, values: Values) -> "Columns":
        """The columns, with what further candidates show of those that none had."""
        if None not in self.keys:
            return self
        found = {values.keys[k].column: values.keys[k] for k in reversed(values.first()[0])}
        keys = tuple(key or found.get(name) for name, key in zip(self.names, self.keys, strict=True))
        return self._replace(keys=keys)


def find_columns(labels: dict[str, Label], features: Literal["auto", "dense", "sparse"]) -> Columns:
    """The columns of a file, decided by its first candidates, in order of first appearance.

    features: "auto" decides label by label: columns are labels that nine candidates in ten have. If some labels precede
    their values, those written label=value are sparse, and those that look sparse are columns only if all candidates
    have them. "dense": all labels are columns. "sparse": none is.
    """
    kept = [name for name, label in labels.items() if (label.dense if features == "auto" else features == "dense")]
    return ask_for(tuple(kept), labels)._replace(others=())


def ask_for(names: tuple[str, ...], labels: dict[str, Label]) -> Columns:
    """The columns ``names``, with what the first candidates of a file show of them."""
    found = [labels.get(name) for name in names]
    others = tuple(name for name, label in labels.items() if label.dense and label.shared and name not in names)
    optional = tuple(label is not None and label.inline for label in found)
    return Columns(names, tuple(label and label.key for label in found), optional, others)
