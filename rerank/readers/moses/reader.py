"""Moses-style lists: one candidate per line, its fields separated by ``|||``, as many programs write them.

Three lines this reads::

    0 ||| the house ||| LM0= -3.1 TM0= -0.5 -1.25 WT_the~das= 1 ||| -7.5 ||| 0=0 1=1 ||| 0-0 1-1
    0 ||| a house ||| LM0= -3.9 TM0= -1.5 -1 ||| -8.25 ||| 0=0 1=1 ||| 0-0 1-1
    1 ||| it rains ||| LM0= -2 TM0= -0.75 -2.5 ||| -5 ||| 0-1=0-1 ||| 0-0 1-1

The fields are the id, the text, labelled values, the total and optionally segmentation and word alignment; Travatar's
total precedes the values, cdec's may be missing. Marian puts a word alignment and the scores of words before the
values, or these among them, Joshua the path through a lattice before the text. The first lists decide which variant it
is. Moses' phrase marks in the text, ``the house |0-1|``, are turned into a segmentation.

Labelled values that all candidates have are score columns, ``LM0`` or, if a label has several values, ``TM0_0`` and
``TM0_1``; values without a label are ``0``, ``1``... All others are sparse. The last column, ``score``, is the total,
0 if there is none; scores of words give ``sum``, ``mean``, ``min`` and ``length``. Blank lines are ignored. A line
without an id is a bad candidate of the list before it. A line with an id and an empty text, ``7 |||``, is a list
without candidates.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from typing import Annotated, ClassVar, Literal

from rerank.base.encoding import encoded
from rerank.base.errors import DataError
from rerank.base.ranges import Checked, Range
from rerank.readers.base import NBestList, Order, Reader, Scores, SkippedList
from rerank.readers.moses.file import File, read_blocks
from rerank.readers.moses.labels import TOTAL
from rerank.readers.moses.layout import BAR, Layout, as_number, layout_of, parts_of
from rerank.readers.score_columns import check_names
from rerank.readers.streams import InputStream, PathLike, Writable, open_stream
from rerank.readers.texts.text_list import Pieces, TextList

OLD = b"BaseScore"  # the label of the total that a list had before it was reranked

_OLD_LABEL = re.compile(rb"(?:^|[\s;])BaseScore[=:]")


def line_of(nbest: NBestList, i: int) -> bytes:
    """The line of candidate i: as it was read or, for a list of another format, composed."""
    known = _known_layout(nbest)
    return _composed(nbest, i) if known is None else bytes(nbest.raw.candidates[i])


def _known_layout(nbest: NBestList) -> Layout | None:
    """The layout of a list's own file; None if it is of another format."""
    head = nbest.raw.head if isinstance(nbest, TextList) and isinstance(nbest.raw, Pieces) else None
    return head if isinstance(head, Layout) else None


def rescored(nbest: NBestList, line: bytes, score: float) -> bytes:
    """``line`` with another total; the old one is added to the features, unless they hold an earlier one."""
    parts = parts_of(line)
    layout = _layout(nbest, parts)
    new = repr(score).encode()
    if layout.score < 0:
        parts.insert(layout.features + 1, b" " + new + b" " * (layout.features + 1 < len(parts)))
        parts[layout.features] = parts[layout.features].rstrip() + b" "
        return b"|||".join(parts)
    old = parts[layout.score].strip()
    last = layout.score == len(parts) - 1
    if layout.features < 0:
        new = OLD + b"= " + old + b" ||| " + new
    elif not _OLD_LABEL.search(parts[layout.features]):
        features = parts[layout.features].strip()
        features += _separator(features) + OLD + _mark(features) + old
        parts[layout.features] = _padded(parts[layout.features], features, layout.features == len(parts) - 1)
    parts[layout.score] = _padded(parts[layout.score], new, last)
    return b"|||".join(parts)


def _layout(nbest: NBestList, parts: list[bytes]) -> Layout:
    """The layout of the file that the line is from; lists of several files may have several layouts."""
    fields = [part.strip() for part in parts]
    known = _known_layout(nbest)
    if known is None or known.fields != len(fields):
        return layout_of(fields)
    return known if known.score < 0 or as_number(fields[known.score]) is not None else layout_of(fields)


def _padded(part: bytes, text: bytes, last: bool) -> bytes:
    """``text`` with the white space around ``part``."""
    if not part.strip():
        return b" " + text + b" " * (not last)
    body = part.strip()
    at = part.index(body)
    return part[:at] + text + part[at + len(body) :]


def _separator(features: bytes) -> bytes:
    """The separator of labelled values: a blank or, as cdec writes them, a semicolon."""
    if not features:
        return b""
    return b";" if b";" in features and len(features.split()) == 1 else b" "


def _mark(features: bytes) -> bytes:
    """The separator of a label from its value."""
    mark = b":" if b":" in features and b"=" not in features else b"="
    joined = mark in features and not any(word.endswith(mark) for word in features.split())
    return mark if joined else mark + b" "


def _composed(nbest: NBestList, i: int) -> bytes:
    """A line for a candidate of another format: all scores except the base score become labelled values."""
    names = nbest.names if isinstance(nbest, TextList) else ()
    names = names or tuple(map(str, range(nbest.scores.shape[1])))
    values = list(zip(map(encoded, names), nbest.scores[i].tolist(), strict=True))
    del values[nbest.column]
    derivations: list[bytes] = []
    if isinstance(nbest, TextList):
        if nbest.sparse is not None:
            begin, end = nbest.sparse.first[i : i + 2].tolist()
            values += zip(nbest.sparse.names[begin:end], nbest.sparse.values[begin:end].tolist(), strict=True)
        derivations = [column[i] for column in (nbest.segmentation, nbest.alignment) if column is not None]
    features = b" ".join((b"_".join(name.split()) or b"_") + b"= " + repr(value).encode() for name, value in values)
    base = repr(float(nbest.base[i])).encode()
    fields = [encoded(nbest.id), nbest.written(i), features, base, *derivations]
    if any(b"\n" in field or BAR.search(field) for field in fields):
        message = f"candidate {i + 1} cannot be written on a line: there is a line break or '|||' in it"
        raise DataError(message, path=nbest.path, line=nbest.lines[i], list_id=nbest.id)
    return b" ||| ".join(fields)


@dataclass(frozen=True)
class Moses(Checked, Reader):
    """Lists of Moses, Marian, Joshua, cdec, Travatar and others.

    >>> (nbest,) = Moses().parse(b"0 ||| the house ||| LM0= -3.5 ||| -7.5\\n")
    >>> nbest.texts, nbest.names, nbest.scores
    ([b'the house'], ('LM0', 'score'), array([[-3.5, -7.5]]))

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
        """Ids that are left out give empty lists."""
        with open_stream(path, strict=False) as stream:
            yield from self._lists(stream)

    def parse(self, data: bytes) -> Iterator[TextList | SkippedList]:
        """The lists of a file's contents."""
        return self._lists(InputStream(BytesIO(data), ""))

    def _lists(self, stream: InputStream) -> Iterator[TextList | SkippedList]:
        file = File(self, stream.path)
        for block in read_blocks(stream, self.ids == "file"):
            yield from file.lists(block)

    def write(self, out: Writable, nbest: NBestList, order: Order = None, scores: Scores = None) -> None:
        """Lines are written as they were read, except for the total.

        The total is replaced, and the first one is kept among the features as ``BaseScore``. A list without candidates
        is left out, as by Moses, unless lists are numbered by their order. Lists of other formats can be written too.
        """
        chosen = range(len(nbest)) if order is None else order
        if not len(nbest) and self.ids == "ordinal":
            out.write(_marker(f"list-{nbest.id}"))
        lines = [line_of(nbest, int(i)) for i in chosen]
        if scores is not None:
            lines = [rescored(nbest, line, float(scores[i])) for line, i in zip(lines, chosen, strict=True)]
        out.write(b"".join([line + b"\n" for line in lines]))

    def write_bad(self, out: Writable, bad: SkippedList, like: NBestList | None) -> None:  # noqa: ARG002
        """Writes a line with an id, an empty text, and nothing else."""
        out.write(_marker(bad.id if self.ids == "file" else f"list-{bad.id}"))


def _marker(name: str) -> bytes:
    """The line that stands for a list without candidates."""
    return encoded(f"{name} |||\n")
