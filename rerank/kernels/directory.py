"""Where compiled kernels are kept: one directory for each state of their sources, which only this user can write.

numba unpickles what it finds there, so whoever can write there can run code: a directory of another user, or one that
others can write, is not used.
"""

import atexit
import logging
import os
import shutil
import stat
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Any

from numba.core import config as _config

from rerank.storage.files import reason

config: Any = _config  # numba fills the module's attributes at run time
log = logging.getLogger("rerank")
NAME = "rerank-kernels"
DAY = 86400.0
KEPT = 8  # states that stay however old they are


@cache
def state_directory(state: str) -> str:
    """The directory of a state (16 hexadecimal digits) of the kernels' sources; made if it does not exist."""
    problems = []
    for place in _places():
        try:
            for path in (place, place / state):
                path.mkdir(mode=0o700, parents=True, exist_ok=True)
                _check_owner(path)
            os.utime(place / state)  # used today
            _drop_damaged(place / state)
            _remove_unused(place)
            return str(place / state)
        except OSError as error:
            problems.append(f"{place}: {reason(error)}")
    log.warning("compiled kernels are kept for this process only: %s", "; ".join(problems))
    directory = tempfile.mkdtemp(prefix=f"{NAME}-{state}")
    process = os.getpid()
    # A forked copy of this process leaves the directory.
    atexit.register(lambda: shutil.rmtree(directory, ignore_errors=True) if os.getpid() == process else None)
    return directory


def _places() -> list[Path]:
    """The directories of all states: in $NUMBA_CACHE_DIR, else $XDG_CACHE_HOME, else ~/.cache; then a temporary one."""
    named = config.CACHE_DIR or os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    user = os.geteuid() if hasattr(os, "geteuid") else 0
    return [Path(named).absolute() / NAME, Path(tempfile.gettempdir()).absolute() / f"{NAME}-{user}"]


def _check_owner(path: Path) -> None:
    """Raise OSError for a directory that another user owns or can write, and for a link to one."""
    status = path.lstat()
    if not hasattr(os, "geteuid"):
        return  # not a POSIX system: there are neither owners nor modes
    if stat.S_ISLNK(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
        raise PermissionError(f"{path} is a link, or others own it or can write it; remove it, or set NUMBA_CACHE_DIR")


def _drop_damaged(directory: Path) -> None:
    """Remove kernels of which the end is missing, as after a power failure: numba would fail over them."""
    for path in directory.rglob("*.nb[ic]"):
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - 1))
            ends = file.read()
        if ends != b".":  # as every pickle does
            log.info("%s is not whole; the kernel is compiled again", path)
            path.unlink(missing_ok=True)


def _remove_unused(place: Path) -> None:
    """Remove states that have not been used for a day and are not among the ``KEPT`` that were used last.

    A process that still runs makes the directory again when it compiles another kernel.
    """
    states = sorted(place.glob("[0-9a-f]" * 16), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in states[KEPT:]:
        if time.time() - path.stat().st_mtime > DAY:
            shutil.rmtree(path, ignore_errors=True)
