"""The spool of an extraction, which survives a process that is killed: the next one finds the finished blocks."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from rerank.base.errors import RunError
from rerank.storage.files import reason, scratch_directory
from rerank.storage.locks import Lock

log = logging.getLogger("rerank")
MADE = "made"  # a file that marks a spool, with the boot time of the system that it was made on
OWN = "rerank spool "


@contextmanager
def kept_spool(entry: Path) -> Iterator[Path]:
    """The directory for the blocks of what will become ``entry``; it may hold blocks from before.

    An interrupt leaves it; the end of the block or another error removes it. Blocks are not synchronised with the disk,
    so those from before the system was started are not trusted. If another process is working on the same entry,
    something else has its name, or the file system has no locks, it is an empty directory that is removed in any case.

    Raises
    ------
    RunError: it cannot be made.
    """
    place = _place(entry)
    try:
        lock = _taken(place)
    except OSError as error:
        raise RunError(f"cannot write {place}: {reason(error)}") from error
    if lock is None:
        with scratch_directory(entry) as own:
            yield own
        return
    keep = False
    try:
        _check_made(place)
        yield place
    except KeyboardInterrupt:
        keep = True
        raise
    finally:
        if not keep:
            shutil.rmtree(place, ignore_errors=True)
        lock.release()


def drop_spool(entry: Path) -> None:
    """Remove the spool of an ``entry`` that exists: its process was killed before it could do so itself."""
    place = _place(entry)
    with suppress(OSError):  # usually there is none
        lock = Lock.take(place)
        if lock is not None:
            if lock.known and _own(place):
                shutil.rmtree(place, ignore_errors=True)
            lock.release()


def _place(entry: Path) -> Path:
    return entry.with_name(f".{entry.name}.spool")


def _own(place: Path) -> bool:
    """Has this program made the directory? An empty one counts: it may have got no further than that."""
    try:
        return (place / MADE).read_text(encoding="utf-8", errors="replace").startswith(OWN)
    except FileNotFoundError:
        return not any(place.iterdir())


def _taken(place: Path) -> Lock | None:
    """The lock of the spool, which is made if needed; None if it cannot be had."""
    while True:
        place.mkdir(parents=True, exist_ok=True)
        try:
            lock = Lock.take(place)
        except FileNotFoundError:  # its holder has just removed it
            continue
        if lock is None:
            return None
        if not lock.known:
            lock.release()
            return None
        if lock.still_at(place):
            if _own(place):
                return lock
            lock.release()
            return None
        lock.release()


def _check_made(place: Path) -> None:
    """Empty a spool that was made before the system was started."""
    made, now = place / MADE, f"{OWN}{round(psutil.boot_time())}"
    try:
        if not made.exists() or made.read_text() != now:
            for path in place.iterdir():
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            made.write_text(now)
        elif done := len(list(place.glob("*.json"))):
            log.info("%d blocks are left of an extraction that was stopped", done)
    except OSError as error:
        raise RunError(f"cannot write {place}: {reason(error)}") from error
