"""A list of candidates as its reader gives it, and the stand-ins for lists and candidates that cannot be used."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self, overload

import numpy as np

from rerank.base.errors import DataError
from rerank.data.symbols import SymbolTable
from rerank.readers.trees.trees import Trees, parse_brackets, to_nltk

if TYPE_CHECKING:
    import nltk  # takes a second and 95 MB: only where a user asks for its trees

TRACE = "-NONE-"  # the tag of traces, words that are not in the sentence

_PRETERMINAL = re.compile(r"\(\s*([^\s()]*)\s+([^\s()]+)\s*\)")


@dataclass(frozen=True)
class Bad:
    """What cannot be used, and why. ``reason`` is a key of the table in ``rerank.readers.base``."""

    id: str  # of the list
    path: str
    line: int
    reason: str
    message: str

    what: ClassVar[str] = "list"

    def error(self) -> DataError:
        """It as an error that also says how to continue without it."""
        advice = f"leave out such {self.what}s with --on-bad-list skip (in a recipe: data.on_bad_list: skip)"
        message = f"{self.message}; mend or remove the {self.what}, or {advice}"
        return DataError(message, path=self.path, line=self.line, list_id=self.id)

    def __str__(self) -> str:
        return str(DataError(self.message, path=self.path, line=self.line, list_id=self.id))


@dataclass(frozen=True)
class BadCandidate(Bad):
    """A candidate that was left out of its list; ``place`` is its place among the list's candidates, from 0."""

    place: int

    what: ClassVar[str] = "candidate"


@dataclass(frozen=True)
class BadList(Bad):
    """Takes the place of a list that cannot be used; ``size`` is the number of its candidates, if known."""

    size: int | None = None

    @staticmethod
    def of(bad: Sequence[BadCandidate]) -> BadList:
        """A list without a usable candidate; the first of those found ``bad`` gives the reason."""
        first = bad[0]
        return BadList(first.id, first.path, first.line, first.reason, first.message, len(bad))

    @property
    def name(self) -> str:
        """An id for a list that takes its place, different from all others in the file."""
        return nameless(self.line) if self.reason in ("header", "duplicate id") else self.id


def nameless(line: int) -> str:
    """A substitute for the id of a list whose own is unknown."""
    return f"line-{line}"


class Candidate:
    """One candidate of a list, made when asked for. ``index`` is its place in the list, from 0."""

    __slots__ = ("_list", "index")

    def __init__(self, nbest: NBestList, index: int) -> None:
        self._list, self.index = nbest, index

    @property
    def text(self) -> str:
        """The candidate as the file has it; bytes that are not UTF-8 are surrogate escapes."""
        return self._list.texts[self.index].decode("utf-8", "surrogateescape")

    @property
    def scores(self) -> np.ndarray:
        """float64 [K]: all scores that the file gives."""
        return np.asarray(self._list.scores[self.index])

    @property
    def tokens(self) -> list[str]:
        """The words, without traces."""
        return [word for tag, word in _PRETERMINAL.findall(self.text) if tag != TRACE]

    @property
    def tree(self) -> nltk.Tree:
        """The parse tree.

        Raises
        ------
        DataError: the text is not a tree, or the tree is too deep for nltk.
        """
        nbest, symbols = self._list, SymbolTable()
        where: Any = {"path": nbest.path, "lines": [nbest.lines[self.index]], "list_id": nbest.id}
        trees = parse_brackets([nbest.texts[self.index]], symbols, **where)
        try:
            return to_nltk(trees, 0, symbols)
        except DataError as error:
            line = nbest.lines[self.index]
            raise DataError(error.message, path=nbest.path, line=line, list_id=nbest.id) from None


class Candidates(Sequence[Candidate]):
    """The candidates of a list as a sequence; each is made when asked for."""

    def __init__(self, nbest: NBestList) -> None:
        self._list = nbest

    def __len__(self) -> int:
        return len(self._list.texts)

    @overload
    def __getitem__(self, index: int) -> Candidate: ...
    @overload
    def __getitem__(self, index: slice) -> list[Candidate]: ...
    def __getitem__(self, index: int | slice) -> Candidate | list[Candidate]:
        places, kind = range(len(self))[index], self._list.kind
        return kind(self._list, places) if isinstance(places, int) else [kind(self._list, i) for i in places]


@dataclass(frozen=True, eq=False)
class NBestList:
    """N candidates for one sentence, as the file has them.

    | field      | type             | meaning |
    |------------|------------------|---------|
    | id         | str              | the list's name |
    | path, line | str, int         | where its first line is |
    | texts      | list of N bytes  | the candidates |
    | lines      | N ints           | the line of every text |
    | scores     | float64 [N, K]   | the scores of every candidate, in the file's order |
    | column     | int              | which of the K is the base score |
    | duplicates | int              | candidates that repeat an earlier one (or did, where the reader drops them) |
    | form       | str              | the variant of the format, for writing it back |
    | bad        | BadCandidates    | candidates that were left out |
    """

    kind: ClassVar[type[Candidate]] = Candidate  # the class of the candidates as objects

    id: str
    path: str
    line: int
    texts: list[bytes]
    lines: Sequence[int]
    scores: np.ndarray
    column: int = 0
    duplicates: int = 0
    form: str = ""
    bad: tuple[BadCandidate, ...] = ()

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def base(self) -> np.ndarray:
        """float64 [N]: the base score, the generator's own; higher is better."""
        return np.asarray(self.scores[:, self.column])

    @property
    def candidates(self) -> Candidates:
        """The candidates as objects, each made when asked for."""
        return Candidates(self)

    def some(self, places: Sequence[int]) -> Self:
        """The candidates at ``places``, in that order."""
        return replace(
            self,
            texts=[self.texts[i] for i in places],
            lines=[self.lines[i] for i in places],
            scores=self.scores[list(places)],
        )

    @property
    def places(self) -> list[int]:
        """The place of every candidate among all of the list in the file, bad ones included (unless duplicates are
        dropped)."""
        left = {one.place for one in self.bad}
        return [place for place in range(len(self) + len(left)) if place not in left]

    def without(self, bad: Sequence[BadCandidate]) -> Self | BadList:
        """The list without some of its candidates, or a bad list if none is left.

        bad: those to leave out; their places are places in this list.
        """
        places, left = self.places, {one.place for one in bad}
        every = (*self.bad, *(replace(one, place=places[one.place]) for one in bad))
        if len(left) == len(self) > 0:
            return BadList.of(every)
        return replace(self.some([i for i in range(len(self)) if i not in left]), bad=every)

    def trees(self, symbols: SymbolTable) -> Trees:
        """All candidates parsed; new labels and words are added to ``symbols``.

        Raises
        ------
        DataError: a candidate is not a well-formed tree; says path, line and list.
        """
        return parse_brackets(self.texts, symbols, path=self.path, lines=self.lines, list_id=self.id)
