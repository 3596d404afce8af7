"""BLEU's counts for all candidates of a list, and its formula on rows of them.

There are two ways to the same counts. With one reference of at most 64 words, an n-gram is the set of places where it
ends in the reference, in 64 bits. In general, it is the running hash of its words, and a table holds the hashes of the
references. Words are hashes of 64 bits; it is negligibly rare that two words or n-grams of a list share one.
"""

import math

import numpy as np

from rerank.kernels.compile import kernel
from rerank.metrics.ngrams import NgramTable, enter_ngrams, match_ngrams
from rerank.metrics.words import cut

ORDER = 4
# Columns of a candidate's row: matched n-grams, n-grams, words, closest reference length minus the shortest one.
CORRECT, TOTAL, LENGTH, CLOSEST_SHIFT = 0, ORDER, 2 * ORDER, 2 * ORDER + 1
COLUMNS = 2 * ORDER + 2
# What is done about n-grams without a match (Chen & Cherry 2014).
NONE, FLOOR, ADD_K, EXP = range(4)
PLACES = 64  # the longest reference that sets of places can describe
SLOTS = 2 * PLACES  # in the table of its words
SPACE = 2 * SLOTS
_ONE, _TWO = np.uint64(1), np.uint64(2)


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
    """Counts of the candidates of a list → ``rows`` (float64 [N, COLUMNS]).

    ``first, hashes`` are the words of the references, then of the candidates (see tokens.Tokens). Returns the length of
    the shortest reference.
    """
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
def count_ngrams(words: int, row: np.ndarray) -> None:
    """Store in ``row`` how many n-grams a text of ``words`` words has."""
    row[LENGTH] = words
    for n in range(ORDER):
        row[TOTAL + n] = max(words - n, 0)


@kernel
def _take(places: np.uint64, free: np.uint64) -> np.uint64:
    """``free`` without the first of ``places`` in it; unchanged if none is."""
    both = places & free
    return free ^ (both & (~both + _ONE))


@kernel
def _find_word(table: np.ndarray, h: np.uint64) -> np.uint64:
    """The place of word ``h`` in ``table`` (uint64 [2 * SLOTS]: hash, 0: free, alternating with places), or a free
    slot."""
    at = _TWO * h % np.uint64(2 * SLOTS)
    while table[at] != h and table[at] != np.uint64(0):
        at = (at + _TWO) % np.uint64(2 * SLOTS)
    return at


@kernel
def bleu_rows_places(data: np.ndarray, first: np.ndarray, space: np.ndarray, rows: np.ndarray) -> int:
    """``bleu_rows`` for one reference of at most PLACES words; it also cuts the texts (see words.joined) into words.

    ``first`` (int64 [T + 1]) and ``space`` (uint64, SPACE and what ``words.cut`` needs) are scratch. Returns -1 if
    the reference is longer or a text has a NUL.

    The places where an n-gram ends are those of its last word that are one after those of the (n - 1)-gram before it.
    An occurrence in the text takes one of them; if none is left, the text has more occurrences than the reference.
    """
    table, hashes = space[:SPACE], space[SPACE:]
    if not cut(data, first, hashes) or first[1] > PLACES:
        return -1
    table[:] = 0
    for i in range(first[1]):
        at = _find_word(table, hashes[i])
        table[at] = hashes[i]
        table[at + _ONE] |= _ONE << np.uint64(i)
    for y in range(rows.shape[0]):
        p1 = p2 = p3 = np.uint64(0)  # places of the n-grams that end before the next word
        f1 = f2 = f3 = f4 = ~np.uint64(0)  # places not taken yet, by order
        c1 = c2 = c3 = c4 = 0
        for i in range(first[y + 1], first[y + 2]):
            word = table[_find_word(table, hashes[i]) + _ONE]
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
