"""The lists of several systems side by side: which ones belong to the same input."""

from collections import deque

from rerank.base.errors import DataError
from rerank.readers.base import NBestList, Reader, SkippedList
from rerank.readers.streams import PathLike, stream_name
from rerank.readers.texts.text_list import TextList


def system_name(number: int) -> str:
    """The source of a system's columns, and the column that is 1 for its candidates."""
    return f"system_{number}"


class System:
    """The lists of one system, with lookahead."""

    def __init__(self, number: int, reader: Reader, path: PathLike) -> None:
        self.number, self.reader, self.path = number, reader, stream_name(path)
        self.names: tuple[str, ...] = ()
        self.base = ""
        self._lists = reader.read(path)
        self._ahead: deque[NBestList | SkippedList] = deque()
        while self.names == () and self._next():  # up to the first list that shows the columns
            last = self._ahead[-1]
            if isinstance(last, NBestList) and len(last):
                self.names, self.base = last.names, last.names[last.column]

    @property
    def head(self) -> NBestList | SkippedList | None:
        """The next list, None at the end."""
        return self._ahead[0] if self._ahead or self._next() else None

    def take(self) -> NBestList | SkippedList:
        """Take the next list, which ``head`` has shown."""
        return self._ahead.popleft()

    def _next(self) -> bool:
        found = next(self._lists, None)
        if found is None:
            return False
        self._ahead.append(found if isinstance(found, SkippedList) else self._own(found))
        return True

    def _own(self, found: NBestList) -> NBestList:
        """A list whose base score, if it is one of trees, has the number of the system in its name: parsers give it
        none, and each parser's is a column of its own."""
        found = found.named()
        if isinstance(found, TextList):
            return found
        names = list(found.names)
        names[found.column] = f"score_{self.number}"
        return found.changed(names=tuple(names))


def next_lists(systems: list[System], seen: set[str]) -> list[tuple[System, NBestList | SkippedList]]:
    """The next list, from every system that has it; ``seen`` are the ids of earlier lists."""
    open_systems = [(system, system.head) for system in systems]
    heads = [(system, head) for system, head in open_systems if head is not None]
    good = {head.id for _, head in heads if isinstance(head, NBestList)}
    if all(name.isdecimal() for name in good):  # a bad list may have no number; then its place counts
        numbers = [int(head.id) for _, head in heads if head.id.isdecimal()]
        first = min(numbers, default=0)
        heads = [(system, head) for system, head in heads if not head.id.isdecimal() or int(head.id) == first]
        good &= {head.id for _, head in heads}
    elif len(good) > 1 or len(heads) < len(systems):
        raise _misaligned(open_systems)
    if good & seen:  # the lists are in different orders
        raise _misaligned(open_systems)
    seen |= good
    for system, _ in heads:
        system.take()
    return heads


def _misaligned(systems: list[tuple[System, NBestList | SkippedList | None]]) -> DataError:
    """The error for systems whose lists do not match."""
    shown = [
        f"{system.path} ends" if head is None else f"{system.path} has list {head.id} at line {head.line}"
        for system, head in systems
    ]
    there = next(head for _, head in systems if head is not None)
    message = f"the lists of the systems do not match: {', '.join(shown)}; all files need lists with the same "
    message += "ids in the same order (only a list whose id is a whole number can be left out)"
    if any(system.reader.offers("ids") for system, _ in systems):
        message += "; where ids differ and the order does not, the readers' option ids: ordinal numbers the lists"
    return DataError(message, path=there.path, line=there.line, list_id=there.id)


def other_columns(system: System, found: NBestList) -> SkippedList | None:
    """A bad list if the columns are not those of the system's first list, else None."""
    if not len(found) or (found.names == system.names and found.names[found.column] == system.base):
        return None
    message = f"the columns are {', '.join(found.names)}; those of the file's first list are {', '.join(system.names)}"
    return SkippedList(found.id, found.path, found.line, "columns", message)
