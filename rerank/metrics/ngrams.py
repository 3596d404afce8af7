"""BLEU (Papineni et al. 2002) and chrF (Popović 2015, 2017) for lists of texts: counts by kernel, figures as sacrebleu
gives them (Post 2018).

An n-gram is the running hash of its words or characters, and a table holds those of the references. It is negligibly
rare that two words or n-grams of a list share a hash of 64 bits.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np

from rerank.base.errors import DataError, RecipeError
from rerank.base.ranges import Range
from rerank.data.corpus import frozen
from rerank.data.symbols import combine, find_slot, text_hash
from rerank.kernels.compile import kernel
from rerank.metrics.text import SacrebleuMetric, characters, check_references, lowered, scorer, words, words_and_marks

FREE = np.uint64(0)


class NgramTable(NamedTuple):
    """N-grams by hash (open addressing), a power of two in size; of these arrays, ``keys`` alone begins with zeros."""

    keys: np.ndarray  # uint64: the n-gram's hash, 0: free
    limit: np.ndarray  # int32: how often it is in the reference that has it most often
    seen: np.ndarray  # int32: how often it was counted in the text ``stamp``
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
                table.stamp[slot], table.seen[slot] = text, 0
            table.seen[slot] += 1
            table.limit[slot] = max(table.limit[slot], table.seen[slot])


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
                table.stamp[slot], table.seen[slot] = text, 0
            if table.seen[slot] < table.limit[slot]:
                table.seen[slot] += 1
                row[step * n] += 1


@kernel
def list_ngrams(first: np.ndarray, symbols: np.ndarray, order: int, table: NgramTable, ngrams: np.ndarray) -> None:
    """List the n-grams of texts, each once a text, in the rows of ``ngrams`` (int32 [E, 4]): the text, its symbols less
    one, how often it is there, and the row of the last text before that has it, -1 for none.

    Of an n-gram the table holds its last row as ``seen``.
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
                    table.seen[slot] = -1
                if table.seen[slot] < begin:
                    ngrams[end, 0], ngrams[end, 1], ngrams[end, 2], ngrams[end, 3] = t, n, 0, table.seen[slot]
                    table.seen[slot] = end
                    end += 1
                ngrams[table.seen[slot], 2] += 1


@kernel
def match_pairs(table: NgramTable, ngrams: np.ndarray, times: np.ndarray, matched: np.ndarray) -> None:
    """Count the n-grams that each two texts share, by their length, in ``matched`` (int32 [T, order, T], zeros); times:
    int32 [T], zeros, scratch for one n-gram, so that the innermost loop is over neighbours in memory."""
    for slot in range(table.keys.shape[0]):
        last = table.seen[slot] if table.keys[slot] != FREE else -1
        e = last
        while e >= 0:
            times[ngrams[e, 0]], e = ngrams[e, 2], ngrams[e, 3]
        e = last
        while e >= 0:
            own, most = matched[ngrams[e, 0], ngrams[e, 1]], ngrams[e, 2]
            for t in range(times.shape[0]):
                own[t] += min(times[t], most)
            e = ngrams[e, 3]
        while last >= 0:
            times[ngrams[last, 0]], last = 0, ngrams[last, 3]


def matched_pairs(first: np.ndarray, symbols: np.ndarray, order: int) -> np.ndarray:
    """int32 [T, order, T]: how many n-grams of up to ``order`` symbols each two of T texts share."""
    texts, most = first.size - 1, order * int(first[-1])
    table, ngrams = ngram_table(most), np.empty((most, 4), np.int32)
    list_ngrams(first, symbols, order, table, ngrams)
    matched = np.zeros((texts, order, texts), np.int32)
    match_pairs(table, ngrams, np.zeros(texts, np.int32), matched)
    return matched


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


@kernel
def bleu_pairs(first: np.ndarray, matched: np.ndarray, smoothing: int, row: np.ndarray, out: np.ndarray) -> None:
    """``bleu`` of every text by every other as its reference → ``out`` float64 [T, T]; row: float64 [COLUMNS]."""
    for y in range(out.shape[0]):
        row[LENGTH] = first[y + 1] - first[y]
        for n in range(ORDER):
            row[TOTAL + n] = max(row[LENGTH] - n, 0.0)
        for r in range(out.shape[0]):
            for n in range(ORDER):
                row[CORRECT + n] = matched[y, n, r]
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
        (first, hashes), R = words(self.prepared([*references, *texts])), len(references)
        rows = np.empty((len(texts), COLUMNS))
        shortest = bleu_rows(first, hashes, R, ngram_table(ORDER * int(first[R])), rows)
        return np.array([shortest], np.float64), rows

    def pairwise(self, texts: Sequence[bytes]) -> np.ndarray:
        first, hashes = words(self.prepared(texts))
        gains, row = np.empty((len(texts), len(texts))), np.zeros(COLUMNS)
        bleu_pairs(first, matched_pairs(first, hashes, ORDER), SMOOTHINGS[self.smoothing], row, gains)
        return gains

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


_CHARACTERS, _WORDS = np.uint64(text_hash("characters")), np.uint64(text_hash("words"))


@kernel
def _count(
    symbols: np.ndarray, length: int, order: int, h: np.uint64, text: int, table: NgramTable, row: np.ndarray
) -> None:
    """Set (text, reference, matched) by order in ``row``; of an order that the reference of ``length`` lacks, 0s."""
    L = symbols.shape[0]
    for n in range(order):
        row[3 * n] = max(L - n, 0) if length > n else 0
        row[3 * n + 1] = max(length - n, 0)
        row[3 * n + 2] = 0
    match_ngrams(symbols, order, h, text, table, row[2:], 3)


@kernel
def chrf_rows(
    first: np.ndarray, points: np.ndarray, word_first: np.ndarray, hashes: np.ndarray, r: int, references: int,
    char_order: int, word_order: int, table: NgramTable, rows: np.ndarray,
) -> None:  # fmt: skip
    """Counts → ``rows`` for the texts after the ``references``, each against reference r."""
    here, those = points[first[r] : first[r + 1]], hashes[word_first[r] : word_first[r + 1]]
    table.keys[:] = FREE
    enter_ngrams(here, char_order, _CHARACTERS, r, table)
    enter_ngrams(those, word_order, _WORDS, r, table)
    for y in range(rows.shape[0]):
        t = references + y
        characters, words = points[first[t] : first[t + 1]], hashes[word_first[t] : word_first[t + 1]]
        _count(characters, here.shape[0], char_order, _CHARACTERS, t, table, rows[y])
        _count(words, those.shape[0], word_order, _WORDS, t, table, rows[y, 3 * char_order :])


def f_scores(counts: np.ndarray, beta: float) -> np.ndarray:
    """F in 0..100 of the three counts of every order: float64 [..., 3 * orders] → [...]; 0 if nothing can match.

    F = (1 + β²)·P·R / (β²·P + R), where P and R are means over the orders that both sides have.
    """
    text, reference, matched = (counts[..., k::3] for k in range(3))
    both, factor = (text > 0) & (reference > 0), beta * beta
    precision, recall = (
        np.where(both, matched / np.where(both, side, 1.0), 0.0).cumsum(axis=-1)[..., -1]  # order after order
        / np.maximum(both.sum(axis=-1), 1)
        for side in (text, reference)
    )
    weighed = factor * precision + recall
    return np.asarray(100 * ((1 + factor) * precision * recall / np.where(weighed > 0, weighed, 1.0)))


MOST_BETA = 1000  # only recall counts there
LONGEST = 1 << 20  # bytes of a reference; its n-grams take some 300 bytes of memory for each


def check_longest(references: Sequence[bytes]) -> None:
    """Refuse a reference that is too long for a table."""
    if (longest := max(map(len, references), default=0)) > LONGEST:
        said = f"a reference of {longest:,} bytes; chrF takes {LONGEST:,} at most"
        raise DataError(f"{said}; expected one sentence per line")


def _columns(char_order: int, word_order: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    orders = [f"char{n + 1}" for n in range(char_order)] + [f"word{n + 1}" for n in range(word_order)]
    sides = ("text", "reference", "matched")
    return tuple(f"{side}_{order}" for order in orders for side in sides), tuple(f"reference_{o}" for o in orders)


@dataclass(frozen=True)
class Chrf(SacrebleuMetric):
    """chrF on 0-100, as sacrebleu computes it: chrF2 by default, chrF++ with ``word_order: 2``.

    >>> round(Chrf().corpus(["the cats sat"], [["the cat sat"]])["chrf"], 2)
    74.78

    Reference: Popović 2015 (WMT). Time: two or three look-ups a character; a row is 3 numbers for each order.

    Parameters
    ----------
    char_order, word_order: the longest n-grams of characters and of words; for the latter, ASCII punctuation at the
        edge of a word is a word of its own.
    beta: how many times as much recall counts as precision.
    whitespace: whether white space is a character.
    lowercase: whether case is ignored.

    ``stats``: for every order the n-grams of the text, how many more the reference has than the one that an empty text
    is compared with, and those that match; ``reference``: the n-grams of the latter. Of several references, the one
    with the best F counts; on ties, the first. The gain is chrF of the sentence as a fraction.
    """

    name: ClassVar[str] = "chrf"

    primary = "chrf"
    percent = 1.0
    columns, reference_columns = _columns(6, 0)

    char_order: Annotated[int, Range(0, 100)] = 6
    word_order: Annotated[int, Range(0, 100)] = 0
    beta: Annotated[int, Range(1, MOST_BETA)] = 2
    whitespace: bool = False
    lowercase: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.char_order + self.word_order == 0:
            raise RecipeError("found 0 for char_order and word_order, expected at least one n-gram", key="char_order")
        columns, reference_columns = _columns(self.char_order, self.word_order)
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "reference_columns", reference_columns)

    def stats(self, texts: Sequence[bytes], references: Sequence[bytes]) -> tuple[np.ndarray, np.ndarray]:
        check_references(references)
        M, orders = len(references), self.char_order + self.word_order
        check_longest(references)
        first, points, word_first, hashes = self._units([*references, *texts, b""])
        most = self.char_order * np.diff(first)[:M] + self.word_order * np.diff(word_first)[:M]
        table, rows = ngram_table(int(most.max())), np.zeros((len(texts) + 1, 3 * orders))
        best, counts = np.full(len(rows), -1.0), np.empty_like(rows)
        for r in range(M):
            chrf_rows(first, points, word_first, hashes, r, M, self.char_order, self.word_order, table, counts)
            scores = f_scores(counts, self.beta)
            better = scores > best
            rows[better], best[better] = counts[better], scores[better]
        empty = rows[-1, 1::3].copy()
        rows[:, 1::3] -= empty
        return empty, rows[:-1]

    def pairwise(self, texts: Sequence[bytes]) -> np.ndarray:
        check_longest(texts)
        first, points, word_first, hashes = self._units(texts)
        sides = (first, points, self.char_order), (word_first, hashes, self.word_order)
        matched = np.concatenate([matched_pairs(*side) for side in sides], axis=1)
        sizes = np.concatenate([np.diff(of)[:, None] - np.arange(order) for of, _, order in sides], axis=1).clip(0)
        gains = np.empty((len(texts), len(texts)))
        for r, size in enumerate(sizes):
            counts = np.stack([sizes * (size > 0), np.broadcast_to(size, sizes.shape), matched[r].T], axis=2)
            gains[:, r] = f_scores(counts.reshape(len(texts), -1).astype(np.float64), self.beta) / 100.0
        return gains

    def _units(self, texts: Sequence[bytes]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The characters, then the words, whose n-grams count: where those of each text begin, and what they are."""
        texts = lowered(texts) if self.lowercase else texts
        nothing = np.zeros(len(texts) + 1, np.int64), np.empty(0, np.uint64)
        return *characters(texts, space=self.whitespace), *(words_and_marks(texts) if self.word_order else nothing)

    def scores(self, stats: np.ndarray, reference: np.ndarray) -> np.ndarray:
        """chrF (0-100) of summed counts: float64 [..., K] and [..., R] → [...]; 0 if nothing can match."""
        counts = np.array(stats, np.float64)
        counts[..., 1::3] += reference
        return f_scores(counts, self.beta)

    def counts(self, stats: np.ndarray, reference: np.ndarray) -> list[Any]:
        both = stats.copy()
        both[1::3] += reference
        return list(map(int, both))

    def gain(self, stats: np.ndarray, reference: np.ndarray) -> np.ndarray:
        """Sentence chrF as a fraction: float64 [..., K] and [..., R] → [...]."""
        return np.asarray(self.scores(stats, reference) / 100.0)

    def scorer_signature(self) -> str:
        """sacrebleu's signature and, if it is not 2, ``beta``, which sacrebleu has in the name."""
        text = super().scorer_signature()
        return text if self.beta == 2 else f"{text}|beta:{self.beta}"

    def make_scorer(self) -> Any:
        from sacrebleu.metrics.chrf import CHRF

        return CHRF(
            char_order=self.char_order, word_order=self.word_order, beta=self.beta, lowercase=self.lowercase,
            whitespace=self.whitespace,
        )  # fmt: skip
