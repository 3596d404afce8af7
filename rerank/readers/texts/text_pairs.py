"""Lists of texts together with their sources and references."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from rerank.base.errors import DataError
from rerank.readers.base import NBestList, Problem, Reader, SkipCount, SkippedList, usable
from rerank.readers.sides import Progress, Side, in_step
from rerank.readers.streams import PathLike
from rerank.readers.texts.references import read_lines, read_references
from rerank.readers.texts.text_list import TextList

REFERENCES_KEY, SOURCES_KEY = "data.references", "data.sources"  # the settings that name the files
NO_SOURCE = Problem(
    "no source", f"no source: name the file with {SOURCES_KEY} (--sources), or use a format that holds it (jsonl)"
)


class TextPair(NamedTuple):
    """A list with its source and references."""

    nbest: TextList
    source: bytes  # empty if there is none
    references: tuple[bytes, ...]  # empty if there are none


def read_text_pairs(
    reader: Reader,
    nbest_path: PathLike,
    *,
    references: Sequence[PathLike] | None = None,
    sources: PathLike | None = None,
    form: str = "lines",
    count: SkipCount | None = None,
    needs_references: bool = True,
    needs_source: bool = False,
) -> Iterator[TextPair]:
    """Every usable list with its source and references, paired by order.

    Parameters
    ----------
    reader: the reader of the lists, which must be lists of texts.
    references, form: files and their form, see ``read_references``; by default those that the lists hold.
    sources: a file with one source per line; by default those that the lists hold.
    count: the policy for bad lists ("error" by default) and the counts. A bad list uses up its source and its
        references. Lists that are missing at the end are errors, or empty lists that are counted as "missing".
    needs_references, needs_source: whether a list without any is bad ("no reference", "no source").

    Raises
    ------
    DataError: a bad list under the policy "error"; not as many lists as sources or references; a reader of
        trees; unreadable files.
    RecipeError: see ``read_references``.
    """
    count = count if count is not None else SkipCount()

    def take(nbest: TextList | SkippedList, count: SkipCount) -> TextPair | None:
        texts = settle(complete(nbest, needs_references=needs_references, needs_source=needs_source), count)
        return None if texts is None else TextPair(texts, texts.source or b"", texts.references)

    lists = lists_of_texts(reader, nbest_path, references=references, sources=sources, form=form)
    yield from usable(lists, take, count)


def complete(
    nbest: TextList | SkippedList, *, needs_references: bool = True, needs_source: bool = False
) -> TextList | SkippedList:
    """The list, or a bad one if it lacks something needed; see ``read_text_pairs``."""
    if isinstance(nbest, SkippedList) or nbest.missing is not None:
        return nbest
    if needs_references and not nbest.references:
        message = f"no references: name their files with {REFERENCES_KEY}, or use a format that holds them (jsonl)"
        return SkippedList.of(Problem("no reference", message), nbest.id, nbest.path, nbest.line)
    if needs_source and nbest.source is None:
        return SkippedList.of(NO_SOURCE, nbest.id, nbest.path, nbest.line)
    return nbest


def settle(nbest: TextList | SkippedList, count: SkipCount) -> TextList | None:
    """Count a list as good, bad or missing; returns it, or None if it cannot be used.

    Raises
    ------
    DataError: it is bad or missing, or has bad candidates, and the policy is "error".
    """
    if isinstance(nbest, SkippedList):
        count.bad(nbest)
        return None
    if nbest.missing is not None:
        count.bad(SkippedList.of(nbest.missing, nbest.id, nbest.path, nbest.line))
    else:
        count.good(nbest)
    return nbest


def lists_of_texts(
    reader: Reader,
    nbest_path: PathLike,
    *,
    references: Sequence[PathLike] | None = None,
    sources: PathLike | None = None,
    form: str = "lines",
) -> Iterator[TextList | SkippedList]:
    """Every list, usable or not, with the source and the references of the files where these are given; the parameters
    are those of ``read_text_pairs``.

    Raises
    ------
    DataError: fewer sources or references than lists, or not as many of one as of the other; a reader of trees;
        unreadable files.
    RecipeError: see ``read_references``.
    """
    sides = {} if sources is None else {"source": source_lines(sources)}
    if references is not None:
        texts = read_references(references, form, reader.first_id)
        sides["references"] = Side(references, enumerate(texts, start=1), ("line of references", "references"))
    for nbest, entries in in_step(reader, nbest_path, list(sides.values()), missing=_missing):
        if isinstance(nbest, SkippedList):
            yield nbest
        else:
            yield text_list(nbest).changed(**dict(zip(sides, entries, strict=True)))


def source_lines(path: PathLike) -> Side:
    """The sources of lists, one per line, as a side file."""
    return Side([path], enumerate(read_lines(path), start=1), ("source", "sources"))


def _missing(lists: Progress) -> TextList:
    """An empty list after the last one."""
    last, like = lists.last, lists.like
    number = int(last.id) + 1 if last is not None and last.id.isdigit() else lists.count
    names, column = (like.names, like.column) if isinstance(like, TextList) else (("score",), 0)
    line = 1 if last is None else last.line
    return TextList(str(number), lists.path, line, [], [], np.empty((0, len(names))), column, names=names)


def text_list(nbest: NBestList) -> TextList:
    """``nbest`` as a list of texts.

    Raises
    ------
    DataError: it is a list of trees.
    """
    if isinstance(nbest, TextList):
        return nbest
    message = "the reader gives lists of trees; name one of lists of texts: --reader (in a recipe: data.reader)"
    raise DataError(message, path=nbest.path, line=nbest.line, list_id=nbest.id)
