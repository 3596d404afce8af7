"""Errors: what they say, what becomes of those that nobody foresaw, of odd bytes, and of names of shipped files."""

import json
import os
import pickle
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import small
import yaml
from commands import Command, failed
from hypothesis import given
from hypothesis import strategies as st
from outcomes import read_lists

import rerank
from rerank.base.encoding import MAX_NAME_BYTES, file_name, is_name
from rerank.base.errors import DataError, ModelError, RecipeError, RerankError, RunError, StoppedError, UnforeseenError
from rerank.extraction.trees import TreeContent
from rerank.features.sink import TooLargeError
from rerank.readers.memory.nbest import InputError
from rerank.readers.problems import Problem
from rerank.readers.trees.charniak import CharniakReader
from rerank.recipes.recipe import TextRecipe
from rerank.recipes.settings import validate
from rerank.storage.files import write_text
from rerank.storage.places import file_of, files_of


@pytest.mark.parametrize(
    ("place", "shown"),
    [
        ({"path": "a", "line": 3, "list_id": "x"}, "a:3: list x: bad"),
        ({"path": "a", "line": 3}, "a:3: bad"),
        ({"path": "a"}, "a: bad"),
        ({"list_id": "x"}, "list x: bad"),
        ({"path": "a\0b"}, "a\\x00b: bad"),
        ({}, "bad"),
        ({"list_id": "x" * 1000}, f"list {'x' * 100}...: bad"),
        ({"list_id": "a\r\x1b[31m\u2028é"}, "list a\\r\\x1b[31m\\u2028é: bad"),
    ],
)
def test_data_error(place: dict[str, object], shown: str) -> None:
    assert str(DataError("bad", **place)) == shown  # type: ignore[arg-type]


def test_recipe_error() -> None:
    assert str(RecipeError("bad", key="a.b", path="r.yaml")) == "r.yaml: a.b: bad"
    assert str(RecipeError("bad", key="a.b")) == "a.b: bad"
    assert str(RecipeError("bad", key="\x07" + "k" * 1000)) == f"\\x07{'k' * 99}...: bad"
    assert str(RecipeError("bad")) == "bad"


@pytest.mark.parametrize("kind", [DataError, RecipeError, ModelError])
def test_messages_end(kind: type[DataError | RecipeError | ModelError]) -> None:
    assert str(kind("x" * 10_000, path="a")) == f"a: {'x' * 2000}..."
    line_end = "\n" if kind is RecipeError else "\\n"
    assert str(kind("one\ntwo\t\x1b[31m\u202e", path="a")) == f"a: one{line_end}two\t\\x1b[31m\\u202e"


NAMES = ["test", "dev_2", "wsj.24", "ood-news", "a+b", "my test", "größe", "1", "_"]
NO_NAMES = [
    "",
    ".",
    "..",
    "../up",
    "/etc/passwd",
    "a/b",
    "a\\b",
    ".hidden",
    "-o",
    "a.",
    " a",
    "a\n",
    "a\0b",
    "{root}",
    "x" * 101,
]


@pytest.mark.parametrize("name", NAMES)
def test_names(name: str) -> None:
    assert is_name(name)
    assert file_name(name) == name
    assert small.recipe(Path(), data={"tests": [name]}).data.tests == (name,)


@pytest.mark.parametrize("name", NO_NAMES)
@pytest.mark.parametrize("key", ["train", "dev", "tests", "mert"])
def test_what_is_no_name_of_a_split(name: str, key: str) -> None:
    settings: dict[str, object] = {"name": "x", "data": {key: [name] if key == "tests" else name}}
    if key == "mert":
        settings = {"name": "x", "mert": {"split": name}}
    with pytest.raises(RecipeError, match=r"the name of a split may have letters, digits and _") as caught:
        validate(TextRecipe, settings)
    if name == "/etc/passwd":
        assert "name the folder in data.root (/etc) and the split 'passwd'" in str(caught.value)


@given(name=st.text(), other=st.text())
def test_a_file_name_stays_in_its_directory(name: str, other: str) -> None:
    found = file_name(name)
    assert os.path.basename(found) == found not in ("", ".", "..")
    assert is_name(found)
    assert len(os.fsencode(found)) <= MAX_NAME_BYTES
    assert (file_name(other) == found) == (other == name)


def failing_at(call: int, error: Exception) -> Callable[..., Any]:
    """A function whose ``call``-th call fails."""
    calls, right = count(1), TreeContent.features

    def function(self: TreeContent, *arguments: Any) -> Any:
        if next(calls) == call:
            raise error
        return right(self, *arguments)

    return function


@pytest.fixture
def third(small_data: Path) -> str:
    """What is said of the third list of the training split."""
    lists = list(read_lists(CharniakReader(), str(small_data / "train.nbest.gz")))
    return f"{small_data / 'train.nbest.gz'}:{lists[2].line}: list {lists[2].id}"


def test_the_list_at_hand_in_a_run(
    rerank: Command, small_data: Path, tmp_path: Path, third: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "small.yaml").write_text(yaml.safe_dump(small.settings(small_data)))
    monkeypatch.setattr(TreeContent, "features", failing_at(3, KeyError("what")))
    result = rerank("--quiet", "run", tmp_path / "small.yaml", "-o", tmp_path / "out")
    failed(result, 1, f"error: {third}: unexpected KeyError: 'what'", "the traceback is in ")
    assert not list(tmp_path.rglob(".*.partial"))


def test_the_list_at_hand_of_another_command(
    rerank: Command, small_data: Path, small_run: Path, tmp_path: Path, third: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TreeContent, "features", failing_at(3, MemoryError()))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    result = rerank("rank", small_run / "model", small_data / "train.nbest.gz", "-o", tmp_path / "best")
    (kept,) = tmp_path.iterdir()
    failed(result, 1, f"error: {third}: out of memory; use fewer lists", f"the traceback is in {kept}")
    assert kept.read_text().endswith("MemoryError\n")


def test_a_traceback_that_cannot_be_written(
    rerank: Command, small_data: Path, small_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TreeContent, "features", failing_at(1, KeyError("what")))
    (tmp_path / "file").touch()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "file"))
    result = rerank("rank", small_run / "model", small_data / "train.nbest.gz")
    failed(result, 1, "unexpected KeyError", "the traceback cannot be written (Not a directory)")


def test_the_file_at_hand(tmp_path: Path) -> None:
    with pytest.raises(TypeError) as caught:
        write_text(tmp_path / "name", 3)  # type: ignore[arg-type]
    assert str(UnforeseenError.of(caught.value)).startswith(f"{tmp_path / 'name'}: unexpected TypeError: data")


def test_it_can_be_sent_and_stays_as_it_is() -> None:
    with pytest.raises(json.JSONDecodeError) as caught:
        json.loads("{")
    found = UnforeseenError.of(caught.value)
    again = pickle.loads(pickle.dumps(found))
    assert (str(again), again.traceback) == (str(found), found.traceback)
    assert UnforeseenError.of(again) is again
    assert found.traceback.endswith(f"JSONDecodeError: {caught.value}\n")


@pytest.mark.parametrize(
    "error",
    [
        DataError("bad", path="a", line=3, list_id="x"), RecipeError("bad", key="k"), ModelError("bad", path="m"),
        Problem("text", "bad", 3, path="a", index=1), InputError("bad", "candidates[0]", list_id="x"),
        TooLargeError("bad", path="a"), StoppedError("bad", 130), RunError("bad"), UnforeseenError("bad", "Traceback"),
    ],
)  # fmt: skip
def test_errors_pass_between_processes(error: RerankError) -> None:
    """A pool whose worker raises what cannot be read back breaks, or waits for ever."""
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))
    assert again.exit_code == error.exit_code


def test_names_are_files_of_shipped_lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert [Path(path).name for path in files_of(["llm", "x.jsonl"])] == [
        "train.jsonl.gz", "dev.jsonl.gz", "test.jsonl.gz", "x.jsonl"
    ]  # fmt: skip
    assert file_of("quickstart/dev").endswith("quickstart/dev.nbest.gz")
    assert file_of("quickstart/dev.gold").endswith("quickstart/dev.gold.gz")
    with pytest.raises(DataError, match="these are 3 files; expected one: llm/train, llm/dev, llm/test"):
        file_of("llm")
    (tmp_path / "llm").write_text("")
    assert file_of("llm") == "llm"
    assert files_of(["llm"]) == ["llm"]


def test_commands_and_programs_take_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rerank: Command) -> None:
    monkeypatch.chdir(tmp_path)
    assert "200 lists of 8 candidates" in rerank("look", "llm/test").out
    for command in ("oracle", "quickstart/dev"), ("evaluate", "quickstart/dev.gold"):
        assert rerank(*command, "quickstart/dev.gold").code == 0
    refused = rerank("oracle", "llm", "--metric", "gain")
    assert (refused.code, "expected one: llm/train" in refused.err) == (2, True)


def test_examples_have_their_gold_trees() -> None:
    assert len(list(rerank.example("asr", "dev"))) == 100
    assert next(iter(rerank.example("quickstart"))).references
    with pytest.raises(rerank.RerankError, match="no shipped lists of this name; expected one of asr/dev"):
        rerank.example("nothing")
