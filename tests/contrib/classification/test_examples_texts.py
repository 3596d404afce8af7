"""Documents through scikit-learn's vectorisers."""

import sys
from pathlib import Path
from typing import Any, ClassVar
from urllib.error import URLError

import pytest

from rerank.base.errors import DataError, RecipeError
from rerank.contrib.classification.scikit import read_newsgroups, read_texts

pytest.importorskip("sklearn")


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    path = tmp_path / "texts"
    path.write_text("good\ta fine fine book\n\nbad\ta dull book\r\ngood\tfine\n", encoding="utf-8")
    return path


def test_words_are_features_and_labels_classes(texts: Path) -> None:
    (found,), names = read_texts([str(texts)], {"name": "count"})
    assert found.classes == ("bad", "good")
    assert found.label.tolist() == [1, 0, 1]
    assert names == ("book", "dull", "fine")
    assert found.columns.tolist() == [0, 2, 0, 1, 2]
    assert found.values.tolist() == [1, 2, 1, 1, 1]


def test_half_of_a_surrogate_pair_is_part_of_no_word(texts: Path) -> None:
    texts.write_bytes(b"good\tfine \xed\xa0\x80\nbad\tdull\n")
    assert read_texts([str(texts)], {"name": "count"})[1] == ("dull", "fine")


def test_a_second_file_has_the_first_ones_features(texts: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("bad\tfine unseen\n")
    (_, found), names = read_texts([str(texts), str(other)], {"name": "count"})
    assert found.width == len(names) == 3
    assert found.columns.tolist() == [2]
    assert found.label.tolist() == [0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("good a book\n", "texts:1: found 'good a book', expected a label, a tab and a text"),
        ("good\tx y\n\tno label\n", "texts:2"),
        ("", "the file is empty"),
        ("good\t\nbad\t.\n", "the texts yield no features"),
    ],
)
def test_lines_that_are_no_documents(texts: Path, text: str, message: str) -> None:
    texts.write_text(text)
    with pytest.raises(DataError) as raised:
        read_texts([str(texts)], {"name": "count"})
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"name": "bow"}, "data.vectorizer.name: found 'bow'"),
        ({"name": {"bow": 1}}, "data.vectorizer.name: found {'bow': 1}"),
        ({"name": "count", "ngram_rang": 2}, "CountVectorizer has no 'ngram_rang' here; did you mean ngram_range"),
        ({"name": "count", "dtype": "int8"}, "has no 'dtype' here"),
    ],
)
def test_settings_that_there_are_not(texts: Path, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(RecipeError) as raised:
        read_texts([str(texts)], settings)
    assert message in str(raised.value)


def test_without_scikit_learn_there_is_a_message(texts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.feature_extraction.text", None)
    with pytest.raises(RecipeError, match=r"needs scikit-learn .*pip install 'rerank-nbest\[classification\]'"):
        read_texts([str(texts)], {"name": "count"})


class Fetched:
    """What scikit-learn's fetcher gives."""

    target_names: ClassVar = ["talk.a", "talk.b"]
    target: ClassVar = [0, 1, 1]
    data: ClassVar = ["one two", "two two", "three"]


def test_newsgroups_are_fetched_by_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}

    def fetch(**options: Any) -> Fetched:
        asked.update(options)
        return Fetched()

    monkeypatch.setattr("sklearn.datasets.fetch_20newsgroups", fetch)
    found, names = read_newsgroups(("talk.a", "talk.b"), {"name": "count", "binary": True})
    assert asked["categories"] == ["talk.a", "talk.b"]
    assert found.classes == ("talk.a", "talk.b")
    assert found.label.tolist() == [0, 1, 1]
    assert names == ("one", "three", "two")
    assert set(found.values.tolist()) == {1.0}


@pytest.mark.parametrize(
    ("failure", "error", "message"),
    [
        (URLError("no route"), DataError, "cannot fetch the 20 Newsgroups: <urlopen error no route>"),
        (ValueError("'x' is not in list"), RecipeError, "data.newsgroups: the 20 Newsgroups have no such category"),
    ],
)
def test_newsgroups_that_cannot_be_had(
    monkeypatch: pytest.MonkeyPatch, failure: Exception, error: type[Exception], message: str
) -> None:
    def fetch(**_: Any) -> None:
        raise failure

    monkeypatch.setattr("sklearn.datasets.fetch_20newsgroups", fetch)
    with pytest.raises(error) as raised:
        read_newsgroups(("x",), {"name": "count"})
    assert message in str(raised.value)
