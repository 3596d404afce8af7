"""Labels by their bytes, in a hash table that kernels can read."""

from typing import Any

import numpy as np

from rerank.data.labelled import canonical
from rerank.kernels.compile import kernel


@kernel
def label_slot(
    data: np.ndarray, first: int, last: int, slots: np.ndarray, pool: np.ndarray, offsets: np.ndarray
) -> Any:
    """Where in ``slots`` the label data[first:last] is, or belongs.

    ``slots`` (int64, size a power of two) holds entry numbers or -1; the text of entry e is
    pool[offsets[e]:offsets[e + 1]].
    """
    h = np.int64(1469598103934665603)
    for p in range(first, last):  # FNV-1a
        h = (h ^ np.int64(data[p])) * np.int64(1099511628211)
    mask = slots.shape[0] - 1
    s = (h ^ (h >> 32)) & mask
    while slots[s] >= 0:
        start = offsets[slots[s]]
        if offsets[slots[s] + 1] - start == last - first:
            p = first
            while p < last and pool[start + p - first] == data[p]:
                p += 1
            if p == last:
                return s
        s = (s + 1) & mask
    return s


class LabelTable:
    """The labels found so far and the numbers of their classes, as the table that the kernel reads."""

    def __init__(self) -> None:
        self.classes: dict[str, int] = {}
        self.slots = np.full(64, -1, np.int64)
        self.pool = np.zeros(1 << 10, np.uint8)
        self.offsets = np.zeros(33, np.int64)
        self.entry_class = np.zeros(32, np.int64)
        self.count = 0

    def add(self, token: np.ndarray, label: str) -> None:
        """Add a label, given its bytes (uint8) and its text."""
        if self.count == self.entry_class.size:
            self._double()
        first = self.offsets[self.count]
        while first + token.size > self.pool.size:
            self.pool = np.concatenate([self.pool, np.zeros_like(self.pool)])
        self.pool[first : first + token.size] = token
        self.offsets[self.count + 1] = first + token.size
        self.entry_class[self.count] = self.classes.setdefault(canonical(label), len(self.classes))
        self._place(self.count)
        self.count += 1

    def _place(self, entry: int) -> None:
        start, end = int(self.offsets[entry]), int(self.offsets[entry + 1])
        self.slots[label_slot(self.pool, start, end, self.slots, self.pool, self.offsets)] = entry

    def _double(self) -> None:
        self.offsets = np.concatenate([self.offsets, np.zeros(self.count, np.int64)])
        self.entry_class = np.concatenate([self.entry_class, np.zeros(self.count, np.int64)])
        self.slots = np.full(2 * self.slots.size, -1, np.int64)
        for entry in range(self.count):
            self._place(entry)
