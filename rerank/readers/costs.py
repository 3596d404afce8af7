"""Lists whose base scores are costs: lower is better."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rerank.readers.base import NBestList, Reader, SkippedList
from rerank.readers.streams import PathLike, Writable


@dataclass(frozen=True)
class CostReader(Reader):
    """Lists of another reader with their base scores negated, so that higher is better; written with their own sign.

    Parameters
    ----------
    inner: the reader of the lists.
    """

    inner: Reader

    @property
    def within(self) -> tuple[Reader, ...]:
        return (self.inner,)

    @property
    def files(self) -> int | None:
        return self.inner.files

    def paths(self, path: PathLike) -> list[str]:
        return self.inner.paths(path)

    def read(self, path: PathLike) -> Iterator[NBestList | SkippedList]:
        for nbest in self.inner.knowing(self.known, normal=self.normal).read(path):
            yield nbest if isinstance(nbest, SkippedList) else _negated(nbest)

    def write(
        self, out: Writable, nbest: NBestList, order: Sequence[int] | None = None, scores: np.ndarray | None = None
    ) -> None:
        """See ``Reader.write``; new scores are written as costs too."""
        self.inner.write(out, _negated(nbest), order, None if scores is None else 0.0 - scores)

    def write_bad(self, out: Writable, bad: SkippedList, like: NBestList | None) -> None:
        self.inner.write_bad(out, bad, like)


def _negated(nbest: NBestList) -> NBestList:
    """A list with its base scores negated; 0 stays 0."""
    scores = nbest.scores.copy()
    scores[:, nbest.column] = 0.0 - scores[:, nbest.column]
    return replace(nbest, scores=scores)
