"""Lists of texts together with their sources and references."""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain

import numpy as np

from rerank.base.errors import DataError
from rerank.readers.base import Problem, Reader, SkipCount, check_choice, counted, usable
from rerank.readers.lines import whole_number
from rerank.readers.lists import Lists
from rerank.readers.sides import Progress, Side, in_step
from rerank.readers.streams import PathLike
from rerank.readers.texts.text_files import FORMS, TextFile, present

REFERENCES_KEY = "data.references"  # the setting that names the files


def read_text_pairs(
    reader: Reader,
    nbest_path: PathLike,
    *,
    references: Sequence[PathLike] | None = None,
    sources: PathLike | None = None,
    form: str = "auto",
    count: SkipCount | None = None,
    needs_references: bool = True,
) -> Iterator[Lists]:
    """Every usable list with its source and references, paired by ids or by order: see ``text_files``.

    Parameters
    ----------
    reader: the reader of the lists, which must be lists of texts.
    references, form: files and their form, see ``TextFile``; by default those that the lists hold.
    sources: a file with one source per line; by default those that the lists hold. Under the form "lines" they have no
        ids.
    count: the policy for bad lists ("error" by default) and the counts. A bad list uses up its source and its
        references. Lists that are missing at the end are errors, or empty lists that are counted as "missing".
    needs_references: whether a list without any is bad ("no reference").
    """
    count = count if count is not None else SkipCount()

    def take(nbest: Lists, count: SkipCount) -> Lists | None:
        return settle(complete(nbest, needs_references=needs_references), count)

    lists = lists_of_texts(reader, nbest_path, references=references, sources=sources, form=form)
    yield from usable(lists, take, count)


def complete(nbest: Lists, *, needs_references: bool = True) -> Lists:
    """The list, or a bad one if it lacks something needed; see ``read_text_pairs``."""
    if nbest.problem is None and nbest.missing is None and needs_references and not nbest.references:
        message = f"no references: name their files with {REFERENCES_KEY}, or use a format that holds them (jsonl)"
        return nbest.left_out(Problem("no reference", message))
    return nbest


def settle(nbest: Lists, count: SkipCount) -> Lists | None:
    """Count a list as good, bad or missing; returns it, or None if it cannot be used."""
    if nbest.missing is None:
        return counted(nbest, count)
    count.bad(nbest.fault(nbest.missing))
    return nbest


def lists_of_texts(
    reader: Reader,
    nbest_path: PathLike,
    *,
    references: Sequence[PathLike] | None = None,
    sources: PathLike | None = None,
    form: str = "auto",
) -> Iterator[Lists]:
    """Every list, usable or not, with the source and the references of the files where these are given; the parameters
    are those of ``read_text_pairs``.
    """
    given = [] if sources is None else [source_lines(sources, form)]
    sides = [*given, *(TextSide(path, ("line of references", "references"), form) for path in references or ())]
    for nbest, entries in in_step(reader, nbest_path, sides, missing=_missing):
        if nbest.problem is not None:
            yield nbest
            continue
        found = {} if sources is None or entries[0] is None else {"source": entries[0][0]}
        if references is not None:
            found["references"] = present(chain(*filter(None, entries[len(given) :])))
        yield text_list(nbest).changed(**found)


class TextSide(Side):
    """A file of texts, an entry of which is the texts of a list."""

    def __init__(self, path: PathLike, what: tuple[str, str], form: str) -> None:
        super().__init__([path], (), what)
        check_choice("form", form, FORMS)
        self.form = form

    def settle(self, reader: Reader, ids: Callable[[], Sequence[str]]) -> None:
        file = TextFile(self.paths[0], self.form)
        first = ids() if file.ways else ()
        own = reader.order == "id" and any(name != str(k) for k, name in enumerate(first, start=reader.first_id))
        self.by_id = file.by_id(first, own=own) if first else None
        if self.by_id is None:
            self.entries = file.by_place()
            super().settle(reader, ids)


def source_lines(path: PathLike, form: str = "auto") -> Side:
    """The sources of lists, one per line, as a side file; form: that of references, see ``read_text_pairs``."""
    return TextSide(path, ("source", "sources"), "lines" if form == "lines" else "auto")


def _missing(lists: Progress) -> Lists:
    """An empty list after the last one."""
    last, like = lists.last, lists.like
    known = None if last is None else whole_number(last.id)
    number = lists.count if known is None else known + 1
    names, column = (("score",), 0) if like is None or like.of_trees else (like.names, like.column)
    line = 1 if last is None else last.line
    return Lists.one(str(number), lists.path, line, [], [], np.empty((0, len(names))), column, names=names)


def text_list(nbest: Lists) -> Lists:
    """``nbest`` as a list of texts."""
    if not nbest.of_trees or nbest.problem is not None:
        return nbest
    message = "the reader gives lists of trees; name one of lists of texts: --reader (in a recipe: data.reader)"
    raise DataError(message, path=nbest.path, line=nbest.line, list_id=nbest.id)
