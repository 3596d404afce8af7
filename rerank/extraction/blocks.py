"""Lists, block by block: cut by the process that reads them, parsed, measured and counted by the workers.

A worker leaves what it finds in a directory of the spool, without columns: these are not known until all blocks are
counted. Where one block ends and the next begins depends on the lists alone.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import mkdtemp, mkstemp
from typing import Any, NamedTuple, TypeVar

import numpy as np

from rerank.base.errors import RerankError, RunError
from rerank.data.symbols import SymbolTable
from rerank.extraction.content import content_of
from rerank.extraction.content.base import Content
from rerank.features.counting import CollisionCount, FeatureCounter
from rerank.features.rows import RowBuilder
from rerank.readers.base import SkipCount
from rerank.readers.score_columns import ScoreColumns
from rerank.readers.score_count import ScoreCount
from rerank.readers.sides import Beside
from rerank.readers.texts.text_list import TextList
from rerank.recipes.recipe import ListRecipe
from rerank.storage.arrays import read_array
from rerank.storage.files import reason
from rerank.storage.strict_json import as_json

BLOCK_LISTS, BLOCK_BYTES = 1 << 9, 1 << 21  # at most so many lists, and bytes of texts, in a block
T = TypeVar("T")


class Block(NamedTuple):
    """Lists as they are read; ``number`` counts blocks from 0."""

    number: int
    lists: list[Beside]


class Summary(NamedTuple):
    """What is reported about a block in addition to what is written."""

    ids: list[str]  # of the usable lists
    met: SkipCount
    features: int  # how many different features vary
    warnings: list[tuple[int, str]]  # level and message


class Texts(NamedTuple):
    """The texts of a block's symbols."""

    text_hashes: np.ndarray  # uint64 [n]
    text_first: np.ndarray  # int64 [n + 1]: text i is text_bytes[text_first[i]:text_first[i + 1]]
    text_bytes: np.ndarray  # uint8

    @staticmethod
    def of(symbols: SymbolTable) -> Texts:
        """All texts of a table."""
        texts = [symbols.text(i).encode("utf-8", "surrogateescape") for i in range(len(symbols))]
        first = np.zeros(len(texts) + 1, np.int64)
        np.cumsum([len(text) for text in texts], out=first[1:])
        return Texts(np.array(symbols.hashes), first, np.frombuffer(b"".join(texts), np.uint8))

    def some(self, hashes: np.ndarray) -> dict[int, str]:
        """The texts of those ``hashes`` (uint64) that are here, by hash."""
        found = {}
        for i in np.flatnonzero(np.isin(self.text_hashes, hashes)):
            text = self.text_bytes[self.text_first[i] : self.text_first[i + 1]].tobytes()
            found[int(self.text_hashes[i])] = text.decode("utf-8", "surrogateescape")
        return found


class Shared(NamedTuple):
    """For hashed features: the whole hash of the first of every identity, and whether others share the identity."""

    owner: np.ndarray  # uint64 [U]
    shared: np.ndarray  # bool [U]


@dataclass(frozen=True)
class Spool:
    """The directory where blocks are left, by number and name of array."""

    directory: str

    def path(self, number: int) -> Path:
        """The directory of a block."""
        return Path(self.directory) / f"{number:06d}"

    def array(self, number: int, name: str) -> np.ndarray:
        """An array of a block, memory-mapped."""
        return np.asarray(read_array(self.path(number) / f"{name}.npy", mmap=True))

    def load(self, number: int, kind: Callable[..., T]) -> T:
        """Arrays of a block, memory-mapped; ``kind`` is one of the tuples of arrays here."""
        return kind(*(self.array(number, name) for name in kind._fields))  # type: ignore[attr-defined]

    def save(self, number: int, *parts: Any) -> None:
        """Write the arrays of a block; all of them appear at once. They need not survive a power failure.

        Raises
        ------
        RunError: they cannot be written, or the spool is gone: the process that waits for this one has been stopped.
        """
        try:
            temporary = Path(mkdtemp(dir=self.directory))
            for name, array in (item for part in parts for item in part._asdict().items()):
                np.save(temporary / f"{name}.npy", array, allow_pickle=False)
            if not self.path(number).exists():  # else a worker that died after this point has left the same
                temporary.rename(self.path(number))
        except OSError as error:
            raise RunError(f"cannot write {self.path(number)}: {reason(error)}") from error

    def note(self, number: int, summary: Summary) -> None:
        """Write the summary of a block: that marks it as done.

        Raises
        ------
        RunError: it cannot be written.
        """
        said = summary._asdict() | {"met": vars(summary.met) | {"scores": vars(summary.met.scores)}}
        target = self.path(number).with_suffix(".json")
        try:
            descriptor, temporary = mkstemp(dir=self.directory)
            with os.fdopen(descriptor, "w") as out:
                out.write(as_json(said))
            os.replace(temporary, target)
        except OSError as error:
            raise RunError(f"cannot write {target}: {reason(error)}") from error

    def noted(self, number: int) -> Summary | None:
        """What ``note`` wrote; None where the block is not done."""
        try:
            said = json.loads(self.path(number).with_suffix(".json").read_text())
        except FileNotFoundError:
            return None
        met = SkipCount(**said["met"] | {"scores": ScoreCount(**said["met"]["scores"])})
        warnings = [(int(level), str(text)) for level, text in said["warnings"]]
        return Summary(said["ids"], met, said["features"], warnings)


@dataclass(frozen=True)
class BlockJob:
    """What all blocks of a split have in common. imports: further places that users' templates may be in; columns: the
    score columns that lists are held to."""

    recipe: ListRecipe
    spool: Spool
    imports: tuple[str, ...]
    columns: ScoreColumns | None = None

    @staticmethod
    def of(recipe: ListRecipe, directory: Path) -> BlockJob:
        """The job of extracting a split; its blocks go to ``directory``."""
        return BlockJob(recipe, Spool(str(directory)), tuple(sys.path) if recipe.features.user else ())

    def content(self) -> Content[Any]:
        """What the candidates of the lists are; a new one, with no symbols."""
        sys.path += [place for place in self.imports if place not in sys.path]
        return content_of(self.recipe, columns=self.columns)


class _Hold(logging.Filter):
    """Takes the warnings of a thread out of the log: every block may repeat the same ones."""

    def __init__(self) -> None:
        super().__init__()
        self._own = threading.local()

    @contextmanager
    def warnings(self) -> Iterator[list[tuple[int, str]]]:
        """The warnings, level and message, of this thread within the block."""
        self._own.kept = []
        try:
            yield self._own.kept
        finally:
            self._own.kept = None

    def filter(self, record: logging.LogRecord) -> bool:
        """See ``logging.Filter``."""
        kept: list[tuple[int, str]] | None = getattr(self._own, "kept", None)
        if kept is None or record.levelno < logging.WARNING:
            return True
        kept.append((record.levelno, record.getMessage()))
        return False


_held = _Hold()
logging.getLogger("rerank").addFilter(_held)


def cut(raws: Iterable[Beside], failure: list[RerankError]) -> Iterator[Block]:
    """The lists in blocks.

    A reading error ends them and is left in ``failure``: the lists before it may hold an earlier one.
    """
    number, lists, size = 0, list[Beside](), 0
    try:
        for raw in raws:
            nbest = raw.nbest
            if isinstance(nbest, TextList) and nbest.raw is not None:
                raw = raw._replace(nbest=replace(nbest, raw=None))  # needed only to write the list
            lists.append(raw)
            size += sum(map(len, getattr(nbest, "texts", ())))
            if len(lists) == BLOCK_LISTS or size >= BLOCK_BYTES:
                yield Block(number, lists)
                number, lists, size = number + 1, [], 0
    except RerankError as error:
        failure.append(error)
    if lists:
        yield Block(number, lists)


def extract_block(job: BlockJob, block: Block) -> Summary:
    """Parse the lists of a block, measure them, and leave their features in the spool, if they are not there yet.

    Raises
    ------
    DataError, RecipeError: see the readers, metrics and templates.
    """
    if (known := job.spool.noted(block.number)) is not None:
        return known
    with _held.warnings() as warnings:
        summary = _extract(job, block)._replace(warnings=warnings)
    job.spool.note(block.number, summary)
    return summary


def _extract(job: BlockJob, block: Block) -> Summary:
    content, hashed = job.content(), bool(job.recipe.features.hash_bits)
    count = SkipCount(job.recipe.data.on_bad_list)
    rows, counter, ids = RowBuilder(), FeatureCounter(), list[str]()
    collisions = CollisionCount(0)
    for raw in block.lists:
        pair = content.pair(raw, count)
        if pair is None:
            continue
        nbest = pair.nbest
        reference, stats = content.stats(nbest, pair.content, pair.gold)
        gain = content.metric.gain(stats, np.broadcast_to(reference, (len(nbest), reference.size)))
        features = content.features(nbest, pair.content)
        numbers = counter.add(features)
        if hashed:
            collisions.add(numbers, features.full)
        rows.add(features, numbers, nbest.base, gain, stats, reference)
        ids.append(nbest.id)
    counts, place = counter.finish()
    parts = [rows.rows(place), counts, Texts.of(content.symbols)]
    if hashed:
        order = np.argsort(place)
        parts.append(Shared(collisions.owner[order], collisions.shared[order]))
    job.spool.save(block.number, *parts)
    return Summary(ids, count, counter.seen, [])


class Timed(NamedTuple):
    """A result, the CPU seconds that it took, and the process that made it."""

    result: Any
    seconds: float
    process: int


def timed(function: Callable[[Any], Any], task: Any) -> Timed:
    """``function(task)``, timed."""
    start = time.thread_time()
    result = function(task)
    return Timed(result, time.thread_time() - start, os.getpid())


class Clock:
    """The CPU seconds of this process and of its workers."""

    def __init__(self) -> None:
        self._start, self._workers = time.process_time(), 0.0

    def take(self, timed: Timed) -> Any:
        """A result; its time is counted, except that of this process, which counts anyway."""
        if timed.process != os.getpid():
            self._workers += timed.seconds
        return timed.result

    @property
    def seconds(self) -> float:
        """CPU seconds so far."""
        return time.process_time() - self._start + self._workers
