"""Iterative parameter mixing: sections of the lists are learned apart, by the workers of an engine, and combined.

McDonald, Hall & Mann 2010 (section 4.2): in every epoch all sections go on from the combined state, and are combined
again at its end. With ``every: once`` sections go on from their own states (section 4.1); what is looked at, and kept,
is the combined state all the same. The sections, the order in which they are combined and the seeds of their epochs
depend on the mixing alone, so the result has the same bits on every engine and with any number of workers.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from rerank.arrays import read_array
from rerank.checkpoints import Checkpoint
from rerank.corpus import Corpus
from rerank.engines.base import Engine, LocalEngine
from rerank.learn.base import Learner, State
from rerank.learn.combining import combine, family_of
from rerank.learn.pairs import PairSource, require_source
from rerank.learn.trainer import (
    ORACLE_PAIRS,
    Course,
    Evaluate,
    Training,
    copy_state,
    logger,
    part_order,
    visit,
)
from rerank.learn.workspace import EpochStats
from rerank.shards import Lists, Shards, part_count, section, write_shards

MAPPED = 1 << 20  # bytes from which a state's array is not read as a whole


@dataclass(frozen=True)
class Mixing:
    """shards: into how many sections the lists are divided; every: when they go on from the combined state; rule, keep:
    see ``combining``."""

    shards: int
    every: Literal["epoch", "once"] = "epoch"
    rule: str = "auto"
    keep: int | None = None


@dataclass(frozen=True)
class Section:
    """One epoch over one section: a task. Large things are there as paths, on a disk that all workers share.

    lists: the section; oracle: a file with the targets of all lists (int64), of which first..last - 1 are its own and
    ``candidates`` candidates come before it; state: the directory of the state to go on from, of the class ``kind``;
    workspace: where the new one goes.
    """

    learner: Learner
    lists: Lists
    oracle: str
    first: int
    last: int
    candidates: int
    kind: type[Any]
    state: str
    workspace: str
    seed: int
    epoch: int
    shuffle: bool
    any_ties: bool
    pairs: PairSource


class Learned(NamedTuple):
    """What came of a Section: the directory of its state, what happened, and how many nonzeros were seen."""

    state: str
    stats: list[EpochStats]
    nonzeros: int


def learn(task: Section) -> Learned:
    """Carry out a task."""
    targets = read_array(Path(task.oracle), np.int64, 1, mmap=True)[task.first : task.last]
    targets = np.where(targets >= 0, targets - task.candidates, -1)
    state = load_state(task.kind, Path(task.state))
    course = Course(Training(task.learner, {}, None, None, 0), state, None, task.epoch)
    for index in part_order(part_count(task.lists), task.seed, task.epoch, task.shuffle):
        visit(course, task.lists, targets, int(index), task.seed, task.shuffle, task.any_ties, task.pairs)
    # A task may be carried out twice, even at the same time: each has a place of its own.
    place = Path(tempfile.mkdtemp(prefix=f"{task.epoch}-{task.first}-", dir=task.workspace))
    save_state(place, course.state)
    return Learned(str(place), course.stats, course.nonzeros)


def save_state(directory: Path, state: State) -> None:
    """Write the arrays of a state."""
    directory.mkdir(exist_ok=True)
    for name, array in state._asdict().items():
        np.save(directory / f"{name}.npy", array, allow_pickle=False)


def load_state(kind: type[Any], directory: Path, *, mmap: bool = False) -> State:
    """Read what ``save_state`` wrote; ``mmap``: the arrays are to be read once, and only read."""
    arrays = {}
    for name in kind._fields:
        path = directory / f"{name}.npy"
        large = mmap and path.stat().st_size > MAPPED
        arrays[name] = read_array(path, mmap=large)
    return kind(**arrays)


def train_mixed(
    learner: Learner,
    lists: Lists,
    oracle: np.ndarray,
    *,
    mixing: Mixing,
    engine: Engine | None = None,
    workspace: Path | None = None,
    epochs: int,
    seed: int,
    shuffle: bool = True,
    any_ties: bool = False,
    pairs: PairSource = ORACLE_PAIRS,
    predictor: str = "average",
    patience: int | None = None,
    evaluate_train: Evaluate | None = None,
    evaluate_dev: Evaluate | None = None,
    warm: tuple[State, int] | None = None,
    on_epoch: Callable[[dict[str, Any]], None] | None = None,
    checkpoint: Checkpoint | None = None,
) -> Training:
    """``train`` by mixing: see there. A single section is trained exactly as without mixing. No updates are logged.

    engine: whose workers learn, this process by default; workspace: a directory for what travels, on a disk that all
    workers share; it is emptied.

    Raises
    ------
    RecipeError: states of the learner cannot be combined so, or it cannot learn from such pairs.
    RunError: workers die again and again, or something cannot be written.
    """
    require_source(learner, pairs)
    family_of(learner, mixing.rule, mixing.keep)
    if warm is not None:
        state, done = copy_state(warm[0]), warm[1]
    else:
        state, done = learner.init(lists.width, lists.candidate_count), 0
    course = Course(Training(learner, {}, None, None, 0), state, None, done)
    with _emptied(workspace) as place:
        task = Section(learner, lists, "", 0, 0, 0, type(state), "", str(place), seed, done, shuffle, any_ties, pairs)
        tasks = _sections(task, oracle, mixing.shards, engine)
        mixed = _Mixed(course, mixing, tasks, place, engine or LocalEngine(), lists.free, warm is None)
        if checkpoint is not None and (stored := checkpoint.load()) is not None:
            mixed.restore(*stored)
            logger.info("going on after epoch %d", course.epoch)
        while course.epoch < done + epochs and not course.stopped(patience):
            mixed.epoch()
            line, weights = course.finish_epoch(predictor)
            if evaluate_train is not None:
                line["train"] = evaluate_train(weights[predictor])
            if evaluate_dev is not None:
                line["dev"] = evaluate_dev(weights[predictor])
            course.judge(line, weights)
            if on_epoch is not None:
                on_epoch(line)
            if checkpoint is not None and checkpoint.due():
                checkpoint.save(*mixed.saved())
    return course.training


@dataclass
class _Mixed:
    """A training by mixing: ``course`` holds the combined state, ``own`` those of the sections between the epochs."""

    course: Course
    mixing: Mixing
    tasks: list[Section]
    place: Path
    engine: Engine
    free: int
    fresh: bool

    def __post_init__(self) -> None:
        self.begun: State | None = None if self.fresh else copy_state(self.course.state)
        self.own: list[str] = []

    def epoch(self) -> None:
        """Let all sections learn, and combine what they have learned."""
        course, start = self.course, time.perf_counter()
        common = self.place / f"start-{course.epoch}"
        if not self.own:
            save_state(common, course.state)
        states = self.own or [str(common)] * len(self.tasks)
        tasks = [replace(task, state=at, epoch=course.epoch) for task, at in zip(self.tasks, states, strict=True)]
        learned = list(self.engine.map(learn, tasks))
        ends = [load_state(task.kind, Path(each.state), mmap=True) for task, each in zip(tasks, learned, strict=True)]
        course.state = copy_state(
            combine(
                course.learner, ends, start=self.begun, rule=self.mixing.rule, free=self.free, keep=self.mixing.keep
            )
        )
        del ends
        for path in {*states, *(() if self.mixing.every == "once" else (each.state for each in learned))}:
            shutil.rmtree(path, ignore_errors=True)
        if self.mixing.every == "once":
            self.own = [each.state for each in learned]
        else:
            self.begun = course.state
        course.stats = [stats for each in learned for stats in each.stats]
        course.nonzeros = sum(each.nonzeros for each in learned)
        course.seconds = time.perf_counter() - start

    def saved(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """See ``Course.saved``; with the sections' own states."""
        header, arrays = self.course.saved()
        for number, path in enumerate(self.own):
            state = load_state(self.tasks[0].kind, Path(path))
            arrays |= {f"own{number}_{name}": array for name, array in state._asdict().items()}
        return header, arrays

    def restore(self, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """The inverse of ``saved``."""
        self.course.restore(header, arrays)
        if self.mixing.every == "epoch":
            self.begun = self.course.state
            return
        kind = self.tasks[0].kind
        for number in range(len(self.tasks)):
            place = self.place / f"own-{number}"
            save_state(place, kind(**{name: arrays[f"own{number}_{name}"] for name in kind._fields}))
            self.own.append(str(place))


@contextmanager
def _emptied(workspace: Path | None) -> Iterator[Path]:
    """An empty directory, removed at the end: ``workspace``, or one of this machine."""
    if workspace is None:
        with tempfile.TemporaryDirectory(prefix="rerank-mixing-") as directory:
            yield Path(directory)
        return
    shutil.rmtree(workspace, ignore_errors=True)
    workspace.mkdir(parents=True)
    try:
        yield workspace.absolute()
    finally:
        shutil.rmtree(workspace, ignore_errors=True)


def _sections(task: Section, oracle: np.ndarray, count: int, engine: Engine | None) -> list[Section]:
    """``task``, which is about all lists, for each of ``count`` contiguous sections of them.

    Their numbers of lists differ by one at most; there is no section without lists.
    """
    lists, place = task.lists, Path(task.workspace)
    if isinstance(lists, Corpus) and engine is not None and not isinstance(engine, LocalEngine):
        (place / "lists").mkdir()
        write_shards(place / "lists", [lists], lists.about)
        lists = Shards.load(place / "lists")
    path = place / "oracle.npy"
    np.save(path, np.asarray(oracle, np.int64), allow_pickle=False)
    count = max(1, min(count, lists.list_count))
    bounds = [lists.list_count * number // count for number in range(count + 1)]
    tasks, candidates = [], 0
    for number, (first, last) in enumerate(pairwise(bounds)):
        own = section(lists, first, last)
        # Sections of one size would have the same order otherwise.
        seed = task.seed if count == 1 else int(np.random.SeedSequence([task.seed, number]).generate_state(1)[0])
        one = replace(task, lists=own, oracle=str(path), seed=seed)
        tasks.append(replace(one, first=first, last=last, candidates=candidates))
        candidates += own.candidate_count
    return tasks
