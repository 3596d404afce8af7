"""``rerank.read``: the lists of a file with what other files hold for them."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rerank.readers import several
from rerank.readers.base import BadList, NBestList, OnBadList, Reader, SkipCount, check_choice, counted, usable
from rerank.readers.given.nbest import NBest
from rerank.readers.score_columns import ScoreColumns
from rerank.readers.sides import in_step
from rerank.readers.streams import PathLike
from rerank.readers.texts.text_list import TextList
from rerank.readers.texts.text_pairs import texts_beside
from rerank.readers.trees.parses import ParseReader
from rerank.readers.trees.treebank import TreebankSide, treebank_files

log = logging.getLogger("rerank")


@dataclass(frozen=True)
class ListFile:
    """The lists of a file; going through it reads it, one list at a time, from the start."""

    path: str
    reader: Reader
    settings: Mapping[str, Any]  # of the reader, as a recipe has them
    references: tuple[str, ...] | None
    sources: str | None
    form: str
    on_bad_list: OnBadList

    def __iter__(self) -> Iterator[NBest]:
        count = SkipCount(self.on_bad_list)
        yield from map(NBest.of, usable(self.rows(), counted, count))
        for line in str(count).splitlines()[1:]:
            log.warning("%s", line)

    @property
    def trees(self) -> bool:
        """Whether the lists are lists of trees."""
        return isinstance(several.format_of(self.reader), ParseReader)

    @property
    def files(self) -> list[str]:
        """All files that are read."""
        others = [*(self.references or ()), *([] if self.sources is None else [self.sources])]
        return [*self.reader.paths(self.path), *(treebank_files(*others) if self.trees else others)]

    def rows(self, known: ScoreColumns | None = None, *, normal: bool = False) -> Iterator[NBestList | BadList]:
        """The lists with their sources and references, bad ones in their places; known, normal: see ``Reader``.

        Raises
        ------
        DataError: not as many references or sources as lists; unreadable files.
        """
        reader = self.reader.knowing(known, normal=normal)
        if self.trees:
            sides = [] if self.references is None else [TreebankSide(treebank_files(*self.references))]
            for raw in in_step(reader, self.path, sides):
                yield raw.nbest.changed(gold=raw.found[0]) if sides and isinstance(raw.nbest, NBestList) else raw.nbest
            return
        beside = texts_beside(reader, self.path, references=self.references, sources=self.sources, form=self.form)
        for raw in beside:
            if raw.missing is not None:
                yield raw.missing
            elif isinstance(raw.nbest, TextList):
                source, references = raw.found
                yield raw.nbest.changed(source=source, references=references)
            else:
                yield raw.nbest


def read(
    path: PathLike,
    format: str | Mapping[str, Any],
    *,
    references: PathLike | Sequence[PathLike] | None = None,
    sources: PathLike | None = None,
    form: str = "lines",
    on_bad_list: OnBadList = "error",
) -> ListFile:
    """The lists of a file, as a stream of ``NBest`` that begins again whenever it is gone through.

    Parameters
    ----------
    path: the file, or those that the format takes; compressed or not, "-" for standard input.
    format: the name of its format ("charniak", "moses", "jsonl", ...) or a mapping of name and options.
    references: the files of references or, for lists of trees, of gold trees; not for lists that hold their own.
    sources: a file with the input of every list, one per line; not for lists that hold their own.
    form: what is in a file of references: "lines", "tab" or "id".
    on_bad_list: whether a list that cannot be used is an "error", or is left out ("skip"), and logged.

    Raises
    ------
    RecipeError: an unknown format or option. DataError, while it is gone through: a list that cannot be used, not as
        many references as lists, an unreadable file.
    """
    check_choice("on_bad_list", on_bad_list, ("error", "skip"))
    settings = {"name": format} if isinstance(format, str) else dict(format)
    many = [references] if isinstance(references, str | os.PathLike) else references
    return ListFile(
        os.fspath(path),
        several.make_reader(settings, "format"),
        settings,
        None if many is None else tuple(os.fspath(each) for each in many),
        None if sources is None else os.fspath(sources),
        form,
        on_bad_list,
    )
