"""Lists of texts together with their sources and references."""

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack

import numpy as np

from rerank.base.errors import DataError, RecipeError
from rerank.readers.base import NBestList, Problem, Reader, SkipCount, SkippedList, check_choice, excerpt, usable
from rerank.readers.lines import LineReader, whole_number
from rerank.readers.problems import NUL
from rerank.readers.sides import Progress, Side, in_step
from rerank.readers.streams import PathLike, open_stream, single_stdin
from rerank.readers.texts.json_lines import is_object
from rerank.readers.texts.text_list import TextList

FORMS = ("lines", "tab", "id")


def read_lines(path: PathLike) -> Iterator[bytes]:
    """The lines of ``path`` without white space around them; an empty line is an empty text."""
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
        if number == 1 and is_object(line):
            message = "found an object of JSON; expected a text on each line: lists and manifests are no sentences"
            raise DataError(message, path=lines.path, line=number)
        yield number, line.strip()


def _present(texts: list[bytes]) -> tuple[bytes, ...]:
    """The references that are not missing."""
    return tuple(filter(None, texts)) or (b"",)


def _read_sets(paths: Sequence[PathLike]) -> Iterator[tuple[bytes, ...]]:
    with ExitStack() as stack:
        readers = [LineReader(stack.enter_context(open_stream(path))) for path in paths]
        files = [_texts(lines) for lines in readers]
        while True:
            entries = [next(file, None) for file in files]
            if None in entries:
                break
            yield _present([pair[1] for pair in entries if pair is not None])
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
        lines, current, texts = LineReader(stream), first_id, list[bytes]()
        for number, line in _texts(lines):
            if not line:
                continue
            head, bars, text = line.partition(b"|||")
            name = head.strip()
            if not bars or not name.isdigit() or len(name) > 18:
                message = f"found {excerpt(line)}; expected 'id ||| reference', with a whole number as id"
                raise DataError(message, path=lines.path, line=number)
            if int(name) != current:
                if int(name) != current + 1 or not texts:
                    following = f"{current} or {current + 1}" if texts else f"{current}"
                    message = f"found the id {int(name)}; expected {following}: ids rise one by one, without gaps"
                    hint = "" if texts else " (the reader's option first_id says where they begin)"
                    raise DataError(message + hint, path=lines.path, line=number)
                yield _present(texts)
                current, texts = current + 1, []
            texts.append(text.strip())
        if texts:
            yield _present(texts)


REFERENCES_KEY = "data.references"  # the setting that names the files


def read_text_pairs(
    reader: Reader,
    nbest_path: PathLike,
    *,
    references: Sequence[PathLike] | None = None,
    sources: PathLike | None = None,
    form: str = "lines",
    count: SkipCount | None = None,
    needs_references: bool = True,
) -> Iterator[TextList]:
    """Every usable list with its source and references, paired by order.

    Parameters
    ----------
    reader: the reader of the lists, which must be lists of texts.
    references, form: files and their form, see ``read_references``; by default those that the lists hold.
    sources: a file with one source per line; by default those that the lists hold.
    count: the policy for bad lists ("error" by default) and the counts. A bad list uses up its source and its
        references. Lists that are missing at the end are errors, or empty lists that are counted as "missing".
    needs_references: whether a list without any is bad ("no reference").
    """
    count = count if count is not None else SkipCount()

    def take(nbest: TextList | SkippedList, count: SkipCount) -> TextList | None:
        return settle(complete(nbest, needs_references=needs_references), count)

    lists = lists_of_texts(reader, nbest_path, references=references, sources=sources, form=form)
    yield from usable(lists, take, count)


def complete(nbest: TextList | SkippedList, *, needs_references: bool = True) -> TextList | SkippedList:
    """The list, or a bad one if it lacks something needed; see ``read_text_pairs``."""
    if isinstance(nbest, SkippedList) or nbest.missing is not None:
        return nbest
    if needs_references and not nbest.references:
        message = f"no references: name their files with {REFERENCES_KEY}, or use a format that holds them (jsonl)"
        return SkippedList.of(Problem("no reference", message), nbest.id, nbest.path, nbest.line)
    return nbest


def settle(nbest: TextList | SkippedList, count: SkipCount) -> TextList | None:
    """Count a list as good, bad or missing; returns it, or None if it cannot be used."""
    if isinstance(nbest, SkippedList):
        count.bad(nbest)
        return None
    if nbest.missing is not None:
        count.bad(SkippedList.of(nbest.missing, nbest.id, nbest.path, nbest.line))
    else:
        count.good(nbest)
    return nbest


def lists_of_texts(
    reader: Reader,
    nbest_path: PathLike,
    *,
    references: Sequence[PathLike] | None = None,
    sources: PathLike | None = None,
    form: str = "lines",
) -> Iterator[TextList | SkippedList]:
    """Every list, usable or not, with the source and the references of the files where these are given; the parameters
    are those of ``read_text_pairs``.
    """
    sides = {} if sources is None else {"source": source_lines(sources)}
    if references is not None:
        texts = read_references(references, form, reader.first_id)
        sides["references"] = Side(references, enumerate(texts, start=1), ("line of references", "references"))
    for nbest, entries in in_step(reader, nbest_path, list(sides.values()), missing=_missing):
        if isinstance(nbest, SkippedList):
            yield nbest
        else:
            yield text_list(nbest).changed(**dict(zip(sides, entries, strict=True)))


def source_lines(path: PathLike) -> Side:
    """The sources of lists, one per line, as a side file."""
    return Side([path], enumerate(read_lines(path), start=1), ("source", "sources"))


def _missing(lists: Progress) -> TextList:
    """An empty list after the last one."""
    last, like = lists.last, lists.like
    known = None if last is None else whole_number(last.id)
    number = lists.count if known is None else known + 1
    names, column = (like.names, like.column) if isinstance(like, TextList) else (("score",), 0)
    line = 1 if last is None else last.line
    return TextList(str(number), lists.path, line, [], [], np.empty((0, len(names))), column, names=names)


def text_list(nbest: NBestList) -> TextList:
    """``nbest`` as a list of texts."""
    if isinstance(nbest, TextList):
        return nbest
    message = "the reader gives lists of trees; name one of lists of texts: --reader (in a recipe: data.reader)"
    raise DataError(message, path=nbest.path, line=nbest.line, list_id=nbest.id)
