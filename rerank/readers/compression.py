"""gzip, bzip2, xz and zstd: recognised by the first bytes when read, chosen by the file extension when written."""

import bz2
import gzip
import lzma
import os
import re
import zlib
from collections.abc import Callable
from functools import partial
from typing import IO, Any

import zstandard

from rerank.base.errors import DataError

HEAD = 80  # bytes that tell the compression, and what is no text

# What the libraries raise for damaged data; bz2 raises an OSError without a number.
DAMAGE = (zlib.error, lzma.LZMAError, zstandard.ZstdError, gzip.BadGzipFile)

_ZSTD_PIECE = 1 << 10  # compressed bytes at a time: even the densest zstd data gives at most 32 MiB per piece
_SUFFIXES = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz", ".zst": "zstd"}
_MAGIC = {"gzip": b"\x1f\x8b", "bzip2": b"BZh", "xz": b"\xfd7zXZ\x00", "zstd": b"\x28\xb5\x2f\xfd"}
_BZIP2_BLOCK, _BZIP2_END = b"\x31\x41\x59\x26\x53\x59", b"\x17\x72\x45\x38\x50\x90"
MADE = "which Python makes JSON lines of"
# What holds no text, by how it starts: what it is, and how Python reads rows from it or, where it cannot, what to do.
_FOREIGN = (
    (rb"PK\x03\x04(?s:.{26})(\[Content_Types|_rels/|docProps/|xl/|mimetypeapplication/vnd\.oasis)|\xd0\xcf\x11\xe0",
     "a workbook of Excel or LibreOffice", "pandas.read_excel({!r})"),
    (rb"PK\x03\x04(?s:.{26})[^\0]*?\.npy", "arrays of numpy",
     "pandas.DataFrame({{key: list(each) for key, each in __import__('numpy').load({!r}).items()}})"),
    (rb"\x93NUMPY", "an array of numpy", "pandas.DataFrame(__import__('numpy').load({!r}))"),
    (rb"\x80[\x02-\x05]", "a pickle, which can run any code", "pandas.DataFrame(pandas.read_pickle({!r}))"),
    (rb"SQLite format 3\0", "a database of SQLite",
     "pandas.read_sql('SELECT * FROM TABLE', __import__('sqlite3').connect({!r}))"),
    (rb"\x89HDF", "a file of HDF5", "pandas.read_hdf({!r})"),
    (rb"PK\x03\x04|\x1f\x9d|7z\xbc\xaf|Rar!", "an archive; unpack it first, or use gzip, bzip2, xz or zstd", ""),
    (rb"%PDF-|\x89PNG|\xff\xd8\xff|\x7fELF", "a page, a picture or a program; name the lists that it was made of", ""),
)  # fmt: skip


def check_text(head: bytes, path: str) -> None:
    """Raises DataError where a file that begins with ``head`` holds no text; says what it is, and what to do."""
    for form, what, rows in _FOREIGN:
        if re.match(form, head):
            made = f"import pandas; rows = {rows.format(path)}"
            written = "rows.to_json('lists.jsonl', orient='records', lines=True)"
            raise DataError(f"{what}, {MADE}: {made}; {written}" if rows else what, path=path)


def compression_of_name(path: str) -> str:
    """The compression that the extension of ``path`` asks for, or "plain"."""
    return _SUFFIXES.get(os.path.splitext(path)[1].lower(), "plain")


def recognise(head: bytes, path: str) -> str:
    """The compression of a file whose first ``HEAD`` bytes (fewer if it is shorter) are ``head``."""
    check_text(head, path)
    named = compression_of_name(path)
    if named != "plain" and len(head) < len(_MAGIC[named]) and _MAGIC[named].startswith(head):
        raise DataError(f"the {named} data ends within its first bytes; copy or download the file again", path=path)
    # "BZh" may start a text too; the magic number that follows it cannot.
    if head.startswith(_MAGIC["bzip2"]) and not any(mark.startswith(head[4:]) for mark in (_BZIP2_BLOCK, _BZIP2_END)):
        return "plain"
    if head[1:4] == b"\x2a\x4d\x18" and head[0] & 0xF0 == 0x50:  # a frame that is skipped
        return "zstd"
    return next((kind for kind, magic in _MAGIC.items() if head.startswith(magic)), "plain")


class _Zstd:
    """The text of all frames of a zstd file; unlike the library's own reader, it notices a file that is cut short."""

    def __init__(self, source: IO[bytes]) -> None:
        self._source, self._data, self._text = source, b"", memoryview(b"")
        self._frame: Any = None

    def read(self, size: int) -> bytes:
        """Up to ``size`` bytes; b"" only at the end."""
        while not self._text and (data := self._data or self._source.read(_ZSTD_PIECE)):
            frame = self._frame or zstandard.ZstdDecompressor().decompressobj()
            self._text = memoryview(frame.decompress(data))
            self._data, self._frame = (frame.unused_data, None) if frame.eof else (b"", frame)
        if not self._text and self._frame is not None:
            raise EOFError
        piece, self._text = bytes(self._text[:size]), self._text[size:]
        return piece


# A file decompressed, where one that is cut short raises EOFError; and one that compresses into another, which stays
# open. gzip headers carry no time and no name, so the same data gives the same bytes.
READING: dict[str, Callable[[Any], Any]] = {
    "plain": lambda source: source, "gzip": lambda source: gzip.GzipFile(fileobj=source, mode="rb"),
    "bzip2": bz2.BZ2File, "xz": lzma.LZMAFile, "zstd": _Zstd,
}  # fmt: skip
WRITING: dict[str, Callable[[Any], Any]] = {
    "plain": lambda raw: raw,
    "gzip": lambda raw: gzip.GzipFile(filename="", mode="wb", fileobj=raw, compresslevel=6, mtime=0),
    "bzip2": partial(bz2.BZ2File, mode="wb"), "xz": partial(lzma.LZMAFile, mode="wb"),
    "zstd": lambda raw: zstandard.ZstdCompressor().stream_writer(raw, closefd=False),
}  # fmt: skip
