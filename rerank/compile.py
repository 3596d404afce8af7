"""``kernel``: the decorator of all compiled code, numba's ``njit`` with an on-disk cache that can be trusted.

numba's own cache notices edits in the file of a kernel only. Kernels here call leaves in other files, so the
cache directory is keyed by a digest of every source file that holds kernels; a changed leaf means a new
directory. The directory lies in the user's cache, so a read-only installation works too.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core import config as _config

F = TypeVar("F", bound=Callable[..., Any])
config: Any = _config  # numba fills the module's attributes at run time


def _kernel_digest() -> str:
    """Digest of all sources of the package that define kernels."""
    digest = hashlib.sha256(numba.__version__.encode())
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        source = path.read_bytes()
        if b"@kernel" in source:
            digest.update(path.name.encode())
            digest.update(source)
    return digest.hexdigest()[:16]


def _cache_directory() -> str:
    """Where compiled kernels are kept: $NUMBA_CACHE_DIR, else the user's cache, else a temporary directory."""
    base = Path(config.CACHE_DIR or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    directory = base / "rerank-kernels" / _kernel_digest()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            return str(directory)
    except OSError:
        return str(Path(tempfile.gettempdir()) / f"rerank-kernels-{os.getuid()}" / directory.name)


CACHE_DIRECTORY = _cache_directory()


def kernel(function: F) -> F:
    """Compile ``function`` with numba in nopython mode, cached on disk; strict IEEE arithmetic, no fast-math.

    Sums are evaluated in the order in which they are written, so results have the same bits on every machine. A
    division by zero gives an infinity or NaN, no exception.

    Kernels allocate nothing: every array, scratch space too, comes from the caller, and slices of arguments may be
    written but not returned. numba's runtime is therefore switched off (``_nrt=False``; a kernel that allocates does
    not compile: "NRT required but not enabled"). Without it no references are counted, which makes leaves that take
    tuples of arrays some ten times faster.
    """
    before = config.CACHE_DIR
    config.CACHE_DIR = CACHE_DIRECTORY
    try:
        options: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy", "_nrt": False}
        return cast(F, numba.njit(**options)(function))
    finally:
        config.CACHE_DIR = before
