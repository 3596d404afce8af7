"""Lists of texts (translations, transcripts, samples of a language model), and drafts: the lists as their formats find
them, before columns are chosen and bad candidates left out.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

import numpy as np

from rerank.base.encoding import decoded, encoded
from rerank.readers.base import Problem, SkippedList
from rerank.readers.nbest import ListCandidate, NBestList


class SparseScores(NamedTuple):
    """Named values of a list's candidates that most candidates do not have."""

    first: np.ndarray  # int64 [N + 1]: those of candidate y are first[y]..first[y + 1]
    names: list[bytes]  # one per entry
    values: np.ndarray  # float64, one per entry

    def some(self, places: Sequence[int]) -> "SparseScores":
        """The values of the candidates at ``places``."""
        spans = [range(int(self.first[i]), int(self.first[i + 1])) for i in places]
        first = np.cumsum([0, *map(len, spans)])
        flat = [entry for one in spans for entry in one]
        return SparseScores(first.astype(np.int64), [self.names[entry] for entry in flat], self.values[flat])


class TextCandidate(ListCandidate):
    """A candidate of a list of texts, which has no ``tree``."""

    __slots__ = ()
    _list: "TextList"

    @property
    def tokens(self) -> list[str]:
        """The words, separated by ASCII white space, as in the built-in templates."""
        return [decoded(word) for word in self._list.texts[self.index].split()]

    @property
    def features(self) -> Mapping[str, float]:
        """The sparse features that the list holds."""
        sparse = self._list.sparse
        if sparse is None:
            return {}
        own = slice(int(sparse.first[self.index]), int(sparse.first[self.index + 1]))
        return dict(zip(map(decoded, sparse.names[own]), sparse.values[own].tolist(), strict=True))

    @property
    def segmentation(self) -> str | None:
        """The phrases that the text was made of, if they are known."""
        return self._derivation(self._list.segmentation)

    @property
    def alignment(self) -> str | None:
        """The word alignment, if it is known; not one with ends of sentences, which would be words."""
        return None if self._list.ended else self._derivation(self._list.alignment)

    def _derivation(self, texts: list[bytes] | None) -> str | None:
        return None if texts is None else decoded(texts[self.index])

    @property
    def source(self) -> str | None:
        """The input, if it is known."""
        return None if self._list.source is None else decoded(self._list.source)


@dataclass(frozen=True, eq=False)
class TextList(NBestList):
    """N candidates for one source. ``texts`` are stripped; ``scores`` (float64 [N, K]) have the columns ``names``.

    | field        | type                  | meaning |
    |--------------|-----------------------|---------|
    | sparse       | SparseScores or None  | sparse features that the file holds |
    | ended        | bool                  | whether alignments may name the end of a sentence, after its last word |
    | segmentation | list of N bytes       | derivations, ``source span=target span ...`` in target order; or None |
    | alignment    | list of N bytes       | word alignments, ``source-target ...``; or None |
    | source       | bytes or None         | the input, if it is known |
    | references   | tuple of bytes        | references, if they are known |
    | missing      | Problem or None       | why an empty list takes the place of one that should be there |
    """

    kind: ClassVar[type[ListCandidate]] = TextCandidate

    sparse: SparseScores | None = None
    segmentation: list[bytes] | None = None
    alignment: list[bytes] | None = None
    source: bytes | None = None
    references: tuple[bytes, ...] = ()
    ended: bool = False
    missing: Problem | None = None

    @property
    def by_source(self) -> Mapping[str, tuple[str, ...]]:
        """The columns of every source; the name of a single source is its format."""
        return self.sources or {self.form or "lists": self.names}

    def alike(self, *, normal: bool = False) -> Sequence[bytes]:  # noqa: ARG002 - for trees
        """The texts themselves."""
        return self.texts

    def some(self, places: Sequence[int], **changes: Any) -> Self:
        sparse = None if self.sparse is None else self.sparse.some(places)
        segmentation, alignment = (
            None if texts is None else [texts[i] for i in places] for texts in (self.segmentation, self.alignment)
        )
        return super().some(places, sparse=sparse, segmentation=segmentation, alignment=alignment, **changes)


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

    text: bytes  # stripped
    numbers: dict[str, float] | list[float]
    segmentation: bytes | None = None
    alignment: bytes | None = None


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
    found: list[U | Problem] = []
    for number, item in enumerate(items, start=1):
        try:
            found.append(make(item, number))
        except Problem as problem:
            found.append(problem)
    return found


def text_list(
    draft: Draft, name: str, path: str, line: int, form: str, others: tuple[str, ...]
) -> TextList | SkippedList:
    """The list that a draft with ``names`` describes, without its bad candidates; a bad list if all of them are bad."""
    names = draft.names or ()
    lines = [line] * len(draft.candidates) if draft.lines is None else draft.lines
    good = [one for one in draft.candidates if isinstance(one, Entry)]
    bad, pieces = list[Problem](), list(draft.pieces)
    if len(good) < len(draft.candidates):
        found = list(enumerate(draft.candidates))
        bad = [one.at(name, path, lines[k], k) for k, one in found if isinstance(one, Problem)]
        places = [k for k, one in found if isinstance(one, Entry)]
        lines, pieces = [lines[k] for k in places], [pieces[k] for k in places]
        if not good:
            return SkippedList.of_all(bad)
    named = [one.numbers for one in good if isinstance(one.numbers, dict)]
    rows: list[Any] = [[numbers.pop(key) for key in names] for numbers in named] or [one.numbers for one in good]
    scores = np.array(rows, np.float64)
    return TextList(
        id=name, path=path, line=line, texts=[one.text for one in good], lines=lines,
        scores=scores.reshape(len(good), len(names)), form=form, bad=tuple(bad), names=names, others=others,
        sparse=_sparse(named),
        segmentation=_derivations([one.segmentation for one in good]),
        alignment=_derivations([one.alignment for one in good]),
        source=draft.source, references=draft.references, unscored=draft.unscored,
        raw=Pieces(draft.head, pieces),
    )  # fmt: skip


def _sparse(numbers: Sequence[Mapping[str, float]]) -> SparseScores | None:
    """The numbers that belong to no column."""
    counts = [len(own) for own in numbers]
    if not any(counts):
        return None
    pairs = [pair for own in numbers for pair in own.items()]
    first = np.zeros(len(numbers) + 1, np.int64)
    np.cumsum(counts, out=first[1:])
    return SparseScores(first, [encoded(key) for key, _ in pairs], np.array([value for _, value in pairs], np.float64))


def _derivations(texts: list[bytes | None]) -> list[bytes] | None:
    """The derivations of all candidates, empty for those without one; None if no candidate has one."""
    return None if texts.count(None) == len(texts) else [text or b"" for text in texts]
