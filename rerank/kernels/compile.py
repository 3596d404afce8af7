"""``kernel``: the decorator of all compiled code, numba's ``njit`` with an on-disk cache that can be trusted.

numba's own cache notices only edits of the file that a kernel is in. Kernels call leaves in other files, so the cache
directory is keyed by a digest of sources: of every file of this program that holds kernels or, for a user's own kernel,
of its module and what that imports. A changed leaf means a new directory.
"""

import os
import sys
from collections.abc import Callable
from functools import cache, cached_property, update_wrapper
from typing import Any, TypeVar, cast

from rerank.kernels.sources import kernel_state

F = TypeVar("F", bound=Callable[..., Any])
INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")


class Called:
    """A function that kernels call as a ``Leaf``, and Python in another way."""

    declared: Callable[..., Any]

    def pick(self, *types: Any) -> Callable[..., Any]:  # noqa: ARG002 - by_type looks at them
        """The function that is compiled for arguments of these types."""
        return self.declared

    @cached_property
    def _numba_type_(self) -> Any:
        """What numba takes it for, wherever a kernel names it."""
        from rerank.kernels.leaves import Leaf

        return Leaf(self.declared, self.pick)


class Kernel(Called):
    """A function compiled for the types that it is called with, and kept with a state of sources, if one is named."""

    def __init__(self, function: Callable[..., Any], state: str | None) -> None:
        self.declared, self.state = function, state
        update_wrapper(self, function)

    @cached_property
    def compiled(self) -> Any:
        """The functions that Python calls."""
        from rerank.kernels.leaves import compiled

        return compiled(self.declared, self.state)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self.compiled(*arguments, **named)

    def __reduce__(self) -> str:
        return self.declared.__qualname__


class Prefetch(Called):
    """Asks the processor to load array[index] (on the first axis, no wraparound) into its caches; it changes nothing.

    Lists are visited in random order: without this, every one of them would begin with a wait for memory.
    """

    @cached_property
    def _numba_type_(self) -> Any:
        from rerank.kernels.leaves import PREFETCH

        return PREFETCH

    def __call__(self, array: Any, index: int) -> None:
        """In Python there is nothing to do."""


prefetch: Any = Prefetch()


def _compiled(function: F, state: str | None) -> F:
    return function if INTERPRETED else cast(F, Kernel(function, state))


def kernel(function: F) -> F:
    """Compile ``function`` with numba in nopython mode, cached on disk; strict IEEE arithmetic, no fast-math.

    Sums are evaluated in the order in which they are written, so results have the same bits on every machine. A
    division by zero gives an infinity or NaN, not an exception.

    Kernels allocate nothing: every array, including scratch space, comes from the caller, and slices of arguments may
    be written but not returned. numba's runtime is therefore switched off (``_nrt=False``; a kernel that allocates does
    not compile: "NRT required but not enabled"). Without it no references are counted, which makes leaves that take
    tuples of arrays some ten times faster.

    Constants and leaves are frozen into the code: a user's own kernel is compiled again when its module, or one that
    the module imports from the same folder, has changed.
    """
    return _compiled(function, kernel_state({function.__module__: function.__code__.co_filename}))


@cache
def kernel_of(function: F, *kinds: type) -> F:
    """The kernel ``function`` for classes that give bodies to what it calls (see ``by_type``).

    It is a kernel apart for each of them: a call of one would take settings of other classes with fields of the same
    types for its own. For classes of a user's own modules it is kept with theirs: it is compiled again when one of the
    modules has changed, and what other programs keep names no module that they do not have. A class of a script is
    another one in every process, so nothing is kept for it.
    """
    if not isinstance(function, Kernel):
        return function
    modules = {function.declared.__module__, *(kind.__module__ for kind in kinds)}
    files = {module: getattr(sys.modules.get(module), "__file__", None) for module in modules}
    return _compiled(cast(F, function.declared), None if "__main__" in modules else kernel_state(files))


def thread_count() -> int:
    """The number of threads that may compute at once: one for each processor that this process may use, or as many as
    NUMBA_NUM_THREADS says; in a worker, beside which others compute, that is 1."""
    from numba import config

    return int(cast(Any, config).NUMBA_NUM_THREADS)
