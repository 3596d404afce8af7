"""One experiment, whatever it is about: its stages in order, what of them is kept, the history, and the page.

A ``Kind`` says what is done in each stage. Without a directory for the results nothing is kept and nothing written, as
in ``rerank.fit``. ``history.jsonl`` has a line where each stage starts and ends.

A first run would wait for each kernel as it is first called. So another process, on a processor that has nothing to do,
goes through the recipe over a few lists in plain Python, which shows what each kernel is called with, and compiles them
from the last one on. Whoever comes to a kernel first compiles it, and the other finds it on disk.
"""

import json
import logging
import os
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar

import numpy as np

from rerank import __version__
from rerank.base.errors import RunError
from rerank.base.interrupts import check as check_interrupt
from rerank.base.progress import Compilation
from rerank.base.registry import import_object
from rerank.kernels.compile import Kernel, Rehearsal, thread_count
from rerank.kernels.sources import PACKAGE, code_digest, user_digest, user_files
from rerank.metrics.metric import Metric
from rerank.pool import Engine, Processes, Usage
from rerank.recipes.loading import task_named
from rerank.recipes.recipe import ListRecipe, Single, TaskRecipe
from rerank.runs.report.results import headline
from rerank.storage.documents import as_json, read_object
from rerank.storage.files import DAMAGE, reason, write_text
from rerank.storage.outputs import RUNS, Work, key_of, output_directory, output_file, remove_results
from rerank.storage.streams import Inputs

if TYPE_CHECKING:
    from rerank.runs.report.page import PageSection

log = logging.getLogger("rerank")
CHOSEN_RECIPE = "chosen.yaml"  # the recipe that `rerank tune` leaves
# What is removed before a new run.
RESULTS = (RUNS, "metrics.json", "history.jsonl", "report.html", "predictions", CHOSEN_RECIPE)
R = TypeVar("R", bound=TaskRecipe)
Metrics = dict[str, Any]
Content = tuple[dict[str, Any], dict[str, np.ndarray]]  # of a file: a header (JSON), and arrays
Until = Literal["extract", "train", "test"]

COSTS = "seconds", "cpu_seconds", "peak_memory_bytes"  # by a stage
LISTS_PER_SPLIT = 4  # that the other process goes through


def experiment(
    recipe: TaskRecipe,
    source: Inputs,
    directory: Path | None,
    *,
    until: Until = "test",
    resume: bool = False,
    engine: Engine | None = None,
    callback: Any = None,
) -> "Kind[Any]":
    """Carry out a recipe over the files, or the lists in memory, of ``source``, and leave artefacts in ``directory``.

    until: "extract", the corpora alone; "train", a model; "test", results on the test splits and a page. resume: keep
    what an earlier call has finished. engine: whose workers extract and fit, this process by default. callback: told
    of every epoch. Returns the kind with ``metrics``, the content of metrics.json, and ``model``, which is served.
    """
    start, tests = time.monotonic(), until != "train"
    with source:
        kind = check(recipe, source, directory, tests, engine)
        kind.callback = callback
        if until == "extract":
            kind.extract()
        elif directory is None:
            _stages(kind, Stages(None), start)
        else:
            results = RESULTS + kind.results
            with output_directory(directory, kind.recipe.as_yaml(), results, resume=resume, inputs=kind.files):
                if not _load_results(kind, directory):
                    work = Stages(directory / "history.jsonl")
                    _stages(kind, work, start)
                    kind.metrics |= {
                        "stages": work.summary(),
                        "seconds": round(time.monotonic() - start, 3),
                        "code": kind.code,
                    }
                    write_text(directory / "metrics.json", as_json(kind.metrics, indent=1) + "\n")
                if tests:
                    remove_results(directory, [RUNS])
    return kind


def _load_results(kind: "Kind[Any]", directory: Path) -> bool:
    """Load the results into ``kind`` and return True if they are there up to the last stage."""
    with suppress(*DAMAGE):
        metrics = read_object(directory / "metrics.json")
        if ("report" if kind.tests else "model") in dict(metrics["stages"]):
            mtime = os.path.getmtime(directory / "metrics.json")
            newer = [path for path in kind.files if os.path.isfile(path) and os.path.getmtime(path) > mtime]
            but = f", but {newer[0]} is newer" if newer else ""
            if metrics["code"] != kind.code:
                but = ", by a program or a module of yours that has changed since"
            message = "%s: already finished%s; run it without --resume to do it again"
            log.log(logging.WARNING if but else logging.INFO, message, directory, but)
            kind.metrics = metrics
            return True
    return False


def run(
    recipe: TaskRecipe, directory: Path, *, resume: bool = False, tests: bool = True, engine: Engine | None = None
) -> Metrics:
    """Carry out a recipe over files; returns the content of metrics.json."""
    until: Until = "test" if tests else "train"
    return experiment(recipe, Inputs(), directory, until=until, resume=resume, engine=engine).metrics


def check(
    recipe: TaskRecipe, source: Inputs, directory: Path | None = None, tests: bool = True, engine: Engine | None = None
) -> "Kind[Any]":
    """The kind of a recipe, all of whose parts can be built and whose files are open in ``source``, before anything is
    read or written; raises what ``Kind.check`` does."""
    kind: Kind[Any] = import_object(task_named(recipe.task).kind)(recipe, directory, tests, engine or Engine(), source)
    kind.check()
    return kind


def _stages(kind: "Kind[Any]", work: "Stages", start: float) -> None:
    """Stage by stage; leaves the content of metrics.json except for the stages, the time and the code."""
    output, recipe = kind.output, kind.recipe
    for name in kind.predictions if output else ():
        output_file(kind.directory, "predictions", name)
    with work.stage("extract") as line:
        line |= kind.extract()
    with work.stage("train", runs=len(kind.singles)) as line:
        line |= kind.train(work)
    with work.stage("decode", kinds=len(recipe.decoders)):
        kind.decode()
    with work.stage("model"):
        kind.model = kind.make_model()
        if kind.model is not None and output is not None:
            kind.model.save(output / "model")
    with work.stage("evaluate", **kind.size):
        metrics = kind.metrics = kind.evaluate()
    if kind.tests:
        with work.stage("predict", **kind.size):
            kind.predict()
        with work.stage("report"):
            kind.report(metrics, round(time.monotonic() - start, 3))


class Stages:
    """The history file of a run while it is written, line by line; None: it is not.

    Lines of stages have the keys ``stage``, ``event`` ("start", "end", or "stopped" by an error or interrupt), ``time``
    and what ``stage`` was given. All others are lines of epochs. Lines of stages that are already in the file, from the
    run that is resumed, stay; those of epochs are written again, from what is kept of the trained runs.

    Raises
    ------
    RunError: the file cannot be written.
    """

    def __init__(self, history: Path | None) -> None:
        self._path, self._lines = history, list[dict[str, Any]]()
        if history is not None:
            self._lines = stage_lines(history)
            write_text(history, "".join(f"{as_json(line)}\n" for line in self._lines))

    def append(self, lines: Iterable[Mapping[str, Any]]) -> None:
        """Add lines to the file."""
        if self._path is None:
            return
        try:
            with self._path.open("a", encoding="utf-8", newline="\n") as out:
                out.write("".join(f"{as_json(line)}\n" for line in lines))
        except OSError as error:
            raise RunError(f"cannot write {self._path}: {reason(error)}") from error

    @contextmanager
    def stage(self, name: str, **about: Any) -> Iterator[dict[str, Any]]:
        """A stage of the run; what is put into the mapping is added to its last line and to ``summary``."""
        check_interrupt()
        self._event(name, "start", about)
        usage = Usage()
        try:
            with usage:
                yield about
        except BaseException:
            with suppress(RunError):  # the first error is the one to report
                self._event(name, "stopped", usage.as_dict() | about)
            raise
        self._event(name, "end", usage.as_dict() | about)
        check_interrupt()

    def _event(self, stage: str, event: str, about: Mapping[str, Any]) -> None:
        now = datetime.now().astimezone().isoformat(timespec="milliseconds")
        self._lines.append({"stage": stage, "event": event, "time": now, **about})
        self.append(self._lines[-1:])

    def summary(self) -> dict[str, dict[str, Any]]:
        """The cost by stage: ``seconds`` and ``cpu_seconds`` of all attempts, the highest ``peak_memory_bytes``."""
        stages = dict[str, dict[str, Any]]()
        for line in (line for line in self._lines if line["event"] != "start"):
            before, now = stages.get(line["stage"], dict.fromkeys(COSTS, 0)), {key: line[key] for key in COSTS}
            cost = {key: round(now[key] + before[key], 3) for key in ("seconds", "cpu_seconds")}
            cost["peak_memory_bytes"] = max(now["peak_memory_bytes"], before["peak_memory_bytes"])
            about = {key: value for key, value in line.items() if key not in ("stage", "event", "time")}
            stages[line["stage"]] = about | cost
        return stages


def stage_lines(history: Path) -> list[dict[str, Any]]:
    """The lines of stages in a history file, none if there is no file, without one that a killed run cut short."""
    lines, text = list[dict[str, Any]](), ""
    with suppress(FileNotFoundError):
        text = history.read_text(encoding="utf-8", errors="replace")
    for line in text.split("\n"):
        with suppress(ValueError, KeyError, TypeError):
            entry = json.loads(line)
            if entry["stage"] and (entry["event"] == "start" or all(entry[key] >= 0 for key in COSTS)):
                lines.append(entry)
    return lines


class Kind(ABC, Generic[R]):
    """The subject of an experiment: a method for each of the stages that ``experiment`` owns, in their order.

    output: the directory of the results, None for none; tests: whether test splits are read, and a report is written;
    source: files, or lists in memory. ``check`` finds the others: singles, the single runs; files, all that are read;
    code, the digest of the code that results depend on, this program's and that of the user's own parts; size: how much
    is tested, for the history; predictions: files there that must not be anybody else's. ``experiment`` adds metrics,
    the content of metrics.json, and model, which is served.
    """

    results: ClassVar[tuple[str, ...]] = ()  # what a new run starts without, in addition to what all recipes leave
    singles: Sequence[Single[Any]]
    files: list[str]
    code: str
    size: dict[str, int]
    predictions: list[str]
    metrics: Metrics
    model: Any
    callback: Any = None

    def __init__(self, recipe: R, output: Path | None, tests: bool, engine: Engine, source: Inputs) -> None:
        self.recipe, self.output, self.tests, self.engine, self.inputs = recipe, output, tests, engine, source

    @property
    def directory(self) -> Path:
        """The directory of the results, which must be there."""
        assert self.output is not None
        return self.output

    def once(self, files: Iterable[str], settings: Any, make: Callable[[], Content]) -> Content:
        """What ``make`` gives, unless it is kept of an earlier call with these ``files`` and ``settings``."""
        key = key_of(self.code, [self.inputs.digest(path) for path in files], settings)
        work = Work(output_file(self.directory, RUNS, f"{key}.npz"), key)
        if (content := work.load()) is None:
            work.save(*(content := make()))
        return content

    @abstractmethod
    def check(self) -> None:
        """Build every part that the recipe names and open its files, before anything is read or written."""

    @abstractmethod
    def extract(self) -> dict[str, int]:
        """Read what the work begins with; returns its size."""

    @abstractmethod
    def counts(self) -> dict[str, Any]:
        """The entry of metrics.json on everything that is read."""

    @abstractmethod
    def train(self, work: Stages) -> dict[str, int]:
        """Fit all single runs, and put their epochs into the history; returns what was done."""

    def decode(self) -> None:
        """Choose among the runs, and tune how lists are decoded."""

    @abstractmethod
    def make_model(self) -> Any:
        """The model that is served and can be saved, if the recipe makes one."""

    @abstractmethod
    def evaluate(self) -> Metrics:
        """The content of metrics.json, except for what later stages add."""

    @abstractmethod
    def predict(self) -> None:
        """Write what is predicted for the test splits; what needs their texts is added to the results meanwhile."""

    @abstractmethod
    def sections(self, metrics: Metrics) -> "Sequence[PageSection]":
        """The sections of the page."""

    def summary(self, metrics: Metrics) -> dict[str, Any] | None:
        """The beginning of the page, see ``report``."""
        return headline(metrics)

    def report(self, metrics: Metrics, seconds: float) -> None:
        """Write the page; seconds: of the whole run."""
        from rerank.runs.report.page import report  # with jinja, which only a page needs

        how: dict[str, Any] = {"recipe": self.recipe.as_yaml(), "about": self.recipe.about, "seconds": seconds}
        text = report(metrics, self.sections(metrics), summary=self.summary(metrics), **how)
        write_text(self.directory / "report.html", text)

    def run_results(self, winner: Metrics, runs: Sequence[Metrics], metric: Metric) -> Metrics:
        """The part of metrics.json that the results of runs, their entries, make."""
        name = {key: winner[key] for key in ("name", "seed")}
        entries = {key: winner[key] for key in ("training", "splits", "significance")}
        about = {"measure": metric.primary, "chosen": name, "runs": list(runs)}
        return self.head(winner["seed"], metric.signature) | about | entries

    def head(self, seed: int, metric: str) -> Metrics:
        """The beginning of metrics.json; metric: its signature."""
        task, name = self.recipe.task, self.recipe.name
        return {"schema": 1, "task": task, "name": name, "seed": seed, "version": __version__, "metric": metric}


def code_of(recipe: TaskRecipe, parts: tuple[str, ...]) -> str:
    """Digest of code: of those parts of this program, and of the user's own parts in a recipe."""
    return f"{code_digest(parts)[:32]} {user_digest(recipe.model_dump())[:32]}"


@contextmanager
def background_compilation(recipe: TaskRecipe, until: Until) -> Iterator[None]:
    """Compile the kernels that a recipe needs, within the block, in another process too, from the first that is not on
    disk: not with one processor, where lists come from a pipe or a URL, or where a part of the recipe is a user's,
    which may do more than compute."""
    worker = Processes(1)
    with ExitStack() as stack:

        def begin() -> None:
            with suppress(Exception):  # no room for files, or no means for processes: the run compiles alone
                if not isinstance(recipe, ListRecipe) or thread_count() < 2:
                    return
                kinds = [paths for split in recipe.splits for paths in recipe.data.files(split).values()]
                parts = user_files(recipe.model_dump()).values()
                if all(map(os.path.isfile, chain(*kinds))) and all(path.is_relative_to(PACKAGE) for path in parts):
                    directory = stack.enter_context(TemporaryDirectory(prefix="rerank-", ignore_cleanup_errors=True))
                    worker.submit(rehearse, recipe, until, Path(directory, "few"))

        Compilation.at_first = begin
        try:
            yield
        finally:
            Compilation.at_first = None
            worker.shutdown(kill_workers=True)


def rehearse(recipe: ListRecipe, until: Until, directory: Path) -> None:
    """Carry out a recipe over a few lists in plain Python, and compile the kernels that it calls."""
    logging.disable()
    warnings.simplefilter("ignore")  # of overflows, as in kernels; threads would not have numpy's own setting
    Kernel.rehearsal = rehearsal = Rehearsal()
    with suppress(Exception):  # of so few lists nothing may be learned
        small = recipe.change({"features.min_lists": 1, "training.epochs": 1})
        experiment(small, Inputs(few=LISTS_PER_SPLIT), directory, until=until)
    rehearsal.compile()
