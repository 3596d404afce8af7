"""TER: edits and block shifts that turn a text into its reference (Snover et al. 2006), per reference word."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rerank.base.errors import DataError
from rerank.metrics.ter_kernel import ter_rows, ter_space
from rerank.metrics.text import SacrebleuMetric, check_references, lowered
from rerank.metrics.words import words

LARGEST_TABLE = 1 << 26  # words of a text times words of its reference: two tables have this many distances of 4 bytes


@dataclass(frozen=True)
class Ter(SacrebleuMetric):
    """Translation edit rate on 0-100 (more if a text is longer than its reference), as sacrebleu computes it.

    >>> Ter().corpus(["down sat the cat"], [["the cat sat down"]])
    {'ter': 50.0}

    Reference: Snover et al. 2006 (AMTA). Time: a table of words times words for every shift that is tried, at most
    1,000 a sentence.

    Parameters
    ----------
    normalized: punctuation marks become words of their own, by tercom's rules.
    no_punct: punctuation is removed.
    asian_support: the two above also apply to characters of Asian scripts.
    case_sensitive: whether case counts.

    ``stats``: how many more edits a text takes than an empty one; ``reference``: the edits of an empty text, and the
    length in words. Of several references, the one with the fewest edits counts, and the length is their mean. The gain
    of a sentence is 1 - edits / length; if the reference is empty, it is 0, or 1 for an empty text.
    """

    name: ClassVar[str] = "ter"

    primary = "ter"
    percent = 1.0
    columns = ("more_edits",)
    reference_columns = ("edits_of_nothing", "length")
    lower_is_better = True

    normalized: bool = False
    no_punct: bool = False
    asian_support: bool = False
    case_sensitive: bool = False

    def stats(self, texts: Sequence[bytes], references: Sequence[bytes]) -> tuple[np.ndarray, np.ndarray]:
        check_references(references)
        # sacrebleu prepares references twice, which is not the same as once: "..1" is ". .1", and that is ". . 1".
        tokens = words(self.prepared([*self.prepared(references), *texts]))
        reference, rows = np.empty(2), np.empty((len(texts), 1))
        lengths = np.diff(tokens.first)
        longest, longest_reference = (int(part.max(initial=0)) for part in np.split(lengths[::-1], [len(texts)]))
        if longest * longest_reference > LARGEST_TABLE:
            message = f"a text of {longest:,} words for a reference of {longest_reference:,}; TER takes"
            raise DataError(f"{message} {LARGEST_TABLE:,} pairs of words at most; expected one sentence per line")
        space = ter_space(longest, longest_reference)
        ter_rows(tokens.first, tokens.hashes, len(references), space, reference, rows)
        return reference, rows

    def scores(self, stats: np.ndarray, reference: np.ndarray) -> np.ndarray:
        """TER (0-100) of summed edits: float64 [..., K] and [..., R] → [...]; 100 for edits without a reference."""
        edits, length = stats[..., 0] + reference[..., 0], reference[..., 1]
        return np.asarray(100.0 * np.where(length > 0, edits / np.where(length > 0, length, 1.0), edits > 0))

    def gain(self, stats: np.ndarray, reference: np.ndarray) -> np.ndarray:
        """1 - TER as a fraction: float64 [..., K] and [..., R] → [...]; below 0 for texts that are much too long."""
        return np.asarray(1.0 - self.scores(stats, reference) / 100.0)

    def make_scorer(self) -> Any:
        from sacrebleu.metrics.ter import TER

        return TER(
            normalized=self.normalized, no_punct=self.no_punct, asian_support=self.asian_support,
            case_sensitive=self.case_sensitive,
        )  # fmt: skip

    def prepared(self, texts: Sequence[bytes]) -> list[bytes]:
        if self.normalized or self.no_punct:
            return super().prepared(texts)
        return list(texts) if self.case_sensitive else lowered(texts)
