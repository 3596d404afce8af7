"""Streams: what goes in comes out, and what is damaged is said to be."""

import bz2
import gzip
import io
import logging
import lzma
import os
import sys
import threading
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from rerank.base.errors import DataError, RunError
from rerank.readers import lines as lines_module
from rerank.readers.lines import LineReader
from rerank.readers.texts.text_files import TextFile
from rerank.storage.files import open_output
from rerank.storage.streams import InputStream, check_encoding, encoding, open_stream, read_in, recognise

TEXT = b"".join(b"%d\tlist-%d\n-%d.5\n(S1 (NN w%d))\n\n" % (1, i, i, i) for i in range(400))

COMPRESS = {
    "plain": lambda data: data,
    "gz": lambda data: gzip.compress(data, mtime=0),
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstandard.ZstdCompressor().compress,
}
ARCHIVES = [kind for kind in COMPRESS if kind != "plain"]


def read_all(path: Path | str, size: int = 1 << 16) -> bytes:
    with open_stream(path) as stream:
        pieces = []
        while piece := stream.read(size):
            assert len(piece) <= size
            pieces.append(piece)
        assert stream.read(size) == b""
    return b"".join(pieces)


@pytest.mark.parametrize("kind", COMPRESS)
@pytest.mark.parametrize("name", ["file", "file.gz", "file.txt"])
def test_compression_is_recognised_by_the_bytes_not_the_name(tmp_path: Path, kind: str, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(COMPRESS[kind](TEXT))
    assert read_all(path) == TEXT
    assert read_all(str(path), size=7) == TEXT


@pytest.mark.parametrize("kind", COMPRESS)
def test_several_members_are_read_one_after_the_other(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(COMPRESS[kind](TEXT) + COMPRESS[kind](b"more\n") + COMPRESS[kind](b"") + COMPRESS[kind](TEXT))
    assert read_all(path) == TEXT + b"more\n" + TEXT


@pytest.mark.parametrize("kind", ARCHIVES)
def test_a_truncated_archive_is_an_error_wherever_it_is_cut(tmp_path: Path, kind: str) -> None:
    data = COMPRESS[kind](TEXT)
    path = tmp_path / f"file.{kind}"
    for size in [*range(40), *range(40, len(data), max(1, len(data) // 150)), *range(len(data) - 40, len(data))]:
        path.write_bytes(data[:size])
        with pytest.raises(DataError) as caught:
            read_all(path)
        assert str(caught.value).startswith(f"{path}: ")
        assert "again" in caught.value.message  # says what to do
    path.write_bytes(data)
    assert read_all(path) == TEXT


@pytest.mark.parametrize("kind", ARCHIVES)
def test_a_damaged_archive_is_an_error_or_the_same_text(tmp_path: Path, kind: str) -> None:
    data = COMPRESS[kind](TEXT)
    path = tmp_path / "file"
    errors, places = 0, set()
    for place in range(10, len(data), max(1, len(data) // 120)):
        path.write_bytes(data[:place] + bytes([data[place] ^ 0x55]) + data[place + 1 :])
        try:
            text = read_all(path)
        except DataError as error:
            errors += 1
            places.add(error.path)
        else:
            # gzip has unused header fields and these zstd frames no checksum; what is read is never cut short
            assert kind == "zst" or text == TEXT
            assert len(text) == len(TEXT)
    assert errors > 20
    assert places == {str(path)}


def test_a_zstd_file_may_start_with_a_skippable_frame(tmp_path: Path) -> None:
    skippable = b"\x50\x2a\x4d\x18\x03\x00\x00\x00abc"
    (tmp_path / "file").write_bytes(skippable + COMPRESS["zst"](TEXT))
    assert read_all(tmp_path / "file") == TEXT


@pytest.mark.parametrize("kind", ARCHIVES)
def test_dense_archives_are_read_in_bounded_memory(tmp_path: Path, kind: str) -> None:
    size, bound = (1 << 27, 80 << 20) if kind == "zst" else (1 << 24, 12 << 20)  # xz keeps 8 MiB
    path = tmp_path / "file"
    path.write_bytes(COMPRESS[kind](b"\0" * size))
    tracemalloc.start()
    with open_stream(path) as stream:
        assert sum(iter(lambda: len(stream.read(1 << 16)), 0)) == size
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < bound


def test_a_text_that_starts_like_bzip2_is_a_text(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"BZh is a chemical symbol")
    assert read_all(tmp_path / "file") == b"BZh is a chemical symbol"
    assert recognise(bz2.compress(b"")[:10], "file") == "bzip2"


def test_missing_files_directories_and_odd_names(tmp_path: Path) -> None:
    (tmp_path / "train.nbest.gz").write_bytes(b"")
    with pytest.raises(DataError, match=r"no such file; did you mean .*train\.nbest\.gz\?"):
        open_stream(tmp_path / "tran.nbest.gz")
    with pytest.raises(DataError, match=r"the directory .*nowhere does not exist"):
        open_stream(tmp_path / "nowhere" / "file")
    with pytest.raises(DataError, match="is a directory"):
        open_stream(tmp_path)
    with pytest.raises(DataError, match="cannot be opened: embedded null byte"):
        open_stream("a\0b")
    with pytest.raises(DataError, match="cannot be opened: File name too long"):
        open_stream("x" * 5000)


def test_read_errors_of_the_system_are_reported() -> None:
    class Broken(io.RawIOBase):
        def read(self, size: int = -1) -> bytes:  # noqa: ARG002
            raise OSError(5, "Input/output error")

    with pytest.raises(DataError, match=r"disk\.txt: cannot be read: Input/output error"):
        InputStream(Broken(), "disk.txt")  # type: ignore[arg-type]


def test_byte_order_marks(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"\xef\xbb\xbfab")
    assert read_all(path, size=1) == b"ab"
    for name in ("utf-16-le", "utf-16-be"):
        path.write_bytes(gzip.compress("\ufeffab".encode(name)))
        with pytest.raises(DataError, match=r"UTF-16.*iconv"):
            read_all(path)


@pytest.mark.parametrize("kind", COMPRESS)
def test_standard_input(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    stdin = io.TextIOWrapper(io.BytesIO(COMPRESS[kind](TEXT)))
    monkeypatch.setattr(sys, "stdin", stdin)
    assert read_all("-") == TEXT
    assert not stdin.buffer.closed


def test_errors_of_standard_input_name_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(TEXT)[:100])))
    with pytest.raises(DataError, match=r"^<stdin>: the gzip data ends too early"):
        read_all("-")


def test_pipes_that_deliver_byte_by_byte(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    data = gzip.compress(b"2\tlist\n")

    def feed() -> None:
        with open(path, "wb", buffering=0) as out:
            for byte in data:
                out.write(bytes([byte]))

    feeder = threading.Thread(target=feed)
    feeder.start()
    assert read_all(path) == b"2\tlist\n"
    feeder.join()


# Output


@pytest.mark.parametrize("kind", COMPRESS)
def test_output_is_compressed_by_its_name_and_read_back(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"out.{kind}"
    with open_output(path) as out:
        out.write(TEXT)
        out.write(b"end")
        assert not path.exists()
    assert read_all(path) == TEXT + b"end"
    with open_stream(path) as stream:
        names = {"gz": "gzip", "bz2": "bzip2", "zst": "zstd"}
        assert stream.compression == names.get(kind, kind)
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("kind", COMPRESS)
def test_the_same_data_gives_the_same_bytes(tmp_path: Path, kind: str) -> None:
    contents = set()
    for name in ("one", "two"):
        with open_output(tmp_path / f"{name}.{kind}") as out:
            out.write(TEXT)
        contents.add((tmp_path / f"{name}.{kind}").read_bytes())
    assert len(contents) == 1
    if kind == "gz":
        assert contents.pop()[3:8] == b"\0" * 5  # no flags (name), no time


def test_output_follows_links_and_replaces_files(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"old")
    link.symlink_to(target)
    with open_output(link) as out:
        out.write(b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


def written(path: Path | str) -> None:
    with open_output(path) as out:
        out.write(TEXT)


class Terminal(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


def test_who_waits_at_a_terminal_is_told_what_for(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    for stdin, said in ((io.TextIOWrapper, []), (Terminal, ["reads what you type, until Ctrl-D; or name a file"])):
        monkeypatch.setattr(sys, "stdin", stdin(io.BytesIO(TEXT)))
        with open_stream("-"):
            assert caplog.messages == said


def test_output_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"cannot write .*No such file or directory; name a file in an existing"):
        written(tmp_path / "nowhere" / "out")
    with pytest.raises(RunError, match="Is a directory"):
        written(tmp_path)
    with pytest.raises(ValueError, match="null byte"):
        written("a\0b")
    with pytest.raises(ValueError, match="not of the output"), open_output(tmp_path / "out"):
        raise ValueError("not of the output")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("name", ["plain", "out.gz"])
def test_a_full_disk_is_a_run_error(tmp_path: Path, name: str) -> None:
    (tmp_path / name).symlink_to("/dev/full")
    with pytest.raises(RunError, match="No space left on device; free some space"), open_output(tmp_path / name) as out:
        out.write(os.urandom(1 << 20))


# Lines


def lines_of(data: bytes, chunk: int) -> list[tuple[int, bytes]]:
    return list(LineReader(InputStream(io.BytesIO(data), "file"), chunk=chunk))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.binary(max_size=6).map(lambda b: b.replace(b"\n", b"").replace(b"\r", b""))), st.integers(1, 9))
def test_lines_do_not_depend_on_chunks_or_line_ends(lines: list[bytes], chunk: int) -> None:
    lines = [b"text", *lines]  # not a magic number
    expected = list(enumerate(lines, 1))
    for end in (b"\n", b"\r\n"):
        assert lines_of(b"".join(line + end for line in lines), chunk) == expected
    if lines[-1]:
        assert lines_of(b"\n".join(lines), chunk) == expected


def test_looking_ahead_takes_nothing() -> None:
    reader = LineReader(InputStream(io.BytesIO(b"a\n\n \nb\nc"), "file"), chunk=2)
    assert reader.peek(3) == [b"a", b"", b" "]
    assert reader.peek(99) == [b"a", b"", b" ", b"b", b"c"]
    assert reader.number == 0
    reader.take(1)
    assert reader.skip_blank()
    assert (reader.number, reader.peek(1)) == (3, [b"b"])
    reader.take(2)
    assert not reader.skip_blank()
    assert reader.peek(1) == []


def test_endless_lines_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines_module, "MAX_LINE", 1 << 20)
    assert len(lines_of(b"x" * (1 << 19), 1 << 16)) == 1
    with pytest.raises(DataError, match="file:2: a line of more than 1 MiB"):
        lines_of(b"short\n" + b"x" * (1 << 21), 1 << 16)


ENCODINGS = {
    "utf-8": "é\U0001f600",
    "latin-1": "Ãé",
    "utf-16": "é\U0001f600",
    "gbk": "联通",
    "iso2022_jp": "日本",
    "cp1252": "€",
}


@pytest.mark.parametrize("name", ENCODINGS)
@pytest.mark.parametrize("step", [1, 2, 3, 1 << 20])
def test_a_file_in_the_encoding_that_is_named_is_read_as_utf8(name: str, step: int, tmp_path: Path) -> None:
    text = f"ab {ENCODINGS[name]} c\n" * 5
    (tmp_path / "file").write_bytes(text.encode(name))

    def pieces() -> Iterator[bytes]:
        with open_stream(tmp_path / "file") as stream:
            while piece := stream.read(step):
                assert len(piece) <= step
                yield piece

    assert b"".join(read_in(name, pieces())) == text.encode()
    assert encoding.get() is None


def test_the_encoding_of_a_command_comes_first(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"caf\xe9")
    told = encoding.set("latin-1")
    try:
        assert list(read_in("gbk", TextFile(tmp_path / "file", "lines").in_order())) == [(1, (b"caf\xc3\xa9",))]
    finally:
        encoding.reset(told)


@pytest.mark.parametrize(
    ("name", "data", "line", "message"),
    [
        (None, b"a\nb\xe9c\nd", 2, "found 'b\ufffdc' with the byte 0xe9, which is not UTF-8"),
        (None, b"a\n" * 600_000 + b"\xc3", 600_001, "with the byte 0xc3, which is not UTF-8"),  # cut short
        ("cp1252", b"\xe9\n\x81", 2, "which is not cp1252"),
        ("utf-16", b"a\n\n", None, "not in utf-16"),
        ("latin-1", b"a\n" * 600_000 + "é".encode(), None, "in UTF-8, not in latin-1"),
    ],
)
def test_bytes_of_another_encoding(
    name: str | None, data: bytes, line: int | None, message: str, tmp_path: Path
) -> None:
    (tmp_path / "file").write_bytes(data)
    with pytest.raises(DataError, match=message) as caught:
        list(read_in(name, TextFile(tmp_path / "file", "lines").in_order()))
    assert (caught.value.path, caught.value.line) == (str(tmp_path / "file"), line)
    if name is None:
        with open_stream(tmp_path / "file", strict=False) as stream:
            assert b"".join(iter(lambda: stream.read(1000), b"")) == data


def test_unknown_encodings_are_refused() -> None:
    for name in ("gpk", "rot13", "undefined", "", 8):
        with pytest.raises(ValueError, match="expected an encoding that Python knows"):
            check_encoding(name)  # type: ignore[arg-type]


def test_files_are_written_where_standard_output_has_no_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a notebook."""
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    for whole in (False, True):
        with open_output(tmp_path / "file", whole) as out:
            out.write(b"text")
        assert (tmp_path / "file").read_bytes() == b"text"
