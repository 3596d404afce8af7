"""Checkpoints: the state of training or voting on disk, so that work done before an interruption is not repeated."""

from __future__ import annotations

import json
import logging
import time
from pathlib import Path
from typing import Any

import numpy as np

from rerank.storage.arrays import DAMAGE, read_array
from rerank.storage.checksums import seal, verify
from rerank.storage.files import new_directory, remove
from rerank.storage.strict_json import as_json

log = logging.getLogger("rerank")
FORMAT_VERSION = 2
SHARE = 20.0  # the time between two checkpoints is at least this many times what the last one took to write


class Checkpoint:
    """A directory that holds the state of one piece of work; absent until the first ``save``.

    Parameters
    ----------
    directory: it appears, and is replaced, as a whole.
    key: identifies the work (digests of data and settings); a checkpoint of other work is not continued.
    seconds: the least time between two checkpoints; 0: save at every opportunity.
    """

    def __init__(self, directory: Path, key: str, seconds: float) -> None:
        self._directory, self._key, self._seconds = directory, key, seconds
        self._last, self._took = time.monotonic(), 0.0

    @property
    def directory(self) -> Path:
        """Where it is, or will be."""
        return self._directory

    def due(self) -> bool:
        """Is it time to save again?"""
        return self._seconds == 0 or time.monotonic() - self._last >= max(self._seconds, SHARE * self._took)

    def save(self, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Replace what is on disk by ``header`` (JSON) and ``arrays`` (without objects).

        Raises
        ------
        RunError: it cannot be written; the previous checkpoint stays.
        """
        start = time.monotonic()
        with new_directory(self._directory) as new:
            for name, array in arrays.items():
                np.save(new / f"{name}.npy", array, allow_pickle=False)
            text = as_json({"version": FORMAT_VERSION, "key": self._key, "header": header, "arrays": list(arrays)})
            (new / "checkpoint.json").write_text(text, encoding="utf-8")
            seal(new)
        self._last = time.monotonic()
        self._took = self._last - start

    def load(self) -> tuple[dict[str, Any], dict[str, np.ndarray]] | None:
        """What was saved last; None if nothing of this work is there, or it cannot be read."""
        if not self._directory.exists():
            return None
        try:
            stored = json.loads((self._directory / "checkpoint.json").read_text(encoding="utf-8"))
            if stored["version"] != FORMAT_VERSION or stored["key"] != self._key:
                return None
            verify(self._directory)
            arrays = {name: read_array(self._directory / f"{name}.npy") for name in stored["arrays"]}
            return dict(stored["header"]), arrays
        except DAMAGE as error:
            log.warning(
                "the checkpoint in %s cannot be read (%s): its work starts again from the beginning",
                self._directory,
                error,
            )
            return None

    def remove(self) -> None:
        """Remove it: the work is done."""
        remove(self._directory)
