"""Results of work, each a file under the key of that work: what is there is not done again.

A trained run, a training that has come to the end of some epoch, the votes on a split: each is an .npz file with a
header (JSON) and arrays, which appears, and is replaced, as a whole. The key is a digest of everything that the result
depends on, so that it is not taken for that of other data, settings or code.
"""

import json
import logging
import time
from pathlib import Path
from typing import Any

import numpy as np

from rerank.storage.arrays import DAMAGE, FAULTS
from rerank.storage.files import new_file
from rerank.storage.strict_json import as_json

log = logging.getLogger("rerank")
FORMAT_VERSION = 4
HEADER = "result"
SHARE = 20.0  # the time between two checkpoints is at least this many times what the last one took to write
Content = tuple[dict[str, Any], dict[str, np.ndarray]]


class OtherWorkError(Exception):
    """What is stored is the result of other work, or of another version of this program."""


class KeptResult:
    """The place of a result, the file ``path``; absent until the first ``save``."""

    def __init__(self, path: Path, key: str) -> None:
        self.path, self._key = path, key

    def save(self, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Replace what is on disk by ``header`` (JSON) and ``arrays`` (without objects)."""
        text = as_json({"version": FORMAT_VERSION, "key": self._key, "header": header}).encode()
        content: dict[str, Any] = {HEADER: np.frombuffer(text, np.uint8), **arrays}
        with new_file(self.path) as new, new.open("wb") as out:
            np.savez(out, **content)

    def read(self, *, arrays: bool = True) -> Content:
        """Header and, if they are wanted, arrays."""
        try:
            with np.load(self.path) as archive:
                stored = json.loads(archive[HEADER].tobytes())
                if stored["version"] != FORMAT_VERSION or stored["key"] != self._key:
                    raise OtherWorkError
                names = [name for name in archive.files if name != HEADER] if arrays else []
                return dict(stored["header"]), {name: archive[name] for name in names}
        except FAULTS as error:
            raise ValueError(f"{self.path.name}: {error}") from None

    def load(self) -> Content | None:
        """``read``; None, and the work is to be done, if nothing of it is there or it cannot be read."""
        try:
            return self.read()
        except (FileNotFoundError, OtherWorkError):
            return None
        except DAMAGE as error:
            log.warning("%s cannot be read (%s): its work starts again from the beginning", self.path, error)
            return None


class Checkpoint(KeptResult):
    """How far work has come, saved from time to time.

    seconds: the least time between two checkpoints; 0: save at every opportunity.
    """

    def __init__(self, path: Path, key: str, seconds: float) -> None:
        super().__init__(path, key)
        self._seconds, self._last, self._took = seconds, time.monotonic(), 0.0

    def due(self) -> bool:
        """Whether it is time to save again."""
        return self._seconds == 0 or time.monotonic() - self._last >= max(self._seconds, SHARE * self._took)

    def save(self, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        start = time.monotonic()
        super().save(header, arrays)
        self._last = time.monotonic()
        self._took = self._last - start
