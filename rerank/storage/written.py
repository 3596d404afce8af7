"""What a run has written into its output directory: noted there before it is written, so that nothing else is removed.

The note is a file that only this program writes: a line that says so, then the names of files and directories, one per
line. Whatever is there without being noted is somebody else's: it is neither replaced nor removed.
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from rerank.base.errors import RecipeError, RerankError, RunError
from rerank.storage.files import foreign, reason, remove

NOTE = ".rerank-run"
HEAD = "rerank keeps the results of a run here; these are what it has written:"


def claim(directory: Path, *names: str) -> Path:
    """The path ``directory``/``names`` for a run to write, which is noted as its own from here on.

    Raises
    ------
    RecipeError: a name leads elsewhere, or is taken by something that no run has written.
    RunError: the note cannot be written.
    """
    for name in names:
        if name in ("", ".", "..") or Path(name).name != name or not name.isprintable():
            raise RecipeError(f"{name!r} cannot be the name of a file in {directory}; use another")
    path, name = directory.joinpath(*names), "/".join(names)
    if name in (known := written(directory)):
        return path
    if os.path.lexists(path):
        message = f"the directory holds {name!r}, which was not written by a run; move it, or use another --output"
        raise RecipeError(message, path=str(directory))
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with (directory / NOTE).open("a", encoding="utf-8") as note:
            note.write("" if known or note.tell() else f"{HEAD}\n")
            note.write(f"{name}\n")
            note.flush()
            os.fsync(note.fileno())
    except OSError as error:
        raise RunError(f"cannot write {directory / NOTE}: {reason(error)}") from error
    return path


def written(directory: Path) -> list[str]:
    """The names of what runs have written in ``directory``; empty if there was no run.

    Raises
    ------
    RecipeError: the note is somebody else's.
    RunError: it cannot be read.
    """
    path = directory / NOTE
    try:
        head, *names = path.read_text(encoding="utf-8", errors="replace").split("\n")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise RunError(f"cannot read {path}: {reason(error)}") from error
    if head and head != HEAD:
        raise RecipeError("this file is not a run's; move it, or use another --output", path=str(path))
    return [name for name in names if name]


def has_written(directory: Path, name: str) -> bool:
    """Is ``name`` a file that a run has written?"""
    try:
        return name in written(directory) and (directory / name).is_file()
    except RerankError:
        return False


def check_removable(directory: Path, below: Iterable[str]) -> None:
    """Check that nothing is in the way of ``remove_written``.

    Raises
    ------
    RecipeError: a directory that a run has written holds a file of somebody else's.
    """
    for path in _found(directory, below):
        if (other := foreign(path)) is not None:
            message = "this was not written by a run; move it, or use another --output"
            raise RecipeError(message, path=str(other))


def remove_written(directory: Path, below: Iterable[str]) -> None:
    """Remove what runs have written at the names ``below`` and below them, and directories left empty by that.

    Raises
    ------
    OSError: something cannot be removed.
    """
    places = set[Path]()
    for path in _found(directory, below):
        if foreign(path) is None:
            remove(path)
        places |= {place for place in path.parents if place.is_relative_to(directory) and place != directory}
    for place in sorted(places, reverse=True):
        with suppress(OSError):  # something else is there, and stays
            place.rmdir()


def _found(directory: Path, below: Iterable[str]) -> list[Path]:
    """The paths of what runs have written at the names ``below`` and below them."""
    chosen = set(below)
    return [directory / name for name in written(directory) if name.split("/")[0] in chosen]
