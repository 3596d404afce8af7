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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from rerank.base.encoding import encoded
from rerank.base.errors import DataError
from rerank.base.ranges import Range
from rerank.readers.lines import LineReader, ListReader, Part, Place, Record, as_number
from rerank.readers.lists import Lists
from rerank.readers.moses_lines import BAR, FIRST_LISTS, TOTAL, File, Layout, MosesLine, fields_of, layout_of, parts_of
from rerank.readers.reader import Order, Problem, Scores, check_names
from rerank.readers.texts.text_list import Pieces
from rerank.storage.streams import InputStream, Writable

FIRST_BYTES = 1 << 24  # the first stretch has at least FIRST_LISTS lists, unless they are this large
MAX_LINES, MAX_BYTES = 1 << 20, 1 << 28  # of a list; a line takes half a kilobyte of memory
LINE_BYTES_PER_TEXT_BYTE = 4  # bytes of lines for one of their texts
OLD_TOTAL = b"BaseScore"  # the label of the total that a list had before it was reranked
_ENDS = {sign: re.compile(sign + rb"(?!\S)") for sign in (b"=", b":")}  # of labels that precede their values
_OLD_LABEL = re.compile(rb"(?:^|[\s;])BaseScore[=:]")


@dataclass(frozen=True)
class Moses(ListReader):
    """Lists of Moses, Marian, Joshua, cdec, Travatar and others.

    >>> (nbest,) = Moses().parse(b"0 ||| the house ||| LM0= -3.5 ||| -7.5\\n")
    >>> nbest.texts, nbest.names, nbest.scores
    ([b'the house'], ('LM0', 'score'), array([[-3.5, -7.5]]))

    Parameters
    ----------
    base: the name of the column that is the base score.
    duplicates: "keep" candidates that repeat an earlier one of their list, or "drop" them; both count them.
    ids: "file": increasing whole numbers; a number that is left out is a list without candidates. "ordinal": ids of any
        kind; lists are numbered from ``first_id``.
    first_id: the number of the first list.
    columns: the names of the columns; by default labelled values that all candidates of the first lists have, and those
        written ``name=value`` that nine in ten have.
    """

    holds: ClassVar[str] = "texts"

    base: str = TOTAL
    ids: Literal["file", "ordinal"] = "file"
    first_id: Annotated[int, Range(0)] = 0
    columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        check_names(self.columns, "columns")
        object.__setattr__(self, "columns", tuple(self.columns))

    @property
    def labels(self) -> tuple[str, ...] | None:
        """The labels that are columns, unless the file decides."""
        if self.columns or self.model_columns is None:
            return self.columns or None
        return tuple(name for name in dict.fromkeys((*self.model_columns.names, self.base)) if name != TOTAL)

    def whole_length(self, data: bytes) -> int:
        """The length of the longest beginning of ``data`` that is whole lists whatever follows."""
        end, begin, last = data.rfind(b"\n") + 1, 0, None
        while end:
            start = data.rfind(b"\n", 0, end - 1) + 1
            name = self.name_of(fields_of(data[start:end]))
            if name is not None and last not in (None, name):
                return begin
            last, begin = (last, begin) if name is None else (name, start)
            end = start
        return 0

    def name_of(self, fields: Sequence[bytes]) -> int | bytes | None:
        """The id of a line, which tells lists apart; None if it has none and belongs to the list before it."""
        if self.ids == "file":
            return int(fields[0]) if fields[0].isdigit() and len(fields[0]) <= 18 else None  # any 18 fit an int64
        return fields[0] if len(fields) > 1 else None

    def can_split(self, traits: Mapping[str, Any]) -> bool:
        return "file" in traits and self.ids == "file"

    def stretches(self, stream: InputStream, lists: int, size: int) -> Iterator[Part]:
        """Texts are a small part of their lines."""
        data, line, ordinal, piece = b"", 0, 0, b"-"
        while piece and len(data) <= MAX_BYTES + size:  # nobody reads further
            piece = stream.read(size)
            data += piece
            end = self.whole_length(data) if piece else len(data)
            names = map(self.name_of, map(fields_of, reversed(data[:end].split(b"\n"))))
            count = max(0, next((int(name) for name in names if name is not None), -1) + 1 - self.first_id - ordinal)
            if end and (not piece or count >= lists or end >= LINE_BYTES_PER_TEXT_BYTE * size):
                yield data[:end], line, ordinal, count
                data, line, ordinal = data[end:], line + data.count(b"\n", 0, end), ordinal + count

    def records(self, lines: LineReader) -> Iterator[Record]:
        """Whole lists, as many as have been read at once, but enough to tell the columns: their lines, and which of
        these begin one. Memory holds a chunk and the longest list."""
        buffer, begins, size, last, enough = list[MosesLine](), [0], 0, None, self.can_split(lines.traits)
        for first, some in lines.chunks():
            for number, text in enumerate(some, first):
                fields = fields_of(text)
                if fields == (b"",):
                    continue
                name = self.name_of(fields)
                if last is not None and name not in (None, last):
                    begins.append(len(buffer))
                last = last if name is None else name
                buffer.append(MosesLine(number, text, fields, name))
            size, end = size + sum(map(len, some)), begins[-1]
            enough = enough or size > FIRST_BYTES or len(begins) > FIRST_LISTS
            if end and enough:
                yield Record(None, buffer[0].number, (buffer[:end], begins))
                buffer, begins = buffer[end:], [0]
                size = sum(len(one.text) for one in buffer)
            if len(buffer) - begins[-1] > MAX_LINES or size > MAX_BYTES:
                message = f"a list of more than {MAX_LINES:,} lines or {MAX_BYTES >> 20} MiB; do they have the ids "
                message += "they should? Expected 'id ||| text ||| features ||| score'"
                raise DataError(message, path=lines.path, line=buffer[begins[-1]].number)
        if buffer:
            yield Record(None, buffer[0].number, (buffer, [*begins, len(buffer)]))

    def build_lists(self, lines: LineReader, records: Iterable[Record]) -> Iterator[Lists]:
        """Ids that are left out give empty lists."""
        file = copy(lines.traits["file"]) if self.can_split(lines.traits) else File(self, lines.path)
        file.next = self.first_id + lines.records
        for k, record in enumerate(records):
            for lists in file.lists(*record.content, nul=lines.nul):
                if k == 0 and file.is_final:
                    lines.traits.setdefault("file", copy(file))
                yield lists

    def lists(
        self, lines: LineReader, records: Iterable[Record], id_places: dict[str, Place] | None = None  # noqa: ARG002
    ) -> Iterator[Lists]:  # fmt: skip
        """Ids that rise tell lists apart."""
        return self.build_lists(lines, records)

    def write(self, out: Writable, nbest: Lists, order: Order = None, scores: Scores = None) -> None:
        """Lines are written as they were read, except for the total.

        The total is replaced, and the first one is kept among the features as ``BaseScore``. A list without candidates
        is left out, as by Moses, unless lists are numbered by their order. Lists of other formats can be written too.
        """
        if not len(nbest) and self.ids == "ordinal":
            out.write(encoded(f"list-{nbest.id} |||\n"))
        layout = nbest.raw.head if isinstance(nbest.raw, Pieces) and isinstance(nbest.raw.head, Layout) else None
        for i in range(len(nbest)) if order is None else order:
            line = compose(nbest, i) if layout is None else bytes(nbest.raw.candidates[i])
            out.write((line if scores is None else rescore(layout, line, float(scores[i]))) + b"\n")

    def write_bad(self, out: Writable, bad: Problem, like: Lists | None) -> None:  # noqa: ARG002
        """Writes a line with an id, an empty text, and nothing else."""
        out.write(encoded(f"{bad.id} |||\n" if self.ids == "file" else f"list-{bad.id} |||\n"))


def rescore(layout: Layout | None, line: bytes, score: float) -> bytes:
    """``line`` with another total; the old one is added to the features, unless they hold an earlier one.

    layout: the layout of the file that the line is from; lists of several files may have several layouts.
    """
    parts = parts_of(line)
    fields = list(map(bytes.strip, parts))
    fits = layout is not None and layout.fields == len(fields)
    if layout is None or not fits or (layout.score >= 0 and as_number(fields[layout.score]) is None):
        layout = layout_of(fields)
    features = fields[layout.features] if layout.features >= 0 else b""

    def put(field: int, text: bytes) -> None:
        """Put ``text`` into a field, between the white space that is there."""
        blank = b" " * (field + 1 < len(parts))
        parts[field] = parts[field].replace(fields[field], text, 1) if fields[field] else b" " + text + blank

    if layout.score < 0:
        put(layout.features, b"%s ||| %r" % (features, score))
        return b"|||".join(parts)
    old = fields[layout.score]
    put(layout.score, b"%s= %s ||| %r" % (OLD_TOTAL, old, score) if layout.features < 0 else b"%r" % score)
    if layout.features >= 0 and not (OLD_TOTAL in features and _OLD_LABEL.search(features)):
        alone = b";" in features and len(features.split()) == 1  # label=value;label=value, as cdec writes them
        sign = b":" if b":" in features and b"=" not in features else b"="
        label = OLD_TOTAL + sign + b" " * (sign not in features or _ENDS[sign].search(features) is not None)
        put(layout.features, (features + (b";" if alone else b" ") + label + old).strip())
    return b"|||".join(parts)


def compose(nbest: Lists, i: int) -> bytes:
    """A line for a candidate of another format: all scores except the base score become labelled values."""
    one = nbest.candidates[i]
    values = [*one.columns.items(), *one.features.items()]
    derivations = [column[i] for column in (nbest.segmentation, nbest.alignment) if column is not None]
    features = b" ".join(b"%s= %r" % (b"_".join(encoded(name).split()) or b"_", value) for name, value in values)
    fields = [encoded(nbest.id), nbest.original(i), features, b"%r" % one.score, *derivations]
    if any(b"\n" in field or BAR.search(field) for field in fields):
        message = f"candidate {i + 1} cannot be written on a line: there is a line break or '|||' in it"
        raise DataError(message, path=nbest.path, line=nbest.lines[i], list_id=nbest.id)
    return b" ||| ".join(fields)
