"""Lists of several files: of several systems as one list each, and with scores from other files."""

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import merge
from itertools import accumulate, chain, groupby, islice, pairwise
from operator import itemgetter
from typing import Any, Literal, NamedTuple

import numpy as np

from rerank.base.encoding import decoded
from rerank.base.errors import DataError, RecipeError
from rerank.base.ranges import Checked
from rerank.data.corpus import offsets
from rerank.readers.inputs import SAMPLE_LISTS, ById, Side, in_step
from rerank.readers.lines import LineReader, scores_of, whole_number
from rerank.readers.lists import Lists, SparseScores, answers_of, first_with_candidates, strip_texts
from rerank.readers.reader import Order, Problem, Reader, Scores, check_names, format_of, make_reader
from rerank.readers.texts.jsonl import JsonlReader
from rerank.readers.texts.text_list import Pieces, each
from rerank.storage.streams import PathLike, Writable, must_wait, open_stream, split_paths, stream_name

log = logging.getLogger("rerank")
JOINED = "joined"  # the source of joined columns
Duplicates = Literal["drop", "keep"]
Part = tuple["System", Lists]  # what a system has of a merged list


@dataclass(frozen=True)
class MergedReader(Checked, Reader):
    """Lists of several systems, or of several iterations of one, over the same inputs as one list each.

    A path names the files of the systems, separated by commas::

        a.nbest.gz,b.nbest.gz

    Lists are matched by their ids. If these are whole numbers that rise in all files, any file may have lists that
    others lack; else they are the first file's ids, in any order. An id that a system does not have stands for
    a list without candidates. Candidates follow each other system by system.

    The list has the columns of all systems: one name is one column. A candidate whose system lacks a column has 0
    there, and its own base score in the column of the base score. ``system_1``, ``system_2``... are 1 for the
    candidates of a system and 0 for others, so that weights can make up for what a system lacks. What several systems
    have is kept once, as the first of them has it, with the indicators of all of them; columns that the first lacks
    come from the next.

    Parsers do not name their scores: in lists of trees the base score of each system is a column of its own,
    ``score_1``, ``score_2``...

    >>> [(type(reader).__name__, path) for reader, path in MergedReader(of=["moses", "jsonl"]).systems("a,b")]
    [('Moses', 'a'), ('JsonlReader', 'b')]

    Parameters
    ----------
    of: the reader of all files, or a list with one reader per file: names, or mappings of a name and options.
    duplicates: "drop" candidates that are repeated in a list, or "keep" them; both count them. Trees are equal whatever
        their white space and the label of their root (S1, TOP, ROOT or none); in normal form, however words are spelt.
    base: the name of the column that is the base score; by default the first system's.
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
        return tuple(make_reader(spec, f"of.{k}") for k, spec in enumerate(self.of))

    @property
    def files(self) -> int | None:
        return sum(reader.files or 1 for reader in self.within) if isinstance(self.of, list | tuple) else None

    def paths(self, path: PathLike) -> list[str]:
        return [file for reader, part in self.systems(path) for file in reader.paths(part)]

    def systems(self, path: PathLike) -> list[tuple[Reader, str]]:
        """The reader and the path of each system."""
        names, inner = split_paths(path), self.within
        if self.files is None:
            inner *= len(names) // (inner[0].files or len(names))
        counts = [reader.files or 1 for reader in inner]
        if sum(counts) != len(names):
            message = f"names {len(names)} files, separated by commas; the readers of the systems need {sum(counts)}"
            raise DataError(message, path=stream_name(path))
        parts = [self.model_columns and self.model_columns.of_source(system_name(k)) for k in range(1, len(inner) + 1)]
        how = {"normal": self.normal, "live": self.live}
        system_readers = [reader.for_columns(part, **how) for reader, part in zip(inner, parts, strict=True)]
        spans = pairwise(accumulate(counts, initial=0))
        return [(reader, ",".join(names[a:b])) for reader, (a, b) in zip(system_readers, spans, strict=True)]

    def blocks(self, path: PathLike) -> Iterator[Lists]:
        """A list that is bad in one system is bad."""
        systems = [System(k, reader, part) for k, (reader, part) in enumerate(self.systems(path), start=1)]
        columns, empty, every = MergedColumns.of(systems, self.base), Counter[str](), 0
        for parts in match_lists(systems):
            empty.update(system.path for system, one in parts if one.problem is None and not len(one))
            every += 1
            problems = (one.problem or system.other_columns(one) for system, one in parts)
            bad = next(filter(None, problems), None)
            if bad is None:
                yield columns.merge(parts, self.duplicates, normal=self.normal)
            else:
                sizes = [one.size for _, one in parts]
                bad.size = None if None in sizes else sum(size for size in sizes if size is not None)
                yield Lists.of(bad)
        for name, count in empty.items():
            message = "%s: no candidate in %d of %d lists (an empty line is none), only those of others"
            log.info(message, name, count, every)

    def write(self, out: Writable, nbest: Lists, order: Order = None, scores: Scores = None) -> None:
        """Writes the format of the systems, or JSON lines if that cannot be.

        Trees are written in the format of the first system, each with the base score that it has here.
        """
        if self._format is None:
            nbest = nbest.replace(raw=None)
        elif nbest.of_trees:
            nbest = nbest.replace(scores=nbest.base.reshape(-1, 1), column=0, raw=None)
        (self._format or JsonlReader()).write(out, nbest, order, scores)

    def write_bad(self, out: Writable, bad: Problem, like: Lists | None) -> None:
        (self._format or JsonlReader()).write_bad(out, bad, like if self._format else None)

    @property
    def _format(self) -> Reader | None:
        """The reader that writes the lists; None if they are texts and the systems have several formats, or one that
        cannot hold them."""
        formats = [format_of(reader) for reader in self.within]
        alike = len(set(map(type, formats))) == 1 and not any(reader.bounded for reader in self.every)
        return self.within[0] if alike or all(reader.holds == "trees" for reader in formats) else None


def system_name(number: int) -> str:
    """The source of a system's columns, and the column that is 1 for its candidates."""
    return f"system_{number}"


class System:
    """The lists of one system, the first of which show its columns, and whether their ids are numbers that rise."""

    def __init__(self, number: int, reader: Reader, path: PathLike) -> None:
        self.number, self.reader, self.path = number, reader, stream_name(path)
        first, lists = first_with_candidates(map(self._name_columns, reader.read(path)))
        self.names, self.base = ((), "") if first is None else (first.names, first.names[first.column])
        head = list(islice(lists, 1 if must_wait(path) else SAMPLE_LISTS))
        self.lists = chain(head, lists)
        ids = [whole_number(one.id) for one in head if one.problem is None]
        rising = all(a is not None and b is not None and a < b for a, b in pairwise([-1, *ids]))
        self.rising = rising and reader.order != "file"

    def _name_columns(self, nbest: Lists) -> Lists:
        """A list with names of columns; of trees, the base score has the number of the system in its name."""
        if nbest.problem is not None or not (nbest := nbest.with_names()).of_trees:
            return nbest
        names = list(nbest.names)
        names[nbest.column] = f"score_{self.number}"
        return nbest.replace(names=tuple(names))

    def other_columns(self, nbest: Lists) -> Problem | None:
        """The problem if the columns of a list are not those of the system's first list, else None."""
        if not len(nbest) or (nbest.names == self.names and nbest.names[nbest.column] == self.base):
            return None
        message = f"the columns are {', '.join(nbest.names)}; those of the file's first list are "
        return nbest.fault(Problem("columns", message + ", ".join(self.names)))

    def with_numbers(self) -> Iterator[tuple[int, "System", Lists]]:
        """The lists with their ids as numbers; bad ones may have none, and take the next."""
        last = -1
        for one in self.lists:
            number = whole_number(one.id)
            if one.problem is not None and (number is None or number <= last):
                number = last + 1
            elif number is None or number <= last:
                raise self.mismatch(one, f"comes after {last}")
            last = number
            yield number, self, one

    def mismatch(self, one: Lists, why: str) -> DataError:
        """The error for a list that has no place among those of other systems."""
        message = f"the lists of the systems do not match: list {one.id} {why}; the first file needs every id, unless "
        message += "these are numbers that rise in all files"
        if self.reader.offers("ids"):
            message += "; where ids differ and the order does not, the readers' option ids: ordinal numbers the lists"
        return DataError(message, path=one.path, line=one.line, list_id=one.id)


def match_lists(systems: list[System]) -> Iterator[list[Part]]:
    """The lists of every input, with the systems that have one."""
    if all(system.rising for system in systems):
        entries = merge(*(system.with_numbers() for system in systems), key=itemgetter(0))
        for _, group in groupby(entries, key=itemgetter(0)):
            yield [(system, one) for _, system, one in group]
        return
    first, *others = systems
    waiting = [(system, ById((one.id, one) for one in system.lists)) for system in others]
    lacking = {system.path: list[str]() for system in others}
    for nbest in first.lists:
        parts = [(first, nbest)]
        for system, lists in waiting:
            if (one := lists.take(nbest.id)) is None:
                lacking[system.path].append(nbest.id)
            else:
                parts.append((system, one))
        yield parts
    for system, lists in waiting:
        for one in lists.rest():
            if one.problem is None:
                raise system.mismatch(one, f"is not in {first.path}")
            yield [(system, one)]
        if names := lacking[system.path]:
            more = f", nor {len(names) - 1:,} others" * (len(names) > 1)
            log.warning("%s has no list %s%s", system.path, names[0], more)


class MergedColumns(NamedTuple):
    """The columns of merged lists: their names, the place of the base score, and which are those of each system."""

    names: tuple[str, ...]
    base: int
    sources: dict[str, tuple[str, ...]]

    @staticmethod
    def of(systems: list[System], base: str | None) -> "MergedColumns":
        """The columns of all systems; ``base``: that of the base score, if it is not that of the first system."""
        known_systems = [system for system in systems if system.names]
        names = list(dict.fromkeys(name for system in known_systems for name in system.names)) or ["score"]
        indicators = [system_name(system.number) for system in systems]
        if clash := set(names) & set(indicators):
            raise DataError(f"has a column {min(clash)!r}, a name that merged lists need", path=known_systems[0].path)
        base = base if base is not None else known_systems[0].base if known_systems else names[0]
        if base not in names:
            message = f"no system has the column {base!r}; the columns are {', '.join(names)}"
            raise RecipeError(message, key="base")
        sources = {system_name(system.number): system.names for system in known_systems}
        return MergedColumns((*names, *indicators), names.index(base), sources)

    def _scores(self, parts: list[Part]) -> np.ndarray:
        """float64 [N, K]: the scores of all candidates, NaN for what a system does not have, 1 for the system."""
        sizes = [len(nbest) for _, nbest in parts]
        scores = np.full((sum(sizes), len(self.names)), np.nan)
        for (system, nbest), own in zip(parts, np.split(scores, np.cumsum(sizes)[:-1]), strict=True):
            if len(nbest):
                own[:, [self.names.index(name) for name in system.names]] = nbest.scores
                own[:, self.names.index(system_name(system.number))] = 1.0
        return scores

    def merge(self, parts: list[Part], duplicates: Duplicates, *, normal: bool) -> Lists:
        """One list from those of all systems that have one; normal: whether words are compared in normal form."""
        lists = [nbest for _, nbest in parts]
        if len({nbest.of_trees for nbest in lists}) > 1:
            paths = ", ".join(system.path for system, _ in parts)
            raise RecipeError(f"some of {paths} hold texts, and others trees; they cannot be merged", key="of")
        scores = self._scores(parts)
        first: dict[bytes, int] = {}
        alike = enumerate(text for nbest in lists for text in nbest.alike(normal=normal))
        repeats = [(y, at) for at, text in alike if (y := first.setdefault(text, at)) != at]
        if duplicates == "drop":  # candidates get the values that they lack from later ones that are equal
            for y, at in repeats:
                np.copyto(scores[y], scores[at], where=np.isnan(scores[y]))
        base = scores[:, self.base]
        np.copyto(base, np.concatenate([nbest.base for nbest in lists]), where=np.isnan(base))
        scores[np.isnan(scores)] = 0.0
        texts, originals = strip_texts([nbest.original(i) for nbest in lists for i in range(len(nbest))])
        raws = [nbest.raw for nbest in lists if isinstance(nbest.raw, Pieces)]
        pieces = [piece for raw in raws for piece in raw.candidates]
        before = accumulate((len(nbest) + len(nbest.bad) for nbest in lists), initial=0)
        bad = [one.at(one.id, one.path or "", one.line or 0, (one.index or 0) + start)
               for nbest, start in zip(lists, before, strict=False) for one in nbest.bad]  # fmt: skip
        union = lists[0].replace(
            texts=texts, originals=originals, lines=[line for nbest in lists for line in nbest.lines], scores=scores,
            column=self.base, names=self.names, sources=self.sources, bad=tuple(bad),
            others=tuple(dict.fromkeys(name for nbest in lists for name in nbest.others)),
            absent=sum((Counter(nbest.absent) for nbest in lists), Counter[str]()),
            unscored=all(nbest.unscored for nbest in lists),
            raw=Pieces(raws[0].head, pieces) if raws and len(pieces) == len(texts) else None,
            answers=_chain(lists, "answers", None), segmentation=_chain(lists, "segmentation", b""),
            alignment=_chain(lists, "alignment", b""), ended=any(nbest.ended for nbest in lists),
            sparse=_join_sparse(lists), form=lists[0].form if lists[0].of_trees else "merged",
            source=next((nbest.source for nbest in lists if nbest.source is not None), None),
            references=next((nbest.references for nbest in lists if nbest.references), ()),
        )  # fmt: skip
        indices = list(first.values()) if duplicates == "drop" else range(len(texts))
        union = union.select(indices, duplicates=len(repeats))
        return union.replace(answers=answers_of(union.answers or ()))


def _join_sparse(lists: Sequence[Lists]) -> SparseScores | None:
    """The sparse scores of all candidates; None if no list has any."""
    if not (few := [nbest.sparse for nbest in lists if nbest.sparse is not None]):
        return None
    counts = [np.zeros(len(one), int) if one.sparse is None else np.diff(one.sparse.first) for one in lists]
    names = [name for sparse in few for name in sparse.names]
    return SparseScores(offsets(np.concatenate(counts)), names, np.concatenate([sparse.values for sparse in few]))


def _chain(lists: Sequence[Lists], field: str, blank: bytes | None) -> list[Any] | None:
    """The values of candidates in a field, ``blank`` for those of a list that has none; None if no list has it."""
    columns = [getattr(nbest, field) for nbest in lists]
    if all(column is None for column in columns):
        return None
    pairs = zip(lists, columns, strict=True)
    return [one for nbest, column in pairs for one in ([blank] * len(nbest) if column is None else column)]


@dataclass(frozen=True)
class JoinedReader(Reader):
    """Scores of other models, from files with one line per candidate, joined to lists.

    Three lines of such a file, the first of which may name the columns::

        # nmt lm
        -12.5 -30.25
        -13 -29.5

    The path names the lists and the scores, separated by a comma: ``test.nbest.gz,test.scores.gz``. The n-th line
    belongs to the n-th candidate of the file, whichever list it is in.

    >>> JoinedReader(of="moses").paths("test.nbest.gz,test.scores.gz")
    ['test.nbest.gz', 'test.scores.gz']

    Parameters
    ----------
    of: the reader of the lists: a name, or a mapping of a name and options. It must keep duplicates.
    names: the names of the columns; by default those in the first line of the file, or ``column_1``, ``column_2``...
    """

    of: Any = "moses"
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if any(getattr(reader, "duplicates", "keep") == "drop" for reader in self.every):
            message = "the reader drops duplicates, so lines of scores would go to the wrong candidates; "
            raise RecipeError(message + "set its option duplicates: keep", key="of")
        check_names(self.names, "names")

    @cached_property
    def within(self) -> tuple[Reader, ...]:
        """The reader of the lists."""
        return (make_reader(self.of, "of"),)

    @property
    def files(self) -> int | None:
        return None if self.within[0].files is None else self.within[0].files + 1

    def paths(self, path: PathLike) -> list[str]:
        *lists, scores = split_paths(path)
        return [*self.within[0].paths(",".join(lists)), scores] if lists else [scores]

    def blocks(self, path: PathLike) -> Iterator[Lists]:
        """After a list of unknown length nothing tells which scores belong to which candidates."""
        names = split_paths(path)
        if len(names) < 2 or (self.files is not None and len(names) != self.files):
            message = f"names {len(names)} files; expected {self.files or 2}: the lists and, behind a comma, the scores"
            raise DataError(message, path=stream_name(path))
        with open_stream(names[-1]) as stream:
            lines = LineReader(stream)
            columns = _columns(lines, tuple(self.names))
            # the reader of the lists does not look for these columns, nor for those that were joined in training
            inner_columns = (own := self.model_columns) and own.without({*columns, *own.sources.get(JOINED, ())})
            inner = self.within[0].for_columns(inner_columns, normal=self.normal, live=self.live)
            entries = ((number, (number, line)) for number, line in lines)
            side = Side([lines.path], entries, ("line of scores", "lines of scores"), of="candidate")
            for nbest, (rows,) in in_step(inner, ",".join(names[:-1]), [side]):
                yield nbest if nbest.problem is not None else _join(nbest.with_names(), columns, rows, lines.path)

    def write(self, out: Writable, nbest: Lists, order: Order = None, scores: Scores = None) -> None:
        """Writes as the reader of the lists does, without the joined columns."""
        self.within[0].write(out, nbest.raw if isinstance(nbest.raw, Lists) else nbest, order, scores)


def _columns(lines: LineReader, names: tuple[str, ...]) -> tuple[str, ...]:
    """The columns of a file of scores: ``names``, or as its first line has them, which is taken if it names any."""
    look = b"".join(lines.peek(1))
    if look.lstrip().startswith(b"#"):
        lines.take(1)
        header = tuple(decoded(look).replace("#", " ", 1).split())
        if names and len(header) != len(names):
            message = f"{len(header)} columns are named here; the reader's option names has {len(names)}"
            raise DataError(message, path=lines.path, line=1)
        if twice := [name for name, count in Counter(header).items() if count > 1]:
            message = f"found the column name {twice[0]!r} twice; expected a name of its own for every column"
            raise DataError(message, path=lines.path, line=1)
        names = names or header
    return names or tuple(f"column_{k}" for look in lines.peek(1) for k in range(1, len(look.split()) + 1))


def _join(nbest: Lists, names: tuple[str, ...], lines: list[tuple[int, bytes]], path: str) -> Lists:
    """A list with the scores in ``lines``, one for each of its candidates in the file, bad ones included.

    A list that its reader writes as it is, scores and all, is kept for it without them.
    """
    if clash := set(nbest.names) & set(names):
        message = f"the lists have a column {min(clash)!r} too; name the columns in the reader's option names"
        raise DataError(message, path=path, line=1)

    def row(line: tuple[int, bytes], _: int) -> list[float]:
        values = scores_of(line[1], f"{len(names)} numbers, the scores of a candidate", line[0], path)
        if len(values) != len(names):
            message = f"found {len(values)} numbers; expected {len(names)} ({', '.join(names)})"
            raise Problem("columns", message, line[0], path=path)
        return values

    entries = each([lines[y] for y in nbest.indices], row)
    problems = {y: one for y, one in enumerate(entries) if isinstance(one, Problem)}
    rows = [[0.0] * len(names) if isinstance(one, Problem) else one for one in entries]
    return nbest.replace(
        scores=np.concatenate([nbest.scores, np.array(rows).reshape(len(rows), len(names))], axis=1),
        names=(*nbest.names, *names), sources={**nbest.by_source, JOINED: names},
        raw=nbest if nbest.raw is None or isinstance(nbest.raw, Lists) else nbest.raw,
    ).without(problems)  # fmt: skip
