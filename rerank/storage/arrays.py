"""Arrays from files: .npy and .npz whose headers are checked before anything is allocated.

A header is what ``numpy.save`` writes, version 1.0 of the format: a type of one plain kind (no objects, no records),
the order of the axes, the shape. The rest of the file must have exactly the size that the header promises. Nothing is
evaluated or unpickled.
"""

import math
import os
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple, Protocol

import numpy as np
from numpy.typing import DTypeLike

# What reading a damaged file may raise: not there, cut short, a missing key, a wrong type, out of range.
DAMAGE = (
    OSError, EOFError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError,
)  # fmt: skip

_MAGIC = b"\x93NUMPY\x01\x00"
_HEADER = re.compile(
    rb"\{'descr': '([|<][biuf][1248])', 'fortran_order': (True|False), "
    rb"'shape': \(((?:\d{1,18}, ?){0,9}\d{0,18})\), \} *\n"
)
_MOST_RATIO = 1032  # deflate compresses no better than this: 258 bytes into 2 bits
_MOST_HEADER = len(_MAGIC) + 2 + 0xFFFF
# What zipfile raises on damaged archives: OSError where an offset lies before the file, UnicodeError in names.
_FAULTS = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, OverflowError, NotImplementedError, RuntimeError,
    UnicodeError,
)  # fmt: skip


class ArrayHeader(NamedTuple):
    """What the header of an array file says, and where its numbers begin."""

    dtype: np.dtype
    fortran: bool
    shape: tuple[int, ...]
    offset: int

    @property
    def size(self) -> int:
        """Size of the numbers in bytes."""
        return math.prod(self.shape) * int(self.dtype.itemsize)


class _Readable(Protocol):
    def read(self, n: int, /) -> bytes: ...


def read_header(stream: _Readable, name: str, room: int) -> ArrayHeader:
    """The header of an array file of ``room`` bytes.

    Raises
    ------
    ValueError: there is no such header, or the numbers after it are not as many bytes as it says.
    """
    start = stream.read(len(_MAGIC) + 2)
    if not start.startswith(_MAGIC) or len(start) < len(_MAGIC) + 2:
        raise ValueError(f"{name}: it does not begin like an array file (.npy, version 1.0)")
    length = int.from_bytes(start[-2:], "little")
    text = stream.read(length)
    found = _HEADER.fullmatch(text)
    if found is None or len(text) < length:
        raise ValueError(f"{name}: its header {text[:80]!r} is not that of an array of plain numbers")
    shape = tuple(int(n) for n in found[3].replace(b",", b" ").split())
    header = ArrayHeader(_dtype(found[1], name), found[2] == b"True", shape, len(start) + length)
    if header.size != room - header.offset:
        message = f"{header.dtype} {header.shape} takes {header.size:,} bytes, the file has {room - header.offset:,}"
        raise ValueError(f"{name}: {message} after its header")
    return header


def read_array(
    path: Path, dtype: DTypeLike | None = None, ndim: int | None = None, *, mmap: bool = False
) -> np.ndarray:
    """The array in an .npy file, memory-mapped (read-only) or in memory.

    dtype, ndim: what they must be, if given.

    Raises
    ------
    ValueError: not an array file, or not of the expected type or number of axes; begins with the file's name.
    OSError: it cannot be read.
    """
    with open_plain(path) as stream:
        header = read_header(stream, path.name, os.fstat(stream.fileno()).st_size)
        _expect(header, path.name, dtype, ndim)
        order = "F" if header.fortran else "C"
        if mmap:
            return np.memmap(stream, header.dtype, "r", header.offset, header.shape, order)  # type: ignore[call-overload,no-any-return]
        array = np.fromfile(stream, header.dtype, math.prod(header.shape))
        return array.reshape(header.shape, order=order)  # type: ignore[call-overload,no-any-return]


def lay_array(path: Path, dtype: DTypeLike, shape: tuple[int, ...]) -> None:
    """Make an .npy file of zeros, to be filled by ``write_rows``.

    Raises
    ------
    OSError: it cannot be written.
    """
    kind = np.dtype(dtype)
    with path.open("xb") as out:
        np.lib.format.write_array_header_1_0(out, {"descr": kind.str, "fortran_order": False, "shape": shape})
        out.truncate(out.tell() + math.prod(shape) * kind.itemsize)


def write_rows(path: Path, first: int, rows: np.ndarray) -> None:
    """Write the rows from ``first`` on of the array in an .npy file; others may be written at the same time.

    Raises
    ------
    OSError: it cannot be written.
    """
    with path.open("r+b") as out:
        header = read_header(out, path.name, os.fstat(out.fileno()).st_size)
        size = math.prod(header.shape[1:]) * header.dtype.itemsize
        out.seek(header.offset + first * size)
        out.write(np.ascontiguousarray(rows, header.dtype).data if rows.size else b"")


@contextmanager
def open_plain(path: Path) -> Iterator[BinaryIO]:
    """Open a regular file for reading: devices and pipes, which may never end, are refused.

    Raises
    ------
    ValueError: it is not a regular file.
    OSError: it cannot be opened.
    """
    if not stat.S_ISREG(path.stat().st_mode):
        raise ValueError(f"{path.name}: it is not a regular file")
    with path.open("rb") as stream:
        yield stream


class ArrayArchive:
    """An open .npz file; see ``open_archive``."""

    def __init__(self, archive: zipfile.ZipFile, name: str) -> None:
        self._archive, self._name = archive, name
        self.names = [member.removesuffix(".npy") for member in archive.namelist()]
        if len(set(self.names)) < len(self.names):
            raise ValueError(f"{name}: it holds two arrays of one name")

    def read(self, name: str, dtype: DTypeLike, shape: tuple[int | None, ...], most: int = 1 << 31) -> np.ndarray:
        """The array ``name``, of this ``dtype`` and ``shape`` (None: any length) and of at most ``most`` bytes.

        Raises
        ------
        ValueError: missing, damaged, or something else.
        """
        place = f"{self._name}: {name}"
        try:
            member = self._archive.getinfo(f"{name}.npy")
        except KeyError:
            raise ValueError(f"{place} is missing") from None
        # The size that a member claims is checked against the bytes that it takes in the file, and then by its header.
        if member.file_size > min(most + _MOST_HEADER, _MOST_RATIO * (member.compress_size + 1)):
            raise ValueError(f"{place}: {member.file_size:,} bytes are more than it can have")
        try:
            with self._archive.open(member) as stream:
                header = read_header(stream, place, member.file_size)
                _expect(header, place, dtype, len(shape))
                if any(wanted is not None and n != wanted for n, wanted in zip(header.shape, shape, strict=True)):
                    expected = " × ".join("any" if n is None else str(n) for n in shape)
                    raise ValueError(f"{place}: its shape is {header.shape}; expected {expected}")
                data = stream.read(header.size)  # to the end, where the checksum is compared
                if len(data) != header.size or stream.read(1):
                    raise ValueError(f"{place}: it ends too early or too late")
        except _FAULTS as error:
            raise ValueError(f"{place}: {error}") from None
        array = np.frombuffer(data, header.dtype)
        return array.reshape(header.shape, order="F" if header.fortran else "C")


@contextmanager
def open_archive(path: Path) -> Iterator[ArrayArchive]:
    """Open an .npz file.

    Raises
    ------
    ValueError: it is not such an archive; begins with the file's name.
    OSError: it cannot be read.
    """
    with open_plain(path) as stream:
        try:
            archive = zipfile.ZipFile(stream)
        except _FAULTS as error:
            raise ValueError(f"{path.name}: {error}") from None
        with archive:
            yield ArrayArchive(archive, path.name)


def _dtype(text: bytes, name: str) -> np.dtype:
    try:
        return np.dtype(text.decode())
    except TypeError:  # f1, b8 and the like
        raise ValueError(f"{name}: there are no numbers of type {text.decode()}") from None


def _expect(header: ArrayHeader, name: str, dtype: DTypeLike | None, ndim: int | None) -> None:
    if dtype is not None and header.dtype != np.dtype(dtype):
        raise ValueError(f"{name}: its numbers are {header.dtype}; expected {np.dtype(dtype)}")
    if ndim is not None and len(header.shape) != ndim:
        raise ValueError(f"{name}: it has {len(header.shape)} axes; expected {ndim}")
