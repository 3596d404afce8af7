"""Lists of texts (translations, transcripts, samples of a language model), with what their formats say about them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from rerank.base.encoding import decoded
from rerank.readers.nbest import ListCandidate, NBestList
from rerank.readers.problems import Problem


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
