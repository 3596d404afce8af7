"""Files that are written, plain or compressed by their names, and standard output. A file appears under its name only
when it is complete.
"""

import bz2
import errno
import gzip
import lzma
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

import zstandard

from rerank.base.errors import DataError, RunError
from rerank.storage.files import new_file

_SUFFIXES = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz", ".zst": "zstd"}
# What compresses into another file, which stays open. gzip headers carry no time and no name, so the same data gives
# the same bytes.
WRITING: dict[str, Callable[[Any], Any]] = {
    "plain": lambda raw: raw,
    "gzip": lambda raw: gzip.GzipFile(filename="", mode="wb", fileobj=raw, compresslevel=6, mtime=0),
    "bzip2": partial(bz2.BZ2File, mode="wb"), "xz": partial(lzma.LZMAFile, mode="wb"),
    "zstd": lambda raw: zstandard.ZstdCompressor().stream_writer(raw, closefd=False),
}  # fmt: skip


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
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
            raise DataError("the name is longer than the system allows", path=name) from None
        reason = getattr(error, "strerror", None) or error
        message = f"cannot write {name}: {reason}; name a file in an existing, writable directory"
        raise RunError(message) from None
