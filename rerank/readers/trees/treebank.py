"""Treebanks: bracketed trees in one file or in many, as they are shipped.

A treebank is named by a file, by a folder (all files below it that end in .mrg, .prd or .psd, compressed or not), or by
a pattern such as ``wsj/0[2-9]`` or ``wsj/**/*.parse``; several names are separated by commas. Files of a folder or a
pattern come in the order of their paths, compared folder by folder; names come in the order in which they are given.

Outside of trees, lines that start with ``*`` are comments, and those that start with ``<``, as ``<S ID=1>`` in the
Chinese treebank, are passed over.
"""

import glob
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, groupby
from typing import Any, NamedTuple

import numpy as np

from rerank.base.errors import DataError
from rerank.kernels.compile import kernel
from rerank.readers.base import excerpt
from rerank.readers.compression import compression_of_name
from rerank.readers.lines import LONGEST
from rerank.readers.problems import NUL
from rerank.readers.sides import Side
from rerank.readers.streams import PathLike, open_stream, split_paths, stream_name
from rerank.readers.trees.trees import FOREST
from rerank.storage.remote import is_url

_OPEN, _CLOSE, _NEWLINE, _NUL, _STAR, _LESS = (np.uint8(ord(c)) for c in "()\n\0*<")
CHUNK = 1 << 18  # bytes read at once

_OUTSIDE, _UNOPENED, _NUL_BYTE, _MARKED = 1, 2, 3, 4
_MESSAGES = {
    _OUTSIDE: "text outside of a tree; a tree starts with '('",
    _UNOPENED: "a ')' without its '('",
    _NUL_BYTE: NUL,
    _MARKED: "a '(' in a line that starts with '<', as SGML has, which is passed over; put trees on lines of their own",
}


# Indices of a scan's state: depth, -1 in a comment, -2 in a line of SGML; line; line where the open tree starts; first
# later line that starts with (.
DEPTH, LINE, START, MARGIN = range(4)


class Scan(NamedTuple):
    """The state that the scanner keeps from chunk to chunk, and the trees it finds in a chunk."""

    state: np.ndarray  # int64 [4]: see DEPTH and what follows it
    begin: np.ndarray  # int64 [M]: where trees begin in the chunk, 0 for one that continues from the chunk before
    end: np.ndarray  # int64 [M]: one past their last bytes
    line: np.ndarray  # int64 [M]: the line numbers of their first brackets


@kernel
def _starts_line(data: np.ndarray, i: int, at_line_start: bool) -> bool:
    return bool(data[i - 1] == _NEWLINE if i > 0 else at_line_start)


@kernel
def scan_brackets(data: np.ndarray, at_line_start: bool, scan: Scan) -> tuple[int, int, int, int]:
    """Find the trees that end in the chunk ``data`` (uint8), and its comments and lines of SGML, as trees without text;
    M must be more than half its length.

    Returns (number of trees and comments found, where an unfinished one begins, error code, place of the error).
    """
    depth, line, start, margin = scan.state[DEPTH], scan.state[LINE], scan.state[START], scan.state[MARGIN]
    count, begin, code, place = 0, 0, 0, 0
    for i in range(data.shape[0]):
        byte = data[i]
        if depth < 0:
            if byte == _NEWLINE:
                depth, line = 0, line + 1
            elif byte == _OPEN and depth == -2:
                code, place = _MARKED, i
                break
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
                scan.begin[count], scan.end[count], scan.line[count] = begin, i + 1, start
                count += 1
        elif byte == _NEWLINE:
            line += 1
        elif byte == _NUL:
            code, place = _NUL_BYTE, i
            break
        elif depth == 0 and byte in (_STAR, _LESS) and _starts_line(data, i, at_line_start):
            scan.begin[count] = scan.end[count] = i
            scan.line[count] = line
            count, depth = count + 1, -1 if byte == _STAR else -2
        elif depth == 0 and not (byte == 32 or 9 <= byte <= 13):
            code, place = _OUTSIDE, i
            break
    scan.state[DEPTH], scan.state[LINE], scan.state[START], scan.state[MARGIN] = depth, line, start, margin
    return count, begin, code, place


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
            count, rest, code, place = scan_brackets(np.frombuffer(data, np.uint8), at_line_start, scan)
            for k in range(count):
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


ENDINGS = (".mrg", ".prd", ".psd")


class GoldText(NamedTuple):
    """A gold tree before it is parsed."""

    text: bytes
    line: int
    path: str


def treebank_files(*names: PathLike) -> list[str]:
    """The files of a treebank, in order."""
    parts = [part for name in names for part in ([os.fspath(name)] if os.path.exists(name) else split_paths(name))]
    files = [path for part in parts for path in _named(part)]
    real = dict[str, str]()
    for path in files:
        if (before := real.setdefault(os.path.realpath(path), path)) is not path:
            raise DataError(f"is named twice, here and as {before}; a treebank has every tree once", path=path)
    return files


def _named(name: str) -> list[str]:
    """The files that one name stands for."""
    if os.path.isdir(name):
        return _folder(name)
    if is_url(name) or os.path.exists(name) or not glob.has_magic(name):
        return [name]
    matches = glob.glob(name, recursive=True)
    files = {path for match in matches for path in (_folder(match) if os.path.isdir(match) else [match])}
    if not files:
        raise DataError("no file matches this pattern; check the name, or quote it for the shell", path=name)
    return _in_order(files)


def _folder(name: str) -> list[str]:
    """The files of trees below a folder; links to folders are followed."""
    files, seen = dict[str, str](), set[str]()
    for place, _, names in os.walk(name, followlinks=True, onerror=_unreadable):
        if (real := os.path.realpath(place)) in seen:
            raise DataError("is a link to a folder that is read anyway; name the folders one by one", path=place)
        seen.add(real)
        for path in (os.path.join(place, file_name) for file_name in names if not file_name.startswith(".")):
            plain = os.path.splitext(path)[0] if compression_of_name(path) != "plain" else path
            if _ending(plain) not in ENDINGS:
                continue
            if plain in files:
                raise DataError(f"is there as {files[plain]} too; name one of them, or remove one", path=path)
            files[plain] = path
    kinds = sorted({_ending(plain) for plain in files})
    if not files:
        others = f"for others name them, as {os.path.join(name, '**', '*.parse')}"
        raise DataError(f"no file below this folder ends in {', '.join(ENDINGS)}; {others}", path=name)
    if len(kinds) > 1:
        advice = f"name one kind, as {os.path.join(name, '**', '*' + kinds[0])}"
        raise DataError(f"files below this folder end in {' and '.join(kinds)}; {advice}", path=name)
    return _in_order(files.values())


def _ending(path: str) -> str:
    return os.path.splitext(path)[1].lower()


def _in_order(paths: Iterable[str]) -> list[str]:
    return sorted(paths, key=lambda path: path.split(os.sep))


def _unreadable(error: OSError) -> None:
    raise DataError(f"cannot be read: {error.strerror}", path=str(error.filename))


def read_treebank(paths: Iterable[PathLike]) -> Iterator[GoldText]:
    """Every tree of the files ``paths`` ("-": standard input), one file after the other."""
    for path in paths:
        name = stream_name(path)
        for text, line in read_trees(path):
            yield GoldText(text, line, name)


class TreebankSide(Side):
    """The gold trees of lists, as a side file of ``GoldText``; messages name the file of the last tree taken, and where
    there are too few or too many, what ``apart`` says of the lists whose trees they are not."""

    def __init__(self, paths: Sequence[PathLike], apart: Callable[[], str]) -> None:
        golds = ((gold.line, gold) for gold in read_treebank(paths))
        super().__init__(paths, golds, ("gold tree", "gold trees"))
        self.path, self._apart = stream_name(paths[0]), apart

    def take(self, number: int = 1) -> list[Any]:
        if entries := super().take(number):
            self.path = entries[-1].path
        return entries

    @property
    def _rule(self) -> str:
        return super()._rule + self._apart()


class SentenceText(NamedTuple):
    """The tree of a sentence before it is parsed, or its trees; empty for an empty line."""

    text: bytes
    line: int


def read_sentences(path: PathLike, *, chunk: int = CHUNK) -> Iterator[SentenceText]:
    """The sentences of a file ("-": standard input) in order; what tells its kind apart is held until it is known."""
    held: list[SentenceText] = []  # one tree, or what is read differently in files of the other kind, and all after it
    sentences = (SentenceText(*sentence) for sentence in read_trees(path, chunk=chunk, empty_lines=True))
    for one in sentences:
        held.append(one)
        if b"\n" in one.text:
            yield from (sentence for sentence in chain(held, sentences) if sentence.text)
            return
        if len(held) == 2 and all(sentence.text for sentence in held) and held[0].line < held[1].line:
            yield held.pop(0)
    yield from by_line(held)


def gold_sentences(paths: Sequence[PathLike]) -> Iterator[SentenceText | bytes]:
    """The sentences of a treebank: of one file as ``read_sentences`` gives them; of several, every tree is one."""
    if len(paths) == 1:
        return read_sentences(paths[0])
    return (gold.text for gold in read_treebank(paths))


def by_line(found: Iterable[SentenceText]) -> Iterator[SentenceText]:
    """The trees of every line as one sentence."""
    for line, trees in groupby(found, lambda each: each.line):
        texts = [each.text for each in trees]
        whole = texts[0] if len(texts) == 1 else b"(%s %s)" % (FOREST.encode(), b" ".join(texts))
        yield SentenceText(whole, line)
