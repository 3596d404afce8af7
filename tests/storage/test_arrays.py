"""Arrays from files: what numpy writes is read, and nothing else gets memory."""

import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from rerank.storage.files import read_archive, read_array

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
