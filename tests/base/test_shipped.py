"""Lists that come with the program go by name, where no file has it."""

from pathlib import Path

import pytest
from commands import Command

import rerank
from rerank.base.errors import DataError
from rerank.base.shipped import file_of, files_of


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
    assert "200 lists of 8 to 8 candidates" in rerank("look", "llm/test").out
    for command in ("oracle", "quickstart/dev"), ("evaluate", "quickstart/dev.gold"):
        assert rerank(*command, "quickstart/dev.gold").code == 0
    refused = rerank("oracle", "llm", "--metric", "gain")
    assert (refused.code, "expected one: llm/train" in refused.err) == (2, True)


def test_examples_have_their_gold_trees() -> None:
    assert len(list(rerank.example("asr", "dev"))) == 100
    assert next(iter(rerank.example("quickstart"))).references
    with pytest.raises(rerank.RerankError, match="no shipped lists of this name; expected one of asr/dev"):
        rerank.example("nothing")
