"""Formats of lists of texts that are read line by line."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from rerank.readers.base import SkippedList
from rerank.readers.lines import LineReader
from rerank.readers.list_reader import ListReader, Make, Record
from rerank.readers.texts.drafts import Draft, text_list
from rerank.readers.texts.named_columns import SCORE, NamedColumns
from rerank.readers.texts.text_list import TextList


@dataclass(frozen=True)
class TextReader(ListReader):
    """A reader of lists of texts. A format has ``records``, ``draft``, ``write`` and ``write_bad``."""

    holds: ClassVar[str] = "texts"
    form: ClassVar[str] = "lists"  # the name of the format, the source of its columns

    @property
    def base(self) -> str:
        """The name of the number that is the base score."""
        return SCORE

    @property
    def dense(self) -> tuple[str, ...] | None:
        """The names of the columns besides the base score; None: the file's first list decides."""
        return None

    @abstractmethod
    def draft(self, content: Any, names: tuple[str, ...] | None) -> Draft:
        """The list that the content of a record describes.

        names: the columns of the lists before it, or of the model that the lists are for; None if there are none.

        Raises
        ------
        Problem: it describes none.
        """

    def maker(self, lines: LineReader) -> Make:
        columns = NamedColumns(self.base, self.dense, self.known, optional=self.offers("dense"))
        names = None if self.known is None else self.known.names

        def make(name: str, record: Record) -> TextList | SkippedList:
            nonlocal names
            draft = self.draft(record.content, names)
            if draft.names is None:
                columns.settle(draft)
            found = text_list(draft, name, lines.path, record.line, self.form, columns.others)
            names = found.names if isinstance(found, TextList) and len(found) else names
            return found

        return make
