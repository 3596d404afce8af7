"""Scores of other models, from files with a line a candidate, joined to lists of texts.

Three lines of such a file, the first of which may name the columns::

    # nmt lm
    -12.5 -30.25
    -13 -29.5

The path names the lists and the scores, separated by a comma: ``test.nbest.gz,test.scores.gz``. The n-th line belongs
to the n-th candidate of the file, whichever list that is in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from rerank.errors import DataError, RecipeError
from rerank.readers.base import BadList, NBestList, Reader, excerpt, readers
from rerank.readers.lines import LineReader
from rerank.readers.parses import numbers
from rerank.readers.several import drops_duplicates, file_count, make_reader, split_paths
from rerank.readers.streams import PathLike, Writable, open_stream, stream_name
from rerank.readers.text_list import TextList

_ONE_EACH = "the file of scores needs one line for every candidate, in the same order"


@readers.add("joined")
@dataclass(frozen=True)
class JoinedReader(Reader):
    """Lists with columns of scores from another file, the last that the path names.

    Parameters
    ----------
    of: the reader of the lists: a name, or a mapping of a name and options. It must keep duplicates.
    names: the names of the columns; by default those in the first line of the file, or ``column_1``, ``column_2``...
    """

    of: Any = "moses"
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if drops_duplicates(self.inner):
            message = "the reader drops duplicates, so lines of scores would go to other candidates; "
            raise RecipeError(message + "set its option duplicates: keep", key="of")
        if isinstance(self.names, str) or not all(isinstance(name, str) and name for name in self.names):
            raise RecipeError(f"found {self.names!r}; expected a list of names", key="names")
        if len(set(self.names)) < len(self.names):
            raise RecipeError("a name comes twice; every column needs a name of its own", key="names")

    @cached_property
    def inner(self) -> Reader:
        """The reader of the lists."""
        return make_reader(self.of, "of")

    @property
    def files(self) -> int | None:
        """How many files a path of this reader names; None: any number."""
        lists = file_count(self.inner)
        return None if lists is None else lists + 1

    def read(self, path: PathLike) -> Iterator[NBestList | BadList]:
        """See ``Reader.read``; after a bad list nobody can tell whose the next scores are, so that is an error."""
        names = split_paths(path)
        expected = self.files
        if len(names) < 2 or (expected is not None and len(names) != expected):
            message = f"names {len(names)} files; expected {expected or 2}: the lists and, behind a comma, the scores"
            raise DataError(message, path=stream_name(path))
        with open_stream(names[-1]) as stream:
            table = _Table(LineReader(stream), tuple(self.names))
            candidates = 0
            for nbest in self.inner.read(",".join(names[:-1])):
                if isinstance(nbest, BadList):
                    message = f"{nbest.message}; nobody can tell which scores of {stream.path} belong to the next list"
                    raise DataError(f"{message}: mend the list", path=nbest.path, line=nbest.line, list_id=nbest.id)
                if not isinstance(nbest, TextList):
                    raise RecipeError("the reader does not read texts; scores are joined to lists of texts", key="of")
                found = table.rows(nbest, candidates)
                candidates += len(nbest)
                yield found if isinstance(found, BadList) else _joined(nbest, table, found)
            table.finish(candidates, names[0])

    def write(
        self, out: Writable, nbest: NBestList, order: Sequence[int] | None = None, scores: np.ndarray | None = None
    ) -> None:
        """See ``Reader.write``; as the reader of the lists writes them, without the joined columns."""
        assert isinstance(nbest, TextList), "lists that scores were joined to"
        self.inner.write(out, nbest, order, scores)


class _Table:
    """The file of scores."""

    def __init__(self, lines: LineReader, names: tuple[str, ...]) -> None:
        self.lines = lines
        look = lines.ahead(1)
        if look and look[0].lstrip().startswith(b"#"):
            lines.take(1)
            header = tuple(look[0].decode("utf-8", "surrogateescape").replace("#", " ", 1).split())
            if names and len(header) != len(names):
                message = f"{len(header)} columns are named here; the reader's option names has {len(names)}"
                raise DataError(message, path=lines.path, line=1)
            if len(set(header)) < len(header):
                raise DataError("a name comes twice; every column needs a name of its own", path=lines.path, line=1)
            names = names or header
        if not names and (look := lines.ahead(1)):
            names = tuple(f"column_{k}" for k in range(1, len(look[0].split()) + 1))
        self.names = names

    def rows(self, nbest: TextList, before: int) -> np.ndarray | BadList:
        """float64 [N, C]: the scores of a list's candidates; ``before`` candidates came before it."""
        first, look = self.lines.number + 1, self.lines.ahead(len(nbest))
        self.lines.take(len(look))
        if len(look) < len(nbest):
            message = f"{before + len(look)} lines of scores for at least {before + len(nbest)} candidates"
            message += f" (list {nbest.id} at {nbest.path}:{nbest.line} needs more); {_ONE_EACH}"
            raise DataError(message, path=self.lines.path, line=self.lines.number)
        found = []
        for line, text in enumerate(look, start=first):
            row = numbers(text)
            if row is None:
                message = f"found {excerpt(text)}; expected {len(self.names)} numbers, the scores of a candidate"
                return BadList(nbest.id, self.lines.path, line, "score", message)
            if len(row) != len(self.names):
                message = f"found {len(row)} numbers; expected {len(self.names)} ({', '.join(self.names)})"
                return BadList(nbest.id, self.lines.path, line, "columns", message)
            found.append(row)
        scores = np.array(found, np.float64).reshape(len(found), len(self.names))
        finite = np.isfinite(scores).all(axis=1)
        if not finite.all():
            line = int(np.argmin(finite))
            message = f"found {excerpt(look[line])}; expected finite scores"
            return BadList(nbest.id, self.lines.path, first + line, "infinite score", message)
        return scores

    def finish(self, candidates: int, lists: str) -> None:
        """Nothing may be left over."""
        if self.lines.ahead(1):
            message = f"more lines of scores than the {candidates} candidates of {stream_name(lists)}; {_ONE_EACH}"
            raise DataError(message, path=self.lines.path, line=self.lines.number + 1)


def _joined(nbest: TextList, table: _Table, scores: np.ndarray) -> TextList:
    if clash := set(nbest.names) & set(table.names):
        message = f"the lists have a column {min(clash)!r} too; name the columns in the reader's option names"
        raise DataError(message, path=table.lines.path, line=1)
    names = (*nbest.names, *table.names)
    return replace(nbest, scores=np.concatenate([nbest.scores, scores], axis=1), names=names)
