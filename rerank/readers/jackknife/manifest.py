"""What a treebank was split into: ``folds.json``, and a directory for every fold.

A fold has the files ``train.mrg``, the trees of all other folds, ``gold.mrg``, its own, and ``sentences.txt``, their
sentences; each has a line. Its directory appears as a whole, with checksums.
"""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, NonNegativeInt, PositiveInt, model_validator

from rerank.base.errors import DataError
from rerank.readers.inputs import Inputs
from rerank.storage.arrays import DAMAGE
from rerank.storage.digests import verify
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
    """How a treebank was split into ``folds``.

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
        """The manifest of a directory.

        Raises
        ------
        DataError: there is none, or it is damaged.
        """
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
        """How many sentences a fold has."""
        return sum(count for own, count in self.order if own == fold)

    def members(self) -> Iterator[int]:
        """The fold of every sentence of the treebank, in order."""
        return itertools.chain.from_iterable(itertools.repeat(fold, count) for fold, count in self.order)

    def check(self, directory: Path, fold: int) -> Path:
        """The directory of a fold, which is complete and as it was written.

        Raises
        ------
        DataError: it is not; says which file, and what to do.
        """
        place = self.place(directory, fold)
        try:
            verify(place)
        except DAMAGE as error:
            message = f"fold {fold} is not as it was written ({error}); move this directory away, and split again"
            raise DataError(message, path=str(place)) from None
        return place

    def check_sources(self) -> list[str]:
        """The files of the treebank that are no longer there; none of the others has changed.

        Raises
        ------
        DataError: one has.
        """
        missing = [source.path for source in self.treebank if not Path(source.path).exists()]
        with Inputs() as inputs:
            for source in self.treebank:
                if source.path not in missing and inputs.digest(source.path) != source.sha256:
                    message = "the file has changed since it was split, and joined lists would not fit it; split again"
                    raise DataError(message, path=source.path)
        return missing
