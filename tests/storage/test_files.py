"""Files that are whole or absent: texts, arrays, JSON."""

import io
import math
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of
from programs import PATIENCE

import rerank
from rerank.base.errors import DataError, RecipeError, RunError
from rerank.storage.documents import as_json, read_object
from rerank.storage.files import (
    find_directory,
    new_directory,
    new_file,
    open_output,
    read_archive,
    read_array,
    remove,
    remove_leftovers,
    scratch,
    seal,
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
    assert find_directory(target) == target
    with pytest.raises(SystemExit):
        replace_it(target)
    assert not target.exists()
    assert names(find_directory(target)) == ["a", "checksums.json"]
    assert find_directory(tmp_path / "other") == tmp_path / "other"


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
    with pytest.raises(ValueError, match="bad"), scratch(tmp_path / "deep" / "spool") as place:
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
from rerank.storage.files import new_directory, new_file, scratch
from rerank.storage.files import open_output
place = Path(sys.argv[1])
with new_directory(place / "d") as d, new_file(place / "f") as f, scratch(place / "s"), open_output(
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
    with scratch(tmp_path / "s"):
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


KINDS = ["<f8", "<f4", "<i8", "<i4", "<i2", "|i1", "<u8", "|u1", "|b1"]
SHAPES = arrays_of.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5)


def content(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=True)
    return stream.getvalue()


def attempt(read: Callable[[], np.ndarray]) -> np.ndarray | str:
    """What ``read`` gives, or the message of its ValueError."""
    try:
        return read()
    except ValueError as error:
        return str(error)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("arrays") / "a.npy"


@given(data=st.data(), kind=st.sampled_from(KINDS), shape=SHAPES, order=st.sampled_from("CF"), mmap=st.booleans())
def test_what_numpy_saves_is_read(file: Path, data: Any, kind: str, shape: Any, order: Any, mmap: bool) -> None:
    array = np.asarray(data.draw(arrays_of.arrays(kind, shape)), order=order)
    file.write_bytes(content(array))
    found = read_array(file, kind, array.ndim, mmap=mmap)
    assert (found.dtype, found.shape) == (array.dtype, array.shape)
    assert found.tobytes() == array.tobytes()
    assert isinstance(found, np.memmap) == mmap
    assert found.flags.writeable != mmap


@given(array=arrays_of.arrays("<f8", SHAPES), at=st.integers(0, 200), byte=st.integers(0, 255), cut=st.integers(-3, 3))
def test_other_bytes_are_an_error_or_the_array_they_say(
    file: Path, array: np.ndarray, at: int, byte: int, cut: int
) -> None:
    damaged = bytearray(content(array))
    damaged[at % len(damaged)] = byte
    written = bytes(damaged[: len(damaged) + cut]) if cut <= 0 else bytes(damaged) + b"\0" * cut
    file.write_bytes(written)
    found = attempt(lambda: read_array(file))
    if isinstance(found, str):
        assert found.startswith("a.npy: ")
    else:
        assert written.endswith(found.tobytes(order="A"))
        assert np.array_equal(found, np.load(file, allow_pickle=False), equal_nan=found.dtype.kind == "f")


def of_shape(shape: str) -> bytes:
    text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bytes(8)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (b"", "not an array file"),
        (content(np.array([{}], object)), "not an array file"),
        (content(np.zeros(2, [("a", "f8")])), "expected plain numbers"),
        (content(np.array(["text"])), "expected plain numbers"),
        (content(np.zeros(2, ">f8")), "expected plain numbers"),
        (of_shape("__import__('os').abort()"), "not an array file"),
        (of_shape("(1000000000000,)"), "not an array file"),
        (of_shape("(0,)"), r"takes 0 bytes, the file has 8 after its header"),
    ],
)
def test_what_is_no_array_of_numbers_gets_no_memory(tmp_path: Path, written: bytes, message: str) -> None:
    (tmp_path / "a.npy").write_bytes(written)
    with pytest.raises(ValueError, match=rf"^a\.npy: .*{message}"):
        read_array(tmp_path / "a.npy")


def test_only_what_is_expected(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((2, 3)))
    with pytest.raises(ValueError, match=r"a.npy: its numbers are float64; expected int32"):
        read_array(tmp_path / "a.npy", np.int32)
    with pytest.raises(ValueError, match=r"a.npy: it has 2 axes; expected 1"):
        read_array(tmp_path / "a.npy", np.float64, 1)


def test_a_pipe_is_no_array(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.npy")
    with pytest.raises(ValueError, match=r"a.npy: it is not a regular file"):
        read_array(tmp_path / "a.npy")
    with pytest.raises(FileNotFoundError):
        read_array(tmp_path / "b.npy")


def test_an_archive_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "a.npz").write_bytes(b"PK\x05\x06")
    with pytest.raises(ValueError, match=r"^a\.npz: not an archive of arrays"):
        read_archive(tmp_path / "a.npz")


def test_an_object(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes('{"a": [1, 2.5, null, "ä"], "b": {"a": {}}}'.encode())
    assert read_object(tmp_path / "a.json") == {"a": [1, 2.5, None, "ä"], "b": {"a": {}}}


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (b"", "not valid JSON"),
        (b"\xff{}", "not valid JSON"),
        (b"[1]", "found list; expected an object"),
        (b'{"a": NaN}', "NaN is not a number"),
        (b'{"a": [-Infinity]}', "-Infinity is not a number"),
        (b'{"b": {"a": 1, "a": 1}}', "the key 'a' appears twice"),
        (b'{"a": ' + b"[" * 200_000, "nested too deep"),
        (b'{"a": ' * 200_000, "nested too deep"),
        (b'{"a": ' + b"1" * 10_000 + b"}", "not valid JSON"),
    ],
)
def test_anything_else(tmp_path: Path, written: bytes, message: str) -> None:
    (tmp_path / "a.json").write_bytes(written)
    with pytest.raises(ValueError, match=rf"^a\.json: .*{message}"):
        read_object(tmp_path / "a.json")


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_none_are_not_written(number: float) -> None:
    for value, place in (
        (number, "the result"),
        ({"a": [1.0, {"b": number}]}, "a.1.b"),
        ({"runs": ({}, {"bound": number})}, "runs.1.bound"),
    ):
        with pytest.raises(RunError, match=f"^{place} is {number}, which no JSON file can hold"):
            as_json(value)
    assert as_json({"b": 1, "a": "ä"}, sort_keys=True, ensure_ascii=False) == '{"a": "ä", "b": 1}'


def test_json_is_written_in_one_place() -> None:
    """Elsewhere nobody would refuse NaN; what is advised to users, with {{ in its text, writes nothing here."""
    package = Path(rerank.__file__).parent
    writers = [
        path for path in package.rglob("*.py") if re.search(r"(?<!\")\bjson\.dumps?\((?!\{\{)", path.read_text())
    ]
    assert [path.name for path in writers] == ["documents.py"]
