"""Lists of several systems, or of several iterations of one, over the same inputs as one list each.

One path names the files of the systems, separated by commas: ``a.nbest.gz,b.nbest.gz``. Lists are matched by their
ids. If these are whole numbers that rise in all files, any file may have lists that others lack; else they are those of
the first file, in any order. One that a system does not have stands for a list without candidates. Candidates follow
each other system by system.

The columns are those of all systems: one name is one column. A candidate whose system lacks a column has 0 there, and
its own base score in the column of the base score. ``system_1``, ``system_2``... are 1 for the candidates of a system
and 0 for others, so that weights can make up for what a system lacks. What several systems have is kept once, as the
first of them has it, with the indicators of all of them; columns that the first lacks come from the next.

Parsers do not name their scores: in lists of trees the base score of each system is a column of its own, ``score_1``,
``score_2``...
"""

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain, islice, pairwise
from typing import Any, Literal, NamedTuple

import numpy as np

from rerank.base.errors import DataError, RecipeError
from rerank.base.ranges import Checked
from rerank.readers.base import Order, Problem, Reader, Scores
from rerank.readers.lines import whole_number
from rerank.readers.lists import Lists, SparseScores, answers_of, stripped
from rerank.readers.several import format_of, make_reader
from rerank.readers.sides import LOOK, ById
from rerank.readers.streams import PathLike, Writable, must_wait, split_paths, stream_name
from rerank.readers.texts.jsonl import JsonlReader
from rerank.readers.texts.text_list import Pieces
from rerank.readers.trees.parses import ParseReader

log = logging.getLogger("rerank")


def system_name(number: int) -> str:
    """The source of a system's columns, and the column that is 1 for its candidates."""
    return f"system_{number}"


class System:
    """The lists of one system; ``head`` is the next of them, None at the end."""

    def __init__(self, number: int, reader: Reader, path: PathLike) -> None:
        self.number, self.reader, self.path = number, reader, stream_name(path)
        self.names: tuple[str, ...] = ()
        self.base = ""
        lists, shown = map(self._own, reader.read(path)), list[Lists]()
        for nbest in lists:  # up to the first that shows the columns
            shown.append(nbest)
            if nbest.problem is None and len(nbest):
                self.names, self.base = nbest.names, nbest.names[nbest.column]
                break
        ahead = list(islice(lists, 0 if must_wait(path) else LOOK))
        ids = [whole_number(one.id) for one in (*shown, *ahead) if one.problem is None]
        rising = all(a is None or b is None or a < b for a, b in pairwise(ids))
        self.counted = rising and reader.order != "file"  # whether ids that are whole numbers rise
        self._lists = chain(shown, ahead, lists)
        self.take()

    def take(self) -> None:
        """Go on to the list after ``head``."""
        self.head = next(self._lists, None)

    def __iter__(self) -> Iterator[Lists]:
        while self.head is not None:
            yield self.head
            self.take()

    def _own(self, found: Lists) -> Lists:
        """A list whose base score, if it is one of trees, has the number of the system in its name."""
        if found.problem is not None:
            return found
        names = list((found := found.named()).names)
        if not found.of_trees:
            return found
        names[found.column] = f"score_{self.number}"
        return found.changed(names=tuple(names))

    def other_columns(self) -> Problem | None:
        """The problem if the columns of ``head`` are not those of the system's first list, else None."""
        found = self.head
        if found is None or not len(found):
            return None
        if found.names == self.names and found.names[found.column] == self.base:
            return None
        message = f"the columns are {', '.join(found.names)}; those of the file's first list are "
        return found.fault(Problem("columns", message + ", ".join(self.names)))


Heads = list[tuple[System, Lists]]


def matched(systems: list[System]) -> Iterator[Heads]:
    """The lists of every input, with the systems that have one."""
    seen = set[str]()
    while heads := _in_step(systems, seen):
        yield heads
        for system, _ in heads:
            system.take()
    first, *others = systems
    waiting = [(system, ById((one.id, one) for one in system)) for system in others]
    lacking = {system.path: list[str]() for system in others}
    for nbest in first:
        heads = [(first, nbest)]
        for system, lists in waiting:
            system.head = lists.take(nbest.id)
            heads += [] if system.head is None else [(system, system.head)]
            lacking[system.path] += [nbest.id] if system.head is None else []
        yield heads
    for system, lists in waiting:
        for system.head in lists.rest():
            if system.head.problem is None:
                raise _misaligned([first, system])
            yield [(system, system.head)]
        if names := lacking[system.path]:
            log.warning(
                "%s has no list %s%s", system.path, names[0], f", nor {len(names) - 1:,} others" * (len(names) > 1)
            )


def _in_step(systems: list[System], seen: set[str]) -> Heads:
    """The next lists, of every system that has one of the same id; none where ids are names and differ.

    seen: the ids of earlier lists.
    """
    heads = [(system, system.head) for system in systems if system.head is not None]
    good = {head.id for _, head in heads if head.problem is None}
    numbers = {head.id: number for _, head in heads if (number := whole_number(head.id)) is not None}
    if good <= numbers.keys() and all(system.counted for system in systems):
        first = min(numbers.values(), default=0)  # a bad list may have no number; then its place counts
        heads = [(system, head) for system, head in heads if numbers.get(head.id, first) == first]
        good &= {head.id for _, head in heads}
    elif len(good) > 1 or len(heads) < len(systems):
        return []
    if good & seen:  # the numbers do not rise
        raise _misaligned(systems)
    seen |= good
    return heads


def _misaligned(systems: list[System]) -> DataError:
    """The error for systems whose lists do not match."""
    there = next(system.head for system in systems if system.head is not None)
    shown = [
        f"{system.path} ends" if head is None else f"{system.path} has list {head.id} at line {head.line}"
        for system, head in ((system, system.head) for system in systems)
    ]
    message = f"the lists of the systems do not match: {', '.join(shown)}; the first file needs every id, unless these "
    message += "are numbers that rise in all files"
    if any(system.reader.offers("ids") for system in systems):
        message += "; where ids differ and the order does not, the readers' option ids: ordinal numbers the lists"
    return DataError(message, path=there.path, line=there.line, list_id=there.id)


Duplicates = Literal["drop", "keep"]


class Origin(NamedTuple):
    """The lists of the systems that have one, and (list, candidate) of every candidate of the merged list."""

    parts: list[Lists]
    places: list[tuple[int, int]]

    def some(self, places: Sequence[int]) -> "Origin":
        """The systems that the candidates at ``places`` come from."""
        return Origin(self.parts, [self.places[place] for place in places])


class UnitedColumns:
    """The columns of merged lists, and which of them are those of each system."""

    def __init__(self, systems: list[System], base: str | None) -> None:
        shown = [system for system in systems if system.names]
        names = list(dict.fromkeys(name for system in shown for name in system.names)) or ["score"]
        indicators = [system_name(system.number) for system in systems]
        if clash := set(names) & set(indicators):
            raise DataError(f"has a column {min(clash)!r}, a name that merged lists need", path=shown[0].path)
        base = base if base is not None else shown[0].base if shown else names[0]
        if base not in names:
            message = f"no system has the column {base!r}; the columns are {', '.join(names)}"
            raise RecipeError(message, key="base")
        self.names = (*names, *indicators)
        self.base = names.index(base)
        self.width = len(names)
        self.sources = {system_name(system.number): system.names for system in shown}
        self.places = {system.number: [names.index(name) for name in system.names] for system in systems}

    def join(self, parts: list[tuple[System, Lists]], duplicates: Duplicates, *, normal: bool) -> Lists:
        """One list from the lists of all systems that have one; normal: whether words are compared in normal form."""
        lists = [nbest for _, nbest in parts]
        scores = np.concatenate([np.empty((0, len(self.names))), *map(self._block, parts)])
        first: dict[bytes, int] = {}
        alike = enumerate(text for nbest in lists for text in nbest.alike(normal=normal))
        again = [(place, at) for at, text in alike if (place := first.setdefault(text, at)) != at]
        kept: Sequence[int] = range(len(scores))
        if duplicates == "drop":
            self._fill(scores, [system for system, nbest in parts for _ in nbest.texts], again)
            kept = list(first.values())
        if len({nbest.of_trees for nbest in lists}) > 1:
            paths = ", ".join(system.path for system, _ in parts)
            raise RecipeError(f"some of {paths} hold texts, and others trees; they cannot be merged", key="of")
        texts, given = stripped([nbest.written(i) for nbest in lists for i in range(len(nbest))])
        merged = lists[0].changed(
            texts=texts, given=given, lines=[line for nbest in lists for line in nbest.lines],
            scores=scores, column=self.base, names=self.names, sources=self.sources, bad=_join_bad(lists),
            others=tuple(dict.fromkeys(name for nbest in lists for name in nbest.others)),
            absent=sum((Counter(nbest.absent) for nbest in lists), Counter[str]()),
            unscored=all(nbest.unscored for nbest in lists),
            raw=Origin(lists, [(k, i) for k, nbest in enumerate(lists) for i in range(len(nbest))]),
            answers=_one_after_another(lists, "answers", None), sparse=_join_sparse(lists),
            segmentation=_one_after_another(lists, "segmentation", b""),
            alignment=_one_after_another(lists, "alignment", b""), ended=any(nbest.ended for nbest in lists),
            form=lists[0].form if lists[0].of_trees else "merged",
            source=next((nbest.source for nbest in lists if nbest.source is not None), None),
            references=next((nbest.references for nbest in lists if nbest.references), ()),
        ).some(kept, duplicates=len(again))  # fmt: skip
        return merged.changed(answers=answers_of(merged.answers or ()))

    def _block(self, part: tuple[System, Lists]) -> np.ndarray:
        """float64 [N, columns]: the candidates of one system."""
        (system, found), scores = part, np.zeros((len(part[1]), len(self.names)))
        scores[:, self.base], scores[:, self.width + system.number - 1] = found.base, 1.0
        if len(found):
            scores[:, self.places[system.number]] = found.scores
        return scores

    def _fill(self, scores: np.ndarray, owners: list[System], again: list[tuple[int, int]]) -> None:
        """Give candidates the values that they lack from later ones that are equal; ``again``: (first, later)."""
        known: dict[int, set[int]] = {}
        for place, at in again:
            have = known.setdefault(place, set(self.places[owners[place].number]))
            fresh = [column for column in self.places[owners[at].number] if column not in have]
            scores[place, fresh] = scores[at, fresh]
            scores[place, self.width + owners[at].number - 1] = 1.0
            have.update(fresh)


def _one_after_another(lists: Sequence[Lists], field: str, blank: bytes | None) -> list[Any] | None:
    """What candidates have in a field, ``blank`` for those of a list that has none; None if no list has it."""
    columns = [getattr(nbest, field) for nbest in lists]
    if all(column is None for column in columns):
        return None
    filled = zip(lists, columns, strict=True)
    return [one for nbest, column in filled for one in ([blank] * len(nbest) if column is None else column)]


def _join_bad(lists: Sequence[Lists]) -> tuple[Problem, ...]:
    """The candidates that were left out of the lists, with their places among the candidates of all systems."""
    before = accumulate((len(nbest) + len(nbest.bad) for nbest in lists), initial=0)
    return tuple(
        problem.at(problem.list_id or "", problem.path or "", problem.line or 0, (problem.place or 0) + start)
        for nbest, start in zip(lists, before, strict=False)
        for problem in nbest.bad
    )


def _join_sparse(lists: Sequence[Lists]) -> SparseScores | None:
    """The sparse features of all candidates."""
    if all(nbest.sparse is None for nbest in lists):
        return None
    none = SparseScores(np.empty(0, np.int64), [], np.empty(0))
    every = [nbest.sparse or none._replace(first=np.zeros(len(nbest) + 1, np.int64)) for nbest in lists]
    counts = np.concatenate([np.diff(sparse.first) for sparse in every])
    names = [name for sparse in every for name in sparse.names]
    return SparseScores(np.append(0, np.cumsum(counts)), names, np.concatenate([sparse.values for sparse in every]))


@dataclass(frozen=True)
class MergedReader(Checked, Reader):
    """Lists of several systems; the path names a file for each, separated by commas.

    >>> [(type(reader).__name__, path) for reader, path in MergedReader(of=["moses", "jsonl"]).systems("a,b")]
    [('Moses', 'a'), ('JsonlReader', 'b')]

    Parameters
    ----------
    of: the reader of all files, or a list with one reader per file: names, or mappings of a name and options.
    duplicates: "drop" candidates that are repeated in a list, or "keep" them; both count them. Trees are equal whatever
        their white space and the label of their root (S1, TOP, ROOT or none); in normal form, however words are spelt.
    base: the name of the column that is the base score; by default that of the first system.
    """

    of: Any = "moses"
    duplicates: Duplicates = "drop"
    base: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.within

    @cached_property
    def within(self) -> tuple[Reader, ...]:
        """The reader of all files, or one per file."""
        if not isinstance(self.of, list | tuple):
            return (make_reader(self.of, "of"),)
        if not self.of:
            raise RecipeError("found an empty list; expected the readers of the files", key="of")
        return tuple(make_reader(spec, f"of.{place}") for place, spec in enumerate(self.of))

    @property
    def files(self) -> int | None:
        return sum(reader.files or 1 for reader in self.within) if isinstance(self.of, list | tuple) else None

    def paths(self, path: PathLike) -> list[str]:
        return [file for reader, part in self.systems(path) for file in reader.paths(part)]

    def blocks(self, path: PathLike) -> Iterator[Lists]:
        """A list that is bad in one system is bad."""
        systems = [System(k, reader, part) for k, (reader, part) in enumerate(self.systems(path), start=1)]
        columns, empty, every = UnitedColumns(systems, self.base), Counter[str](), 0
        for heads in matched(systems):
            empty.update(system.path for system, head in heads if head.problem is None and not len(head))
            every += 1
            problems = [head.problem for _, head in heads] + [system.other_columns() for system, _ in heads]
            bad = next(filter(None, problems), None)
            if bad is None:
                yield columns.join(heads, self.duplicates, normal=self.normal)
            else:
                sizes = [head.size for _, head in heads]
                bad.size = None if None in sizes else sum(size for size in sizes if size is not None)
                yield Lists.of(bad)
        for name, count in empty.items():
            log.info(
                "%s: no candidate in %d of %d lists (an empty line is none), only those of others",
                name,
                count,
                every,
            )

    def systems(self, path: PathLike) -> list[tuple[Reader, str]]:
        """The reader and the path of each system."""
        names = split_paths(path)
        chosen = self.within
        if self.files is None:
            chosen *= len(names) // (chosen[0].files or len(names))
        counts = [reader.files or 1 for reader in chosen]
        if sum(counts) != len(names):
            message = f"names {len(names)} files, separated by commas; the readers of the systems need {sum(counts)}"
            raise DataError(message, path=stream_name(path))
        spans = pairwise(accumulate(counts, initial=0))
        parts = [self.known and self.known.of_source(system_name(k)) for k in range(1, len(chosen) + 1)]
        told = [reader.knowing(part, normal=self.normal) for reader, part in zip(chosen, parts, strict=True)]
        return [(reader, ",".join(names[a:b])) for reader, (a, b) in zip(told, spans, strict=True)]

    def write(self, out: Writable, nbest: Lists, order: Order = None, scores: Scores = None) -> None:
        """Writes the format of the systems, or JSON lines if that cannot be.

        Trees are written in the format of the first system, each with the base score that it has here.
        """
        inner = self._format
        if nbest.of_trees:
            base = nbest.base.reshape(-1, 1)
            (inner or self.within[0]).write(out, nbest.changed(scores=base, column=0, raw=None), order, scores)
            return
        if inner is None:
            JsonlReader().write(out, nbest.changed(raw=None), order, scores)
            return
        origin: Origin = nbest.raw
        raws = [part.raw for part in origin.parts]
        if all(isinstance(raw, Pieces) for raw in raws) and raws:
            candidates = [raws[part].candidates[place] for part, place in origin.places]
            inner.write(out, nbest.changed(raw=Pieces(raws[0].head, candidates)), order, scores)
            return
        for i in range(len(nbest)) if order is None else order:
            part, place = origin.places[i]
            new = None if scores is None else np.full(len(origin.parts[part]), scores[i])
            inner.write(out, origin.parts[part], [place], new)

    def write_bad(self, out: Writable, bad: Problem, like: Lists | None) -> None:
        inner, origin = self._format, None if like is None else like.raw
        if inner is None:
            JsonlReader().write_bad(out, bad, None)
        else:
            inner.write_bad(out, bad, origin.parts[0] if isinstance(origin, Origin) and origin.parts else None)

    @property
    def _format(self) -> Reader | None:
        """The reader that writes the lists; None if they are texts and the systems have several formats, or one that
        cannot hold them."""
        formats = [format_of(reader) for reader in self.within]
        trees = all(isinstance(reader, ParseReader) for reader in formats)
        return self.within[0] if trees or (len(set(map(type, formats))) == 1 and not self.bounded) else None
