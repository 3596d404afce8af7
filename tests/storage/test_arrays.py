"""Arrays from files: what numpy writes is read, and nothing else gets memory."""

import io
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from rerank.storage.arrays import lay_array, open_archive, read_array, write_rows

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
def test_any_other_bytes_are_an_error_or_the_array_that_they_say(
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


def head(text: bytes) -> bytes:
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def of_shape(shape: str) -> bytes:
    return head(f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}\n".encode()) + bytes(8)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (b"", "does not begin like an array file"),
        (b"\x93NUMPY\x02\x00" + bytes(8), "does not begin like an array file"),
        (content(np.array([{}], object)), "not that of an array of plain numbers"),
        (content(np.zeros(2, [("a", "f8")])), "not that of an array of plain numbers"),
        (content(np.array(["text"])), "not that of an array of plain numbers"),
        (content(np.zeros(2, ">f8")), "not that of an array of plain numbers"),
        (head(b"(" * 60_000), "not that of an array of plain numbers"),
        (head(b"__import__('os').abort()\n"), "not that of an array of plain numbers"),
        (of_shape("(-1,)"), "not that of an array of plain numbers"),
        (of_shape("(1,)").replace(b"<f8", b"<f1"), "no numbers of type <f1"),
        (of_shape("(1000000000000,)"), r"takes 8,000,000,000,000 bytes, the file has 8 after its header"),
        (of_shape("(99999999999, 99999999999)"), "takes 7"),
        (of_shape("(99999999999, 0)"), "takes 0 bytes, the file has 8"),
        (of_shape("(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)"), "not that of an array of plain numbers"),
    ],
)
def test_headers_that_numpy_would_not_write(tmp_path: Path, written: bytes, message: str) -> None:
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


# Archives


def test_archives(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    x, y = np.arange(6.0).reshape(2, 3), np.asfortranarray(np.arange(6).reshape(2, 3))
    np.savez_compressed(path, x=x, y=y)
    with open_archive(path) as archive:
        assert sorted(archive.names) == ["x", "y"]
        assert np.array_equal(archive.read("x", np.float64, (2, None)), x)
        assert np.array_equal(archive.read("y", np.int64, (None, 3)), y)
        for name, dtype, shape, message in [
            ("z", np.float64, (2, 3), "a.npz: z is missing"),
            ("x", np.int64, (2, 3), "a.npz: x: its numbers are float64"),
            ("x", np.float64, (6,), "a.npz: x: it has 2 axes"),
            ("x", np.float64, (3, None), r"a.npz: x: its shape is \(2, 3\); expected 3 × any"),
        ]:
            with pytest.raises(ValueError, match=message):
                archive.read(name, dtype, shape)


def bomb(path: Path) -> None:
    """A large array of zeros in a small file."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", content(np.zeros(1 << 20)))


def lie(path: Path) -> None:
    """A member that says it has more than a terabyte."""
    bomb(path)
    data = bytearray(path.read_bytes())
    at = data.rindex(b"PK\x01\x02")
    data[at + 24 : at + 28] = (0xFFFFFFF0).to_bytes(4, "little")
    path.write_bytes(data)


def twice(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.npy", content(np.zeros(1)))
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("x.npy", content(np.zeros(1)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (bomb, "8,388,736 bytes are more than it can have"),
        (lie, "4,294,967,280 bytes are more than it can have"),
        (twice, "two arrays of one name"),
        (lambda path: path.write_bytes(b"PK\x05\x06"), "File is not a zip file"),
    ],
)
def test_archives_that_are_none(tmp_path: Path, make: Callable[[Path], Any], message: str) -> None:
    make(tmp_path / "a.npz")
    with (
        pytest.raises(ValueError, match=rf"^a\.npz: .*{message}"),
        open_archive(tmp_path / "a.npz") as archive,
    ):
        archive.read("x", np.float64, (None,), most=1 << 20)


@given(at=st.integers(0, 10_000), byte=st.integers(0, 255))
def test_every_changed_byte_is_an_error_or_changes_nothing(file: Path, at: int, byte: int) -> None:
    stream, x = io.BytesIO(), np.arange(50.0)
    np.savez_compressed(stream, x=x)
    data = bytearray(stream.getvalue())
    data[at % len(data)] = byte
    path = file.with_suffix(".npz")
    path.write_bytes(data)

    def read() -> np.ndarray:
        with open_archive(path) as archive:
            return archive.read("x", np.float64, (50,))

    found = attempt(read)
    assert found.startswith("a.npz: ") if isinstance(found, str) else np.array_equal(found, x)


def test_rows_are_written_to_their_places(tmp_path):
    path, rows = tmp_path / "a.npy", np.arange(24, dtype=np.float64).reshape(8, 3)
    lay_array(path, np.float32, (8, 3))
    assert not read_array(path).any()
    for first, last in ((5, 8), (0, 0), (0, 2), (2, 5), (2, 5)):
        write_rows(path, first, rows[first:last])
    np.save(tmp_path / "b.npy", rows.astype(np.float32))
    assert path.read_bytes() == (tmp_path / "b.npy").read_bytes()
    with pytest.raises(FileNotFoundError):
        write_rows(tmp_path / "c.npy", 0, rows)
