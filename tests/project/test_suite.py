"""The suite's own machinery: how many examples tests try, which instances are chosen, how programs are ended."""

import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import first_instances, multiply_examples
from programs import PATIENCE, end, program


@pytest.mark.parametrize(("factor", "tried"), [(1, 7), (3, 21), (0.1, 1)])
def test_examples_are_multiplied_once_for_all_instances_of_a_test(factor: float, tried: int) -> None:
    seen: list[int] = []

    class Tests:
        @settings(max_examples=7)
        @given(st.integers())
        def test(self, number: int) -> None:
            seen.append(number)

    multiply_examples([Tests().test, Tests().test, print], factor)
    Tests().test()
    assert len(seen) == tried


def test_the_first_instance_of_every_test_is_chosen() -> None:
    names = ["a.py::one[x]", "a.py::one[y[0]]", "a.py::two", "b.py::one[x]", "b.py::one", "b.py::slow"]
    items: list[Any] = [SimpleNamespace(nodeid=name, iter_markers=lambda marks=(): marks) for name in names]
    items[-1].iter_markers = lambda: [pytest.mark.slow]
    assert [item.nodeid for item in first_instances(items)] == ["a.py::one[x]", "a.py::two", "b.py::one[x]"]


STUBBORN = """
import signal, subprocess, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
print(child.pid, flush=True)
input()
"""


def test_programs_end_with_what_they_have_started_by_force_if_need_be() -> None:
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with program(sys.executable, "-c", STUBBORN, **pipes) as running:
        assert running.stdout is not None
        child = psutil.Process(int(running.stdout.readline()))
        end(running, polite=0.1)
        assert running.returncode == -9
    psutil.wait_procs([child])
    assert not child.is_running()


RUNNING = """
import pathlib, pytest, time
from rerank.base import interrupts

@pytest.fixture
def started():
    yield
    pathlib.Path("ended").touch()

def test(started):
    with interrupts.handled() if {command} else interrupts.deferred():
        pathlib.Path("begun").touch()
        while True:
            time.sleep(0.01)

def test_of_another():
    pathlib.Path("another").touch()
"""


@pytest.mark.parametrize(("processes", "command"), [(0, False), (0, True), (1, True)])
def test_a_suite_that_is_told_to_end_does(tmp_path: Path, processes: int, command: bool) -> None:
    (tmp_path / "test_running.py").write_text(RUNNING.format(command=command))
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), *filter(None, sys.path)])
    }
    words = (sys.executable, "-m", "pytest", "-p", "ending", "-n", processes, "-c", os.devnull, "--rootdir", tmp_path)
    with program(*map(str, words), cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL) as running:
        while not (tmp_path / "begun").exists():
            assert running.poll() is None
            time.sleep(0.05)
        workers = psutil.Process(running.pid).children(recursive=True)
        running.terminate()
        assert running.wait(PATIENCE) != 0
        assert not psutil.wait_procs(workers, PATIENCE)[1]
    assert (tmp_path / "ended").exists() or processes  # a process of several has 5 seconds, or is ended by force
    assert not (tmp_path / "another").exists()
