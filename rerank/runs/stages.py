"""The stages of a run: a line of ``history.jsonl`` where each starts and ends, and what it took."""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from rerank.base.errors import RunError
from rerank.base.interrupts import check
from rerank.base.usage import Usage
from rerank.storage.files import reason, write_text
from rerank.storage.strict_json import as_json

TAKEN = ("seconds", "cpu_seconds", "peak_memory_bytes")


class Stages:
    """The history file of a run while it is written, line by line.

    Lines of stages have the keys ``stage``, ``event`` ("start", "end", or "stopped" by an error or interrupt), ``time``
    and what ``stage`` was given. All others are lines of epochs. Lines of stages that are already in the file, from the
    run that is resumed, stay; those of epochs are written again, from what is kept of the trained runs.

    Raises
    ------
    RunError: the file cannot be written.
    """

    def __init__(self, history: Path) -> None:
        self._path = history
        self._taken: dict[str, dict[str, Any]] = {}
        earlier = stage_lines(history)
        write_text(history, "".join(f"{as_json(line)}\n" for line in earlier))
        for line in earlier:
            self._add(line)

    def append(self, lines: Iterable[dict[str, Any]]) -> None:
        """Add lines to the file.

        Raises
        ------
        RunError: it cannot be written.
        """
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
        self.append([{"stage": name, "event": "start", "time": _now(), **about}])
        found, usage = dict(about), Usage()
        try:
            with usage:
                yield found
        except BaseException:
            with suppress(RunError):  # the first error is the one to report
                self._end(name, "stopped", usage, found)
            raise
        self._end(name, "end", usage, found)
        check()

    def _end(self, name: str, event: str, usage: Usage, found: dict[str, Any]) -> None:
        line = {"stage": name, "event": event, "time": _now(), **usage.as_dict(), **found}
        self._add(line)
        self.append([line])

    def _add(self, line: dict[str, Any]) -> None:
        if line["event"] == "start":
            return
        before = self._taken.get(line["stage"], dict.fromkeys(TAKEN, 0))
        found = {key: value for key, value in line.items() if key not in ("stage", "event", "time")}
        for key in ("seconds", "cpu_seconds"):
            found[key] = round(found[key] + before[key], 3)
        found["peak_memory_bytes"] = max(found["peak_memory_bytes"], before["peak_memory_bytes"])
        self._taken[line["stage"]] = found

    def summary(self) -> dict[str, dict[str, Any]]:
        """By stage: ``seconds`` and ``cpu_seconds`` of all attempts together, the highest ``peak_memory_bytes``."""
        return self._taken


def stage_lines(history: Path) -> list[dict[str, Any]]:
    """The lines of stages in a history file, none if there is no file, without one that a killed run cut short."""
    try:
        text = history.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return []
    found = []
    for line in text.split("\n"):
        with suppress(ValueError):
            entry = json.loads(line)
            if isinstance(entry, dict) and _whole(entry):
                found.append(entry)
    return found


def epoch_lines(history: Path) -> list[dict[str, Any]]:
    """The lines of epochs in a complete history file."""
    lines = [json.loads(line) for line in history.read_text(encoding="utf-8").splitlines()]
    return [line for line in lines if "stage" not in line]


def _whole(line: dict[str, Any]) -> bool:
    if not isinstance(line.get("stage"), str) or not isinstance(line.get("event"), str):
        return False
    return line["event"] == "start" or all(isinstance(line.get(key), int | float) for key in TAKEN)


def _now() -> str:
    return datetime.now().astimezone().isoformat(timespec="milliseconds")
