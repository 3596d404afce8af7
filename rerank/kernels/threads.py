"""Threads of this process, for kernels whose rows do not depend on one another."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, cast

import numpy as np

LEAST = 1 << 20  # nonzeros of a thread: fewer are done before it has started


def cores() -> int:
    """The number of processors that this process may use."""
    from joblib.externals.loky import cpu_count

    return int(cpu_count())


def thread_count() -> int:
    """The number of threads that may compute at once: one for each processor that this process may use, or as many as
    NUMBA_NUM_THREADS says; in a worker, beside which others compute, that is 1."""
    from numba import config

    return int(cast(Any, config).NUMBA_NUM_THREADS)


def share_rows(work: Callable[[int, int], None], rows: np.ndarray) -> None:
    """Call ``work(first, last)`` for runs of rows that have about as many nonzeros each, all at once.

    rows: int64 [N + 1], where the nonzeros of each row begin. What ``work`` writes must be its rows' own.
    """
    nonzeros = int(rows[-1] - rows[0])
    threads = max(1, min(thread_count(), nonzeros // LEAST))
    edges = np.searchsorted(rows, rows[0] + np.arange(threads + 1) * (nonzeros // threads))
    edges[0], edges[-1] = 0, rows.size - 1
    if threads == 1:
        work(0, rows.size - 1)
        return
    with ThreadPoolExecutor(threads) as pool:
        for job in [pool.submit(work, first, last) for first, last in pairwise(edges.tolist())]:
            job.result()
