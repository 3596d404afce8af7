"""Moses-style files as blocks of whole lists, with the positions of all lines and fields."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from rerank.base.errors import DataError
from rerank.readers.base import excerpt
from rerank.readers.lines import LONGEST
from rerank.readers.moses.kernel import BEGIN, COUNT, END, FIRST, NUMBER, WIDTH, group_lines, index_lines
from rerank.readers.streams import InputStream

CHUNK = 1 << 20  # bytes read at a time
FIRST_LISTS, FIRST_BYTES = 20, 1 << 24  # the first block has at least this many lists, unless they are this large
STRAYS = 1 << 16  # lines in a row without an id; more are not a damaged list but another kind of file
LARGEST_LIST = 1 << 30  # bytes of a list
MOST = 1 << 20  # candidates of a list; each takes half a kilobyte of memory


class MosesBlock(NamedTuple):
    """Some whole lists of a file."""

    data: bytes
    rows: np.ndarray  # int64 [n, WIDTH]: the lines, see ``index_lines``
    ids: np.ndarray  # int64 [n]: their whole-number ids, or -1
    starts: np.ndarray  # int64 [lists + 1]: the lines of list i are starts[i]..starts[i + 1]
    line: int  # number of lines before the block
    pieces: int  # an upper bound of the number of labels and values
    marked: bool  # whether there may be |0-1| marks

    def field(self, line: int, field: int) -> bytes:
        """A field of a line; ``field`` must be less than the line's number of fields, and than FIELDS."""
        begin, end = self.rows[line, FIRST + 2 * field : FIRST + 2 * field + 2].tolist()
        return self.data[begin:end]

    def line_text(self, line: int) -> bytes:
        """A line without its line end."""
        begin, end = self.rows[line, [BEGIN, END]].tolist()
        return self.data[begin:end]

    def column(self, field: int) -> list[bytes]:
        """A field of every line, which all lines must have."""
        return self.texts(slice(None), FIRST + 2 * field)

    def texts(self, lines: slice, place: int) -> list[bytes]:
        """The bytes from ``rows[:, place]`` to ``rows[:, place + 1]`` of some lines."""
        begins, ends = self.rows[lines, place].tolist(), self.rows[lines, place + 1].tolist()
        return [self.data[begin:end] for begin, end in zip(begins, ends, strict=True)]


def read_blocks(stream: InputStream, numbered: bool) -> Iterator[MosesBlock]:
    """The lists of ``stream`` in blocks of whole lists; ``numbered``: their ids are whole numbers.

    Memory holds a chunk and the longest list.
    """
    data, line, wanted, ended = b"", 0, FIRST_LISTS, False
    while not ended:
        piece = stream.read(max(CHUNK, len(data)))
        ended = not piece
        data += piece
        array, room = np.frombuffer(data, np.uint8), data.count(b"\n") + 1
        rows, ids, starts = np.empty((room, WIDTH), np.int64), np.empty(room, np.int64), np.empty(room + 1, np.int64)
        count, number, used, pieces, marks = index_lines(array, ended, rows, ids)
        _check_lengths(stream.path, rows[:count], line, number, len(data) - used)
        rows, ids = rows[:count], ids[:count]
        lists = group_lines(array, rows, ids, numbered, starts)
        whole = lists if ended else lists - 1
        if not ended and whole < wanted and (whole < 1 or len(data) < FIRST_BYTES):
            if lists:
                starts[lists] = count
                _check_sizes(stream.path, rows, line, starts[: lists + 1])
                _check_list(stream.path, data, rows, ids, line, int(starts[lists - 1]), numbered)
            else:  # nothing but blank lines
                data, line = data[used:], line + number
            continue
        wanted = 1
        starts[lists] = count
        _check_sizes(stream.path, rows, line, starts[: lists + 1])
        if whole:
            end = int(starts[whole])
            yield MosesBlock(data, rows[:end], ids[:end], starts[: whole + 1], line, pieces, marks > 0)
            if not ended:
                data, line = data[int(rows[end, BEGIN]) :], line + int(rows[end, NUMBER])


def _check_lengths(path: str, rows: np.ndarray, line: int, number: int, rest: int) -> None:
    """Refuse lines that are too long; ``rest`` is the length so far of the incomplete one, line ``number``."""
    lengths = rows[:, END] - rows[:, BEGIN]
    at = int(rows[np.argmax(lengths), NUMBER]) if len(rows) and lengths.max() > LONGEST else None
    if at is not None or rest > LONGEST:
        message = f"a line of more than {LONGEST >> 20} MiB; expected a text file with one candidate per line"
        raise DataError(message, path=path, line=line + (number if at is None else at) + 1)


def _check_sizes(path: str, rows: np.ndarray, line: int, starts: np.ndarray) -> None:
    """Refuse lists with too many candidates."""
    sizes = np.diff(starts)
    if sizes.max(initial=0) > MOST:
        at = line + int(rows[starts[np.argmax(sizes)], NUMBER]) + 1
        raise DataError(
            f"a list of more than {MOST:,} candidates; do its lines have the ids they should?", path=path, line=at
        )


def _check_list(
    path: str, data: bytes, rows: np.ndarray, ids: np.ndarray, line: int, start: int, numbered: bool
) -> None:
    """Refuse a list that grows without end."""
    strays = ids[start:] < 0 if numbered else rows[start:, COUNT] < 2
    if np.count_nonzero(strays) > STRAYS:
        row = rows[start + int(np.argmax(strays))]
        message = (
            f"found {excerpt(data[row[BEGIN] : row[END]])} and more than {STRAYS:,} such lines; expected candidates"
        )
        message += ", 'id ||| text ||| features ||| score'" + (", with whole numbers as ids" if numbered else "")
        raise DataError(message, path=path, line=line + int(row[NUMBER]) + 1)
    if len(data) > LARGEST_LIST:
        raise DataError(
            f"a list of more than {LARGEST_LIST >> 30} GiB", path=path, line=line + int(rows[start, NUMBER]) + 1
        )
