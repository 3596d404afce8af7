"""The n-best output of ESPnet: a folder for the first candidates of all utterances, one for the second, and so on.

Three lines of ``1best_recog/text``, and of the ``1best_recog/score`` that goes with it::

    utt-0001 IT RAINED                utt-0001 -3.5211
    utt-0002 YES                      utt-0002 tensor(-0.25)
    utt-0003                          utt-0003 tensor(-7.5, device='cuda:0')

The path names the folder around ``1best_recog``, ``2best_recog`` and so on, or one with the ``output.1``,
``output.2``... of several jobs, or a ``logdir`` with these. Lists are in the order of ``1best_recog/text``; the other
folders may lack utterances, and no two jobs may have the same one. A rank or job without its folder is an error. Where
there are no files ``score``, all base scores are 0.
"""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain
from typing import ClassVar

from rerank.base.errors import DataError
from rerank.contrib.formats.kaldi import Archive, Keyed, keyed, text_of
from rerank.readers.base import Lists
from rerank.readers.lines import LineReader, Place, Record, score_of
from rerank.readers.streams import PathLike, open_stream, stream_name
from rerank.readers.texts.jsonl import WrittenAsJsonl
from rerank.readers.texts.text_list import SCORE, Draft, Entry, TextReader

_FIRST = "1best_recog"
_RANK = re.compile(r"([1-9]\d{0,8})best_recog$")
_JOB = re.compile(r"output\.(\d{1,9})$")
_TENSOR = re.compile(rb"tensor\(([^,()]*)(?:,.*)?\)$")


Line = tuple[Keyed, Keyed | None]  # of a candidate: its text, and its score


@dataclass(frozen=True)
class EspnetReader(WrittenAsJsonl, TextReader):
    """Lists of ESPnet. Options are those of ``TextReader``.

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
        seen = dict[str, Place]()
        for job in _jobs(path):
            with ExitStack() as stack:
                (lines, *scores), *others = [
                    [LineReader(stack.enter_context(open_stream(file, strict=False))) for file in _files(one)]
                    for one in job
                ]
                archives = [[Archive(one) for one in folder] for folder in (scores, *others)]
                yield from self.lists(lines, _together(lines, *archives), seen)

    def records(self, lines: LineReader) -> Iterator[Record]:
        """Those of the first candidates alone, without scores."""
        return _together(lines, [])

    def draft(self, content: Sequence[Line]) -> Draft:
        return Draft.of(content, _candidate, lines=[text.number for text, _ in content])


def _jobs(path: PathLike) -> list[list[str]]:
    """The folders of every job's first, second... candidates."""
    top = os.fspath(path)
    places = [top, os.path.join(top, "logdir")] if os.path.isdir(top) else []
    matches = [(place, _JOB.match(name)) for place in places if os.path.isdir(place) for name in os.listdir(place)]
    outputs = sorted((int(job[1]), os.path.join(place, job[0])) for place, job in matches if job)
    jobs = [top] if os.path.isdir(os.path.join(top, _FIRST)) else [job for _, job in outputs]
    if not jobs:
        message = "expected a folder with 1best_recog, 2best_recog and so on, or with output.1, output.2... of several "
        raise DataError(f"{message}jobs that have these", path=stream_name(path))
    return list(map(_folders, jobs))


def _folders(job: str) -> list[str]:
    """The folders of a job's first, second... candidates."""
    ranks = sorted(int(match[1]) for match in map(_RANK.match, os.listdir(job)) if match)
    if ranks != list(range(1, len(ranks) + 1)) or not ranks:
        lacking = next(rank for rank, there in enumerate([*ranks, 0], 1) if rank != there)
        ended = ": has this job ended? Run it again, or remove it"
        others = f", but there is {ranks[-1]}best_recog" if ranks else ended
        raise DataError(f"there is no {lacking}best_recog{others}", path=job)
    return [os.path.join(job, f"{rank}best_recog") for rank in ranks]


def _files(folder: str) -> list[str]:
    """The file of texts and, if there is one, that of scores."""
    score = os.path.join(folder, "score")
    return [os.path.join(folder, "text"), *([score] if os.path.exists(score) else [])]


def _together(lines: LineReader, scores: Sequence[Archive], *others: Sequence[Archive]) -> Iterator[Record]:
    """The candidates of every utterance: the first, and those of the other folders (texts, scores) that have it."""
    for text in keyed(lines):
        content: list[Line] = [_scored(text, *scores)]
        costs = ((folder[0].take(text.key), folder[1:]) for folder in others)
        content += [_scored(other, *of_other) for other, of_other in costs if other is not None]
        yield Record(text.name, text.number, content)
    for archive in chain(scores, *others):
        archive.finish(lines.path)


def _scored(text: Keyed, scores: Archive | None = None) -> Line:
    return text, None if scores is None else scores.beside(text)


def _candidate(lines: Line, _: int) -> Entry:
    """The entry on the lines of a candidate. Raises Problem."""
    text, score = lines
    if score is None:
        return Entry(text_of(text), {})
    tensor = _TENSOR.match(score.value)
    number = score_of(tensor[1] if tensor else score.value, score.number, score.path)
    return Entry(text_of(text), {SCORE: number})
