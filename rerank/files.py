"""Files and directories that appear under their names only when they are complete."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rerank.errors import RunError


@contextmanager
def new_directory(target: Path | str) -> Iterator[Path]:
    """A directory to write into; it is renamed to ``target`` (and replaces it) when the block ends without an error.

    Raises
    ------
    RunError: something cannot be written; what was written is removed.
    """
    path = Path(target)
    temporary, old = None, None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=path.parent))
        yield temporary
        temporary.chmod(0o777 & ~_umask())
        if path.is_dir():  # moved aside first: at no time is half of it there
            old = temporary.with_name(f"{temporary.name}-old")
            path.rename(old)
        temporary.rename(path)
    except OSError as error:
        raise RunError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        if old is not None and not path.exists():
            old.rename(path)
        for rest in (temporary, old):
            if rest is not None:
                shutil.rmtree(rest, ignore_errors=True)


@contextmanager
def new_file(target: Path | str) -> Iterator[Path]:
    """A path to write a file at; it is renamed to ``target`` when the block ends without an error.

    Raises
    ------
    RunError: the file cannot be written; what was written is removed.
    """
    path = Path(target)
    temporary = path.with_name(f".{path.name}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        temporary.replace(path)
    except OSError as error:
        raise RunError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        with suppress(OSError):  # it does not exist, or its directory is none
            temporary.unlink()


def write_text(path: Path | str, text: str) -> None:
    """Write a text file, whole or not at all.

    Raises
    ------
    RunError: it cannot be written.
    """
    with new_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
