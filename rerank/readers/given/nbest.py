"""A list as users see it, whether they have made it or it was read from a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from rerank.base.encoding import decoded
from rerank.readers.nbest import Candidates, NBestList
from rerank.readers.texts.text_list import TextList

# A text, (text, score), a dict (text or tree and what else a Candidate has), an ``nltk.Tree`` or a Candidate.
CandidateLike: TypeAlias = Any
GAIN = "gain"  # the score column that holds gains


@dataclass(frozen=True, eq=False, repr=False)
class NBest:
    """Candidates for one input.

    Parameters
    ----------
    id: the list's name.
    candidates: texts or trees, pairs (text, score), dicts with the keys ``text`` or ``tree``, ``score``, ``columns``,
        ``features``, ``segmentation`` and ``alignment``, instances of ``nltk.Tree``, or ``Candidate``s.
    source: the input, if there is one.
    references: what is right: one text or several, or a gold tree, in brackets or as an ``nltk.Tree``.
    gains: in place of references, the gain of every candidate; higher is better.
    """

    id: str
    candidates: Sequence[CandidateLike]
    source: str | None = None
    references: Sequence[Any] = ()
    gains: Sequence[float] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.candidates, Sequence):
            object.__setattr__(self, "candidates", list(self.candidates))
        if isinstance(self.references, str) or is_tree(self.references):
            object.__setattr__(self, "references", (self.references,))

    @staticmethod
    def of(rows: NBestList, *, known: bool = True) -> NBest:
        """A list that was read; without its references and gains if these are not ``known``."""
        source: str | None = None
        references: tuple[str, ...] = ()
        gains: tuple[float, ...] | None = None
        if isinstance(rows, TextList):
            source = None if rows.source is None else decoded(rows.source)
        if known:
            texts = rows.references if isinstance(rows, TextList) else () if rows.gold is None else (rows.gold.text,)
            references = tuple(map(decoded, texts))
            gains = tuple(rows.scores[:, rows.names.index(GAIN)].tolist()) if GAIN in rows.names else None
        return NBest(rows.id, rows.candidates, source, references, gains)

    @property
    def rows(self) -> NBestList | None:
        """The list as its reader gave it; None if its candidates are the user's own."""
        return self.candidates.nbest if isinstance(self.candidates, Candidates) else None

    def __len__(self) -> int:
        return len(self.candidates)

    def __repr__(self) -> str:
        return f"<NBest {self.id}: {len(self)} candidates>"


def is_tree(value: Any) -> bool:
    """Is it an ``nltk.Tree``? nltk is not imported to tell."""
    return hasattr(value, "pformat") and hasattr(value, "leaves")
