"""The stages of a run: what is done in each, and a line of ``history.jsonl`` where it starts and ends.

``pipeline.run`` asks for the ``Steps``; lists and labelled examples answer.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from rerank import __version__
from rerank.base.errors import RunError
from rerank.base.interrupts import check
from rerank.base.usage import Usage
from rerank.kernels.sources import code_digest, user_digest
from rerank.pool import Engine
from rerank.readers.inputs import Inputs
from rerank.recipes.recipe import Single, TaskRecipe
from rerank.storage.files import reason, write_text
from rerank.storage.strict_json import as_json

R = TypeVar("R", bound=TaskRecipe)
Metrics = dict[str, Any]

TAKEN = ("seconds", "cpu_seconds", "peak_memory_bytes")


class Saves(Protocol):
    """A model."""

    def save(self, directory: Path | str) -> None:
        """Write it; it appears under its name only when complete."""


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
        check()
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
        check()

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


def epoch_lines(history: Path) -> list[dict[str, Any]]:
    """The lines of epochs in a complete history file."""
    lines = [json.loads(line) for line in history.read_text(encoding="utf-8").splitlines()]
    return [line for line in lines if "stage" not in line]


def _now() -> str:
    return datetime.now().astimezone().isoformat(timespec="milliseconds")


class Steps(ABC, Generic[R]):
    """What a kind of recipe does in the course that ``pipeline.run`` owns; the methods stand in the order of stages.

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
    def model(self) -> Saves | None:
        """The model that is served, if the recipe makes one."""

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
        """Write what is predicted for the test splits."""

    def curve(self) -> dict[str, Any]:
        """The entry ``curve`` of metrics.json: results by the amount of training data."""
        return {}

    @abstractmethod
    def report(self, metrics: Metrics, seconds: float) -> None:
        """Write the page and the figures, which ``metrics`` then has as numbers; seconds: of the whole run."""

    def head(self, seed: int, metric: str) -> Metrics:
        """The beginning of metrics.json; metric: its signature."""
        task, name = self.recipe.task, self.recipe.name
        return {"schema": 1, "task": task, "name": name, "seed": seed, "version": __version__, "metric": metric}


def code_of(recipe: TaskRecipe, parts: tuple[str, ...]) -> str:
    """Digest of code: of those parts of this program, and of the user's own parts in a recipe."""
    return f"{code_digest(parts)[:32]} {user_digest(recipe.model_dump())[:32]}"
