"""Tables in files, as data frames: Parquet and Arrow."""

import os
from typing import Any

from rerank.base.errors import DataError
from rerank.readers.given.frames import EXTRA
from rerank.readers.streams import PathLike, open_stream
from rerank.storage.remote import local_path

PARQUET, ARROW = ".parquet", (".arrow", ".feather")


def is_table(path: Any) -> bool:
    """Whether a path is that of a table, by its ending."""
    return isinstance(path, str | os.PathLike) and os.fspath(path).lower().partition("?")[0].endswith((PARQUET, *ARROW))


def table(path: PathLike) -> Any:
    """The table in a file, as a ``pyarrow.Table``.

    Raises
    ------
    DataError: a file that is missing or holds no such table; pyarrow is missing.
    """
    name = os.fspath(path)
    open_stream(name).close()  # which says what is wrong with a path
    try:
        import pyarrow
        from pyarrow import ipc, parquet
    except ImportError:
        raise DataError(f"tables in files need pyarrow: {EXTRA}", path=name) from None

    def read() -> Any:
        if name.lower().partition("?")[0].endswith(PARQUET):
            with parquet.ParquetFile(local_path(name)) as file:
                return file.read()
        with pyarrow.OSFile(local_path(name)) as source:
            if source.read(6) == b"ARROW1":
                return ipc.open_file(source).read_all()
            source.seek(0)
            return ipc.open_stream(source).read_all()

    try:
        found = read()
        found.validate(full=True)  # texts are UTF-8
        return found
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(f"no table that can be read: {error}", path=name) from None
