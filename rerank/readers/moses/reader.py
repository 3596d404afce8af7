"""Moses-style lists: one candidate per line, its fields separated by ``|||``, as many programs write them.

Three lines this reads::

    0 ||| the house ||| LM0= -3.1 TM0= -0.5 -1.25 WT_the~das= 1 ||| -7.5 ||| 0=0 1=1 ||| 0-0 1-1
    0 ||| a house ||| LM0= -3.9 TM0= -1.5 -1 ||| -8.25 ||| 0=0 1=1 ||| 0-0 1-1
    1 ||| it rains ||| LM0= -2 TM0= -0.75 -2.5 ||| -5 ||| 0-1=0-1 ||| 0-0 1-1

The fields are the id, the text, labelled values, the total and optionally segmentation and word alignment; Travatar's
total precedes the values, cdec's may be missing. Marian puts a word alignment and the scores of words before the
values, Joshua the path through a lattice before the text. The first lists decide which variant it is. Moses' phrase
marks in the text, ``the house |0-1|``, are turned into a segmentation.

Labelled values that all candidates have are score columns, ``LM0`` or, if a label has several values, ``TM0_0`` and
``TM0_1``; values without a label are ``0``, ``1``... All others are sparse. The last column, ``score``, is the total,
0 if there is none; scores of words give ``sum``, ``mean``, ``min`` and ``length``. Blank lines are ignored. A line
without an id is a bad candidate of the list before it. A line with an id and an empty text, ``7 |||``, is a list
without candidates.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from rerank.base.ranges import Checked, Range
from rerank.readers.base import NBestList, Reader, SkippedList, readers
from rerank.readers.moses.file import File
from rerank.readers.moses.layout import TOTAL
from rerank.readers.moses.lines import read_blocks
from rerank.readers.moses.writing import line_of, rescored
from rerank.readers.score_columns import check_names
from rerank.readers.streams import PathLike, Writable, open_stream
from rerank.readers.texts.text_list import TextList


@readers.add("moses")
@dataclass(frozen=True)
class Moses(Checked, Reader):
    """Lists of Moses, Marian, Joshua, cdec, Travatar and others.

    Parameters
    ----------
    base: the name of the column that is the base score.
    duplicates: "keep" candidates that repeat an earlier text of their list, or "drop" them; both count them.
    ids: "file": increasing whole numbers; a number that is left out is a list without candidates. "ordinal": ids of any
        kind; lists are numbered from ``first_id``.
    first_id: the number of the first list.
    features: "auto": labelled values that all candidates of the first lists have are columns, and those written
        ``name=value`` that nine in ten have; "dense": all are columns; "sparse": none is.
    columns: the names of the columns, instead of letting the file decide.
    """

    holds: ClassVar[str] = "texts"

    base: str = TOTAL
    duplicates: Literal["keep", "drop"] = "keep"
    ids: Literal["file", "ordinal"] = "file"
    first_id: Annotated[int, Range(0)] = 0
    features: Literal["auto", "dense", "sparse"] = "auto"
    columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        check_names(self.columns, "columns")
        object.__setattr__(self, "columns", tuple(self.columns))

    @property
    def asked(self) -> tuple[str, ...] | None:
        """The labels that are columns, unless the file decides."""
        if self.columns or self.known is None:
            return self.columns or None
        return tuple(name for name in dict.fromkeys((*self.known.names, self.base)) if name != TOTAL)

    def read(self, path: PathLike) -> Iterator[TextList | SkippedList]:
        """See ``Reader.read``; ids that are left out give empty lists.

        Raises
        ------
        DataError: ids do not increase, or leave out too many; no column has the name ``base``; a line or list does not
            end; or the stream cannot be read.
        """
        with open_stream(path, strict=False) as stream:
            file = File(self, stream.path)
            for block in read_blocks(stream, self.ids == "file"):
                yield from file.lists(block)

    def write(
        self, out: Writable, nbest: NBestList, order: Sequence[int] | None = None, scores: np.ndarray | None = None
    ) -> None:
        """See ``Reader.write``; lines are written as they were read, except for the total.

        The total is replaced, and the first one is kept among the features as ``BaseScore``. A list without candidates
        is left out, as by Moses, unless lists are numbered by their order. Lists of other formats can be written too.

        Raises
        ------
        DataError: a text of another format contains a line break or ``|||``.
        """
        chosen = range(len(nbest)) if order is None else order
        if not len(nbest) and self.ids == "ordinal":
            out.write(_marker(f"list-{nbest.id}"))
        lines = [line_of(nbest, int(i)) for i in chosen]
        if scores is not None:
            lines = [rescored(nbest, line, float(scores[i])) for line, i in zip(lines, chosen, strict=True)]
        out.write(b"".join([line + b"\n" for line in lines]))

    def write_bad(self, out: Writable, bad: SkippedList, like: NBestList | None) -> None:  # noqa: ARG002
        """See ``Reader.write_bad``; writes a line with an id, an empty text, and nothing else."""
        out.write(_marker(bad.id if self.ids == "file" else f"list-{bad.id}"))


def _marker(name: str) -> bytes:
    """The line that stands for a list without candidates."""
    return f"{name} |||\n".encode("utf-8", "surrogateescape")
