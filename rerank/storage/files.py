"""Files and directories that appear under their names only when they are complete.

While it is being written, a file has a temporary name next to its own, ``.NAME.XXXXXXXXXXXXXXXX.partial``, and its
writer holds a lock on it: one with such a name and no lock was left by a process that was killed. The last eight
hexadecimal digits follow from the rest of the name, so that no file of somebody else's has such a name.
"""

import errno
import os
import re
import secrets
import shutil
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rerank.base.errors import RecipeError, RunError
from rerank.base.interrupts import deferred
from rerank.storage.checksums import listed
from rerank.storage.locks import Lock

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_PARTIAL = re.compile(r"\.(.+)\.([0-9a-f]{8})([0-9a-f]{8})\.(partial|replaced)")


def temporary_path(target: Path) -> Path:
    """A free name next to ``target`` for what will become it."""
    name, token = target.name[:100], secrets.token_hex(4)
    return target.with_name(f".{name}.{token}{_proof(name, token)}.partial")


def _proof(name: str, token: str) -> str:
    return f"{zlib.crc32(os.fsencode(f'rerank {name} {token}')):08x}"


def _temporary(name: str) -> re.Match[str] | None:
    """The parts of a temporary name that this program has made; None for any other name."""
    match = _PARTIAL.fullmatch(name)
    return match if match is not None and match[3] == _proof(match[1], match[2]) else None


def temporary_file(target: Path) -> tuple[Path, Lock]:
    """A new empty file next to ``target``, locked; release the lock when it is renamed or removed.

    Raises
    ------
    OSError: it cannot be made.
    """
    while True:
        path = temporary_path(target)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o666))
        if (lock := _owned(path)) is not None:
            return path, lock


def temporary_directory(target: Path) -> tuple[Path, Lock]:
    """A new empty directory next to ``target``, locked; release the lock when it is renamed or removed.

    Raises
    ------
    OSError: it cannot be made.
    """
    while True:
        path = temporary_path(target)
        path.mkdir()
        if (lock := _owned(path)) is not None:
            return path, lock


def _owned(path: Path) -> Lock | None:
    """A lock on what was just made at ``path``; None if ``remove_leftovers`` of another process was faster."""
    try:
        lock = Lock.take(path, wait=True)
    except FileNotFoundError:
        return None
    assert lock is not None
    if lock.still_at(path):
        return lock
    lock.release()
    return None


@contextmanager
def scratch_directory(beside: Path | str) -> Iterator[Path]:
    """A directory next to ``beside`` (which need not exist) for the duration of the block.

    Raises
    ------
    RunError: it cannot be made, or something cannot be written in the block.
    """
    target = Path(beside)
    with reported(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        path, lock = temporary_directory(target)
        try:
            yield path
        finally:
            _discard(path, lock)


@contextmanager
def new_directory(target: Path | str, *, keep: bool = False, synced: bool = True) -> Iterator[Path]:
    """A directory to write into; it is ``put_directory`` when the block ends without an error.

    Raises
    ------
    RunError: something cannot be written, or a file of somebody else's is in the way; what was written is removed.
    """
    with scratch_directory(target) as temporary:
        yield temporary
        put_directory(temporary, Path(target), keep=keep, synced=synced)


def _discard(temporary: Path, lock: Lock) -> None:
    """Remove what is left of a temporary directory, and release its lock."""
    with deferred():
        shutil.rmtree(temporary, ignore_errors=True)
        lock.release()


def _within_partial(path: Path) -> bool:
    """Is this inside a directory that is still being written? That one is synchronised as a whole."""
    return any(_temporary(part) for part in path.absolute().parts)


def put_directory(temporary: Path, path: Path, *, keep: bool = False, synced: bool = True) -> None:
    """Give a complete directory the name ``path`` next to its own; at no time is half of it there.

    What it replaces is a directory that this program has written (see ``foreign``), or an empty one. With ``keep``, a
    ``path`` that exists by then stays: for directories that several processes may make at the same time, all with the
    same content. synced: only when its data are on disk.

    Raises
    ------
    OSError: it cannot be done.
    RunError: a file of somebody else's is in the way.
    """
    synced = synced and not _within_partial(path)
    if synced:
        _sync_tree(temporary)
    with deferred():
        old: Path | None = None
        if path.is_dir():
            if keep:
                return
            if (other := foreign(path)) is not None:
                raise RunError(f"{other} was not written by this program; move it, or write elsewhere than {path}")
            old = temporary.with_suffix(".replaced")
            path.rename(old)
        try:
            temporary.rename(path)
        except OSError:
            if keep and path.is_dir():  # another process has just done the same
                return
            if old is not None:
                old.rename(path)
            raise
        if old is not None:
            shutil.rmtree(old, ignore_errors=True)
        if synced:
            _sync(path.parent)


@contextmanager
def new_file(target: Path | str) -> Iterator[Path]:
    """A path to write a file at; it is renamed to ``target`` when the block ends without an error.

    Raises
    ------
    RunError: the file cannot be written; what was written is removed.
    """
    path = Path(target)
    with reported(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary, lock = temporary_file(path)
        try:
            yield temporary
            put_file(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
            lock.release()


def put_file(temporary: Path, target: Path) -> None:
    """Give a complete file its name, but not before its data are on disk.

    Raises
    ------
    OSError: it cannot be done.
    """
    if _within_partial(target):
        temporary.replace(target)
        return
    _sync(temporary)
    temporary.replace(target)
    _sync(target.parent)


def write_text(path: Path | str, text: str) -> None:
    """Write a text file, whole or not at all.

    Raises
    ------
    RunError: it cannot be written.
    """
    with new_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def remove(path: Path) -> None:
    """Remove a file or directory; a directory loses its name before its content, so that nobody finds half of it.

    Raises
    ------
    OSError: it cannot be removed. It is no error if nothing is there.
    """
    if not path.is_dir() or path.is_symlink():
        path.unlink(missing_ok=True)
        return
    aside = temporary_path(path)
    with deferred():
        path.rename(aside)
        shutil.rmtree(aside, ignore_errors=True)


def foreign(path: Path) -> Path | None:
    """A file in a directory, or below it, that this program has not written there; None if there is none.

    A directory that it writes as a whole lists its files (``checksums.listed``); temporary names are its own too.
    """
    if not path.is_dir() or path.is_symlink():
        return None
    own = listed(path)
    for entry in sorted(path.iterdir()):
        if entry.name in own or _temporary(entry.name):
            continue
        if not entry.is_dir() or entry.is_symlink():
            return entry
        if (other := foreign(entry)) is not None:
            return other
    return None


def remove_leftovers(directory: Path) -> None:
    """Remove what killed processes left half-written in ``directory`` (not below it); running ones keep theirs.

    A directory that was being replaced is restored if its successor did not get its name.
    """
    try:
        found = [path for path in directory.iterdir() if _temporary(path.name)]
    except OSError:
        return  # not there, or not ours to look into
    for path in sorted(found):
        with suppress(OSError):  # removed by another process meanwhile, or not ours to remove
            lock = Lock.take(path)
            if lock is None:
                continue
            try:
                if lock.known and lock.still_at(path):
                    _remove_leftover(path)
            finally:
                lock.release()


def _remove_leftover(path: Path) -> None:
    match = _temporary(path.name)
    assert match is not None
    target = path.with_name(match[1])
    if match[4] == "replaced" and not target.exists():
        path.rename(target)
    elif path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink()


@contextmanager
def reported(path: Path) -> Iterator[None]:
    """Turn an error of the system into one that names what was to be written.

    Raises
    ------
    RunError: in place of an OSError in the block.
    """
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
    """What is written goes to folders.

    Raises
    ------
    RecipeError: the path was a URL, whose second slash paths do not keep.
    """
    if len(path.parts) > 1 and _SCHEME.fullmatch(path.parts[0]):
        raise RecipeError(f"cannot write {path}: this is a URL; write to a folder, and copy it there")


def reason(error: OSError) -> str:
    """What went wrong, in words; numpy gives no reason for a write that fell short."""
    if error.strerror is None and "requested and" in str(error):
        return f"the disk is full, or files may not be so large ({error})"
    return str(error.strerror or error)


def _sync_tree(directory: Path) -> None:
    for base, _, names in os.walk(directory):
        for name in names:
            _sync(Path(base, name))
        _sync(Path(base))


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
