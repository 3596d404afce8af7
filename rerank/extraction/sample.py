"""A description of the lists of a split: a digest of each, and what its score columns hold.

A digest tells a list that appears again, whatever file it is in. Of more than ``SAMPLE_SIZE`` lists those with the
smallest digests are kept: a random sample, and one that has the lists which two splits share, if they are in it at all,
on both sides (Broder 1997). Lists of fewer than two candidates, from which nothing is chosen, are left out.

A score column has three measures in a list: its mean, its standard deviation, and its correlation with the base score.
"""

import hashlib
from collections.abc import Iterable, Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np

from rerank.data.corpus import FLOAT32_MAX
from rerank.readers.lists import Lists

SAMPLE_SIZE = 10_000
MEASURES = 5  # of a column in a list, see ``measure_columns``
MEAN, SPREAD, AGREEMENT, LOWEST, HIGHEST = range(MEASURES)


class ListSample(NamedTuple):
    """S lists in the order of their digests, with C score columns, the base score's first."""

    digests: np.ndarray  # uint64 [S]
    measures: np.ndarray  # float64 [S, C, MEASURES]
    lengths: np.ndarray  # int64 [S, 2]: bytes of the best and of the first reference; 0 without one, or with answers

    @property
    def scored(self) -> bool:
        """Whether some list has base scores other than 0."""
        return bool(self.ranges[:, 0].any())

    @property
    def ranges(self) -> np.ndarray:
        """float64 [S, C, 2]: the least and the greatest value of every column."""
        return self.measures[:, :, LOWEST:]


def measure_columns(values: np.ndarray) -> np.ndarray:
    """The measures of every column in lists of one size (``values`` float64 [..., N, C], float64 [..., C, MEASURES]):
    its mean, standard deviation and correlation with the first column, 0 where one of them is constant, its least and
    its greatest value.

    Values beyond ±FLOAT32_MAX count as that, so that their squares are finite.
    """
    values, size = np.clip(values, -FLOAT32_MAX, FLOAT32_MAX), values.shape[-2]
    least, greatest = values.min(axis=-2), values.max(axis=-2)
    mean = np.where(least == greatest, least, _sum_rows(values) / size)
    apart = values - mean[..., None, :]
    squares, products = _sum_rows(apart**2), _sum_rows(apart * apart[..., :1])
    spread = np.sqrt(squares / size)
    of_both = np.sqrt(squares * (spread[..., :1] * spread[..., :1] * size))
    agreement = np.divide(products, of_both, out=np.zeros(mean.shape), where=of_both > 0)
    agreement[..., 0] = 0.0
    return np.stack([mean, spread, agreement, least, greatest], axis=-1)


def _sum_rows(rows: np.ndarray) -> np.ndarray:
    """Sums of columns from the first row to the last, whatever order numpy would prefer."""
    return np.asarray(np.add.accumulate(rows, axis=-2)[..., -1, :])


def values_of(nbest: Lists, columns: Sequence[str]) -> np.ndarray:
    """float64 [N, C]: the base scores of a list, and its score columns after the first of ``columns``."""
    names = nbest.with_names().names if len(columns) > 1 else ()
    indices = [nbest.column, *(names.index(name) for name in columns[1:])]
    return np.array(nbest.scores[:, indices], np.float64, order="C")


def digest(source: bytes | None, texts: Sequence[bytes], values: bytes) -> int:
    """64 bits that tell a list from others: its source, its candidates and their scores."""
    content = b"\0".join([source or b"", *map(bytes.strip, texts)])
    return int.from_bytes(hashlib.blake2b(values + content, digest_size=8).digest(), "little")


class ListSampler:
    """Collects lists that have ``columns``, the base score's first."""

    def __init__(self, columns: Sequence[str]) -> None:
        self._columns, self._rows = columns, list[tuple[int, np.ndarray, tuple[int, int]]]()

    def add(self, lists: Lists) -> None:
        """Add lists."""
        first, sizes = lists.first, np.diff(lists.first)
        values, base, texts, answers = values_of(lists, self._columns), lists.base, lists.texts, lists.answers
        data, row = memoryview(values.astype("<f8").tobytes()), 8 * values.shape[1]
        sources, references = lists.side("source"), lists.side("references")
        measures = np.zeros((lists.list_count, len(self._columns), MEASURES))
        for size in np.unique(sizes[sizes > 1]).tolist():
            alike = np.flatnonzero(sizes == size)
            measures[alike] = measure_columns(values[first[alike, None] + np.arange(size)])
        for i in np.flatnonzero(sizes > 1).tolist():
            a, b = first[i : i + 2].tolist()
            key = digest(sources[i], texts[a:b], bytes(data[a * row : b * row]))
            right = () if any(answers[a:b] if answers else ()) else references[i]
            lengths = (len(texts[a + int(base[a:b].argmax())]), len(right[0])) if right else (0, 0)
            self._rows.append((key, measures[i], lengths))

    def finish(self) -> ListSample:
        """The lists that were added."""
        S = len(self._rows)
        digests, measures, lengths = zip(*self._rows, strict=True) if S else ((), (), ())
        arrays = np.reshape(measures, (S, len(self._columns), MEASURES)), np.reshape(lengths, (S, 2)).astype(np.int64)
        return _smallest(ListSample(np.array(digests, np.uint64), *arrays))


def sample(parts: Iterable[ListSample]) -> ListSample:
    """The lists of all parts, of which there must be one, or a sample of them."""
    return reduce(lambda one, other: _smallest(ListSample(*map(np.concatenate, zip(one, other, strict=True)))), parts)


def _smallest(lists: ListSample) -> ListSample:
    """At most ``SAMPLE_SIZE`` of the lists, in the order of their digests."""
    order = np.argsort(lists.digests, kind="stable")[:SAMPLE_SIZE]
    return ListSample(*(array[order] for array in lists))


def shared(others: np.ndarray, digests: np.ndarray) -> tuple[int, int]:
    """The number of lists of a sample (its ``digests``) that another has too, and of those for which that is known."""
    limit = min((own[-1] for own in (others, digests) if own.size >= SAMPLE_SIZE), default=np.uint64(-1 % (1 << 64)))
    looked_at = digests[digests <= limit]
    return int(np.isin(looked_at, others).sum()), int(looked_at.size)
