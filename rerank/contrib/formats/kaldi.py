"""The n-best lists of Kaldi: text archives with a line for every candidate, as ``nbest-to-linear`` writes them.

Three lines of an archive of words (with ``int2sym.pl -f 2-``), and of one of costs that may go with it::

    utt-0001-1 it rained .            utt-0001-1 35.2512
    utt-0001-2 it rains .             utt-0001-2 36.0123
    utt-0002-1                        utt-0002-1 4.75

The key of a candidate is the utterance and its number in the list; a list is a run of lines of one utterance, numbered
from 1 without gaps. The path names the words and, separated by commas, the costs. These become columns as they are,
called as the option says; a column called ``score`` is the base score, which is 0 where there is none.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import ClassVar, NamedTuple

from rerank.base.encoding import decoded
from rerank.base.errors import DataError
from rerank.readers.base import Problem, check_names, excerpt
from rerank.readers.lines import LineReader, Record, score_of
from rerank.readers.lists import Lists
from rerank.readers.problems import NUL
from rerank.readers.sides import ById
from rerank.readers.streams import PathLike, open_stream, split_paths, stream_name
from rerank.readers.texts.jsonl import WrittenAsJsonl
from rerank.readers.texts.text_list import Draft, Entry, TextReader


class Keyed(NamedTuple):
    """A line of an archive; ``path`` and ``number`` say where it is."""

    path: str
    number: int
    key: bytes
    value: bytes  # stripped

    @property
    def name(self) -> str:
        """The key as text."""
        return decoded(self.key)


def keyed(lines: LineReader) -> Iterator[Keyed]:
    """The lines of an archive, without blank ones."""
    for number, line in lines:
        key, *value = line.split(None, 1)[:2] or [b""]
        if key:
            yield Keyed(lines.path, number, key, value[0].strip() if value else b"")


class Archive(ById[Keyed]):
    """The lines of an archive that goes with another, by their keys."""

    def __init__(self, lines: LineReader) -> None:
        super().__init__((line.key, line) for line in keyed(lines))
        self.path = lines.path

    def beside(self, line: Keyed) -> Keyed:
        """Take the line of the same key as one of another archive."""
        costs = self.take(line.key)
        if costs is None:
            message = f"no line is left for the key {excerpt(line.key)} of {line.path}, line {line.number}; both files "
            raise DataError(f"{message}need the same keys", path=self.path)
        return costs

    def finish(self, like: str) -> None:
        """Refuse a line that nobody has taken, beside the archive ``like``."""
        for line in self.rest():
            message = (
                f"found the key {excerpt(line.key)}, which {like} does not have, or not so often; both files need "
            )
            raise DataError(f"{message}the same keys", path=self.path, line=line.number)


def text_of(line: Keyed) -> bytes:
    """The text on a line. Raises Problem."""
    if b"\0" in line.key + line.value:
        raise Problem("nul", NUL, line.number, path=line.path)
    return line.value


_KEY = re.compile(rb"(.+)-([1-9]\d*)$", re.DOTALL)


@dataclass(frozen=True)
class KaldiReader(WrittenAsJsonl, TextReader):
    """Lists of Kaldi.

    >>> (nbest,) = KaldiReader().parse(b"utt-0001-1 it rained\\nutt-0001-2 it rains\\n")
    >>> nbest.id, nbest.texts
    ('utt-0001', [b'it rained', b'it rains'])

    Parameters
    ----------
    duplicates: see ``ListReader``.
    costs: the names of the columns in the archives that follow the words.
    """

    form: ClassVar[str] = "kaldi"
    use: ClassVar[str] = "speech"
    beside: ClassVar[tuple[str, ...]] = ("costs",)

    costs: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        check_names(self.costs, "costs")

    @property
    def files(self) -> int | None:
        return 1 + len(self.costs)

    def blocks(self, path: PathLike) -> Iterator[Lists]:
        names = [str(path)] if not self.costs else split_paths(path)
        if len(names) != self.files:
            message = f"names {len(names)} files; expected {self.files}: the words and {', '.join(self.costs)}"
            raise DataError(message, path=stream_name(path))
        with ExitStack() as stack:
            lines, *costs = [LineReader(stack.enter_context(open_stream(name, strict=False))) for name in names]
            yield from self.lists(lines, self.records(lines, list(map(Archive, costs))))

    def records(self, lines: LineReader, costs: Sequence[Archive] = ()) -> Iterator[Record]:
        """The lists with the costs of every candidate beside its words."""
        for key, group in groupby(keyed(lines), lambda line: one[1] if (one := _KEY.match(line.key)) else line.key):
            content = [[words, *[one.beside(words) for one in costs]] for words in list(group)]
            yield Record(decoded(key), content[0][0].number, content)
        for one in costs:
            one.finish(lines.path)

    def draft(self, content: Sequence[Sequence[Keyed]]) -> Draft:
        first = _KEY.match(content[0][0].key)
        if first and first[2] != b"1":
            message = f"found the key {excerpt(first[0])} where a list starts; expected the first candidate, "
            raise Problem("id", f"{message}{excerpt(first[1] + b'-1')}")
        numbered = [(k, int(key[2])) for k, (words, *_) in enumerate(content) if (key := _KEY.match(words.key))]
        for (k, before), (j, number) in pairwise(numbered):
            if number - before != j - k:
                message = f"candidate {number} comes after candidate {before}; expected {before + j - k}: "
                message += "is this several lists?" if number <= before else "are lines lost, or in another order?"
                raise Problem("id", message)
        return Draft.of(content, self._candidate, lines=[words.number for words, *_ in content])

    def _candidate(self, lines: Sequence[Keyed], _: int) -> Entry:
        """The entry on the lines of a candidate. Raises Problem."""
        words, *costs = lines
        text = text_of(words)
        if not _KEY.match(words.key):
            expected = "expected an utterance and the number of a candidate, 'utt-1'"
            raise Problem("id", f"found the key {excerpt(words.key)}; {expected}")
        named = zip(self.costs, costs, strict=True)
        return Entry(text, {name: score_of(line.value, line.number, line.path) for name, line in named})
