"""Files that go with lists, such as gold trees, sources, references and scores: gone through in step with the lists.

A side file has an entry for every list, or for every candidate, in the same order. Nothing but the order tells what
belongs together: bad lists use up their entries too, and a file with too few or too many is an error.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar

from rerank.base.errors import DataError
from rerank.base.wording import amount
from rerank.readers.base import NBestList, Problem, Reader, SkippedList, lists_of
from rerank.readers.streams import PathLike, single_stdin, stream_name

T = TypeVar("T", bound=NBestList)


class Progress:
    """The place up to which the lists of a file have been read."""

    def __init__(self, reader: Reader, path: PathLike) -> None:
        self.reader, self.path, self.count = reader, stream_name(path), 0
        self.last: NBestList | SkippedList | None = None
        self.like: NBestList | None = None  # the last that is not bad
        self.bad: SkippedList | None = None  # the first that is
        self.late = False  # whether the first list is empty, as are those whose ids are left out

    def add(self, nbest: NBestList | SkippedList) -> None:
        """Note the next list."""
        if isinstance(nbest, NBestList):
            self.like, self.late = nbest, self.late or (self.count == 0 and len(nbest) == 0)
        elif self.bad is None:
            self.bad = nbest
        self.count, self.last = self.count + 1, nbest

    def check_form(self) -> None:
        """Refuse a file of which no list so far is any good, whose lists are then counted by a wrong format."""
        if self.like is None and self.bad is not None:
            raise self.bad.problem.advised()

    def check_order(self, nbest: NBestList | SkippedList) -> None:
        """Refuse a list whose id is not its place, where lists come in an order of their own."""
        if self.reader.order == "file" and nbest.id != str(self.count - 1):
            message = f"the list is number {self.count} of the file, but its id says {nbest.id}: lists come in the "
            message += "order in which they were made, and what other files hold for them in that of the inputs; "
            message += "set data.reader.order: id"
            raise DataError(message, path=self.path, line=nbest.line, list_id=nbest.id)


class Side:
    """A side file.

    Parameters
    ----------
    paths: its name, or the names of several files that are read as one.
    entries: its entries in order, each with its line.
    what: what an entry is, in the singular and in the plural.
    of: what has an entry each: "list" or "candidate".
    """

    def __init__(
        self, paths: Sequence[PathLike], entries: Iterable[tuple[int, Any]], what: tuple[str, str], of: str = "list"
    ) -> None:
        self.paths, self.path, self.of = paths, ", ".join(map(stream_name, paths)), of
        self.one, self.many = what
        self.count, self.line = 0, 0  # of the entries taken so far, and of the last of them
        self._entries = iter(entries)

    def take(self, number: int = 1) -> list[Any]:
        """The next entries; fewer only at the end."""
        entries = list(islice(self._entries, number))
        if entries:
            self.count, self.line = self.count + len(entries), entries[-1][0]
        return [entry for _, entry in entries]

    def take_for(self, nbest: NBestList | SkippedList, lists: Progress) -> Any:
        """The entry of the last list read or, in a list, those of its candidates."""
        if self.of == "list":
            lists.check_order(nbest)
        number = 1 if self.of == "list" else nbest.size
        if number is None:
            assert isinstance(nbest, SkippedList)
            message = f"{nbest.message}; nothing tells which {self.many} of {self.path} belong to the next list: "
            raise DataError(f"{message}fix the list", path=nbest.path, line=nbest.line, list_id=nbest.id)
        before, entries = self.count, self.take(number)
        if len(entries) == number:
            return entries[0] if self.of == "list" else entries
        lists.check_form()
        message = f"{self.count:,} {self.many} for at least {amount(before + number, self.of)} of {lists.path} "
        message += f"(list {nbest.id} at line {nbest.line}); {self._rule}"
        if lists.late and self.count == lists.count - 1 and lists.reader.offers("first_id"):
            message += "; the lists' ids seem to start at 1: set data.reader.first_id: 1"
        raise DataError(message, path=self.path, line=self.line or None)

    def finish(self, lists: Progress) -> None:
        """Refuse an entry that is left over."""
        before = self.count
        if self.take():
            lists.check_form()
            message = f"at least {self.count:,} {self.many} for {amount(before, self.of)} of {lists.path}; {self._rule}"
            raise DataError(message, path=self.path, line=self.line)

    @property
    def _rule(self) -> str:
        return f"every {self.of} needs one {self.one}, in the same order"


def in_step(
    reader: Reader,
    path: PathLike,
    sides: Sequence[Side],
    *,
    missing: Callable[[Progress], T] | None = None,
) -> Iterator[tuple[NBestList | SkippedList | T, tuple[Any, ...]]]:
    """Every list of ``path``, usable or not, with its entries in side files.

    missing: makes an empty list for the entries that are left over at the end; they are an error where it is None.
    """
    single_stdin(path, *[name for side in sides for name in side.paths])
    lists = Progress(reader, path)
    for nbest in lists_of(reader, path):
        lists.add(nbest)
        yield nbest, tuple(side.take_for(nbest, lists) for side in sides)
    if missing is None:
        for side in sides:
            side.finish(lists)
    elif sides:
        yield from _rest(lists, sides, missing)


def _rest(
    lists: Progress, sides: Sequence[Side], missing: Callable[[Progress], T]
) -> Iterator[tuple[T, tuple[Any, ...]]]:
    """The entries after those of the last list, with empty lists."""
    counted = f"{amount(lists.count, 'list')}, the last of them {lists.last.id}" if lists.last else "no lists"
    counted += f", for more {' and '.join(side.many for side in sides)} ({', '.join(side.path for side in sides)}); "
    while all(entries := [side.take() for side in sides]):
        message = f"{counted}found none for line {sides[0].line:,}. Are the files of one split? A decoder that found "
        problem = Problem("missing", f"{message}nothing for the last inputs writes no lists")
        empty = missing(lists)
        lists.add(empty)
        yield empty.changed(missing=problem), tuple(entry[0] for entry in entries)
    longest = max(sides, key=lambda side: side.count)
    for side in sides:
        if side.count < longest.count:
            message = f"{side.count:,} {side.many}, but {longest.path} has {longest.many} for more lists; "
            raise DataError(f"{message}each needs one for every list", path=side.path)
