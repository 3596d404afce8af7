"""Byte streams in: plain or compressed files, standard input, and all the input files of a run.

Input is read in bounded memory. A file that is missing, cut short or damaged is a ``DataError`` at the point
where this is noticed; no data after the damage is made up.
"""

import bz2
import codecs
import contextlib
import difflib
import gzip
import hashlib
import io
import logging
import lzma
import os
import re
import select
import sys
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextvars import ContextVar, copy_context
from typing import IO, Any, Protocol, Self, TypeVar, cast

import zstandard

from rerank.base.encoding import encoded, hide_secrets
from rerank.base.errors import DataError
from rerank.storage.files import compression_of_name
from rerank.storage.places import RemoteFile, is_url

HEAD_SIZE = 80  # bytes that tell the compression, and what is no text

# What the libraries raise for damaged data; bz2 raises an OSError without a number.
DAMAGE = (zlib.error, lzma.LZMAError, zstandard.ZstdError, gzip.BadGzipFile)

_ZSTD_PIECE = 1 << 10  # compressed bytes at a time: even the densest zstd data gives at most 32 MiB per piece
_MAGIC = {"gzip": b"\x1f\x8b", "bzip2": b"BZh", "xz": b"\xfd7zXZ\x00", "zstd": b"\x28\xb5\x2f\xfd"}
_BZIP2_BLOCK, _BZIP2_END = b"\x31\x41\x59\x26\x53\x59", b"\x17\x72\x45\x38\x50\x90"
TO_JSONL = "which Python makes JSON lines of"
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


def recognise(head: bytes, path: str) -> str:
    """The compression of a file that begins with ``head``, ``HEAD_SIZE`` bytes or the whole of it; a DataError where it
    holds no text, which says what it is, and what to do."""
    for form, what, rows in _FOREIGN:
        if re.match(form, head):
            code = f"import pandas; rows = {rows.format(path)}"
            conversion = "rows.to_json('lists.jsonl', orient='records', lines=True)"
            raise DataError(f"{what}, {TO_JSONL}: {code}; {conversion}" if rows else what, path=path)
    ending = compression_of_name(path)
    if ending != "plain" and len(head) < len(_MAGIC[ending]) and _MAGIC[ending].startswith(head):
        raise DataError(f"the {ending} data ends within its first bytes; copy or download the file again", path=path)
    # "BZh" may start a text too; the magic number that follows it cannot.
    if head.startswith(_MAGIC["bzip2"]) and not any(mark.startswith(head[4:10]) for mark in (_BZIP2_BLOCK, _BZIP2_END)):
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


# A file decompressed, where one that is cut short raises EOFError.
READING: dict[str, Callable[[Any], Any]] = {
    "plain": lambda source: source, "gzip": lambda source: gzip.GzipFile(fileobj=source, mode="rb"),
    "bzip2": bz2.BZ2File, "xz": lzma.LZMAFile, "zstd": _Zstd,
}  # fmt: skip


PathLike = str | os.PathLike[str]
START_SIZE = 1 << 20  # the bytes of a file that tell what it is
T = TypeVar("T")

# The encoding of text files, a codec of Python's, as a command or ``read_in`` names it; None: UTF-8.
encoding: ContextVar[str | None] = ContextVar("encoding", default=None)


def check_encoding(name: str) -> str:
    """``name``; a ValueError if there is no such encoding of texts."""
    try:
        "".encode(name)
    except (LookupError, UnicodeError, TypeError):
        raise ValueError(f"found {name!r}; expected an encoding that Python knows, as latin-1, cp1252 or gbk") from None
    return name


def read_in(name: str | None, items: Iterator[T]) -> Iterator[T]:
    """``items``, while which files are read in the encoding ``name``, unless the command names one."""
    if name is None or encoding.get() is not None:
        yield from items
        return
    context, end = copy_context(), object()
    context.run(encoding.set, name)
    while (item := context.run(next, items, end)) is not end:
        yield cast(T, item)


class Writable(Protocol):
    """The part of an open file that writers use."""

    def write(self, data: bytes, /) -> object:
        """Write all of ``data``."""


class InputStream:
    """Bytes of a file or of standard input, decompressed, as UTF-8 without a leading byte order mark.

    ``path`` is the name for messages. What is in another ``encoding`` is recoded; bytes that are not of it stay as they
    are, unless the stream is ``strict``. Use it as a context manager, or call ``close``.
    """

    strict = False
    at_end: Callable[[str, str], None] | None = None  # of the path and the SHA-256 of what was read
    _unlike: codecs.IncrementalDecoder | None  # of UTF-8, until the file turns out not to be in it

    def __init__(self, raw: IO[bytes], path: str, *, owned: bool = True) -> None:
        self.path, self._raw, self._owned, self._count = path, raw, owned, 0
        source = _Prefixed(raw)
        self.compression = recognise(self._guard(source.look, HEAD_SIZE), path)
        self._source = READING[self.compression](source)
        self._pending: bytes | None = None
        # The first bytes, of standard input whatever has been read of it; those that are still to be given out.
        self._start = self._ahead = b""
        self._sum = hashlib.sha256()

    @property
    def size(self) -> int:
        """The bytes of the file, compressed; 0 if that is not known."""
        return self._raw.size if isinstance(self._raw, RemoteFile) else os.fstat(self._raw.fileno()).st_size

    def read(self, size: int) -> bytes:
        """Up to ``size`` bytes; b"" only at the end."""
        if self._ahead:
            piece, self._ahead = self._ahead[:size], self._ahead[size:]
            return piece
        piece = self._read(size)
        if not self._owned and len(self._start) < START_SIZE:
            self._start += piece
        return piece

    def look(self) -> bytes:
        """The first ``START_SIZE`` bytes, or a little more; fewer if that is all, or what follows cannot be read."""
        with contextlib.suppress(DataError):
            while len(self._start) < START_SIZE and (piece := self._read(START_SIZE)):
                self._start, self._ahead = self._start + piece, self._ahead + piece
        return self._start

    def _read(self, size: int) -> bytes:
        if self._pending is None:
            self._pending = self._first(size)
        if not self._pending:
            self._pending = self._recode(size) if self._encoding else self._bytes(size)
        piece, self._pending = self._pending[:size], self._pending[size:]
        if self.strict:
            try:
                self._checker.decode(piece, not piece)
            except UnicodeDecodeError as error:
                line = self._line + error.object.count(b"\n", 0, error.start)
                raise DataError(foreign(error), path=self.path, line=line) from None
            self._line += piece.count(b"\n")
        self._count += len(piece)
        return piece

    def _bytes(self, size: int) -> bytes:
        """Up to ``size`` bytes as the file has them, decompressed."""
        piece: bytes = self._guard(self._source.read, size)
        if self.at_end is not None:
            self._sum.update(piece)
            if not piece:
                self.at_end(self.path, self._sum.hexdigest())
        return piece

    def _recode(self, size: int) -> bytes:
        """The next bytes, in UTF-8 instead of the file's encoding."""
        while True:
            data = self._bytes(size)
            try:
                if self._unlike is not None and not self._unlike.decode(data).isascii():
                    message = f"in UTF-8, not in {self._encoding}: leave out the encoding and, if other files have it, "
                    raise DataError(f"{message}convert those with iconv -t UTF-8", path=self.path)
            except UnicodeDecodeError:
                self._unlike = None
            try:
                text = self._decoder.decode(data, not data)
            except UnicodeError as error:  # where a byte that is wrong cannot be kept
                raise DataError(f"not in {self._encoding}: {error}", path=self.path) from None
            if text or not data:
                return encoded(text)

    def close(self) -> None:
        """Close the file (never standard input)."""
        if self._owned:
            self._raw.close()

    def __enter__(self) -> "InputStream":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _first(self, size: int) -> bytes:
        """The first bytes of a file in UTF-8, without its mark; none of one in another encoding."""
        name = encoding.get()
        self._encoding = None if name is None or codecs.lookup(name).name == "utf-8" else name
        self._decoder = codecs.getincrementaldecoder(self._encoding or "utf-8")("surrogateescape")
        self._checker = codecs.getincrementaldecoder("utf-8")("surrogatepass")
        self._line = 1
        if self._encoding:
            self._unlike = codecs.getincrementaldecoder("utf-8")()
            return b""
        start = self._bytes(max(size, 4))
        if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            message = "the file is UTF-16; UTF-8 is expected: convert it with iconv -f UTF-16 -t UTF-8, or name the "
            raise DataError(f"{message}encoding with --encoding utf-16 (in a recipe: data.encoding)", path=self.path)
        return start.removeprefix(codecs.BOM_UTF8)

    def _guard(self, read: Callable[[int], T], size: int) -> T:
        try:
            return read(size)
        except EOFError:
            message = f"the {self.compression} data ends too early, after {self._count:,} bytes of text; the file is "
            raise DataError(message + "cut short: copy, download or compress it again", path=self.path) from None
        except (OSError, *DAMAGE) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise DataError(f"cannot be read: {error.strerror}", path=self.path) from None
            message = f"damaged {self.compression} data after {self._count:,} bytes of text ({error}); "
            raise DataError(message + "copy, download or compress the file again", path=self.path) from None


standard_input: ContextVar[InputStream | None] = ContextVar("standard_input", default=None)  # opened last
# What stands for all files: the start of one that is tried; and the ``Inputs`` of a run, which open them.
start_alone: ContextVar[bytes | None] = ContextVar("start_alone", default=None)
running: ContextVar[Any] = ContextVar("running", default=None)


def open_stream(path: PathLike, *, strict: bool = True) -> InputStream:
    """Open ``path``, a file or a URL, for reading; "-" is standard input. Compression is recognised by the first bytes.

    strict: whether a byte that is not text is an error; of lists, it is the fault of one of them: see ``lists_of``.
    """
    name = os.fspath(path)
    if name == "-":
        if sys.stdin is None:
            raise DataError("standard input is closed: redirect it, or name a file", path=stream_name(name))
        if sys.stdin.isatty():
            logging.getLogger("rerank").info("reads what you type, until Ctrl-D; or name a file")
        stream = InputStream(sys.stdin.buffer, stream_name(name), owned=False)
        standard_input.set(stream)
    elif (start := start_alone.get()) is not None:
        stream = InputStream(io.BytesIO(start), name)
    else:
        stream = open_file(name) if (run := running.get()) is None else run.open_once(name)
    stream.strict = strict
    return stream


def foreign(error: UnicodeDecodeError) -> str:
    """The message about a text that is not UTF-8, though it should be, or have become so."""
    text, at = error.object, error.start
    near = text[max(text.rfind(b"\n", 0, at) + 1, at - 20) : at + 20].partition(b"\n")[0].decode("utf-8", "replace")
    message = f"found {near!r} with the byte 0x{text[at]:02x}, which is not {encoding.get() or 'UTF-8'}: mend the text "
    return f"{message}or, if the file is in another encoding, name it with --encoding (in a recipe: data.encoding)"


def open_file(name: str, *, others: Collection[str] = ()) -> InputStream:
    """``open_stream`` of a file.

    others: names of files that hold something else, and that the message about a missing file does not suggest.
    """
    try:
        raw = cast(IO[bytes], RemoteFile(name)) if is_url(name) else open(name, "rb")  # noqa: SIM115 - the stream closes it
    except FileNotFoundError:
        raise DataError(f"no such file{_near(name, others)}", path=name) from None
    except IsADirectoryError:
        raise DataError("is a directory; a file is expected", path=name) from None
    except PermissionError:
        raise DataError("no permission to read it; change the file's mode or its owner", path=name) from None
    except (OSError, ValueError) as error:
        raise DataError(f"cannot be opened: {getattr(error, 'strerror', None) or error}", path=name) from None
    try:
        return InputStream(raw, name)
    except BaseException:
        raw.close()
        raise


def stream_name(path: PathLike) -> str:
    """The name of ``path`` in messages."""
    return "<stdin>" if os.fspath(path) == "-" else hide_secrets(os.fspath(path))


def single_stdin(*paths: PathLike) -> None:
    """Refuse more than one "-" among the inputs of one command."""
    if sum(os.fspath(path) == "-" for path in paths) > 1:
        raise DataError("only one input can be '-' (standard input); name files for the others", path=stream_name("-"))


def read_once(path: PathLike) -> bool:
    """Whether a path is standard input or a pipe, of which nothing is there a second time."""
    return os.fspath(path) == "-" or (os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path))


def split_paths(path: PathLike) -> list[str]:
    """The files of a path that names several, separated by commas."""
    names = str(path).split(",")
    if not all(names):
        raise DataError("a file name is empty; expected names, separated by commas", path=stream_name(path))
    single_stdin(*names)
    return names


class _Prefixed:
    """``raw`` whose first bytes can be looked at; works for pipes, which cannot seek. ``read`` gives what has come, and
    waits only where nothing has."""

    def __init__(self, raw: Any) -> None:
        self._head, self._more = b"", getattr(raw, "read1", raw.read)
        self._arriving = raw is getattr(sys.stdin, "buffer", None)

    def look(self, size: int) -> bytes:
        """The first ``size`` bytes; fewer if that is all, or a line ends before."""
        while len(self._head) < size and b"\n" not in self._head and (more := self._more(size - len(self._head))):
            self._head += more
        return self._head

    def read(self, size: int = -1) -> bytes:
        """Up to ``size`` bytes; b"" only at the end."""
        if not self._head:
            return bytes(self._more(size))
        piece, self._head = self._head[:size], self._head[size:]
        return piece if self._arriving else piece + self._more(size - len(piece))


def must_wait(path: PathLike) -> bool:
    """Whether nothing more of ``path`` can be read yet: who writes to standard input may wait for an answer."""
    with contextlib.suppress(OSError, ValueError):  # it is no file, or this is Windows
        return os.fspath(path) == "-" and not select.select([sys.stdin], [], [], 0)[0]
    return False


def _near(name: str, others: Collection[str]) -> str:
    """The message about a missing file: the nearest name in its directory that is not among ``others``."""
    directory, base = os.path.split(name)
    try:
        names = [entry for entry in os.listdir(directory or ".") if entry not in others]
        near = difflib.get_close_matches(base, names, n=1)
    except OSError:
        return f"; the directory {directory} does not exist or cannot be read"
    return f"; did you mean {os.path.join(directory, near[0])}?" if near else "; check the name"


TEXT_RATIO = 16  # of texts of n-best lists, which repeat themselves, to their compressed size
CHANGED_FILE = "the file has changed since this run first read it; run it again"


def in_memory() -> Mapping[str, Any]:
    """The lists that a program holds, by split: no file has them."""
    return {} if (run := running.get()) is None else run.split_lists


def few_lists() -> int | None:
    """The number of lists of each split that a run reads, None for all."""
    return None if (run := running.get()) is None else run.few


class Inputs:
    """The input files of a run. Within a ``with`` block the digest of every file that is read to its end is taken as it
    streams; a file that is read again must be the same. A pipe is opened once: nothing is there a second time.

    lists: those of splits that no file has; start: the model, one in memory too, that training continues from; few: how
    many lists of each split are read, None for all.
    """

    def __init__(self, lists: Mapping[str, Any] | None = None, start: Any = None, few: int | None = None) -> None:
        self.lists, self.start, self.few = lists, start, few
        self._digests, self._pipes = dict[str, str](), dict[str, InputStream | None]()

    def open(self, path: str, *, others: Collection[str] = ()) -> None:
        """Refuse a file that cannot be opened; see ``open_file``."""
        if path not in self._pipes:
            stream = open_file(path, others=others)
            if read_once(path):
                self._pipes[path] = stream
            else:
                stream.close()

    def open_once(self, path: str) -> InputStream:
        """``open_file``, but for a pipe that is open already. Raises DataError if that has been read."""
        stream = self._pipes.get(path) if path in self._pipes else open_file(path)
        if stream is None:
            raise DataError("is a pipe, of which nothing is there a second time; save it to a file first", path=path)
        if path in self._pipes:
            self._pipes[path] = None
        stream.at_end = self._compare
        return stream

    def digest(self, path: str) -> str:
        """SHA-256 of a file's contents after decompression; of its name, where few lists are read."""
        if self.few is not None:
            return hashlib.sha256(path.encode()).hexdigest()
        if path not in self._digests:
            self.open(path)
            with self.open_once(path) as stream:
                while stream.read(START_SIZE):
                    pass
        return self._digests[path]

    def size(self, paths: Iterable[str]) -> int:
        """About how many bytes of compressed text files hold; 0 where that is not known."""
        total = 0
        for path in paths:
            if not read_once(path):
                with open_file(path) as stream:
                    total += stream.size if stream.compression != "plain" else stream.size // TEXT_RATIO
        return total

    def _compare(self, path: str, digest: str) -> None:
        if self._digests.setdefault(path, digest) != digest:
            raise DataError(CHANGED_FILE, path=path)

    def __enter__(self) -> Self:
        self.split_lists = in_memory() if self.lists is None else self.lists
        self._before = running.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        running.reset(self._before)
        for stream in filter(None, self._pipes.values()):
            stream.close()
        self._pipes.clear()
