"""Runs of lists that are built alike, taken from JSON objects to blocks without a look at every number."""

from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from operator import itemgetter
from types import NoneType
from typing import Any, NamedTuple

import numpy as np

from rerank.data.corpus import offsets
from rerank.readers.lists import MOST, Lists, answers_of, plain_texts, repeats_of, stripped
from rerank.readers.problems import Problem
from rerank.readers.texts.samples import SampleReader, stepped
from rerank.readers.texts.text_list import NUMBERS, Pieces

LARGEST = 1 << 22  # bytes of texts in a block
# Keys of a candidate that say more than a number: whoever adds one names it here, or takes it to the rows of the block.
_SPECIAL = {"columns", "features", "segmentation", "alignment"}
_TEXT, _ANSWER, _NUMERIC = itemgetter("text"), itemgetter("answer"), {float, int, bool}


class ListShape(NamedTuple):
    """The build of the candidates of a list that was read: one with the same keys, with numbers where it has numbers
    and none where it has none, is read in the same way."""

    keys: tuple[str, ...]
    like: Lists
    places: tuple[int, ...]  # of its columns that candidates have; the others are 0
    numbers: Callable[[dict[str, Any]], tuple[Any, ...]]  # of a candidate: the first column, then all
    others: Callable[[dict[str, Any]], tuple[Any, ...]] | None  # its values besides
    answered: bool
    steps: tuple[str, ...]  # the keys of scores of steps
    derived: Callable[[dict[str, Any]], dict[str, float]] | None  # the columns that are not under keys of their own

    @staticmethod
    def of(nbest: Lists, reader: SampleReader) -> "ListShape | None":
        """That of a list, if its candidates have all keys in common and no other numbers than its columns."""
        keys = _shared_keys(nbest.raw.candidates)
        if keys is None or nbest.bad or nbest.sparse is not None:
            return None
        steps = stepped(nbest.raw.candidates)
        first = nbest.raw.candidates[0]
        derived = reader.derived(first, steps)
        places = tuple(k for k, name in enumerate(nbest.names) if first.get(name) is not None or name in derived)
        names = [nbest.names[k] for k in places]
        rest = [key for key in keys if key not in ("text", "answer", *names)]
        if not names or not _SPECIAL.union(NUMBERS, reader.labels).isdisjoint(rest):
            return None
        return ListShape(
            keys, nbest, places, itemgetter(names[0], *names), itemgetter(rest[0], *rest) if rest else None,
            "answer" in keys, steps, (lambda entry: reader.derived(entry, steps)) if derived else None,
        )  # fmt: skip


def _shared_keys(entries: Any) -> tuple[str, ...] | None:
    """The keys of candidates that are objects with the same ones in the same order; else None."""
    if type(entries) is not list or set(map(type, entries)) != {dict}:
        return None
    keys = set(map(tuple, entries))
    return keys.pop() if len(keys) == 1 else None


def _answers(entries: list[dict[str, Any]]) -> Sequence[bytes | None] | None:
    """The answers of candidates; None if one is no text."""
    answers = list(map(_ANSWER, entries))
    given = plain_texts([answer or "" for answer in answers]) if set(map(type, answers)) <= {str, NoneType} else None
    return given and stripped(given)[0]


class AlikeLists:
    """Lists of a file, one after the other, that are read as others before them were.

    shapes: those of lists before, by their keys; drop: whether repeated candidates are left out, so that a list which
    has some is none for a run.
    """

    def __init__(self, shapes: Mapping[tuple[str, ...], ListShape], *, drop: bool) -> None:
        self._shapes, self._drop, self._shape, self._size = shapes, drop, None, 0
        self._values, self._texts, self._ids = array("d"), list[bytes](), list[str]()
        self._answers = list[bytes | None]()
        self._lists = list[tuple[int, int, int, Pieces, bytes | None, tuple[bytes, ...]]]()

    _shape: ListShape | None

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def full(self) -> bool:
        """Whether it is large enough for a block."""
        return len(self._ids) == MOST or self._size >= LARGEST

    def take(
        self, name: str, line: int, item: dict[str, Any], source: bytes | None, references: tuple[bytes, ...]
    ) -> bool:
        """Take the next list, if it has a shape that is known, and that of the run."""
        entries = item["candidates"]
        keys = _shared_keys(entries)
        shape = None if keys is None else self._shapes.get(keys)
        if shape is None or (self._shape is not None and self._shape.places != shape.places):
            return False
        kinds = set() if shape.others is None else set(map(type, chain.from_iterable(map(shape.others, entries))))
        if not _NUMERIC.isdisjoint(kinds) or (list in kinds and stepped(entries) != shape.steps):
            return False
        try:
            rows = entries if shape.derived is None else [{**entry, **shape.derived(entry)} for entry in entries]
        except Problem:
            return False
        values = list(chain.from_iterable(map(shape.numbers, rows)))
        if not _NUMERIC.issuperset(map(type, values)):
            return False
        try:
            texts, numbers = plain_texts(list(map(_TEXT, entries))), array("d", values)
        except OverflowError:  # a whole number beyond all others
            return False
        repeats = repeats_of(stripped(texts or [])[0])
        if texts is None or (repeats and self._drop):
            return False
        answers = _answers(entries) if shape.answered else [None] * len(texts)
        if answers is None:
            return False
        self._shape = shape
        self._answers += answers
        self._values += numbers
        self._texts += texts
        self._ids.append(name)
        self._lists.append((line, len(texts), repeats, Pieces(item, entries), source, references))
        self._size += sum(map(len, texts))
        return True

    def block(self) -> Lists:
        """The lists as a block."""
        assert self._shape is not None
        like, places = self._shape.like, self._shape.places
        scores = np.zeros((len(self._texts), len(like.names)))
        scores[:, places] = np.frombuffer(self._values).reshape(len(self._texts), len(places) + 1)[:, 1:]
        lines, sizes, repeats, raw, sources, references = zip(*self._lists, strict=True)
        texts, given = stripped(self._texts)
        sides = {"raw": raw, "source": sources, "references": references, "duplicates": repeats}
        return replace(
            like, ids=self._ids, starts=lines, first=offsets(sizes), texts=texts, given=given, scores=scores,
            lines=np.repeat(lines, sizes).tolist(), answers=answers_of(self._answers), sides=sides,
        )  # fmt: skip
