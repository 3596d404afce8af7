"""Files by URL: as they are now, never in part."""

import gzip
import sys
from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256
from importlib import import_module
from pathlib import Path

import pytest
import zstandard
from served import Served, serving

from rerank.base.errors import DataError
from rerank.readers.inputs import Inputs
from rerank.readers.streams import open_stream
from rerank.storage import remote
from rerank.storage.remote import fetched, is_url

pytest.importorskip("aiohttp")
fsspec = pytest.importorskip("fsspec")
TEXT = b"".join(b"%d a line\n" % i for i in range(5000))


def whole(path: str) -> bytes:
    with open_stream(path) as stream:
        return b"".join(iter(lambda: stream.read(1 << 16), b""))


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    (tmp_path / "text").write_bytes(TEXT)
    with serving(tmp_path) as found:
        yield found


def test_what_is_a_url() -> None:
    assert all(map(is_url, ("https://a/b", "s3://a/b", "hf://datasets/a", "memory://a", "HTTP://a")))
    assert not any(map(is_url, ("a/b", "C:\\a", "c:/a", "a:b", "-", "", "https:/a", "{root}/a", "/a//b", "a/b://c")))


@pytest.mark.parametrize("tagged", [True, False])
@pytest.mark.parametrize(("name", "data"), [
    ("text", TEXT), ("text.gz", gzip.compress(TEXT)), ("text.zst", zstandard.ZstdCompressor().compress(TEXT)),
])  # fmt: skip
def test_what_is_read_is_what_the_server_has_now(served: Served, name: str, data: bytes, tagged: bool) -> None:
    served.tagged = tagged
    (served.root / name).write_bytes(data)
    url = f"{served.url}/{name}"
    assert whole(url) == TEXT
    (served.root / name).write_bytes(TEXT[::-1])  # of the same size, or not
    assert whole(url) == TEXT[::-1]
    assert fetched(f"{url}?download=true") == TEXT[::-1]


def test_a_file_by_url_can_be_read_again_and_has_a_digest(served: Served) -> None:
    with Inputs() as inputs:
        url = f"{served.url}/text"
        inputs.open(url)
        assert (inputs.size([url]) > 0, inputs.digest(url)) == (True, sha256(TEXT).hexdigest())
        assert whole(url) == TEXT


def test_files_of_any_file_system_and_patterns_of_them() -> None:
    files = fsspec.filesystem("memory")
    for text in (TEXT, TEXT[:-7], b""):
        with files.open("/folder/text.gz", "wb") as out:
            out.write(gzip.compress(text))
        assert whole("memory://folder/text.gz") == text
    for name, text in (("b.jsonl", TEXT[:9]), ("a.jsonl", TEXT[9:])):
        files.pipe(f"/folder/train-{name}", text)
    assert whole("memory://folder/train*.jsonl") == TEXT[9:] + TEXT[:9]
    for url, said in (("folder", "is a folder; name a file in it"), ("folder/dev*", "no such file there")):
        with pytest.raises(DataError, match=rf"memory://{url.replace('*', '.')}: {said}"):
            open_stream(f"memory://{url}")
    files.rm("/folder", recursive=True)
    with pytest.raises(DataError, match=r"memory://folder/text.gz: no such file there; check the URL"):
        open_stream("memory://folder/text.gz")


def test_logins_and_tokens_are_used_and_not_told(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"{served.url.replace('//', '//me:secret@')}/text?token=secret"
    assert whole(url) == TEXT
    with pytest.raises(DataError, match=r"/no\?\.\.\.: no such file") as missing:
        open_stream(url.replace("text", "no"))
    served.status = 403
    with pytest.raises(DataError, match=r"/text\?\.\.\.: cannot be fetched: 403") as refused:
        open_stream(url)
    assert "secret" not in str(missing.value) + str(refused.value)
    served.status = 200
    (tmp_path / "logins").write_text("machine 127.0.0.1 login you password hidden\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "logins"))
    assert whole(f"{served.url}/text") == TEXT
    assert served.logins == {f"Basic {b64encode(text).decode()}" for text in (b"me:secret", b"you:hidden")}


def test_a_part_of_a_file_is_not_taken_for_it(served: Served) -> None:
    served.cut = 100
    with pytest.raises(DataError, match=f"{served.url}/text: cannot be fetched"):
        whole(f"{served.url}/text")


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("{server}/other", "no such file there; check the URL"),
        ("http://127.0.0.1:1/a", "cannot be fetched: "),
        ("{server}/loop", "cannot be fetched: "),
        ("s3://a/b", r"files by URL need a package that is not installed \(Install own"),
        ("htps://a/b", "cannot be fetched: Protocol not known: htps"),
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


def test_a_server_that_says_nothing(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    served.delay = 1.0
    monkeypatch.setattr(remote, "PATIENCE", 0.05)
    with pytest.raises(DataError, match=r"no answer for 0\.05 seconds"):
        open_stream(f"{served.url}/text")


@pytest.mark.parametrize("package", ["fsspec.core", "aiohttp"])
def test_packages_that_are_needed_are_named(package: str, served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(DataError, match=r"need a package .* pip install 'rerank-nbest\[remote\]'"):
        open_stream(f"{served.url}/text")
