"""Files and directories that appear under their names only when they are complete: arrays, and output that may be
compressed.

While it is being written, what becomes NAME has the name ``.NAME.XXXXXXXX.rerank`` beside it, and its writer holds a
lock on it. What a killed process has left under such a name, which nobody holds, is removed by the next writer of NAME.
Arrays are .npy and .npz by numpy, without objects; what does not fit is a ValueError that names the file.
"""

import bz2
import errno
import fcntl
import glob
import gzip
import hashlib
import lzma
import os
import re
import secrets
import shutil
import struct
import sys
import tempfile
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, Self

import numpy as np
import zstandard
from numpy.typing import DTypeLike

from rerank.base.errors import DISK_FULL, DataError, RecipeError, RunError
from rerank.base.interrupts import defer_signals
from rerank.storage.documents import as_json, check_plain, read_object

# What reading a damaged file may raise: not there, cut short, a missing key, a wrong type, out of range.
DAMAGE = (
    OSError, EOFError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError,
)  # fmt: skip
# What numpy and zipfile raise in addition.
FAULTS = (
    zipfile.BadZipFile, zlib.error, struct.error, tokenize.TokenError, SyntaxError, NotImplementedError, RuntimeError,
    MemoryError,
)  # fmt: skip
_SUFFIXES = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz", ".zst": "zstd"}
# What compresses into another file, which stays open. gzip headers carry no time and no name, so the same data gives
# the same bytes; level 4 takes half the time of the usual 6, and a seventh more room.
WRITING: dict[str, Callable[[Any], Any]] = {
    "plain": lambda raw: raw,
    "gzip": lambda raw: gzip.GzipFile(filename="", mode="wb", fileobj=raw, compresslevel=4, mtime=0),
    "bzip2": partial(bz2.BZ2File, mode="wb"), "xz": partial(lzma.LZMAFile, mode="wb"),
    "zstd": lambda raw: zstandard.ZstdCompressor().stream_writer(raw, closefd=False),
}  # fmt: skip


def read_array(
    path: Path, dtype: DTypeLike | None = None, ndim: int | None = None, *, mmap: bool = False
) -> np.ndarray:
    """The array of numbers in an .npy file, memory-mapped (read-only) or in memory.

    dtype, ndim: what they must be, if given.
    """
    check_plain(path)
    try:
        # Mapped in any case: a header that promises more than the file holds gets no memory.
        array = np.lib.format.open_memmap(path, mode="r")
    except (*FAULTS, ValueError) as error:
        raise ValueError(f"{path.name}: not an array file: {error}") from None
    if array.dtype.kind not in "biuf" or not array.dtype.isnative:
        raise ValueError(f"{path.name}: its entries are {array.dtype}; expected plain numbers")
    if dtype is not None and array.dtype != np.dtype(dtype):
        raise ValueError(f"{path.name}: its numbers are {array.dtype}; expected {np.dtype(dtype)}")
    if ndim is not None and array.ndim != ndim:
        raise ValueError(f"{path.name}: it has {array.ndim} axes; expected {ndim}")
    if (size := path.stat().st_size - array.offset) != array.nbytes:
        message = f"{array.dtype} {array.shape} takes {array.nbytes:,} bytes, the file has {size:,} after its header"
        raise ValueError(f"{path.name}: {message}")
    return array if mmap else np.array(array)


def save_arrays(directory: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays, without objects, into a directory, each as an .npy file of its name."""
    for name, array in arrays.items():
        np.save(directory / f"{name}.npy", array, allow_pickle=False)


class ArrayFile:
    """An .npy file whose rows are written as they come; a context manager, at whose end it is what np.save writes."""

    def __init__(self, path: Path, dtype: DTypeLike) -> None:
        self._stream, self._dtype, self._shape = path.open("wb"), np.dtype(dtype), (0,)

    def append(self, rows: np.ndarray) -> None:
        """Write further rows, all of one shape."""
        if self._stream.tell() == 0:
            self._shape = (0, *rows.shape[1:])
            self._write_header()
        self._shape = (self._shape[0] + len(rows), *rows.shape[1:])
        np.ascontiguousarray(rows, self._dtype).tofile(self._stream)

    def _write_header(self) -> None:
        """Numpy leaves room in headers for a number of rows that grows: all have the same size."""
        descr = np.lib.format.dtype_to_descr(self._dtype)
        header = {"descr": descr, "fortran_order": False, "shape": self._shape}
        np.lib.format.write_array_header_1_0(self._stream, header)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        with self._stream:
            self._stream.seek(0)
            self._write_header()


def read_archive(path: Path) -> dict[str, np.ndarray]:
    """The arrays of numbers in an .npz file, by name."""
    check_plain(path)
    try:
        with np.load(path) as archive:
            return {name: archive[name] for name in archive.files}
    except (*FAULTS, *DAMAGE) as error:
        raise ValueError(f"{path.name}: not an archive of arrays: {error}") from None


_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_OLD = ".old"
CHECKSUMS = "checksums.json"  # SHA-256 of the files of a directory: a change by a disk, a copy or a hand is noticed


def temporary_path(target: Path) -> Path:
    """A free name next to ``target`` for what will become it."""
    return target.with_name(f".{target.name[:100]}.{secrets.token_hex(4)}.rerank")


def _claim(target: Path, directory: bool) -> tuple[Path, int]:
    """A new file or ``directory`` next to ``target``, and a descriptor by which it is held until that is closed.

    What others have left while they wrote ``target``, and do not hold, is removed.
    """
    for leftover in () if target.name.endswith(_OLD) else target.parent.glob(_temporaries(target.name)):
        with suppress(OSError), _open(leftover) as descriptor:  # where another writes it, or has removed it, it stays
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _delete(leftover)
    while True:
        path = temporary_path(target)
        path.mkdir() if directory else path.touch(exist_ok=False)
        with suppress(FileNotFoundError):  # another has taken it for left before it was held
            descriptor = os.open(path, os.O_RDONLY)
            with suppress(OSError):  # a file system without locks
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            if path.exists():
                return path, descriptor
            os.close(descriptor)


def _temporaries(name: str) -> str:
    """A pattern of the temporary names of ``name``."""
    return f".{glob.escape(name[:100])}.{'[0-9a-f]' * 8}.rerank"


@contextmanager
def _open(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def remove_leftovers(directory: Path, pattern: str = f".*.{'[0-9a-f]' * 8}.rerank") -> None:
    """Remove what is half-written in ``directory`` (not below it); nobody else may be writing there."""
    for path in directory.glob(pattern):
        _delete(path)


@contextmanager
def scratch(beside: Path | str, *, directory: bool = True) -> Iterator[Path]:
    """A directory (or file) next to ``beside`` (which need not exist) for the duration of the block."""
    target = Path(beside)
    with write_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        path, descriptor = _claim(target, directory)
        try:
            yield path
        finally:
            with defer_signals():
                _delete(path)
                os.close(descriptor)


@contextmanager
def new_directory(target: Path | str, *, keep: bool = False, synced: bool = True) -> Iterator[Path]:
    """A directory to write into; it is renamed to ``target`` when the block ends without an error.

    It replaces an empty directory, or one that this program has written (see ``foreign``). With ``keep``, a ``target``
    that exists by then stays: for directories that several processes may make at the same time, all with the same
    content. synced: only when its files are on disk.
    """
    path = Path(target)
    with scratch(path) as new:
        yield new
        for file in new.iterdir() if synced else ():
            _sync(file)
        with defer_signals():
            old = temporary_path(_before(path))
            if path.is_dir():
                if keep:
                    return
                if (other := foreign(path)) is not None:
                    raise RunError(f"{other} was not written by this program; move it, or write elsewhere than {path}")
                path.rename(old)
            try:
                new.rename(path)
            except OSError:
                if keep and path.is_dir():  # another process has just done the same
                    return
                if old.exists():
                    old.rename(path)
                raise
            remove_leftovers(path.parent, _temporaries(_before(path).name))


def find_directory(target: Path) -> Path:
    """The place of a directory: ``target``, or beside it, if a process was killed while it was replaced."""
    if target.exists():
        return target
    return next(target.parent.glob(f".{glob.escape(_before(target).name)}.*.rerank"), target)


def _before(target: Path) -> Path:
    """The path whose temporary name a directory has while another replaces it."""
    return target.with_name(f"{target.name[:90]}{_OLD}")


@contextmanager
def new_file(target: Path | str) -> Iterator[Path]:
    """A path to write a file at; it is renamed to ``target`` when the block ends without an error."""
    with scratch(target, directory=False) as temporary:
        yield temporary
        _sync(temporary)  # a complete file gets its name, but not before its data are on disk
        temporary.replace(target)


def write_text(path: Path | str, text: str) -> None:
    """Write a text file, whole or not at all."""
    with new_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def remove(path: Path) -> None:
    """Remove a file or directory; a directory loses its name before its content, so that nobody finds half of it."""
    if path.is_dir() and not path.is_symlink():
        with defer_signals():
            path = path.rename(temporary_path(path))
            _delete(path)
    else:
        path.unlink(missing_ok=True)


def _delete(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


@contextmanager
def write_errors(path: Path) -> Iterator[None]:
    """Turn an error of the system into one that names what was to be written."""
    check_output(path)
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise RunError(f"cannot write {path}: {reason(error)}") from error


def check_output(path: Path) -> None:
    """Check that an output has a name, in a folder."""
    if path.name in ("", ".."):
        raise RecipeError(f"cannot write {path}: expected the name of a file or folder")
    if len(path.parts) > 1 and _SCHEME.fullmatch(path.parts[0]):
        raise RecipeError(f"cannot write {path}: this is a URL; write to a folder, and copy it there")


def reason(error: OSError) -> str:
    """The error in words; numpy gives no reason for a write that fell short."""
    if error.strerror is None and "requested and" in str(error):
        return f"the disk is full, or files may not be so large ({error})"
    return str(error.strerror or error)


def _sync(path: Path) -> None:
    """Wait until the data are on disk: otherwise, when the power fails, the rename may survive without them."""
    with _open(path) as descriptor:
        try:
            os.fsync(descriptor)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EBADF):  # a file system that cannot
                raise


def lock(path: Path, *, wait: bool = False) -> IO[str] | None:
    """The locked file at ``path``, made if it is not there, open to be read and added to; closing it ends the lock, as
    does the end of the process.

    None if another process holds it, unless told to wait. Where the file system has no locks, nobody holds any.
    """
    while True:
        file = path.open("a+", encoding="utf-8", errors="replace")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            file.close()
            return None
        except OSError:  # a file system without locks
            return file
        except BaseException:
            file.close()
            raise
        # The last holder may have removed the file before it gave up the lock.
        if path.exists() and os.path.samestat(os.fstat(file.fileno()), path.stat()):
            return file
        file.close()


def digest(path: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal digits."""
    check_plain(path)
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def seal(directory: Path) -> None:
    """Write the digests of all files in a directory (not below it) next to them, in ``checksums.json``."""
    files = {
        path.name: digest(path) for path in sorted(directory.iterdir()) if path.is_file() and path.name != CHECKSUMS
    }
    (directory / CHECKSUMS).write_text(as_json({"files": files}, indent=1) + "\n", encoding="utf-8")


def verify(directory: Path) -> None:
    """Check that the files in a directory are those that ``seal`` saw."""
    for name, checksum in read_object(directory / CHECKSUMS)["files"].items():
        if (actual := digest(directory / name)) != checksum:
            raise ValueError(f"{name}: its checksum is {actual}; it was {checksum} when the file was written")


def foreign(directory: Path) -> Path | None:
    """A file in a directory that was not written with the others, whose names are in ``checksums.json`` or in the
    header of a model; None if there is none, or no directory."""
    names = set[str]()
    for name in (CHECKSUMS, "model.json"):
        try:
            names |= {name, *dict(read_object(directory / name)["files"])}
        except DAMAGE:
            continue
    return next((path for path in sorted(directory.glob("*")) if path.name not in names), None)


def compression_of_name(path: str) -> str:
    """The compression that the extension of ``path`` asks for, or "plain"."""
    return _SUFFIXES.get(os.path.splitext(path)[1].lower(), "plain")


@dataclass(frozen=True)
class OutputStream:
    """A file being written; what goes to ``file`` comes out of ``raw``, compressed if they are not the same."""

    file: Any
    raw: IO[bytes]

    def write(self, data: bytes, /) -> None:
        """Write all of ``data``."""
        self.file.write(data)

    def flush(self) -> None:
        """Let whoever reads standard output, or a pipe, have what was written so far."""
        if self.file is self.raw:
            self.raw.flush()


@contextmanager
def open_output(path: str | os.PathLike[str], whole: bool = False) -> Iterator[OutputStream]:
    """A file that gets its name at the end of the block, unless that ends with an error; "-" is standard output. If the
    name ends in .gz, .bz2, .xz or .zst, the file is compressed.

    whole: standard output, too, gets everything at the end, or nothing.
    """
    name = os.fspath(path)
    try:
        with ExitStack() as stack:
            if name == "-":
                raw: Any = stack.enter_context(tempfile.TemporaryFile()) if whole else sys.stdout.buffer
            else:
                target = Path(os.path.realpath(name))
                os.stat(target.parent)
                if not target.exists() or target.is_file():
                    target = stack.enter_context(new_file(target))
                raw = stack.enter_context(open(target, "wb"))  # a device or a pipe; a directory fails here
            file = WRITING[compression_of_name(name)](raw)
            try:
                yield OutputStream(file, raw)
            except BaseException:
                with suppress(OSError, ValueError):  # a full disk, once more
                    raw.flush() if file is raw else file.close()
                raise
            if file is not raw:
                file.close()
            raw.flush()
            if name == "-" and whole:
                raw.seek(0)
                shutil.copyfileobj(raw, sys.stdout.buffer)
                sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise  # whoever reads the pipe has stopped: not a failure of the output
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise DataError("the name is longer than the system allows", path=name) from None
        reason, full = error.strerror or error, error.errno in DISK_FULL
        hint = "free some space, or write it elsewhere" if full else "name a file in an existing, writable directory"
        raise RunError(f"cannot write {name}: {reason}; {hint}") from None
