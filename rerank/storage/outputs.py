"""The directory that a run writes its results to: it belongs to one run, held by one at a time, and logged to.

Its note says so, a file that only this program writes: a first line, then the names of what runs have written there,
one per line, each noted before it is written. Whatever is there without being noted was not written by this program: it
is neither replaced nor removed.

Work that is not done twice is there too: a trained run, a training that has come to the end of some epoch, the votes
on a split. Each is an .npz file with a header (JSON) and arrays, which appears, and is replaced, as a whole, under a
key, a digest of everything that it depends on, so that it is not taken for that of other data, settings or code.
"""

import glob
import hashlib
import logging
import os
import socket
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from rerank import __version__
from rerank.base.errors import RecipeError, RunError
from rerank.storage import files
from rerank.storage.documents import as_json, parse_object

log = logging.getLogger("rerank")
NOTE, LOCK = ".rerank-run", ".rerank.lock"
HEAD = "rerank keeps the results of a run here; these are what it has written:"
RECIPE, LOG, MODEL, RUNS = "recipe.yaml", "log.txt", "model", ".runs"
RESULT_FOLDERS = (RUNS, "predictions", "figures")  # directories; what is in them is noted file by file


@contextmanager
def output_directory(
    directory: Path, recipe: str, results: Sequence[str], *, resume: bool, inputs: Iterable[str] = ()
) -> Iterator[None]:
    """Within the block, this is the only run in ``directory``, which holds its recipe and is prepared and logged to.

    results: what a new run starts without; inputs: the files that the run reads.
    """
    check_apart([directory / name for name in (*results, RECIPE, LOG, MODEL)], inputs)
    with sole_run(directory):
        prepare_output(directory, recipe, results, resume=resume)
        with log_file(directory):
            yield


@contextmanager
def sole_run(directory: Path) -> Iterator[None]:
    """Hold a directory, which is made if needed, until the end of the block or of the process."""
    path = directory / LOCK
    with files.write_errors(directory):
        directory.mkdir(parents=True, exist_ok=True)
        file = files.lock(path)
        holder = path.read_text(encoding="utf-8", errors="replace").strip()
    if file is None:
        message = f"another run uses this directory ({holder or 'of another process'}); wait or use another --output"
        raise RunError(f"{directory}: {message}")
    with file:
        if holder and not holder.startswith("process "):
            raise RecipeError("this was not written by a run; move it, or use another --output", path=str(path))
        since = datetime.now().astimezone().isoformat(timespec="seconds")
        with suppress(OSError):  # a full disk: the next file says so
            path.write_text(f"process {os.getpid()} on {socket.gethostname()} since {since}\n")
        try:
            yield
        finally:
            with suppress(OSError):
                path.unlink()


def output_file(directory: Path, *names: str) -> Path:
    """The path ``directory``/``names`` for a run to write, which is noted as its own from here on."""
    for name in names:
        if name in ("", ".", "..") or Path(name).name != name or not name.isprintable():
            raise RecipeError(f"{name!r} cannot be the name of a file in {directory}; use another")
    path, name = directory.joinpath(*names), "/".join(names)
    if name not in noted_names(directory):
        if os.path.lexists(path):
            message = f"the directory holds {name!r}, which was not written by a run; move it, or use another --output"
            raise RecipeError(message, path=str(directory))
        with files.write_errors(directory / NOTE):
            directory.mkdir(parents=True, exist_ok=True)
            with (directory / NOTE).open("a", encoding="utf-8") as note:
                note.write(f"{name}\n" if note.tell() else f"{HEAD}\n{name}\n")
                note.flush()
                os.fsync(note.fileno())
    return path


def noted_names(directory: Path) -> list[str]:
    """The names of what runs have written in ``directory``; empty if there was no run."""
    note = directory / NOTE
    with files.write_errors(note), suppress(FileNotFoundError):
        head, *names = note.read_text(encoding="utf-8", errors="replace").split("\n")
        if head and head != HEAD:
            raise RecipeError("this was not written by a run; move it, or use another --output", path=str(note))
        return [name for name in names if name]
    return []


def prepare_output(directory: Path, text: str, results: Sequence[str], *, resume: bool) -> None:
    """Write the recipe, ``text``; without ``resume``, remove the ``results`` of earlier runs, and nothing else."""
    with files.write_errors(directory):
        names, recipe = noted_names(directory), directory / RECIPE
        present = [name for name in (*results, RECIPE, LOG, MODEL) if os.path.lexists(directory / name)]
        if present and not names:
            message = f"the directory holds {present[0]!r}, but no run; use another --output, or move it"
            raise RecipeError(message, path=str(directory))
        # The recipe goes first and comes last: a run that was killed between has left nothing to continue from.
        fresh = not resume or RECIPE not in names or not recipe.exists()
        if not fresh and recipe.read_text(encoding="utf-8", errors="replace") != text:
            message = "the directory holds a run with other settings; use another --output, or run again without "
            raise RecipeError(message + "--resume", path=str(recipe))
        if MODEL in names and (other := files.foreign(directory / MODEL)) is not None:
            raise RecipeError("this was not written by a run; move it, or use another --output", path=str(other))
        for name in (RECIPE, LOG, MODEL, *(name for name in results if name not in RESULT_FOLDERS)):
            output_file(directory, name)
        for folder in (directory, *(directory / name for name in RESULT_FOLDERS)):
            files.remove_leftovers(folder)
        if fresh:
            files.remove(recipe)
            remove_results(directory, results)
            files.write_text(recipe, text)
        (directory / "predictions").mkdir(exist_ok=True)


def remove_results(directory: Path, names: Iterable[str]) -> None:
    """Remove what runs have written at ``names`` and below them, and directories left empty by that."""
    roots = set(names)
    for path in [directory / name for name in noted_names(directory) if name.split("/")[0] in roots]:
        siblings = path.parent.glob(f"{glob.escape(path.stem)}.*.npz") if path.parent.name == RUNS else ()
        for part in (path, *siblings):  # of a run also what is kept beside it
            if files.foreign(part) is None:
                files.remove(part)
    for name in roots.intersection(RESULT_FOLDERS):
        with suppress(OSError):  # something else is there, and stays
            (directory / name).rmdir()


def check_apart(outputs: Iterable[Path | str], inputs: Iterable[Path | str]) -> None:
    """Check that nothing is written where something is read; "-" is the standard input or output, never a file."""
    targets = {os.path.realpath(path): path for path in outputs if str(path) != "-"}
    for path in inputs:
        real = Path(os.path.realpath(path))
        for folder in (real, *real.parents):
            if str(folder) in targets:
                message = f"would be overwritten, as {targets[str(folder)]}, while it is being read; write elsewhere"
                raise RecipeError(message, path=str(path))


@contextmanager
def log_file(directory: Path) -> Iterator[None]:
    """Within the block, everything that is logged also goes to log.txt in ``directory``."""
    with files.write_errors(directory / LOG):
        handler = _LogFile(directory / LOG, mode="a", encoding="utf-8")
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


FORMAT_VERSION = 4
HEADER = "result"
SAVE_FACTOR = 20.0  # the time between two saves is at least this many times what the last one took


def key_of(*parts: Any) -> str:
    """The key of work that depends on ``parts`` (JSON), and on the version of this program."""
    return hashlib.sha256(as_json([__version__, *parts]).encode()).hexdigest()


class Work:
    """A piece of work by its key, done once the file ``path`` has it.

    seconds: of work that goes on, the least time between two saves; 0: at every opportunity.
    """

    def __init__(self, path: Path, key: str, seconds: float = 0.0) -> None:
        self.path, self._key, self._seconds = path, key, seconds
        self._last, self._save_time = time.monotonic(), 0.0

    def due(self) -> bool:
        """Whether it is time to save how far work has come."""
        return self._seconds == 0 or time.monotonic() - self._last >= max(self._seconds, SAVE_FACTOR * self._save_time)

    def save(self, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Replace what is on disk by ``header`` (JSON) and ``arrays`` (without objects)."""
        start = time.monotonic()
        text = as_json({"version": FORMAT_VERSION, "key": self._key, "header": header}).encode()
        content: dict[str, Any] = {HEADER: np.frombuffer(text, np.uint8), **arrays}
        with files.new_file(self.path) as new, new.open("wb") as out:
            np.savez(out, **content)
        self._last = time.monotonic()
        self._save_time = self._last - start

    def load(self) -> tuple[dict[str, Any], dict[str, np.ndarray]] | None:
        """Header and arrays; None, and the work is to be done, where there are none, of other work, or damaged ones."""
        try:
            arrays = files.read_archive(self.path)
            content = parse_object(arrays.pop(HEADER).tobytes())
            if content["version"] == FORMAT_VERSION and content["key"] == self._key:
                return dict(content["header"]), arrays
            log.info("%s is of other data, settings or code: its work is done again", self.path)
            return None
        except FileNotFoundError:
            return None
        except files.DAMAGE as error:
            log.warning("%s cannot be read (%s): its work starts again from the beginning", self.path, error)
            return None
