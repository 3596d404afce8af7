"""Logged updates over lists in parts: repeated part by part, or on what they touched, gathered in memory."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from rerank.data.corpus import Corpus
from rerank.data.shards import Lists, gathered, part_of, places
from rerank.learn.log import UpdateLog


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


def stretches(log: UpdateLog, lists: Lists) -> Iterator[tuple[UpdateLog, Corpus]]:
    """The updates of ``log`` in their order, as stretches on one part of ``lists`` each, and that part.

    Training visits the parts one after the other: there are as many stretches as visits to parts with updates.
    """
    arrays, where = log.arrays(), places(lists)
    part = np.searchsorted([place.lists for place in where], arrays["lists"], side="right") - 1
    ends = [0, *(np.flatnonzero(np.diff(part)) + 1), part.size]
    for start, end in pairwise(ends):
        if start == end:
            return
        place = where[int(part[start])]
        first = arrays["first"][start : end + 1]
        entries = slice(first[0], first[-1])
        own = {
            "lists": arrays["lists"][start:end] - place.lists,
            "first": first - first[0],
            "candidate": arrays["candidate"][entries] - place.candidates,
            "a": arrays["a"][entries],
            "rate": arrays["rate"][start:end],
            "survived": arrays["survived"][start : end + 1],
        }
        yield UpdateLog.from_arrays(own), part_of(lists, place.number)
