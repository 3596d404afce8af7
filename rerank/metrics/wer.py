"""Word and character error rate: the edits of the best alignment with a reference, over the reference's length."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rerank.base.encoding import decoded, encoded
from rerank.base.interrupts import pieces
from rerank.metrics.base import metrics
from rerank.metrics.characters import characters
from rerank.metrics.edit_kernel import DELETION_SHIFT, INSERTIONS, SUBSTITUTIONS, UNIT_SHIFT, edit_rows
from rerank.metrics.text import TextMetric, check_references
from rerank.metrics.words import words

VERSION = 1  # increases whenever a result can change


@dataclass(frozen=True)
class EditRate(TextMetric):
    """(substitutions + insertions + deletions) / reference units (Levenshtein 1966), over any kind of unit.

    With several references, a candidate is measured by the one that takes the fewest edits; of several such, by the
    longest. If a list has no reference units, its rate is the number of insertions, as if the reference had one.

    Parameters
    ----------
    lowercase: lower-case texts first.
    """

    columns: ClassVar[tuple[str, ...]] = (
        "substitutions",
        "insertions",
        "deletion_shift",  # deletions minus those of an empty text: the shortest reference's length
        "unit_shift",  # the length of the reference used minus the shortest one's
    )
    reference_columns: ClassVar[tuple[str, ...]] = ("shortest",)
    lower_is_better: ClassVar[bool] = True

    lowercase: bool = False

    @abstractmethod
    def units(self, texts: list[bytes]) -> tuple[np.ndarray, np.ndarray]:
        """The units to compare: int64 [T + 1] and uint64; those of text t are ``units[first[t]:first[t + 1]]``."""

    def stats(self, texts: Sequence[bytes], references: Sequence[bytes]) -> tuple[np.ndarray, np.ndarray]:
        """Edits of N candidates of one list: (float64 [1], float64 [N, 4]).

        Raises
        ------
        DataError: there is no reference.
        """
        check_references(references)
        return self._edits(*self.units(self._cased([*references, *texts])), len(references))

    def _cased(self, texts: list[bytes]) -> list[bytes]:
        return [encoded(decoded(text).lower()) for text in texts] if self.lowercase else texts

    def _edits(self, first: np.ndarray, units: np.ndarray, references: int) -> tuple[np.ndarray, np.ndarray]:
        """``stats`` of units, those of the references first."""
        rows = np.zeros((first.size - 1 - references, len(self.columns)))
        edits, substitutions = np.empty((2, int(np.diff(first).max()) + 1), np.int32)
        shortest = edit_rows(first, units, references, edits, substitutions, rows)
        return np.array([shortest], np.float64), rows

    def pairwise(self, texts: Sequence[bytes]) -> np.ndarray:
        """See ``TextMetric.pairwise``; the texts are cut into units once."""
        first, units = self.units(self._cased(list(texts)))
        gains, longest = np.zeros((len(texts), len(texts))), int(np.diff(first).max(initial=0))
        for r in range(len(texts)):
            own = units[first[r] : first[r + 1]]
            for y, end in pieces(len(texts), longest**2):
                starts = np.concatenate([[0], first[y : end + 1] - first[y] + own.size])
                reference, rows = self._edits(starts, np.concatenate([own, units[first[y] : first[end]]]), 1)
                gains[y:end, r] = self.gain(rows, reference)
        return gains

    def scores(self, stats: np.ndarray, reference: np.ndarray) -> np.ndarray:
        """The error rate, a fraction that can exceed 1: float64 [..., 4] and [..., 1] → [...]."""
        shortest = reference[..., 0]
        edits = stats[..., SUBSTITUTIONS] + stats[..., INSERTIONS] + stats[..., DELETION_SHIFT] + shortest
        return np.asarray(edits / np.maximum(stats[..., UNIT_SHIFT] + shortest, 1.0))

    def gain(self, stats: np.ndarray, reference: np.ndarray) -> np.ndarray:
        """1 − the rate: 1 is perfect, a text with more edits than the reference has units is below 0."""
        return np.asarray(1.0 - self.scores(stats, reference))

    def report(self, stats: np.ndarray, reference: np.ndarray) -> dict[str, float]:
        """The rate and its three parts, all as fractions of the reference units."""
        shortest = float(reference[0])
        units = max(float(stats[UNIT_SHIFT]) + shortest, 1.0)
        return {
            self.primary: float(self.scores(stats, reference)),
            "substitutions": float(stats[SUBSTITUTIONS]) / units,
            "insertions": float(stats[INSERTIONS]) / units,
            "deletions": (float(stats[DELETION_SHIFT]) + shortest) / units,
        }

    @property
    def signature(self) -> str:
        """The settings, e.g. ``wer|case:mixed|references:fewest edits|version:1``."""
        return f"{self.name}|case:{'lc' if self.lowercase else 'mixed'}|references:fewest edits|version:{VERSION}"


@metrics.add("wer")
@dataclass(frozen=True)
class Wer(EditRate):
    """Word error rate: units are words separated by white space."""

    name: ClassVar[str] = "wer"
    primary: ClassVar[str] = "wer"

    def units(self, texts: list[bytes]) -> tuple[np.ndarray, np.ndarray]:
        """The hashes of the words."""
        return words(texts)


@metrics.add("cer")
@dataclass(frozen=True)
class Cer(EditRate):
    """Character error rate: units are Unicode code points, including blanks except for those at the ends of a text."""

    name: ClassVar[str] = "cer"
    primary: ClassVar[str] = "cer"

    def units(self, texts: list[bytes]) -> tuple[np.ndarray, np.ndarray]:
        """The code points."""
        first, points = characters([encoded(decoded(text).strip()) for text in texts])
        return first, points.astype(np.uint64)
