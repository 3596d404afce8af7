"""Weights as text and back: names are one word and unique, numbers are the same to the bit."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rerank.base.errors import DataError
from rerank.data.symbols import text_hash
from rerank.features.table import FeatureTable, HashedTable
from rerank.features.template import TEXTS
from rerank.learn.base import Weights
from rerank.models.weights import column_names, escaped, moses_lines, read_weights, unescaped, weight_lines

# Texts as they come from files: bytes that are no UTF-8 are single surrogates.
TEXT = st.binary(max_size=12).map(lambda b: b.decode("utf-8", "surrogateescape")) | st.text(
    st.sampled_from("a%#|é→ \t\n\r\x00\x1c\x85\xa0\u2028\u3000\x7f"), max_size=8
)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([0.0, -0.0, 5e-324, 1e-5, -1e300])


def table_of(names: list[str], free: int = 0) -> FeatureTable:
    """The table of features called ``Template|symbol symbol``, in this order."""
    templates = tuple(dict.fromkeys(name.partition("|")[0] for name in names))
    words = [name.partition("|")[2].split(" ") for name in names]
    symbols = [text_hash(word) for of_name in words for word in of_name]
    return FeatureTable(
        hashes=np.arange(1, len(names) + 1, dtype=np.uint64),
        template=np.array([templates.index(name.partition("|")[0]) for name in names], np.int32),
        first=np.cumsum([0, *map(len, words)]).astype(np.int64),
        symbols=np.array(symbols, np.uint64),
        templates=templates,
        texts={text_hash(word): word for of_name in words for word in of_name},
        about={},
        scale=np.ones(free),
    )


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("weights") / "weights.txt"


@given(TEXT)
def test_every_name_is_one_word_and_comes_back(name: str) -> None:
    word = escaped(name)
    assert unescaped(word) == name
    assert not word.startswith("#")
    assert word.split() == ([word] if name else [])
    assert word.encode().decode() == word  # whatever the name was, the word is UTF-8


@given(
    names=st.lists(st.tuples(st.sampled_from(["T", "U(k=2)"]), st.lists(TEXT, min_size=1, max_size=3)), max_size=6),
    data=st.data(),
    base=NUMBERS,
)
def test_the_round_trip_is_exact(file: Path, names: Any, data: st.DataObject, base: float) -> None:
    table = table_of([f"{template}|{' '.join(symbols)}" for template, symbols in names])  # the same name twice: fine
    w = np.array(data.draw(st.lists(NUMBERS, min_size=len(names), max_size=len(names))), float)
    lines = list(weight_lines(table, Weights(w, base)))
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    found = read_weights(file, table)
    assert found.weights.w.tobytes() == w.tobytes()
    assert np.float64(found.weights.base).tobytes() == np.float64(base).tobytes()
    assert found.features == len(lines) - 1
    assert len(set(column_names(table))) == table.width


def test_lines_in_their_orders() -> None:
    table, weights = table_of(["T|b", "T|a c", "T|d", "U|a"]), Weights(np.array([0.5, -2.0, 0.0, 0.1]), 1.5)
    assert list(weight_lines(table, weights)) == ["base 1.5", "T|a%20c -2.0", "T|b 0.5", "U|a 0.1"]
    assert list(weight_lines(table, weights, top=2)) == ["base 1.5", "T|a%20c -2.0", "T|b 0.5"]
    assert list(weight_lines(HashedTable.of(4, (), {}), Weights(np.eye(1, 16, 3)[0], 0.0))) == [
        "base 0.0",
        "hashed|#3 1.0",
    ]


@pytest.mark.parametrize(
    ("lines", "line", "message"),
    [
        ("T|a 1\nbase 1\nT|a 2", 3, "T|a' is already in line 1"),
        ("base 1\n\nbase 1", 3, "base' is already in line 1"),
        ("base 1\nT|n0w 2", 2, "the model has no feature 'T|n0w'; did you mean T|now?"),
        ("base 1\nwhat? 2", 2, "the model has no feature 'what?'; was it exported from a model of other features?"),
        ("base 1\nT|a", 2, "expected a name, white space and a finite weight"),
        ("base 1\nT|a 1 2", 2, "expected a name, white space and a finite weight"),
        ("base nan", 1, "expected a name, white space and a finite weight"),
        ("base 1_0", 1, "expected a name, white space and a finite weight"),
        ("base 1e999", 1, "expected a name, white space and a finite weight"),
        ("T|a 1", None, "no line 'base', the weight of the base score"),
    ],
)
def test_files_that_do_not_fit(tmp_path: Path, lines: str, line: int | None, message: str) -> None:
    (tmp_path / "w").write_text(lines)
    with pytest.raises(DataError) as caught:
        read_weights(tmp_path / "w", table_of(["T|a", "T|now"]))
    assert message in str(caught.value)
    assert str(caught.value).startswith(str(tmp_path / "w"))
    assert caught.value.line == line


def test_comments_and_other_ways_to_write_a_name(tmp_path: Path) -> None:
    (tmp_path / "w").write_bytes(b"# mine\n\r\nT|%61\t+1.\r\n  base .5e1 \n")
    found = read_weights(tmp_path / "w", table_of(["T|a", "T|b"]))
    assert found.weights.w.tolist() == [1.0, 0.0]
    assert found.weights.base == 5.0


# Moses

NAMES = [
    "Dense|TM0_0", "Dense|LM_1", "Dense|LM0", "Dense|TM0_2", "Given|WT_the~das", "PhrasePair|das haus → the house",
    "PhrasePair|→ → x", "WordPair|das → the", "TargetNGram(n=2)|<s> the", "TargetNGram|the", "Given|#x",
]  # fmt: skip


def test_weights_for_moses() -> None:
    assert "→" in TEXTS.values()
    table, left_out = table_of(NAMES, free=4), Counter[str]()
    lines = list(moses_lines(table, Weights(np.arange(1.0, 12.0), 0.5), left_out))
    assert lines[0].startswith("#")
    assert "0.5" in lines[0]
    assert lines[1:5] == ["# [weight]", "# LM0= 3.0", "# LM_1= 2.0", "# TM0= 1.0 0.0 4.0"]
    assert lines[5:] == ["TB_<s>:the 9.0", "WT_das~the 8.0", "pp_das,haus~the,house 6.0", "WT_the~das 5.0"]
    assert left_out == {"TargetNGram": 1, "Given": 1, "PhrasePair": 1}


def test_moses_has_no_hashed_features() -> None:
    left_out = Counter[str]()
    lines = list(moses_lines(HashedTable.of(4, (), {}), Weights(np.ones(16), 0.5), left_out))
    assert all(line.startswith("#") for line in lines)
    assert left_out == {"hashed": 16}
