"""BLEU (Papineni et al. 2002) for lists of texts: counts by kernel, figures as sacrebleu gives them (Post 2018).

An n-gram is the running hash of its words, and a table holds those of the references. It is negligibly rare that two
words or n-grams of a list share a hash of 64 bits.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from rerank.base.errors import RecipeError
from rerank.data.corpus import frozen
from rerank.kernels.compile import kernel
from rerank.metrics.text import (
    NgramTable,
    SacrebleuMetric,
    check_references,
    enter_ngrams,
    lowered,
    match_ngrams,
    ngram_table,
    scorer,
    words,
)

ORDER = 4
# Columns of a candidate's row: matched n-grams, n-grams, words, closest reference length minus the shortest one.
CORRECT, TOTAL, LENGTH, CLOSEST_SHIFT = 0, ORDER, 2 * ORDER, 2 * ORDER + 1
COLUMNS = 2 * ORDER + 2
CORPUS, NONE, FLOOR, ADD_1, EXP = range(5)  # what is done about n-grams without a match (Chen & Cherry 2014)


@kernel
def closest_length(first: np.ndarray, references: int, length: int) -> int:
    """Among the lengths of the first ``references`` texts, the one nearest to ``length``; of two, the shorter."""
    closest = first[1] - first[0]
    for r in range(1, references):
        other = first[r + 1] - first[r]
        nearer, now = abs(other - length), abs(closest - length)
        if nearer < now or (nearer == now and other < closest):
            closest = other
    return int(closest)


@kernel
def count_ngrams(words: int, row: np.ndarray) -> None:
    """Store in ``row`` how many n-grams a text of ``words`` words has."""
    row[LENGTH] = words
    for n in range(ORDER):
        row[TOTAL + n] = max(words - n, 0)


@kernel
def bleu_rows(first: np.ndarray, hashes: np.ndarray, references: int, table: NgramTable, rows: np.ndarray) -> int:
    """Counts of candidates → ``rows``, from the words of references, then texts; returns the shortest reference."""
    for r in range(references):
        enter_ngrams(hashes[first[r] : first[r + 1]], ORDER, np.uint64(0), r, table)
    shortest = closest_length(first, references, 0)
    for y in range(rows.shape[0]):
        t = references + y
        words = hashes[first[t] : first[t + 1]]
        rows[y, CORRECT : CORRECT + ORDER] = 0.0
        match_ngrams(words, ORDER, np.uint64(0), t, table, rows[y, CORRECT:], 1)
        count_ngrams(words.shape[0], rows[y])
        rows[y, CLOSEST_SHIFT] = closest_length(first, references, words.shape[0]) - shortest
    return shortest


@kernel
def brevity_penalty(length: float, reference: float) -> float:
    """exp(1 - r/c) if the candidate's length c is below r, else 1 (Papineni et al. 2002)."""
    if length >= reference:
        return 1.0
    return math.exp(1.0 - reference / length) if length > 0.0 else 0.0


@kernel
def bleu(row: np.ndarray, reference: float, smoothing: int) -> float:
    """BLEU of a row of counts, as a fraction: the brevity penalty times the geometric mean of n-gram precisions.

    ADD_1 adds 1 to matches and n-grams of orders from 2; for an order without matches, EXP and CORPUS take
    1/(2^k · n-grams) at the k-th such order and FLOOR 0.1/n-grams. An order without n-grams, and those after it, do not
    count; by CORPUS the result is 0. Without a match of any order, BLEU is 0.
    """
    if row[CORRECT] <= 0.0:
        return 0.0
    log_sum, orders, halved = 0.0, ORDER, 1.0
    for n in range(ORDER):
        added = 1.0 if smoothing == ADD_1 and n > 0 else 0.0
        correct, total = row[CORRECT + n] + added, row[TOTAL + n] + added
        if total <= 0.0:
            orders = 0 if smoothing == CORPUS else n
            break
        if correct <= 0.0:
            if smoothing in (EXP, CORPUS):
                halved *= 2.0
                correct = 1.0 / halved
            elif smoothing == FLOOR:
                correct = 0.1
        if correct <= 0.0:
            return 0.0
        log_sum += math.log(correct / total)
    return brevity_penalty(row[LENGTH], reference) * math.exp(log_sum / orders) if orders else 0.0


@kernel
def bleu_scores(rows: np.ndarray, shortest: np.ndarray, smoothing: int, out: np.ndarray) -> None:
    """``bleu`` for every row: float64 [M, COLUMNS] and [M, 1] → ``out`` float64 [M]."""
    for m in range(rows.shape[0]):
        out[m] = bleu(rows[m], shortest[m, 0] + rows[m, CLOSEST_SHIFT], smoothing)


SMOOTHINGS = {"add-1": ADD_1, "exp": EXP, "floor": FLOOR, "none": NONE}
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
        ``exp``, ``floor`` (Chen & Cherry 2014) or ``none``; a text too short for an order of n-grams is measured by
        the orders before it.

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
    smoothing: Literal["add-1", "exp", "floor", "none"] = "add-1"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.tokenize != "none":
            scorer(self)  # a tokeniser without its package is an error here, not later

    def stats(self, texts: Sequence[bytes], references: Sequence[bytes]) -> tuple[np.ndarray, np.ndarray]:
        check_references(references)
        (first, hashes), R = words(self.prepared([*references, *texts])), len(references)
        rows = np.empty((len(texts), COLUMNS))
        shortest = bleu_rows(first, hashes, R, ngram_table(ORDER * int(first[R])), rows)
        return np.array([shortest], np.float64), rows

    def scores(self, stats: np.ndarray, reference: np.ndarray) -> np.ndarray:
        """Corpus BLEU (0-100) of summed counts, as by sacrebleu's ``corpus_bleu``: smoothing exp, all four orders."""
        return 100.0 * _bleu(stats, reference, CORPUS)

    def gain(self, stats: np.ndarray, reference: np.ndarray) -> np.ndarray:
        """Sentence BLEU as a fraction: float64 [..., 10] and [..., 1] → [...], sacrebleu's ``sentence_bleu``/100."""
        return _bleu(stats, reference, SMOOTHINGS[self.smoothing])

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

    def counts(self, stats: np.ndarray, reference: np.ndarray) -> list[Any]:
        lengths = [stats[LENGTH], reference[0] + stats[CLOSEST_SHIFT]]
        return list(map(int, [*lengths, *stats[CORRECT:LENGTH]]))

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
        return f"{super().signature}|gain:{self.smoothing}|gain order:effective"

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


def _bleu(stats: np.ndarray, reference: np.ndarray, smoothing: int) -> np.ndarray:
    """BLEU as a fraction, for any array of rows."""
    shape = np.broadcast_shapes(stats.shape[:-1], reference.shape[:-1])
    both = (np.broadcast_to(rows, (*shape, rows.shape[-1])) for rows in (stats, reference))
    # read-only, so that the kernel is compiled for only one kind of array
    rows, shortest = (frozen(np.ascontiguousarray(side, np.float64).reshape(-1, side.shape[-1])) for side in both)
    out = np.empty(rows.shape[0])
    bleu_scores(rows, shortest, smoothing, out)
    return out.reshape(shape)
