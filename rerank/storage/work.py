"""Work that is not done twice: what it leaves is an .npz file under a key, and what is there is done.

A trained run, a training that has come to the end of some epoch, the votes on a split: a file has a header (JSON) and
arrays, and appears, and is replaced, as a whole. The key is a digest of everything that the work depends on, so that
its file is not taken for that of other data, settings or code.
"""

import hashlib
import logging
import time
from pathlib import Path
from typing import Any

import numpy as np

from rerank import __version__
from rerank.storage.arrays import DAMAGE, read_archive
from rerank.storage.files import new_file
from rerank.storage.strict_json import as_json, parse_object

log = logging.getLogger("rerank")
FORMAT_VERSION = 4
HEADER = "result"
SHARE = 20.0  # the time between two saves is at least this many times what the last one took


def key_of(*parts: Any) -> str:
    """The key of work that depends on ``parts`` (JSON), and on the version of this program."""
    return hashlib.sha256(as_json([__version__, *parts]).encode()).hexdigest()


class Work:
    """A piece of work by its key, done once the file ``path`` has it.

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

    def load(self) -> tuple[dict[str, Any], dict[str, np.ndarray]] | None:
        """Header and arrays; None, and the work is to be done, where there are none, of other work, or damaged ones."""
        try:
            arrays = read_archive(self.path)
            stored = parse_object(arrays.pop(HEADER).tobytes())
            if stored["version"] == FORMAT_VERSION and stored["key"] == self._key:
                return dict(stored["header"]), arrays
            log.info("%s is of other data, settings or code: its work is done again", self.path)
            return None
        except FileNotFoundError:
            return None
        except DAMAGE as error:
            log.warning("%s cannot be read (%s): its work starts again from the beginning", self.path, error)
            return None
