"""Formats that cannot hold new scores."""

from collections.abc import Sequence

import numpy as np

from rerank.readers.base import NBestList, Reader, SkippedList
from rerank.readers.streams import Writable
from rerank.readers.texts.jsonl import JsonlReader


class WrittenAsJsonl(Reader):
    """A reader whose lists are written in the format ``jsonl``, which holds whatever a list of texts has."""

    def write(
        self, out: Writable, nbest: NBestList, order: Sequence[int] | None = None, scores: np.ndarray | None = None
    ) -> None:
        JsonlReader().write(out, nbest, order, scores)

    def write_bad(self, out: Writable, bad: SkippedList, like: NBestList | None) -> None:  # noqa: ARG002
        JsonlReader().write_bad(out, bad, None)
