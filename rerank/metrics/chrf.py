"""chrF (Popović 2015, 2017) for lists of texts: counts by kernel, figures as sacrebleu gives them (Post 2018)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from rerank.base.errors import DataError, RecipeError
from rerank.base.ranges import Range
from rerank.data.symbols import text_hash
from rerank.kernels.compile import kernel
from rerank.metrics.ngrams import FREE, NgramTable, enter_ngrams, match_ngrams, ngram_table, pair_matches
from rerank.metrics.text import SacrebleuMetric, characters, check_references, to_lowercase, words_and_marks

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
    text, reference, matches = (counts[..., k::3] for k in range(3))
    both, factor = (text > 0) & (reference > 0), beta * beta
    precision, recall = (
        np.where(both, matches / np.where(both, side, 1.0), 0.0).cumsum(axis=-1)[..., -1]  # order after order
        / np.maximum(both.sum(axis=-1), 1)
        for side in (text, reference)
    )
    divisor = factor * precision + recall
    return np.asarray(100 * ((1 + factor) * precision * recall / np.where(divisor > 0, divisor, 1.0)))


MAX_BETA = 1000  # only recall counts there
MAX_BYTES = 1 << 20  # bytes of a reference; its n-grams take some 300 bytes of memory for each


def check_longest(references: Sequence[bytes]) -> None:
    """Refuse a reference that is too long for a table."""
    if (longest := max(map(len, references), default=0)) > MAX_BYTES:
        message = f"a reference of {longest:,} bytes; chrF takes {MAX_BYTES:,} at most"
        raise DataError(f"{message}; expected one sentence per line")


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
    beta: Annotated[int, Range(1, MAX_BETA)] = 2
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
        matches = np.concatenate([pair_matches(*side) for side in sides], axis=1)
        sizes = np.concatenate([np.diff(of)[:, None] - np.arange(order) for of, _, order in sides], axis=1).clip(0)
        gains = np.empty((len(texts), len(texts)))
        for r, size in enumerate(sizes):
            counts = np.stack([sizes * (size > 0), np.broadcast_to(size, sizes.shape), matches[r].T], axis=2)
            gains[:, r] = f_scores(counts.reshape(len(texts), -1).astype(np.float64), self.beta) / 100.0
        return gains

    def _units(self, texts: Sequence[bytes]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The characters, then the words, whose n-grams count: where those of each text begin, and what they are."""
        texts = to_lowercase(texts) if self.lowercase else texts
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
