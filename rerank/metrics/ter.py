"""TER: edits and block shifts that turn a text into its reference (Snover et al. 2006), per reference word."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rerank.base.encoding import decoded
from rerank.base.errors import DataError
from rerank.metrics.text import SacrebleuMetric, check_references, scorer

MOST_PAIRS = 1 << 20  # of words of a text and of its reference: sacrebleu may take a minute for these


@dataclass(frozen=True)
class Ter(SacrebleuMetric):
    """Translation edit rate on 0-100 (more if a text is longer than its reference), which sacrebleu computes: slowly,
    so that it is reported and no more.

    >>> Ter().corpus(["down sat the cat"], [["the cat sat down"]])
    {'ter': 50.0}

    Reference: Snover et al. 2006 (AMTA).

    Parameters
    ----------
    normalized: punctuation marks become words of their own, by tercom's rules.
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
    case_sensitive: bool = False

    def stats(self, texts: Sequence[bytes], references: Sequence[bytes]) -> tuple[np.ndarray, np.ndarray]:
        check_references(references)
        golds = [decoded(text) for text in references]
        longest, longest_reference = (max((len(text.split()) for text in side), default=0) for side in (texts, golds))
        if longest * longest_reference > MOST_PAIRS:
            message = f"a text of {longest:,} words for a reference of {longest_reference:,}; TER takes"
            raise DataError(f"{message} {MOST_PAIRS:,} pairs of words at most; expected one sentence per line")
        empty, *scores = (scorer(self).sentence_score(decoded(text), golds) for text in (b"", *texts))
        rows = np.array([each.num_edits - empty.num_edits for each in scores], np.float64)
        return np.array([empty.num_edits, empty.ref_length], np.float64), rows[:, None]

    def scores(self, stats: np.ndarray, reference: np.ndarray) -> np.ndarray:
        """TER (0-100) of summed edits: float64 [..., K] and [..., R] → [...]; 100 for edits without a reference."""
        edits, length = stats[..., 0] + reference[..., 0], reference[..., 1]
        return np.asarray(100.0 * np.where(length > 0, edits / np.where(length > 0, length, 1.0), edits > 0))

    def gain(self, stats: np.ndarray, reference: np.ndarray) -> np.ndarray:
        """1 - TER as a fraction: float64 [..., K] and [..., R] → [...]; below 0 for texts that are much too long."""
        return np.asarray(1.0 - self.scores(stats, reference) / 100.0)

    def make_scorer(self) -> Any:
        from sacrebleu.metrics.ter import TER

        return TER(normalized=self.normalized, case_sensitive=self.case_sensitive)
