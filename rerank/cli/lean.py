"""A start without what numba loads to look around: scipy's linear algebra, a twelfth of `rerank rerank` with a list."""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from typing import Any

ASKS, ANSWER = "numba.np.arraymath", "_HAVE_BLAS"  # the module that asks, and its global that says what it has found


class _NoBlas(MetaPathFinder):
    """Tells numba that there is no scipy.linalg while it finds out whether np.cov is to use it, or loops of its own.

    No kernel calls np.cov, which allocates. Whoever else asks, or asks later, finds scipy.linalg.
    """

    def find_spec(self, name: str, path: Any, target: Any = None) -> None:  # noqa: ARG002 - Python passes them
        """See ``MetaPathFinder``."""
        if name == "scipy.linalg" and ASKS in sys.modules and not hasattr(sys.modules[ASKS], ANSWER):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def leave_out_blas() -> None:
    """Let numba start without scipy.linalg, in this process."""
    sys.meta_path.insert(0, _NoBlas())
