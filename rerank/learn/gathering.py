"""Logged updates over lists in parts: what they touched is gathered, so that they can be repeated in memory."""

from __future__ import annotations

import numpy as np

from rerank.corpus import Corpus
from rerank.learn.log import UpdateLog
from rerank.shards import Lists, gathered


def gather(log: UpdateLog, lists: Lists) -> tuple[UpdateLog, Corpus]:
    """The updates of ``log`` and a corpus in memory that they can be repeated on.

    That is ``lists`` itself where it is in memory, else the candidates that were part of an update: what repeating
    needs grows with the updates, not with the lists.
    """
    if isinstance(lists, Corpus):
        return log, lists
    if lists.count == 1:
        return log, lists.part(0)
    arrays = log.arrays()
    touched, candidates = np.unique(arrays["lists"]), np.unique(arrays["candidate"])
    if touched.size == 0:
        return log, lists.part(0).slice(0, 0)
    arrays["lists"] = np.searchsorted(touched, arrays["lists"])
    arrays["candidate"] = np.searchsorted(candidates, arrays["candidate"])
    return UpdateLog.from_arrays(arrays), gathered(lists, touched, candidates)
