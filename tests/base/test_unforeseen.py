"""Errors that nobody foresaw: what their message says, and where their traceback is."""

import json
import pickle
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import small
import yaml
from commands import Command, failed

from rerank.base.errors import UnforeseenError
from rerank.extraction.trees import TreeContent
from rerank.readers.base import read_lists
from rerank.readers.trees.charniak import CharniakReader
from rerank.storage.files import write_text


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
