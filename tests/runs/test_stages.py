"""Stages in the history: what is written when, what earlier attempts leave, and what work takes."""

import json
from pathlib import Path

import pytest
import small

from rerank.base.errors import DataError, RunError
from rerank.runs.experiment import Stages, stage_lines


def lines_of(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_lines_are_there_when_things_happen(tmp_path):
    path = tmp_path / "history.jsonl"
    work = Stages(path)
    with work.stage("extract", splits=2) as found:
        (start,) = lines_of(path)
        assert (start["stage"], start["event"], start["splits"]) == ("extract", "start", 2)
        found["lists"] = 7
    work.append([{"run": "one", "epoch": 1}])
    assert [line.get("event") for line in lines_of(path)] == ["start", "end", None]
    end = lines_of(path)[1]
    assert (end["splits"], end["lists"]) == (2, 7)
    assert set(work.summary()["extract"]) == {"seconds", "cpu_seconds", "peak_memory_bytes", "splits", "lists"}
    assert small.epoch_lines(path) == [{"run": "one", "epoch": 1}]
    assert stage_lines(path) == [start, end]


@pytest.mark.parametrize("error", [DataError("bad"), KeyboardInterrupt()])
def test_an_error_stops_a_stage(tmp_path, error):
    work = Stages(tmp_path / "history.jsonl")
    with pytest.raises(type(error)), work.stage("train"):
        raise error
    assert [line["event"] for line in stage_lines(tmp_path / "history.jsonl")] == ["start", "stopped"]


def test_attempts_add_up(tmp_path):
    path = tmp_path / "history.jsonl"
    taken = {"cpu_seconds": 1.0, "peak_memory_bytes": 1 << 50}
    earlier = [
        {"stage": "train", "event": "start", "time": "t"},
        {"stage": "train", "event": "stopped", "time": "t", "seconds": 10.0, **taken, "runs": 3},
        {"run": "one", "epoch": 1},
        {"stage": "train", "event": "start", "time": "t"},
    ]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in earlier) + '{"stage": "train", "event": "en')
    work = Stages(path)
    assert lines_of(path) == [line for line in earlier if "stage" in line]
    with work.stage("train", runs=4):
        pass
    summary = work.summary()["train"]
    assert 10 <= summary["seconds"] < 100
    assert summary["cpu_seconds"] >= 1
    assert (summary["peak_memory_bytes"], summary["runs"]) == (1 << 50, 4)


@pytest.mark.parametrize("line", ["[]", "7", '{"stage": 3}', '{"stage": "x", "event": "end"}', '{"a": "\\ud800"}'])
def test_what_is_no_line_of_a_stage_is_dropped(tmp_path, line):
    path = tmp_path / "history.jsonl"
    path.write_bytes(line.encode() + b"\n\xff\x00\n")
    assert Stages(path).summary() == {}
    assert path.read_text() == ""


def test_a_history_that_cannot_be_written(tmp_path):
    work = Stages(tmp_path / "history.jsonl")
    (tmp_path / "history.jsonl").unlink()
    (tmp_path / "history.jsonl").mkdir()
    with pytest.raises(RunError, match=r"cannot write .*history\.jsonl"):
        work.append([{}])
    with pytest.raises(RunError, match="cannot write"), work.stage("train"):
        pass
