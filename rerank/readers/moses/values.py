"""The numbers of a block of a Moses-style file.

Kernels read most of them; they leave aside what one floating-point operation cannot give, and this module reads it or
says what is wrong with it.
"""

from typing import NamedTuple

import numpy as np

from rerank.readers.base import Problem, excerpt
from rerank.readers.decimal_kernel import POWERS
from rerank.readers.moses.kernel import FIRST, Entries, parse_entries, parse_totals
from rerank.readers.moses.layout import Layout, as_number
from rerank.readers.moses.lines import MosesBlock
from rerank.readers.texts.named_columns import OF_WORDS


class Values(NamedTuple):
    """The labelled values and totals of n lines."""

    entries: Entries
    length: int  # number of entries
    totals: np.ndarray  # float64 [n]: 0 if there is none
    words: np.ndarray  # float64 [n, 4]: the columns ``OF_WORDS``; [n, 0] if the lines have no scores of words
    problems: dict[int, Problem]  # the lines with something that is not a number


def read_values(block: MosesBlock, layout: Layout, right: np.ndarray) -> Values:
    """The numbers of the lines that have the ``layout`` (``right``, bool [n])."""
    n, problems = len(block.rows), dict[int, Problem]()  # the first problem of a line stays
    entries, count = _entries(block, layout.features, right, problems)
    words = np.empty((n, 0)) if layout.words < 0 else _of_words(*_entries(block, layout.words, right, problems))
    totals, slow = np.zeros(n), np.empty((n, 4), np.int64)
    if layout.score >= 0:
        data, scores = np.frombuffer(block.data, np.uint8), _spans(block, layout.score, right)
        undecided = parse_totals(data, scores, right, POWERS, totals, slow)
        _decide(block, slow[:undecided], totals, problems, "the candidate's score")
    return Values(entries, count, totals, words, problems)


def _entries(block: MosesBlock, field: int, right: np.ndarray, problems: dict[int, Problem]) -> tuple[Entries, int]:
    """The labelled values in a field of every line, and how many there are."""
    # Lines of another layout have empty spans: they have no entries, and their fields are reported as the problem.
    spans = _spans(block, field, right)
    # Kernels cannot allocate, so the arrays have room for as many entries as the bytes may hold.
    room = _room(spans, block.pieces)
    entries = Entries(
        np.empty(len(spans) + 1, np.int64), np.empty(room, np.uint64), np.empty(room, np.float64),
        np.empty((room, 2), np.int64), np.empty(room, np.int32), np.empty(room, np.bool_),
    )  # fmt: skip
    slow = np.empty((room, 4), np.int64)
    count, undecided = parse_entries(np.frombuffer(block.data, np.uint8), spans, POWERS, entries, slow)
    _decide(block, slow[:undecided], entries.values, problems, "a number")
    return entries, count


def _of_words(entries: Entries, count: int) -> np.ndarray:
    """float64 [n, 4]: sum, mean, least and number of the values of every line."""
    sizes, values = np.diff(entries.first), entries.values[:count]
    found = np.zeros((len(sizes), len(OF_WORDS)))
    found[:, 0] = np.bincount(np.repeat(np.arange(len(sizes)), sizes), values, len(sizes))
    found[:, 1] = found[:, 0] / np.maximum(sizes, 1)
    if count:
        found[sizes > 0, 2] = np.minimum.reduceat(values, entries.first[:-1][sizes > 0])
    found[:, 3] = sizes
    return found


def _spans(block: MosesBlock, field: int, right: np.ndarray) -> np.ndarray:
    """int64 [n, 2]: the bounds of a field in every line; empty for lines that do not have the layout."""
    spans = np.zeros((len(right), 2), np.int64)
    if field >= 0:
        spans[right] = block.rows[right, FIRST + 2 * field : FIRST + 2 * field + 2]
    return spans


def _room(spans: np.ndarray, pieces: int) -> int:
    """At least the number of pieces in ``spans``, plus one per span, for a label without values.

    ``pieces``: an upper bound for the whole lines.
    """
    # A piece takes a byte at least, and another separates two. ``pieces`` is the lower bound where labels are long.
    return min(pieces, int(((spans[:, 1] - spans[:, 0] + 1) // 2).sum())) + len(spans)


def _decide(
    block: MosesBlock, slow: np.ndarray, values: np.ndarray, problems: dict[int, Problem], expected: str
) -> None:
    """Read the numbers that the kernels left aside, or note that they are not numbers."""
    for entry, line, begin, end in slow.tolist():
        text = block.data[begin:end]
        value = as_number(text) if entry >= 0 else None
        if value is not None:
            values[entry] = value
        elif line not in problems:
            found = excerpt(text) if text else "an empty field"
            where = " after it" if entry < 0 else ""
            problems[line] = Problem("score", f"found {found}; expected {expected}{where}")
