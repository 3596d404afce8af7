"""Results of work, each a file under the key of that work: what is there is not done again.

A trained run, a training that has come to the end of some epoch, the votes on a split: each is an .npz file with a
header (JSON) and arrays, which appears, and is replaced, as a whole. The key is a digest of everything that the result
depends on, so that it is not taken for that of other data, settings or code.
"""

import logging
import time
from pathlib import Path
from typing import Any

import numpy as np

from rerank.storage.arrays import DAMAGE, read_archive
from rerank.storage.files import new_file
from rerank.storage.strict_json import as_json, parse_object

log = logging.getLogger("rerank")
FORMAT_VERSION = 4
HEADER = "result"
SHARE = 20.0  # the time between two saves is at least this many times what the last one took
Content = tuple[dict[str, Any], dict[str, np.ndarray]]


class OtherWorkError(Exception):
    """The stored result belongs to other work, or to another version of this program."""


class KeptResult:
    """The place of a result, the file ``path``; absent until the first ``save``.

    seconds: of work that goes on, the least time between two saves; 0: at every opportunity.
    """

    def __init__(self, path: Path, key: str, seconds: float = 0.0) -> None:
        self.path, self._key, self._seconds = path, key, seconds
        self._last, self._took = time.monotonic(), 0.0

    def due(self) -> bool:
        """Whether it is time to save how far work has come."""
        return self._seconds == 0 or time.monotonic() - self._last >= max(self._seconds, SHARE * self._took)

    def save(self, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Replace what is on disk by ``header`` (JSON) and ``arrays`` (without objects)."""
        start = time.monotonic()
        text = as_json({"version": FORMAT_VERSION, "key": self._key, "header": header}).encode()
        content: dict[str, Any] = {HEADER: np.frombuffer(text, np.uint8), **arrays}
        with new_file(self.path) as new, new.open("wb") as out:
            np.savez(out, **content)
        self._last = time.monotonic()
        self._took = self._last - start

    def read(self) -> Content:
        """Header and arrays."""
        arrays = read_archive(self.path)
        stored = parse_object(arrays.pop(HEADER).tobytes())
        if stored["version"] != FORMAT_VERSION or stored["key"] != self._key:
            raise OtherWorkError
        return dict(stored["header"]), arrays

    def load(self) -> Content | None:
        """``read``; None, and the work is to be done, if nothing of it is there or it cannot be read."""
        try:
            return self.read()
        except (FileNotFoundError, OtherWorkError):
            return None
        except DAMAGE as error:
            log.warning("%s cannot be read (%s): its work starts again from the beginning", self.path, error)
            return None
