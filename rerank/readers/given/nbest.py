"""A list as users see it, whether they have made it or it was read from a file."""

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from rerank.base.encoding import decoded
from rerank.readers.given.errors import GivenError, each_of
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
    gains: in place of references, the gain of every candidate; higher is better. They are held as float64, which has
        whole numbers up to 2^53.

    Raises
    ------
    DataError: candidates, references or gains that are not several, or gains that are not numbers.
    """

    id: str
    candidates: Sequence[CandidateLike]
    source: str | None = None
    references: Sequence[Any] = ()
    gains: Sequence[float] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.candidates, Sequence) or isinstance(self.candidates, str | bytes):
            self._take("candidates", each_of(self.candidates, "candidates, in a list", "candidates", list_id=self.id))
        if isinstance(self.references, str) or is_tree(self.references):
            self._take("references", (self.references,))
        elif not isinstance(self.references, Sequence):
            self._take("references", each_of(self.references, "references, in a list", "references", list_id=self.id))
        if self.gains is not None:
            self._take("gains", _numbers(self.gains, self.id))

    def _take(self, name: str, values: Iterable[Any]) -> None:
        object.__setattr__(self, name, tuple(values))

    @staticmethod
    def of(rows: NBestList, *, known: bool = True) -> "NBest":
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


def _numbers(gains: Any, name: str) -> "array[float]":
    """Gains as float64, of whatever library their numbers are."""
    values = array("d")
    for k, gain in enumerate(each_of(gains, "gains, in a list", "gains", list_id=name)):
        try:
            values.append(gain)
        except (TypeError, OverflowError):
            message = f"found {gain!r} as the gain of candidate {k + 1}; expected a number"
            raise GivenError(message, f"gains[{k}]", list_id=name) from None
    return values


def is_tree(value: Any) -> bool:
    """Is it an ``nltk.Tree``? nltk is not imported to tell."""
    return hasattr(value, "pformat") and hasattr(value, "leaves")
