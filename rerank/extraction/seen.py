"""What the lists of a split were like: a digest of each, and what its score columns hold.

A digest tells a list that appears again, whatever file it is in. Of more than ``MOST`` lists those with the smallest
digests are kept: a random sample, and one that has the lists which two splits share, if they are in it at all, on both
sides (Broder 1997). Lists of fewer than two candidates, from which nothing is chosen, are left out.
"""

import hashlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from rerank.features.scores import LARGEST
from rerank.kernels.compile import kernel
from rerank.readers.nbest import NBestList

MOST = 10_000
MEASURES = 5  # of a column in a list, see ``measure``
MEAN, SPREAD, AGREEMENT, LEAST, GREATEST = range(MEASURES)


class SeenSample(NamedTuple):
    """S lists in the order of their digests, with C score columns, the base score's first."""

    digests: np.ndarray  # uint64 [S]
    measures: np.ndarray  # float64 [S, C, MEASURES]
    lengths: np.ndarray  # int64 [S, 2]: see ``lengths_of``


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
        mean, squares, products, own = total / size, 0.0, 0.0, found[0, SPREAD] * found[0, SPREAD] * size
        if least == greatest:
            mean = least
        else:
            for y in range(size):
                squares += (values[y, c] - mean) ** 2
                products += (values[y, c] - mean) * (values[y, 0] - found[0, MEAN])
        found[c, MEAN], found[c, SPREAD] = mean, np.sqrt(squares / size)
        found[c, LEAST], found[c, GREATEST] = least, greatest
        found[c, AGREEMENT] = products / np.sqrt(squares * own) if c > 0 and squares > 0.0 and own > 0.0 else 0.0


def values_of(nbest: NBestList, columns: Sequence[str]) -> np.ndarray:
    """float64 [N, C]: the base scores of a list, and its score columns after the first of ``columns``."""
    places = [nbest.column]
    if len(columns) > 1:
        names = nbest.named().names
        places += [names.index(name) for name in columns[1:]]
    return np.array(nbest.scores[:, places], np.float64, order="C")


def measured(values: np.ndarray) -> np.ndarray:
    """float64 [C, MEASURES]: see ``measure``."""
    found = np.zeros((values.shape[1], MEASURES))
    measure(values, LARGEST, found)
    return found


def digest(nbest: NBestList, values: np.ndarray) -> int:
    """64 bits that tell a list from others: its source, its candidates and their scores."""
    texts = b"\0".join([getattr(nbest, "source", None) or b"", *(text.strip() for text in nbest.texts)])
    return int.from_bytes(hashlib.blake2b(values.astype("<f8").tobytes() + texts, digest_size=8).digest(), "little")


def lengths_of(nbest: NBestList, references: Sequence[bytes]) -> tuple[int, int]:
    """Bytes of the candidate with the best base score, and of the first reference; (0, 0) where one is missing."""
    if not len(nbest) or not references:
        return 0, 0
    return len(nbest.texts[int(nbest.base.argmax())]), len(references[0])


class SeenLists:
    """Collects lists that have ``columns``, the base score's first."""

    def __init__(self, columns: Sequence[str]) -> None:
        self._columns, self._found = columns, list[tuple[int, np.ndarray, tuple[int, int]]]()

    def add(self, nbest: NBestList, lengths: tuple[int, int]) -> None:
        """Add a list; lengths: see ``SeenSample``."""
        if len(nbest) > 1:
            values = values_of(nbest, self._columns)
            self._found.append((digest(nbest, values), measured(values), lengths))

    def finish(self) -> SeenSample:
        """What was added."""
        if not self._found:
            return SeenSample(
                np.zeros(0, np.uint64), np.zeros((0, len(self._columns), MEASURES)), np.zeros((0, 2), np.int64)
            )
        digests, measures, lengths = zip(*self._found, strict=True)
        return sample([SeenSample(np.array(digests, np.uint64), np.stack(measures), np.array(lengths, np.int64))])


def sample(parts: Iterable[SeenSample]) -> SeenSample:
    """The lists of all parts, at most ``MOST`` of them, in the order of their digests."""
    found = None
    for part in parts:
        every = [part] if found is None else [found, part]
        joined = SeenSample(*map(np.concatenate, zip(*every, strict=True)))
        kept = np.argsort(joined.digests, kind="stable")[:MOST]
        found = SeenSample(*(array[kept] for array in joined))
    return SeenLists(("",)).finish() if found is None else found


def scored(lists: SeenSample) -> bool:
    """Have the lists base scores other than 0?"""
    return bool(lists.measures[:, 0, LEAST:].any())


def shared(known: np.ndarray, digests: np.ndarray) -> tuple[int, int]:
    """How many lists of a sample (its ``digests``) are among those of another, and of how many that is known."""
    limit = min((each[-1] for each in (known, digests) if each.size >= MOST), default=np.uint64(-1 % (1 << 64)))
    looked_at = digests[digests <= limit]
    return int(np.isin(looked_at, known).sum()), int(looked_at.size)
