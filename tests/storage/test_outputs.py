"""What is kept of work done, and files that are elsewhere."""

import gzip
import logging
import os
import signal
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256
from importlib import import_module
from pathlib import Path

import pytest
import small
import zstandard
from programs import PATIENCE
from served import Served, serving

from rerank.base.errors import DataError, RecipeError, RunError
from rerank.storage import files as storage
from rerank.storage import places
from rerank.storage.outputs import NOTE, log_file, output_directory, output_file, prepare_output, sole_run
from rerank.storage.places import fetch, is_url
from rerank.storage.streams import Inputs, open_stream

RESULTS = (".runs", "metrics.json", "history.jsonl", "predictions")
HOLD = """
import sys
from pathlib import Path
from rerank.storage.outputs import sole_run
with sole_run(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def filled(directory: Path, resolved: str) -> dict[str, bytes]:
    """A directory with results of a run, and what is in it."""
    prepare_output(directory, resolved, RESULTS, resume=False)
    for names in ((".runs", "0000.npz"), ("predictions", "test"), ("metrics.json",), ("history.jsonl",), ("model",)):
        path = output_file(directory, *names)
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"of {resolved}")
    (directory / ".runs" / "0000.training.npz").write_text("beside it")
    return files(directory)


def files(directory: Path) -> dict[str, bytes]:
    """All files but the note of what runs have written."""
    return {name: content for name, content in small.files_of(directory).items() if name != NOTE}


class TestOneRunAtATime:
    def test_in_this_process(self, tmp_path):
        with sole_run(tmp_path / "out"):
            with pytest.raises(RunError, match=rf"another run uses this directory \(process {os.getpid()} on .* since"):
                sole_run(tmp_path / "out").__enter__()
            with sole_run(tmp_path / "other"):
                pass
        with sole_run(tmp_path / "out"):
            pass
        assert files(tmp_path) == {}

    @pytest.mark.parametrize("end", ["done", "killed"])
    def test_in_others(self, tmp_path, end):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        with subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], **pipes) as other:
            assert other.stdout.readline() == b"held\n"
            with pytest.raises(RunError, match=rf"\(process {other.pid} on "):
                sole_run(tmp_path).__enter__()
            if end == "killed":
                other.send_signal(signal.SIGKILL)
            other.communicate(b"", timeout=PATIENCE)
        assert (tmp_path / ".rerank.lock").exists() == (end == "killed")
        with sole_run(tmp_path):
            assert str(os.getpid()) in (tmp_path / ".rerank.lock").read_text()
        assert not (tmp_path / ".rerank.lock").exists()

    def test_a_refused_run_changes_nothing(self, tmp_path):
        before = filled(tmp_path, "mine")
        with sole_run(tmp_path):
            with pytest.raises(RunError), output_directory(tmp_path, "other", RESULTS, resume=False):
                pass
            (tmp_path / ".rerank.lock").rename(tmp_path / "lock")
        (tmp_path / "lock").unlink()
        assert files(tmp_path) == before


class TestPreparing:
    def test_a_new_run_starts_empty(self, tmp_path):
        filled(tmp_path, "old")
        prepare_output(tmp_path, "new", RESULTS, resume=False)
        assert files(tmp_path) == {"recipe.yaml": b"new", "model": b"of old"}
        assert (tmp_path / "predictions").is_dir()

    def test_a_resumed_run_keeps_everything(self, tmp_path):
        before = filled(tmp_path, "same")
        prepare_output(tmp_path, "same", RESULTS, resume=True)
        assert files(tmp_path) == before

    @pytest.mark.parametrize("steps", range(9))
    def test_killed_while_it_makes_room(self, tmp_path, monkeypatch, steps):
        """Whatever was done when the process died: the new run can be resumed, and finds nothing of the old one."""
        filled(tmp_path, "old")
        left = iter(range(steps))

        class KilledError(Exception):
            pass

        def dies(function):
            def step(*arguments, **options):
                if next(left, None) is None:
                    raise KilledError
                return function(*arguments, **options)

            return step

        with monkeypatch.context() as patched:
            patched.setattr(storage, "write_text", dies(storage.write_text))
            patched.setattr(storage, "remove", dies(storage.remove))
            try:
                prepare_output(tmp_path, "new", RESULTS, resume=False)
                done = True
            except KilledError:
                done = False
        assert done == (steps >= 7)
        if steps == 0:  # nothing has happened yet: the old run is as it was
            with pytest.raises(RecipeError, match="other settings"):
                prepare_output(tmp_path, "new", RESULTS, resume=True)
            return
        prepare_output(tmp_path, "new", RESULTS, resume=True)
        assert files(tmp_path) == {"recipe.yaml": b"new", "model": b"of old"}

    def test_leftovers_go(self, tmp_path):
        prepare_output(tmp_path, "same", RESULTS, resume=False)
        for place in ("", "predictions", ".runs", "figures", "mine"):
            (tmp_path / place).mkdir(parents=True, exist_ok=True)
            (tmp_path / place / ".x.01234567.rerank").write_text("")
            (tmp_path / place / ".x.partial").write_text("somebody else's")
        prepare_output(tmp_path, "same", RESULTS, resume=True)
        foreign = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob(".x.partial")}
        assert len(foreign) == 5
        assert set(files(tmp_path)) == {"recipe.yaml", "mine/.x.01234567.rerank", *foreign}


class TestLog:
    def test_it_is_added_to(self, tmp_path):
        logging.getLogger("rerank").setLevel(logging.INFO)
        for text in ("one", "two"):
            with log_file(tmp_path):
                logging.getLogger("rerank").info(text)
        lines = (tmp_path / "log.txt").read_text().splitlines()
        assert [line.split(" INFO ")[1] for line in lines] == ["one", "two"]

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
    def test_its_failure_hides_nothing(self, tmp_path, caplog, capsys, monkeypatch):
        monkeypatch.setattr(logging.getLogger("rerank"), "propagate", False)
        monkeypatch.setattr(logging.getLogger("rerank"), "handlers", [caplog.handler])
        (tmp_path / "log.txt").symlink_to("/dev/full")
        with pytest.raises(ValueError, match="mine"), log_file(tmp_path):  # noqa: PT012
            logging.getLogger("rerank").warning("first")
            logging.getLogger("rerank").warning("second")
            raise ValueError("mine")
        said = [record.getMessage() for record in caplog.records]
        assert [text for text in said if "can no longer be written" not in text] == ["first", "second"]
        assert len(said) == 3
        assert "Traceback" not in capsys.readouterr().err

    def test_one_that_cannot_be_opened(self, tmp_path):
        (tmp_path / "log.txt").mkdir()
        with pytest.raises(RunError, match=r"cannot write .*log\.txt: Is a directory"):
            log_file(tmp_path).__enter__()


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
    assert fetch(f"{url}?download=true") == TEXT[::-1]


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


def test_logins_and_tokens_are_not_told(served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_what_is_not_fetched_is_named(served: Served, url: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    about = {"class": "no_such_package.files.Own", "err": "Install own to read s3://"}
    monkeypatch.setitem(import_module("fsspec.registry").known_implementations, "s3", about)
    url = url.replace("{server}", served.url)
    with pytest.raises(DataError, match=f"^{url}: {message}"):
        open_stream(url)


def test_a_server_that_says_nothing(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    served.delay = 1.0
    monkeypatch.setattr(places, "ANSWER_SECONDS", 0.05)
    with pytest.raises(DataError, match=r"no answer for 0\.05 seconds"):
        open_stream(f"{served.url}/text")


@pytest.mark.parametrize("package", ["fsspec.core", "aiohttp"])
def test_packages_that_are_needed_are_named(package: str, served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(DataError, match=r"need a package .* pip install 'rerank-nbest\[remote\]'"):
        open_stream(f"{served.url}/text")
