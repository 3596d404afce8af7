"""Results of work, whole or partial, in directories under the key of that work: what is there is not done again.

A finished run, a training that has come to some epoch, votes that have been counted so far, a block of lists that has
been extracted: each is a header (JSON) and arrays, with checksums, in a directory that appears as a whole. The key is a
digest of everything that the result depends on, so that it is not taken for that of other data, settings or code.
"""

import json
import logging
import time
from pathlib import Path
from typing import Any

import numpy as np

from rerank.storage.arrays import DAMAGE, read_array
from rerank.storage.checksums import seal, verify
from rerank.storage.files import new_directory
from rerank.storage.strict_json import as_json

log = logging.getLogger("rerank")
FORMAT_VERSION = 3
HEADER = "result.json"
SHARE = 20.0  # the time between two checkpoints is at least this many times what the last one took to write
Content = tuple[dict[str, Any], dict[str, np.ndarray]]


class OtherWorkError(Exception):
    """What is stored is the result of other work."""


class KeptResult:
    """The place of a result; absent until the first ``save``.

    Parameters
    ----------
    directory: it appears, and is replaced, as a whole.
    key: identifies the work (digests of data, settings and code).
    synced: whether it is to survive a power failure; its checksums tell in any case.
    """

    def __init__(self, directory: Path, key: str, *, synced: bool = True) -> None:
        self.directory, self._key, self._synced = directory, key, synced

    def save(self, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Replace what is on disk by ``header`` (JSON) and ``arrays`` (without objects).

        Raises
        ------
        RunError: it cannot be written; what was there stays.
        """
        with new_directory(self.directory, synced=self._synced) as new:
            for name, array in arrays.items():
                np.save(new / f"{name}.npy", array, allow_pickle=False)
            text = as_json({"version": FORMAT_VERSION, "key": self._key, "header": header, "arrays": list(arrays)})
            (new / HEADER).write_text(text, encoding="utf-8")
            seal(new)

    def check(self) -> dict[str, Any]:
        """The file with the header, if it is of this work.

        Raises
        ------
        OtherWorkError: it is of other work, or of another version of this program.
        OSError, ValueError and others: see ``DAMAGE``.
        """
        stored = json.loads((self.directory / HEADER).read_text(encoding="utf-8"))
        if stored["version"] != FORMAT_VERSION or stored["key"] != self._key:
            raise OtherWorkError
        return dict(stored)

    def read(self, *, mmap: bool = False) -> Content:
        """Header and arrays (memory-mapped or in memory); raises what ``check`` does."""
        verify(self.directory)
        stored = self.check()
        arrays = {name: read_array(self.directory / f"{name}.npy", mmap=mmap) for name in stored["arrays"]}
        return dict(stored["header"]), arrays

    def load(self, *, mmap: bool = False) -> Content | None:
        """``read``; None, and the work is to be done, if nothing of it is there or it cannot be read."""
        if not self.directory.exists():
            return None
        try:
            return self.read(mmap=mmap)
        except OtherWorkError:
            return None
        except DAMAGE as error:
            log.warning("%s cannot be read (%s): its work starts again from the beginning", self.directory, error)
            return None


class Checkpoint(KeptResult):
    """The state of work that is under way, saved from time to time.

    seconds: the least time between two checkpoints; 0: save at every opportunity.
    """

    def __init__(self, directory: Path, key: str, seconds: float) -> None:
        super().__init__(directory, key)
        self._seconds, self._last, self._took = seconds, time.monotonic(), 0.0

    def due(self) -> bool:
        """Is it time to save again?"""
        return self._seconds == 0 or time.monotonic() - self._last >= max(self._seconds, SHARE * self._took)

    def save(self, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        start = time.monotonic()
        super().save(header, arrays)
        self._last = time.monotonic()
        self._took = self._last - start
