"""Examples that are generated, not read: the same seed gives the same bits, everywhere.

splitmix64 (Steele, Lea & Flood 2014): the stream of a seed is mix(seed + G), mix(seed + 2·G), ...; all arithmetic is
modulo 2^64.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from rerank.base.errors import RecipeError
from rerank.base.registry import Registry
from rerank.data.labelled import Labelled
from rerank.data.symbols import mix
from rerank.kernels.compile import kernel

G = np.uint64(0x9E3779B97F4A7C15)
ONE, U11, U32, U40 = (np.uint64(n) for n in (1, 11, 32, 40))
UNIT = 2.0**-53
NOISE = 0.05  # share of labels that are flipped

ZIPF_SEED, ZIPF_WEIGHTS = np.uint64(2012), np.uint64(77)
ZIPF_BITS = 20  # ids are below 2^20
ZIPF_IDS = 80  # per example
ZIPF_DRAWS = 160  # per example; draw ZIPF_STRIDE - 1 decides on the noise
ZIPF_STRIDE = 256
ZIPF_THRESHOLD = -14506303  # the median of the first 10,001 sums

CLASSES = ("-1", "1")
WINNOW_EXAMPLES = 1000  # of each part
ZIPF_EXAMPLES = 10_000_000  # at most; they take more than 3 GB


class Generator(Protocol):
    """A data set by its parameters: a frozen dataclass whose fields are the recipe's schema."""

    def draw(self, seed: int) -> tuple[Labelled, Labelled]:
        """Training and test examples."""


generators: Registry[type[Generator]] = Registry("generator")


@dataclass(frozen=True)
class Winnow:
    """Many irrelevant features, after Zhang (Regularized Winnow Methods, section 4): 1000 training and test examples.

    x has ``dimension`` fair bits; the label is the sign of m = x₁ + x₂ + x₃ + x₄ + x₅ - x₆ - 2. Examples with m = 0 are
    left out, then 5 % of all labels are flipped. There is no constant feature: learners need a bias.
    """

    dimension: int = 500

    def __post_init__(self) -> None:
        if not isinstance(self.dimension, int) or not 6 <= self.dimension <= 1_000_000:
            raise RecipeError(f"found {self.dimension!r}, expected a whole number from 6 to 1,000,000", key="dimension")

    def draw(self, seed: int) -> tuple[Labelled, Labelled]:
        """Both parts from one stream."""
        return winnow(self.dimension, seed)


@dataclass(frozen=True)
class Zipf:
    """A large set for measurements: 80 features per example out of 2^20 - 1, distributed like words.

    The seed changes nothing: there is one such set; ``train`` and ``test`` say how much of it is generated.
    """

    train: int = 500_000
    test: int = 50_000

    def __post_init__(self) -> None:
        _positive(train=self.train, test=self.test)
        if self.train + self.test > ZIPF_EXAMPLES:
            raise RecipeError(
                f"found {self.train + self.test:,} examples; expected at most {ZIPF_EXAMPLES:,}", key="train"
            )

    def draw(self, seed: int) -> tuple[Labelled, Labelled]:  # noqa: ARG002
        """The first ``train`` examples, and the ``test`` that follow."""
        return zipf(self.train, self.test)


@dataclass(frozen=True)
class Ellipse:
    """Two informative dimensions of unequal spread among 20 (Crammer, Dredze & Pereira 2008); see ``ellipse``."""

    train: int = 5000
    test: int = 10_000
    noise: float = 0.1

    def __post_init__(self) -> None:
        _positive(train=self.train, test=self.test)
        if not isinstance(self.noise, (int, float)) or not 0 <= self.noise <= 1:
            raise RecipeError(f"found {self.noise!r}, expected a number from 0 to 1", key="noise")

    def draw(self, seed: int) -> tuple[Labelled, Labelled]:
        """Noisy training examples and clean test examples."""
        return ellipse(self.train, self.test, seed, self.noise)


def winnow(dimension: int, seed: int | None = None) -> tuple[Labelled, Labelled]:
    """(train, test), 1000 examples each; the seed is the dimension by default. For what is drawn, see ``Winnow``.

    A stream of splitmix64 gives ⌈d/64⌉ words of bits per example (the lowest bit is the first feature) and, for those
    that are not left out, a number in [0, 1); the label is flipped if it is below 0.05.
    """
    bits = np.empty((2 * WINNOW_EXAMPLES, dimension), np.uint8)
    positive = np.empty(2 * WINNOW_EXAMPLES, np.uint8)
    winnow_examples(np.uint64((dimension if seed is None else seed) % (1 << 64)), bits, positive)
    return (
        _binary(bits[:WINNOW_EXAMPLES], positive[:WINNOW_EXAMPLES]),
        _binary(bits[WINNOW_EXAMPLES:], positive[WINNOW_EXAMPLES:]),
    )


def zipf(train: int = 500_000, test: int = 50_000) -> tuple[Labelled, Labelled]:
    """(train, test): the first ``train`` examples of one endless set, and the ``test`` that follow.

    Draw j of example i is h = mix(2012 + (256·i + j + 1)·G), the id 2^e + (h >> 32) mod 2^e with e = h mod 20; the
    first 80 distinct ids are the features, with value 1. The label says whether the sum of the ids' weights, integers
    of 24 bits, exceeds its median; 5 % are flipped. Column j is id j + 1.
    """
    return _zipf_part(0, train), _zipf_part(train, test)


def _zipf_part(first: int, size: int) -> Labelled:
    columns, positive = np.zeros((size, ZIPF_IDS), np.int32), np.zeros(size, np.uint8)
    zipf_examples(first, columns, positive, np.zeros(1 << ZIPF_BITS, np.int32))
    return Labelled(
        rows=np.arange(size + 1) * ZIPF_IDS,
        columns=columns.reshape(-1),
        values=np.broadcast_to(np.float32(1), columns.size),
        label=positive,
        classes=CLASSES,
        group=np.empty(0, np.int64),
        weight=np.ones(size),
        width=(1 << ZIPF_BITS) - 1,
    )


def ellipse(n_train: int, n_test: int, seed: int, noise: float) -> tuple[Labelled, Labelled]:
    """(train, test) of the synthetic data of Crammer, Dredze & Pereira (2008), with noise as in Crammer et al. (2009).

    Of 20 dimensions the first two are (a - b)/√2 and (a + b)/√2 with a of standard deviation 1 and b of standard
    deviation 10: a Gaussian turned by 45°. The label is the sign of a, so that the long axis separates the classes.
    The other 18 are independent with standard deviation 2 and say nothing. Training labels are flipped with
    probability ``noise``; test labels never are. Normal deviates come from numpy's default generator, example by
    example, those for training first.
    """
    rng = np.random.default_rng(seed)
    draws = rng.standard_normal((n_train + n_test, 20))
    a, b = draws[:, 0], 10.0 * draws[:, 1]
    points = np.column_stack([(a - b) / np.sqrt(2), (a + b) / np.sqrt(2), 2.0 * draws[:, 2:]])
    positive = a > 0
    positive[:n_train] ^= rng.random(n_train) < noise
    return _binary(points[:n_train], positive[:n_train]), _binary(points[n_train:], positive[n_train:])


def _binary(points: np.ndarray, positive: np.ndarray) -> Labelled:
    """Examples from the dense rows ``points``; bits get one repeated value."""
    place, columns = np.nonzero(points)
    bits = points.dtype == np.uint8
    return Labelled(
        rows=np.searchsorted(place, np.arange(len(points) + 1)),
        columns=columns,
        values=np.broadcast_to(np.float32(1), columns.size) if bits else points[place, columns],
        label=positive,
        classes=CLASSES,
        group=np.empty(0, np.int64),
        weight=np.ones(len(points)),
        width=points.shape[1],
    )


def _positive(**counts: int) -> None:
    for key, count in counts.items():
        if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count < 2**31:
            raise RecipeError(f"found {count!r}, expected a whole number from 1", key=key)


@kernel
def unit(h: Any) -> float:
    """A number in [0, 1) from the upper 53 bits."""
    return np.float64(h >> U11) * UNIT


@kernel
def winnow_examples(seed: Any, bits: np.ndarray, positive: np.ndarray) -> int:
    """Fill ``bits`` (uint8 [n, D]) and ``positive`` (uint8 [n]) with winnow examples; the number of flipped labels."""
    state, flipped, i = np.uint64(seed), 0, 0
    while i < bits.shape[0]:
        word: Any = np.uint64(0)
        for j in range(bits.shape[1]):
            if j % 64 == 0:
                state += G
                word = mix(state)
            bits[i, j] = (word >> np.uint64(j % 64)) & ONE
        margin = np.int64(bits[i, 0]) + bits[i, 1] + bits[i, 2] + bits[i, 3] + bits[i, 4] - bits[i, 5] - 2
        if margin == 0:
            continue
        state += G
        flip = unit(mix(state)) < NOISE
        positive[i] = (margin > 0) != flip
        flipped += flip
        i += 1
    return flipped


@kernel
def zipf_examples(first: int, columns: np.ndarray, positive: np.ndarray, seen: np.ndarray) -> int:
    """Generate examples first, first + 1, ... of the zipf set; the number of flipped labels.

    ``columns`` (int32 [n, 80]) receives the ids - 1, sorted; ``positive`` is uint8 [n]; ``seen`` (int32 [2^20], zeros)
    records the example in which an id was last drawn.
    """
    flipped = 0
    for i in range(columns.shape[0]):
        start = ZIPF_SEED + np.uint64(first + i) * np.uint64(ZIPF_STRIDE) * G
        count, total = 0, np.int64(0)
        for j in range(ZIPF_DRAWS):
            h = mix(start + np.uint64(j + 1) * G)
            e = h % np.uint64(ZIPF_BITS)
            power = ONE << e
            name = np.int64(power + ((h >> U32) & (power - ONE)))
            if seen[name] == i + 1:
                continue
            seen[name] = i + 1
            total += np.int64(mix(ZIPF_WEIGHTS + np.uint64(name) * G) >> U40) - (1 << 23)
            q = count  # insertion sort
            while q > 0 and columns[i, q - 1] > name - 1:
                columns[i, q] = columns[i, q - 1]
                q -= 1
            columns[i, q] = name - 1
            count += 1
            if count == ZIPF_IDS:
                break
        flip = unit(mix(start + np.uint64(ZIPF_STRIDE) * G)) < NOISE
        positive[i] = (total > ZIPF_THRESHOLD) != flip
        flipped += flip
    return flipped
