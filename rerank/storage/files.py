"""Files and directories that appear under their names only when they are complete.

While it is being written, what becomes NAME has the name ``.NAME.XXXXXXXX.rerank`` beside it. What a killed process
left under such a name is removed by the next one that holds the place for itself.
"""

import errno
import glob
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from rerank.base.errors import RecipeError, RunError
from rerank.base.interrupts import deferred
from rerank.storage.digests import foreign

try:
    import fcntl
except ImportError:  # not a POSIX system: nothing is locked there
    fcntl = None  # type: ignore[assignment]

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{8}\.rerank")


def temporary_path(target: Path) -> Path:
    """A free name next to ``target`` for what will become it."""
    return target.with_name(f".{target.name[:100]}.{secrets.token_hex(4)}.rerank")


def remove_leftovers(directory: Path) -> None:
    """Remove what is half-written in ``directory`` (not below it); nobody else may be writing there."""
    with suppress(OSError):  # not there, or not ours to look into
        for path in directory.iterdir():
            if _TEMPORARY.fullmatch(path.name):
                _delete(path)


@contextmanager
def scratch_directory(beside: Path | str) -> Iterator[Path]:
    """A directory next to ``beside`` (which need not exist) for the duration of the block."""
    target = Path(beside)
    with reported(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        path = temporary_path(target)
        path.mkdir()
        try:
            yield path
        finally:
            with deferred():
                shutil.rmtree(path, ignore_errors=True)


@contextmanager
def new_directory(target: Path | str, *, keep: bool = False, synced: bool = True) -> Iterator[Path]:
    """A directory to write into; it is renamed to ``target`` when the block ends without an error.

    It replaces an empty directory, or one that this program has written (see ``foreign``). With ``keep``, a ``target``
    that exists by then stays: for directories that several processes may make at the same time, all with the same
    content. synced: only when its files are on disk.
    """
    path = Path(target)
    with scratch_directory(path) as new:
        yield new
        for file in new.iterdir() if synced else ():
            _sync(file)
        with deferred():
            old = temporary_path(_before(path))
            if path.is_dir():
                if keep:
                    return
                if (other := foreign(path)) is not None:
                    raise RunError(f"{other} was not written by this program; move it, or write elsewhere than {path}")
                path.rename(old)
            try:
                new.rename(path)
            except OSError:
                if keep and path.is_dir():  # another process has just done the same
                    return
                if old.exists():
                    old.rename(path)
                raise
            shutil.rmtree(old, ignore_errors=True)


def standing(target: Path) -> Path:
    """The place of a directory: ``target``, or beside it, if a process was killed while it was replaced."""
    if target.exists():
        return target
    return next(target.parent.glob(f".{glob.escape(_before(target).name)}.*.rerank"), target)


def _before(target: Path) -> Path:
    """Of which name a directory has a temporary one while another takes its place."""
    return target.with_name(f"{target.name[:90]}.old")


@contextmanager
def new_file(target: Path | str) -> Iterator[Path]:
    """A path to write a file at; it is renamed to ``target`` when the block ends without an error."""
    path = Path(target)
    with reported(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = temporary_path(path)
        try:
            yield temporary
            put_file(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)


def put_file(temporary: Path, target: Path) -> None:
    """Give a complete file its name, but not before its data are on disk."""
    _sync(temporary)
    temporary.replace(target)


def write_text(path: Path | str, text: str) -> None:
    """Write a text file, whole or not at all."""
    with new_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def remove(path: Path) -> None:
    """Remove a file or directory; a directory loses its name before its content, so that nobody finds half of it."""
    if path.is_dir() and not path.is_symlink():
        with deferred():
            path = path.rename(temporary_path(path))
            _delete(path)
    else:
        path.unlink(missing_ok=True)


def _delete(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


@contextmanager
def reported(path: Path) -> Iterator[None]:
    """Turn an error of the system into one that names what was to be written."""
    check_local(path)
    if not path.name:
        raise RecipeError(f"cannot write {path}: expected the name of a file or folder")
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise RunError(f"cannot write {path}: {reason(error)}") from error


def check_local(path: Path) -> None:
    """The output goes to folders."""
    if len(path.parts) > 1 and _SCHEME.fullmatch(path.parts[0]):
        raise RecipeError(f"cannot write {path}: this is a URL; write to a folder, and copy it there")


def reason(error: OSError) -> str:
    """The error in words; numpy gives no reason for a write that fell short."""
    if error.strerror is None and "requested and" in str(error):
        return f"the disk is full, or files may not be so large ({error})"
    return str(error.strerror or error)


def _sync(path: Path) -> None:
    """Wait until the data are on disk: otherwise, when the power fails, the rename may survive without them."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EBADF):  # a file system that cannot
            raise
    finally:
        os.close(descriptor)


def lock(path: Path, *, wait: bool = False) -> IO[str] | None:
    """The locked file at ``path``, made if it is not there, open to be read and added to; closing it ends the lock, as
    does the end of the process.

    None if another process holds it, unless told to wait. Where the file system has no locks, nobody holds any.
    """
    while True:
        file = path.open("a+", encoding="utf-8", errors="replace")
        try:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            file.close()
            return None
        except OSError:  # a file system without locks
            return file
        except BaseException:
            file.close()
            raise
        # The last holder may have removed the file before it gave up the lock.
        if path.exists() and os.path.samestat(os.fstat(file.fileno()), path.stat()):
            return file
        file.close()
