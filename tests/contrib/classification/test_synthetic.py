"""Generators: the numbers of their definition, and a slow twin in Python's integers."""

import math
from collections.abc import Iterator

import numpy as np
import pytest

from rerank.contrib.classification.sets import Ellipse, Winnow, Zipf
from rerank.data.labelled import Labelled

G, MASK = 0x9E3779B97F4A7C15, (1 << 64) - 1


def mix(z: int) -> int:
    z &= MASK
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return z ^ z >> 31


def stream(seed: int) -> Iterator[int]:
    while True:
        seed = seed + G & MASK
        yield mix(seed)


def unit(h: int) -> float:
    return (h >> 11) * 2.0**-53


def test_splitmix64_gives_the_published_numbers() -> None:
    """The first outputs for seed 1234567 that implementations of splitmix64 are checked against."""
    drawn = stream(1234567)
    assert [next(drawn) for _ in range(3)] == [6457827717110365317, 3203168211198807973, 9817491932198370423]


def naive_winnow(d: int, seed: int, n: int) -> tuple[list[list[int]], list[int]]:
    drawn, features, labels = stream(seed), [], []
    while len(labels) < n:
        words = [next(drawn) for _ in range(math.ceil(d / 64))]
        x = [words[j // 64] >> j % 64 & 1 for j in range(d)]
        m = sum(x[:5]) - x[5] - 2
        if abs(m) < 1:
            continue
        labels.append(int((m > 0) != (unit(next(drawn)) < 0.05)))
        features.append([j for j in range(d) if x[j]])
    return features, labels


def features_of(examples: Labelled, first: int, last: int) -> list[list[int]]:
    return [examples.columns[examples.rows[i] : examples.rows[i + 1]].tolist() for i in range(first, last)]


@pytest.mark.parametrize(("d", "seed"), [(6, 6), (64, 3), (65, 2**64 - 1), (500, 500)])
def test_winnow_is_its_definition(d: int, seed: int) -> None:
    features, labels = naive_winnow(d, seed, 2000)
    train, test = Winnow(d).draw(seed)
    assert features_of(train, 0, 1000) == features[:1000]
    assert features_of(test, 0, 1000) == features[1000:]
    assert [*train.label, *test.label] == labels
    assert train.width == test.width == d
    assert train.classes == ("-1", "1")
    assert (train.values == 1).all()
    assert train.values[0] == 1


def naive_zipf(i: int) -> tuple[list[int], int, bool]:
    """(ids, label, whether it is flipped) of example i."""
    ids: list[int] = []
    for j in range(160):
        h = mix(2012 + (i * 256 + j + 1) * G)
        e = h % 20
        name = 2**e + (h >> 32 & 2**e - 1)
        if name not in ids and len(ids) < 80:
            ids.append(name)
    total = sum((mix(77 + name * G) >> 40) - 8388608 for name in ids)
    flipped = unit(mix(2012 + (i * 256 + 256) * G)) < 0.05
    return sorted(ids), int((total > -14506303) != flipped), flipped


def test_zipf_is_its_definition() -> None:
    train, test = Zipf(150, 50).draw(1)
    expected = [naive_zipf(i) for i in range(200)]
    ids = [*features_of(train, 0, 150), *features_of(test, 0, 50)]
    assert [[j + 1 for j in row] for row in ids] == [row for row, _, _ in expected]
    assert [*train.label, *test.label] == [label for _, label, _ in expected]


def test_zipf_has_the_counts_of_its_definition() -> None:
    """All of it; the bytes of its text, "+1 1:1 2:1 ..." and a line feed, are computed, not written."""
    train, test = Zipf().draw(1)
    assert (train.size, test.size) == (500_000, 50_000)
    assert (int(train.label.sum()), int(test.label.sum())) == (250_712, 25_100)
    digits = sum(np.count_nonzero(train.columns + 1 >= 10**power) for power in range(7))
    assert digits + 3 * train.nonzeros + 3 * train.size == 274_592_767  # " :1" a feature, "+1" and "\n" an example
    assert train.width == 2**20 - 1


def test_ellipse_is_a_turned_gaussian() -> None:
    train, test = Ellipse(5000, 20_000, 0.1).draw(1)
    X = test.values.reshape(-1, 20).astype(float)
    short, long = (X[:, 0] + X[:, 1]) / np.sqrt(2), (X[:, 1] - X[:, 0]) / np.sqrt(2)
    assert np.array_equal(test.label == 1, short > 0)
    assert short.std() == pytest.approx(1, rel=0.03)
    assert long.std() == pytest.approx(10, rel=0.03)
    assert abs(np.corrcoef(short, long)[0, 1]) < 0.03
    assert X[:, 2:].std(axis=0) == pytest.approx(np.full(18, 2.0), rel=0.03)
    x = train.values.reshape(-1, 20)
    assert np.mean((train.label == 1) != (x[:, 0] + x[:, 1] > 0)) == pytest.approx(0.1, abs=0.015)
    clean, _ = Ellipse(5000, 20_000, 0.0).draw(1)
    assert np.array_equal(clean.values, train.values)
    assert np.array_equal(clean.label == 1, x[:, 0] + x[:, 1] > 0)
