"""BLEU (Papineni et al. 2002) for lists of texts: counts by kernel, figures as sacrebleu gives them (Post 2018).

An n-gram is the running hash of its words or characters, and a table holds those of the references. It is negligibly
rare that two words or n-grams of a list share a hash of 64 bits.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from rerank.base.errors import RecipeError
from rerank.data.corpus import freeze
from rerank.data.symbols import combine, find_slot
from rerank.kernels.compile import kernel
from rerank.metrics.text import SacrebleuMetric, check_references, scorer, to_lowercase, words

FREE = np.uint64(0)


class NgramTable(NamedTuple):
    """N-grams by hash (open addressing), a power of two in size; of these arrays, ``keys`` alone begins with zeros."""

    keys: np.ndarray  # uint64: the n-gram's hash, 0: free
    limit: np.ndarray  # int32: how often it is in the reference that has it most often
    tally: np.ndarray  # int32: how often it was counted in the text ``stamp``
    stamp: np.ndarray  # int32: the number of the last text that has it, from 0


def ngram_table(ngrams: int) -> NgramTable:
    """A table with room for ``ngrams`` n-grams at a load of at most one half."""
    capacity = 1 << int(2 * ngrams + 1).bit_length()
    return NgramTable(np.zeros(capacity, np.uint64), *(np.empty(capacity, np.int32) for _ in range(3)))


@kernel
def _slot(table: NgramTable, h: np.uint64) -> int:
    """The slot of an n-gram by its hash, or the free one where it belongs; no hash is that of a free slot."""
    return int(find_slot(table.keys, h if h != FREE else np.uint64(1)))


@kernel
def enter_ngrams(symbols: np.ndarray, order: int, seed: np.uint64, text: int, table: NgramTable) -> None:
    """Add the n-grams of up to ``order`` symbols of reference ``text``; a hash continues that of one symbol less."""
    for i in range(symbols.shape[0]):
        h = seed
        for j in range(i, min(i + order, symbols.shape[0])):
            h = combine(h, np.uint64(symbols[j]))
            slot = _slot(table, h)
            if table.keys[slot] == FREE:
                table.keys[slot] = h if h != FREE else np.uint64(1)
                table.limit[slot], table.stamp[slot] = 0, -1
            if table.stamp[slot] != text:
                table.stamp[slot], table.tally[slot] = text, 0
            table.tally[slot] += 1
            table.limit[slot] = max(table.limit[slot], table.tally[slot])


@kernel
def match_ngrams(
    symbols: np.ndarray, order: int, seed: np.uint64, text: int, table: NgramTable, row: np.ndarray, step: int
) -> None:
    """Add to row[step * (n - 1)] how many n-grams of a text are in a reference; none longer than one that is not."""
    L = symbols.shape[0]
    for i in range(L):
        h = seed
        for n in range(min(order, L - i)):
            h = combine(h, np.uint64(symbols[i + n]))
            slot = _slot(table, h)
            if table.keys[slot] == FREE:
                break
            if table.stamp[slot] != text:
                table.stamp[slot], table.tally[slot] = text, 0
            if table.tally[slot] < table.limit[slot]:
                table.tally[slot] += 1
                row[step * n] += 1


@kernel
def list_ngrams(first: np.ndarray, symbols: np.ndarray, order: int, table: NgramTable, ngrams: np.ndarray) -> None:
    """List the n-grams of texts, each once a text, in the rows of ``ngrams`` (int32 [E, 4]): the text, its symbols less
    one, how often it is there, and the row of the last text before that has it, -1 for none.

    Of an n-gram the table holds its last row as ``tally``.
    """
    end = 0
    for t in range(first.shape[0] - 1):
        begin = end
        for i in range(first[t], first[t + 1]):
            h = FREE
            for n in range(min(order, first[t + 1] - i)):
                h = combine(h, np.uint64(symbols[i + n]))
                slot = _slot(table, h)
                if table.keys[slot] == FREE:
                    table.keys[slot] = h if h != FREE else np.uint64(1)
                    table.tally[slot] = -1
                if table.tally[slot] < begin:
                    ngrams[end, 0], ngrams[end, 1], ngrams[end, 2], ngrams[end, 3] = t, n, 0, table.tally[slot]
                    table.tally[slot] = end
                    end += 1
                ngrams[table.tally[slot], 2] += 1


@kernel
def match_pairs(table: NgramTable, ngrams: np.ndarray, times: np.ndarray, matches: np.ndarray) -> None:
    """Count the n-grams that each two texts share, by their length, in ``matches`` (int32 [T, order, T], zeros); times:
    int32 [T], zeros, scratch for one n-gram, so that the innermost loop is over neighbours in memory."""
    for slot in range(table.keys.shape[0]):
        last = table.tally[slot] if table.keys[slot] != FREE else -1
        e = last
        while e >= 0:
            times[ngrams[e, 0]], e = ngrams[e, 2], ngrams[e, 3]
        e = last
        while e >= 0:
            own, most = matches[ngrams[e, 0], ngrams[e, 1]], ngrams[e, 2]
            for t in range(times.shape[0]):
                own[t] += min(times[t], most)
            e = ngrams[e, 3]
        while last >= 0:
            times[ngrams[last, 0]], last = 0, ngrams[last, 3]


def pair_matches(first: np.ndarray, symbols: np.ndarray, order: int) -> np.ndarray:
    """int32 [T, order, T]: how many n-grams of up to ``order`` symbols each two of T texts share."""
    texts, most = first.size - 1, order * int(first[-1])
    table, ngrams = ngram_table(most), np.empty((most, 4), np.int32)
    list_ngrams(first, symbols, order, table, ngrams)
    matches = np.zeros((texts, order, texts), np.int32)
    match_pairs(table, ngrams, np.zeros(texts, np.int32), matches)
    return matches


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
        rows[y, LENGTH] = words.shape[0]
        for n in range(ORDER):
            rows[y, TOTAL + n] = max(words.shape[0] - n, 0)
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
    log_sum, orders, divisor = 0.0, ORDER, 1.0
    for n in range(ORDER):
        extra = 1.0 if smoothing == ADD_1 and n > 0 else 0.0
        correct, total = row[CORRECT + n] + extra, row[TOTAL + n] + extra
        if total <= 0.0:
            orders = 0 if smoothing == CORPUS else n
            break
        if correct <= 0.0:
            if smoothing in (EXP, CORPUS):
                divisor *= 2.0
                correct = 1.0 / divisor
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


@kernel
def bleu_pairs(first: np.ndarray, matches: np.ndarray, smoothing: int, row: np.ndarray, out: np.ndarray) -> None:
    """``bleu`` of every text by every other as its reference → ``out`` float64 [T, T]; row: float64 [COLUMNS]."""
    for y in range(out.shape[0]):
        row[LENGTH] = first[y + 1] - first[y]
        for n in range(ORDER):
            row[TOTAL + n] = max(row[LENGTH] - n, 0.0)
        for r in range(out.shape[0]):
            for n in range(ORDER):
                row[CORRECT + n] = matches[y, n, r]
            out[y, r] = bleu(row, float(first[r + 1] - first[r]), smoothing)


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
        (first, hashes), R = words(self.prepare([*references, *texts])), len(references)
        rows = np.empty((len(texts), COLUMNS))
        shortest = bleu_rows(first, hashes, R, ngram_table(ORDER * int(first[R])), rows)
        return np.array([shortest], np.float64), rows

    def pairwise(self, texts: Sequence[bytes]) -> np.ndarray:
        first, hashes = words(self.prepare(texts))
        gains, row = np.empty((len(texts), len(texts))), np.zeros(COLUMNS)
        bleu_pairs(first, pair_matches(first, hashes, ORDER), SMOOTHINGS[self.smoothing], row, gains)
        return gains

    def scores(self, stats: np.ndarray, reference: np.ndarray) -> np.ndarray:
        """Corpus BLEU (0-100) of summed counts, as by sacrebleu's ``corpus_bleu``: smoothing exp, all four orders."""
        return 100.0 * _bleu(stats, reference, CORPUS)

    def gain(self, stats: np.ndarray, reference: np.ndarray) -> np.ndarray:
        """Sentence BLEU as a fraction: float64 [..., 10] and [..., 1] → [...], sacrebleu's ``sentence_bleu``/100."""
        return _bleu(stats, reference, SMOOTHINGS[self.smoothing])

    def report(self, stats: np.ndarray, reference: np.ndarray) -> dict[str, float]:
        """BLEU on 0-100; n-gram precisions, brevity penalty and length ratio as fractions."""
        length, target = float(stats[LENGTH]), float(reference[0] + stats[CLOSEST_SHIFT])
        precisions = stats[CORRECT : CORRECT + ORDER] / np.maximum(stats[TOTAL : TOTAL + ORDER], 1.0)
        return {
            "bleu": float(self.scores(stats, reference)),
            **{f"precision{n}": float(p) for n, p in enumerate(precisions, start=1)},
            "brevity_penalty": float(brevity_penalty(length, target)),
            "length_ratio": length / target if target else 0.0,
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

    def prepare(self, texts: Sequence[bytes]) -> list[bytes]:
        if self.tokenize != "none":
            return super().prepare(texts)
        return to_lowercase(texts) if self.lowercase else list(texts)


def _bleu(stats: np.ndarray, reference: np.ndarray, smoothing: int) -> np.ndarray:
    """BLEU as a fraction, for any array of rows."""
    shape = np.broadcast_shapes(stats.shape[:-1], reference.shape[:-1])
    both = (np.broadcast_to(rows, (*shape, rows.shape[-1])) for rows in (stats, reference))
    # read-only, so that the kernel is compiled for only one kind of array
    rows, shortest = (freeze(np.ascontiguousarray(side, np.float64).reshape(-1, side.shape[-1])) for side in both)
    out = np.empty(rows.shape[0])
    bleu_scores(rows, shortest, smoothing, out)
    return out.reshape(shape)
