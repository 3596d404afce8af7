"""``kernel``: the decorator of all compiled code, numba's ``njit`` with an on-disk cache that can be trusted.

numba's own cache notices only edits of the file that a kernel is in. Kernels call leaves in other files, so the cache
directory is keyed by a digest of sources: of every file of this program that holds kernels or, for a user's own kernel,
of its module and what that imports. A changed leaf means a new directory.
"""

import gc
import sys
import threading
from collections.abc import Callable
from functools import cache, cached_property, update_wrapper
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from llvmlite import ir
from numba.core import cgutils as _cgutils
from numba.core import event as _event
from numba.core import types as _types

# Where numba looks first for what indexing gives: after its declarations of strings, dicts and lists, which its cache
# would have imported before, every line that indexes an array would try those in vain.
from numba.core.typing import arraydecl as _arraydecl  # noqa: F401
from numba.extending import intrinsic, models, register_model, typeof_impl

from rerank.kernels.directory import config, seal, state_directory
from rerank.kernels.sources import PACKAGE, kernel_state

F = TypeVar("F", bound=Callable[..., Any])
OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False, "no_cfunc_wrapper": True}
# What would take Python's arguments apart would be most of a leaf with a large state.
LEAF = OPTIONS | {"no_cpython_wrapper": True}
cgutils: Any = _cgutils  # it has no types
event: Any = _event
types: Any = _types  # typed in part
_naming = threading.Lock()


class Leaf(types.Callable, types.Dummy):  # type: ignore[misc]
    """The functions that kernels call: functions that are compiled once for arguments of the same types, whoever calls.

    Constants are no types of their own, and what was read from an array of int32 is taken as an int64. What takes a
    tuple of arrays is inlined: a call would hand over each of them, of a corpus or a state, in pieces, list by list.
    """

    def __init__(self, function: Callable[..., Any], pick: Callable[..., Any]) -> None:
        self.called, self.inlined = cache(numba.njit(**LEAF)), cache(numba.njit(**LEAF, forceinline=True))
        self.pick = pick
        self.entries: dict[Any, Any] = {}
        super().__init__(f"{function.__module__}.{function.__qualname__} at {id(function):x}")

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        args = [types.unliteral(kind) for kind in args]
        args = [types.int64 if kind == types.int32 else kind for kind in args]
        takes_tuple = any(isinstance(kind, types.NamedTuple) for kind in args)
        leaf = types.Dispatcher((self.inlined if takes_tuple else self.called)(self.pick(*args)))
        signature = leaf.get_call_type(context, args, kws)
        self.entries[signature.args] = leaf.get_impl_key(signature)
        return signature

    def get_call_signatures(self) -> tuple[list[Any], bool]:
        return [], True

    def get_impl_key(self, sig: Any) -> Any:
        return self.entries[sig.args]


register_model(Leaf)(models.OpaqueModel)


class Called:
    """A function that kernels call as a ``leaf``, and Python in another way."""

    leaf: Leaf


@typeof_impl.register(Called)
def _type_of(called: Called, _: Any) -> Leaf:
    return called.leaf


class Kernel(Called):
    """A function compiled for the types that it is called with, and kept with a state of sources, if one is named."""

    def __init__(self, function: Callable[..., Any], state: str | None) -> None:
        self.function, self.state = function, state
        self.leaf = Leaf(function, lambda *_: function)
        update_wrapper(self, function)

    @cached_property
    def compiled(self) -> Any:
        """The functions that Python calls."""
        with _naming:  # threads of a program share what names the directory
            before = config.CACHE_DIR
            directory = self.state and state_directory(self.state)
            try:
                config.CACHE_DIR = directory or before
                made = numba.njit(**OPTIONS, cache=bool(directory))(self.function)
                if directory:
                    seal(made)
                return made
            finally:
                config.CACHE_DIR = before

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self.compiled(*arguments, **named)

    def __reduce__(self) -> str:
        return self.function.__qualname__


def _compiled(function: F, state: str | None) -> F:
    return function if config.DISABLE_JIT else cast(F, Kernel(function, state))


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
    return _compiled(function, kernel_state(function.__module__, function.__code__.co_filename))


@cache
def kernel_of(function: F, kind: type) -> F:
    """The kernel ``function`` for a class that gives bodies to what it calls (see ``by_type``).

    For a class of a user's own module this is a kernel apart, kept with that module's: it is compiled again when the
    module has changed, and what other programs keep names no module that they do not have. A class of a script is
    another one in every process, so nothing is kept for it.
    """
    file = getattr(sys.modules.get(kind.__module__), "__file__", None) or ""
    if Path(file).is_relative_to(PACKAGE) or not isinstance(function, Kernel):
        return function
    state = None if kind.__module__ == "__main__" else kernel_state(kind.__module__, file)
    return _compiled(cast(F, function.function), state)


def machine_code(function: Callable[..., Any], *arguments: Any) -> Callable[..., Any]:
    """A kernel's code for arguments of these types, compiled or loaded if need be; what is no kernel is given back.

    It does not look at the types of what it is given, as a call of the kernel does: for tuples of dozens of arrays that
    takes longer than many a kernel. Call it only with values of the same types.
    """
    if not isinstance(function, Kernel):
        return function
    return cast(Callable[..., Any], function.compiled.compile(tuple(map(numba.typeof, arguments))))


class _Compiling(event.Listener):  # type: ignore[misc]
    """Shows when kernels are compiled, each with those that it calls.

    A compiler leaves little garbage among many objects, and looking for it takes a tenth of the time, so Python's
    collector waits.
    """

    depth = 0
    collects = False  # Python, apart from this

    def on_start(self, _: Any) -> None:
        from rerank.base.progress import Compilation  # rich: only where something is shown

        self.depth += 1
        if self.depth == 1:
            self.collects = gc.isenabled()
            gc.disable()
            Compilation.begin()

    def on_end(self, _: Any) -> None:
        from rerank.base.progress import Compilation

        self.depth -= 1
        if self.depth == 0:
            Compilation.end()
            if self.collects:
                gc.enable()


event.register("numba:compile", _Compiling())


def _generate_prefetch(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """The instructions of ``prefetch``."""
    data = context.make_array(signature.args[0])(context, builder, arguments[0])
    stride = cgutils.unpack_tuple(builder, data.strides)[0]
    address = builder.add(builder.ptrtoint(data.data, ir.IntType(64)), builder.mul(stride, arguments[1]))
    pointer, number = builder.inttoptr(address, ir.IntType(8).as_pointer()), ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [pointer.type, number, number, number])
    function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
    builder.call(function, [pointer, number(0), number(3), number(1)])  # to read, into all caches, data
    return context.get_dummy_value()


def _type_prefetch(_context: Any, array: Any, index: Any) -> Any:  # noqa: ARG001 - numba counts the arguments
    """Ask the processor to load array[index] (on the first axis, no wraparound) into its caches; it changes nothing.

    Lists are visited in random order: without this, every one of them would begin with a wait for memory.
    """
    return types.void(array, types.intp), _generate_prefetch


prefetch: Any = intrinsic(_type_prefetch)
