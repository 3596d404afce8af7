"""Files by URL: fetched once, again when they change, never in part."""

import gzip
import logging
import os
import sys
from base64 import b64encode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path

import pytest
import zstandard
from served import Served, serving

from rerank.base.errors import DataError, RecipeError
from rerank.readers.streams import open_stream
from rerank.storage import remote
from rerank.storage.remote import downloads, is_url, local_directory, local_path

pytest.importorskip("aiohttp")
fsspec = pytest.importorskip("fsspec")
TEXT = b"".join(b"%d a line\n" % i for i in range(5000))


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.setenv("RERANK_DOWNLOADS", str(tmp_path / "copies"))
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "text").write_bytes(TEXT)
    with serving(tmp_path / "files") as found:
        yield found


def whole(path: str) -> bytes:
    with open_stream(path) as stream:
        return b"".join(iter(lambda: stream.read(1 << 16), b""))


def test_what_is_a_url() -> None:
    assert all(
        map(is_url, ("https://a/b", "s3://a/b", "hf://datasets/a", "memory://a", "HTTP://a", "simplecache::s3://a/b"))
    )
    assert not any(map(is_url, ("a/b", "C:\\a", "c:/a", "a:b", "-", "", "https:/a", "{root}/a", "/a//b", "a/b://c")))
    assert local_path("C:\\a") == "C:\\a"


@pytest.mark.parametrize(("name", "data"), [
    ("text", TEXT), ("text.gz", gzip.compress(TEXT)), ("text.zst", zstandard.ZstdCompressor().compress(TEXT)),
])  # fmt: skip
def test_a_file_is_fetched_once_until_it_changes(served: Served, name: str, data: bytes) -> None:
    path = served.root / name
    path.write_bytes(data)
    url = f"{served.url}/{name}"
    assert [whole(url) for _ in range(3)] == [TEXT] * 3
    assert served.asked == {name: 1}
    path.write_bytes(TEXT[:-7])
    assert [whole(url) for _ in range(2)] == [TEXT[:-7]] * 2
    assert served.asked == {name: 2}
    assert all(each.name.endswith(f"-{name}") for each in downloads().iterdir())
    assert local_path(f"{url}?download=true").endswith(f"-{name}")


def test_a_file_of_which_no_change_would_show_is_fetched_every_time(served: Served) -> None:
    served.tagged = False
    assert [whole(f"{served.url}/text") for _ in range(2)] == [TEXT] * 2
    (served.root / "text").write_bytes(TEXT[::-1])
    assert whole(f"{served.url}/text") == TEXT[::-1]
    assert served.asked == {"text": 3}
    assert len(os.listdir(downloads())) == 1


def test_logins_and_tokens_are_used_and_not_told(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "rerank")
    monkeypatch.setattr(logging.getLogger("rerank"), "propagate", True)
    url = f"{served.url.replace('//', '//me:secret@')}/text?token=secret"
    assert whole(url) == TEXT
    with pytest.raises(DataError, match=r"/no\?\.\.\.: no such file") as missing:
        local_path(url.replace("text", "no"))
    with pytest.raises(DataError, match="not by htps") as unknown:
        local_path(url.replace("http", "htps"))
    said = [caplog.text, str(missing.value), str(unknown.value), *os.listdir(downloads())]
    assert f"fetching {served.url}/text?..." in caplog.text
    assert "secret" not in " ".join(said)
    (tmp_path / "logins").write_text("machine 127.0.0.1 login you password hidden\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "logins"))
    local_path(f"{served.url}/text")
    assert served.logins == {f"Basic {b64encode(text).decode()}" for text in (b"me:secret", b"you:hidden")}


def test_a_file_that_is_missing_from_a_folder_is_fetched_again(served: Served) -> None:
    (served.root / "other").touch()
    copy = local_directory(served.url, ["text", "other"], "digest")
    (copy / "text").unlink()
    assert local_directory(served.url, ["text", "other"], "digest") == copy
    assert (copy / "text").read_bytes() == TEXT
    assert served.asked == {"text": 2, "other": 2}


def test_files_of_any_file_system(
    served: Served,  # noqa: ARG001 - names the folder of copies
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(remote, "PROTOCOLS", ("memory",))
    files = fsspec.filesystem("memory")
    for text in (TEXT, TEXT[:-7], b""):
        with files.open("/folder/text.gz", "wb") as out:
            out.write(gzip.compress(text))
        assert whole("memory://folder/text.gz") == text
    with pytest.raises(DataError, match=r"memory://folder: is a folder; name a file in it"):
        local_path("memory://folder")
    files.rm("/folder", recursive=True)
    with pytest.raises(DataError, match=r"memory://folder/text.gz: no such file there; check the URL"):
        local_path("memory://folder/text.gz")


def test_a_part_of_a_file_is_no_copy_of_it(served: Served) -> None:
    served.cut = 100
    with pytest.raises(DataError, match=f"{served.url}/text: "):
        local_path(f"{served.url}/text")
    assert os.listdir(downloads()) == []
    served.cut = 0
    assert whole(f"{served.url}/text") == TEXT


def test_several_may_fetch_a_file_at_once(served: Served) -> None:
    served.delay = 0.05
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(whole, [f"{served.url}/text"] * 8)) == [TEXT] * 8
    assert len(os.listdir(downloads())) == 1


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("{server}/other", "no such file there; check the URL"),
        ("http://127.0.0.1:1/a", "cannot be fetched: "),
        ("http://no-such-host.invalid/a", "cannot be fetched: .*; check the URL and the connection"),
        ("{server}/loop", "the server sends from one address to another, without end"),
        ("s3://a/b", "needs a package that is not installed: Install own"),
        ("htps://a/b", "files are fetched by https, http, s3, gs, hf, not by htps; name the path of one that is on"),
        ("file:///etc/passwd", "files are fetched by .*, not by file"),
        ("simplecache::s3://a/b", "files are fetched by .*, not by simplecache::s3"),
        ("github://a:b@main/c", "files are fetched by .*, not by github"),
    ],
)
def test_what_cannot_be_fetched_is_named(
    served: Served, url: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    about = {"class": "no_such_package.files.Own", "err": "Install own to read s3://"}
    monkeypatch.setitem(import_module("fsspec.registry").known_implementations, "s3", about)
    url = url.replace("{server}", served.url)
    with pytest.raises(DataError, match=f"^{url}: {message}"):
        open_stream(url)
    assert not downloads().exists()


def test_servers_that_refuse_or_say_nothing(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    served.status = 403
    with pytest.raises(DataError, match="the server answers 403 Forbidden; check the URL, and whether it needs a"):
        local_path(f"{served.url}/text")
    served.status, served.delay = 200, 1.0
    monkeypatch.setattr(remote, "PATIENCE", 0.05)
    with pytest.raises(DataError, match=r"no answer for 0\.05 seconds"):
        local_path(f"{served.url}/text")


@pytest.mark.parametrize("package", ["fsspec", "aiohttp"])
def test_packages_that_are_needed_are_named(package: str, served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (package, "fsspec.core"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(DataError, match=r"need fsspec and aiohttp: pip install 'rerank-nbest\[remote\]'"):
        local_path(f"{served.url}/text")


def test_where_copies_are(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, place in (("RERANK_DOWNLOADS", "a"), ("XDG_CACHE_HOME", "a/rerank/downloads")):
        monkeypatch.delenv("RERANK_DOWNLOADS", raising=False)
        monkeypatch.setenv(name, str(tmp_path / "a"))
        assert downloads() == tmp_path / place
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert downloads() == tmp_path / ".cache" / "rerank" / "downloads"


def test_a_file_that_never_ends_is_given_up(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RERANK_DOWNLOADS_GB", "0.0001")
    said = (
        r"more than the 0\.0001 GB that all copies may take; fetch it and name its copy, or set \$RERANK_DOWNLOADS_GB"
    )
    for endless in (True, False):  # without a word on its size, and with one
        served.endless = endless
        (served.root / "text").write_bytes(TEXT if endless else TEXT * 3)
        with pytest.raises(DataError, match=said):
            local_path(f"{served.url}/text")
    served.endless = False
    for name in ("a", "b"):
        (served.root / name).write_bytes(TEXT)
    with pytest.raises(DataError, match=f"{served.url}/b: has {said}"):  # of a folder
        local_directory(served.url, ["a", "b"], "0" * 64)
    assert os.listdir(downloads()) == []
    for wrong in ("many", "-1", "nan", "inf"):
        monkeypatch.setenv("RERANK_DOWNLOADS_GB", wrong)
        with pytest.raises(RecipeError, match=f"RERANK_DOWNLOADS_GB: found '{wrong}'; expected a number of GB"):
            local_path(f"{served.url}/a")


def test_copies_that_were_not_used_for_longest_make_room(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RERANK_DOWNLOADS_GB", f"{len(TEXT) * 3.5 / 1e9:f}")
    for name in "abcdef":
        (served.root / name).write_bytes(TEXT)
    mine = downloads() / "mine"
    mine.parent.mkdir()
    mine.write_bytes(TEXT * 9)
    folder = local_directory(served.url, ["a", "b"], "0" * 64)
    first = local_path(f"{served.url}/c")
    for age, path in enumerate((folder, first)):
        os.utime(path, (age, age))
    assert local_directory(served.url, ["a", "b"], "0" * 64) == folder  # used again
    assert {local_path(f"{served.url}/d")} | {str(folder), str(mine)} == set(map(str, downloads().iterdir()))
    os.utime(folder, (0, 0))
    local_path(f"{served.url}/e")
    local_path(f"{served.url}/f")
    assert sorted(path.name[-1] for path in downloads().iterdir()) == ["d", "e", "e", "f"]
    assert served.asked == dict.fromkeys("abcdef", 1)


def test_a_server_without_encryption_is_warned_of(
    served: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(logging.getLogger("rerank"), "propagate", True)
    local_path(f"{served.url}/text")
    assert "encrypted" not in caplog.text  # within this machine
    monkeypatch.setattr(remote, "HERE", ())
    for _ in range(2):
        local_path(f"{served.url}/text")
    said = {id(each) for each in caplog.records if "127.0.0.1: http is not encrypted" in each.getMessage()}
    assert len(said) == 1
