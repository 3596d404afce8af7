"""Lists of texts (translations, transcripts, samples of a language model), and drafts: the lists as their formats find
them, before columns are chosen and bad candidates left out.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from rerank.base.encoding import encoded
from rerank.readers.base import Problem
from rerank.readers.lines import LineReader, ListReader, Make, Record
from rerank.readers.lists import Lists, SparseScores, answers_of, stripped
from rerank.readers.score_columns import ScoreColumns

T = TypeVar("T")
U = TypeVar("U")


class Pieces(NamedTuple):
    """A list taken apart for writing it back: ``candidates`` can be reordered, or appended to those of another list.

    | field      | meaning |
    |------------|---------|
    | head       | what the list has once: its JSON object, or its lines before the first candidate |
    | candidates | N entries: what it has for every candidate |
    """

    head: Any
    candidates: list[Any]

    def some(self, places: Sequence[int]) -> "Pieces":
        """The pieces with only the candidates at ``places``."""
        return Pieces(self.head, [self.candidates[place] for place in places])


class Entry(NamedTuple):
    """A candidate as its format finds it.

    ``numbers`` are its scores and sparse features by name or, in a draft with ``names``, the scores in their order.
    """

    text: bytes  # as it stands
    numbers: dict[str, float] | list[float]
    segmentation: bytes | None = None
    alignment: bytes | None = None
    answer: bytes | None = None  # None or empty: it has none
    labels: tuple[str, ...] = ()  # sparse features with the value 1


@dataclass(slots=True)
class Draft:
    """A list as its format finds it.

    | field      | meaning |
    |------------|---------|
    | candidates | an Entry for each candidate, or the Problem that makes it a bad one |
    | pieces     | what is needed to write each of them back |
    | head       | what is needed to write the list back |
    | lines      | the line of each of them; None: all are on that of the list |
    | names      | the columns of scores, where the format decides on them; see ``NamedColumns`` |
    | source     | the input, if the format holds it |
    | references | references, if the format holds them |
    | unscored   | whether all base scores are 0 because there are none |
    """

    candidates: list[Entry | Problem]
    pieces: Sequence[Any]
    head: Any
    lines: Sequence[int] | None = None
    names: tuple[str, ...] | None = None
    source: bytes | None = None
    references: tuple[bytes, ...] = ()
    unscored: bool = False


def each(items: Sequence[T], make: Callable[[T, int], U]) -> list[U | Problem]:
    """The results of ``make`` (of an item and its number, from 1), or the problems that it raises."""
    made: list[U | Problem] = []
    for number, item in enumerate(items, start=1):
        try:
            made.append(make(item, number))
        except Problem as problem:
            made.append(problem)
    return made


def text_list(
    draft: Draft, name: str, path: str, line: int, form: str, others: tuple[str, ...], roles: Any = None
) -> Lists:
    """The list that a draft with ``names`` describes, without its bad candidates; a bad list if all of them are bad."""
    names = draft.names or ()
    lines = [line] * len(draft.candidates) if draft.lines is None else draft.lines
    good = [one for one in draft.candidates if isinstance(one, Entry)]
    bad, pieces = list[Problem](), list(draft.pieces)
    if len(good) < len(draft.candidates):
        entries = list(enumerate(draft.candidates))
        bad = [one.at(name, path, lines[k], k) for k, one in entries if isinstance(one, Problem)]
        places = [k for k, one in entries if isinstance(one, Entry)]
        lines, pieces = [lines[k] for k in places], [pieces[k] for k in places]
        if not good:
            return Lists.of(bad[0].at(name, path, line, size=len(bad)))
    named = [one.numbers for one in good if isinstance(one.numbers, dict)]
    rows: list[Any] = [[numbers.pop(key) for key in names] for numbers in named] or [one.numbers for one in good]
    scores = np.array(rows, np.float64)
    for one in good:
        if one.labels and isinstance(one.numbers, dict):
            one.numbers.update(dict.fromkeys(one.labels, 1.0))
    texts, given = stripped([one.text for one in good])
    return Lists.one(
        id=name, path=path, line=line, texts=texts, given=given, lines=lines,
        scores=scores.reshape(len(good), len(names)), form=form, bad=tuple(bad), names=names, others=others,
        sparse=_sparse(named),
        segmentation=_derivations([one.segmentation for one in good]),
        alignment=_derivations([one.alignment for one in good]),
        answers=answers_of([one.answer for one in good]),
        source=draft.source, references=draft.references, unscored=draft.unscored,
        raw=Pieces(draft.head, pieces), roles=roles,
    )  # fmt: skip


def _sparse(numbers: Sequence[Mapping[str, float]]) -> SparseScores | None:
    """The numbers that belong to no column."""
    counts = [len(features) for features in numbers]
    if not any(counts):
        return None
    pairs = [pair for features in numbers for pair in features.items()]
    first = np.zeros(len(numbers) + 1, np.int64)
    np.cumsum(counts, out=first[1:])
    return SparseScores(first, [encoded(key) for key, _ in pairs], np.array([value for _, value in pairs], np.float64))


def _derivations(texts: list[bytes | None]) -> list[bytes] | None:
    """The derivations of all candidates, empty for those without one; None if no candidate has one."""
    return None if texts.count(None) == len(texts) else [text or b"" for text in texts]


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

    shown: tuple[set[str], set[str]] | None = None  # the names of numbers and of columns, where many lists tell

    def __init__(self, base: str, dense: tuple[str, ...] | None, known: ScoreColumns | None, *, optional: bool) -> None:
        self.base, self.asked, self.trained, self.optional = base, dense is not None, known is not None, optional
        self.dense = known.names if dense is None and known is not None else dense
        self.names: tuple[str, ...] | None = None
        self.scored: bool | None = None  # whether the candidates of the file's first list have base scores
        self.others: tuple[str, ...] = ()  # what the first list's candidates have though it was not asked for

    def settle(self, draft: Draft) -> None:
        """Give a draft the names of the columns; candidates that do not fit them become problems."""
        named = [one.numbers for one in draft.candidates if isinstance(one, Entry) and isinstance(one.numbers, dict)]
        scored = any(self.base in numbers for numbers in named)
        if named and self.scored is None and (scored or self.base == SCORE):
            self.scored = scored if self.shown is None else self.base in self.shown[1]
        if not scored:
            if named and (self.base != SCORE or self.scored):
                advice = "; the reader's option base names another" if self.optional else ""
                raise Problem("score", f"no candidate has a number {self.base!r}, the base score{advice}")
            draft.unscored = True
            for numbers in named:
                numbers[SCORE] = 0.0
        if self.names is None and named:
            self.names = self._decide([numbers for numbers in named if self.base in numbers] or named)
        for place, one in enumerate(draft.candidates):
            if isinstance(one, Entry) and isinstance(one.numbers, dict):
                draft.candidates[place] = self._misfit(one.numbers, place + 1, scored=scored) or one
        draft.names = self.names or (self.base,)

    def _misfit(self, numbers: dict[str, float], k: int, *, scored: bool) -> Problem | None:
        """The problem with the numbers of candidate ``k`` of a list with base scores, or with zeros for them."""
        if self.base not in numbers:
            return Problem("score", f"candidate {k} has no number {self.base!r}, the base score")
        names = self.names or ()
        for name in names:
            if name not in numbers:
                like = "all of the training lists" if self.trained else "nearly all of the file's first lists"
                advice = "; name the dense columns in the reader's option dense" if self.optional else ""
                message = f"candidate {k} does not have the number {name!r}, as {like} do{advice}"
                return Problem("columns", message)
        for name in NUMBERS:
            if name in numbers and (name not in names or (name == self.base and scored and not self.scored)):
                message = f"candidate {k} has the number {name!r}, which the file's first lists do not have"
                return Problem("columns", message)
        return None

    def _decide(self, found: list[dict[str, float]]) -> tuple[str, ...]:
        """The names of the columns, from the numbers of the file's first list: the base score, then in their order."""
        shared = set(found[0]).intersection(*found)
        if self.shown is not None:
            shared = shared - self.shown[0] | self.shown[1]
        names = [name for numbers in found for name in numbers if name in shared.union(NUMBERS)]
        names += sorted(shared.difference(names))
        if self.dense is not None:
            if not self.asked:
                known = {*self.dense, *NUMBERS, self.base}
                self.others = tuple(name for name in dict.fromkeys(names) if name not in known)
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

        def make(name: str, record: Record) -> Lists:
            nonlocal names
            draft = self.draft(record.content, names)
            if draft.names is None:
                columns.shown = lines.columns
                columns.settle(draft)
            nbest = text_list(draft, name, lines.path, record.line, self.form, columns.others, lines.roles)
            names = nbest.names if len(nbest) else names
            return nbest

        return make
