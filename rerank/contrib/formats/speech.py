"""The lists of recognisers of speech, Kaldi's and ESPnet's: archives with a line for every candidate."""

import logging
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain, groupby, pairwise
from typing import ClassVar, NamedTuple

from rerank.base.encoding import decoded
from rerank.base.errors import DataError
from rerank.readers.inputs import ById
from rerank.readers.lines import LineReader, Place, Record, score_of
from rerank.readers.lists import Lists
from rerank.readers.problems import NUL, say_once
from rerank.readers.reader import Order, Problem, Reader, Scores, check_names, excerpt
from rerank.readers.texts.jsonl import JsonlReader
from rerank.readers.texts.text_list import SCORE, Draft, Entry, TextReader
from rerank.storage.streams import PathLike, Writable, open_stream, split_paths, start_alone, stream_name


class KeyedLine(NamedTuple):
    """A line of an archive; ``path`` and ``number`` say where it is."""

    path: str
    number: int
    key: bytes
    value: bytes  # stripped

    @property
    def name(self) -> str:
        """The key as text."""
        return decoded(self.key)


def keyed_lines(lines: LineReader) -> Iterator[KeyedLine]:
    """The lines of an archive, without blank ones."""
    for number, line in lines:
        key, *value = line.split(None, 1)[:2] or [b""]
        if key:
            yield KeyedLine(lines.path, number, key, value[0].strip() if value else b"")


class Archive(ById[KeyedLine]):
    """The lines of an archive that goes with another, by their keys."""

    def __init__(self, lines: LineReader) -> None:
        super().__init__((line.key, line) for line in keyed_lines(lines))
        self.path = lines.path

    def take_like(self, line: KeyedLine) -> KeyedLine:
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


def text_of(line: KeyedLine) -> bytes:
    """The text on a line. Raises Problem."""
    if b"\0" in line.key + line.value:
        raise Problem("nul", NUL, line.number, path=line.path)
    return line.value


class WrittenAsJsonl(Reader):
    """A reader whose lists are written in the format ``jsonl``, which holds whatever a list of texts has."""

    def write(self, out: Writable, nbest: Lists, order: Order = None, scores: Scores = None) -> None:
        JsonlReader().write(out, nbest, order, scores)

    def write_bad(self, out: Writable, bad: Problem, like: Lists | None) -> None:  # noqa: ARG002
        JsonlReader().write_bad(out, bad, None)


_SCORE = re.compile(rb"-?\d+\.\d+(?=\s)")
_KEY = re.compile(rb"(.+)-([1-9]\d*)$", re.DOTALL)


@dataclass(frozen=True)
class KaldiReader(WrittenAsJsonl, TextReader):
    """The n-best lists of Kaldi: text archives with a line for every candidate, as ``nbest-to-linear`` writes them.

    Three lines of an archive of words (with ``int2sym.pl -f 2-``), and of one of costs that may go with it::

        utt-0001-1 it rained .            utt-0001-1 35.2512
        utt-0001-2 it rains .             utt-0001-2 36.0123
        utt-0002-1                        utt-0002-1 4.75

    The key of a candidate is the utterance and its number in the list; a list is a run of lines of one utterance,
    numbered from 1 without gaps. The path names the words and, separated by commas, the costs. These become columns as
    they are, called as the option says; a column called ``score`` is the base score, which is 0 where there is none.

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
    file_options: ClassVar[tuple[str, ...]] = ("costs",)

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
        by_utterance = groupby(keyed_lines(lines), lambda line: key[1] if (key := _KEY.match(line.key)) else line.key)
        for key, group in by_utterance:
            content = [[words, *[one.take_like(words) for one in costs]] for words in list(group)]
            yield Record(decoded(key), content[0][0].number, content)
        for one in costs:
            one.finish(lines.path)

    def draft(self, content: Sequence[Sequence[KeyedLine]]) -> Draft:
        first = _KEY.match(content[0][0].key)
        if first and first[2] != b"1":
            message = f"found the key {excerpt(first[0])} where a list starts; expected the first candidate, "
            raise Problem("id", f"{message}{excerpt(first[1] + b'-1')}")
        numbers = [(k, int(key[2])) for k, (words, *_) in enumerate(content) if (key := _KEY.match(words.key))]
        for (k, before), (j, number) in pairwise(numbers):
            if number - before != j - k:
                message = f"candidate {number} comes after candidate {before}; expected {before + j - k}: "
                message += "is this several lists?" if number <= before else "are lines lost, or in another order?"
                raise Problem("id", message)
        scores = [match[0] for words, *_ in content if (match := _SCORE.match(words.value))]
        if len({*scores}) == len(content) > 1 and start_alone.get() is None:  # of a file that is no other's
            message = "each text begins with a number of its own; scores are in another file: WORDS,SCORES --reader "
            say_once(f"{content[0][0].path}: {message}'{{name: kaldi, costs: [score]}}'", logging.WARNING)
        return Draft.of(content, self._candidate, lines=[words.number for words, *_ in content])

    def _candidate(self, lines: Sequence[KeyedLine], _: int) -> Entry:
        """The entry on the lines of a candidate. Raises Problem."""
        words, *costs = lines
        text = text_of(words)
        if not _KEY.match(words.key):
            advice = "expected an utterance and the number of a candidate, 'utt-1'"
            raise Problem("id", f"found the key {excerpt(words.key)}; {advice}")
        columns = zip(self.costs, costs, strict=True)
        return Entry(text, {name: score_of(line.value, line.number, line.path) for name, line in columns})


_FIRST = "1best_recog"
_RANK = re.compile(r"([1-9]\d{0,8})best_recog$")
_JOB = re.compile(r"output\.(\d{1,9})$")
_TENSOR = re.compile(rb"tensor\(([^,()]*)(?:,.*)?\)$")


Line = tuple[KeyedLine, KeyedLine | None]  # of a candidate: its text, and its score


@dataclass(frozen=True)
class EspnetReader(WrittenAsJsonl, TextReader):
    """The n-best output of ESPnet: a folder for the first candidates of all utterances, one for the second, and so on.

    Three lines of ``1best_recog/text``, and of the ``1best_recog/score`` that goes with it::

        utt-0001 IT RAINED                utt-0001 -3.5211
        utt-0002 YES                      utt-0002 tensor(-0.25)
        utt-0003                          utt-0003 tensor(-7.5, device='cuda:0')

    The path names the folder around ``1best_recog``, ``2best_recog`` and so on, or one with the ``output.1``,
    ``output.2``... of several jobs, or a ``logdir`` with these. Lists are in the order of ``1best_recog/text``; the
    other folders may lack utterances, and no two jobs may have the same one. A rank or job without its folder is an
    error. Where there are no files ``score``, all base scores are 0.

    >>> (nbest,) = EspnetReader().parse(b"utt-0001 IT RAINED\\n")  # of a file 1best_recog/text alone
    >>> nbest.id, nbest.texts
    ('utt-0001', [b'IT RAINED'])
    """

    form: ClassVar[str] = "espnet"
    use: ClassVar[str] = "speech"

    def paths(self, path: PathLike) -> list[str]:
        return [file for job in _jobs(path) for folder in job for file in _files(folder)]

    def blocks(self, path: PathLike) -> Iterator[Lists]:
        if not path:  # a file's contents alone
            yield from super().blocks(path)
            return
        ids = dict[str, Place]()
        for job in _jobs(path):
            with ExitStack() as stack:
                (lines, *scores), *others = [
                    [LineReader(stack.enter_context(open_stream(file, strict=False))) for file in _files(one)]
                    for one in job
                ]
                archives = [[Archive(one) for one in folder] for folder in (scores, *others)]
                yield from self.lists(lines, _records(lines, *archives), ids)

    def records(self, lines: LineReader) -> Iterator[Record]:
        """The first candidates alone, without scores."""
        return _records(lines, [])

    def draft(self, content: Sequence[Line]) -> Draft:
        return Draft.of(content, _candidate, lines=[text.number for text, _ in content])


def _jobs(path: PathLike) -> list[list[str]]:
    """The folders of every job's first, second... candidates."""
    top = os.fspath(path)
    directories = [top, os.path.join(top, "logdir")] if os.path.isdir(top) else []
    paths = [os.path.join(each, name) for each in filter(os.path.isdir, directories) for name in os.listdir(each)]
    outputs = sorted((int(job[1]), path) for path in paths if (job := _JOB.match(os.path.basename(path))))
    jobs = [top] if os.path.isdir(os.path.join(top, _FIRST)) else [job for _, job in outputs]
    if not jobs:
        message = "expected a folder with 1best_recog, 2best_recog and so on, or with output.1, output.2... of several "
        raise DataError(f"{message}jobs that have these", path=stream_name(path))
    return list(map(_folders, jobs))


def _folders(job: str) -> list[str]:
    """The folders of a job's first, second... candidates."""
    ranks = sorted(int(match[1]) for match in map(_RANK.match, os.listdir(job)) if match)
    if ranks != list(range(1, len(ranks) + 1)) or not ranks:
        gap = next(rank for rank, there in enumerate([*ranks, 0], 1) if rank != there)
        hint = ": has this job ended? Run it again, or remove it"
        others = f", but there is {ranks[-1]}best_recog" if ranks else hint
        raise DataError(f"there is no {gap}best_recog{others}", path=job)
    return [os.path.join(job, f"{rank}best_recog") for rank in ranks]


def _files(folder: str) -> list[str]:
    """The file of texts and, if there is one, the file of scores."""
    score = os.path.join(folder, "score")
    return [os.path.join(folder, "text"), *([score] if os.path.exists(score) else [])]


def _records(lines: LineReader, scores: Sequence[Archive], *others: Sequence[Archive]) -> Iterator[Record]:
    """The candidates of every utterance: the first, and those of the other folders (texts, scores) that have it."""
    for text in keyed_lines(lines):
        content: list[Line] = [_line(text, *scores)]
        costs = ((folder[0].take(text.key), folder[1:]) for folder in others)
        content += [_line(other, *of_other) for other, of_other in costs if other is not None]
        yield Record(text.name, text.number, content)
    for archive in chain(scores, *others):
        archive.finish(lines.path)


def _line(text: KeyedLine, scores: Archive | None = None) -> Line:
    return text, None if scores is None else scores.take_like(text)


def _candidate(lines: Line, _: int) -> Entry:
    """The entry on the lines of a candidate. Raises Problem."""
    text, score = lines
    if score is None:
        return Entry(text_of(text), {})
    tensor = _TENSOR.match(score.value)
    number = score_of(tensor[1] if tensor else score.value, score.number, score.path)
    return Entry(text_of(text), {SCORE: number})
