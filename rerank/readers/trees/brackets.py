"""Files of bracketed trees, read as a stream: one tree per line, or trees printed over many lines.

Three lines this reads (the first two are one tree)::

    ( (S (NP-SBJ (PRP It))
         (VP (VBD rained)) (. .)))
    (S1 (NP (NN Art)))

White space is free, including blank lines and line breaks within a tree. Outside trees, lines that start with ``*`` are
comments: some files of the Penn Treebank begin with a notice that is framed by ``*x*``. If a bracket is missing,
nothing tells where the next tree starts, so unbalanced brackets end the reading with an error.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from rerank.base.errors import DataError
from rerank.kernels.compile import kernel
from rerank.readers.base import excerpt
from rerank.readers.lines import LONGEST
from rerank.readers.problems import NUL
from rerank.readers.streams import PathLike, open_stream

_OPEN, _CLOSE, _NEWLINE, _NUL, _STAR = (np.uint8(ord(c)) for c in "()\n\0*")
CHUNK = 1 << 18  # bytes read at once

_OUTSIDE, _UNOPENED, _NUL_BYTE = 1, 2, 3
_MESSAGES = {
    _OUTSIDE: "text outside of a tree; a tree starts with '('",
    _UNOPENED: "a ')' without its '('",
    _NUL_BYTE: NUL,
}


# Indices of a scan's state: depth, -1 in a comment; line; line where the open tree starts; first later line that
# starts with (.
DEPTH, LINE, START, MARGIN = range(4)


class Scan(NamedTuple):
    """What the scanner keeps from chunk to chunk, and the trees it finds in a chunk."""

    state: np.ndarray  # int64 [4]: see DEPTH and what follows it
    begin: np.ndarray  # int64 [M]: where trees begin in the chunk, 0 for one that continues from the chunk before
    end: np.ndarray  # int64 [M]: one past their last bytes
    line: np.ndarray  # int64 [M]: the line numbers of their first brackets


@kernel
def _starts_line(data: np.ndarray, i: int, at_line_start: bool) -> bool:
    return bool(data[i - 1] == _NEWLINE if i > 0 else at_line_start)


@kernel
def scan_brackets(data: np.ndarray, at_line_start: bool, scan: Scan) -> tuple[int, int, int, int]:
    """Find the trees that end in the chunk ``data`` (uint8), and its comments, as trees without text; M must be more
    than half its length.

    Returns (number of trees and comments found, where an unfinished one begins, error code, place of the error).
    """
    depth, line, start, margin = scan.state[DEPTH], scan.state[LINE], scan.state[START], scan.state[MARGIN]
    found, begin, code, place = 0, 0, 0, 0
    for i in range(data.shape[0]):
        byte = data[i]
        if depth < 0:
            if byte == _NEWLINE:
                depth, line = 0, line + 1
        elif byte == _OPEN:
            if depth == 0:
                begin, start, margin = i, line, 0
            elif margin == 0 and _starts_line(data, i, at_line_start):
                margin = line
            depth += 1
        elif byte == _CLOSE:
            if depth == 0:
                code, place = _UNOPENED, i
                break
            depth -= 1
            if depth == 0:
                scan.begin[found], scan.end[found], scan.line[found] = begin, i + 1, start
                found += 1
        elif byte == _NEWLINE:
            line += 1
        elif byte == _NUL:
            code, place = _NUL_BYTE, i
            break
        elif depth == 0 and byte == _STAR and _starts_line(data, i, at_line_start):
            scan.begin[found] = scan.end[found] = i
            scan.line[found] = line
            found, depth = found + 1, -1
        elif depth == 0 and not (byte == 32 or 9 <= byte <= 13):
            code, place = _OUTSIDE, i
            break
    scan.state[DEPTH], scan.state[LINE], scan.state[START], scan.state[MARGIN] = depth, line, start, margin
    return found, begin, code, place


def read_trees(path: PathLike, *, chunk: int = CHUNK, empty_lines: bool = False) -> Iterator[tuple[bytes, int]]:
    """(text, line of its first bracket) of every tree in ``path`` ("-": standard input).

    ``empty_lines``: also those between trees, before the first and after the last, as trees without text. The brackets
    of the texts are balanced; ``parse_brackets`` checks whether they are well-formed trees.
    """
    with open_stream(path) as stream:
        scan = Scan(np.array([0, 1, 0, 0]), *np.empty((3, chunk // 2 + 1), np.int64))
        pieces: list[bytes] = []  # of a tree that began in an earlier chunk
        at_line_start, held, after = True, 0, 1  # after: the line after that of the last tree's end
        while data := stream.read(chunk):
            found, rest, code, place = scan_brackets(np.frombuffer(data, np.uint8), at_line_start, scan)
            for k in range(found):
                text = b"".join([*pieces, data[scan.begin[k] : scan.end[k]]])
                line = int(scan.line[k])
                if empty_lines:
                    yield from ((b"", empty) for empty in range(after, line))
                    after = line + text.count(b"\n") + 1
                if text:  # no comment
                    yield text, line
                    pieces, held = [], 0
            if code:
                message = f"{_MESSAGES[code]} (near {excerpt(data[place : place + 40])})"
                raise DataError(message, path=stream.path, line=int(scan.state[LINE]))
            if scan.state[DEPTH] > 0:
                pieces.append(data[rest:])
                held += len(pieces[-1])
            if held > LONGEST:
                raise _unclosed(scan, stream.path, f"within {LONGEST >> 20} MiB")
            at_line_start = data[-1:] == b"\n"
        if scan.state[DEPTH] > 0:
            raise _unclosed(scan, stream.path, "before the end of the file")
        if empty_lines:
            yield from ((b"", empty) for empty in range(after, int(scan.state[LINE])))


def _unclosed(scan: Scan, path: str, where: str) -> DataError:
    depth, _, start, margin = map(int, scan.state)
    message = f"the tree that starts here is not closed {where}: {depth} ')' missing"
    if margin:
        message += f"; line {margin} starts with '(' and is still inside of it, so look before that line"
    return DataError(message, path=path, line=start)
