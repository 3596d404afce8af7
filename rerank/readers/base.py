"""Lists of candidates as readers give them, and what happens to those that cannot be used.

===============================================  ==========================================================
what a file holds                                outcome
===============================================  ==========================================================
a list with no or one candidate                  valid
the same candidate twice in a list               valid and counted; ``duplicates: drop`` keeps the first of them
a header that is none                            bad list "header"
fewer candidates than the header says            bad list "too few"
more candidates than the header says             bad list "too many"
another number of fields than the first lists    bad list "fields"
an id that is none                               bad list "id"
lines between the fairseq records of a list      bad list "record"
a line that is no JSON object, or has keys twice bad list "json"
a text or a list of texts that is none           bad list "text"
a score line that is not numbers                 bad list "score"
NaN or an infinite score                         bad list "infinite score"
not the same scores for all                      bad list "columns"
spans of phrases that are none, or leave texts   bad list "segmentation"
the same of a word alignment                     bad list "alignment"
text that is no tree where one is expected       bad list "tree"
unbalanced brackets, a word without preterminal  bad list "brackets"
a NUL byte                                       bad list "nul"
an id used before                                bad list "duplicate id"; ``ids: ordinal`` numbers lists instead
whole numbers as ids, one left out               an empty list
such ids that do not rise, or leave out 10^6     error: sources and references can no longer be told apart
a list without references, where they are needed bad list "no reference"
a list without a source, where it is needed      bad list "no source"
sources or references after the last list        bad list "missing" each; skipped, they are empty lists
candidates with different words                  bad list "words" (words of traces, ``-NONE-``, aside)
a gold tree with other words than the list       bad list "gold words"
a balanced gold tree that is malformed           bad list "gold tree"
unbalanced brackets or text outside gold trees   error: the trees that follow can no longer be told apart
another number of gold trees than of lists       error, with both counts
fewer sources or references than lists           error, with both counts
a truncated or damaged archive, UTF-16           error
a line or tree of more than 16 MiB               error
an empty file                                    no lists; what needs some says so
CRLF line ends, a UTF-8 byte order mark          accepted
bytes that are not UTF-8                         kept as they are
trees of any depth                               read; ``Candidate.tree`` (nltk) ends at ``DEEPEST`` levels
===============================================  ==========================================================

A bad list is an error, or with ``on_bad_list="skip"`` it is counted by reason and reading goes on at the next
list. What is an error by itself is so under both policies. A skipped list uses up its gold tree (its source, its
references), so these stay aligned; if damage has merged two lists into one, the counts differ at the end and that is
an error.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, overload

import numpy as np

from rerank.errors import DataError, RecipeError
from rerank.readers.streams import PathLike, Writable
from rerank.readers.trees import Trees, parse_brackets, to_nltk
from rerank.registry import Registry
from rerank.symbols import SymbolTable

if TYPE_CHECKING:
    import nltk  # takes a second and 95 MB: only where a user asks for its trees

OnBadList = Literal["error", "skip"]
TRACE = "-NONE-"  # the tag of words that are not in the sentence

_PRETERMINAL = re.compile(r"\(\s*([^\s()]*)\s+([^\s()]+)\s*\)")


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
        """float64 [K]: all scores the file gives."""
        return np.asarray(self._list.scores[self.index])

    @property
    def tokens(self) -> list[str]:
        """The words, without those of traces."""
        return [word for tag, word in _PRETERMINAL.findall(self.text) if tag != TRACE]

    @property
    def tree(self) -> nltk.Tree:
        """The parse tree.

        Raises
        ------
        DataError: the text is no tree, or one too deep for nltk.
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
    """The candidates of a list as a sequence; none exists before it is asked for."""

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
    """

    kind: ClassVar[type[Candidate]] = Candidate  # what the candidates are as objects

    id: str
    path: str
    line: int
    texts: list[bytes]
    lines: Sequence[int]
    scores: np.ndarray
    column: int = 0
    duplicates: int = 0
    form: str = ""

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

    def trees(self, symbols: SymbolTable) -> Trees:
        """All candidates parsed; new labels and words enter ``symbols``.

        Raises
        ------
        DataError: a candidate is no well-formed tree; says path, line and list.
        """
        return parse_brackets(self.texts, symbols, path=self.path, lines=self.lines, list_id=self.id)


@dataclass(frozen=True)
class BadList:
    """Stands in its place for a list that cannot be used. ``reason`` is a key of the table above."""

    id: str
    path: str
    line: int
    reason: str
    message: str

    def error(self) -> DataError:
        """The list as an error that also says how to go on without it."""
        advice = "leave out such lists with --on-bad-list skip (in a recipe: data.on_bad_list: skip)"
        message = f"{self.message}; mend or remove the list, or {advice}"
        return DataError(message, path=self.path, line=self.line, list_id=self.id)


@dataclass
class SkipCount:
    """The policy for bad lists, and the count of what it met.

    ``reasons`` counts bad lists by reason; ``first`` has the first message of each reason, with its place.
    """

    on_bad_list: OnBadList = "error"
    lists: int = 0
    candidates: int = 0
    duplicates: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    first: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_choice("on_bad_list", self.on_bad_list, ("error", "skip"))

    @property
    def skipped(self) -> int:
        """Number of bad lists."""
        return self.reasons.total()

    def good(self, nbest: NBestList) -> None:
        """Count a list that is used."""
        self.lists += 1
        self.candidates += len(nbest)
        self.duplicates += nbest.duplicates

    def withdraw(self, nbest: NBestList) -> None:
        """Take back a list that was counted as good."""
        self.lists -= 1
        self.candidates -= len(nbest)
        self.duplicates -= nbest.duplicates

    def bad(self, bad: BadList) -> None:
        """Count a list that is not.

        Raises
        ------
        DataError: the policy is "error".
        """
        if self.on_bad_list == "error":
            raise bad.error()
        self.reasons[bad.reason] += 1
        self.first.setdefault(bad.reason, f"{bad.path}:{bad.line}: list {bad.id}: {bad.message}")

    def add(self, more: SkipCount) -> None:
        """Add the counts of the lists that follow."""
        self.lists += more.lists
        self.candidates += more.candidates
        self.duplicates += more.duplicates
        self.reasons += more.reasons
        self.first = more.first | self.first

    def as_dict(self) -> dict[str, Any]:
        """The counts for reports and provenance."""
        return {
            "lists": self.lists,
            "candidates": self.candidates,
            "duplicates": self.duplicates,
            "skipped": dict(sorted(self.reasons.items())),
        }

    def __str__(self) -> str:
        lines = [f"{self.lists:,} lists, {self.candidates:,} candidates, {self.duplicates:,} of them duplicates"]
        for reason, count in self.reasons.most_common():
            lines.append(f"skipped {count:,} lists ({reason}); the first: {self.first[reason]}")
        return "\n".join(lines)


class Reader(ABC):
    """A format of N-best lists. A reader is a frozen dataclass; its fields are the options a recipe can set."""

    @abstractmethod
    def read(self, path: PathLike) -> Iterator[NBestList | BadList]:
        """The lists of ``path`` ("-": standard input) in order, one at a time, bad ones in their places.

        Raises
        ------
        DataError: the stream itself cannot be read.
        """

    @abstractmethod
    def write(
        self, out: Writable, nbest: NBestList, order: Sequence[int] | None = None, scores: np.ndarray | None = None
    ) -> None:
        """Write ``nbest`` in this format.

        Parameters
        ----------
        order: which candidates, best first; all in their own order by default.
        scores: float64 [N], new scores of the list's candidates (not of ``order``); they precede the old ones.
        """


readers: Registry[type[Reader]] = Registry("reader")


def read_lists(
    reader: Reader, path: PathLike, on_bad_list: OnBadList = "error", count: SkipCount | None = None
) -> Iterator[NBestList]:
    """The usable lists of ``path``; bad ones are errors, or skipped and counted in ``count``.

    ``count``, where given, holds the policy too and ``on_bad_list`` is not looked at.

    Raises
    ------
    DataError: a bad list under the policy "error", or an unreadable file.
    """
    count = count if count is not None else SkipCount(on_bad_list)
    for nbest in reader.read(path):
        if isinstance(nbest, BadList):
            count.bad(nbest)
        else:
            count.good(nbest)
            yield nbest


def check_choice(key: str, value: object, choices: tuple[str, ...]) -> None:
    """Refuse an option that is not one of ``choices``.

    Raises
    ------
    RecipeError: says the key, the value and the choices.
    """
    if value not in choices:
        raise RecipeError(f"found {value!r}; expected {' or '.join(map(repr, choices))}", key=key)


def excerpt(text: bytes, length: int = 40) -> str:
    """The start of ``text`` for a message, on one line and quoted."""
    shown = repr(text[:length].decode("utf-8", "replace"))
    return shown if len(text) <= length else f"{shown}..."
