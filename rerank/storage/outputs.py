"""The directory that a run writes its results to: held by one run at a time, prepared, and logged to."""

import json
import logging
import os
import socket
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from rerank.base.errors import RecipeError, RunError
from rerank.storage.arrays import DAMAGE
from rerank.storage.files import check_local, reason, remove, remove_leftovers, write_text
from rerank.storage.locks import Lock
from rerank.storage.written import check_removable, claim, remove_written, written

log = logging.getLogger("rerank")
STARTING = ".starting"  # exists while the results of an earlier run are removed
LOCK = ".rerank.lock"
HELD = (".runs", "predictions", "figures")  # directories whose files are noted one by one
FILES = ("recipe.yaml", "log.txt", "model", STARTING)  # what every run writes


@contextmanager
def output_directory(
    directory: Path, resolved: str, results: Sequence[str], *, resume: bool, inputs: Iterable[str] = ()
) -> Iterator[None]:
    """Within the block, this is the only run in ``directory``, which holds its recipe and is prepared and logged to.

    results: names below the directory that a new run starts without; inputs: the files that the run reads.

    Raises
    ------
    RecipeError: the directory holds something else, or an input, or is to be resumed with other settings.
    RunError: another run is working there, or it cannot be written.
    """
    check_apart([directory / name for name in (*results, *HELD, *FILES)], inputs)
    with sole_run(directory):
        prepare_output(directory, resolved, results, resume=resume)
        with log_file(directory):
            yield


@contextmanager
def sole_run(directory: Path) -> Iterator[None]:
    """Hold the lock of a directory, which is made if needed; it ends with the process, however that ends.

    Raises
    ------
    RunError: another run holds it, or it cannot be written.
    """
    check_local(directory)
    path = directory / LOCK
    try:
        directory.mkdir(parents=True, exist_ok=True)
        lock = _lock(path)
    except OSError as error:
        raise RunError(f"cannot write {directory}: {reason(error)}") from error
    try:
        with suppress(OSError):  # a full disk: the next file says so
            since = datetime.now().astimezone().isoformat(timespec="seconds")
            path.write_text(f"process {os.getpid()} on {socket.gethostname()} since {since}\n")
        yield
    finally:
        with suppress(OSError):
            path.unlink()
        lock.release()


def _lock(path: Path) -> Lock:
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
    lock = Lock.take_made(path, lambda: os.close(os.open(path, flags, 0o666)))
    if lock is None:
        holder = path.read_text(errors="replace").strip() or "of another process"
        message = f"another run is at work there ({holder}); wait for it, or use another --output"
        raise RunError(f"{path.parent}: {message}")
    if path.stat().st_size and not path.read_bytes().startswith(b"process "):
        lock.release()
        raise RecipeError("this was not written by a run; move it, or use another --output", path=str(path))
    return lock


def prepare_output(directory: Path, resolved: str, results: Sequence[str], *, resume: bool) -> None:
    """Write the resolved recipe; without ``resume``, remove the ``results`` of an earlier run, and nothing else.

    Raises
    ------
    RecipeError: the directory holds something else, or is to be resumed with other settings.
    RunError: it cannot be written.
    """
    held = [name for name in (*results, *FILES) if os.path.lexists(directory / name)]
    if held and not written(directory):
        message = f"the directory holds {held[0]!r}, but no run; use another --output, or move it"
        raise RecipeError(message, path=str(directory))
    stored, starting = directory / "recipe.yaml", directory / STARTING
    # A run that was killed while it removed earlier results has left nothing to continue from.
    fresh = not resume or starting.exists() or not stored.exists()
    if not fresh and _text(stored) != resolved:
        message = "the directory holds a run with other settings; use another --output, or run again without --resume"
        raise RecipeError(message, path=str(stored))
    check_removable(directory, (*results, "model"))
    for name in (*FILES, *(name for name in results if name not in HELD)):
        claim(directory, name)
    try:
        for place in (directory, *(below for name in HELD for below in _below(directory / name))):
            remove_leftovers(place)
        if fresh:
            write_text(starting, "")
            remove_written(directory, results)
            write_text(stored, resolved)
        (directory / "predictions").mkdir(exist_ok=True)
        remove(starting)
    except OSError as error:
        raise RunError(f"cannot write {directory}: {reason(error)}") from error


def check_apart(outputs: Iterable[Path | str], inputs: Iterable[Path | str]) -> None:
    """Check that nothing is written where something is read; "-" is the standard input or output, never a file.

    Raises
    ------
    RecipeError: names the input.
    """
    places = {os.path.realpath(path): path for path in outputs if str(path) != "-"}
    for path in inputs:
        real = Path(os.path.realpath(path))
        for place in (real, *real.parents):
            if str(place) in places:
                message = f"would be overwritten, as {places[str(place)]}, while it is being read; write elsewhere"
                raise RecipeError(message, path=str(path))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise RunError(f"cannot read {path}: {reason(error)}") from error


def _below(directory: Path) -> list[Path]:
    return [directory, *(path for path in directory.rglob("*") if path.is_dir())]


def finished(directory: Path, stages: set[str]) -> dict[str, Any] | None:
    """The content of metrics.json if the run in ``directory`` has done all of ``stages``, else None."""
    try:
        metrics = json.loads((directory / "metrics.json").read_text(encoding="utf-8"))
        return metrics if stages <= metrics["stages"].keys() else None
    except DAMAGE:
        return None


def say_finished(directory: Path, metrics: dict[str, Any], code: str) -> None:
    """Say that the run in ``directory`` is finished already, and whether ``code``, the digest of the training code, is
    still the one in its ``metrics``."""
    if metrics.get("code") == code:
        log.info("%s: already finished; run it without --resume to do it again", directory)
        return
    message = "%s: already finished, by a program or a module of yours that has changed since; "
    log.warning(message + "run it without --resume to do it again", directory)


@contextmanager
def log_file(directory: Path) -> Iterator[None]:
    """Within the block, everything that is logged also goes to log.txt in ``directory``.

    Raises
    ------
    RunError: it cannot be opened. If it cannot be written later, one warning says so and the run continues.
    """
    try:
        handler = _LogFile(directory / "log.txt", mode="a", encoding="utf-8")
    except OSError as error:
        raise RunError(f"cannot write {directory / 'log.txt'}: {reason(error)}") from error
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
        with suppress(OSError):
            handler.close()


class _LogFile(logging.FileHandler):
    """A log file whose failure neither stops the run nor hides other errors."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: ARG002 - as the base class has it
        """Say once that nothing more is written to the file."""
        log.removeHandler(self)
        log.warning("%s can no longer be written", self.baseFilename)
