"""The course of a recipe, whatever it is about: one run in a directory, stage by stage.

What is done in each stage a kind of recipe says by its ``Steps``; ``history.jsonl`` has a line where each starts and
ends.
"""

import json
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import numpy as np

from rerank import __version__
from rerank.base.errors import DataError, RecipeError, RunError
from rerank.base.interrupts import check as check_interrupt
from rerank.base.registry import imported
from rerank.base.usage import Usage
from rerank.kernels.sources import code_digest, user_digest
from rerank.metrics.base import Metric, TestName
from rerank.metrics.significance import compare
from rerank.pool import Engine
from rerank.readers.inputs import Inputs
from rerank.recipes.recipe import Single, TaskRecipe
from rerank.recipes.tasks import task_named
from rerank.runs.report.results import headline
from rerank.storage.arrays import DAMAGE
from rerank.storage.files import reason, write_text
from rerank.storage.outputs import RUNS, output_directory, output_file, remove_results
from rerank.storage.strict_json import as_json, read_object

if TYPE_CHECKING:
    from rerank.runs.report.html import PageSection

log = logging.getLogger("rerank")
CHOSEN = "chosen.yaml"  # the recipe that `rerank tune` leaves
# What is removed before a new run.
RESULTS = (RUNS, "metrics.json", "history.jsonl", "report.html", "predictions", CHOSEN)
R = TypeVar("R", bound=TaskRecipe)
Trained = TypeVar("Trained")
Metrics = dict[str, Any]

TAKEN = ("seconds", "cpu_seconds", "peak_memory_bytes")


def extract(recipe: TaskRecipe, directory: Path, engine: Engine | None = None) -> dict[str, Any]:
    """Read everything that a recipe is about, build and cache the corpora of lists; returns their counts."""
    with Inputs() as inputs:
        steps = check(recipe, inputs, directory, engine=engine)
        steps.extract()
        return steps.counts()


def run(
    recipe: TaskRecipe,
    directory: Path,
    *,
    resume: bool = False,
    tests: bool = True,
    engine: Engine | None = None,
) -> Metrics:
    """Carry out a recipe and leave its artefacts in ``directory``; returns the content of metrics.json.

    tests: evaluate the model on the test splits, and report; without, the model and the trained runs are left. resume:
    keep what an earlier call has finished. engine: whose workers extract, train and fit, this process by default.
    """
    start = time.monotonic()
    with Inputs() as inputs:
        steps = check(recipe, inputs, directory, tests, engine)
        path, last = directory / "metrics.json", "report" if tests else "model"
        with output_directory(
            directory, steps.recipe.as_yaml(), RESULTS + steps.results, resume=resume, inputs=steps.files
        ):
            try:
                done = read_object(path)
                finished = last in dict(done["stages"]) and "code" in done
            except DAMAGE:
                finished = False
            if not finished:
                work = Stages(directory / "history.jsonl")
                done = _stages(steps, work, start)
                done |= {"stages": work.summary(), "seconds": _since(start), "code": steps.code}
                write_text(path, as_json(done, indent=1) + "\n")
            elif done["code"] == steps.code:
                log.info("%s: already finished; run it without --resume to do it again", directory)
            else:
                message = "%s: already finished, by a program or a module of yours that has changed since; "
                log.warning(message + "run it without --resume to do it again", directory)
            if tests:
                remove_results(directory, [RUNS])
            return done


def fitted(recipe: TaskRecipe, directory: Path, engine: Engine) -> Any:
    """The model that a recipe makes, without its artefacts; what work leaves on the way is in ``directory``."""
    with Inputs() as inputs:
        steps = check(recipe, inputs, directory, tests=False, engine=engine)
        steps.extract()
        steps.train(Stages(None))
        steps.decode()
        return steps.model()


def check(
    recipe: TaskRecipe,
    inputs: Inputs,
    directory: Path = Path(),
    tests: bool = True,
    engine: Engine | None = None,
) -> "Steps[Any]":
    """The steps of a recipe, all of whose parts can be built and whose files are open in ``inputs``, before anything
    is read or written; raises what ``Steps.check`` does."""
    kind: type[Steps[Any]] = imported(task_named(recipe.task).steps)
    steps = kind(recipe, directory, tests, engine or Engine(), inputs)
    steps.check()
    return steps


def _stages(steps: "Steps[Any]", work: "Stages", start: float) -> Metrics:
    """Stage by stage; returns the content of metrics.json except for the stages, the time and the code."""
    recipe = steps.recipe
    for name in steps.predictions:
        output_file(steps.directory, "predictions", name)
    with work.stage("extract") as line:
        line |= steps.extract()
    with work.stage("train", runs=len(steps.singles)) as line:
        line |= steps.train(work)
    with work.stage("decode", kinds=len(recipe.decoders)):
        steps.decode()
    with work.stage("model"):
        model = steps.model()
        if model is not None:
            model.save(steps.directory / "model")
    with work.stage("evaluate", **steps.size):
        metrics = steps.evaluate()
    if (second := steps.second()) is not None:
        with work.stage("rerank"):
            steps.add_second(metrics, run(*second, engine=steps.engine))
    if steps.tests:
        with work.stage("predict", **steps.size):
            steps.predict()
        if recipe.training.curve:
            with work.stage("curve", shares=len(recipe.training.curve)):
                metrics["curve"] = steps.curve()
        with work.stage("report"):
            steps.report(metrics, _since(start))
    return metrics


def _since(start: float) -> float:
    return round(time.monotonic() - start, 3)


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

    def append(self, lines: Iterable[dict[str, Any]]) -> None:
        """Add lines to the file."""
        if self._path is None:
            return
        text = "".join(f"{as_json(line)}\n" for line in lines)
        try:
            with self._path.open("a", encoding="utf-8", newline="\n") as out:
                out.write(text)
        except OSError as error:
            raise RunError(f"cannot write {self._path}: {reason(error)}") from error

    @contextmanager
    def stage(self, name: str, **about: Any) -> Iterator[dict[str, Any]]:
        """A stage of the run; what is put into the mapping is added to its last line and to ``summary``."""
        check_interrupt()
        self._append({"stage": name, "event": "start", "time": _now(), **about})
        usage = Usage()
        try:
            with usage:
                yield about
        except BaseException:
            with suppress(RunError):  # the first error is the one to report
                self._append({"stage": name, "event": "stopped", "time": _now(), **usage.as_dict(), **about})
            raise
        self._append({"stage": name, "event": "end", "time": _now(), **usage.as_dict(), **about})
        check_interrupt()

    def _append(self, line: dict[str, Any]) -> None:
        self._lines.append(line)
        self.append([line])

    def summary(self) -> dict[str, dict[str, Any]]:
        """By stage: ``seconds`` and ``cpu_seconds`` of all attempts together, the highest ``peak_memory_bytes``."""
        stages = dict[str, dict[str, Any]]()
        for line in self._lines:
            if line["event"] != "start":
                before = stages.get(line["stage"], dict.fromkeys(TAKEN, 0))
                entry = {key: value for key, value in line.items() if key not in ("stage", "event", "time")}
                entry |= {key: round(entry[key] + before[key], 3) for key in ("seconds", "cpu_seconds")}
                entry["peak_memory_bytes"] = max(entry["peak_memory_bytes"], before["peak_memory_bytes"])
                stages[line["stage"]] = entry
        return stages


def stage_lines(history: Path) -> list[dict[str, Any]]:
    """The lines of stages in a history file, none if there is no file, without one that a killed run cut short."""
    try:
        text = history.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return []
    lines = []
    for line in text.split("\n"):
        with suppress(ValueError):
            entry = json.loads(line)
            named = isinstance(entry, dict) and all(isinstance(entry.get(key), str) for key in ("stage", "event"))
            if named and (entry["event"] == "start" or all(isinstance(entry.get(key), int | float) for key in TAKEN)):
                lines.append(entry)
    return lines


def _now() -> str:
    return datetime.now().astimezone().isoformat(timespec="milliseconds")


class Steps(ABC, Generic[R]):
    """What a kind of recipe does in the course that ``experiment.run`` owns; the methods stand in the order of stages.

    tests: whether test splits are read, and a report is written. ``check`` finds the others: singles, the single runs;
    files, all that are read; code, the digest of the code that results depend on, this program's and that of the user's
    own parts; size: how much is tested, for the history; predictions: files there that must not be anybody else's.
    """

    results: ClassVar[tuple[str, ...]] = ()  # what a new run starts without, in addition to what all recipes leave
    singles: Sequence[Single[Any]]
    files: list[str]
    code: str
    size: dict[str, int]
    predictions: list[str]

    def __init__(self, recipe: R, directory: Path, tests: bool, engine: Engine, inputs: Inputs) -> None:
        self.recipe, self.directory, self.tests, self.engine, self.inputs = recipe, directory, tests, engine, inputs

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
        """Make all single runs that are not kept, and put their epochs into the history; returns what was done."""

    def decode(self) -> None:
        """Tune how lists are decoded."""

    @abstractmethod
    def model(self) -> Any:
        """The model that is served and can be saved, if the recipe makes one."""

    @abstractmethod
    def evaluate(self) -> Metrics:
        """The content of metrics.json, except for what later stages add."""

    def second(self) -> tuple[TaskRecipe, Path] | None:
        """The recipe and the directory of another run that goes on from here, if there is one."""
        return None

    def add_second(self, found: Metrics, results: Metrics) -> None:
        """Add the results of the ``second`` run, its metrics.json."""

    @abstractmethod
    def predict(self) -> None:
        """Write what is predicted for the test splits; what needs their texts is added to the results meanwhile."""

    def curve(self) -> dict[str, Any]:
        """The entry ``curve`` of metrics.json: results by the amount of training data."""
        return {}

    @abstractmethod
    def sections(self, metrics: Metrics) -> "Sequence[PageSection]":
        """What the page shows of this kind."""

    def summary(self, metrics: Metrics) -> dict[str, Any] | None:
        """What it begins with, see ``page``."""
        return headline(metrics)

    def report(self, metrics: Metrics, seconds: float) -> None:
        """Write the page; seconds: of the whole run."""
        from rerank.runs.report.html import report  # with jinja, which only a page needs

        how: dict[str, Any] = {"recipe": self.recipe.as_yaml(), "about": self.recipe.about, "seconds": seconds}
        text = report(metrics, self.sections(metrics), summary=self.summary(metrics), **how)
        write_text(self.directory / "report.html", text)

    def measured(self, chosen: Metrics, runs: Sequence[Metrics], metric: Metric) -> Metrics:
        """The part of metrics.json that the results of runs, their entries, make."""
        keys = "training", "splits", "significance"
        return self.head(chosen["seed"], metric.signature) | {
            "measure": metric.primary, "chosen": {key: chosen[key] for key in ("name", "seed")}, "runs": list(runs),
            **{key: chosen[key] for key in keys},
        }  # fmt: skip

    def head(self, seed: int, metric: str) -> Metrics:
        """The beginning of metrics.json; metric: its signature."""
        task, name = self.recipe.task, self.recipe.name
        return {"schema": 1, "task": task, "name": name, "seed": seed, "version": __version__, "metric": metric}


def code_of(recipe: TaskRecipe, parts: tuple[str, ...]) -> str:
    """Digest of code: of those parts of this program, and of the user's own parts in a recipe."""
    return f"{code_digest(parts)[:32]} {user_digest(recipe.model_dump())[:32]}"


def learning_curve(
    recipe: TaskRecipe,
    metric: Metric,
    reference: np.ndarray,
    split: str,
    unit: str,
    whole: Trained,
    train: Callable[[float], Trained],
    look: Callable[[Trained], tuple[dict[str, Any], np.ndarray]],
) -> dict[str, Any]:
    """An entry ``curve`` of metrics.json: scores by share of the training data, their slope, a test of the last step.

    reference: the statistics that ``metric`` needs in addition to rows. split: the one of slope and test; the slope is
    the least-squares one over base-2 logarithms of sizes: what doubling them brings; the test compares with the largest
    smaller share. unit: what is trained on, the key of the sizes. whole: what was trained on the recipe's own share;
    train: from a smaller share to what is trained on it; look: its entry in ``points``, and the statistics of what it
    selects on the split (float64 [L, K]).
    """
    training, settings = recipe.training, recipe.significance
    shares = sorted({share for share in training.curve if share < training.share})
    by_share: dict[float, tuple[dict[str, Any], np.ndarray]] = {}
    for share in shares:
        try:
            trained = train(share)
        except (DataError, RecipeError) as error:
            log.warning("training.curve: a share of %g cannot be trained on, and is left out: %s", share, error)
        else:
            by_share[share] = look(trained)
    if not by_share:
        return {}
    by_share[training.share] = look(whole)
    points = [{"share": share, **entry} for share, (entry, _) in by_share.items()]
    sizes = np.log2([point[unit] for point in points])
    apart = sizes - sizes.mean()
    slope = float((apart * [point["splits"][split] for point in points]).sum() / (np.square(apart).sum() or 1.0))
    *_, part, full = (rows for _, rows in by_share.values())
    test: TestName = settings.test or "mcnemar"
    last = compare(metric, full, part, reference, test=test, samples=settings.samples, seed=recipe.seed)
    return {"split": split, "points": points, "slope": slope, "last": last.as_dict()}
