"""Where compiled kernels are kept: one directory for each state of their sources, writable by this user only.

numba unpickles what it finds there, so whoever can write there can run code. A place that another user could have
written to, or could replace, is not used.
"""

import atexit
import logging
import os
import re
import shutil
import stat
import tempfile
import time
import zlib
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO, Any

from numba.core import config as _config

from rerank.kernels import compiling  # noqa: F401 - shows when kernels are compiled
from rerank.storage.files import reason, remove, remove_leftovers
from rerank.storage.locks import lock

config: Any = _config  # numba fills the module's attributes at run time
log = logging.getLogger("rerank")
NAME = "rerank-kernels"
USED = ".used"  # in a state's directory: locked by the processes that use it, touched when they begin
FILES, SUMS = "*.nb[ic]", ".sums"  # kernels; beside them a line for each that was written: CRC-32 and name
DAYS, KEPT, YOUNG = 30, 8, 1  # see ``_remove_unused``
DAY = 86400.0
_locks: list[IO[str]] = []  # of the directories that this process uses, until it ends
_known: dict[str, set[tuple[str, int]]] = {}  # by directory: the kernels that are whole, and when they were written


@cache
def state_directory(state: str) -> str:
    """The directory of a state (16 hexadecimal digits) of the kernels' sources; made if it does not exist.

    Other processes may use it too, but none removes it as long as this process lives.
    """
    place = _place()
    path = place / state
    new = not path.exists()
    try:
        _make_private(path)
        held = _use(path)
        problem = _problem(path)
        if problem is None and stat.S_IMODE(path.stat().st_mode) & 0o077:
            problem = f"{path} is open to other users; remove it"
    except OSError as error:
        problem = f"{path}: {reason(error)}"
    if problem is not None:
        log.warning("compiled kernels are kept for this process only: %s", problem)
        return _own(state)
    _locks.append(held)
    if new:
        _remove_unused(place)
    return str(path)


@cache
def _place() -> Path:
    """The directory of all states: in $NUMBA_CACHE_DIR, else $XDG_CACHE_HOME, else ~/.cache, else a temporary one.

    The temporary one has the user's number in its name if it is the user's own; otherwise it belongs to this process.
    """
    problems = []
    for place in _candidates():
        try:
            _make_private(place)
            problem = _problem(place)
            if problem is None:
                with tempfile.TemporaryFile(dir=place):
                    return place
        except OSError as error:
            problem = f"{place}: {reason(error)}"
        problems.append(problem)
    log.warning("compiled kernels are kept for this process only: %s", "; ".join(problems))
    return Path(_own(""))


def _candidates() -> list[Path]:
    named = config.CACHE_DIR or os.environ.get("XDG_CACHE_HOME")
    try:
        usual = Path(named) if named else Path.home() / ".cache"
        found = [usual.absolute() / NAME]
    except RuntimeError:  # a user without a home
        found = []
    return [*found, Path(tempfile.gettempdir()).absolute() / f"{NAME}-{_user()}"]


def _user() -> int:
    return os.geteuid() if hasattr(os, "geteuid") else 0


def _make_private(place: Path) -> None:
    """Make a directory that only this user may look into, and its missing parents, unless it exists."""
    for path in reversed([place, *place.parents]):
        if path == place or not path.exists():
            path.mkdir(mode=0o700, exist_ok=True)


def _problem(place: Path) -> str | None:
    """Why others could decide what is in a directory, and what to do about it; None if they cannot."""
    if not hasattr(os, "geteuid"):
        return None  # not a POSIX system: there are neither owners nor modes
    if place.is_symlink():
        return f"{place} is a link; name the directory that it leads to in NUMBA_CACHE_DIR"
    for path in dict.fromkeys([place, *place.parents, *place.resolve().parents]):
        at = path.lstat()
        if at.st_uid not in ((_user(),) if path == place else (_user(), 0)):
            return f"{path} belongs to another user"
        shared = stat.S_IMODE(at.st_mode) & 0o022 and not stat.S_ISLNK(at.st_mode)
        if shared and (path == place or not at.st_mode & stat.S_ISVTX):  # the sticky bit: only owners rename
            return f"other users can write {path} (chmod go-w)"
    return None


def _use(path: Path) -> IO[str]:
    """Lock a directory so that nobody removes it, after making it again if it was removed, and mark it as used."""
    while True:
        _make_private(path)
        used = path / USED
        try:
            os.close(os.open(used, os.O_WRONLY | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600))
            os.utime(used)
            held = lock(used, wait=True, shared=True)
        except FileNotFoundError:  # another process has just removed it
            continue
        assert held is not None
        return held


@cache
def _own(state: str) -> str:
    """A directory of this process, removed when it ends; ``state`` is only part of its name."""
    place = tempfile.mkdtemp(prefix=f"{NAME}-{state}")
    process = os.getpid()

    def drop() -> None:
        if os.getpid() == process:  # not in a forked copy
            shutil.rmtree(place, ignore_errors=True)

    atexit.register(drop)
    return place


def drop_damaged(directory: str) -> None:
    """Remove kernels that are not as they were written, so that they are compiled again: numba would fail over them,
    or run them.

    A process looks once, before it reads. What others have just written and not listed yet goes too.
    """
    if directory in _known:
        return
    known = _known[directory] = set()
    try:
        listed = set((Path(directory) / SUMS).read_bytes().splitlines(keepends=True))
    except OSError:  # nothing has been written yet
        listed = set()
    for path in Path(directory).glob(FILES):
        with suppress(OSError):
            if _sum_of(path) in listed:
                known.add(_written(path))
            else:
                log.info("%s is not as it was written; the kernel is compiled again", path)
                path.unlink()


def list_written(directory: str) -> None:
    """List the kernels that were written to a directory since this process looked there; others may list at once."""
    known = _known.setdefault(directory, set())
    with suppress(OSError), (Path(directory) / SUMS).open("ab", buffering=0) as sums:
        for path in Path(directory).glob(FILES):
            written = _written(path)
            if written not in known:
                sums.write(_sum_of(path))
                known.add(written)


def _written(path: Path) -> tuple[str, int]:
    return path.name, path.stat().st_mtime_ns


def _sum_of(path: Path) -> bytes:
    """A file's line in ``SUMS``; b"" for one that the disk cannot read."""
    try:
        return f"{zlib.crc32(path.read_bytes()):08x} {path.name}\n".encode()
    except OSError:
        return b""


def _remove_unused(place: Path) -> None:
    """Remove states that nobody has used for ``DAYS`` days, or that are not among the ``KEPT`` last used ones and
    have not been used for ``YOUNG`` days. States in use, and whatever this program has not made, stay.
    """
    remove_leftovers(place)
    found = []
    for path in place.iterdir():
        if re.fullmatch("[0-9a-f]{16}", path.name) and not path.is_symlink() and (path / USED).is_file():
            found.append(((path / USED).stat().st_mtime, path))
    for rank, (used, path) in enumerate(sorted(found, reverse=True)):
        days = (time.time() - used) / DAY
        if days < (DAYS if rank < KEPT else YOUNG):
            continue
        try:
            held = lock(path / USED)
            if held is not None:
                remove(path)
                held.close()
        except OSError as error:
            log.debug("%s stays: %s", path, error)
