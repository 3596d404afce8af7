"""What a user sees of compilation: a progress of its own, and its time in no other rate."""

import gc
from typing import Any

from numba.core import event as _event

event: Any = _event  # it has no types


class _Compiling(event.Listener):  # type: ignore[misc]
    """Told by numba whenever the compilation of a kernel begins and ends, that of the kernels that it calls within it.

    What is read from the disk is not compiled. A compiler leaves little garbage among many objects, and looking for it
    takes a tenth of the time, so Python's collector waits.
    """

    depth = 0
    collects = False  # Python, apart from this

    def on_start(self, _: Any) -> None:
        self.depth += 1
        if self.depth == 1:
            from rerank.base.progress import Compilation  # rich: only where something is shown

            self.collects = gc.isenabled()
            gc.disable()
            Compilation.begin()

    def on_end(self, _: Any) -> None:
        self.depth -= 1
        if not self.depth:
            from rerank.base.progress import Compilation

            if self.collects:
                gc.enable()
            Compilation.end()


event.register("numba:compile", _Compiling())
