"""Arrays from files: .npy and .npz by numpy, without objects; what does not fit is a ValueError that names the file."""

import stat
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import DTypeLike

# What reading a damaged file may raise: not there, cut short, a missing key, a wrong type, out of range.
DAMAGE = (
    OSError, EOFError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError,
)  # fmt: skip
# What numpy and zipfile raise in addition.
FAULTS = (
    zipfile.BadZipFile, zlib.error, struct.error, tokenize.TokenError, SyntaxError, NotImplementedError, RuntimeError,
    MemoryError,
)  # fmt: skip


def read_array(
    path: Path, dtype: DTypeLike | None = None, ndim: int | None = None, *, mmap: bool = False
) -> np.ndarray:
    """The array of numbers in an .npy file, memory-mapped (read-only) or in memory.

    dtype, ndim: what they must be, if given.
    """
    check_plain(path)
    try:
        # Mapped in any case: a header that promises more than the file holds gets no memory.
        mapped = np.lib.format.open_memmap(path, mode="r")
    except (*FAULTS, ValueError) as error:
        raise ValueError(f"{path.name}: not an array file: {error}") from None
    if mapped.dtype.kind not in "biuf" or not mapped.dtype.isnative:
        raise ValueError(f"{path.name}: its entries are {mapped.dtype}; expected plain numbers")
    if dtype is not None and mapped.dtype != np.dtype(dtype):
        raise ValueError(f"{path.name}: its numbers are {mapped.dtype}; expected {np.dtype(dtype)}")
    if ndim is not None and mapped.ndim != ndim:
        raise ValueError(f"{path.name}: it has {mapped.ndim} axes; expected {ndim}")
    if (size := path.stat().st_size - mapped.offset) != mapped.nbytes:
        message = f"{mapped.dtype} {mapped.shape} takes {mapped.nbytes:,} bytes, the file has {size:,} after its header"
        raise ValueError(f"{path.name}: {message}")
    return mapped if mmap else np.array(mapped)


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


def check_plain(path: Path) -> None:
    """Refuse what is not a regular file: devices and pipes may never end."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise ValueError(f"{path.name}: it is not a regular file")
