"""Locks that a process holds on a file, and that end with the process, however it ends."""

import os
from pathlib import Path
from typing import IO

try:
    import fcntl
except ImportError:  # not a POSIX system: nothing is locked there
    fcntl = None  # type: ignore[assignment]


def lock(path: Path, *, wait: bool = False, shared: bool = False) -> IO[str] | None:
    """The locked file at ``path``, made if it is not there, open to be read and added to; closing it ends the lock.

    None if another process holds it, unless told to wait; several may hold a shared lock, but not beside another. Where
    the file system has no locks, nobody holds any.
    """
    while True:
        file = path.open("a+", encoding="utf-8", errors="replace")
        try:
            if fcntl is not None:
                fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))
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
