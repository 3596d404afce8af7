"""gzip, bzip2, xz and zstd: recognised by the first bytes when read, chosen by the file extension when written."""

import bz2
import gzip
import io
import lzma
import os
import zlib
from collections.abc import Iterator
from typing import IO, Any, cast

import zstandard

from rerank.base.errors import DataError

HEAD = 10  # bytes that identify the compression

# What the libraries raise for damaged data; bz2 raises an OSError without a number.
DAMAGE = (zlib.error, lzma.LZMAError, zstandard.ZstdError, gzip.BadGzipFile)

_ZSTD_PIECE = 1 << 10  # compressed bytes at a time: even the densest zstd data gives at most 32 MiB per piece
_SUFFIXES = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz", ".zst": "zstd"}
_MAGIC = {"gzip": b"\x1f\x8b", "bzip2": b"BZh", "xz": b"\xfd7zXZ\x00", "zstd": b"\x28\xb5\x2f\xfd"}
_BZIP2_BLOCK, _BZIP2_END = b"\x31\x41\x59\x26\x53\x59", b"\x17\x72\x45\x38\x50\x90"
_FOREIGN = {b"PK\x03\x04": "a zip", b"\x1f\x9d": "a compress (.Z)", b"7z\xbc\xaf\x27\x1c": "a 7-Zip"}
_WORKBOOK = (
    "a workbook of Excel, which Python makes JSON lines of: import pandas; rows = pandas.read_excel({!r}); "
    "rows.to_json('lists.jsonl', orient='records', lines=True)"
)


def compression_of_name(path: str) -> str:
    """The compression that the extension of ``path`` asks for, or "plain"."""
    return _SUFFIXES.get(os.path.splitext(path)[1].lower(), "plain")


def recognise(head: bytes, path: str) -> str:
    """The compression of a file whose first ``HEAD`` bytes (fewer if it is shorter) are ``head``."""
    for magic, kind in _FOREIGN.items():
        if head.startswith(magic):
            if path.lower().endswith((".xlsx", ".xlsm")):
                raise DataError(_WORKBOOK.format(path), path=path)
            raise DataError(f"{kind} archive; unpack it first, or use gzip, bzip2, xz or zstd", path=path)
    named = compression_of_name(path)
    if named != "plain" and len(head) < len(_MAGIC[named]) and _MAGIC[named].startswith(head):
        raise DataError(f"the {named} data ends within its first bytes; copy or download the file again", path=path)
    # "BZh" may start a text too; the magic number that follows it cannot.
    if head.startswith(_MAGIC["bzip2"]) and not any(mark.startswith(head[4:]) for mark in (_BZIP2_BLOCK, _BZIP2_END)):
        return "plain"
    if head[1:4] == b"\x2a\x4d\x18" and head[0] & 0xF0 == 0x50:  # a frame that is skipped
        return "zstd"
    return next((kind for kind, magic in _MAGIC.items() if head.startswith(magic)), "plain")


def decompressed(compression: str, source: IO[bytes]) -> IO[bytes]:
    """``source`` decompressed; one that is cut short raises EOFError."""
    match compression:
        case "gzip":
            return cast(IO[bytes], gzip.GzipFile(fileobj=source, mode="rb"))
        case "bzip2":
            return cast(IO[bytes], bz2.BZ2File(source, "rb"))
        case "xz":
            return cast(IO[bytes], lzma.LZMAFile(source, "rb"))
        case "zstd":
            return cast(IO[bytes], io.BufferedReader(_Pieces(_frames(source)), 1 << 18))
    return source


def compressed(path: str, raw: IO[bytes]) -> Any:
    """A file that compresses into ``raw`` as the name ``path`` asks for; closing it leaves ``raw`` open.

    gzip headers carry no time and no name, so the same data gives the same bytes.
    """
    match compression_of_name(path):
        case "gzip":
            return gzip.GzipFile(filename="", mode="wb", fileobj=raw, compresslevel=6, mtime=0)
        case "bzip2":
            return bz2.BZ2File(raw, "wb")
        case "xz":
            return lzma.LZMAFile(raw, "wb")
        case "zstd":
            return zstandard.ZstdCompressor().stream_writer(raw, closefd=False)
    return raw


def _frames(source: IO[bytes]) -> Iterator[bytes]:
    """The text of all frames of a zstd file; unlike the library's own reader, it notices a file that is cut short."""
    data, frame = b"", None
    while data := data or source.read(_ZSTD_PIECE):
        frame = frame or zstandard.ZstdDecompressor().decompressobj()
        yield frame.decompress(data)
        data, frame = (frame.unused_data, None) if frame.eof else (b"", frame)
    if frame is not None:
        raise EOFError


class _Pieces(io.RawIOBase):
    """Pieces as a file."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces, self._left = pieces, memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill ``buffer``; returns with how many bytes, 0 at the end."""
        self._left = self._left or memoryview(next(filter(None, self._pieces), b""))
        size = min(len(buffer), len(self._left))
        buffer[:size], self._left = self._left[:size], self._left[size:]
        return size
