"""Settings of all tests: no deadline, as an example may wait for a compilation; in CI the same examples each time."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
import small
from hypothesis import HealthCheck, settings

from rerank import pipeline

# Where the tests run in the background of a shell, SIGINT is ignored, and so it would be by every process they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("local", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("local"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")


@pytest.fixture(scope="session")
def small_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the first lists of the quickstart data; tests do not change it."""
    if not small.QUICKSTART.exists():
        pytest.skip("data/quickstart is missing; make it with data/make_quickstart.py")
    root = tmp_path_factory.mktemp("small")
    small.write_slices(root)
    return root


@pytest.fixture(scope="session")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where tests put their runs: those below one directory share the extracted corpora."""
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="session")
def small_run(small_data: Path, workspace: Path) -> Path:
    """The output of a finished run of a voted RDA and a perceptron; tests do not change it."""
    runs = [{"name": "RDA", "set": {"learner": {"name": "vrda"}}}, {"name": "perceptron"}]
    pipeline.run(small.recipe(small_data, runs=runs, training={"epochs": 3}), workspace / "finished")
    return workspace / "finished"
