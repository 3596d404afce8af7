"""References of text lists, and files with one text per line.

Three lines of each form: ``lines``, with two files::

    the house is small      the house is little
    it rains                it is raining
    good morning            hello

``tab``, where a line may have any number::

    the house is small<TAB>the house is little
    it rains
    good morning<TAB>hello

and ``id``::

    0 ||| the house is small
    0 ||| the house is little
    1 ||| it rains
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack

from rerank.base.errors import DataError, RecipeError
from rerank.readers.base import check_choice, excerpt
from rerank.readers.lines import LineReader
from rerank.readers.problems import NUL
from rerank.readers.streams import PathLike, open_stream, single_stdin

FORMS = ("lines", "tab", "id")


def read_lines(path: PathLike) -> Iterator[bytes]:
    """The lines of ``path`` without white space around them; an empty line is an empty text.

    Raises
    ------
    DataError: the file cannot be read, or a line has a NUL byte.
    """
    with open_stream(path) as stream:
        for _, line in _texts(LineReader(stream)):
            yield line


def read_references(paths: Sequence[PathLike], form: str = "lines", first_id: int = 0) -> Iterator[tuple[bytes, ...]]:
    """The references of every list, in order, without white space around them.

    An empty reference stands for a missing one, and counts only if the list has no other.

    Parameters
    ----------
    paths: the files.
    form: "lines": every file is a set of references, one per line; "tab": one file, with all references of a list on
        one line, separated by tabs; "id": one file of lines ``id ||| reference``.
    first_id: the first id of the form "id".

    Raises
    ------
    DataError: files of different lengths; ids that are malformed or out of order; unreadable files.
    RecipeError: an unknown form, or a wrong number of files for it.
    """
    check_choice("form", form, FORMS)
    if isinstance(paths, (str, os.PathLike)) or not paths or (form != "lines" and len(paths) > 1):
        expected = "the names of files, in a list" if form == "lines" else f"one file, for the form {form!r}"
        raise RecipeError(f"found {paths!r}; expected {expected}", key="references")
    single_stdin(*paths)
    if form == "lines":
        return _read_sets(paths)
    return _read_tabs(paths[0]) if form == "tab" else _read_ids(paths[0], first_id)


def _texts(lines: LineReader) -> Iterator[tuple[int, bytes]]:
    """The numbers and stripped texts of all lines."""
    for number, line in lines:
        if lines.nul and b"\0" in line:
            raise DataError(NUL, path=lines.path, line=number)
        yield number, line.strip()


def _present(texts: list[bytes]) -> tuple[bytes, ...]:
    """The references that are not missing."""
    return tuple(filter(None, texts)) or (b"",)


def _read_sets(paths: Sequence[PathLike]) -> Iterator[tuple[bytes, ...]]:
    with ExitStack() as stack:
        readers = [LineReader(stack.enter_context(open_stream(path))) for path in paths]
        files = [_texts(lines) for lines in readers]
        while True:
            found = [next(file, None) for file in files]
            if None in found:
                break
            yield _present([pair[1] for pair in found if pair is not None])
        lengths = [lines.number + sum(1 for _ in lines) for lines in readers]
        for lines, length in zip(readers, lengths, strict=True):
            if length != lengths[0]:
                message = f"{length:,} lines, but {readers[0].path} has {lengths[0]:,}; every file of references needs "
                raise DataError(f"{message}one line per list, an empty one where it has none", path=lines.path)


def _read_tabs(path: PathLike) -> Iterator[tuple[bytes, ...]]:
    with open_stream(path) as stream:
        for _, line in _texts(LineReader(stream)):
            yield _present([text.strip() for text in line.split(b"\t")])


def _read_ids(path: PathLike, first_id: int) -> Iterator[tuple[bytes, ...]]:
    with open_stream(path) as stream:
        lines, current, found = LineReader(stream), first_id, list[bytes]()
        for number, line in _texts(lines):
            if not line:
                continue
            head, bars, text = line.partition(b"|||")
            name = head.strip()
            if not bars or not name.isdigit() or len(name) > 18:
                message = f"found {excerpt(line)}; expected 'id ||| reference', with a whole number as id"
                raise DataError(message, path=lines.path, line=number)
            if int(name) != current:
                if int(name) != current + 1 or not found:
                    following = f"{current} or {current + 1}" if found else f"{current}"
                    message = f"found the id {int(name)}; expected {following}: ids rise one by one, without gaps"
                    hint = "" if found else " (the reader's option first_id says where they begin)"
                    raise DataError(message + hint, path=lines.path, line=number)
                yield _present(found)
                current, found = current + 1, []
            found.append(text.strip())
        if found:
            yield _present(found)
