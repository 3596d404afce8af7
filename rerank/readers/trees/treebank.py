"""Treebanks: bracketed trees in one file or in many, as they are shipped.

A treebank is named by a file, by a folder (all files below it that end in .mrg, .prd or .psd, compressed or not), or by
a pattern such as ``wsj/0[2-9]`` or ``wsj/**/*.parse``; several names are separated by commas. Files of a folder or a
pattern come in the order of their paths, compared folder by folder; names come in the order in which they are given.
"""

import glob
import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby
from typing import Any, NamedTuple

from rerank.base.errors import DataError
from rerank.readers.compression import compression_of_name
from rerank.readers.sides import Side
from rerank.readers.streams import PathLike, split_paths, stream_name
from rerank.readers.trees.brackets import CHUNK, read_trees
from rerank.readers.trees.trees import FOREST
from rerank.storage.remote import is_url

ENDINGS = (".mrg", ".prd", ".psd")


class GoldText(NamedTuple):
    """A gold tree before it is parsed."""

    text: bytes
    line: int
    path: str


def treebank_files(*names: PathLike) -> list[str]:
    """The files of a treebank, in order."""
    parts = [part for name in names for part in ([os.fspath(name)] if os.path.exists(name) else split_paths(name))]
    found = [path for part in parts for path in _named(part)]
    real = dict[str, str]()
    for path in found:
        if (before := real.setdefault(os.path.realpath(path), path)) is not path:
            raise DataError(f"is named twice, here and as {before}; a treebank has every tree once", path=path)
    return found


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
    found, seen = dict[str, str](), set[str]()
    for place, _, names in os.walk(name, followlinks=True, onerror=_unreadable):
        if (real := os.path.realpath(place)) in seen:
            raise DataError("is a link to a folder that is read anyway; name the folders one by one", path=place)
        seen.add(real)
        for path in (os.path.join(place, own) for own in names if not own.startswith(".")):
            plain = os.path.splitext(path)[0] if compression_of_name(path) != "plain" else path
            if _ending(plain) not in ENDINGS:
                continue
            if plain in found:
                raise DataError(f"is there as {found[plain]} too; name one of them, or remove one", path=path)
            found[plain] = path
    kinds = sorted({_ending(plain) for plain in found})
    if not found:
        others = f"for others name them, as {os.path.join(name, '**', '*.parse')}"
        raise DataError(f"no file below this folder ends in {', '.join(ENDINGS)}; {others}", path=name)
    if len(kinds) > 1:
        advice = f"name one kind, as {os.path.join(name, '**', '*' + kinds[0])}"
        raise DataError(f"files below this folder end in {' and '.join(kinds)}; {advice}", path=name)
    return _in_order(found.values())


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
    """The gold trees of lists, as a side file of ``GoldText``; messages name the file of the last tree taken."""

    def __init__(self, paths: Sequence[PathLike]) -> None:
        golds = ((gold.line, gold) for gold in read_treebank(paths))
        super().__init__(paths, golds, ("gold tree", "gold trees"))
        self.path = stream_name(paths[0])

    def take(self, number: int = 1) -> list[Any]:
        if found := super().take(number):
            self.path = found[-1].path
        return found


class SentenceText(NamedTuple):
    """The tree of a sentence before it is parsed, or its trees; empty for an empty line."""

    text: bytes
    line: int


def read_sentences(path: PathLike, *, chunk: int = CHUNK) -> Iterator[SentenceText]:
    """The sentences of a file ("-": standard input) in order; what tells its kind apart is held until it is known."""
    held: list[SentenceText] = []  # one tree, or what is read differently in files of the other kind, and all after it
    found = (SentenceText(*each) for each in read_trees(path, chunk=chunk, empty_lines=True))
    for one in found:
        held.append(one)
        if b"\n" in one.text:
            yield from (each for each in chain(held, found) if each.text)
            return
        if len(held) == 2 and all(each.text for each in held) and held[0].line < held[1].line:
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
