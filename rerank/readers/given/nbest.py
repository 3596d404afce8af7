"""A list as users see it, whether they have made it or it was read from a file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from rerank.base.encoding import decoded
from rerank.readers.nbest import NBestList
from rerank.readers.texts.text_list import TextList

# A text, (text, score), a dict (text or tree, score, columns, features), an ``nltk.Tree`` or a Candidate.
CandidateLike: TypeAlias = Any
GAIN = "gain"  # the score column that holds gains


class NBest:
    """Candidates for one input.

    Parameters
    ----------
    id: the list's name.
    candidates: texts or trees, pairs (text, score), dicts with the keys ``text`` or ``tree``, ``score``, ``columns``
        and ``features``, instances of ``nltk.Tree``, or ``Candidate``s.
    source: the input, if there is one.
    references: what is right: reference texts, or one gold tree, in brackets or as an ``nltk.Tree``.
    gains: in place of references, the gain of every candidate; higher is better.
    """

    __slots__ = ("candidates", "gains", "id", "references", "rows", "source")

    def __init__(
        self,
        id: str,
        candidates: Iterable[CandidateLike],
        source: str | None = None,
        references: Sequence[Any] | str = (),
        gains: Sequence[float] | None = None,
    ) -> None:
        single = isinstance(references, str) or hasattr(references, "pformat")  # an nltk.Tree is a list too
        self.id, self.source = str(id), source
        self.candidates: Sequence[CandidateLike] = list(candidates)
        self.references: tuple[Any, ...] = (references,) if single else tuple(references)
        self.gains = None if gains is None else tuple(gains)
        self.rows: NBestList | None = None  # the list as its reader gave it

    @staticmethod
    def of(nbest: NBestList, source: bytes | None = None, references: Sequence[bytes] = ()) -> NBest:
        """A list that was read, with the source and the references that other files hold for it."""
        if isinstance(nbest, TextList):
            source, references = source or nbest.source, references or nbest.references
        found = object.__new__(NBest)
        found.id, found.candidates, found.rows = nbest.id, nbest.candidates, nbest
        found.source = None if source is None else decoded(source)
        found.references = tuple(map(decoded, references))
        found.gains = tuple(nbest.scores[:, nbest.names.index(GAIN)].tolist()) if GAIN in nbest.names else None
        return found

    def __len__(self) -> int:
        return len(self.candidates)

    def __repr__(self) -> str:
        return f"<NBest {self.id}: {len(self)} candidates>"
