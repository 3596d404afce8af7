"""A description of the lists of a split: a digest of each, and what its score columns hold.

A digest tells a list that appears again, whatever file it is in. Of more than ``MOST`` lists those with the smallest
digests are kept: a random sample, and one that has the lists which two splits share, if they are in it at all, on both
sides (Broder 1997). Lists of fewer than two candidates, from which nothing is chosen, are left out.
"""

import hashlib
from collections.abc import Iterable, Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np

from rerank.features.scores import FLOAT32_MAX
from rerank.kernels.compile import kernel
from rerank.readers.lists import Lists

MOST = 10_000
MEASURES = 5  # of a column in a list, see ``measure``
MEAN, SPREAD, AGREEMENT, LEAST, GREATEST = range(MEASURES)


class SeenSample(NamedTuple):
    """S lists in the order of their digests, with C score columns, the base score's first."""

    digests: np.ndarray  # uint64 [S]
    measures: np.ndarray  # float64 [S, C, MEASURES]
    lengths: np.ndarray  # int64 [S, 2]: see ``lengths_of``

    @property
    def scored(self) -> bool:
        """Whether some list has base scores other than 0."""
        return bool(self.measures[:, 0, LEAST:].any())


@kernel
def measure(values: np.ndarray, limit: float, found: np.ndarray) -> None:
    """The measures of every column (``values`` float64 [N, C] → ``found`` float64 [C, MEASURES]): its mean, standard
    deviation and correlation with the first column, 0 where one of them is constant, its least and its greatest value.

    Values beyond ±limit count as ±limit, so that their squares are finite.
    """
    size = values.shape[0]
    for c in range(values.shape[1]):
        total, least, greatest = 0.0, limit, -limit
        for y in range(size):
            values[y, c] = min(max(values[y, c], -limit), limit)
            total += values[y, c]
            least, greatest = min(least, values[y, c]), max(greatest, values[y, c])
        mean, squares, products, base = total / size, 0.0, 0.0, found[0, SPREAD] * found[0, SPREAD] * size
        if least == greatest:
            mean = least
        else:
            for y in range(size):
                squares += (values[y, c] - mean) ** 2
                products += (values[y, c] - mean) * (values[y, 0] - found[0, MEAN])
        found[c, MEAN], found[c, SPREAD] = mean, np.sqrt(squares / size)
        found[c, LEAST], found[c, GREATEST] = least, greatest
        found[c, AGREEMENT] = products / np.sqrt(squares * base) if c > 0 and squares > 0.0 and base > 0.0 else 0.0


@kernel
def measure_lists(lists: np.ndarray, values: np.ndarray, limit: float, found: np.ndarray) -> None:
    """``measure`` lists one after the other, list i from lists[i] to lists[i + 1] (int64 [L + 1]): ``found`` float64
    [L, C, MEASURES]."""
    for i in range(lists.shape[0] - 1):
        measure(values[lists[i] : lists[i + 1]], limit, found[i])


def measured(values: np.ndarray) -> np.ndarray:
    """float64 [C, MEASURES]: to the bit what ``measure`` gives for a list (``values`` float64 [N, C]), without compiled
    code, which takes longer to load than a list to measure."""
    values, size = np.clip(values, -FLOAT32_MAX, FLOAT32_MAX), len(values)
    least, greatest = values.min(axis=0), values.max(axis=0)
    apart = values - (mean := np.where(least == greatest, least, _summed(values) / size))
    squares, products = _summed(apart**2), _summed(apart * apart[:, :1])
    spread = np.sqrt(squares / size)
    of_both = np.sqrt(squares * (spread[0] * spread[0] * size))
    agreement = np.divide(products, of_both, out=np.zeros(mean.size), where=of_both > 0)
    agreement[0] = 0.0
    return np.stack([mean, spread, agreement, least, greatest], axis=1)


def _summed(rows: np.ndarray) -> np.ndarray:
    """Sums of columns from the first row to the last."""
    return np.asarray(np.add.accumulate(rows, axis=0)[-1])


def values_of(nbest: Lists, columns: Sequence[str]) -> np.ndarray:
    """float64 [N, C]: the base scores of a list, and its score columns after the first of ``columns``."""
    names = nbest.named().names if len(columns) > 1 else ()
    places = [nbest.column, *(names.index(name) for name in columns[1:])]
    return np.array(nbest.scores[:, places], np.float64, order="C")


def digest(source: bytes | None, texts: Sequence[bytes], values: bytes) -> int:
    """64 bits that tell a list from others: its source, its candidates and their scores."""
    held = b"\0".join([source or b"", *map(bytes.strip, texts)])
    return int.from_bytes(hashlib.blake2b(values + held, digest_size=8).digest(), "little")


def lengths_of(
    texts: Sequence[bytes], base: np.ndarray, references: Sequence[bytes] | None, answers: Sequence[bytes | None] | None
) -> tuple[int, int]:
    """Bytes of the best candidate by base score, and of the first reference; (0, 0) without one, or with answers."""
    if not texts or not references or any(answers or ()):
        return 0, 0
    return len(texts[int(base.argmax())]), len(references[0])


class SeenLists:
    """Collects lists that have ``columns``, the base score's first."""

    def __init__(self, columns: Sequence[str]) -> None:
        self._columns, self._seen = columns, list[tuple[int, np.ndarray, tuple[int, int]]]()

    def add(self, lists: Lists) -> None:
        """Add lists."""
        first, many = lists.first, np.flatnonzero(np.diff(lists.first) > 1)
        if not many.size:
            return
        values, base, texts, answers = values_of(lists, self._columns), lists.base, lists.texts, lists.answers
        held, size = memoryview(values.astype("<f8").tobytes()), 8 * values.shape[1]
        sources, references = lists.side("source"), lists.side("references")
        measures = np.zeros((lists.list_count, len(self._columns), MEASURES))
        measure_lists(first, values, FLOAT32_MAX, measures)
        places = first.tolist()
        for i in many.tolist():
            a, b = places[i], places[i + 1]
            known = digest(sources[i], texts[a:b], bytes(held[a * size : b * size]))
            lengths = lengths_of(texts[a:b], base[a:b], references[i], answers and answers[a:b])
            self._seen.append((known, measures[i], lengths))

    def finish(self) -> SeenSample:
        """The lists that were added."""
        S = len(self._seen)
        digests, measures, lengths = zip(*self._seen, strict=True) if S else ((), (), ())
        shaped = np.reshape(measures, (S, len(self._columns), MEASURES)), np.reshape(lengths, (S, 2)).astype(np.int64)
        return _smallest(SeenSample(np.array(digests, np.uint64), *shaped))


def sample(parts: Iterable[SeenSample]) -> SeenSample:
    """The lists of all parts, of which there must be one, or a sample of them."""
    return reduce(lambda one, other: _smallest(SeenSample(*map(np.concatenate, zip(one, other, strict=True)))), parts)


def _smallest(lists: SeenSample) -> SeenSample:
    """At most ``MOST`` of the lists, in the order of their digests."""
    kept = np.argsort(lists.digests, kind="stable")[:MOST]
    return SeenSample(*(array[kept] for array in lists))


def shared(known: np.ndarray, digests: np.ndarray) -> tuple[int, int]:
    """The number of lists of a sample (its ``digests``) that another has too, and of those for which that is known."""
    limit = min((digest[-1] for digest in (known, digests) if digest.size >= MOST), default=np.uint64(-1 % (1 << 64)))
    looked_at = digests[digests <= limit]
    return int(np.isin(looked_at, known).sum()), int(looked_at.size)
