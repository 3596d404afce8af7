"""``kernel``: the decorator of all compiled code, numba's ``njit`` with an on-disk cache that can be trusted.

numba's own cache notices only edits of the file that a kernel is in. Kernels call leaves in other files, so the cache
directory is keyed by a digest of sources: of every file of this program that holds kernels or, for a user's own kernel,
of its module and what that imports. A changed leaf means a new directory.
"""

import hashlib
import sys
from collections.abc import Callable
from functools import cache, cached_property
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from llvmlite import ir
from numba._dispatcher import compute_fingerprint as type_key  # bytes: the same for values of the same types
from numba.core import cgutils as _cgutils
from numba.core import config as _config
from numba.core import types as _types
from numba.core.registry import CPUDispatcher
from numba.extending import intrinsic

from rerank.kernels.cache import state_directory
from rerank.kernels.shortcuts import KeptKernels, KeptLeaves, KernelCompiler, LeafCompiler
from rerank.kernels.sources import PACKAGE, module_digest, name_of

__all__ = ["kernel", "kernel_of", "machine_code", "prefetch", "type_key"]
F = TypeVar("F", bound=Callable[..., Any])
OPTIONS: dict[str, Any] = {
    "nopython": True, "nogil": True, "error_model": "numpy", "_nrt": False, "no_cfunc_wrapper": True,
}  # fmt: skip
cgutils: Any = _cgutils  # it has no types
config: Any = _config  # numba fills the module's attributes at run time
types: Any = _types  # like the following, it is typed in part
Dispatcher: Any = CPUDispatcher


@cache
def _kernel_digest() -> str:
    """Digest of all sources of the package that define kernels, or how they are compiled: 16 hexadecimal digits."""
    digest = hashlib.sha256(numba.__version__.encode())
    for path in sorted(PACKAGE.rglob("*.py")):
        source = path.read_bytes()
        if path.parent.name == "kernels" or any(each in source for each in (b"@kernel", b"@body(", b"@by_type")):
            digest.update(path.name.encode())
            digest.update(source)
    return digest.hexdigest()[:16]


def _cache_directory(module: str, file: str) -> str | None:
    """Where kernels of a module are kept; None for one typed in interactively: no file says what it calls."""
    path = Path(file).absolute()
    if path.is_relative_to(PACKAGE):
        return state_directory(_kernel_digest())
    if not path.is_file():
        return None
    own = f"{_kernel_digest()} {module_digest(name_of(module), path)}"
    return state_directory(hashlib.sha256(own.encode()).hexdigest()[:16])


class _Called(Dispatcher):  # type: ignore[misc]
    """A kernel as other kernels call it: nothing takes Python's arguments, and numbers are of few types.

    Constants are no types of their own, and what was read from an array of int32 is taken as an int64, so that a leaf
    is not compiled once for each.
    """

    def get_call_template(self, args: Any, kws: Any) -> Any:
        args = [types.unliteral(each) for each in args]
        return super().get_call_template([types.int64 if each == types.int32 else each for each in args], kws)

    def enable_caching(self) -> None:
        self._cache = KeptLeaves(self.py_func)


class _Kernel(Dispatcher):  # type: ignore[misc]
    """A kernel as Python calls it, and in ``called`` as kernels do.

    For a leaf with a large state, code that takes Python's arguments apart would be most of what is compiled.
    """

    directory: str | None = None  # where machine code is kept

    def enable_caching(self) -> None:
        self._cache = KeptKernels(self.py_func)

    @cached_property
    def called(self) -> Any:
        """What kernels find when they call this one."""
        options = {**self.targetoptions, "no_cpython_wrapper": True}
        made = _Called(self.py_func, targetoptions=options, pipeline_class=LeafCompiler)
        return _kept(made, self.directory and f"{self.directory}/called")

    @property
    def _numba_type_(self) -> Any:
        return self.called._numba_type_


def _kept(made: Any, directory: str | None) -> Any:
    """A dispatcher that keeps its machine code in a directory, if one is named."""
    before = config.CACHE_DIR
    try:
        if directory:
            config.CACHE_DIR = directory
            made.enable_caching()
    finally:
        config.CACHE_DIR = before
    return made


def _compiled(function: F, directory: str | None) -> F:
    if config.DISABLE_JIT:
        return function
    made = _Kernel(function, targetoptions={**OPTIONS}, pipeline_class=KernelCompiler)
    made.directory = directory
    return cast(F, _kept(made, directory))


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
    return _compiled(function, _cache_directory(function.__module__, function.__code__.co_filename))


@cache
def kernel_of(function: F, kind: type) -> F:
    """The kernel ``function`` for a class that gives bodies to what it calls (see ``by_type``).

    For a class of a user's own module this is a kernel apart, kept with that module's: it is compiled again when the
    module has changed, and what other programs keep names no module that they do not have. A class of a script is
    another one in every process, so nothing is kept for it.
    """
    file = getattr(sys.modules.get(kind.__module__), "__file__", None) or ""
    if Path(file).is_relative_to(PACKAGE) or config.DISABLE_JIT:
        return function
    if kind.__module__ == "__main__":
        return _compiled(cast(F, cast(Any, function).py_func), None)
    return _compiled(cast(F, cast(Any, function).py_func), _cache_directory(kind.__module__, file))


def machine_code(function: Callable[..., Any], *arguments: Any) -> Callable[..., Any]:
    """A kernel's code for arguments of these types, compiled or loaded if need be.

    It does not look at the types of what it is given, as a call of the kernel does: for tuples of dozens of arrays that
    takes longer than many a kernel. Call it only with values that have the same ``type_key``. What is no kernel is
    given back.
    """
    if not isinstance(function, Dispatcher):
        return function
    return cast(Callable[..., Any], function.compile(tuple(map(function.typeof_pyval, arguments))))


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
