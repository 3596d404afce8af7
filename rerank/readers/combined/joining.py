"""Scores of other models, from files with one line per candidate, joined to lists.

Three lines of such a file, the first of which may name the columns::

    # nmt lm
    -12.5 -30.25
    -13 -29.5

The path names the lists and the scores, separated by a comma: ``test.nbest.gz,test.scores.gz``. The n-th line belongs
to the n-th candidate of the file, whichever list it is in.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from rerank.base.encoding import decoded
from rerank.base.errors import DataError, RecipeError
from rerank.readers.base import Order, Problem, Reader, Scores
from rerank.readers.lines import LineReader, scores_of
from rerank.readers.lists import Lists
from rerank.readers.score_columns import check_names
from rerank.readers.several import drops_duplicates, make_reader
from rerank.readers.sides import Side, in_step
from rerank.readers.streams import PathLike, Writable, open_stream, split_paths, stream_name
from rerank.readers.texts.text_list import each

_SOURCE = "joined"  # the source of the columns


@dataclass(frozen=True)
class JoinedReader(Reader):
    """Lists with score columns from another file, the last that the path names.

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
        if drops_duplicates(self.inner):
            message = "the reader drops duplicates, so lines of scores would go to the wrong candidates; "
            raise RecipeError(message + "set its option duplicates: keep", key="of")
        check_names(self.names, "names")

    @cached_property
    def inner(self) -> Reader:
        """The reader of the lists."""
        return make_reader(self.of, "of")

    @property
    def within(self) -> tuple[Reader, ...]:
        return (self.inner,)

    @property
    def files(self) -> int | None:
        return None if self.inner.files is None else self.inner.files + 1

    def paths(self, path: PathLike) -> list[str]:
        *lists, scores = split_paths(path)
        return [*self.inner.paths(",".join(lists)), scores] if lists else [scores]

    def blocks(self, path: PathLike) -> Iterator[Lists]:
        """After a list of unknown length nothing tells which scores belong to which candidates."""
        names = split_paths(path)
        expected = self.files
        if len(names) < 2 or (expected is not None and len(names) != expected):
            message = f"names {len(names)} files; expected {expected or 2}: the lists and, behind a comma, the scores"
            raise DataError(message, path=stream_name(path))
        with open_stream(names[-1]) as stream:
            lines = LineReader(stream)
            columns = _columns(lines, tuple(self.names))
            # the reader of the lists does not look for these columns, nor for those that were joined in training
            known = self.known and self.known.without({*columns, *self.known.sources.get(_SOURCE, ())})
            inner = self.inner.knowing(known, normal=self.normal)
            numbered = ((number, (number, line)) for number, line in lines)
            side = Side([lines.path], numbered, ("line of scores", "lines of scores"), of="candidate")
            for nbest, (rows,) in in_step(inner, ",".join(names[:-1]), [side]):
                yield nbest if nbest.problem is not None else _joined(nbest.named(), columns, rows, lines.path)

    def write(self, out: Writable, nbest: Lists, order: Order = None, scores: Scores = None) -> None:
        """Writes as the reader of the lists does, without the joined columns."""
        self.inner.write(out, nbest.raw if isinstance(nbest.raw, Lists) else nbest, order, scores)

    def write_bad(self, out: Writable, bad: Problem, like: Lists | None) -> None:
        self.inner.write_bad(out, bad, like)


def _columns(lines: LineReader, names: tuple[str, ...]) -> tuple[str, ...]:
    """The columns of a file of scores: ``names``, or as its first line has them, which is taken if it names any."""
    look = lines.ahead(1)
    if look and look[0].lstrip().startswith(b"#"):
        lines.take(1)
        header = tuple(decoded(look[0]).replace("#", " ", 1).split())
        if names and len(header) != len(names):
            message = f"{len(header)} columns are named here; the reader's option names has {len(names)}"
            raise DataError(message, path=lines.path, line=1)
        if len(set(header)) < len(header):
            raise DataError("a name appears twice; every column needs its own name", path=lines.path, line=1)
        names = names or header
    return names or tuple(f"column_{k}" for look in lines.ahead(1) for k in range(1, len(look.split()) + 1))


def _joined(nbest: Lists, names: tuple[str, ...], lines: list[tuple[int, bytes]], path: str) -> Lists:
    """A list with the scores in ``lines``, one for each of its candidates in the file, bad ones included.

    A list that its reader writes as it is, scores and all, is kept for it without them.
    """
    if clash := set(nbest.names) & set(names):
        message = f"the lists have a column {min(clash)!r} too; name the columns in the reader's option names"
        raise DataError(message, path=path, line=1)

    def row(line: tuple[int, bytes], _: int) -> list[float]:
        found = scores_of(line[1], f"{len(names)} numbers, the scores of a candidate", line[0], path)
        if len(found) != len(names):
            message = f"found {len(found)} numbers; expected {len(names)} ({', '.join(names)})"
            raise Problem("columns", message, line[0], path=path)
        return found

    read = each([lines[place] for place in nbest.places], row)
    problems = {place: one for place, one in enumerate(read) if isinstance(one, Problem)}
    rows = [[0.0] * len(names) if isinstance(one, Problem) else one for one in read]
    scores = np.concatenate([nbest.scores, np.array(rows).reshape(len(rows), len(names))], axis=1)
    raw = nbest if nbest.raw is None or isinstance(nbest.raw, Lists) else nbest.raw
    sources = {**nbest.by_source, _SOURCE: names}
    return nbest.changed(scores=scores, names=(*nbest.names, *names), sources=sources, raw=raw).without(problems)
