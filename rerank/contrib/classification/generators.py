"""Examples that are generated, not read: the same seed gives the same bits, everywhere.

splitmix64 (Steele, Lea & Flood 2014): the stream of a seed is mix(seed + G), mix(seed + 2·G), ...; all arithmetic is
modulo 2^64.
"""

from dataclasses import dataclass
from typing import Annotated, Protocol

import numpy as np
from scipy.sparse import csr_array

from rerank.base.errors import RecipeError
from rerank.base.ranges import Checked, Range
from rerank.base.registry import Registry
from rerank.data.labelled import Labelled
from rerank.data.symbols import mix
from rerank.kernels.compile import kernel

G = np.uint64(0x9E3779B97F4A7C15)
ONE, U11, U27, U30, U31, U32, U40 = map(np.uint64, (1, 11, 27, 30, 31, 32, 40))
UNIT = 2.0**-53
NOISE = 0.05  # share of labels that are flipped

ZIPF_SEED, ZIPF_WEIGHTS = np.uint64(2012), np.uint64(77)
ZIPF_BITS = 20  # ids are below 2^20
ZIPF_IDS = 80  # per example
ZIPF_DRAWS = 160  # per example; draw ZIPF_STRIDE - 1 decides on the noise
ZIPF_STRIDE = 256
ZIPF_THRESHOLD = -14506303  # the median of the first 10,001 sums

WINNOW_EXAMPLES = 1000  # of each part
ZIPF_EXAMPLES = 10_000_000  # at most; they take more than 3 GB

Size = Annotated[int, Range(1)]


class Generator(Protocol):
    """A data set by its parameters: a frozen dataclass whose fields are the recipe's schema."""

    def draw(self, seed: int) -> tuple[Labelled, Labelled]:
        """Training and test examples."""


generators: Registry[type[Generator]] = Registry("generator")


@dataclass(frozen=True)
class Winnow(Checked):
    """Many irrelevant features, after Zhang (Regularized Winnow Methods, section 4): 1000 training and test examples.

    x has ``dimension`` fair bits; the label is the sign of m = x₁ + x₂ + x₃ + x₄ + x₅ - x₆ - 2. Examples with m = 0 are
    left out, then 5 % of all labels are flipped. There is no constant feature: learners need a bias.
    """

    dimension: Annotated[int, Range(6, 1_000_000)] = 500

    def draw(self, seed: int) -> tuple[Labelled, Labelled]:
        """Both parts from one stream of splitmix64.

        It gives ⌈d/64⌉ words of bits per example (the lowest bit is the first feature) and, for those that are not left
        out, a number in [0, 1); the label is flipped if it is below 0.05.
        """
        words = -(-self.dimension // 64)
        steps = np.arange(1, words + 2, dtype=np.uint64) * G
        state, bits, positive = np.array([seed % (1 << 64)], np.uint64), list[np.ndarray](), list[bool]()
        while len(bits) < 2 * WINNOW_EXAMPLES:
            drawn = mixed(state + steps)
            x = np.unpackbits(drawn[:-1].astype("<u8").view(np.uint8), count=self.dimension, bitorder="little")
            margin = int(x[:5].sum()) - int(x[5]) - 2
            state += steps[words - (margin == 0)]
            if margin != 0:
                bits.append(x)
                positive.append((margin > 0) != (float(drawn[-1] >> U11) * UNIT < NOISE))
        return _parted(np.stack(bits), np.array(positive), WINNOW_EXAMPLES)


def mixed(z: np.ndarray) -> np.ndarray:
    """The numbers of splitmix64 by its states (uint64)."""
    z = (z ^ (z >> U30)) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> U27)) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> U31))


@dataclass(frozen=True)
class Zipf(Checked):
    """A large set for measurements: 80 features per example out of 2^20 - 1, distributed like words.

    The seed changes nothing: there is one such set; ``train`` and ``test`` say how much of it is generated.
    """

    train: Size = 500_000
    test: Size = 50_000

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.train + self.test > ZIPF_EXAMPLES:
            raise RecipeError(
                f"found {self.train + self.test:,} examples; expected at most {ZIPF_EXAMPLES:,}", key="train"
            )

    def draw(self, seed: int) -> tuple[Labelled, Labelled]:  # noqa: ARG002
        """The first ``train`` examples of one endless set, and the ``test`` that follow.

        Draw j of example i is h = mix(2012 + (256·i + j + 1)·G), the id 2^e + (h >> 32) mod 2^e with e = h mod 20; the
        first 80 distinct ids are the features, with value 1. The label says whether the sum of the ids' weights,
        integers of 24 bits, exceeds its median; 5 % are flipped. Column j is id j + 1.
        """
        return _zipf_part(0, self.train), _zipf_part(self.train, self.test)


@dataclass(frozen=True)
class Ellipse(Checked):
    """Two informative dimensions of unequal spread among 20 (Crammer, Dredze & Pereira 2008), with noise as in Crammer
    et al. (2009).

    The first two are (a - b)/√2 and (a + b)/√2 with a of standard deviation 1 and b of standard deviation 10: a
    Gaussian turned by 45°. The label is the sign of a, so that the long axis separates the classes. The other 18 are
    independent with standard deviation 2 and say nothing. Training labels are flipped with probability ``noise``; test
    labels never are.
    """

    train: Size = 5000
    test: Size = 10_000
    noise: Annotated[float, Range(0, 1)] = 0.1

    def draw(self, seed: int) -> tuple[Labelled, Labelled]:
        """Normal deviates from numpy's default generator, example by example, those for training first."""
        rng = np.random.default_rng(seed)
        draws = rng.standard_normal((self.train + self.test, 20))
        a, b = draws[:, 0], 10.0 * draws[:, 1]
        points = np.column_stack([(a - b) / np.sqrt(2), (a + b) / np.sqrt(2), 2.0 * draws[:, 2:]])
        positive = a > 0
        positive[: self.train] ^= rng.random(self.train) < self.noise
        return _parted(points, positive, self.train)


def _zipf_part(first: int, size: int) -> Labelled:
    columns, positive = np.zeros((size, ZIPF_IDS), np.int32), np.zeros(size, np.uint8)
    zipf_examples(first, columns, positive, np.zeros(1 << ZIPF_BITS, np.int32))
    values = np.ones(columns.size, np.float32)
    return _binary(np.arange(size + 1) * ZIPF_IDS, columns.reshape(-1), values, positive, (1 << ZIPF_BITS) - 1)


def _parted(points: np.ndarray, positive: np.ndarray, size: int) -> tuple[Labelled, Labelled]:
    """The first ``size`` of the dense rows ``points`` as examples, and the others."""
    parts = []
    for part in (slice(size), slice(size, None)):
        matrix = csr_array(points[part])
        parts.append(_binary(matrix.indptr, matrix.indices, matrix.data, positive[part], points.shape[1]))
    return parts[0], parts[1]


def _binary(rows: np.ndarray, columns: np.ndarray, values: np.ndarray, positive: np.ndarray, width: int) -> Labelled:
    """Examples of two classes."""
    return Labelled(rows, columns, values, positive, ("-1", "1"), np.empty(0, np.int64), np.ones(positive.size), width)


@kernel
def zipf_examples(first: int, columns: np.ndarray, positive: np.ndarray, seen: np.ndarray) -> None:
    """Generate examples first, first + 1, ... of the zipf set.

    ``columns`` (int32 [n, 80]) receives the ids - 1, sorted; ``positive`` is uint8 [n]; ``seen`` (int32 [2^20], zeros)
    records the example in which an id was last drawn.
    """
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
        positive[i] = (total > ZIPF_THRESHOLD) != (
            np.float64(mix(start + np.uint64(ZIPF_STRIDE) * G) >> U11) * UNIT < NOISE
        )
