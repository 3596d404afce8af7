"""References in all their forms, and what is wrong with them."""

import gzip
from pathlib import Path

import pytest

from rerank.base.errors import DataError, RecipeError
from rerank.readers.texts.text_pairs import read_references


def write(tmp_path: Path, *contents: bytes) -> list[Path]:
    paths = [tmp_path / f"ref{k}" for k in range(len(contents))]
    for path, content in zip(paths, contents, strict=True):
        path.write_bytes(content)
    return paths


def test_lines_of_one_file_and_of_several(tmp_path: Path) -> None:
    paths = write(tmp_path, b"the house\n\nit rains \n", b"\xef\xbb\xbfa house\r\nhello\r\n it is raining")
    assert list(read_references(paths[:1])) == [(b"the house",), (b"",), (b"it rains",)]
    expected = [(b"the house", b"a house"), (b"hello",), (b"it rains", b"it is raining")]
    assert list(read_references(paths)) == expected
    packed = tmp_path / "packed"
    packed.write_bytes(gzip.compress(paths[1].read_bytes()))
    assert list(read_references([paths[0], packed])) == expected


def test_tabs(tmp_path: Path) -> None:
    (path,) = write(tmp_path, b"the house\ta house\nit rains\t\t\n\n\tgood morning\thello\t hi \n")
    expected = [(b"the house", b"a house"), (b"it rains",), (b"",), (b"good morning", b"hello", b"hi")]
    assert list(read_references([path], "tab")) == expected


def test_ids(tmp_path: Path) -> None:
    (path,) = write(tmp_path, b"0 ||| the house\n0 ||| a house\n\n1 |||\n 2|||it ||| rains\n")
    assert list(read_references([path], "id")) == [(b"the house", b"a house"), (b"",), (b"it ||| rains",)]
    path.write_bytes(b"1 ||| a\n2 ||| b\n2 ||| c\n")
    assert list(read_references([path], "id", first_id=1)) == [(b"a",), (b"b", b"c")]


@pytest.mark.parametrize("form", ["lines", "tab", "id"])
def test_references_that_are_not_utf8_are_refused(form: str, tmp_path: Path) -> None:
    (path,) = write(tmp_path, b"0 ||| a\n1 ||| caf\xe9\n")
    with pytest.raises(
        DataError, match="found '1 \\|\\|\\| caf\ufffd' with the byte 0xe9, which is not UTF-8"
    ) as caught:
        list(read_references([path], form))
    assert (caught.value.path, caught.value.line) == (str(path), 2)


@pytest.mark.parametrize("shorter", [0, 1, 2])
def test_files_of_different_lengths(tmp_path: Path, shorter: int) -> None:
    contents = [b"a\nb\nc\n"] * 3
    contents[shorter] = b"a\nb\n"
    paths = write(tmp_path, *contents)
    with pytest.raises(DataError) as error:
        list(read_references(paths))
    path, lines, first = (paths[1], 3, 2) if shorter == 0 else (paths[shorter], 2, 3)
    assert str(error.value).startswith(f"{path}: {lines} lines, but {paths[0]} has {first};")


BAD_IDS = {
    "no number": (b"0 ||| a\nb ||| c\n", r"ref0:2: found 'b \|\|\| c'; expected 'id \|\|\| reference'"),
    "no bars": (b"0 ||| a\n1 b\n", r"ref0:2: found '1 b'"),
    "a gap": (b"0 ||| a\n2 ||| b\n", r"ref0:2: found the id 2; expected 0 or 1"),
    "back": (b"0 ||| a\n1 ||| b\n0 ||| b\n", r"ref0:3: found the id 0; expected 1 or 2"),
    "from 1": (b"1 ||| a\n", r"ref0:1: found the id 1; expected 0.*first_id"),
    "a sign": (b"-1 ||| a\n", r"ref0:1: found '-1 \|\|\| a'"),
    "endless": (b"1" * 5000 + b" ||| a\n", r"ref0:1: found '1111"),
}


@pytest.mark.parametrize("name", BAD_IDS)
def test_bad_ids(tmp_path: Path, name: str) -> None:
    data, message = BAD_IDS[name]
    paths = write(tmp_path, data)
    with pytest.raises(DataError, match=message):
        list(read_references(paths, "id"))


@pytest.mark.parametrize("form", ["lines", "tab", "id"])
def test_a_nul_byte(tmp_path: Path, form: str) -> None:
    with pytest.raises(DataError, match="ref0:2: a NUL byte"):
        list(read_references(write(tmp_path, b"0 ||| a\n1 ||| \0\n"), form))


def test_wrong_forms_and_numbers_of_files(tmp_path: Path) -> None:
    paths = write(tmp_path, b"a\n", b"b\n")
    for given_paths, form in ((paths, "tab"), (paths, "id"), ([], "lines"), (str(paths[0]), "lines"), (paths, "xml")):
        with pytest.raises(RecipeError):
            read_references(given_paths, form)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="only one input can be '-'"):
        read_references(["-", "-"])
    with pytest.raises(DataError, match="no such file"):
        list(read_references([tmp_path / "none"]))
