"""A treebank in folds: for each, the trees that a parser is trained on and the sentences that it parses then."""

import logging
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import chain, groupby, islice, repeat
from pathlib import Path
from typing import Literal, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, NonNegativeInt, PositiveInt, model_validator

from rerank.base.errors import DataError, RecipeError
from rerank.base.progress import track
from rerank.data.symbols import SymbolTable
from rerank.readers.base import TRACE, NBestList, Reader, SkipCount, SkippedList, counted, usable
from rerank.readers.inputs import Inputs
from rerank.readers.streams import single_stdin, stream_name
from rerank.readers.texts.text_pairs import read_lines
from rerank.readers.trees.pairs import lists_of_trees, open_list
from rerank.readers.trees.treebank import GoldText, read_treebank, treebank_files
from rerank.readers.trees.trees import parse_brackets
from rerank.readers.trees.words import GOLD as GOLD_TREES
from rerank.readers.trees.words import difference, escaped, normal_word, normalized, same_yield, unchanged, yield_words
from rerank.storage.arrays import DAMAGE
from rerank.storage.digests import seal, verify
from rerank.storage.files import new_directory, remove_leftovers, write_text
from rerank.storage.outputs import LOCK, check_apart, sole_run
from rerank.storage.strict_json import as_json, read_object

NAME = "folds.json"
TRAIN, GOLD, SENTENCES = "train.mrg", "gold.mrg", "sentences.txt"


class Source(BaseModel):
    """A file that was split, the SHA-256 of its contents after decompression, and how many sentences it has."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: str
    sha256: str
    sentences: NonNegativeInt


class Manifest(BaseModel):
    """The split of a treebank into ``folds``.

    by: whether the sentences of a file stay together. treebank: its files, in order; words: the sentence file, if one
    was given. order: (fold, how many sentences belong to it next), all through the treebank.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    version: Literal[1] = 1
    folds: PositiveInt
    by: Literal["sentences", "files"]
    treebank: tuple[Source, ...]
    words: Source | None
    order: tuple[tuple[NonNegativeInt, PositiveInt], ...]

    @model_validator(mode="after")
    def _whole(self) -> Self:
        """The order is one of all sentences, and no fold is empty."""
        sentences = sum(source.sentences for source in self.treebank)
        if {fold for fold, _ in self.order} != {*range(self.folds)} or sum(n for _, n in self.order) != sentences:
            raise ValueError("the order is not that of the sentences")
        return self

    @staticmethod
    def read(directory: Path) -> "Manifest":
        """The manifest of a directory."""
        path = directory / NAME
        if not path.exists():
            raise DataError(f"has no {NAME}; `rerank folds split` writes it", path=str(directory))
        try:
            return Manifest.model_validate(read_object(path))
        except DAMAGE:
            message = "`rerank folds split` did not write this; split the treebank again, into another directory"
            raise DataError(message, path=str(path)) from None

    def as_text(self) -> str:
        """The content of ``folds.json``."""
        return as_json(self.model_dump(), indent=1) + "\n"

    def place(self, directory: Path, fold: int) -> Path:
        """The directory of a fold."""
        return directory / f"{fold:0{max(2, len(str(self.folds - 1)))}}"

    def size(self, fold: int) -> int:
        """The number of sentences in a fold."""
        return sum(count for member, count in self.order if member == fold)

    def members(self) -> Iterator[int]:
        """The fold of every sentence of the treebank, in order."""
        return chain.from_iterable(repeat(fold, count) for fold, count in self.order)

    def check(self, directory: Path, fold: int) -> Path:
        """The directory of a fold, which is complete and as it was written."""
        place = self.place(directory, fold)
        try:
            verify(place)
        except DAMAGE as error:
            message = f"fold {fold} is not as it was written ({error}); move this directory away, and split again"
            raise DataError(message, path=str(place)) from None
        return place

    def check_sources(self) -> list[str]:
        """The files of the treebank that are no longer there; none of the others has changed."""
        missing = [source.path for source in self.treebank if not Path(source.path).exists()]
        with Inputs() as inputs:
            for source in self.treebank:
                if source.path not in missing and inputs.digest(source.path) != source.sha256:
                    message = "the file has changed since it was split, and joined lists would not fit it; split again"
                    raise DataError(message, path=source.path)
        return missing


log = logging.getLogger("rerank")
By = Literal["sentences", "files"]
_MARKS = re.compile(rb"^<s\b[^>]*>|</s>$")  # of a sentence, for the parsers of Charniak and BLLIP


def split(
    names: Sequence[str], folds: int, directory: Path, *, words: str | None = None, by: By = "sentences"
) -> Manifest:
    """Write the folds of a treebank to ``directory``; those that an interrupted call has completed stay.

    names: the treebank, see ``treebank_files``. words: a file of its sentences, one per line, which the parser is given
    in place of the words of the trees. by: "sentences": folds are consecutive parts of the treebank; "files": the
    sentences of a file stay together, in the fold with the fewest sentences so far.
    """
    given = [*treebank_files(*names), *([] if words is None else [words])]
    if "-" in given:
        raise DataError("a split reads its files several times; name a file", path=stream_name("-"))
    check_apart([directory], given)
    paths = list(map(os.path.abspath, given))
    with Inputs() as inputs:
        for path in paths:
            inputs.open(path)
        manifest = _plan(paths, None if words is None else paths.pop(), folds, by, inputs)
        with sole_run(directory):
            _claim(directory, manifest)
            for fold in track(range(folds), "split", total=folds, unit="folds"):
                if manifest.place(directory, fold).exists():
                    manifest.check(directory, fold)
                    continue
                with new_directory(manifest.place(directory, fold)) as new:
                    _write(manifest, fold, new)
                    seal(new)
    return manifest


def _plan(paths: list[str], words: str | None, folds: int, by: By, inputs: Inputs) -> Manifest:
    """Read everything once: whether it is all of use, and which sentence goes to which fold."""
    counts, literal = dict.fromkeys(paths, 0), 0
    for gold in _checked(paths, words):
        counts[gold.path] += 1
        literal += escaped(gold.text) != gold.text
    if literal:
        message = "%s trees have brackets that are words, which the folds write -LRB- and -RRB-; recipes with these "
        log.warning(message + "gold trees need data.normalize: true", f"{literal:,}")
    total, full = sum(counts.values()), [count for count in counts.values() if count]
    if (total if by == "sentences" else len(full)) < folds:
        message = f"{total:,} sentences in {len(full):,} files are too few for {folds} folds by {by}; ask for fewer"
        raise DataError(message, path=paths[0] if paths else None)
    if by == "sentences":
        order = [(fold, total // folds + (fold < total % folds)) for fold in range(folds)]
    else:
        order = _whole_files(full, folds)
    return Manifest(
        folds=folds,
        by=by,
        treebank=tuple(Source(path=path, sha256=inputs.digest(path), sentences=n) for path, n in counts.items()),
        words=None if words is None else Source(path=words, sha256=inputs.digest(words), sentences=total),
        order=tuple(order),
    )


def _whole_files(counts: list[int], folds: int) -> list[tuple[int, int]]:
    """(fold, sentences) for files of this many sentences: each goes to the fold with the fewest so far."""
    sizes, chosen = np.zeros(folds, np.int64), []
    for count in counts:
        fold = int(sizes.argmin())
        sizes[fold] += count
        chosen.append((fold, count))
    return [(fold, sum(count for _, count in run)) for fold, run in groupby(chosen, key=lambda each: each[0])]


def _checked(paths: list[str], words: str | None) -> Iterator[GoldText]:
    """All trees, each with words that are those of its line in the file ``words``."""
    number, lines = 0, None if words is None else read_lines(words)
    for number, gold in enumerate(read_treebank(paths), start=1):
        gold_words = _words(gold)
        if not gold_words:
            message = "a tree without words, so there is nothing to parse; remove it"
            raise DataError(message, path=gold.path, line=gold.line)
        if lines is not None and (line := next(lines, b"")) is not None and _letters(line) != _letters(gold_words):
            message = (
                f"not the sentence of the tree at {gold.path}:{gold.line} ({gold_words.decode('utf-8', 'replace')!r}); "
            )
            raise DataError(f"{message}the n-th line is the sentence of the n-th tree", path=words, line=number)
        yield gold
    if lines is not None and next(lines, None) is not None:
        message = f"there are {number:,} trees and more lines; the n-th line is that of the n-th tree"
        raise DataError(message, path=words)


def _words(gold: GoldText) -> bytes:
    """The sentence of a tree, with blanks between its words."""
    symbols = SymbolTable()
    tree = parse_brackets([escaped(gold.text)], symbols, path=gold.path, lines=[gold.line])
    return " ".join(yield_words(tree, 0, symbols)).encode("utf-8", "surrogateescape")


def _letters(line: bytes) -> str:
    """A sentence in normal form and without white space: the same however it is cut into words."""
    text = _MARKS.sub(b"", line).decode("utf-8", "surrogateescape")
    return normal_word("".join(text.split())).replace("''", '"')


def _claim(directory: Path, manifest: Manifest) -> None:
    """Write the manifest, unless it is there already; before it, there may be nothing else."""
    remove_leftovers(directory)
    if (directory / NAME).exists():
        if Manifest.read(directory) != manifest:
            message = "the directory holds another split, or one of another treebank; use another --output"
            raise RecipeError(message, path=str(directory))
        return
    for other in directory.iterdir():
        if other.name != LOCK:
            message = f"the directory holds {other.name!r}, but no folds; use another --output"
            raise RecipeError(message, path=str(directory))
    write_text(directory / NAME, manifest.as_text())


def _write(manifest: Manifest, fold: int, place: Path) -> None:
    """Write the files of a fold, one tree or sentence per line."""
    trees = read_treebank(source.path for source in manifest.treebank)
    lines = repeat(None) if manifest.words is None else read_lines(manifest.words.path)
    with ExitStack() as stack:
        train, gold, sentences = (stack.enter_context((place / name).open("wb")) for name in (TRAIN, GOLD, SENTENCES))
        for tree, member, line in zip(trees, manifest.members(), lines, strict=manifest.words is not None):
            (gold if member == fold else train).write(b" ".join(escaped(tree.text).split()) + b"\n")
            if member == fold:
                sentences.write((_words(tree) if line is None else line) + b"\n")


Ids = Literal["number", "file"]


class Joining:
    """Lists of the folds in a directory on their way to one file.

    directory: what ``split`` has written. files: the lists of each fold, in order. count: the policy for bad lists, and
    what was found. ids: lists are numbered through the treebank, from 0, or have the ids of their files.

    ``normalized`` counts lists whose words are those of their sentences only after normalisation.
    """

    def __init__(
        self, directory: Path, files: Sequence[str], reader: Reader, count: SkipCount, ids: Ids = "number"
    ) -> None:
        self.manifest = Manifest.read(directory)
        if len(files) != self.manifest.folds:
            message = f"found {len(files)} files of lists for {self.manifest.folds} folds; name one for each, in order"
            raise DataError(message, path=str(directory))
        single_stdin(*files)
        self.places = [self.manifest.check(directory, fold) for fold in range(self.manifest.folds)]
        self.normalized = 0
        self._files, self._reader, self._count, self._ids = files, reader, count, ids
        self._symbols = SymbolTable()

    def lists(self) -> Iterator[NBestList | SkippedList]:
        """All lists in the order of the treebank; bad ones that are skipped, in their places."""
        folds, number, owners = [self._fold(k) for k in range(len(self.places))], 0, dict[str, str]()
        for fold, length in self.manifest.order:
            for item in islice(folds[fold], length):
                name = item.name if isinstance(item, SkippedList) else item.id
                name = str(number) if self._ids == "number" else name
                if (owner := owners.setdefault(name, item.path)) != item.path:
                    message = f"a list of {owner} has this id too; without --ids file lists are numbered"
                    raise DataError(message, path=item.path, line=item.line, list_id=name)
                # The reason of a bad list may decide its name.
                yield replace(item, id=name, reason="") if isinstance(item, SkippedList) else item.changed(id=name)
                number += 1
        for rest in folds:
            next(rest, None)  # raises if there is more

    def _fold(self, fold: int) -> Iterator[NBestList | SkippedList]:
        """The lists of a fold, each of them with the words of its sentence."""

        def take(item: tuple[int, NBestList | SkippedList], count: SkipCount) -> NBestList | SkippedList:
            number, nbest = item
            if not isinstance(nbest, SkippedList):
                nbest = self._compared(fold, number, nbest, nbest.gold.text)
            counted(nbest, count)
            return nbest

        lists = lists_of_trees(self._reader, self._files[fold], [str(self.places[fold] / GOLD)])
        return usable(enumerate(lists), take, self._count)

    def _compared(self, fold: int, number: int, nbest: NBestList, gold: bytes) -> NBestList | SkippedList:
        """A list without its bad candidates; a bad list if there are no others."""
        tree = parse_brackets([gold], self._symbols)
        for changed in (None, unchanged()):
            opened = open_list(nbest, self._symbols, changed)
            if changed is not None:
                tree = normalized(tree, self._symbols, changed, GOLD_TREES)
            if not isinstance(opened, SkippedList):
                other = same_yield(opened[1], tree, 0, self._symbols.intern(TRACE))
                if other < 0 and (changed is not None or not opened[0].bad):
                    self.normalized += changed is not None and changed.total() > 0
                    return opened[0]
        if isinstance(opened, SkippedList):
            return opened
        words = [yield_words(trees, t, self._symbols) for trees, t in ((opened[1], other), (tree, 0))]
        line = opened[0].lines[other]
        raise DataError(self._refusal(fold, number, *words), path=nbest.path, line=line, list_id=nbest.id)

    def _refusal(self, fold: int, number: int, found: list[str], expected: list[str]) -> str:
        """The problem with list ``number`` of a fold, with the words ``found``: whose sentence is it?"""
        due = f"line {number + 1} of {self.places[fold] / SENTENCES}"
        owners = self._owners(found)
        if not owners:
            return f"the list is not of its sentence, {due}: {difference(found, expected)}"
        # Short sentences come several times: where files were exchanged, the line is that of the other fold.
        place, line = min(owners, key=lambda owner: (owner[1] != number + 1, owner[0] != fold))
        if place == fold:
            return f"the list is that of line {line}, where that of {due} is expected; keep the order of the sentences"
        message = f"the list is of a sentence that the parser of fold {fold} was trained on: line {line} of "
        return f"{message}{self.places[place] / SENTENCES}; expected the list of {due}"

    def _owners(self, words: list[str]) -> list[tuple[int, int]]:
        """The fold and line of every sentence with the words ``words``."""
        owners = []
        for fold, place in enumerate(self.places):
            for line, gold in enumerate(read_treebank([place / GOLD]), start=1):
                symbols = SymbolTable()
                tree = parse_brackets([gold.text], symbols)
                if list(map(normal_word, yield_words(tree, 0, symbols))) == words:
                    owners.append((fold, line))
        return owners
