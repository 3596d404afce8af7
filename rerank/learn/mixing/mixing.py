"""Iterative parameter mixing: the workers of an engine learn sections of the lists separately, which are combined.

McDonald, Hall & Mann 2010 (section 4.2): in every epoch all sections continue from the combined state, and are combined
again at its end. With ``every: once`` sections continue from their own states (section 4.1); what is evaluated, and
kept, is still the combined state. The sections, the order in which they are combined and the seeds of their epochs
depend on the mixing alone, so the result has the same bits on every engine and with any number of workers.
"""

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

from rerank.base.interrupts import Interrupted, check, deferred, requested
from rerank.data.corpus import Corpus
from rerank.data.shards import Lists, Shards, part_count, section, write_shards
from rerank.engines.base import Engine, LocalEngine
from rerank.learn.base import Learner, State, Weights
from rerank.learn.mixing.combining import combine, rule_of
from rerank.learn.mixing.differences import (
    Change,
    applied,
    load_change,
    narrowed,
    narrowed_change,
    save_change,
    touched,
    widened,
)
from rerank.learn.pairs import PairSource, require_source
from rerank.learn.predictor import copy_state
from rerank.learn.trainer import (
    ORACLE_PAIRS,
    Evaluate,
    EvaluationHooks,
    Training,
    TrainingState,
    Weigh,
    logger,
    part_order,
    visit,
)
from rerank.learn.workspace import EpochStats
from rerank.storage.arrays import read_array
from rerank.storage.files import scratch_directory
from rerank.storage.results import KeptResult


@dataclass(frozen=True)
class Mixing:
    """shards: into how many sections the lists are divided; every: when they continue from the combined state; rule,
    keep: see ``combining``."""

    shards: int
    every: Literal["epoch", "once"] = "epoch"
    rule: str = "auto"
    keep: int | None = None


@dataclass(frozen=True)
class SectionEpoch:
    """One epoch over one section: a task. Large things are given as paths, on a disk that all workers share.

    lists: the section; oracle: a file with the targets of all lists (int64), of which first..last - 1 are its own and
    ``candidates`` candidates come before it; start: the directory of the common state, of the class ``kind``; own:
    that of what this section has changed in it before, if it continues from its own; workspace: where the new one goes.
    """

    learner: Learner
    lists: Lists
    oracle: str
    first: int
    last: int
    candidates: int
    kind: type[Any]
    start: str
    own: str | None
    workspace: str
    seed: int
    epoch: int
    shuffle: bool
    any_ties: bool
    pairs: PairSource


class Learned(NamedTuple):
    """The result of a Section: the directory with what it has changed, what happened, how many nonzeros were seen."""

    change: str
    stats: list[EpochStats]
    nonzeros: int


def learn(task: SectionEpoch) -> Learned:
    """Carry out a task."""
    targets = read_array(Path(task.oracle), np.int64, 1, mmap=True)[task.first : task.last]
    targets = np.where(targets >= 0, targets - task.candidates, -1)
    start = load_state(task.kind, Path(task.start))
    state = applied(start, {} if task.own is None else load_change(task.kind, Path(task.own)))
    progress = TrainingState(Training(task.learner, {}, None, None, 0), state, None, task.epoch)
    for index in part_order(part_count(task.lists), task.seed, task.epoch, task.shuffle):
        visit(progress, task.lists, targets, int(index), task.seed, task.shuffle, task.any_ties, task.pairs)
    # A task may be carried out twice, even at the same time: each time has a place of its own.
    place = Path(tempfile.mkdtemp(prefix=f"{task.epoch}-{task.first}-", dir=task.workspace))
    save_change(place, start, progress.state)
    return Learned(str(place), progress.stats, progress.nonzeros)


def save_state(directory: Path, state: State) -> None:
    """Write the arrays of a state."""
    directory.mkdir(exist_ok=True)
    for name, array in state._asdict().items():
        np.save(directory / f"{name}.npy", array, allow_pickle=False)


def load_state(kind: type[Any], directory: Path) -> State:
    """Read what ``save_state`` wrote."""
    return State(**{name: read_array(directory / f"{name}.npy") for name in kind._fields})


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
    weigh: Weigh | None = None,
    warm: tuple[State, int] | None = None,
    on_epoch: Callable[[dict[str, Any], Weights], None] | None = None,
    checkpoint: KeptResult | None = None,
) -> Training:
    """``train`` by mixing; see there. A single section is trained exactly as without mixing. No updates are logged.

    engine: whose workers learn, this process by default; workspace: what travels is put next to this path, which is on
    a disk that all workers share.
    """
    require_source(learner, pairs)
    rule_of(learner, mixing.rule, mixing.keep)
    progress = TrainingState.begin(learner, lists, warm)
    done, hooks = progress.epoch, EvaluationHooks(predictor, evaluate_train, evaluate_dev, weigh, on_epoch)
    with _scratch(workspace) as place:
        kind = type(progress.state)
        task = SectionEpoch(
            learner, lists, "", 0, 0, 0, kind, "", None, str(place), seed, done, shuffle, any_ties, pairs
        )
        tasks = _sections(task, oracle, mixing.shards, engine)
        mixed = _Mixed(progress, mixing, tasks, place, engine or LocalEngine(), lists.free, warm is None)
        if checkpoint is not None and (stored := checkpoint.load()) is not None:
            mixed.restore(*stored)
            logger.info("continuing after epoch %d", progress.epoch)
        while progress.epoch < done + epochs and not progress.stopped(patience):
            check()
            try:
                learned = mixed.learned()
            except Interrupted:
                if checkpoint is not None:
                    checkpoint.save(*mixed.saved())
                raise
            with deferred():
                mixed.combine(learned)
                progress.finish_epoch(hooks)
                if checkpoint is not None and (checkpoint.due() or requested()):
                    checkpoint.save(*mixed.saved())
    return progress.training


@dataclass
class _Mixed:
    """A training by mixing: ``progress`` holds the combined state.

    begun: the state that all continue from; it is a ``fresh`` one as long as nothing was learned. own: the directories
    of what every section has changed in it, where they continue from their own.
    """

    progress: TrainingState
    mixing: Mixing
    tasks: list[SectionEpoch]
    place: Path
    engine: Engine
    free: int
    fresh: bool

    def __post_init__(self) -> None:
        self.begun = copy_state(self.progress.state)
        self.own: list[str] = []

    def learned(self) -> list[Learned]:
        """Let all sections learn for an epoch; nothing is changed here."""
        progress, started = self.progress, time.perf_counter()
        start = self.place / f"start-{progress.epoch}"
        save_state(start, self.begun)
        before: list[str] | list[None] = self.own or [None] * len(self.tasks)
        tasks = [
            replace(task, start=str(start), own=changed, epoch=progress.epoch)
            for task, changed in zip(self.tasks, before, strict=True)
        ]
        learned = list(self.engine.map(learn, tasks))
        shutil.rmtree(start, ignore_errors=True)
        progress.seconds = time.perf_counter() - started
        return learned

    def combine(self, learned: list[Learned]) -> None:
        """Take in what the sections have learned in an epoch."""
        progress, started = self.progress, time.perf_counter()
        changes = [load_change(type(self.begun), Path(result.change)) for result in learned]
        progress.state = self.combined(changes)
        done, self.own = self.own, [result.change for result in learned]
        if self.mixing.every == "epoch":
            self.begun, self.fresh = progress.state, False
            done, self.own = self.own, []
        for path in done:
            shutil.rmtree(path, ignore_errors=True)
        progress.stats = [stats for result in learned for stats in result.stats]
        progress.nonzeros = sum(result.nonzeros for result in learned)
        progress.seconds += time.perf_counter() - started

    def combined(self, changes: list[Change]) -> State:
        """One state from those of the sections; where possible, only columns that one has touched are combined."""
        learner, mixing, start = self.progress.learner, self.mixing, self.begun
        columns = learner.last(start).w.size
        local = learner.local and mixing.keep is None and not start.matrix.size
        chosen = touched(changes, columns) if local else np.zeros(0, np.int64)
        if chosen.size == 0:
            ends = [applied(start, change) for change in changes]
            common = None if self.fresh else start
            return combine(learner, ends, start=common, rule=mixing.rule, free=self.free, keep=mixing.keep)
        small = narrowed(start, chosen, columns)
        ends = [applied(small, narrowed_change(change, chosen, columns)) for change in changes]
        common, free = None if self.fresh else small, int(np.searchsorted(chosen, self.free))
        return widened(start, combine(learner, ends, start=common, rule=mixing.rule, free=free), chosen, columns)

    def saved(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Those of the training; with the states that the sections continue from, where these are their own."""
        header, arrays = self.progress.saved()
        if self.own:
            arrays |= {f"begun_{name}": np.asarray(array) for name, array in self.begun._asdict().items()}
        for number, path in enumerate(self.own):
            state = applied(self.begun, load_change(type(self.begun), Path(path)))
            arrays |= {f"own{number}_{name}": array for name, array in state._asdict().items()}
        return header, arrays

    def restore(self, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """The inverse of ``saved``."""
        self.progress.restore(header, arrays)
        kind = type(self.begun)
        if self.mixing.every == "epoch":
            self.begun, self.fresh = copy_state(self.progress.state), False
            return
        self.begun = kind(**{name: arrays[f"begun_{name}"] for name in kind._fields})
        for number in range(len(self.tasks)):
            place = self.place / f"own-{number}"
            place.mkdir()
            save_change(place, self.begun, kind(**{name: arrays[f"own{number}_{name}"] for name in kind._fields}))
            self.own.append(str(place))


@contextmanager
def _scratch(beside: Path | None) -> Iterator[Path]:
    """A directory for the time of the block: next to ``beside``, or a temporary one of this machine."""
    if beside is not None:
        with scratch_directory(beside.absolute()) as place:
            yield place
        return
    with tempfile.TemporaryDirectory(prefix="rerank-mixing-") as directory:
        yield Path(directory)


def divided(lists: int, count: int, seed: int) -> list[tuple[int, int, int]]:
    """(first, last + 1, seed) of ``count`` contiguous sections, or of one per list where there are fewer lists.

    Their numbers of lists differ by one at most. A single section has the seed itself; several have seeds of their own,
    since sections of equal size would otherwise have the same order.
    """
    count = max(1, min(count, lists))
    bounds = [lists * number // count for number in range(count + 1)]
    seeds = (
        [seed]
        if count == 1
        else [np.random.SeedSequence([seed, number]).generate_state(1)[0] for number in range(count)]
    )
    return [(first, last, int(part_seed)) for (first, last), part_seed in zip(pairwise(bounds), seeds, strict=True)]


def _sections(task: SectionEpoch, oracle: np.ndarray, count: int, engine: Engine | None) -> list[SectionEpoch]:
    """``task``, which is about all lists, for each of ``count`` sections of them."""
    lists, place = task.lists, Path(task.workspace)
    if isinstance(lists, Corpus) and engine is not None and not isinstance(engine, LocalEngine):
        (place / "lists").mkdir()
        write_shards(place / "lists", [lists], lists.about)
        lists = Shards.load(place / "lists")
    path = place / "oracle.npy"
    np.save(path, np.asarray(oracle, np.int64), allow_pickle=False)
    tasks, candidates = [], 0
    for first, last, seed in divided(lists.list_count, count, task.seed):
        part = section(lists, first, last)
        one = replace(task, lists=part, oracle=str(path), seed=seed)
        tasks.append(replace(one, first=first, last=last, candidates=candidates))
        candidates += part.candidate_count
    return tasks
