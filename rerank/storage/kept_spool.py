"""The spool of an extraction, which survives a process that is killed: the next one finds the finished blocks."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rerank.base.errors import RunError
from rerank.storage.files import foreign, reason, remove, scratch_directory
from rerank.storage.locks import Lock

log = logging.getLogger("rerank")


@contextmanager
def kept_spool(entry: Path) -> Iterator[Path]:
    """The directory for the blocks of what will become ``entry``; it may hold blocks from before.

    An interrupt leaves it; the end of the block or another error removes it. If another process is working on the same
    entry, something else has its name, or the file system has no locks, it is an empty directory that is removed in any
    case.

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
        if done := len(list(place.glob("[0-9]*"))):
            log.info("%d blocks are left of an extraction that was stopped", done)
        yield place
    except KeyboardInterrupt:
        keep = True
        raise
    finally:
        if not keep:
            _remove(place)
        lock.release()


def drop_spool(entry: Path) -> None:
    """Remove the spool of an ``entry`` that exists: its process was killed before it could do so itself."""
    place = _place(entry)
    if place.exists():
        with suppress(OSError):
            lock = _taken(place)
            if lock is not None:
                _remove(place)
                lock.release()


def _remove(place: Path) -> None:
    """Remove a spool: half of one, where a process is killed meanwhile, would pass for somebody else's."""
    with suppress(OSError):
        remove(place)


def _place(entry: Path) -> Path:
    return entry.with_name(f".{entry.name}.spool")


def _taken(place: Path) -> Lock | None:
    """The lock of the spool, which is made if needed; None if it cannot be had, or holds a file of somebody else's."""
    lock = Lock.take_made(place, lambda: place.mkdir(parents=True, exist_ok=True))
    if lock is None or (lock.known and foreign(place) is None):
        return lock
    lock.release()
    return None
