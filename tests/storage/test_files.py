"""Files and directories that appear whole or not at all."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from programs import PATIENCE

from rerank.base.errors import DataError, RecipeError, RunError
from rerank.readers.streams import open_output
from rerank.storage.files import (
    new_directory,
    new_file,
    remove,
    remove_leftovers,
    scratch_directory,
    seal,
    standing,
    write_text,
)


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


def test_data_are_on_disk_before_they_get_their_names(tmp_path, monkeypatch):
    synced = {}
    monkeypatch.setattr(os, "fsync", lambda file: synced.setdefault(os.fstat(file).st_ino, names(tmp_path)))
    with new_directory(tmp_path / "unsynced", synced=False) as new:
        (new / "a").write_text("1")
    assert not synced
    write_text(tmp_path / "file", "2")
    with new_directory(tmp_path / "target") as new:
        (new / "a").write_text("3")
        (new / "b").write_text("4")
    for place in ("file", "target/a", "target/b"):
        assert place.partition("/")[0] not in synced[(tmp_path / place).stat().st_ino]


def test_a_directory_replaces_the_old_one_entirely(tmp_path):
    for name in ("a", "b"):
        with new_directory(tmp_path / "target") as new:
            (new / name).write_text(name)
            seal(new)
    assert names(tmp_path) == ["target"]
    assert names(tmp_path / "target") == ["b", "checksums.json"]


def replace_it(target: Path) -> None:
    with new_directory(target) as new:
        (new / "a").write_text("2")


@pytest.mark.parametrize("place", ["a", "b", ".hidden", "deep"])
def test_a_directory_with_somebody_elses_file_is_not_replaced(tmp_path, place):
    """Whoever made the directory, and whatever the file is called."""
    if place != "a":
        with new_directory(tmp_path / "target") as new:
            (new / "a").write_text("1")
            seal(new)
    (tmp_path / "target" / place).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / "target" / place).write_text("mine")
    with pytest.raises(RunError, match=f"target/{place} was not written by this program; move it"):
        replace_it(tmp_path / "target")
    assert (tmp_path / "target" / place).read_text() == "mine"
    assert names(tmp_path) == ["target"]


@pytest.mark.parametrize("write", [new_directory, new_file])
@pytest.mark.parametrize(("name", "said"), [("", "the name of a"), (".", "the name of a"), ("s3://a/b", "a URL")])
def test_names_that_are_none_and_urls_are_refused(tmp_path, monkeypatch, write, name, said):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RecipeError, match=f"^cannot write .*{said}"), write(Path(name)):
        pass
    assert names(tmp_path) == []


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
        seal(new)
    rename, failed = Path.rename, [False, True]

    def fail_once(self: Path, to: Path) -> Path:
        if to == tmp_path / "target" and failed.pop():
            raise OSError(28, "No space left on device")
        return rename(self, to)

    monkeypatch.setattr(Path, "rename", fail_once)
    with pytest.raises(RunError, match="No space left"), new_directory(tmp_path / "target") as new:
        (new / "b").write_text("2")
    assert names(tmp_path) == ["target"]
    assert names(tmp_path / "target") == ["a", "checksums.json"]


def test_what_a_kill_between_two_renames_hides_is_found(tmp_path, monkeypatch):
    target = tmp_path / "tar*get"
    with new_directory(target) as new:
        (new / "a").write_text("1")
        seal(new)
    rename = Path.rename

    def end(self: Path, to: Path) -> Path:
        if to == target:
            raise SystemExit
        return rename(self, to)

    monkeypatch.setattr(Path, "rename", end)
    assert standing(target) == target
    with pytest.raises(SystemExit):
        replace_it(target)
    assert not target.exists()
    assert names(standing(target)) == ["a", "checksums.json"]
    assert standing(tmp_path / "other") == tmp_path / "other"


@pytest.mark.parametrize("make", [new_directory, new_file])
def test_a_place_that_cannot_be_written(tmp_path, make):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(RunError, match=r"cannot write .*file/target"), make(tmp_path / "file" / "target") as new:
        new.mkdir(exist_ok=True)
    assert (tmp_path / "file").read_text() == "mine"
    assert names(tmp_path) == ["file"]


def test_of_two_that_make_the_same_the_first_stays(tmp_path):
    with new_directory(tmp_path / "target", keep=True) as slow:
        (slow / "who").write_text("slow")
        with new_directory(tmp_path / "target", keep=True) as fast:
            (fast / "who").write_text("fast")
    assert (tmp_path / "target" / "who").read_text() == "fast"
    assert names(tmp_path) == ["target"]


def test_a_scratch_directory_goes_with_its_block(tmp_path):
    with pytest.raises(ValueError, match="bad"), scratch_directory(tmp_path / "deep" / "spool") as place:
        fail(place / "block", ValueError("bad"))
    assert names(tmp_path / "deep") == []


def test_removing(tmp_path):
    (tmp_path / "directory" / "deep").mkdir(parents=True)
    (tmp_path / "file").write_text("x")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    for name in ("directory", "file", "link", "nothing"):
        remove(tmp_path / name)
    assert names(tmp_path) == ["elsewhere"]


KILLED = """
import os, sys
from pathlib import Path
from rerank.storage.files import new_directory, new_file, scratch_directory
from rerank.readers.streams import open_output
place = Path(sys.argv[1])
with new_directory(place / "d") as d, new_file(place / "f") as f, scratch_directory(place / "s"), open_output(
    place / "o.gz"
) as out:
    (d / "part").write_text("x")
    f.write_text("x")
    out.write(b"x")
    os.kill(os.getpid(), 9)
"""


def test_what_a_killed_process_leaves_goes(tmp_path):
    assert subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], timeout=PATIENCE, check=False).returncode == -9
    assert len(names(tmp_path)) == 4
    for mine in (".mine", ".mine.abc.rerank", ".x.01234567.partial"):
        (tmp_path / mine).write_text("")
    remove_leftovers(tmp_path)
    assert names(tmp_path) == [".mine", ".mine.abc.rerank", ".x.01234567.partial"]
    remove_leftovers(tmp_path / "nowhere")


def test_the_next_writer_removes_what_a_killed_one_has_left(tmp_path):
    """Of its own name alone, and not what another is writing, in this process too."""
    assert subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], timeout=PATIENCE, check=False).returncode == -9
    (tmp_path / ".d.old.01234567.rerank").mkdir()  # killed while it replaced a directory, which is kept until then
    with new_file(tmp_path / "f.d") as unlike, new_file(tmp_path / "f") as other, new_directory(tmp_path / "d") as new:
        other.write_text("a")
        unlike.write_text("b")
        held = {unlike.name, other.name, new.name}
        assert {name for name in names(tmp_path) if name[1] in "fd"} == {*held, ".d.old.01234567.rerank"}
        with new_file(tmp_path / "f") as second:
            second.write_text("c")
        assert (tmp_path / "f").read_text() == "c"
    assert (tmp_path / "f").read_text() == "a"
    with open_output(tmp_path / "o.gz"):
        pass
    with scratch_directory(tmp_path / "s"):
        pass
    with new_directory(tmp_path / "d"):  # which replaces one
        pass
    assert names(tmp_path) == ["d", "f", "f.d", "o.gz"]


@pytest.mark.parametrize("short", ["3000 requested and 512 written", "No space left on device"])
def test_a_full_disk_while_an_array_is_saved(tmp_path, monkeypatch, short):
    def save(path: Path, _: Any, **__: Any) -> None:
        path.write_bytes(b"\x93NUMPY")
        raise OSError(28, short) if short.startswith("No") else OSError(short)

    monkeypatch.setattr(np, "save", save)
    hint = "the disk is full" if short.startswith("3000") else "No space left"
    with pytest.raises(RunError, match=f"cannot write .*target: {hint}"), new_directory(tmp_path / "target") as new:
        np.save(new / "a.npy", np.zeros(3))
    assert names(tmp_path) == []
