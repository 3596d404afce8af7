"""chrF (Popović 2015, 2017): n-grams of characters, and of words, that a text shares with its reference.

For every order a row has three counts: n-grams of the text, of the reference, and of both (an n-gram counts as often
as in the side that has it less often).
"""

import numpy as np

from rerank.data.symbols import text_hash
from rerank.kernels.compile import kernel
from rerank.metrics.ngrams import FREE, NgramTable, enter_ngrams, match_ngrams

EPSILON = 1e-16
_CHARACTERS, _WORDS = np.uint64(text_hash("characters")), np.uint64(text_hash("words"))


@kernel
def _count(
    symbols: np.ndarray, length: int, order: int, h: np.uint64, text: int, table: NgramTable, row: np.ndarray
) -> None:
    """Set (text, reference, matched) for the orders 1..``order`` in ``row``; ``length``: symbols of the reference.

    If the reference has no n-gram of an order, those of the text do not count.
    """
    L = symbols.shape[0]
    for n in range(order):
        row[3 * n] = max(L - n, 0) if length > n else 0
        row[3 * n + 1] = max(length - n, 0)
        row[3 * n + 2] = 0
    match_ngrams(symbols, order, h, text, table, row[2:], 3)


@kernel
def f_score(row: np.ndarray, beta: float, smooth: bool) -> float:
    """F in 0..100 of the three counts of every order (float64 [3 * orders]).

    F = (1 + β²)·P·R / (β²·P + R), where P and R are means over the orders that both sides have; with ``smooth``, the
    mean of the orders' F instead, with EPSILON in place of a missing P, R or F.
    """
    factor, orders = beta * beta, row.shape[0] // 3
    both, mean_precision, mean_recall, total = 0, 0.0, 0.0, 0.0
    for n in range(orders):
        text, reference, matched = row[3 * n], row[3 * n + 1], row[3 * n + 2]
        precision = matched / text if text > 0 else EPSILON
        recall = matched / reference if reference > 0 else EPSILON
        denominator = factor * precision + recall
        total += (1 + factor) * precision * recall / denominator if denominator > 0 else EPSILON
        if text > 0 and reference > 0:
            mean_precision += precision
            mean_recall += recall
            both += 1
    if smooth:
        return float(100 * total / orders)
    if mean_precision + mean_recall == 0.0:
        return 0.0
    mean_precision /= both
    mean_recall /= both
    score = (1 + factor) * mean_precision * mean_recall / (factor * mean_precision + mean_recall)
    return float(100 * score)


@kernel
def f_scores(rows: np.ndarray, beta: float, smooth: bool, scores: np.ndarray) -> None:
    """``f_score`` for every row: float64 [n, 3 * orders] → [n]."""
    for i in range(rows.shape[0]):
        scores[i] = f_score(rows[i], beta, smooth)


@kernel
def chrf_rows(
    first: np.ndarray, points: np.ndarray, word_first: np.ndarray, hashes: np.ndarray, references: int,
    char_order: int, word_order: int, beta: float, smooth: bool, table: NgramTable, row: np.ndarray, best: np.ndarray,
    rows: np.ndarray,
) -> None:  # fmt: skip
    """Counts for the texts after the first ``references`` ones, each against the reference with the best F.

    ``row`` (float64 [3 * orders]) and ``best`` (float64 [N]) are scratch; ``rows`` (float64 [N, 3 * orders]) is the
    result. Of equally good references, the first counts.
    """
    best[:] = -1.0
    for r in range(references):
        here, those = points[first[r] : first[r + 1]], hashes[word_first[r] : word_first[r + 1]]
        table.keys[:] = FREE
        enter_ngrams(here, char_order, _CHARACTERS, r, table)
        enter_ngrams(those, word_order, _WORDS, r, table)
        for y in range(rows.shape[0]):
            t = references + y
            characters, words = points[first[t] : first[t + 1]], hashes[word_first[t] : word_first[t + 1]]
            _count(characters, here.shape[0], char_order, _CHARACTERS, t, table, row)
            _count(words, those.shape[0], word_order, _WORDS, t, table, row[3 * char_order :])
            f = f_score(row, beta, smooth)
            if f > best[y]:
                best[y] = f
                for k in range(row.shape[0]):
                    rows[y, k] = row[k]
