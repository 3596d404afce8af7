"""A fixed sample of a campaign, and that a campaign sees what goes wrong. ``make fuzz`` tries many more inputs."""

import ctypes
import time
from pathlib import Path

import numpy as np
import pytest
from programs import PATIENCE

from rerank.base.errors import DataError, RecipeError, RerankError, RunError

from . import judging, samples, targets
from .campaign import Campaign
from .judging import Outcome, judge
from .targets import TARGETS, Case, Target, make_case
from .worker import Tried, Worker

COUNT = 700


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_what_is_not_damaged_is_read(name: str, tmp_path: Path) -> None:
    target = TARGETS[name]
    for k, files in enumerate(target.samples()):
        case = Case(name, files, "", False)
        place = tmp_path / str(k)
        judging.write_case(case, place)
        outcome = judge(case, place, 0, k)
        assert outcome.kind == "read" or (name in UNFIT and not outcome.failed), outcome


UNFIT = {  # samples that need other options, or files that are not here; options of commands rarely fit
    "charniak", "references", "recipe", "moses", "merged", "joined", "text pipeline", "text pairs", "svmlight",
    "opennmt", "compared", "crossed",
}  # fmt: skip


def test_sample(tmp_path: Path) -> None:
    """The process is a copy of this one, in which the test above has made the samples."""
    summary = Campaign(seed=0, count=COUNT, output=tmp_path, checked="none", seconds=PATIENCE, start="fork").run()
    shown = [f"input {number}, {tried.target}: {tried.outcome}" for number, tried in summary.failures]
    assert not shown, "\n".join(shown)
    assert summary.total == COUNT
    assert set(summary.counts) == set(TARGETS)


def test_inputs_are_functions_of_seed_and_number() -> None:
    for number in range(40):
        one, again = make_case(3, number), make_case(3, number)
        assert one.target == again.target
        assert one.files == again.files
    assert len({make_case(seed, 5).files[make_case(seed, 5).damaged] for seed in range(10)}) > 5


def _misbehave(_: int, number: int, only: str | None, __: Path) -> Tried:
    """Crash, hang, or do well."""
    if number == 1:
        ctypes.string_at(0)
    if number == 2:
        time.sleep(PATIENCE)
    return Tried(only or "moses", Outcome("read"), 0.0)


def test_crashes_and_hangs_are_outcomes_and_another_process_goes_on(tmp_path: Path) -> None:
    worker = Worker(tmp_path, try_one=_misbehave)
    kinds = [
        worker.run(0, number, "moses", seconds=PATIENCE if number != 2 else 0.5).outcome.kind for number in range(4)
    ]
    worker.stop()
    assert kinds == ["read", "crash", "hang", "read"]


def _fails(error: Exception | int, directory: Path) -> Outcome:
    def check(_: Path, __: np.random.Generator) -> int:
        if isinstance(error, int):
            return error
        raise error

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(targets.TARGETS, "planted", Target(samples.moses, check))
        return judge(Case("planted", {}, "", False), directory, 0, 0)


def test_only_documented_outcomes_pass(tmp_path: Path) -> None:
    path = str(tmp_path / "lists")
    assert [_fails(found, tmp_path).kind for found in (3, 0)] == ["read", "empty"]
    good: list[tuple[RerankError, str]] = [
        (DataError("bad", path=path, line=3), "refused at a line"),
        (DataError("cut short", path=path), "refused"),
        (RecipeError("unknown", key="data.reader"), "refused"),
    ]
    for error, kind in good:
        assert _fails(error, tmp_path) == Outcome(kind, f"{type(error).__name__}: {error}")
    bad = [
        DataError("bad"), DataError("bad", path="/elsewhere", line=1), RecipeError("bad"), RunError("disk full"),
        MemoryError(), ValueError("x"), AssertionError("x"), IndexError("x"),
    ]  # fmt: skip
    for text in ("bad " * 1000, "\x1b[31m"):
        bad.append(DataError("bad", path=path, line=1))
        bad[-1].args = (text,)
    assert all(_fails(error, tmp_path).failed for error in bad)


def test_failing_inputs_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = Tried("moses", Outcome("crash", "why"), 1.0, "lists")
    monkeypatch.setattr(Worker, "run", lambda self, *_: ((self.directory / "input").mkdir(exist_ok=True), tried)[1])
    summary = Campaign(seed=1, count=3, output=tmp_path, jobs=2).run()
    assert [number for number, _ in sorted(summary.failures)] == [0, 1, 2]
    assert sorted(path.name for path in (tmp_path / "failures").iterdir()) == [f"{n:07d}-moses" for n in range(3)]
    assert summary.table().row_count == 2
