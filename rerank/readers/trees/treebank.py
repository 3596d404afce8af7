"""Treebanks: bracketed trees in one file or in many, as they are shipped.

A treebank is named by a file, by a folder (all files below it that end in .mrg, .prd or .psd, compressed or not), or by
a pattern such as ``wsj/0[2-9]`` or ``wsj/**/*.parse``; several names are separated by commas. Files of a folder or a
pattern come in the order of their paths, compared folder by folder; names come in the order in which they are given.

Outside of trees, lines that start with ``*`` are comments, and lines that start with ``<``, as ``<S ID=1>`` in the
Chinese treebank, are passed over.
"""

import glob
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby
from typing import Any, NamedTuple

import numpy as np

from rerank.base.encoding import decoded
from rerank.base.errors import DataError
from rerank.data.symbols import SymbolTable
from rerank.data.trees import (
    CANDIDATES,
    FOREST,
    GOLD,
    Trees,
    bracket_advice,
    bracket_words,
    difference,
    equal_form,
    leaves,
    normal_trees,
    parse_brackets,
    same_yield,
    yield_words,
)
from rerank.readers.inputs import Progress, Side, in_step
from rerank.readers.lines import MAX_LINE, LineReader
from rerank.readers.problems import NUL
from rerank.readers.reader import TRACE, Candidate, Lists, Problem, Reader, excerpt
from rerank.storage.files import compression_of_name
from rerank.storage.places import is_url
from rerank.storage.streams import PathLike, open_stream, split_paths, stream_name

CHUNK = 1 << 18  # bytes read at once
ENDINGS = (".mrg", ".prd", ".psd")
_MARKS = re.compile(rb"[()\0]")
_OUTSIDE = "text outside of a tree; a tree starts with '('"
_IN_MARKUP = "a '(' in a line that starts with '<', as SGML has, which is passed over; put trees on lines of their own"


def read_trees(path: PathLike, *, chunk: int = CHUNK, empty_lines: bool = False) -> Iterator[tuple[bytes, int]]:
    """(text, line of its first bracket) of every tree in ``path`` ("-": standard input).

    ``empty_lines``: also those between trees, before the first and after the last, as trees without text. The brackets
    of the texts are balanced; ``parse_brackets`` checks whether they are well-formed trees.
    """
    with open_stream(path) as stream:
        lines, after = LineReader(stream, chunk=chunk), 1  # the line after that of the last tree's end
        tree, size, depth, start, margin = list[bytes](), 0, 0, 0, 0  # the open tree: its lines, and where it starts

        def blanks(end: int) -> Iterator[tuple[bytes, int]]:
            return ((b"", number) for number in range(after, end if empty_lines else 0))

        def fault(what: str, near: bytes) -> DataError:
            return DataError(f"{what} (near {excerpt(near[:40])})", path=stream.path, line=lines.number)

        def missing_end(where: str) -> DataError:
            message = f"the tree that starts here is not closed {where}: {depth} ')' missing"
            inside = f"; line {margin} starts with '(' and is still inside of it, so look before that line"
            return DataError(message + inside * (margin > 0), path=stream.path, line=start)

        for number, line in lines:
            end = 0  # of the last tree on the line, or where the open one begins
            if not depth and line[:1] in (b"*", b"<"):
                if line[:1] == b"<" and b"(" in line:
                    raise fault(_IN_MARKUP, line[line.index(b"(") :])
                yield from blanks(number)
                after = number + 1
                continue
            if depth and not margin and line[:1] == b"(":
                margin = number
            for mark in _MARKS.finditer(line):
                at = mark.start()
                if not depth and (text := line[end:at].lstrip()):
                    raise fault(_OUTSIDE, text + line[at:])
                if mark[0] == b"\0":
                    raise fault(NUL, line[at:])
                if mark[0] == b"(":
                    end, start, margin = (end, start, margin) if depth else (at, number, 0)
                    depth += 1
                    continue
                if not depth:
                    raise fault("a ')' without its '('", line[at:])
                depth -= 1
                if not depth:
                    yield from blanks(start)
                    yield b"\n".join([*tree, line[end : at + 1]]), start
                    tree, size, end, after = [], 0, at + 1, number + 1
            if depth:
                tree.append(line[end:])
                size += len(tree[-1])
                if size > MAX_LINE:
                    raise missing_end(f"within {MAX_LINE >> 20} MiB")
            elif text := line[end:].lstrip():
                raise fault(_OUTSIDE, text)
        if depth:
            raise missing_end("before the end of the file")
        yield from blanks(lines.number + 1)


class SentenceText(NamedTuple):
    """The tree of a sentence before it is parsed, or its trees; empty for an empty line."""

    text: bytes
    line: int
    path: str = ""


def treebank_files(*names: PathLike) -> list[str]:
    """The files of a treebank, in order."""
    parts = [part for name in names for part in ([os.fspath(name)] if os.path.exists(name) else split_paths(name))]
    files = list[str]()
    for part in parts:
        if not os.path.isdir(part) and (is_url(part) or os.path.exists(part) or not glob.has_magic(part)):
            files.append(part)
            continue
        matches = [part] if os.path.isdir(part) else glob.glob(part, recursive=True)
        paths = {path for match in matches for path in (_tree_files(match) if os.path.isdir(match) else [match])}
        if not paths:
            raise DataError("no file matches this pattern; check the name, or quote it for the shell", path=part)
        files += sorted(paths, key=lambda path: path.split(os.sep))
    real = dict[str, str]()
    for path in files:
        if (before := real.setdefault(os.path.realpath(path), path)) is not path:
            raise DataError(f"is named twice, here and as {before}; a treebank has every tree once", path=path)
    return files


def _tree_files(name: str) -> Iterable[str]:
    """The files of trees below a folder; links to folders are followed."""

    def unreadable(error: OSError) -> None:
        raise DataError(f"cannot be read: {error.strerror}", path=str(error.filename))

    files, folders, kinds = dict[str, str](), set[str](), set[str]()
    for folder, _, names in os.walk(name, followlinks=True, onerror=unreadable):
        if (real := os.path.realpath(folder)) in folders:
            raise DataError("is a link to a folder that is read anyway; name the folders one by one", path=folder)
        folders.add(real)
        for path in (os.path.join(folder, file_name) for file_name in names if not file_name.startswith(".")):
            plain = os.path.splitext(path)[0] if compression_of_name(path) != "plain" else path
            if (ending := os.path.splitext(plain)[1].lower()) not in ENDINGS:
                continue
            if plain in files:
                raise DataError(f"is there as {files[plain]} too; name one of them, or remove one", path=path)
            files[plain] = path
            kinds.add(ending)
    if not files:
        others = f"for others name them, as {os.path.join(name, '**', '*.parse')}"
        raise DataError(f"no file below this folder ends in {', '.join(ENDINGS)}; {others}", path=name)
    if len(kinds) > 1:
        advice = f"name one kind, as {os.path.join(name, '**', '*' + min(kinds))}"
        raise DataError(f"files below this folder end in {' and '.join(sorted(kinds))}; {advice}", path=name)
    return files.values()


def read_treebank(paths: Iterable[PathLike]) -> Iterator[SentenceText]:
    """Every tree of the files ``paths`` ("-": standard input), one file after the other."""
    for path in paths:
        name = stream_name(path)
        for text, line in read_trees(path):
            yield SentenceText(text, line, name)


class TreebankSide(Side):
    """The gold trees of lists, as a side file of ``SentenceText``; messages name the file of the last tree taken."""

    def __init__(self, paths: Sequence[PathLike]) -> None:
        golds = ((gold.line, gold) for gold in read_treebank(paths))
        super().__init__(paths, golds, ("gold tree", "gold trees"))
        self.path, self._unlike = stream_name(paths[0]), ""

    def take(self, number: int = 1) -> list[Any]:
        if entries := super().take(number):
            self.path = entries[-1].path
        return entries

    def take_for(self, nbest: Lists, lists: Progress) -> Any:
        gold = super().take_for(nbest, lists)
        if not self._unlike and len(nbest):
            one, other = (Candidate(decoded(text)).tokens for text in (nbest.texts[0], gold.text))
            self._unlike = f"; the first whose words are others is {nbest.id}, line {nbest.line}" * (one != other)
        return gold

    @property
    def _rule(self) -> str:
        return super()._rule + self._unlike


def read_sentences(path: PathLike, *, chunk: int = CHUNK) -> Iterator[SentenceText]:
    """The sentences of a file ("-": standard input) in order; what tells its kind apart is held until it is known."""
    head: list[SentenceText] = []  # one tree, or what is read differently in files of the other kind, and all after it
    sentences = (SentenceText(*sentence) for sentence in read_trees(path, chunk=chunk, empty_lines=True))
    for one in sentences:
        head.append(one)
        if b"\n" in one.text:
            yield from (sentence for sentence in chain(head, sentences) if sentence.text)
            return
        if len(head) == 2 and all(sentence.text for sentence in head) and head[0].line < head[1].line:
            yield head.pop(0)
    for line, trees in groupby(head, lambda each: each.line):  # those of every line as one sentence
        texts = [each.text for each in trees]
        whole = texts[0] if len(texts) == 1 else b"(%s %s)" % (FOREST.encode(), b" ".join(texts))
        yield SentenceText(whole, line)


def gold_sentences(paths: Sequence[PathLike]) -> Iterator[SentenceText | bytes]:
    """The sentences of a treebank: of one file as ``read_sentences`` gives them; of several, every tree is one."""
    if len(paths) == 1:
        return read_sentences(paths[0])
    return (gold.text for gold in read_treebank(paths))


def open_list(nbest: Lists, symbols: SymbolTable, changes: Counter[str] | None = None) -> tuple[Lists, Trees]:
    """The list and its candidates' trees, without those that are malformed. Raises Problem ("brackets") if all are.

    With ``changes``, words of the trees are in normal form, and those that this changes are counted there; the texts of
    the list stay.
    """

    def look(own: Lists) -> Trees:
        texts = own.texts if changes is None else bracket_words(own.texts)
        try:
            return parse_brackets(texts, symbols, path=own.path, lines=own.lines, list_id=own.id)
        except DataError as error:
            message = error.message + next(filter(None, map(bracket_advice, texts)), "")
            raise Problem("brackets", message, error.line, path=own.path, list_id=own.id) from None

    nbest, trees = nbest.open_usable(look)
    return nbest, trees if changes is None else normal_trees(trees, symbols, changes, CANDIDATES)


def parse_list(nbest: Lists, symbols: SymbolTable, changes: Counter[str] | None = None) -> tuple[Lists, Trees]:
    """``open_list``. Raises Problem ("words") too if the trees are those of different sentences."""
    nbest, trees = open_list(nbest, symbols, changes)
    trace = symbols.intern(TRACE)
    if not (words := leaves(trees, trace)).size:
        return nbest, trees
    first = int(np.searchsorted(trees.first, words[0], side="right")) - 1  # not a failed parse
    if (k := same_yield(trees, trees, first, trace)) < 0:
        return nbest, trees
    differing = difference(yield_words(trees, first, symbols), yield_words(trees, k, symbols))
    message = f"candidates {first + 1} and {k + 1} have different words: {differing}{equal_form(trees, trees, symbols)}"
    raise Problem("words", message, nbest.lines[k], path=nbest.path, list_id=nbest.id)


def lists_of_trees(reader: Reader, path: PathLike, gold: Sequence[PathLike] | None) -> Iterator[Lists]:
    """Every list, usable or not, with its gold tree if there are files of ``gold`` trees."""
    for nbest, entries in in_step(reader, path, [] if gold is None else [TreebankSide(gold)]):
        yield nbest.replace(gold=entries[0]) if entries and nbest.problem is None else nbest


def parse_pair(nbest: Lists, symbols: SymbolTable, changes: Counter[str] | None = None) -> tuple[Lists, Trees, Trees]:
    """A list with its trees and its gold tree parsed; ``changes`` as in ``open_list``. Raises Problem.

    The metric says whose words are those of the gold tree.
    """
    nbest, trees = open_list(nbest.sound(), symbols, changes)
    gold: SentenceText = nbest.gold
    texts = [gold.text] if changes is None else bracket_words([gold.text])
    try:
        tree = parse_brackets(texts, symbols, lines=[gold.line])
    except DataError as error:
        message = f"in the gold tree: {error.message}{bracket_advice(texts[0])}"
        problem = Problem("gold tree", message, error.line or gold.line, path=gold.path, list_id=nbest.id)
        raise problem from None
    if changes is not None:
        tree = normal_trees(tree, symbols, changes, GOLD)
    return nbest, trees, tree
