"""Sentences whose tokens have labels, as readers give them, and what happens to those that cannot be used.

A sentence with a row of other columns than those before it, or without a label where one is expected, is an error or,
with ``on_bad_list="skip"``, is left out and counted, as a list is: see ``rerank.readers.skip_count``.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import NamedTuple

from rerank.base.encoding import decoded
from rerank.base.ranges import Checked
from rerank.base.registry import Registry
from rerank.readers.lines import LineReader
from rerank.readers.problems import NUL, Problem, SkippedList
from rerank.readers.skip_count import SkipCount, usable
from rerank.readers.streams import PathLike, Writable, must_wait, open_stream

Token = tuple[str, ...]  # the columns of a token, the word first
BATCH = 500  # sentences that are tagged together
ADVICE = "fix or remove the sentence, or leave out such ones with --on-bad-list skip (in a recipe: data.on_bad_list)"


@dataclass(frozen=True)
class TaggedSentence:
    """Tokens with their labels, none where these are not known.

    raw: its lines, comments among them; places: which of these are its tokens, where a token has a line.
    """

    tokens: tuple[Token, ...]
    labels: tuple[str, ...] = ()
    id: str = ""
    path: str = ""
    line: int = 0
    raw: tuple[str, ...] = ()
    places: tuple[int, ...] = ()

    @property
    def words(self) -> list[str]:
        """The first column of every token."""
        return [token[0] for token in self.tokens]


class LineBlock(NamedTuple):
    """Lines of a file that may be a sentence, the first of which is line ``line``."""

    line: int
    rows: list[str]


class SequenceReader(Checked, ABC):
    """A format of labelled sentences: a frozen dataclass whose fields are the options that a recipe can set."""

    def read(self, path: PathLike, width: int | None = None) -> Iterator[TaggedSentence | SkippedList]:
        """The sentences of ``path`` ("-": standard input), one at a time, bad ones in their places.

        width: how many columns tokens have; sentences without any more have no labels. None: all have labels.
        """
        with open_stream(path) as stream:
            lines, ordinal = LineReader(stream), 0
            for block in self.blocks(lines):
                try:
                    if lines.nul and any("\0" in row for row in block.rows):
                        raise Problem("nul", f"found {NUL}")
                    sentence = self.sentence(block, str(ordinal), lines.path, width)
                except Problem as problem:
                    yield replace(SkippedList.of(problem, str(ordinal), lines.path, block.line), advice=ADVICE)
                    ordinal += 1
                    continue
                if sentence is not None:
                    yield sentence
                    ordinal += 1

    def blocks(self, lines: LineReader) -> Iterator[LineBlock]:
        """The parts of a file that are a sentence each: by default those between blank lines."""
        for full, group in groupby(lines, lambda line: bool(line[1]) and not line[1].isspace()):
            if full:
                rows = list(group)
                yield LineBlock(rows[0][0], [decoded(row) for _, row in rows])

    @abstractmethod
    def sentence(self, block: LineBlock, name: str, path: str, width: int | None) -> TaggedSentence | None:
        """The sentence of a block, None if it holds none; a ``Problem`` if it cannot be used."""

    @abstractmethod
    def write(self, out: Writable, sentence: TaggedSentence, labels: Sequence[str]) -> None:
        """Write a sentence with these labels."""


sequence_readers: Registry[type[SequenceReader]] = Registry("sequence_reader", SequenceReader)


def sentences_of(items: Iterable[TaggedSentence | SkippedList], count: SkipCount) -> Iterator[TaggedSentence]:
    """The usable ones of sentences; bad ones are errors, or counted in ``count``, as it says."""

    def take(item: TaggedSentence | SkippedList, count: SkipCount) -> TaggedSentence | None:
        if isinstance(item, SkippedList):
            count.bad(item)
            return None
        count.lists += 1
        return item

    return usable(items, take, count)


def as_they_come(sentences: Iterable[TaggedSentence], path: PathLike) -> Iterator[list[TaggedSentence]]:
    """Sentences of ``path``, up to ``BATCH`` at a time, or those that there are before more can be read."""
    batch = list[TaggedSentence]()
    for sentence in sentences:
        batch.append(sentence)
        if len(batch) == BATCH or must_wait(path):
            yield batch
            batch = []
    yield batch
