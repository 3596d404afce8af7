"""BLEU (Papineni et al. 2002) for lists of texts: counts by kernel, figures as sacrebleu gives them (Post 2018)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from rerank.base.errors import RecipeError
from rerank.base.ranges import Range
from rerank.metrics.bleu_kernel import (
    ADD_K,
    CLOSEST_SHIFT,
    COLUMNS,
    CORRECT,
    EXP,
    FLOOR,
    LENGTH,
    NONE,
    ORDER,
    SPACE,
    TOTAL,
    bleu_rows,
    bleu_rows_places,
    bleu_scores,
    brevity_penalty,
)
from rerank.metrics.ngrams import ngram_table
from rerank.metrics.text import SacrebleuMetric, check_references, frozen_rows, lowered, scorer
from rerank.metrics.words import joined, words

Smoothing = Literal["add-1", "add-k", "exp", "floor", "none"]
# name → what the kernel does, and the value it uses by default
SMOOTHINGS: dict[str, tuple[int, float]] = {
    "add-1": (ADD_K, 1.0),
    "add-k": (ADD_K, 1.0),
    "exp": (EXP, 0.0),
    "floor": (FLOOR, 0.1),
    "none": (NONE, 0.0),
}
WITH_VALUE = ("add-k", "floor")
Tokeniser = Literal["none", "13a", "intl", "char", "zh", "ja-mecab", "ko-mecab"]


@dataclass(frozen=True)
class Bleu(SacrebleuMetric):
    """BLEU with n-grams up to four words, clipped counts and the length of the closest reference.

    >>> round(Bleu().corpus(["the cat sat on the mat today"], [["the cat sat on a mat"]])["bleu"], 2)
    43.47

    Reference: Papineni et al. 2002 (ACL). Time: a few look-ups a word; a row is 10 numbers.

    Parameters
    ----------
    tokenize: how texts are cut into words: ``none`` at white space, for tokenised texts; the others are
        sacrebleu's (``13a``, ``intl``, ``char``, ``zh``, ``ja-mecab``, ``ko-mecab``; the last two need a package each).
    lowercase: lower-case texts first.
    smoothing: of the gain (sentence BLEU) only: ``add-1`` to matches and n-grams of orders from 2 (Lin & Och 2004),
        ``add-k`` with another number, ``exp``, ``floor`` (Chen & Cherry 2014) or ``none``.
    smooth_value: the number for ``add-k`` (default 1) and ``floor`` (default 0.1).
    effective_order: of the gain only: a text too short for an order of n-grams is measured by the orders before it;
        without this its BLEU is 0. It changes nothing for ``add-1``, where every order has an n-gram.

    Under ``add-1`` a text of fewer than four words gets (0 + 1)/(0 + 1) = 1 for the orders that it is too short for.
    A text without a matched word has BLEU 0 under every smoothing, and so has an empty one with an empty reference.
    """

    name: ClassVar[str] = "bleu"

    primary = "bleu"
    percent = 1.0
    columns = (
        *(f"correct{n}" for n in range(1, ORDER + 1)),
        *(f"total{n}" for n in range(1, ORDER + 1)),
        "length",
        "closest_shift",  # the closest reference's length minus the shortest one's
    )
    reference_columns = ("shortest",)  # the length closest to an empty text's

    tokenize: Tokeniser = "none"
    lowercase: bool = False
    smoothing: Smoothing = "add-1"
    smooth_value: Annotated[float, Range(0)] | None = None
    effective_order: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.smooth_value is not None and self.smoothing not in WITH_VALUE:
            raise RecipeError(f"smoothing {self.smoothing} has no value; leave it out", key="smooth_value")
        if self.tokenize != "none":
            scorer(self)  # a tokeniser without its package is an error here, not later

    def stats(self, texts: Sequence[bytes], references: Sequence[bytes]) -> tuple[np.ndarray, np.ndarray]:
        check_references(references)
        prepared, R = self.prepared([*references, *texts]), len(references)
        reference, rows = np.empty(1), np.empty((len(texts), COLUMNS))
        shortest = -1
        if R == 1:
            data = joined(prepared)
            space = np.empty(SPACE + data.size // 2 + 1, np.uint64)
            shortest = bleu_rows_places(data, np.empty(len(prepared) + 1, np.int64), space, rows)
        if shortest < 0:
            first, hashes = words(prepared)
            shortest = bleu_rows(first, hashes, R, ngram_table(ORDER * int(first[R])), rows)
        reference[0] = shortest
        return reference, rows

    def pairwise(self, texts: Sequence[bytes]) -> np.ndarray:
        # n-grams are matched without a comparison of any two texts
        from rerank.metrics.decoding.overlaps import lengths, ngrams, shared

        first, hashes = words(self.prepared(texts))
        total, N = lengths(first, ORDER), len(texts)
        rows = np.zeros((N, N, COLUMNS))
        rows[..., CORRECT : CORRECT + ORDER] = np.moveaxis(shared(ngrams([(first, hashes, ORDER)]), N, ORDER), 0, 2)
        rows[..., TOTAL : TOTAL + ORDER] = total.T[:, None]
        rows[..., LENGTH] = total[0][:, None]
        return self.gain(rows, np.broadcast_to(total[0][:, None], (N, N, 1)))

    def scores(self, stats: np.ndarray, reference: np.ndarray) -> np.ndarray:
        """Corpus BLEU (0-100) of summed counts, as by sacrebleu's ``corpus_bleu``: smoothing exp, all four orders."""
        return 100.0 * _bleu(stats, reference, EXP, 0.0, False)

    def gain(self, stats: np.ndarray, reference: np.ndarray) -> np.ndarray:
        """Sentence BLEU as a fraction: float64 [..., 10] and [..., 1] → [...], sacrebleu's ``sentence_bleu``/100."""
        return _bleu(stats, reference, SMOOTHINGS[self.smoothing][0], self._value, self.effective_order)

    def report(self, stats: np.ndarray, reference: np.ndarray) -> dict[str, float]:
        """BLEU on 0-100; n-gram precisions, brevity penalty and length ratio as fractions."""
        length, expected = float(stats[LENGTH]), float(reference[0] + stats[CLOSEST_SHIFT])
        precisions = stats[CORRECT : CORRECT + ORDER] / np.maximum(stats[TOTAL : TOTAL + ORDER], 1.0)
        return {
            "bleu": float(self.scores(stats, reference)),
            **{f"precision{n}": float(p) for n, p in enumerate(precisions, start=1)},
            "brevity_penalty": float(brevity_penalty(length, expected)),
            "length_ratio": length / expected if expected else 0.0,
        }

    def figures(self, score: Any) -> dict[str, float]:
        return {
            "bleu": float(score.score),
            **{f"precision{n + 1}": score.counts[n] / max(score.totals[n], 1) for n in range(ORDER)},
            "brevity_penalty": float(score.bp),
            "length_ratio": score.sys_len / score.ref_len if score.ref_len else 0.0,
        }

    @property
    def signature(self) -> str:
        """sacrebleu's signature without the number of references, which is the data's, and the gain's smoothing."""
        smoothing = f"{self.smoothing}[{self._value:g}]" if self.smoothing in WITH_VALUE else self.smoothing
        order = "effective" if self.effective_order else str(ORDER)
        return f"{super().signature}|gain:{smoothing}|gain order:{order}"

    def make_scorer(self) -> Any:
        from sacrebleu.metrics.bleu import BLEU

        try:
            return BLEU(tokenize=self.tokenize, lowercase=self.lowercase, force=True)
        except (ImportError, RuntimeError) as error:
            raise RecipeError(f"tokeniser {self.tokenize!r} cannot be used: {error}", key="tokenize") from error

    def prepared(self, texts: Sequence[bytes]) -> list[bytes]:
        if self.tokenize != "none":
            return super().prepared(texts)
        return lowered(texts) if self.lowercase else list(texts)

    @property
    def _value(self) -> float:
        """The number that smoothing takes."""
        return float(SMOOTHINGS[self.smoothing][1] if self.smooth_value is None else self.smooth_value)


def _bleu(stats: np.ndarray, reference: np.ndarray, smoothing: int, value: float, effective: bool) -> np.ndarray:
    """BLEU as a fraction, for any array of rows."""
    rows, shortest, shape = frozen_rows(stats, reference)
    out = np.empty(rows.shape[0])
    bleu_scores(rows, shortest, smoothing, value, effective, out)
    return out.reshape(shape)
