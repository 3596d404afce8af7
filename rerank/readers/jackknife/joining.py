"""The lists that the parsers of all folds have made, joined in the order of the treebank."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Literal

from rerank.base.errors import DataError
from rerank.data.symbols import SymbolTable
from rerank.readers.base import TRACE, NBestList, Reader, SkipCount, SkippedList, usable
from rerank.readers.jackknife.splitting import GOLD, SENTENCES, Manifest
from rerank.readers.streams import single_stdin
from rerank.readers.trees.pairs import lists_of_trees, open_list
from rerank.readers.trees.treebank import read_treebank
from rerank.readers.trees.trees import parse_brackets
from rerank.readers.trees.words import GOLD as GOLD_TREES
from rerank.readers.trees.words import difference, normal_word, normalized, same_yield, unchanged, yield_words

Ids = Literal["number", "file"]


class Joining:
    """Lists of the folds in a directory on their way to one file.

    directory: what ``split`` has written. files: the lists of each fold, in order. count: the policy for bad lists, and
    what was found. ids: lists are numbered through the treebank, from 0, or have the ids of their files.

    ``normalized`` counts lists whose words are those of their sentences only after normalisation.

    Raises
    ------
    DataError: the directory has changed; there is not one file for each fold.
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
            found = nbest if isinstance(nbest, SkippedList) else self._compared(fold, number, nbest, nbest.gold.text)
            if isinstance(found, SkippedList):
                count.bad(found)
            else:
                count.good(found)
            return found

        lists = lists_of_trees(self._reader, self._files[fold], [str(self.places[fold] / GOLD)])
        return usable(enumerate(lists), take, self._count)

    def _compared(self, fold: int, number: int, nbest: NBestList, gold: bytes) -> NBestList | SkippedList:
        """A list without its bad candidates; a bad list if there are no others."""
        tree = parse_brackets([gold], self._symbols)
        for changed in (None, unchanged()):
            found = open_list(nbest, self._symbols, changed)
            if changed is not None:
                tree = normalized(tree, self._symbols, changed, GOLD_TREES)
            if not isinstance(found, SkippedList):
                other = same_yield(found[1], tree, 0, self._symbols.intern(TRACE))
                if other < 0 and (changed is not None or not found[0].bad):
                    self.normalized += changed is not None and changed.total() > 0
                    return found[0]
        if isinstance(found, SkippedList):
            return found
        words = [yield_words(trees, t, self._symbols) for trees, t in ((found[1], other), (tree, 0))]
        line = found[0].lines[other]
        raise DataError(self._refusal(fold, number, *words), path=nbest.path, line=line, list_id=nbest.id)

    def _refusal(self, fold: int, number: int, found: list[str], expected: list[str]) -> str:
        """What is wrong with list ``number`` of a fold, with the words ``found``: whose sentence is it?"""
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
        found = []
        for fold, place in enumerate(self.places):
            for line, gold in enumerate(read_treebank([place / GOLD]), start=1):
                symbols = SymbolTable()
                tree = parse_brackets([gold.text], symbols)
                if list(map(normal_word, yield_words(tree, 0, symbols))) == words:
                    found.append((fold, line))
        return found
