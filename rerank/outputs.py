"""The directory that a run leaves its results in: made ready, and logged to."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rerank.errors import RecipeError, RunError
from rerank.files import write_text

log = logging.getLogger("rerank")


def prepare_output(directory: Path, resolved: str, results: Sequence[str], *, resume: bool) -> None:
    """Make ``directory`` and write the resolved recipe; without ``resume``, remove the ``results`` of a run before.

    Raises
    ------
    RecipeError: the directory holds something else, or is to be resumed with other settings.
    RunError: it cannot be written.
    """
    stored = directory / "recipe.yaml"
    if resume and stored.exists() and stored.read_text(encoding="utf-8") != resolved:
        message = "the directory holds a run of other settings; use another --output, or run anew without --resume"
        raise RecipeError(message, path=str(stored))
    held = [name for name in results if (directory / name).exists()]
    if held and not stored.exists():
        message = f"the directory holds {held[0]!r}, but no run; use another --output, or remove it"
        raise RecipeError(message, path=str(directory))
    try:
        for name in results if not resume else ():
            path = directory / name
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        (directory / "predictions").mkdir(parents=True, exist_ok=True)
        write_text(stored, resolved)
    except OSError as error:
        raise RunError(f"cannot write {directory}: {error.strerror or error}") from error


@contextmanager
def log_file(directory: Path) -> Iterator[None]:
    """Everything that is logged goes to log.txt in ``directory`` too."""
    handler = logging.FileHandler(directory / "log.txt", mode="a", encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
        handler.close()
