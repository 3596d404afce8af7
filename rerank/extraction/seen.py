"""A description of the lists of a split: a digest of each, and what its score columns hold.

A digest tells a list that appears again, whatever file it is in. Of more than ``MOST`` lists those with the smallest
digests are kept: a random sample, and one that has the lists which two splits share, if they are in it at all, on both
sides (Broder 1997). Lists of fewer than two candidates, from which nothing is chosen, are left out.

A score column is compared with what it was in training by three measures of it in a list: its mean, its standard
deviation, and its correlation with the base score. The unit is the list, as the candidates of one are alike. A measure
is unlike training where the distribution functions over lists differ, somewhere, by more than ``PART`` plus what chance
explains, by the bound of Dvoretzky, Kiefer and Wolfowitz with Massart's constant, which holds for all distributions. So
lists drawn like those of training are called unlike them with a probability of at most ``ALPHA``, for all columns and
measures together, and three lists never are. A smaller difference, however many lists show it, is none to speak of: no
two sets of real lists are quite the same.
"""

import hashlib
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import compress
from typing import Any, NamedTuple, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, PositiveInt, model_validator

from rerank.data.corpus import FLOAT32_MAX
from rerank.readers.lists import Lists

MOST = 10_000
MEASURES = 5  # of a column in a list, see ``measured``
MEAN, SPREAD, AGREEMENT, LEAST, GREATEST = range(MEASURES)
ALPHA, PART = 1e-4, 1 / 3
COMPARED = {  # the first measures, in their order, and what messages call them
    "mean": "mean", "spread": "standard deviation", "agreement": "correlation with the base score",
}  # fmt: skip
M = len(COMPARED)
CUTS = 8  # quantiles of every measure that are kept
T = TypeVar("T")
log = logging.getLogger("rerank")


class SeenSample(NamedTuple):
    """S lists in the order of their digests, with C score columns, the base score's first."""

    digests: np.ndarray  # uint64 [S]
    measures: np.ndarray  # float64 [S, C, MEASURES]
    lengths: np.ndarray  # int64 [S, 2]: see ``lengths_of``

    @property
    def scored(self) -> bool:
        """Whether some list has base scores other than 0."""
        return bool(self.measures[:, 0, LEAST:].any())


def measured(values: np.ndarray) -> np.ndarray:
    """The measures of every column in lists of one size (``values`` float64 [..., N, C], float64 [..., C, MEASURES]):
    its mean, standard deviation and correlation with the first column, 0 where one of them is constant, its least and
    its greatest value.

    Values beyond ±FLOAT32_MAX count as that, so that their squares are finite.
    """
    values, size = np.clip(values, -FLOAT32_MAX, FLOAT32_MAX), values.shape[-2]
    least, greatest = values.min(axis=-2), values.max(axis=-2)
    mean = np.where(least == greatest, least, _summed(values) / size)
    apart = values - mean[..., None, :]
    squares, products = _summed(apart**2), _summed(apart * apart[..., :1])
    spread = np.sqrt(squares / size)
    of_both = np.sqrt(squares * (spread[..., :1] * spread[..., :1] * size))
    agreement = np.divide(products, of_both, out=np.zeros(mean.shape), where=of_both > 0)
    agreement[..., 0] = 0.0
    return np.stack([mean, spread, agreement, least, greatest], axis=-1)


def _summed(rows: np.ndarray) -> np.ndarray:
    """Sums of columns from the first row to the last, whatever order numpy would prefer."""
    return np.asarray(np.add.accumulate(rows, axis=-2)[..., -1, :])


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
        first, sizes = lists.first, np.diff(lists.first)
        values, base, texts, answers = values_of(lists, self._columns), lists.base, lists.texts, lists.answers
        held, row = memoryview(values.astype("<f8").tobytes()), 8 * values.shape[1]
        sources, references = lists.side("source"), lists.side("references")
        measures = np.zeros((lists.list_count, len(self._columns), MEASURES))
        for size in np.unique(sizes[sizes > 1]).tolist():
            alike = np.flatnonzero(sizes == size)
            measures[alike] = measured(values[first[alike, None] + np.arange(size)])
        for i in np.flatnonzero(sizes > 1).tolist():
            a, b = first[i : i + 2].tolist()
            known = digest(sources[i], texts[a:b], bytes(held[a * row : b * row]))
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


class ColumnSeen(BaseModel):
    """A score column in ``lists`` of two candidates or more: the means over lists of its mean, its standard deviation
    (``spread``) and its correlation with the base score (``agreement``); its least and its greatest value.

    below: for each of the three measures, in how many lists it is at most as large as each of the ``cuts``.
    """

    model_config = ConfigDict(strict=True)

    lists: PositiveInt
    mean: FiniteFloat
    spread: FiniteFloat
    agreement: FiniteFloat
    least: FiniteFloat
    greatest: FiniteFloat
    cuts: list[list[FiniteFloat]] = Field(min_length=M, max_length=M)
    below: list[list[int]]

    @model_validator(mode="after")
    def _check_sizes(self) -> "ColumnSeen":
        if [len(cuts) for cuts in self.cuts] != [len(counts) for counts in self.below]:
            raise ValueError("expected as many counts as cuts")
        return self


def columns_seen(names: Sequence[str], used: Sequence[str], lists: SeenSample) -> dict[str, Any]:
    """The record that a model keeps of the score columns ``names`` of its training lists, the base score's first: those
    ``used``, each as a ``ColumnSeen``. Empty where no list has two candidates."""
    columns = {}
    for k, name in enumerate(names if lists.digests.size else ()):
        measures, values = lists.measures[:, k, :M], lists.measures[:, k, LEAST:]
        # A distribution function may jump at a quantile: it is kept there, and just below.
        quantiles = np.quantile(measures, np.linspace(0, 1, CUTS + 1), axis=0, method="inverted_cdf").T
        cuts = [np.unique([of, np.nextafter(of, -np.inf)]) for of in quantiles]
        columns[name] = {
            "lists": len(measures), **dict(zip(COMPARED, measures.mean(axis=0).tolist(), strict=True)),
            "least": float(values.min()), "greatest": float(values.max()), "cuts": [cut.tolist() for cut in cuts],
            "below": [(measures[:, m] <= cut[:, None]).sum(axis=1).tolist() for m, cut in enumerate(cuts)],
        }  # fmt: skip
    return {name: column for name, column in columns.items() if name in used}


def chance(first: Any, second: Any, level: float) -> Any:
    """The distance that chance puts between the distribution functions of two samples of these sizes: ``PART`` and this
    are exceeded by samples of one distribution with a probability below ``level``."""
    return np.sqrt(np.log(4 / level) / 2 * (1 / first + 1 / second))


def columns_unlike(columns: Mapping[str, Any], measures: np.ndarray) -> list[str]:
    """A line for every column of lists (their measures: float64 [S, C, MEASURES]) that is unlike what it was in
    training (``columns_seen``, in the same order)."""
    lines = list[str]()
    for c, (name, column) in enumerate(columns.items() if len(measures) else ()):
        known, here = ColumnSeen.model_validate(column), measures[:, c, :M]
        beyond = PART + chance(len(here), known.lists, ALPHA / (M * len(columns)))
        below = [(here[:, m] <= np.array(cuts)[:, None]).mean(axis=1) for m, cuts in enumerate(known.cuts)]
        apart = [
            np.abs(of - np.array(counts) / known.lists).max() for of, counts in zip(below, known.below, strict=True)
        ]
        if unlike := list(compress(COMPARED, np.array(apart) > beyond)):
            mean = dict(zip(COMPARED, here.mean(axis=0), strict=True))
            values = ", ".join(f"{COMPARED[m]} {mean[m]:.4g}, in training {getattr(known, m):.4g}" for m in unlike)
            asked = "is its sign or unit another, or is it a file of other lists or another column?"
            lines.append(f"the score column {name!r} is unlike that of the training lists: {values}; {asked}")
    return lines


def compared(lists: Iterable[T], columns: Mapping[str, Any], of: Callable[[T], Any]) -> Iterator[T]:
    """Pass ``lists`` on (``of`` each is a ``Lists``, or none) and log at the end how the first ``MOST`` of them are
    unlike training, whose ``columns`` are known, the base score's first."""
    names, seen = tuple(columns), list[np.ndarray]()
    for each in lists:
        nbest = of(each)
        if names and isinstance(nbest, Lists) and len(nbest) > 1 and len(seen) < MOST:
            seen.append(measured(values_of(nbest, names)))
        yield each
    for line in columns_unlike(columns, np.array(seen)):
        log.warning("%s", line)
