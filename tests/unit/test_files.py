"""Files and directories that appear whole or not at all."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from rerank.errors import DataError, RunError
from rerank.files import new_directory, new_file, write_text


@pytest.fixture
def umask() -> Iterator[int]:
    before = os.umask(0o027)
    yield 0o027
    os.umask(before)


def fail(path: Path, error: BaseException) -> None:
    """Write a file, then fail."""
    path.write_text("new")
    raise error


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_a_directory_appears_at_the_end(tmp_path):
    with new_directory(tmp_path / "deep" / "target") as new:
        (new / "a").write_text("1")
        assert not (tmp_path / "deep" / "target").exists()
    assert names(tmp_path / "deep") == ["target"]
    assert (tmp_path / "deep" / "target" / "a").read_text() == "1"


def test_a_directory_replaces_the_old_one_entirely(tmp_path):
    for name in ("a", "b"):
        with new_directory(tmp_path / "target") as new:
            (new / name).write_text(name)
    assert names(tmp_path) == ["target"]
    assert names(tmp_path / "target") == ["b"]


@pytest.mark.parametrize("error", [DataError("bad"), ValueError("bad"), KeyboardInterrupt()])
def test_an_error_inside_leaves_what_was_there(tmp_path, error):
    with new_directory(tmp_path / "target") as new:
        (new / "a").write_text("1")
    with pytest.raises(type(error)), new_directory(tmp_path / "target") as new:
        fail(new / "b", error)
    write_text(tmp_path / "file", "old")
    with pytest.raises(type(error)), new_file(tmp_path / "file") as path:
        fail(path, error)
    assert names(tmp_path) == ["file", "target"]
    assert names(tmp_path / "target") == ["a"]
    assert (tmp_path / "file").read_text() == "old"


def test_a_failed_rename_brings_the_old_directory_back(tmp_path, monkeypatch):
    with new_directory(tmp_path / "target") as new:
        (new / "a").write_text("1")
    rename = Path.rename

    def fail_once(self: Path, to: Path) -> Path:
        if to == tmp_path / "target" and not self.name.endswith("-old"):
            raise OSError(28, "No space left on device")
        return rename(self, to)

    monkeypatch.setattr(Path, "rename", fail_once)
    with pytest.raises(RunError, match="No space left"), new_directory(tmp_path / "target") as new:
        (new / "b").write_text("2")
    assert names(tmp_path) == ["target"]
    assert names(tmp_path / "target") == ["a"]


def test_permissions_follow_the_umask(tmp_path, umask):
    with new_directory(tmp_path / "target") as new:
        (new / "a").write_text("1")
    write_text(tmp_path / "file", "x")
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("target", "target/a", "file")]
    assert modes == [0o777 & ~umask, 0o666 & ~umask, 0o666 & ~umask]


@pytest.mark.parametrize("make", [new_directory, new_file])
def test_a_place_that_cannot_be_written(tmp_path, make):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(RunError, match=r"cannot write .*file/target"), make(tmp_path / "file" / "target") as new:
        new.mkdir(exist_ok=True)
    assert (tmp_path / "file").read_text() == "mine"
    assert names(tmp_path) == ["file"]


def test_neither_replaces_the_other_kind(tmp_path):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "directory").mkdir()
    with pytest.raises(RunError), new_directory(tmp_path / "file"):
        pass
    with pytest.raises(RunError):
        write_text(tmp_path / "directory", "text")
    assert (tmp_path / "file").read_text() == "mine"
    assert names(tmp_path) == ["directory", "file"]


def test_text_is_utf8(tmp_path):
    write_text(tmp_path / "file", "größer\n")
    assert (tmp_path / "file").read_bytes() == "größer\n".encode()
