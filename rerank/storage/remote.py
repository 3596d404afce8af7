"""Files by URL, https, s3, gs or hf, copied to disk before they are read.

A copy's name is a digest of the URL and of what its server says about the file (ETag, size, time of change): a file
that has not changed is not fetched again, and one that has does not replace the older copy. Where the server says
nothing that would change with the file, it is fetched every time. A copy appears under its name only when it is
complete, and processes that need the same file at once each fetch their own.

All copies together take at most 20 GB, or ``$RERANK_DOWNLOADS_GB``: those unused for longest make room for new ones,
and a file that is larger by itself is refused, midway if its server did not give its size. Other protocols are refused;
for http, which anybody on the way can read and change, there is a warning, and for an address that https redirects to
http as well.

Names and passwords belong into ``~/.netrc`` (or the file that ``$NETRC`` names), keys of s3, hf and others where their
packages look for them or into fsspec's configuration. A URL with a name or password is refused in recipes, which models
and reports repeat. Messages and logs show URLs without them, and without queries; recipes keep queries, so a signed
address is for commands and ``rerank.read``.
"""

import errno
import hashlib
import logging
import os
import re
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from rerank.base.encoding import shown
from rerank.base.errors import DataError, RecipeError
from rerank.storage.files import new_directory, new_file, remove, remove_leftovers

log = logging.getLogger("rerank")
FOLDER = "RERANK_DOWNLOADS"  # the variable that names where copies are kept
SIZE, GB = "RERANK_DOWNLOADS_GB", 20.0  # the variable that says how much they may take, and what it says by default
PROTOCOLS = "https", "http", "s3", "gs", "hf"
HERE = "localhost", "127.0.0.1", "::1"  # hosts that are reached without a network
STALE = 3600.0  # seconds after which nobody is writing what is half-fetched
PATIENCE = 60.0  # seconds without an answer, or without a byte
EXTRA = "pip install 'rerank-nbest[remote]'"
# What a server says of a file that differs each time, such as the signed address that it is sent from.
_PASSING = "url", "partial"
# By which entries of what is said of a file a change shows, in the words of the file systems.
_TELLING = re.compile("etag|digest|md5|sha|crc|checksum|oid|blob|version|generation|commit|time|modified|created")
_COPY = re.compile("[0-9a-f]{32}-.*|[0-9a-f]{64}")  # the name of a copy, of a file or of a folder
_FULL = errno.ENOSPC, errno.EDQUOT

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+::)*[A-Za-z][A-Za-z0-9+.-]+://")


def is_url(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a URL."""
    return _URL.match(os.fspath(path)) is not None


def downloads() -> Path:
    """The folder of copies: $RERANK_DOWNLOADS, else in rerank/downloads in $XDG_CACHE_HOME or ~/.cache."""
    if folder := os.environ.get(FOLDER):
        return Path(folder)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rerank" / "downloads"


def local_path(path: str) -> str:
    """``path``; of a URL, the copy of what it names, fetched if it is not there or may have changed."""
    if not is_url(path):
        return path
    file = _look_up(path)
    copy = downloads() / f"{file.digest}-{_file_name(path)}"
    if not (file.told and copy.exists()):
        with new_file(copy) as new:
            _fetch(file, new, most_bytes())
        _make_room(copy)
    return _used(copy)


def local_directory(url: str, names: Iterable[str], digest: str) -> Path:
    """A copy of the files ``names`` in the folder ``url``, as the directory that is known by their ``digest``."""
    copy, wanted, left = downloads() / digest, list(names), most_bytes()
    if not all((copy / name).is_file() for name in wanted):
        remove(copy)  # somebody has removed a file of it
        with new_directory(copy, keep=True) as new:
            for name in wanted:
                left -= _fetch(_look_up(below(url, name)), new / name, left)
        _make_room(copy)
    return Path(_used(copy))


def most_bytes() -> int:
    """The limit on the bytes of all copies together."""
    given = os.environ.get(SIZE) or GB
    with suppress(ValueError):
        if 0 < (gigabytes := float(given)) < 1e9:
            return int(gigabytes * 1e9)
    raise RecipeError(f"found {given!r}; expected a number of GB, as 20 or 0.5", key=f"${SIZE}")


def _used(copy: Path) -> str:
    """The path of a copy, which is remembered as the last one that was used."""
    with suppress(OSError):  # somebody else's
        os.utime(copy)
    return str(copy)


def _make_room(new: Path) -> None:
    """Remove the copies that were not used for longest, all but a ``new`` one, until the others are few enough."""
    copies, most = list[tuple[float, int, Path]](), most_bytes()
    for path in downloads().iterdir():
        with suppress(OSError):  # another process has removed it
            if _COPY.fullmatch(path.name):
                size = sum(file.stat().st_size for file in (path.iterdir() if path.is_dir() else [path]))
                copies.append((path.stat().st_mtime, size, path))
    total = sum(size for _, size, _ in copies)
    for _, size, path in sorted(copies):
        if total > most and path != new:
            with suppress(OSError):
                remove(path)
                total -= size


def below(url: str, name: str) -> str:
    """The URL of a file in the folder ``url``."""
    return f"{url.rstrip('/')}/{name}"


class _Found(NamedTuple):
    """A file by URL: its file system, its place there, and what is known of it."""

    url: str
    files: Any
    place: str
    about: dict[str, Any]

    @property
    def digest(self) -> str:
        """Its identity among files and, if it is ``told``, among its own earlier states."""
        known = sorted((key, str(value)) for key, value in self.about.items() if key not in _PASSING)
        return hashlib.sha256(repr((self.url, known)).encode()).hexdigest()[:32]

    @property
    def told(self) -> bool:
        """Whether it would be known if it had changed."""
        return any(_TELLING.search(key.lower()) and value for key, value in self.about.items())


def _look_up(url: str) -> _Found:
    """The file that a URL names."""
    protocol = url.partition("://")[0].lower()
    if protocol not in PROTOCOLS:
        message = f"files are fetched by {', '.join(PROTOCOLS)}, not by {protocol}"
        raise DataError(f"{message}; name the path of one that is on this machine", path=url)
    options: dict[str, Any] = {}
    try:
        from fsspec.core import url_to_fs

        if protocol in ("http", "https"):
            from aiohttp import ClientTimeout

            patience = ClientTimeout(sock_connect=PATIENCE, sock_read=PATIENCE)
            options["client_kwargs"] = {"timeout": patience, "trust_env": True}  # netrc, and proxies
        files, place = url_to_fs(url, **options)
        files.invalidate_cache()
        about = files.info(place)
    except Exception as error:  # whatever the package of a protocol raises
        raise DataError(_problem(error), path=url) from None
    if about.get("type") == "directory":
        raise DataError("is a folder; name a file in it", path=url)
    final = urlsplit(str(about.get("url") or url))
    if final.scheme.lower() == "http" and final.hostname not in HERE:
        _warn_of(final.hostname)
    return _Found(url, files, place, about)


@cache  # once for each
def _warn_of(host: str | None) -> None:
    log.warning("%s: http is not encrypted: anybody on the way can read and change what it sends; use https", host)


def _fetch(found: _Found, target: Path, most: int) -> int:
    """Copy a file to ``target``; returns its size."""
    from fsspec.callbacks import Callback

    def check(said: int | None, so_far: int) -> None:
        if max(said or 0, so_far) > most:
            message = f"has more than the {most_bytes() / 1e9:g} GB that all copies may take"
            raise DataError(f"{message}; fetch it and name its copy, or set ${SIZE}", path=found.url)

    log.info("fetching %s", found.url)
    remove_leftovers(downloads(), age=STALE)
    check(found.about.get("size"), 0)
    try:
        found.files.get_file(found.place, str(target), callback=Callback(hooks={"size": check}))
    except DataError:
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _FULL:
            raise
        raise DataError(_problem(error), path=found.url) from None
    size, size_read = found.about.get("size"), target.stat().st_size
    if size not in (None, size_read):
        raise DataError(f"found {size_read:,} of {size:,} bytes: the connection broke; try again", path=found.url)
    return size_read


def _problem(error: Exception) -> str:
    """The reason why nothing was fetched, and what to do."""
    cause = error.__cause__ if isinstance(error, FileNotFoundError) and error.__cause__ else error
    if isinstance(cause, ModuleNotFoundError) and (cause.name or "").split(".")[0] in ("fsspec", "aiohttp"):
        return f"files by URL need fsspec and aiohttp: {EXTRA}"
    if isinstance(cause, ImportError):
        return f"needs a package that is not installed: {cause}"
    status = getattr(cause, "status", None)
    if isinstance(cause, FileNotFoundError) or status == 404:
        return "no such file there; check the URL"
    if type(cause).__name__ == "TooManyRedirects":
        return "the server sends from one address to another, without end; check the URL"
    if status:
        return (
            f"the server answers {status} {getattr(cause, 'message', '')}; check the URL, and whether it needs a login"
        )
    if isinstance(cause, TimeoutError):
        return f"no answer for {PATIENCE:g} seconds; try again, or fetch the file and name its copy"
    return f"cannot be fetched: {cause or type(cause).__name__}; check the URL and the connection"


def _file_name(url: str) -> str:
    """The name of the file, for people and by its ending."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", re.split(r"[?#]", shown(url))[0].rstrip("/").rpartition("/")[2])[-80:]
