"""Translation edit rate (Snover et al. 2006): the fewest edits that a greedy search over block shifts finds.

An edit replaces, inserts or deletes a word, or moves a block of words to another place. Of the many ways to read the
paper, this is tercom's: limits on blocks, which blocks are tried, where they may go, and which of several wins.
"""

from typing import NamedTuple

import numpy as np

from rerank.kernels.compile import kernel

MAX_BLOCK = 10  # words in a block
MAX_DISTANCE = 50  # between a block and its match in the reference
MAX_TRIED = 1000  # shifts tried in a sentence; the search ends with the round that reaches this
BEAM = 25  # the edit distance considers so many words on both sides of the diagonal
FAR = 1 << 29  # a distance that is not reached


class TerSpace(NamedTuple):
    """Scratch for hypotheses of at most H words and references of at most R words; W is the larger number."""

    words: np.ndarray  # uint64 [W]: the hypothesis as it is
    shifted: np.ndarray  # uint64 [W]: with the shift that is tried
    best: np.ndarray  # uint64 [W]: with the best shift
    table: np.ndarray  # int32 [H + 1, R + 1]: distances of the prefixes of ``words`` to those of the reference
    shifted_table: np.ndarray  # int32 [H + 1, R + 1]: the same for ``shifted``
    aligned: np.ndarray  # int64 [W]: for a word of the reference, the last hypothesis word aligned with it, or -1
    wrong: np.ndarray  # bool [W]: words of the hypothesis that take an edit
    wrong_reference: np.ndarray  # bool [W]: words of the reference that take one


def ter_space(longest: int, longest_reference: int) -> TerSpace:
    """Scratch for texts and references of at most these numbers of words."""
    size = max(longest, longest_reference)
    words, shifted, best = np.empty((3, size), np.uint64)
    table, shifted_table = np.empty((2, longest + 1, longest_reference + 1), np.int32)
    wrong, wrong_reference = np.empty((2, size), np.bool_)
    return TerSpace(words, shifted, best, table, shifted_table, np.empty(size, np.int64), wrong, wrong_reference)


@kernel
def _copy(source: np.ndarray, count: int, target: np.ndarray) -> None:
    """Copy the first ``count`` elements to ``target``; slices on both sides would allocate."""
    for i in range(count):
        target[i] = source[i]


@kernel
def extend_distances(table: np.ndarray, words: np.ndarray, n: int, reference: np.ndarray, begin: int, most: int) -> int:
    """Fill rows begin + 1..n of the Levenshtein ``table`` of ``words[:n]`` and ``reference``; returns the distance.

    Columns farther than a beam from the diagonal are out of reach. Once the distance is known to be above ``most``, FAR
    is returned and the table is left unfinished.
    """
    m = reference.shape[0]
    slope = m / n if n > 0 else 1.0
    beam = max(BEAM, int(np.ceil(slope / 2.0 + BEAM))) if slope / 2.0 > BEAM else BEAM
    if begin == 0:
        for j in range(m + 1):
            table[0, j] = j
    for i in range(begin + 1, n + 1):
        low, high = max(0, int(np.floor(i * slope)) - beam), m + 1
        if i < n:
            high = min(high, int(np.floor(i * slope)) + beam)
        if low > 0:
            table[i, low - 1] = FAR  # the next row looks one column to the left of its own
        for j in range(high, m + 1 if i + 1 >= n else min(m + 1, int(np.floor((i + 1) * slope)) + beam)):
            table[i, j] = FAR
        word, least, left = words[i - 1], FAR, FAR
        for j in range(low, high):
            here = table[i - 1, j] + 1
            if j > 0:
                here = min(here, table[i - 1, j - 1] + (reference[j - 1] != word), left + 1)
            table[i, j] = here
            left = here
            least = min(least, here)
        if least > most:
            return FAR
    return int(table[n, m])


@kernel
def align_words(space: TerSpace, n: int, reference: np.ndarray) -> None:
    """Walk back through the table of ``words``: which words are aligned, which are wrong.

    Among equally cheap steps, a pair of words precedes a hypothesis word alone, which precedes a reference word alone.
    """
    table, words = space.table, space.words
    i, j = n, reference.shape[0]
    while i > 0 or j > 0:
        pair = i > 0 and j > 0
        differ = pair and words[i - 1] != reference[j - 1]
        if pair and table[i, j] == table[i - 1, j - 1] + differ:
            i, j = i - 1, j - 1
            space.aligned[j], space.wrong[i], space.wrong_reference[j] = i, differ, differ
        elif i > 0 and table[i, j] == table[i - 1, j] + 1:
            i -= 1
            space.wrong[i] = True
        else:
            j -= 1
            space.aligned[j], space.wrong_reference[j] = i - 1, True


@kernel
def _move(words: np.ndarray, n: int, block: int, size: int, to: int, moved: np.ndarray) -> int:
    """Write ``words[:n]`` to ``moved`` with the block after the word ``to`` - 1; returns where the two first differ.

    A place inside the block means as many words after the block as ``to`` is after its beginning.
    """
    if block <= to <= block + size:
        to += size
    to = min(to, n)
    k = 0
    for i in range(n + 1):
        if i == to:
            for b in range(block, block + size):
                moved[k] = words[b]
                k += 1
        if i < n and not block <= i < block + size:
            moved[k] = words[i]
            k += 1
    return min(block, to)


@kernel
def _before(size: int, block: int, place: int, size2: int, block2: int, place2: int) -> bool:
    """The order of equally good shifts: the longest block wins, then the leftmost block, then the leftmost place."""
    if size != size2:
        return size > size2
    if block != block2:
        return block < block2
    return place < place2


@kernel
def best_shift(space: TerSpace, n: int, reference: np.ndarray, tried: int) -> tuple[int, int]:
    """Leave ``words`` with its best shift in ``best``; returns the distance saved, and all shifts tried."""
    m, now = reference.shape[0], int(space.table[n, reference.shape[0]])
    words, shifted = space.words, space.shifted
    gain, size_of, block_of, place_of = -FAR, 0, 0, 0
    for block in range(n):
        for match in range(max(0, block - MAX_DISTANCE), min(m, block + MAX_DISTANCE + 1)):
            wrong_here, wrong_there, size = False, False, 0
            while (
                size < MAX_BLOCK and block + size < n and match + size < m
                and words[block + size] == reference[match + size]
            ):  # fmt: skip
                wrong_here |= space.wrong[block + size]
                wrong_there |= space.wrong_reference[match + size]
                size += 1
                if not (wrong_here and wrong_there) or block <= space.aligned[match] < block + size:
                    continue  # nothing to correct here or there, or the place is in the block
                before = -1
                for offset in range(-1, size):
                    place = space.aligned[match + offset] + 1 if match + offset >= 0 else 0
                    if place == before:
                        continue
                    before = place
                    tried += 1
                    same = _move(words, n, block, size, place, shifted)
                    _copy(space.table[same], m + 1, space.shifted_table[same])
                    most = now - gain  # with the same distance, a longer or more leftward shift wins
                    saved = now - extend_distances(space.shifted_table, shifted, n, reference, same, most)
                    if saved > gain or (saved == gain and _before(size, block, place, size_of, block_of, place_of)):
                        gain, size_of, block_of, place_of = saved, size, block, place
                        _copy(shifted, n, space.best)
            if tried >= MAX_TRIED:
                return gain, tried
    return gain, tried


@kernel
def edits(hypothesis: np.ndarray, reference: np.ndarray, space: TerSpace) -> int:
    """Edits and shifts from ``hypothesis`` to ``reference`` (uint64 hashes of words)."""
    n, m = hypothesis.shape[0], reference.shape[0]
    if m == 0:
        return int(n)
    shifts, tried = 0, 0
    _copy(hypothesis, n, space.words)
    distance = extend_distances(space.table, space.words, n, reference, 0, FAR)
    while distance > 0:
        align_words(space, n, reference)
        gain, tried = best_shift(space, n, reference, tried)
        if tried >= MAX_TRIED or gain <= 0:
            break
        _copy(space.best, n, space.words)
        distance = extend_distances(space.table, space.words, n, reference, 0, FAR)
        shifts += 1
    return int(shifts + distance)


@kernel
def ter_rows(
    first: np.ndarray, hashes: np.ndarray, references: int, space: TerSpace, reference: np.ndarray, rows: np.ndarray
) -> None:
    """Edits of the texts after the first ``references`` ones, each to the reference with the fewest edits.

    ``first``, ``hashes``: words of all texts (see tokens.Tokens). ``reference`` (float64 [2]) gets the edits of an
    empty text and the references' mean length; ``rows`` (float64 [N, 1]) gets how many more edits a text takes.
    """
    least, total = FAR, 0
    for r in range(references):
        length = first[r + 1] - first[r]
        least, total = min(least, length), total + length
    reference[0], reference[1] = least, total / references
    for y in range(rows.shape[0]):
        t, fewest = references + y, FAR
        for r in range(references):
            count = edits(hashes[first[t] : first[t + 1]], hashes[first[r] : first[r + 1]], space)
            fewest = min(fewest, count)
        rows[y, 0] = fewest - least
