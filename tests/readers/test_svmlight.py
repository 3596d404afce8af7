"""The svmlight reader: equal to that of scikit-learn, and what is wrong with a line."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_svmlight_file

from rerank.base.errors import DataError
from rerank.contrib.classification.sets import read_folds, read_svmlight
from rerank.data.labelled import Labelled


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("svmlight") / "file.svm"


def read(place: Path, text: bytes) -> Labelled:
    place.write_bytes(text)
    return read_svmlight(place)


def fails(place: Path, text: bytes) -> str:
    with pytest.raises(DataError) as caught:
        read(place, text)
    return str(caught.value).removeprefix(str(place))


@pytest.mark.parametrize("lowest", [0, 1])
@pytest.mark.parametrize("grouped", [False, True])
def test_files_are_what_scikit_learn_reads(place: Path, lowest: int, grouped: bool) -> None:
    rng, lines = np.random.default_rng(lowest), ["# a: comment, é", ""]
    for i in range(200):
        ids = np.sort(rng.choice(np.arange(lowest, 60), rng.integers(0, 9), replace=False))
        values = [f"{value:{rng.choice(['.3e', '.17g', '+.2f', '.0f'])}}" for value in rng.normal(0, 100, ids.size)]
        pairs = [f"{j}:{value}" for j, value in zip(ids, values, strict=True)]
        label = rng.choice(["+1", "-1", "1.0", "0.5", "3e0"])
        tokens = [label, *[f"qid:{i // 7}"] * grouped, *pairs]
        lines.append(rng.choice([" ", "  ", "\t"]).join(tokens) + rng.choice(["", " ", "\r", " # end 1:1", "#"]))
    place.write_text("\n".join([*lines, f"1 {'qid:1 ' * grouped}{lowest}:1 59:1"]), newline="")
    x, y, *group = load_svmlight_file(str(place), dtype=np.float32, query_id=grouped)
    found = read_svmlight(place)
    assert [float(found.classes[c]) for c in found.label] == y.tolist()
    assert found.group.tolist() == [number for numbers in group for number in numbers]
    assert (found.width, found.rows.tolist(), found.columns.tolist()) == (
        x.shape[1], x.indptr.tolist(), x.indices.tolist(),
    )  # fmt: skip
    assert np.array_equal(found.values, x.data)


def test_labels_may_be_words_and_ids_in_any_order(place: Path) -> None:
    found = read(place, "größer 3:2 1:1\r\n\v\nspam\n".encode())
    assert [found.classes[c] for c in found.label] == ["größer", "spam"]
    assert (found.rows.tolist(), found.columns.tolist(), found.values.tolist()) == ([0, 2, 2], [0, 2], [1, 2])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", ": no examples; expected"),
        (b"# only\n\n", ": no examples"),
        (b"1 1:1\n1 1:1 1:2\n", ":2: found id 1 twice"),
        (b"1 1:1\n\n1,2 1:1\n", ":3: found label '1,2'; expected a finite number or a word without commas"),
        (b" 1:1 2:1\n", ":1: found '1:1'; expected LABEL ID:VALUE"),
        (b"1 1:nan\n", ":1: found '1:nan'; expected LABEL ID:VALUE ..., with whole numbers as ids"),
        (b"1 1:1e39\n", ":1: found 1:1e+39; expected ids up to 2,147,483,646 and values of at most 3.403e+38"),
        (b"1 1:1_0\n", ":1: found '1:1_0'"),
        (b"1 qid:x 1:1\n", ":1: found 'qid:x'"),
        (b"1 qid:1 1:1\n1 1:1\n", ":2: found an example with a qid beside one without"),
        (b"1 1:1\n1 qid:1 1:1\n", ":2: found an example with a qid beside one without"),
        (b"1 2147483647:1\n", ":1: found 2147483647:1; expected ids up to 2,147,483,646"),
        (b"nan 1:1\n", ":1: found label 'nan'"),
        (b"1e999 1:1\n", ":1: found label '1e999'"),
        (b"\xff 1:1\n", ":1: found label '\ufffd'"),
        (b"1 \x1b[31m\xff:1\n", ":1: found '\\x1b[31m\ufffd:1'"),
    ],
)
def test_errors_say_where_and_what(place, text: bytes, message: str) -> None:
    assert fails(place, text).startswith(message)


def test_values_are_rounded_to_the_nearest_double_and_then_to_single_precision(place) -> None:
    numbers = "1.00000005960464477539062500000000001", "7.006492321624085e-46", "1e-400", "16777217"
    found = read(place, "".join(f"1 3:{number}\n" for number in numbers).encode())
    assert found.values.tolist() == [float(np.float32(float(number))) for number in numbers]


def test_columns_begin_at_0_or_1(place) -> None:
    assert read(place, b"1 1:1 4:1\n").columns.tolist() == [0, 3]
    assert read(place, b"1 1:1 4:1\n2 0:1\n").columns.tolist() == [1, 4, 0]
    assert read(place, b"1\n-1\n").width == 0


def test_a_file_of_several_megabytes(place) -> None:
    rng = np.random.default_rng(0)
    ids, numbers = rng.permutation(70_000), rng.random(70_000).astype(np.float32)
    row = " ".join(f"{j}:{v}" for j, v in zip(ids, numbers, strict=True))
    found = read(place, f"0 {row}\n{''.join(f'{i}.5 7:1{chr(10)}' for i in range(3000))}".encode())
    assert found.columns[:70_000].tolist() == list(range(70_000))
    assert np.array_equal(found.values[:70_000], numbers[np.argsort(ids)])
    assert [found.classes[c] for c in found.label] == ["0", *(f"{i}.5" for i in range(3000))]


# Folds


def test_folds(tmp_path: Path) -> None:
    path = tmp_path / "folds.txt"
    path.write_text("0\n2\r\n1")
    assert read_folds(path, 3).tolist() == [0, 2, 1]
    for text, n, message in [
        ("0\nx\n", 2, ":2: found 'x'; expected the number of a fold"),
        ("0\n\n1\n", 2, ":2: found ''"),
        ("0\n-1\n", 2, ":2: found '-1'"),
        ("0\n1\n", 3, ": found 2 fold numbers for 3 examples"),
        ("0\n1\n", 1, ": found 2 fold numbers for 1 examples"),
    ]:
        path.write_text(text)
        with pytest.raises(DataError) as caught:
            read_folds(path, n)
        assert str(caught.value).removeprefix(str(path)).startswith(message)
