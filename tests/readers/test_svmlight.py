"""The svmlight reader: equal to a naive parser on valid, damaged and random text."""

import math
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rerank.base.errors import DataError
from rerank.contrib.classification.sets import read_folds
from rerank.data.labelled import Labelled, canonical
from rerank.readers.svmlight import read_svmlight

BLANK = b" \t\r\v\f"
NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


class Naive:
    """The format in plain Python: dictionaries and regular expressions. A ValueError for what is none."""

    def __init__(self, text: bytes) -> None:
        self.labels: list[str] = []
        self.groups: list[int | None] = []
        self.features: list[dict[int, np.float32]] = []
        for line in text.split(b"\n"):
            tokens = line.partition(b"#")[0].translate(bytes.maketrans(BLANK, b" " * len(BLANK))).split(b" ")
            tokens = [token for token in tokens if token]
            if tokens:
                self._row(tokens[0], tokens[1:])
        ids = [j for row in self.features for j in row]
        if not self.labels or len({group is None for group in self.groups}) > 1:
            raise ValueError
        base = 0 if 0 in ids else 1
        self.width = max(ids, default=base - 1) + 1 - base
        self.rows = [sorted((j - base, value) for j, value in row.items()) for row in self.features]

    def _row(self, label: bytes, rest: list[bytes]) -> None:
        text = label.decode()
        if b":" in label or b"," in label or not text.isprintable() or text.lower().lstrip("+-") in NAMED:
            raise ValueError(label)
        if NUMBER.fullmatch(label) and math.isinf(float(text)):
            raise ValueError(label)
        group = None
        if rest and rest[0].startswith(b"qid:"):
            if not re.fullmatch(rb"-?\d{1,18}", rest[0][4:]):
                raise ValueError(rest[0])
            group = int(rest.pop(0)[4:])
        row: dict[int, np.float32] = {}
        for token in rest:
            name, _, value = token.partition(b":")
            with np.errstate(over="ignore"):
                number = np.float32(float(value)) if NUMBER.fullmatch(value) else np.float32(np.nan)
            if not re.fullmatch(rb"\d+", name) or not np.isfinite(number) or int(name) in row or int(name) > 2**31 - 2:
                raise ValueError(token)
            row[int(name)] = number
        self.labels.append(canonical(text))
        self.groups.append(group)
        self.features.append(row)


NAMED = {"nan", "inf", "infinity"}


def same(found: Labelled, expected: Naive) -> None:
    assert [found.classes[c] for c in found.label] == expected.labels
    assert set(found.classes) == set(expected.labels)
    assert found.group.tolist() == [group for group in expected.groups if group is not None]
    assert found.width == expected.width
    assert found.rows.tolist() == np.cumsum([0, *map(len, expected.rows)]).tolist()
    assert found.columns.tolist() == [j for row in expected.rows for j, _ in row]
    assert np.array_equal(found.values, np.array([v for row in expected.rows for _, v in row], np.float32))
    assert found.weight.tolist() == [1.0] * found.size


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


# What is equal to the naive parser

decimals = st.one_of(
    st.floats(width=32, allow_nan=False, allow_infinity=False).map(repr),
    st.floats(-1e30, 1e30).map(repr),
    st.integers(-(10**25), 10**25).map(str),
    st.from_regex(r"[+-]?[0-9]{1,30}\.[0-9]{0,30}([eE][+-]?[0-9]{1,2})?", fullmatch=True),
    st.sampled_from(["1", "0", "-0", "+.5", "5.", "1e-400", "0e999999999999999999999", "0.00000000000000000000001e23"]),
)
usual_labels = st.sampled_from(["+1", "-1", "1", "1.0", "0", "2", "3e0", "0.5", "spam", "größer", "-0"])
gaps = st.sampled_from([" ", " ", " ", "  ", "\t", " \t"])
ends = st.sampled_from(["\n", "\n", "\r\n", " \n", "\n\n", " # end 1:1\n", "#\n", "\n# a: comment, é\n"])


@st.composite
def texts(draw: st.DrawFn, labels: st.SearchStrategy[str] = usual_labels) -> bytes:
    """A valid file (but for values that are too large)."""
    lines = []
    values = draw(st.sampled_from([decimals, st.just("1"), st.sampled_from(["1", "2"])]))
    grouped, lowest = draw(st.booleans()), draw(st.integers(0, 1))
    highest = draw(st.sampled_from([3, 12, 2**31 - 2]))
    for _ in range(draw(st.integers(1, 6))):
        gap = draw(gaps)
        ids = draw(st.lists(st.integers(lowest, highest), unique=True, max_size=9))
        group = [f"qid:{draw(st.integers(-5, 10**18 - 1))}"] if grouped else []
        tokens = [draw(labels), *group, *(f"{j}:{draw(values)}" for j in ids)]
        lines.append(draw(st.sampled_from(["", "", " "])) + gap.join(tokens) + draw(ends))
    text = "".join(lines).encode()
    return text[:-1] if draw(st.booleans()) else text


def agree(place: Path, text: bytes) -> None:
    try:
        expected = Naive(text)
    except ValueError:
        fails(place, text)
    else:
        same(read(place, text), expected)


@given(texts())
def test_valid_files_are_what_the_naive_parser_makes_of_them(place, text) -> None:
    agree(place, text)


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


def test_columns_begin_at_0_or_1_and_equal_values_are_not_stored(place) -> None:
    assert read(place, b"1 1:1 4:1\n").columns.tolist() == [0, 3]
    assert read(place, b"1 1:1 4:1\n2 0:1\n").columns.tolist() == [1, 4, 0]
    assert read(place, b"1\n-1\n").width == 0
    assert read(place, b"1 1:2 2:2\n0 3:2.0\n").values.strides == (0,)
    assert read(place, b"1 1:2 2:2\n0 3:1\n").values.strides == (4,)


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
