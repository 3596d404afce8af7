"""Compilation by numba: imported with the first kernel that is called, as it takes longer than numpy.

Compiled kernels are kept in one directory for each state of their sources, which only this user can write. numba
unpickles what it finds there, so whoever can write there can run code: a directory of another user, or one that others
can write, is not used, and what is not as it was written is removed before.
"""

import fcntl
import gc
import logging
import os
import pickle
import shutil
import stat
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numba
from llvmlite import ir
from numba.core import cgutils as _cgutils
from numba.core import config as _config
from numba.core import event as _event
from numba.core import types as _types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler

# Where numba looks first for what indexing gives: after its declarations of strings, dicts and lists, which its cache
# would have imported before, every line that indexes an array would try those in vain.
from numba.core.typing import arraydecl as _arraydecl  # noqa: F401
from numba.core.typing.templates import builtin_registry
from numba.extending import intrinsic, models, register_model

from rerank.storage.files import lock, reason

OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False, "no_cfunc_wrapper": True}
cgutils: Any = _cgutils  # it has no types
config: Any = _config  # numba fills the module's attributes at run time
event: Any = _event
types: Any = _types  # typed in part
_naming = threading.Lock()
log = logging.getLogger("rerank")
NAME = "rerank-kernels"
DIGEST = 32  # bytes behind what numba keeps
MAX_STATES = 64  # the states that were used last stay; one takes some 5 MB
USER = os.geteuid() if hasattr(os, "geteuid") else None  # None: not a POSIX system, without owners and modes


class _LeafCode(JITCodeLibrary):
    """The code of a leaf: whoever calls it takes it in, optimises it and makes machine code of it, with its own."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalized = True


class _LeafCompiler(Compiler):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)  # type: ignore[no-untyped-call]
        self.state.flags.no_compile = True
        self.state.library = _LeafCode(self.state.targetctx.codegen(), "leaf")  # type: ignore[no-untyped-call]


# What would take Python's arguments apart would be most of a leaf with a large state.
LEAF = OPTIONS | {"no_cpython_wrapper": True, "pipeline_class": _LeafCompiler}


class Leaf(types.Callable, types.Dummy):  # type: ignore[misc]
    """The functions that kernels call: functions that are compiled once for arguments of the same types, whoever calls.

    Constants are no types of their own, and what was read from an array of int32 is taken as an int64. What takes a
    tuple of arrays is inlined: a call would hand over each of them, of a corpus or a state, in pieces, list by list.
    """

    def __init__(self, function: Callable[..., Any], pick: Callable[..., Any]) -> None:
        self.called, self.inlined = cache(numba.njit(**LEAF)), cache(numba.njit(**LEAF, forceinline=True))
        self.pick = pick
        self.compiled: dict[Any, Any] = {}
        super().__init__(f"{function.__module__}.{function.__qualname__} at {id(function):x}")

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:  # noqa: ARG002
        args = [types.unliteral(kind) for kind in args]
        args = [types.int64 if kind == types.int32 else kind for kind in args]
        takes_tuple = any(isinstance(kind, types.NamedTuple) for kind in args)
        compiler = (self.inlined if takes_tuple else self.called)(self.pick(*args))._compiler
        names, args = compiler.fold_argument_types(args, kws)
        if args not in self.compiled:
            self.compiled[args] = code = compiler.compile(args, None)
            code.target_context.insert_user_function(code.library, code.fndesc, [code.library])
        return self.compiled[args].signature.replace(pysig=names)

    def get_call_signatures(self) -> tuple[list[Any], bool]:
        return [], True

    def get_impl_key(self, sig: Any) -> Any:
        return self.compiled[sig.args].library


register_model(Leaf)(models.OpaqueModel)


@cache
def state_directory(state: str) -> str | None:
    """The directory of a state (16 hexadecimal digits) of the kernels' sources, made if need be.

    It is below $NUMBA_CACHE_DIR, else $XDG_CACHE_HOME, else ~/.cache, else in a temporary directory; None, with a
    warning, if neither can be used.
    """
    base = config.CACHE_DIR or os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    problems = []
    for folder in (Path(base).absolute() / NAME, Path(tempfile.gettempdir()).absolute() / f"{NAME}-{USER}"):
        try:
            for path in (folder, folder / state):
                path.mkdir(mode=0o700, parents=True, exist_ok=True)
                _check_owner(path)
            os.utime(folder / state)  # used now
        except OSError as error:
            problems.append(f"{folder}: {reason(error)}")
        else:
            _remove_unused(folder)
            return str(folder / state)
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
        file._dump = lambda index: (content := dump(index)) + sha256(content).digest()
        save, name = file.save, file._index_name.removesuffix(".nbi")

        def save_apart(key: Any, data: Any) -> None:
            file._data_name = lambda _: f"{name}.{sha256(dump(key)).hexdigest()[:16]}.nbc"
            save(key, data)

        file.save = save_apart


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Within the block no other process is in one with the same ``path``, where files can be locked."""
    file = None
    with suppress(OSError):  # another process has removed the directory as one that nobody uses
        file = lock(path, wait=True)
    try:
        yield
    finally:
        if file is not None:
            with suppress(OSError):  # a file system without locks
                fcntl.flock(file, fcntl.LOCK_UN)  # closing leaves it to processes that were forked meanwhile
            file.close()


def _compile_alone(dispatcher: Any, directory: str) -> None:
    """Let one process at a time compile a function for the same types: the next one finds it on disk."""
    compile_one = dispatcher.compile

    def compile_alone(kinds: Any) -> Any:
        name = sha256(f"{dispatcher._cache._cache_file._index_name} {kinds}".encode()).hexdigest()[:16]
        with alone(Path(directory, f"{name}.lock")):
            return compile_one(kinds)

    dispatcher.compile = compile_alone


def _drop_damaged(directory: Path, name: str) -> None:
    """Remove what is kept of functions of a name, where it is not as it was written: numba would fail over it, or run
    what it has become."""
    version = pickle.dumps(numba.__version__, protocol=-1)  # which an index begins with
    for path in directory.rglob(f"*{name}*.nb[ic]"):
        content = b""
        with suppress(OSError):  # another process has removed it, or it cannot be read
            content = path.read_bytes()
        data = content.removeprefix(version) if path.suffix == ".nbi" else content
        if sha256(data[:-DIGEST]).digest() != data[-DIGEST:]:
            path.unlink(missing_ok=True)


def _remove_unused(folder: Path) -> None:
    """Remove states but those that were used last; a process that still runs makes its directory again."""
    with suppress(OSError):  # another process is at it
        for path in sorted(folder.glob("[0-9a-f]" * 16), key=lambda path: path.stat().st_mtime)[:-MAX_STATES]:
            shutil.rmtree(path, ignore_errors=True)


def compiled(function: Callable[..., Any], state: str | None) -> Any:
    """``function`` as Python calls it: compiled for the types that it is called with, and kept with a state."""
    with _naming:  # threads of a program share what names the directory
        before = config.CACHE_DIR
        directory = state and state_directory(state)
        try:
            config.CACHE_DIR = directory or before
            dispatcher = numba.njit(**OPTIONS, cache=bool(directory))(function)
            if directory:
                _drop_damaged(Path(directory), function.__name__.strip("<>"))  # which numba leaves out of file names
                seal(dispatcher)
                _compile_alone(dispatcher, directory)
            return dispatcher
        finally:
            config.CACHE_DIR = before


class _Compiling(event.Listener):  # type: ignore[misc]
    """Shows when kernels are compiled, each with those that it calls.

    A compiler leaves little garbage among many objects, and looking for it takes a tenth of the time, so Python's
    collector waits, and takes them for old ones then: it would go through all of them at once as soon as it may.
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
                if not gc.get_freeze_count():  # what a program has frozen itself stays so
                    gc.freeze()
                    gc.unfreeze()  # to the oldest objects
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


@intrinsic
def _prefetch(_context: Any, array: Any, index: Any) -> Any:  # noqa: ARG001 - numba counts the arguments
    """The body of ``compile.Prefetch`` in kernels."""
    return types.void(array, types.intp), _generate_prefetch


PREFETCH = next(kind for value, kind in builtin_registry.globals if value is _prefetch)  # its type, as numba has it
