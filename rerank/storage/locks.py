"""Locks that a process holds on a file or directory, and that end with the process, however it ends."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # not a POSIX system: nothing is locked there
    fcntl = None  # type: ignore[assignment]


class Lock:
    """A lock (``flock``) on an existing file or directory, released by ``release`` or the process's end.

    Where the system or the file system has no such locks, none is held and ``known`` is False: then nobody can tell
    whether the owner is still running.
    """

    def __init__(self, descriptor: int, known: bool) -> None:
        self.descriptor, self.known = descriptor, known

    @staticmethod
    def take(path: Path, *, wait: bool = False, shared: bool = False) -> "Lock | None":
        """Lock ``path``; None if another holds it (also another ``Lock`` of this process), unless told to wait.

        Several may hold a shared lock, and while they do nobody can hold an exclusive one.

        Raises
        ------
        OSError: it does not exist or cannot be opened.
        """
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        if fcntl is None:
            return Lock(descriptor, False)
        try:
            kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
            fcntl.flock(descriptor, kind | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            os.close(descriptor)
            return None
        except OSError:  # a file system without locks
            return Lock(descriptor, False)
        except BaseException:
            os.close(descriptor)
            raise
        return Lock(descriptor, True)

    @staticmethod
    def take_made(path: Path, make: Callable[[], object]) -> "Lock | None":
        """``take`` of what ``make`` makes at ``path`` if it is not there: its last holder may just be removing it."""
        while True:
            make()
            try:
                lock = Lock.take(path)
            except FileNotFoundError:
                continue
            if lock is None or lock.still_at(path):
                return lock
            lock.release()

    def still_at(self, path: Path) -> bool:
        """Is what is locked still what ``path`` names? Another process may have removed or replaced it before."""
        try:
            return os.path.samestat(os.fstat(self.descriptor), os.stat(path))
        except FileNotFoundError:
            return False

    def release(self) -> None:
        """Give up the lock; once is enough."""
        if self.descriptor >= 0:
            with suppress(OSError):
                os.close(self.descriptor)
            self.descriptor = -1
