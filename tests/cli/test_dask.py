"""Engines on the command line: the same results from this process, processes, and a running Dask scheduler."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml
from programs import PATIENCE, program
from small import settings, write_slices
from typer.testing import CliRunner

from rerank import pool
from rerank.base.errors import RecipeError
from rerank.cli.application import app

CHANGES: dict[str, Any] = {"learner": {"name": "arow"}, "training": {"epochs": 2}, "seeds": [1, 2, 3]}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the slices and a recipe of several runs."""
    directory = tmp_path_factory.mktemp("engines")
    write_slices(directory)
    (directory / "recipe.yaml").write_text(yaml.safe_dump(settings(directory, **CHANGES)))
    return directory


def invoke(*arguments: str) -> Any:
    result = CliRunner().invoke(app, [*arguments])
    assert result.exit_code == 0, result.output
    return result


def train(root: Path, name: str, *options: str, recipe: str = "recipe.yaml") -> dict[str, bytes]:
    """Train with a cache of its own; returns the model's arrays and the resolved recipe."""
    output = root / name / "run"
    invoke("run", "--until", "train", str(root / recipe), "-o", str(output), *options)
    found = {path.name: path.read_bytes() for path in (output / "model").glob("*.npy")}
    return found | {"recipe": (output / "recipe.yaml").read_bytes()}


@pytest.fixture(scope="module")
def plain(root: Path) -> dict[str, bytes]:
    return train(root, "plain")


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a running scheduler with two workers, each a program of its own."""
    pytest.importorskip("distributed", reason="rerank[dask] is not installed")
    directory = tmp_path_factory.mktemp("scheduler")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    port_file, log = directory / "scheduler.json", directory / "log"
    with ExitStack() as programs, log.open("w") as out:

        def start(name: str, *options: object) -> subprocess.Popen[bytes]:
            command = (sys.executable, "-m", f"distributed.cli.dask_{name}", "--no-dashboard", *options)
            common: dict[str, Any] = {"env": environment, "cwd": directory, "stdout": out, "stderr": out}
            return programs.enter_context(program(*command, "--scheduler-file", port_file, **common))

        started = start("scheduler", "--host", "127.0.0.1", "--port", "0")
        while not port_file.exists():
            assert started.poll() is None, log.read_text()
            time.sleep(0.1)
        for _ in range(2):
            start("worker", "--nthreads", "1", "--no-nanny")
        yield yaml.safe_load(port_file.read_text())["address"]


def test_a_running_scheduler_trains_the_same_model(
    root: Path, plain: dict[str, bytes], scheduler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its address stands in the recipe, and is not kept with the results."""
    monkeypatch.setattr(pool, "SECONDS", PATIENCE)  # its workers have only just been started
    made = settings(root, **CHANGES, engine={"name": "dask", "address": scheduler})
    (root / "cluster.yaml").write_text(yaml.safe_dump(made))
    found = train(root, "address", recipe="cluster.yaml")
    assert found == plain
    assert len(plain) > 3
    assert b"\nengine:" not in found["recipe"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--engine", "local", "--workers", "2"],
            "engine.workers: found 2, but the engine local is this process alone",
        ),
        (["--address", "tcp://127.0.0.1:1"], "engine.address: the engine auto has no address; use dask"),
        (["--set", "engine.name=slurm"], "engine.name: found 'slurm'"),
    ],
)
def test_settings_that_cannot_be_used(root: Path, options: list[str], message: str) -> None:
    result = CliRunner().invoke(
        app, ["run", "--until", "train", str(root / "recipe.yaml"), "-o", str(root / "wrong"), *options]
    )
    assert isinstance(result.exception, RecipeError), result.output
    assert message in str(result.exception)
    assert not (root / "wrong").exists()
