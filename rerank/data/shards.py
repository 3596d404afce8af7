"""A corpus in parts on disk, one of which is mapped at a time: corpora may be larger than memory.

Layout of a directory: ``shards.json`` (version, columns, provenance, sizes of the parts), its checksum, and ``00000/``,
``00001/``, ..., each a saved Corpus. Lists and candidates are numbered through all parts.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from rerank.base.errors import DataError
from rerank.data.corpus import Corpus, Sizes, concatenate
from rerank.storage.documents import as_json, read_object
from rerank.storage.files import DAMAGE, seal, verify

FORMAT_VERSION = 1
HEADER = "shards.json"
_DRAW, _DRAW_APART = 2, 3  # beside the seed: no order of training is drawn from both


class Part(NamedTuple):
    """Lists first..last - 1 of a saved corpus, or of its lists ``chosen`` (int64, ascending) where there are such.

    lists_before and candidates_before: how many come before them in the whole.
    """

    directory: str
    first: int
    last: int
    candidates: int
    nonzeros: int
    lists_before: int
    candidates_before: int
    whole: bool
    chosen: np.ndarray | None = None

    def numbers(self) -> np.ndarray:
        """int64: the numbers of its lists in the saved corpus."""
        return np.arange(self.first, self.last) if self.chosen is None else self.chosen[self.first : self.last]

    def of(self, corpus: Corpus) -> Corpus:
        """Its lists, of the saved corpus."""
        if self.chosen is not None:
            return corpus.take(self.numbers())
        return corpus if self.whole else corpus.slice(self.first, self.last)

    def piece(self, first: int, last: int) -> "Part":
        """Lists first..last - 1 of what it is a part of; those before it must belong to it too."""
        corpus = Corpus.load(self.directory, trusted=True)
        before = self._replace(last=first).numbers()
        part = self._replace(first=first, last=last, whole=False)
        numbers = part.numbers()
        sizes, starts = np.diff(corpus.lists), corpus.rows[corpus.lists]
        return part._replace(
            candidates=int(sizes[numbers].sum()),
            nonzeros=int((starts[numbers + 1] - starts[numbers]).sum()),
            lists_before=self.lists_before + before.size,
            candidates_before=self.candidates_before + int(sizes[before].sum()),
        )


class Change(Protocol):
    """The change to a part whenever it is opened; picklable, and it keeps all lists and candidates."""

    def __call__(self, corpus: Corpus, lists_before: int, candidates_before: int) -> Corpus:
        """The changed part, given how many lists and candidates come before it."""


@dataclass(frozen=True)
class KeptColumns:
    """Keeps the columns where ``keep`` (bool [D]) is true."""

    keep: np.ndarray

    def __call__(self, corpus: Corpus, lists_before: int, candidates_before: int) -> Corpus:  # noqa: ARG002
        return corpus.keep_columns(self.keep)


Identity = tuple[str, tuple[tuple[str, int, int, int], ...]]
_checked: set[Identity] = set()  # the parts that this process has checked; tasks of a worker often open the same ones


def _identity(directory: str) -> Identity | None:
    """The name of a part, and name, inode, time and size of each of its files; None if it is missing."""
    try:
        stats = [(path.name, path.stat()) for path in Path(directory).iterdir()]
    except OSError:
        return None
    return directory, tuple(sorted((name, at.st_ino, at.st_mtime_ns, at.st_size) for name, at in stats))


@dataclass(frozen=True)
class Shards:
    """Lists in parts on disk. It holds only their paths and sizes, so it can be sent to other processes.

    width, free, about: as in Corpus; changes: what is done to every part, in order; origin: the directory that the user
    has to remove if a part is damaged.
    """

    parts: tuple[Part, ...]
    width: int
    free: int
    about: dict[str, Any] = field(default_factory=dict)
    changes: tuple[Change, ...] = ()
    origin: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "_opened", None)  # (index, part): the last one that was opened

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if not key.startswith("_")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__post_init__()

    @property
    def count(self) -> int:
        """Number of parts."""
        return len(self.parts)

    @property
    def list_count(self) -> int:
        """Number of lists L."""
        return sum(part.last - part.first for part in self.parts)

    @property
    def candidate_count(self) -> int:
        """Number of candidates N."""
        return sum(part.candidates for part in self.parts)

    @property
    def nonzeros(self) -> int:
        """Number of stored feature values, before changes."""
        return sum(part.nonzeros for part in self.parts)

    def part(self, index: int) -> Corpus:
        """A part, memory-mapped. The last one that was opened stays open.

        Raises
        ------
        DataError: a file is missing or damaged, or does not match the header.
        """
        opened: tuple[int, Corpus] | None = self.__dict__["_opened"]
        if opened is not None and opened[0] == index:
            return opened[1]
        object.__setattr__(self, "_opened", None)  # unmapped before the next one is mapped
        del opened
        entry = self.parts[index]
        identity = _identity(entry.directory)
        try:
            corpus = Corpus.load(entry.directory, trusted=identity in _checked)
        except DataError as error:
            message = f"the corpus is damaged ({error.message}); remove {self.origin} and run again"
            raise DataError(message, path=entry.directory) from None
        if identity is not None:
            _checked.add(identity)
        most = entry.last if entry.chosen is None else int(entry.chosen[-1]) + 1
        known = (corpus.width, corpus.free) == (self.width, self.free) and corpus.list_count >= most
        if known:
            corpus = entry.of(corpus)
        sizes = (corpus.list_count, corpus.candidate_count, corpus.nonzeros)
        if not known or sizes != (entry.last - entry.first, entry.candidates, entry.nonzeros):
            message = f"not the part that the header knows; remove {self.origin} and run again"
            raise DataError(message, path=entry.directory)
        for change in self.changes:
            corpus = change(corpus, entry.lists_before, entry.candidates_before)
        object.__setattr__(self, "_opened", (index, corpus))
        return corpus

    def changed(self, change: Change) -> "Shards":
        """The same lists with one more change."""
        return replace(self, changes=(*self.changes, change))

    def keep_columns(self, keep: np.ndarray) -> "Shards":
        """The same lists with only the columns where ``keep`` (bool [D]) holds; column numbers stay."""
        return self.changed(KeptColumns(keep))

    def section(self, first: int, last: int) -> "Shards":
        """Lists first..last - 1."""
        parts, at = [], 0
        for entry in self.parts:
            size = entry.last - entry.first
            a, b = max(first - at, 0), min(last - at, size)
            if a < b:
                parts.append(entry if b - a == size else entry.piece(entry.first + a, entry.first + b))
            at += size
        return replace(self, parts=tuple(parts))

    def take(self, chosen: np.ndarray) -> "Shards":
        """The lists ``chosen`` (int64, ascending), numbered among themselves; they are copied when a part is opened."""
        assert not self.changes, "a change may know the lists by their numbers among all"
        parts, at, lists, candidates = list[Part](), 0, 0, 0
        for entry in self.parts:
            numbers = entry.numbers()
            a, b = np.searchsorted(chosen, [at, at + numbers.size])
            if a < b:
                lists_of_part = numbers[chosen[a:b] - at]
                new = entry._replace(first=0, lists_before=lists, candidates_before=candidates, chosen=lists_of_part)
                parts.append(new.piece(0, lists_of_part.size))
                lists, candidates = lists + lists_of_part.size, candidates + parts[-1].candidates
            at += numbers.size
        return replace(self, parts=tuple(parts))

    @staticmethod
    def load(directory: Path | str, origin: Path | str | None = None) -> "Shards":
        """The shards of ``join_shards``; origin: what to remove if a part is damaged, ``directory`` by default.

        Raises
        ------
        DataError: the header is missing or damaged, or another version wrote it.
        """
        path = Path(directory).absolute()
        try:
            verify(path)
            header = read_object(path / HEADER)
            if header["version"] != FORMAT_VERSION:
                raise DataError(f"format version {header['version']}, expected {FORMAT_VERSION}", path=str(path))
            parts, lists, candidates = [], 0, 0
            for index, (n, size, nonzeros) in enumerate(header["parts"]):
                sizes = int(n), int(size), int(nonzeros)
                if min(sizes) < 0:
                    raise ValueError(f"part {index} has a negative size")
                parts.append(Part(str(part_directory(path, index)), 0, *sizes, lists, candidates, True))
                lists, candidates = lists + sizes[0], candidates + sizes[1]
            about, widths = dict(header["about"]), (int(header["width"]), int(header["free"]))
            return Shards(tuple(parts), *widths, about, origin=str(origin or path))
        except DAMAGE as error:
            raise DataError(f"not a readable corpus: {error}", path=str(path)) from None


Corpora = Corpus | Shards  # in memory, or in parts


def join_shards(directory: Path, sizes: Sequence[Sizes], width: int, free: int, about: dict[str, Any]) -> Shards:
    """Write the header of parts that are saved in their ``part_directory``; ``sizes`` and ``about`` are theirs."""
    header = {"version": FORMAT_VERSION, "width": width, "free": free, "about": about, "parts": sizes}
    (directory / HEADER).write_text(as_json(header, sort_keys=True), encoding="utf-8")
    seal(directory)
    return Shards.load(directory)


def part_directory(directory: Path | str, index: int) -> Path:
    """The place of a part of the shards in ``directory``."""
    return Path(directory) / f"{index:05d}"


class Place(NamedTuple):
    """The place of a part among all lists: its number, and the numbers of lists and candidates before it."""

    number: int
    lists: int
    candidates: int


def part_count(lists: Corpora) -> int:
    """Number of parts; a corpus in memory is one."""
    return lists.count if isinstance(lists, Shards) else 1


def part_of(lists: Corpora, index: int) -> Corpus:
    """A part; a corpus in memory is its only one."""
    return lists.part(index) if isinstance(lists, Shards) else lists


def places(lists: Corpora) -> list[Place]:
    """The place of every part, counted from the first of ``lists``."""
    if isinstance(lists, Corpus):
        return [Place(0, 0, 0)]
    all_places, before, candidates = [], 0, 0
    for index, part in enumerate(lists.parts):
        all_places.append(Place(index, before, candidates))
        before, candidates = before + part.last - part.first, candidates + part.candidates
    return all_places


def parts(lists: Corpora) -> Iterator[tuple[Place, Corpus]]:
    """All parts in order; if there are several, only one is open at a time."""
    for place in places(lists):
        yield place, part_of(lists, place.number)


def section(lists: Corpora, first: int, last: int) -> Corpora:
    """Lists first..last - 1."""
    return lists.section(first, last) if isinstance(lists, Shards) else lists.slice(first, last)


def shared(lists: Corpora, share: float, seed: int) -> Corpora:
    """The share of the lists that ``share_of`` draws."""
    return lists if share == 1 else lists.take(share_of(lists.list_count, share, seed))


def whole(lists: Corpora) -> Corpus:
    """All lists as one corpus; if there are several parts, a copy in memory."""
    if isinstance(lists, Shards) and lists.count > 1:
        return concatenate([part for _, part in parts(lists)])
    return part_of(lists, 0)


def selected(lists: Corpora, choose: Callable[[Corpus], np.ndarray]) -> np.ndarray:
    """The candidates that ``choose`` selects in every part (int64 [lists], -1 for none), numbered through all parts:
    int64 [L]."""
    choices = [np.zeros(0, np.int64)]
    for place, part in parts(lists):
        chosen = choose(part)
        choices.append(np.where(chosen >= 0, chosen + place.candidates, -1))
    return np.concatenate(choices)


def own(chosen: np.ndarray, place: Place, part: Corpus) -> np.ndarray:
    """The section of a selection from all lists that belongs to ``part``, as candidates of that part."""
    piece = chosen[place.lists : place.lists + part.list_count]
    return np.where(piece >= 0, piece - place.candidates, -1)


def first_candidates(lists: Corpora) -> np.ndarray:
    """int64 [L]: the first candidate of every list."""
    return np.concatenate([part.lists[:-1] + place.candidates for place, part in parts(lists)])


def list_sizes(lists: Corpora) -> np.ndarray:
    """int64 [L]: the number of candidates of every list."""
    return np.concatenate([np.diff(part.lists) for _, part in parts(lists)])


def reference_rows(lists: Corpora) -> np.ndarray:
    """float64 [L, R]: the per-list part of the statistics."""
    if isinstance(lists, Corpus):
        return np.asarray(lists.reference)
    return np.concatenate([np.array(part.reference) for _, part in parts(lists)])


def gathered(lists: Corpora, chosen: np.ndarray, candidates: np.ndarray) -> Corpus:
    """The lists ``chosen`` with only those of their candidates that are in ``candidates`` (both int64, increasing, and
    numbered through all parts), as a corpus in memory. There must be at least one list."""
    pieces = []
    for place, part in parts(lists):
        a, b = np.searchsorted(chosen, [place.lists, place.lists + part.list_count])
        c, d = np.searchsorted(candidates, [place.candidates, place.candidates + part.candidate_count])
        if a < b:
            pieces.append(part.only(chosen[a:b] - place.lists, candidates[c:d] - place.candidates))
    return pieces[0] if len(pieces) == 1 else concatenate(pieces)


def share_of(size: int, share: float, seed: int) -> np.ndarray:
    """int64, ascending: the places of ``share`` of ``size`` lists or examples, at least one.

    A larger share takes all lists that a smaller one with the same seed takes.
    """
    order = np.random.default_rng([seed, size, _DRAW]).permutation(size)
    return np.sort(order[: max(1, round(share * size))])


def apart(documents: Sequence[str], share: float, seed: int) -> np.ndarray:
    """bool [L]: which lists are set apart, ``share`` of them as nearly as whole documents allow.

    documents: the name of every list's document. At least one document is set apart, and one is not.
    """
    names, document, sizes = np.unique(np.array(documents, dtype=np.str_), return_inverse=True, return_counts=True)
    if names.size < 2:
        raise DataError(f"found {names.size} document; setting some apart takes at least 2")
    order = np.random.default_rng([seed, names.size, _DRAW_APART]).permutation(names.size)
    taken = np.cumsum(sizes[order])[:-1]
    count = 1 + int(np.argmin(np.abs(taken - share * document.size)))
    return np.isin(document, order[:count])
