"""Kernels that another process compiles ahead of a run."""

import json
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest

from rerank.base.progress import Compilation
from rerank.kernels.compile import INTERPRETED, Kernel, Rehearsal, kernel
from rerank.kernels.leaves import alone
from rerank.recipes.loading import load_recipe
from rerank.runs import experiment
from rerank.storage.files import lock

pytestmark = pytest.mark.skipif(INTERPRETED, reason="nothing is compiled")

RECIPE = """\
task: ranking
name: ahead
data: {root: ., nbest: "{split}.jsonl", sources: null, references: null, reader: jsonl}
features: {set: dense}
learner: perceptron
training: {epochs: 2}
"""

# What is compiled by a process that rehearses the recipe, and then by another that carries it out.
COUNTED = """\
from pathlib import Path
from rerank.base.progress import Compilation
from rerank.pool import Processes
from rerank.storage.streams import Inputs
from rerank.recipes.loading import load_recipe
from rerank.runs.experiment import experiment, rehearse

def own(nbest):
    return []

def compiled():
    return Compilation.kernels

if __name__ == "__main__":
    recipe = load_recipe(Path("ahead.yaml"))
    other = Processes(1)
    other.submit(rehearse, recipe, "train", Path("few")).result()
    print(other.submit(compiled).result())
    experiment(recipe, Inputs(), Path("out"), until="train")
    other.shutdown(kill_workers=True)
    print(compiled())
"""

SILENT = """\
from pathlib import Path
from rerank.kernels.compile import Rehearsal
from rerank.recipes.loading import load_recipe
from rerank.runs.experiment import rehearse

Rehearsal.compile = print
rehearse(load_recipe(Path("ahead.yaml"), ["training.vote=true", "learner.base=0"]), "test", Path("few"))
"""


@kernel
def doubled(values: np.ndarray) -> None:
    for i in range(values.size):
        values[i] = twice(values[i])


@kernel
def twice(value: float) -> float:
    return 2.0 * value


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    random = np.random.default_rng(1)
    for split in ("train", "dev", "test"):
        lists = [
            {
                "id": f"{split}{i}",
                "candidates": [
                    {"text": f"{y}", "score": float(random.normal()), "a": float(random.normal()), "gain": y % 2}
                    for y in range(4)
                ],
            }
            for i in range(20)
        ]
        tmp_path.joinpath(f"{split}.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in lists))
    tmp_path.joinpath("ahead.yaml").write_text(RECIPE)
    tmp_path.joinpath("counted.py").write_text(COUNTED)
    return tmp_path


def test_a_rehearsal_tells_kernels_and_types_and_runs_python(monkeypatch: pytest.MonkeyPatch) -> None:
    rehearsal = Rehearsal()
    monkeypatch.setattr(Kernel, "rehearsal", rehearsal)
    values = np.arange(3.0)
    doubled(values)
    assert values.tolist() == [0.0, 2.0, 4.0]
    assert [(each.function.__name__, str(kinds)) for each, kinds in rehearsal.calls] == [
        ("doubled", "(Array(float64, 1, 'C', False, aligned=True),)")
    ]
    assert not doubled.compiled.overloads  # type: ignore[attr-defined]
    rehearsal.compile()
    assert len(doubled.compiled.overloads) == 1  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("change", "processors", "calls"),
    [({}, 2, 1), ({}, 1, 0), ({"features.user": {"own": "counted:own"}}, 2, 0), ({"data.nbest": "pipe"}, 2, 0)],
    ids=["as it is", "one processor", "a user's part", "a pipe"],
)
def test_the_first_compilation_starts_a_rehearsal(
    folder: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], processors: int, calls: int
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(folder)
    os.mkfifo("pipe")
    submitted = list[Any]()
    monkeypatch.setattr(experiment.Processes, "submit", lambda _, *call: submitted.append(call))
    monkeypatch.setattr(experiment, "thread_count", lambda: processors)
    with experiment.background_compilation(load_recipe(folder / "ahead.yaml").change(change), "test"):
        Compilation.begin()
        Compilation.begin()
    assert len(submitted) == calls
    for _, _, _, place in submitted:
        assert not place.parent.exists()  # it goes with the run


def test_a_run_goes_on_where_no_process_can_be_started(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setattr(experiment, "thread_count", lambda: 2)
    monkeypatch.setattr(experiment, "TemporaryDirectory", partial(TemporaryDirectory, dir=folder / "none"))
    with experiment.background_compilation(load_recipe(folder / "ahead.yaml"), "test"):
        Compilation.begin()


def test_a_process_that_was_forked_meanwhile_keeps_no_lock(tmp_path: Path) -> None:
    with alone(tmp_path / "lock"):
        child = os.fork()
        if not child:
            signal.pause()
    try:
        assert lock(tmp_path / "lock") is not None
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_nothing_is_left_to_compile_and_the_model_is_the_same(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder / "kernels")}
    done = subprocess.run(
        [sys.executable, "counted.py"], cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    there, here = map(int, done.stdout.split())
    assert there > here == 0
    monkeypatch.chdir(folder)
    experiment.run(load_recipe(Path("ahead.yaml")), folder / "warm", tests=False)
    ahead, warm = (folder.joinpath(name, "model", "average.npy").read_bytes() for name in ("out", "warm"))
    assert ahead == warm


def test_a_rehearsal_of_the_vote_says_nothing(folder: Path) -> None:
    done = subprocess.run([sys.executable, "-c", SILENT], cwd=folder, capture_output=True, text=True, check=True)
    assert not done.stderr
    assert '"voted"' in folder.joinpath("few", "metrics.json").read_text()
