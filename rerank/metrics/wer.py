"""Exact match; word and character error rate: the edits of the best alignment with a reference, over its length."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from rerank.base.encoding import decoded, encoded
from rerank.base.interrupts import check
from rerank.data.answers import plain
from rerank.kernels.compile import kernel
from rerank.metrics.text import NormalizingMetric, characters, check_references, equality, words
from rerank.readers.lists import Lists

# Columns of a candidate's row: what it has, or how much more than an empty text compared with the shortest reference.
SUBSTITUTIONS, INSERTIONS, DELETION_SHIFT, UNIT_SHIFT = range(4)


@kernel
def align(text: np.ndarray, reference: np.ndarray, edits: np.ndarray, substitutions: np.ndarray) -> int:
    """Edits that turn ``reference`` into ``text`` (units as uint64), and how many of them are substitutions.

    ``edits`` and ``substitutions`` (int32, longer than what is left of the text between common ends) are scratch: a
    row of the table edits[j] = distance of the reference's first i units and the text's first j, and its
    substitutions. The latter are those of one best alignment, read from the end: a deletion if it is as good as
    anything else, then an insertion unless the table decreases there, then a match or substitution. Returns
    edits << 32 | substitutions.
    """
    begin, n, m = 0, reference.shape[0], text.shape[0]
    while begin < n and begin < m and reference[begin] == text[begin]:
        begin += 1
    while n > begin and m > begin and reference[n - 1] == text[m - 1]:
        n -= 1
        m -= 1
    n, m = n - begin, m - begin
    for j in range(m + 1):
        edits[j], substitutions[j] = j, 0
    for i in range(1, n + 1):
        unit = reference[begin + i - 1]
        diagonal, diagonal_substitutions = edits[0], substitutions[0]
        edits[0] = i
        for j in range(1, m + 1):
            above, above_substitutions = edits[j], substitutions[j]
            differ = 1 if unit != text[begin + j - 1] else 0
            best = min(diagonal + differ, above + 1, edits[j - 1] + 1)
            if best == above + 1:  # deletion
                replacements = above_substitutions
            elif edits[j - 1] < diagonal:  # insertion
                replacements = substitutions[j - 1]
            else:
                replacements = diagonal_substitutions + differ
            edits[j], substitutions[j] = best, replacements
            diagonal, diagonal_substitutions = above, above_substitutions
    return (int(edits[m]) << 32) | int(substitutions[m])


@kernel
def edit_rows(
    first: np.ndarray, units: np.ndarray, references: int, edits: np.ndarray, substitutions: np.ndarray,
    rows: np.ndarray,
) -> int:  # fmt: skip
    """Edits of the candidates of a list → ``rows`` (float64 [N, 4]); returns the shortest reference's length.

    ``first, units`` are the units of the references, then of the candidates: those of text t are ``units[first[t]:
    first[t + 1]]`` (uint64). A candidate is aligned with the reference that takes the fewest edits; of several, with
    the longest. ``edits`` and ``substitutions`` are the scratch of ``align``.
    """
    shortest = first[1] - first[0]
    for r in range(1, references):
        shortest = min(shortest, first[r + 1] - first[r])
    for y in range(rows.shape[0]):
        t = references + y
        text = units[first[t] : first[t + 1]]
        fewest, replacements, length = -1, 0, 0
        for r in range(references):
            reference = units[first[r] : first[r + 1]]
            both = align(text, reference, edits, substitutions)
            count = both >> 32
            if fewest < 0 or count < fewest or (count == fewest and reference.shape[0] > length):
                fewest, replacements, length = count, both & 0xFFFFFFFF, reference.shape[0]
        insertions = (fewest - replacements + text.shape[0] - length) // 2
        rows[y, SUBSTITUTIONS] = replacements
        rows[y, INSERTIONS] = insertions
        rows[y, DELETION_SHIFT] = fewest - replacements - insertions - shortest
        rows[y, UNIT_SHIFT] = length - shortest
    return int(shortest)


@kernel
def edits_to(
    r: int, first: np.ndarray, units: np.ndarray, edits: np.ndarray, substitutions: np.ndarray, row: np.ndarray
) -> None:
    """The edits between text r and each one after it → ``row``; other arguments are those of ``edit_rows``."""
    for y in range(r + 1, row.shape[0]):
        text, reference = units[first[y] : first[y + 1]], units[first[r] : first[r + 1]]
        row[y] = align(text, reference, edits, substitutions) >> 32


VERSION = 1  # increases whenever a result can change


@dataclass(frozen=True)
class EditRate(NormalizingMetric):
    """(substitutions + insertions + deletions) / reference units (Levenshtein 1966), over any kind of unit.

    With several references, a candidate is measured by the one that takes the fewest edits; of several such, by the
    longest. If a list has no reference units, its rate is the number of insertions, as if the reference had one.
    """

    columns = (
        "substitutions",
        "insertions",
        "deletion_shift",  # deletions minus those of an empty text: the shortest reference's length
        "unit_shift",  # the length of the reference used minus the shortest one's
    )
    reference_columns = ("shortest",)
    lower_is_better = True

    @abstractmethod
    def units(self, texts: list[bytes]) -> tuple[np.ndarray, np.ndarray]:
        """The units to compare: int64 [T + 1] and uint64; those of text t are ``units[first[t]:first[t + 1]]``."""

    def stats(self, texts: Sequence[bytes], references: Sequence[bytes]) -> tuple[np.ndarray, np.ndarray]:
        check_references(references)
        first, units = self.units(self.normal([*references, *texts]))
        rows = np.zeros((len(texts), len(self.columns)))
        edits, substitutions = np.empty((2, int(np.diff(first).max()) + 1), np.int32)
        shortest = edit_rows(first, units, len(references), edits, substitutions, rows)
        return np.array([shortest], np.float64), rows

    def pairwise(self, texts: Sequence[bytes]) -> np.ndarray:
        first, units = self.units(self.normal(texts))
        edits, substitutions = np.empty((2, int(np.diff(first).max(initial=0)) + 1), np.int32)
        between = np.zeros((len(texts), len(texts)))
        for r, row in enumerate(between):
            check()
            edits_to(r, first, units, edits, substitutions, row)
        return np.asarray(1.0 - (between + between.T) / np.maximum(np.diff(first), 1.0))

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
        return f"{super().signature}|references:fewest edits|version:{VERSION}"


@dataclass(frozen=True)
class Wer(EditRate):
    """Word error rate: units are words separated by white space.

    >>> Wer().corpus(["the cat sat"], [["the cat sat down"]])
    {'wer': 0.25, 'substitutions': 0.0, 'insertions': 0.0, 'deletions': 0.25}

    Reference: Levenshtein 1966. Time: words of a text times words of its reference.
    """

    name: ClassVar[str] = "wer"

    primary = "wer"

    normalize: Mapping[Literal["nfkc", "case", "marks"], bool] = field(default_factory=dict)  # type: ignore[assignment]

    def units(self, texts: list[bytes]) -> tuple[np.ndarray, np.ndarray]:
        return words(texts)


@dataclass(frozen=True)
class Cer(EditRate):
    """Character error rate: units are Unicode code points, including blanks except for those at the ends of a text.

    >>> Cer().corpus(["cats"], [["bats"]])["cer"]
    0.25

    Reference: Levenshtein 1966. Time: characters of a text times characters of its reference.
    """

    name: ClassVar[str] = "cer"

    primary = "cer"

    def units(self, texts: list[bytes]) -> tuple[np.ndarray, np.ndarray]:
        first, points = characters([encoded(decoded(text).strip()) for text in texts])
        return first, points.astype(np.uint64)


@dataclass(frozen=True)
class Match(NormalizingMetric):
    """The share of lists whose choice is one of their references.

    >>> Match(normalize={"case": True}).corpus(["The cat", "a dog"], [["the cat", "a cat"], ["the dog"]])
    {'exact_match': 0.5}

    In a list whose candidates have answers it is these that are compared with the references, as values, and with the
    answers that a recipe's rule for answers finds in the references.
    """

    name: ClassVar[str] = "match"

    primary = "exact_match"
    columns = ("more_right",)  # than an empty text
    reference_columns = ("right_of_nothing", "lists")

    def stats(self, texts: Sequence[bytes], references: Sequence[bytes]) -> tuple[np.ndarray, np.ndarray]:
        check_references(references)
        right = set(self.normal(references))
        nothing = float(b"" in right)
        rows = np.array([text in right for text in self.normal(texts)], np.float64) - nothing
        return np.array([nothing, 1.0]), rows[:, None]

    def list_stats(self, nbest: Lists, references: Sequence[bytes]) -> tuple[np.ndarray, np.ndarray]:
        if nbest.answers is not None:
            both = (nbest.answers, references)
            answers, references = ([encoded(plain(decoded(text or b""))) for text in texts] for texts in both)
            nbest = nbest.replace(texts=answers)
        return super().list_stats(nbest, references)

    def pairwise(self, texts: Sequence[bytes]) -> np.ndarray:
        return equality(self.normal(texts))

    def scores(self, stats: np.ndarray, reference: np.ndarray) -> np.ndarray:
        return np.asarray((stats[..., 0] + reference[..., 0]) / np.maximum(reference[..., 1], 1.0))

    @property
    def signature(self) -> str:
        """The settings, e.g. ``match|case:mixed|version:1``."""
        return f"{super().signature}|version:{VERSION}"
