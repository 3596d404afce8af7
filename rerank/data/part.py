"""One part of a corpus that is stored in parts: which lists of which file, and what is done when it is opened."""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from rerank.data.corpus import Corpus


class Part(NamedTuple):
    """Lists first..last - 1 of a saved corpus, or of its lists ``chosen`` (int64, ascending) where there are such.

    lists_before and candidates_before: how many come before them in the whole.
    """

    directory: str
    first: int
    last: int
    candidates: int
    nonzeros: int
    lists_before: int
    candidates_before: int
    whole: bool
    chosen: np.ndarray | None = None

    def numbers(self) -> np.ndarray:
        """int64: the numbers of its lists in the saved corpus."""
        return np.arange(self.first, self.last) if self.chosen is None else self.chosen[self.first : self.last]

    def of(self, corpus: Corpus) -> Corpus:
        """Its lists, of the saved corpus."""
        if self.chosen is not None:
            return corpus.take(self.numbers())
        return corpus if self.whole else corpus.slice(self.first, self.last)

    def piece(self, first: int, last: int) -> "Part":
        """Lists first..last - 1 of what it is a part of; those before it must belong to it too."""
        corpus = Corpus.load(self.directory, trusted=True)
        before = self._replace(last=first).numbers()
        found = self._replace(first=first, last=last, whole=False)
        numbers = found.numbers()
        sizes, starts = np.diff(corpus.lists), corpus.rows[corpus.lists]
        return found._replace(
            candidates=int(sizes[numbers].sum()),
            nonzeros=int((starts[numbers + 1] - starts[numbers]).sum()),
            lists_before=self.lists_before + before.size,
            candidates_before=self.candidates_before + int(sizes[before].sum()),
        )


class Change(Protocol):
    """What is done to a part whenever it is opened; picklable, and it keeps all lists and candidates."""

    def __call__(self, corpus: Corpus, lists_before: int, candidates_before: int) -> Corpus:
        """The changed part, given how many lists and candidates come before it."""


@dataclass(frozen=True)
class KeptColumns:
    """Keeps the columns where ``keep`` (bool [D]) is true."""

    keep: np.ndarray

    def __call__(self, corpus: Corpus, lists_before: int, candidates_before: int) -> Corpus:  # noqa: ARG002
        return corpus.keep_columns(self.keep)
