"""Places of files: those by URL, and those that come with the program.

fsspec opens what a URL names, and nothing keeps it: every reading fetches it. A ``*`` in a URL stands for all files
that match, in the order of their names, one after the other as if they were one. Two that are not compressed are one
text: the first should end with a line end.

Names and passwords belong into ``~/.netrc`` (or the file that ``$NETRC`` names), keys of s3, hf and others where their
packages look for them or into fsspec's configuration. A URL with a name or password is refused in recipes, which models
and reports repeat. Messages and logs show URLs without them, and without queries; recipes keep queries, so a signed
address is for commands and ``rerank.read``.

Lists that come with the program go by name where a file is taken: ``llm/test``, and ``llm`` for all its splits where
several files are. A file of this name comes first.
"""

import io
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rerank.base.encoding import hide_secrets
from rerank.base.errors import DataError

ANSWER_SECONDS = 60.0  # seconds without an answer, or without a byte
REMOTE_EXTRA = "pip install 'rerank-nbest[remote]'"
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_PACKAGE = Path(__file__).parents[1]
# A wheel has them inside the package, a checkout beside it.
HOME = _PACKAGE / "shipped" if (_PACKAGE / "shipped").is_dir() else _PACKAGE.parent
SPLITS = "train", "dev", "test"


def is_url(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a URL."""
    return _URL.match(os.fspath(path)) is not None


def fetch(url: str) -> bytes:
    """All bytes of a file by URL."""
    with RemoteFile(url) as file:
        return b"".join(iter(lambda: file.read(1 << 20), b""))


class RemoteFile(io.RawIOBase):
    """The bytes of what a URL names, as they come; ``size``: how many there are, 0 if that is not known."""

    def __init__(self, url: str) -> None:
        self._url, self._parts, self.size = url, list[Any](), 0
        self.seek(0)

    def seek(self, offset: int, whence: int = 0) -> int:
        """Begin again, which is all that every server allows."""
        assert (offset, whence) == (0, 0)
        with _fetch_errors(self._url):
            web = self._url.lower().startswith("http")
            files, path = _locate(self._url, web)
            paths = sorted(files.glob(path)) if "*" in path else [path]
            infos = [files.info(each) for each in paths]
            if not infos:
                raise FileNotFoundError
            if any(each.get("type") == "directory" for each in infos):
                raise DataError("is a folder; name a file in it", path=self._url)
            self.size = sum(each.get("size") or 0 for each in infos)
            options = {"block_size": 0} if web else {}  # in one answer: not all servers send parts of files
            self._files = (files.open(each, "rb", **options) for each in paths)
            self._part = next(self._files)
        return 0

    def read(self, size: int = -1) -> bytes:
        """Up to ``size`` bytes; b"" only at the end."""
        with _fetch_errors(self._url):
            while size and self._part is not None:
                if piece := self._part.read(size):
                    return bytes(piece)
                self._part.close()
                self._part = next(self._files, None)
        return b""


def _locate(url: str, web: bool) -> tuple[Any, str]:
    """The file system of a URL, which remembers nothing, and the path in it."""
    from fsspec.core import url_to_fs

    options: dict[str, Any] = {}
    if web:
        from aiohttp import ClientTimeout

        patience = ClientTimeout(sock_connect=ANSWER_SECONDS, sock_read=ANSWER_SECONDS)
        options["client_kwargs"] = {"timeout": patience, "trust_env": True}  # netrc, and proxies
    files, path = url_to_fs(url, **options)
    files.invalidate_cache()
    return files, path


@contextmanager
def _fetch_errors(url: str) -> Iterator[None]:
    """Within the block, whatever the package of a protocol raises is a ``DataError`` of the URL."""
    try:
        yield
    except DataError:
        raise
    except Exception as error:
        cause = error.__cause__ if isinstance(error, FileNotFoundError) and error.__cause__ else error
        if isinstance(cause, ImportError):
            message = f"files by URL need a package that is not installed ({cause}): {REMOTE_EXTRA}"
        elif isinstance(cause, FileNotFoundError) or getattr(cause, "status", None) == 404:
            message = "no such file there; check the URL"
        elif isinstance(cause, TimeoutError):
            message = f"no answer for {ANSWER_SECONDS:g} seconds; try again, or fetch the file and name its copy"
        else:
            words = hide_secrets(str(cause)) or type(cause).__name__
            message = f"cannot be fetched: {words}; check the URL and the connection"
        raise DataError(message, path=url) from None


def shipped_files() -> dict[str, str]:
    """The files by name: ``llm/test`` of lists, ``quickstart/test.gold`` of gold trees."""
    names = {path: path.name.removesuffix(".gz") for path in sorted((HOME / "data").glob("*/*.gz"))}
    return {f"{path.parent.name}/{name.removesuffix('.jsonl').removesuffix('.nbest')}": str(path)
            for path, name in names.items()}  # fmt: skip


def files_of(names: Iterable[str]) -> list[str]:
    """The files that names are, or those of shipped lists."""
    names, files = list(names), shipped_files() if not all(map(os.path.exists, names)) else {}

    def those(name: str) -> list[str]:
        candidates = [name, *(f"{name}/{split}" for split in SPLITS)]
        return [] if os.path.exists(name) else [files[one] for one in candidates if one in files]

    return [file for name in names for file in those(name) or [name]]


def file_of(name: str) -> str:
    """The file that a name is, or that of shipped lists. Raises DataError where these are several."""
    if len(files := files_of([name])) > 1:
        raise DataError(
            f"these are {len(files)} files; expected one: {', '.join(f'{name}/{x}' for x in SPLITS)}", path=name
        )
    return files[0]
