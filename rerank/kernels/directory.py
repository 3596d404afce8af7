"""The place of compiled kernels: one directory for each state of their sources, which only this user can write.

numba unpickles what it finds there, so whoever can write there can run code: a directory of another user, or one that
others can write, is not used.
"""

import logging
import os
import pickle
import shutil
import stat
import tempfile
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numba
from numba.core import config as _config

from rerank.storage.files import reason

config: Any = _config  # numba fills the module's attributes at run time
log = logging.getLogger("rerank")
NAME = "rerank-kernels"
DIGEST = 32  # bytes behind what numba keeps
KEPT = 64  # the states that were used last stay; one takes some 5 MB
USER = os.geteuid() if hasattr(os, "geteuid") else None  # None: not a POSIX system, without owners and modes


@cache
def state_directory(state: str) -> str | None:
    """The directory of a state (16 hexadecimal digits) of the kernels' sources, made if need be.

    It is below $NUMBA_CACHE_DIR, else $XDG_CACHE_HOME, else ~/.cache, else in a temporary directory; None, with a
    warning, if neither can be used.
    """
    named = config.CACHE_DIR or os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    problems = []
    for place in (Path(named).absolute() / NAME, Path(tempfile.gettempdir()).absolute() / f"{NAME}-{USER}"):
        try:
            for path in (place, place / state):
                path.mkdir(mode=0o700, parents=True, exist_ok=True)
                _check_owner(path)
            os.utime(place / state)  # used now
            _drop_damaged(place / state)
        except OSError as error:
            problems.append(f"{place}: {reason(error)}")
        else:
            _remove_unused(place)
            return str(place / state)
    log.warning("compiled kernels are kept for this process only: %s", "; ".join(problems))
    return None


def _check_owner(path: Path) -> None:
    """Raise OSError for a directory that another user owns or can write, and for a link to one."""
    status = path.lstat()
    if USER is not None and (stat.S_ISLNK(status.st_mode) or status.st_uid != USER or status.st_mode & 0o022):
        raise PermissionError(f"{path} is a link, or others own it or can write it; remove it, or set NUMBA_CACHE_DIR")


def seal(dispatcher: Any) -> None:
    """Let numba write a digest behind all that it keeps of a function; unpickling ends before it.

    Code goes to a file that is called by the types that it is for: numba would number them, and of two processes that
    compile a function for other types at once, one would run the other's.
    """
    with suppress(AttributeError):  # a numba that keeps functions otherwise: they are compiled in every process
        file = dispatcher._cache._cache_file
        dump = file._dump
        file._dump = lambda found: (content := dump(found)) + sha256(content).digest()
        save, name = file.save, file._index_name.removesuffix(".nbi")

        def save_apart(key: Any, data: Any) -> None:
            file._data_name = lambda _: f"{name}.{sha256(dump(key)).hexdigest()[:16]}.nbc"
            save(key, data)

        file.save = save_apart


def _drop_damaged(directory: Path) -> None:
    """Remove kernels that are not as they were written: numba would fail over them, or run what they have become."""
    version = pickle.dumps(numba.__version__, protocol=-1)  # which an index begins with
    for path in directory.rglob("*.nb[ic]"):
        content = path.read_bytes()
        kept = content.removeprefix(version) if path.suffix == ".nbi" else content
        if sha256(kept[:-DIGEST]).digest() != kept[-DIGEST:]:
            path.unlink(missing_ok=True)


def _remove_unused(place: Path) -> None:
    """Remove states but those that were used last; a process that still runs makes its directory again."""
    with suppress(OSError):  # another process is at it
        for path in sorted(place.glob("[0-9a-f]" * 16), key=lambda path: path.stat().st_mtime)[:-KEPT]:
            shutil.rmtree(path, ignore_errors=True)
