"""Arrays as lists of candidates: rows of a matrix, their gains, and which of them belong together."""

from typing import Any

import numpy as np

from rerank.data.corpus import Corpus
from rerank.estimators.matrix import rows_of
from rerank.estimators.parameters import numbers
from rerank.metrics.gain import LARGEST_GAIN


def offsets_of(group: Any, qid: Any, n: int) -> np.ndarray:
    """int64 [L + 1]: list i holds the rows offsets[i]..offsets[i + 1] - 1, by their sizes or by the ids of their lists.

    Raises
    ------
    ValueError: neither or both are given, sizes do not add up to the n rows, or the rows of an id are not together.
    """
    if (group is None) == (qid is None):
        raise ValueError(
            f"found {'neither group nor qid' if group is None else 'both group and qid'}; expected one of them: "
            "group, the sizes of the lists, or qid, for every row of X the id of its list"
        )
    return _by_sizes(group, n) if qid is None else _by_ids(qid, n)


def _by_sizes(group: Any, n: int) -> np.ndarray:
    sizes = np.asarray(group)
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or not (sizes > 0).all():
        shown = f"{sizes.dtype} of shape {sizes.shape}"
        if sizes.ndim == 1 and sizes.dtype.kind in "iu":
            shown = f"the size {sizes[sizes <= 0][0]} of list {int(np.flatnonzero(sizes <= 0)[0])}"
        raise ValueError(f"group holds {shown}; expected the sizes of the lists, whole numbers from 1")
    offsets = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    if offsets[-1] != n:
        raise ValueError(
            f"group holds {sizes.size} sizes that add up to {offsets[-1]}; expected {n}, the number of rows of X"
        )
    return offsets


def _by_ids(qid: Any, n: int) -> np.ndarray:
    ids = np.asarray(qid)
    if ids.shape != (n,):
        raise ValueError(f"qid has shape {ids.shape}; expected ({n},), for every row of X the id of its list")
    if (missing := ids != ids).any():
        raise ValueError(f"qid holds NaN in row {int(np.flatnonzero(missing)[0])}; expected the id of its list")
    starts = np.flatnonzero(np.append(True, ids[1:] != ids[:-1]))
    first: dict[Any, int] = {}
    for row, name in zip(starts.tolist(), ids[starts].tolist(), strict=True):
        if first.setdefault(name, row) != row:
            raise ValueError(
                f"qid {name!r} is found from row {first[name]} on and again in row {row}, with others between them; "
                "expected the rows of a list next to each other: sort the rows by qid"
            )
    return np.append(starts, n)


def lists_of(X: Any, gain: Any, group: Any = None, qid: Any = None, base: Any = None) -> Corpus:
    """The rows of ``X`` (dense or CSR [n, D]) as lists; it is not changed, and shares what it can.

    gain, base: [n]; higher is better, and without base scores all are 0. The statistics are those of the metric
    ``gain``: the gains themselves, and 1 for every list.

    Raises
    ------
    ValueError: an argument does not fit the rows of X, or holds what no learner can use.
    """
    n = X.shape[0]
    offsets = offsets_of(group, qid, n)
    gains = numbers("gain", gain, n)
    if (large := np.abs(gains) > LARGEST_GAIN).any():
        row = int(np.flatnonzero(large)[0])
        raise ValueError(
            f"gain holds {gains[row]} in row {row}; expected numbers from {-LARGEST_GAIN:g} to {LARGEST_GAIN:g}"
        )
    rows, columns, values = rows_of(X)
    return Corpus(
        lists=offsets,
        rows=rows,
        columns=columns,
        values=values,
        base=np.zeros(n) if base is None else numbers("base", base, n),
        gain=gains,
        stats=gains[:, np.newaxis],
        reference=np.ones((offsets.size - 1, 1)),
        weight=np.ones(offsets.size - 1),
        width=X.shape[1],
    )


def require_differences(lists: Corpus) -> None:
    """Refuse lists that teach nothing.

    Raises
    ------
    ValueError: all candidates of every list have the same gain.
    """
    starts = lists.lists[:-1]
    best, worst = np.maximum.reduceat(lists.gain, starts), np.minimum.reduceat(lists.gain, starts)
    if not (best > worst).any():
        n, L = lists.candidate_count, lists.list_count
        raise ValueError(
            f"gain: found {n} sample{'s' * (n > 1)} in {L} list{'s' * (L > 1)}, and in no list candidates of different "
            "gain; expected at least one list with a better and a worse candidate"
        )
