"""BLEU (Papineni et al. 2002) for lists of texts: counts by kernel, figures as sacrebleu gives them (Post 2018).

There are two ways to the same counts. With one reference of at most 64 words, an n-gram is the set of places where it
ends in the reference, in 64 bits. In general, it is the running hash of its words, and a table holds those of the
references. It is negligibly rare that two words or n-grams of a list share a hash of 64 bits.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from rerank.base.errors import RecipeError
from rerank.base.ranges import Range
from rerank.data.symbols import find_slot
from rerank.data.tokens import cut_words
from rerank.kernels.compile import kernel
from rerank.metrics.ngrams import NgramTable, blanked, enter_ngrams, match_ngrams, ngram_table, words
from rerank.metrics.text import SacrebleuMetric, check_references, frozen_rows, lowered, scorer

ORDER = 4
# Columns of a candidate's row: matched n-grams, n-grams, words, closest reference length minus the shortest one.
CORRECT, TOTAL, LENGTH, CLOSEST_SHIFT = 0, ORDER, 2 * ORDER, 2 * ORDER + 1
COLUMNS = 2 * ORDER + 2
# What is done about n-grams without a match (Chen & Cherry 2014).
NONE, FLOOR, ADD_K, EXP = range(4)
PLACES = 64  # the longest reference that sets of places can describe
_ONE = np.uint64(1)


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
def _take(places: np.uint64, free: np.uint64) -> np.uint64:
    """``free`` without the first of ``places`` in it; unchanged if none is."""
    both = places & free
    return free ^ (both & (~both + _ONE))


@kernel
def bleu_rows_places(data: np.ndarray, first: np.ndarray, space: np.ndarray, rows: np.ndarray) -> int:
    """``bleu_rows`` for one reference of at most PLACES words; it also cuts the texts, see ``cut_words``.

    ``first`` (int64 [T + 1]) and ``space`` (uint64, 4 * PLACES and what ``cut_words`` needs) are scratch. Returns -1 if
    the reference is longer or a text has a line feed.

    The places where an n-gram ends are those of its last word that are one after those of the (n - 1)-gram before it.
    An occurrence in the text takes one of them; if none is left, the text has more occurrences than the reference.
    """
    keys, places, hashes = space[: 2 * PLACES], space[2 * PLACES : 4 * PLACES], space[4 * PLACES :]
    if not cut_words(data, 1, first, hashes) or first[1] > PLACES:
        return -1
    space[: 4 * PLACES] = 0
    for i in range(first[1]):
        slot = find_slot(keys, hashes[i])
        keys[slot] = hashes[i]
        places[slot] |= _ONE << np.uint64(i)
    for y in range(rows.shape[0]):
        p1 = p2 = p3 = np.uint64(0)  # places of the n-grams that end before the next word
        f1 = f2 = f3 = f4 = ~np.uint64(0)  # places not taken yet, by order
        c1 = c2 = c3 = c4 = 0
        for i in range(first[y + 1], first[y + 2]):
            word = places[np.uint64(find_slot(keys, hashes[i]))]
            p4, p3, p2, p1 = (p3 << _ONE) & word, (p2 << _ONE) & word, (p1 << _ONE) & word, word
            n1, n2, n3, n4 = _take(p1, f1), _take(p2, f2), _take(p3, f3), _take(p4, f4)
            c1, c2, c3, c4 = c1 + (n1 != f1), c2 + (n2 != f2), c3 + (n3 != f3), c4 + (n4 != f4)
            f1, f2, f3, f4 = n1, n2, n3, n4
        rows[y, CORRECT], rows[y, CORRECT + 1], rows[y, CORRECT + 2], rows[y, CORRECT + 3] = c1, c2, c3, c4
        count_ngrams(first[y + 2] - first[y + 1], rows[y])
        rows[y, CLOSEST_SHIFT] = 0.0
    return int(first[1])


@kernel
def brevity_penalty(length: float, reference: float) -> float:
    """exp(1 - r/c) if the candidate's length c is below r, else 1 (Papineni et al. 2002)."""
    if length >= reference:
        return 1.0
    return math.exp(1.0 - reference / length) if length > 0.0 else 0.0


@kernel
def bleu(row: np.ndarray, reference: float, smoothing: int, value: float, effective: bool) -> float:
    """BLEU of a row of counts, as a fraction: the brevity penalty times the geometric mean of n-gram precisions.

    ADD_K adds ``value`` to matches and n-grams of orders from 2; for an order without matches, EXP takes
    1/(2^k · n-grams) at the k-th such order and FLOOR ``value``/n-grams. At an order without n-grams the result is 0
    or, if ``effective``, the mean of the orders before it. Without a match of any order, BLEU is 0.
    """
    if row[CORRECT] <= 0.0:
        return 0.0
    log_sum, orders, halved = 0.0, ORDER, 1.0
    for n in range(ORDER):
        added = value if smoothing == ADD_K and n > 0 else 0.0
        correct, total = row[CORRECT + n] + added, row[TOTAL + n] + added
        if total <= 0.0:
            if not effective:
                return 0.0
            orders = n
            break
        if correct <= 0.0:
            if smoothing == EXP:
                halved *= 2.0
                correct = 1.0 / halved
            elif smoothing == FLOOR:
                correct = value
        if correct <= 0.0:
            return 0.0
        log_sum += math.log(correct / total)
    return brevity_penalty(row[LENGTH], reference) * math.exp(log_sum / orders)


@kernel
def bleu_scores(
    rows: np.ndarray, shortest: np.ndarray, smoothing: int, value: float, effective: bool, out: np.ndarray
) -> None:
    """``bleu`` for every row: float64 [M, COLUMNS] and [M, 1] → ``out`` float64 [M]."""
    for m in range(rows.shape[0]):
        out[m] = bleu(rows[m], shortest[m, 0] + rows[m, CLOSEST_SHIFT], smoothing, value, effective)


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
        rows, shortest = np.empty((len(texts), COLUMNS)), -1
        if R == 1:
            data = blanked(b"\n".join([*prepared, b""]))
            space = np.empty(4 * PLACES + data.size // 2 + 1, np.uint64)
            shortest = bleu_rows_places(data, np.empty(len(prepared) + 1, np.int64), space, rows)
        if shortest < 0:
            first, hashes = words(prepared)
            shortest = bleu_rows(first, hashes, R, ngram_table(ORDER * int(first[R])), rows)
        return np.array([shortest], np.float64), rows

    def pairwise(self, texts: Sequence[bytes]) -> np.ndarray:
        # n-grams are matched without a comparison of any two texts
        from rerank.metrics.pairwise import lengths, ngrams, shared

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
