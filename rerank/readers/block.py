"""Many lists at once: the columns that JSON lines, tables and data frames give, one candidate after the other."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Self, TypeAlias, TypeVar

import numpy as np

from rerank.readers.nbest import NBestList, answers_of
from rerank.readers.problems import SkippedList

T = TypeVar("T")
MOST = 1 << 11  # lists in a block


@dataclass(frozen=True, eq=False)
class ListBlock:
    """L lists, none of them bad, with at least one candidate each unless it is one alone.

    | field      | type                   | meaning |
    |------------|------------------------|---------|
    | rows       | NBestList              | the candidates of all lists as if they were those of one |
    | lists      | int64 [L + 1]          | candidates of list i are lists[i]..lists[i + 1] |
    | ids        | L str                  | their names |
    | lines      | L ints                 | where they begin |
    | repeats    | L ints                 | ``duplicates`` of each |
    | sides      | mapping of L values    | further fields of each list, by name, such as ``source`` |
    """

    rows: NBestList
    lists: np.ndarray
    ids: Sequence[str]
    lines: Sequence[int]
    repeats: Sequence[int]
    sides: dict[str, Sequence[Any]]

    @staticmethod
    def of(nbest: NBestList) -> "ListBlock":
        """A block of one list, which may be empty."""
        sides: dict[str, Sequence[Any]] = {
            key: [getattr(nbest, key)] for key in ("source", "references") if hasattr(nbest, key)
        }
        return ListBlock(nbest, np.array([0, len(nbest)]), [nbest.id], [nbest.line], [nbest.duplicates], sides)

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[NBestList]:
        """The lists one by one."""
        places = self.lists.tolist()
        rows, texts, lines, scores = self.rows, self.rows.texts, self.rows.lines, self.rows.scores
        for i, name in enumerate(self.ids):
            first, last = places[i], places[i + 1]
            given = rows.given and rows.given[first:last]
            yield rows.changed(
                id=name, line=self.lines[i], duplicates=self.repeats[i], texts=texts[first:last],
                lines=lines[first:last], scores=scores[first:last], given=None if given == texts[first:last] else given,
                answers=None if rows.answers is None else answers_of(rows.answers[first:last]),
                **{key: values[i] for key, values in self.sides.items()},
            )  # fmt: skip

    def without_raw(self) -> Self:
        """The lists without what is needed only to write them back."""
        return replace(self, sides={key: values for key, values in self.sides.items() if key != "raw"})

    def parts(self) -> Iterator[Self]:
        """The lists in blocks of at most ``MOST``."""
        for first in range(0, len(self), MOST):
            yield self.part(first, min(first + MOST, len(self)))

    def part(self, first: int, last: int) -> Self:
        """Lists first..last - 1."""
        one = slice(int(self.lists[first]), int(self.lists[last]))
        rows = self.rows.changed(
            texts=self.rows.texts[one], lines=self.rows.lines[one], scores=self.rows.scores[one],
            answers=self.rows.answers and self.rows.answers[one], given=self.rows.given and self.rows.given[one],
        )  # fmt: skip
        sides = {key: values[first:last] for key, values in self.sides.items()}
        lists = self.lists[first : last + 1] - self.lists[first]
        return replace(
            self, rows=rows, lists=lists, ids=self.ids[first:last], lines=self.lines[first:last],
            repeats=self.repeats[first:last], sides=sides,
        )  # fmt: skip


Item: TypeAlias = ListBlock | NBestList | SkippedList  # of a stream of lists


def first_filled(items: Iterable[Item]) -> tuple[NBestList | None, Iterator[Item]]:
    """The first list that has candidates, or those of the first block, None if nothing has; and all ``items``, which
    are gone through once."""
    ahead, rest = list[Item](), iter(items)
    for item in rest:
        ahead.append(item)
        shown = item.rows if isinstance(item, ListBlock) else item
        if isinstance(shown, NBestList) and len(shown):
            return shown, chain(ahead, rest)
    return None, iter(ahead)


def named(item: Item, before: str) -> Item:
    """A list, or lists, whose ids begin with ``before``."""
    if isinstance(item, ListBlock):
        return replace(item, ids=[before + name for name in item.ids])
    return replace(item, id=before + item.id)


def one_by_one(items: Iterable[ListBlock | T]) -> Iterator[NBestList | T]:
    """The lists of a stream, without blocks."""
    for item in items:
        if isinstance(item, ListBlock):
            yield from item
        else:
            yield item
