"""Random bits that are the same everywhere, and the examples that are made from them.

splitmix64 (Steele, Lea & Flood 2014): the stream of a seed is mix(seed + G), mix(seed + 2·G), ...; all arithmetic is
modulo 2^64.
"""

from typing import Any

import numpy as np

from rerank.kernels.compile import kernel

G = np.uint64(0x9E3779B97F4A7C15)
FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
ONE, U11, U27, U30, U31, U32, U40 = (np.uint64(n) for n in (1, 11, 27, 30, 31, 32, 40))
UNIT = 2.0**-53
NOISE = 0.05  # share of labels that are flipped

ZIPF_SEED, ZIPF_WEIGHTS = np.uint64(2012), np.uint64(77)
ZIPF_BITS = 20  # ids are below 2^20
ZIPF_IDS = 80  # per example
ZIPF_DRAWS = 160  # per example; draw ZIPF_STRIDE - 1 decides on the noise
ZIPF_STRIDE = 256
ZIPF_THRESHOLD = -14506303  # the median of the first 10,001 sums


@kernel
def mix(z: Any) -> Any:
    """The finalizer of splitmix64: uint64 → uint64."""
    z = (z ^ (z >> U30)) * FIRST
    z = (z ^ (z >> U27)) * SECOND
    return z ^ (z >> U31)


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
