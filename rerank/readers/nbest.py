"""A list of candidates as its reader gives it, and candidates as users see them."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeVar, overload

import numpy as np

from rerank.base.encoding import decoded, encoded
from rerank.base.errors import DataError
from rerank.data.symbols import SymbolTable
from rerank.readers.problems import Problem, SkippedList
from rerank.readers.trees.trees import TRACE, Trees, parse_brackets, to_nltk
from rerank.readers.trees.words import bracket_advice, normal_text

if TYPE_CHECKING:
    import nltk  # takes a second and 95 MB: only where a user asks for its trees

NOTHING: Mapping[str, float] = {}

PRETERMINAL = re.compile(r"\(\s*([^\s()]*)\s+([^\s()]+)\s*\)")


class Candidate:
    """A candidate: a text or a tree, and the numbers that are known of it.

    Parameters
    ----------
    text: the text; for a parse, its tree in brackets.
    score: the base score, the generator's own; higher is better. None if there is none.
    columns: numbers by name that every candidate has, such as the scores of other models.
    features: numbers by name that few candidates have (sparse features); the others have 0.
    tree: in place of the text, a parse as an ``nltk.Tree`` or in brackets.
    segmentation: which words of the source gave which words of the text, ``5-7=5 8=6-7``; None if that is unknown.
    alignment: which words of source and text belong together, ``0-0 2-1``; None if that is unknown.
    answer: what the text comes to, such as ``42``: candidates with equal answers vote together; None or empty if it has
        none.

    Raises
    ------
    TypeError: both a text and a tree, or neither.
    """

    def __init__(
        self,
        text: str | None = None,
        score: float | None = None,
        columns: Mapping[str, float] = NOTHING,
        features: Mapping[str, float] = NOTHING,
        *,
        tree: "nltk.Tree | str | None" = None,
        segmentation: str | None = None,
        alignment: str | None = None,
        answer: str | None = None,
    ) -> None:
        if (text is None) == (tree is None):
            raise TypeError("expected a text or a tree" + ("" if text is None else ", found both"))
        self.text = str(tree) if text is None else text  # bytes that are not UTF-8 are surrogate escapes
        self.score, self.columns, self.features = score, columns, features
        self.segmentation, self.alignment, self.answer = segmentation, alignment, answer

    @property
    def tokens(self) -> list[str]:
        """The words of the tree, without traces; of a text, what is between white space."""
        if self.text.lstrip().startswith("("):
            return [word for tag, word in PRETERMINAL.findall(self.text) if tag != TRACE]
        return self.text.split()

    @property
    def tree(self) -> "nltk.Tree":
        """The parse tree.

        Raises
        ------
        DataError: the text is not a tree, or the tree is too deep for nltk.
        """
        symbols = SymbolTable()
        return to_nltk(parse_brackets([encoded(self.text)], symbols), 0, symbols)

    def __repr__(self) -> str:
        numbers = {"score": self.score, "columns": dict(self.columns), "features": dict(self.features)}
        shown = "".join(f", {name}={value!r}" for name, value in numbers.items() if value or value == 0.0)
        return f"Candidate({self.text!r}{shown})"


ROOTS = ("", "TOP", "S1", "ROOT")  # labels of roots, which say nothing

T = TypeVar("T")

_NOTHING = [[label.encode()] for label in ROOTS if label]


class ListCandidate(Candidate):
    """A candidate of the list ``nbest``, made when asked for. ``index`` is its place there, from 0."""

    def __init__(self, nbest: "NBestList", index: int) -> None:
        self.nbest, self.index = nbest, index
        answer = nbest.answers[index] if nbest.answers else None
        super().__init__(
            decoded(nbest.written(index)), float(nbest.base[index]), answer=None if answer is None else decoded(answer)
        )
        named, values = nbest.named(), self.scores.tolist()
        self.columns = {name: values[k] for k, name in enumerate(named.names) if k != named.column}

    @property
    def scores(self) -> np.ndarray:
        """float64 [K]: all scores that the file gives."""
        return np.asarray(self.nbest.scores[self.index])

    @property
    def named_scores(self) -> dict[str, float]:
        """The scores by the names of their columns."""
        return dict(zip(self.nbest.named().names, self.scores.tolist(), strict=True))

    @property
    def tokens(self) -> list[str]:
        return [word for tag, word in PRETERMINAL.findall(self.text) if tag != TRACE]

    @property
    def tree(self) -> "nltk.Tree":
        nbest, line = self.nbest, self.nbest.lines[self.index]
        try:
            return super().tree
        except DataError as error:
            raise DataError(error.message, path=nbest.path, line=line, list_id=nbest.id) from None


class Candidates(Sequence[ListCandidate]):
    """The candidates of a list as a sequence; each is made when asked for."""

    def __init__(self, nbest: "NBestList") -> None:
        self.nbest = nbest

    def __len__(self) -> int:
        return len(self.nbest.texts)

    @overload
    def __getitem__(self, index: int) -> ListCandidate: ...
    @overload
    def __getitem__(self, index: slice) -> list[ListCandidate]: ...
    def __getitem__(self, index: int | slice) -> ListCandidate | list[ListCandidate]:
        places, kind = range(len(self))[index], self.nbest.kind
        return kind(self.nbest, places) if isinstance(places, int) else [kind(self.nbest, i) for i in places]


@dataclass(frozen=True, eq=False)
class NBestList:
    """N candidates for one sentence, as the file has them.

    | field      | type             | meaning |
    |------------|------------------|---------|
    | id         | str              | the list's name |
    | path, line | str, int         | where its first line is |
    | texts      | list of N bytes  | the candidates as they are compared, without white space around them |
    | lines      | N ints           | the line of every text |
    | scores     | float64 [N, K]   | the scores of every candidate, in the file's order |
    | column     | int              | which of the K is the base score |
    | duplicates | int              | candidates that repeat an earlier one (or did, where the reader drops them) |
    | form       | str              | the variant of the format, for writing it back |
    | bad        | Problems         | candidates that were left out |
    | names      | tuple of K str   | the names of the score columns; empty where the format has none |
    | sources    | mapping          | the columns of each source, if there are several |
    | others     | tuple of str     | sparse features that look like columns but were not asked for |
    | absent     | mapping          | how many values are 0 because they are missing, by column |
    | unscored   | bool             | whether all base scores are 0 because there are none |
    | raw        | any              | what the reader needs to write it back; has ``some`` if by candidate |
    | gold       | GoldText or None | the gold tree, if it is known |
    | answers    | list of N bytes  | what candidates come to, None for one without an answer; None if none has one |
    | given      | list of N bytes  | the candidates as the file has them; None if all are the ``texts`` |
    """

    kind: ClassVar[type[ListCandidate]] = ListCandidate  # the class of the candidates as objects

    id: str
    path: str
    line: int
    texts: list[bytes]
    lines: Sequence[int]
    scores: np.ndarray
    column: int = 0
    duplicates: int = 0
    form: str = ""
    bad: tuple[Problem, ...] = ()
    names: tuple[str, ...] = ()
    sources: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    others: tuple[str, ...] = ()
    absent: Mapping[str, int] = field(default_factory=dict)
    unscored: bool = False
    raw: Any = None
    gold: Any = None
    answers: Sequence[bytes | None] | None = None
    given: Sequence[bytes] | None = None

    def __len__(self) -> int:
        return len(self.texts)

    def written(self, place: int) -> bytes:
        """The text of a candidate as the file has it, with the white space around it."""
        return (self.texts if self.given is None else self.given)[place]

    @property
    def base(self) -> np.ndarray:
        """float64 [N]: the base score, the generator's own; higher is better."""
        return np.asarray(self.scores[:, self.column])

    @property
    def by_source(self) -> Mapping[str, tuple[str, ...]]:
        """The columns of every source, where there are several; the lists themselves are the source ``parses``."""
        return self.sources or {"parses": self.names}

    def named(self) -> Self:
        """The list with names for its score columns. Where the format has none the base score is ``score``, and any
        other ``number_2`` if it is the second of its line."""
        if self.names:
            return self
        columns = range(self.scores.shape[1])
        return self.changed(names=tuple("score" if k == self.column else f"number_{k + 1}" for k in columns))

    def alike(self, *, normal: bool = False) -> Sequence[bytes]:
        """A text for every candidate, equal for equal trees: white space and the label of the root do not count, nor,
        in normal form, does the way of writing words."""
        return list(map(_plain_tree, map(normal_text, self.texts) if normal else self.texts))

    @property
    def candidates(self) -> Candidates:
        """The candidates as objects, each made when asked for."""
        return Candidates(self)

    def some(self, places: Sequence[int], **changes: Any) -> Self:
        """The candidates at ``places``, in that order; ``changes`` are other fields of the list."""
        texts, lines = [self.texts[i] for i in places], [self.lines[i] for i in places]
        raw = self.raw.some(places) if hasattr(self.raw, "some") else self.raw
        answers, given = ([of[i] for i in places] if of is not None else None for of in (self.answers, self.given))
        kept = {"texts": texts, "lines": lines, "scores": self.scores[list(places)], "raw": raw}
        return self.changed(**kept, answers=answers, given=given, **changes)

    def changed(self, **changes: Any) -> Self:
        """The list with other values of some fields: ``dataclasses.replace`` in a tenth of its time."""
        copy = object.__new__(type(self))
        vars(copy).update(vars(self), **changes)
        return copy

    def without_raw(self) -> Self:
        """The list without what is needed only to write it back."""
        return self if self.raw is None else self.changed(raw=None)

    @property
    def places(self) -> list[int]:
        """The place of every candidate among all of the list in the file, bad ones included (unless duplicates are
        dropped)."""
        left = {problem.place for problem in self.bad}
        return [place for place in range(len(self) + len(left)) if place not in left]

    @property
    def size(self) -> int:
        """The number of candidates in the file, bad ones included (unless duplicates are dropped)."""
        return len(self) + len(self.bad)

    def without(self, problems: Mapping[int, Problem]) -> Self | SkippedList:
        """The list without the candidates that have problems (by place in this list), or a bad list if none is left."""
        if not problems:
            return self
        places, entries = self.places, sorted(problems.items())
        new = [problem.at(self.id, self.path, self.lines[i], places[i]) for i, problem in entries]
        every = (*self.bad, *new)
        if len(problems) == len(self):
            return SkippedList.of(every[0], self.id, self.path, self.line, len(every))
        return self.some([i for i in range(len(self)) if i not in problems], bad=every)

    def repeated(self, duplicates: Literal["keep", "drop"]) -> Self:
        """The list with its repeated candidates counted and, under "drop", without them; those without a text, such as
        rows of numbers alone, repeat nothing."""
        count = repeats_of(self.texts)
        if not count or duplicates == "keep":
            return self.changed(duplicates=count) if count else self
        first: dict[bytes | int, int] = {}
        for place, text in enumerate(self.texts):
            first.setdefault(text or place, place)
        return self.some(list(first.values()), duplicates=count)

    def opened(self, look: Callable[[Self], T]) -> tuple[Self, T] | SkippedList:
        """The list and what ``look`` finds in it, without the candidates that have a Problem of their own."""
        try:
            return self, look(self)
        except Problem as whole:
            problems = {}
            for place in range(len(self)):
                try:
                    look(self.some([place]))
                except Problem as problem:
                    problems[place] = problem
            if not problems:
                raise whole from None
        rest = self.without(problems)
        return rest if isinstance(rest, SkippedList) else rest.opened(look)

    def trees(self, symbols: SymbolTable) -> Trees:
        """All candidates parsed, or a Problem ("brackets"); new labels and words are added to ``symbols``."""
        try:
            return parse_brackets(self.texts, symbols, path=self.path, lines=self.lines, list_id=self.id)
        except DataError as error:
            message = error.message + next(filter(None, map(bracket_advice, self.texts)), "")
            raise Problem("brackets", message, error.line, path=self.path, list_id=self.id) from None


def answers_of(texts: Sequence[bytes | None]) -> list[bytes | None] | None:
    """The answers of all candidates, None for those with an empty one; None if no candidate has any."""
    return [text or None for text in texts] if any(texts) else None


def numbered(nbest: NBestList) -> np.ndarray:
    """int32 [N]: the answers of a list as numbers, equal for equal ones; -1 for none."""
    numbers: dict[bytes | None, int] = {None: -1}
    answers = nbest.answers or [None] * len(nbest)
    return np.array([numbers.setdefault(answer, len(numbers) - 1) for answer in answers], np.int32)


def plain_texts(texts: Sequence[Any]) -> list[bytes] | None:
    """Texts in UTF-8, as they stand; None if one is no text, or has what UTF-8 or a list has not."""
    try:
        held = "\0".join(texts).encode().split(b"\0")
    except (TypeError, UnicodeEncodeError):
        return None
    return held if len(held) == len(texts) else None


def stripped(given: list[bytes]) -> tuple[list[bytes], list[bytes] | None]:
    """The ``texts`` of a list, and those that are ``given`` where any is not the same."""
    texts = list(map(bytes.strip, given))  # what has no white space around it is not copied
    return texts, None if texts == given else given


def repeats_of(texts: Sequence[bytes]) -> int:
    """The number of texts that repeat an earlier one; those that are empty, as of rows of numbers alone, repeat
    nothing."""
    different = set(texts)
    return len(texts) - len(different) - (max(0, texts.count(b"") - 1) if b"" in different else 0)


def _plain_tree(text: bytes) -> bytes:
    """A tree with a space between its brackets, labels and words, and without a label of its root that says nothing."""
    tokens = text.replace(b"(", b" ( ").replace(b")", b" ) ").split()
    return b" ".join([b"(", *tokens[2:]] if tokens[1:2] in _NOTHING else tokens)
