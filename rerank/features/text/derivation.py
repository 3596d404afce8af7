"""Segmentations and word alignments of candidates: from the texts that decoders write to spans and points."""

import numpy as np

from rerank.kernels.compile import kernel

MALFORMED, SOURCE, TARGET, ORDER = 1, 2, 3, 4  # what can be wrong
WHY, CANDIDATE, PLACE = 0, 1, 2  # what ``problem`` says
SOURCE_BEGIN, SOURCE_END, TARGET_BEGIN, TARGET_END = 0, 1, 2, 3  # of a phrase in ``spans``
SOURCE_WORD, TARGET_WORD = 0, 1  # of a point in ``points``
MOST = 1 << 30  # larger numbers are cut to this


@kernel
def is_blank(c: int) -> bool:
    """Is this ASCII white space?"""
    return c == 32 or 9 <= c <= 13


@kernel
def _number(data: np.ndarray, p: int) -> tuple[int, int]:
    """(number, end) of the digits at p; (-1, p) if there are none."""
    begin, value = p, 0
    while p < data.shape[0] and 48 <= data[p] <= 57:
        value = min(10 * value + data[p] - 48, MOST)
        p += 1
    return (value, p) if p > begin else (-1, p)


@kernel
def _span(data: np.ndarray, p: int) -> tuple[int, int, int]:
    """(first, last, end) of ``5`` or ``5-7`` at p; first is -1 if neither is there."""
    first, p = _number(data, p)
    last = first
    if first >= 0 and p < data.shape[0] and data[p] == 45:
        last, p = _number(data, p + 1)
    return (first, last, p) if last >= first else (-1, -1, p)


@kernel
def _fail(problem: np.ndarray, why: int, y: int, at: int) -> int:
    problem[WHY], problem[CANDIDATE], problem[PLACE] = why, y, at
    return -1


@kernel
def read_spans(
    data: np.ndarray, source: int, lengths: np.ndarray, first: np.ndarray, spans: np.ndarray, problem: np.ndarray
) -> int:
    """Parse segmentations, one line per candidate: ``5-7=5`` says that source words 5 to 7 gave target word 5.

    Spans go to ``spans`` (int32 [:, 4]: source first, last + 1, target first, last + 1), offsets to ``first``. A
    phrase whose one target word is also the first of the next phrase, or would lie just after the candidate's end, is a
    word that was dropped: its target span is empty, as Moses means it. Returns the number of phrases; -1 if one is
    malformed or points outside the texts, and then ``problem`` gets (why, candidate, place in ``data``).
    """
    n, p = 0, 0
    for y in range(lengths.shape[0]):
        first[y] = n
        while p < data.shape[0] and data[p] != 10:
            if is_blank(data[p]):
                p += 1
                continue
            at = p
            a, b, p = _span(data, p)
            if a < 0 or p >= data.shape[0] or data[p] != 61:
                return _fail(problem, MALFORMED, y, at)
            c, d, p = _span(data, p + 1)
            if c < 0 or (p < data.shape[0] and not is_blank(data[p])):
                return _fail(problem, MALFORMED, y, at)
            if b >= source:
                return _fail(problem, SOURCE, y, at)
            stop = d + 1 if c < lengths[y] or d > c else c
            if stop > lengths[y]:
                return _fail(problem, TARGET, y, at)
            if n > first[y] and spans[n - 1, TARGET_END] > c:
                if spans[n - 1, TARGET_BEGIN] != c or spans[n - 1, TARGET_END] != c + 1:
                    return _fail(problem, ORDER, y, at)
                spans[n - 1, TARGET_END] = c
            spans[n, SOURCE_BEGIN], spans[n, SOURCE_END] = a, b + 1
            spans[n, TARGET_BEGIN], spans[n, TARGET_END] = c, stop
            n += 1
        p += 1
    first[lengths.shape[0]] = n
    return n


@kernel
def read_points(
    data: np.ndarray, source: int, lengths: np.ndarray, first: np.ndarray, points: np.ndarray, problem: np.ndarray
) -> int:
    """Parse word alignments, one line per candidate: ``2-3`` aligns source word 2 with target word 3.

    Points go to ``points`` (int32 [:, 2]); the rest is as in ``read_spans``.
    """
    n, p = 0, 0
    for y in range(lengths.shape[0]):
        first[y] = n
        while p < data.shape[0] and data[p] != 10:
            if is_blank(data[p]):
                p += 1
                continue
            at = p
            s, p = _number(data, p)
            if s < 0 or p >= data.shape[0] or data[p] != 45:
                return _fail(problem, MALFORMED, y, at)
            t, p = _number(data, p + 1)
            if t < 0 or (p < data.shape[0] and not is_blank(data[p])):
                return _fail(problem, MALFORMED, y, at)
            if s >= source:
                return _fail(problem, SOURCE, y, at)
            if t >= lengths[y]:
                return _fail(problem, TARGET, y, at)
            points[n, SOURCE_WORD], points[n, TARGET_WORD] = s, t
            n += 1
        p += 1
    first[lengths.shape[0]] = n
    return n
