"""Formats of lists of texts that are read line by line, and which of their named numbers are columns of scores; the
others are sparse features.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from rerank.readers.base import Problem, SkippedList
from rerank.readers.lines import LineReader
from rerank.readers.list_reader import ListReader, Make, Record
from rerank.readers.score_columns import ScoreColumns
from rerank.readers.texts.text_list import Draft, Entry, TextList, text_list

SCORE, BASE_SCORE = "score", "base_score"

NUMBERS = (SCORE, BASE_SCORE, "gain")  # never sparse features
OF_WORDS = "sum", "mean", "min", "length"  # the columns that the scores of a candidate's words give


class NamedColumns:
    """The columns of a file, once a list has shown them: the base score, then what all of its candidates have.

    Parameters
    ----------
    base: the name of the base score; if it is "score", it is 0 in a file where no candidate has it.
    dense: the columns besides the base score, where they are asked for.
    known: the columns of a model, which are the dense ones unless others are asked for.
    optional: whether the user of the reader chooses base and dense, and is told so.
    """

    def __init__(self, base: str, dense: tuple[str, ...] | None, known: ScoreColumns | None, *, optional: bool) -> None:
        self.base, self.asked, self.trained, self.optional = base, dense is not None, known is not None, optional
        self.dense = known.names if dense is None and known is not None else dense
        self.names: tuple[str, ...] | None = None
        self.scored: bool | None = None  # whether the candidates of the file's first list have base scores
        self.others: tuple[str, ...] = ()  # what the first list's candidates have though it was not asked for

    def settle(self, draft: Draft) -> None:
        """Give a draft the names of the columns; candidates that do not fit them become problems."""
        found = [one.numbers for one in draft.candidates if isinstance(one, Entry) and isinstance(one.numbers, dict)]
        scored = any(self.base in numbers for numbers in found)
        if found and self.scored is None and (scored or self.base == SCORE):
            self.scored = scored
        if not scored:
            if found and (self.base != SCORE or self.scored):
                advice = "; the reader's option base names another" if self.optional else ""
                raise Problem("score", f"no candidate has a number {self.base!r}, the base score{advice}")
            draft.unscored = True
            for numbers in found:
                numbers[SCORE] = 0.0
        if self.names is None and found:
            self.names = self._decide([numbers for numbers in found if self.base in numbers])
        for place, one in enumerate(draft.candidates):
            if isinstance(one, Entry) and isinstance(one.numbers, dict):
                draft.candidates[place] = self._misfit(one.numbers, place + 1, scored=scored) or one
        draft.names = self.names or (self.base,)

    def _misfit(self, numbers: dict[str, float], k: int, *, scored: bool) -> Problem | None:
        """What is wrong with the numbers of candidate ``k`` of a list with base scores, or with zeros for them."""
        if self.base not in numbers:
            return Problem("score", f"candidate {k} has no number {self.base!r}, the base score")
        names = self.names or ()
        for name in names:
            if name not in numbers:
                like = "the training lists" if self.trained else "the file's first list"
                advice = "; name the dense columns in the reader's option dense" if self.optional else ""
                return Problem(
                    "columns", f"candidate {k} does not have the number {name!r}, as all of {like} do{advice}"
                )
        for name in NUMBERS:
            if name in numbers and (name not in names or (name == self.base and scored and not self.scored)):
                message = f"candidate {k} has the number {name!r}, which no candidate of the file's first list has"
                return Problem("columns", message)
        return None

    def _decide(self, found: list[dict[str, float]]) -> tuple[str, ...]:
        """The names of the columns, from the numbers of the file's first list: the base score, then in their order."""
        shared = set(found[0]).intersection(*found).union(NUMBERS)
        names = [name for numbers in found for name in numbers if name in shared]
        if self.dense is not None:
            if not self.asked:
                self.others = tuple(
                    name for name in dict.fromkeys(names) if name not in (*self.dense, *NUMBERS, self.base)
                )
            names = [*self.dense, *(name for name in names if name in NUMBERS)]
        return tuple(dict.fromkeys([self.base, *names]))


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
