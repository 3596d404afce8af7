"""The features of blocks of lists: in one go where every template gives columns (``Template.columns``) for whole
blocks, to the bit those that the same lists have one by one.
"""

from typing import NamedTuple

import numpy as np

from rerank.data.corpus import offsets
from rerank.data.symbols import SymbolTable, combined
from rerank.features.collecting import ListFeatures, find_origin, narrow, write_row
from rerank.features.extract import FeatureExtractor
from rerank.kernels.compile import kernel
from rerank.readers.lists import Lists


class BlockFeatures(NamedTuple):
    """The features of L lists, list by list, with their values (E entries)."""

    named: ListFeatures  # the F' different ones, whose values nobody looks at
    times: np.ndarray | None  # int64 [F']: the number of lists in which each of them varies; None: one
    counts: np.ndarray  # int64 [L]: how many each list has
    place: np.ndarray | slice  # int64 [F]: each by its place among the different ones
    entries: np.ndarray  # int64 [F]
    origin: np.ndarray  # float32 [F]
    candidate: np.ndarray  # int32 [E], counted in its list
    value: np.ndarray  # float32 [E]

    @staticmethod
    def of(one: ListFeatures) -> "BlockFeatures":
        """Those of a single list."""
        counts, entries = np.array([one.hashes.size]), np.diff(one.first)
        return BlockFeatures(one, None, counts, slice(None), entries, one.origin, one.candidate, one.value)


@kernel
def collect_lists(
    lists: np.ndarray, columns: np.ndarray, centred: bool, relative: bool, row: np.ndarray, counts: np.ndarray,
    place: np.ndarray, entries: np.ndarray, origin: np.ndarray, candidate: np.ndarray, value: np.ndarray,
) -> tuple[int, int]:  # fmt: skip
    """``collecting.collect`` for features that fire once in every candidate, with the values ``columns`` (float64
    [N, F]); returns how many features vary, each in its list, and how many entries they have."""
    feature, entry = 0, 0
    for i in range(lists.shape[0] - 1):
        first, size = lists[i], lists[i + 1] - lists[i]
        values = row[:size]
        for j in range(columns.shape[1]):
            narrow(columns[first : first + size, j], candidate, -1, relative, values)
            stored, least = find_origin(values, candidate, -1, centred)
            if stored > 0:
                place[feature], entries[feature], origin[feature] = j, stored, least
                entry = write_row(values, candidate, -1, least, candidate, value, entry)
                feature += 1
                counts[i] += 1
    return feature, entry


def flat_features(extractor: FeatureExtractor, symbols: SymbolTable, rows: Lists, lists: np.ndarray) -> BlockFeatures:
    """The features of lists (int64 [L + 1]) whose candidates are ``rows``; the symbols of their names are added to
    ``symbols``."""
    kinds, full, names, columns = list[int](), list[int](), list[list[int]](), list[np.ndarray]()
    for kind, template in enumerate(extractor.templates):
        for name, values in (template.columns(rows, lists) or {}).items():
            names.append(list(map(symbols.hash_of, name)))
            full.append(combined(template.seed, *names[-1]))
            kinds.append(kind)
            columns.append(values)
    L, N, F = lists.size - 1, len(rows), len(columns)
    counts, place, entries = np.zeros(L, np.int64), np.empty(L * F, np.int64), np.empty(L * F, np.int64)
    origin, candidate, value = (
        np.empty(L * F, np.float32),
        np.empty(N * F + 1, np.int32),
        np.empty(N * F + 1, np.float32),
    )
    row, matrix = np.empty(int(np.diff(lists).max(initial=0)), np.float32), np.zeros((N, F))
    for j, values in enumerate(columns):
        matrix[:, j] = values
    out = counts, place, entries, origin, candidate, value
    features, stored = collect_lists(lists, matrix, extractor.centred, extractor.relative, row, *out)
    place, ends = place[:features], offsets(list(map(len, names)))
    times = np.bincount(place, minlength=F)
    varying = np.flatnonzero(times)
    hashes, nothing = np.array(full, np.uint64)[varying], np.empty(0, np.float32)
    named = ListFeatures(
        hashes | np.uint64(1), hashes, np.array(kinds, np.int32)[varying],
        np.array([symbol for of_one in names for symbol in of_one], np.uint64), ends[:-1][varying], ends[1:][varying],
        ends[:1], nothing.astype(np.int32), nothing, nothing,
    )  # fmt: skip
    return BlockFeatures(
        named, times[varying], counts, (np.cumsum(times > 0) - 1)[place], entries[:features], origin[:features],
        candidate[:stored], value[:stored],
    )  # fmt: skip
