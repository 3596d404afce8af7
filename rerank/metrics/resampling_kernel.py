"""Random sums of rows: the inner loops of the bootstrap and of approximate randomisation.

Random numbers are splitmix64 of a counter (Steele et al. 2014), so a seed gives the same samples on every machine.
"""

import numpy as np

from rerank.data.symbols import mix
from rerank.kernels.compile import kernel

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_ONE, _LOW, _S32 = np.uint64(1), np.uint64(63), np.uint64(32)


@kernel
def begin(seed: np.uint64, counter: np.ndarray) -> None:
    """Set the counter (uint64 [1]) to where the random numbers of ``seed`` begin."""
    counter[0] = mix(seed + _GOLDEN)


@kernel
def bootstrap_sums(rows: np.ndarray, counter: np.ndarray, sums: np.ndarray) -> None:
    """Add to every row of ``sums`` (float64 [samples, W]) L of the ``rows`` (float64 [L, W]) drawn with replacement.

    counter: uint64 [1], see ``begin``; it advances, so that samples may be drawn in several calls.
    """
    L, W = rows.shape
    state, many = counter[0], np.uint64(L)
    for b in range(sums.shape[0]):
        for _ in range(L):
            state += _GOLDEN
            i = ((mix(state) >> _S32) * many) >> _S32  # uniform in 0..L - 1 up to L / 2^32
            for k in range(W):
                sums[b, k] += rows[i, k]
    counter[0] = state


@kernel
def swap_sums(rows: np.ndarray, counter: np.ndarray, sums: np.ndarray) -> None:
    """Add to every row of ``sums`` (float64 [samples, W]) those ``rows`` (float64 [L, W]) that a fair coin selects.

    counter: as for ``bootstrap_sums``.
    """
    L, W = rows.shape
    state, bits = counter[0], np.uint64(0)
    for b in range(sums.shape[0]):
        for i in range(L):
            if np.uint64(i) & _LOW == np.uint64(0):
                state += _GOLDEN
                bits = mix(state)
            take = np.float64(bits & _ONE)
            bits >>= _ONE
            for k in range(W):
                sums[b, k] += take * rows[i, k]
    counter[0] = state
