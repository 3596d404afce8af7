"""Maps over tasks, what a process may take, and ranges."""

import json
import logging
import math
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import psutil
import pytest
from engine_tasks import break_down, die, die_once, meet, own_id, square, warn
from programs import PATIENCE, program

from rerank import pool as machine
from rerank.base.errors import DataError, RecipeError, RunError, UnforeseenError
from rerank.base.ranges import Checked, Range
from rerank.pool import Engine, Processes, carry_out, open_engine


@pytest.fixture(scope="module", params=["local", "processes", "dask"])
def name(request: pytest.FixtureRequest) -> str:
    """Each engine in turn."""
    return str(request.param)


@pytest.fixture(scope="module")
def engine(name: str) -> Iterator[Engine]:
    """With two workers, if any."""
    if name == "dask":
        pytest.importorskip("distributed", reason="rerank[dask] is not installed")
    workers = 1 if name == "local" else 2
    with open_engine(name, workers) as opened:
        yield opened


def test_results_keep_the_order(engine: Engine) -> None:
    assert list(engine.map(square, [4, 3, 2, 1, 0, 6])) == [16, 9, 4, 1, 0, 36]
    assert list(engine.map(square, [])) == []
    assert list(engine.map(square, [7])) == [49]


@pytest.mark.parametrize("count", [1, 2, 30])
def test_tasks_are_drawn_as_they_are_needed(name: str, engine: Engine, count: int) -> None:
    """One by one in this process, and 2 · 2 + 1 ahead of the results by two workers; none is drawn twice."""
    drawn = []

    def numbers() -> Iterator[int]:
        for number in range(100, 100 + count):
            drawn.append(number)
            yield number

    results = engine.map(square, numbers())
    assert drawn == []
    for taken in range(count):
        assert next(results) == (100 + taken) ** 2
        assert len(drawn) == min(count, taken + (1 if name == "local" else 5))
    assert list(results) == []


def test_tasks_that_nobody_waits_for_are_left(engine: Engine) -> None:
    results = engine.map(square, range(100, 200))
    assert next(results) == 10000
    results.close()
    assert list(engine.map(square, [1, 2])) == [1, 4]


@pytest.mark.parametrize("cancelled", [False, True])
def test_workers_are_killed_whatever_is_under_way(cancelled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also tasks that have not reached a worker yet, and those that were cancelled; nothing is printed."""
    faults = list[Any]()
    monkeypatch.setattr(threading, "excepthook", faults.append)
    pool = Processes(1)
    (process, _), _ = pool.submit(carry_out, own_id, 0).result()
    futures = [pool.submit(carry_out, own_id, number) for number in range(200)]
    for future in futures if cancelled else ():
        future.cancel()
    pool.shutdown(kill_workers=True)
    assert not psutil.pid_exists(process)
    assert all(future.done() for future in futures)
    assert faults == []


def test_an_error_comes_in_its_place(engine: Engine) -> None:
    results = engine.map(square, [4, 5, 6])
    assert next(results) == 16
    with pytest.raises(DataError, match=r"^numbers:5: five$") as caught:
        next(results)
    assert (caught.value.path, caught.value.line) == ("numbers", 5)
    assert list(engine.map(square, [1, 2])) == [1, 4]  # it goes on


@pytest.mark.parametrize("kind", ["KeyError", "MemoryError", "SystemExit", "StrangeError"])
def test_what_nobody_foresaw_keeps_its_traceback(name: str, engine: Engine, kind: str) -> None:
    """Whatever a worker meets, exceptions that cannot be pickled too."""
    with pytest.raises((Exception, SystemExit)) as caught:
        list(engine.map(break_down, ["", kind, ""]))
    found = UnforeseenError.of(caught.value)
    assert (caught.value is found) == (name != "local")
    assert ("out of memory" if kind == "MemoryError" else f"unexpected {kind}") in str(found)
    assert "in break_down" in found.traceback
    assert kind in found.traceback.splitlines()[-1]
    assert list(engine.map(square, [1, 2])) == [1, 4]  # it goes on


def test_warnings_are_logged_here_in_order(engine: Engine, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "rerank"):
        assert list(engine.map(warn, range(5))) == [0, 1, 2, 3, 4]
    assert [record.getMessage() for record in caplog.records] == [f"seen {number}" for number in range(5)]


def test_processes_are_several_and_have_one_thread_each(tmp_path: Path) -> None:
    with open_engine(name="processes", workers=2) as engine:
        found = set(engine.map(meet, [(tmp_path, number) for number in range(8)]))
        assert {threads for _, threads in found} == {"1"}
        assert len(found) == 2
        assert os.getpid() not in {process for process, _ in found}
    for process, _ in found:
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)


def test_a_dead_worker_is_replaced(name: str, engine: Engine, tmp_path: Path) -> None:
    if name == "local":
        pytest.skip("there are no workers")
    tasks = [(tmp_path / "mark", number) for number in range(10)]
    assert list(engine.map(die_once, tasks)) == list(range(10))
    assert (tmp_path / "mark").exists()


def test_a_result_that_has_come_is_not_lost_with_its_worker(
    name: str, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A scheduler reports the death while the result is on its way."""
    if name != "dask":
        pytest.skip("loky's results come from its workers")
    from distributed import Future

    sent = Future._result

    async def result(self: Any, **options: Any) -> Any:
        value = await sent(self, **options)
        self._state.lose()
        return value

    monkeypatch.setattr(Future, "_result", result)
    assert list(engine.map(square, [3, 2, 1])) == [9, 4, 1]


def test_a_task_that_kills_its_workers_is_named(name: str, engine: Engine) -> None:
    """Those that were under way beside it are not to blame, and give their results."""
    if name == "local":
        pytest.skip("there are no workers")
    results = engine.map(die, range(10))
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(RunError, match=r"died 3 times over the same work, 3; .* fewer workers than 2 \(`--workers`\)"):
        next(results)
    assert list(engine.map(square, [1, 2])) == [1, 4]


def test_a_map_may_end_after_its_engine() -> None:
    with open_engine("processes", 2) as engine:
        results = engine.map(square, iter(range(100)))
        assert next(results) == 0
    results.close()


INTERRUPTED = """
import json, sys
from pathlib import Path
from engine_tasks import meet
from rerank.base.interrupts import Interrupted, take_signals
from rerank.pool import open_engine

if __name__ == "__main__":
    try:
        with take_signals(), open_engine(sys.argv[1], 2) as engine:
            found = engine.map(meet, ((Path(sys.argv[2]), number) for number in range(10**9)))
            print(json.dumps([next(found)[0] for _ in range(8)]), flush=True)
            list(found)
    except Interrupted as error:
        sys.exit(error.exit_code)
"""


@pytest.mark.parametrize(
    ("name", "number"), [("processes", signal.SIGINT), ("processes", signal.SIGTERM), ("dask", signal.SIGINT)]
)
def test_an_interrupt_ends_the_workers(name: str, number: int, tmp_path: Path) -> None:
    """In silence; Ctrl-C reaches the workers too, SIGTERM this process alone."""
    if name == "dask":
        pytest.importorskip("distributed", reason="rerank[dask] is not installed")
    (tmp_path / "main.py").write_text(INTERRUPTED)
    (tmp_path / "met").mkdir()
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "env": environment}
    with program(sys.executable, tmp_path / "main.py", name, tmp_path / "met", **pipes) as running:
        workers = set(json.loads(running.stdout.readline()))
        if number == signal.SIGINT:
            os.killpg(running.pid, number)
        else:
            running.send_signal(number)
        _, said = running.communicate(timeout=PATIENCE)
    assert (running.returncode, said) == (128 + number, b"")
    assert len(workers) == 2
    assert not any(psutil.pid_exists(worker) for worker in workers)


def test_workers_end_with_a_run_that_is_killed(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(INTERRUPTED)
    (tmp_path / "met").mkdir()
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "env": environment}
    with program(sys.executable, tmp_path / "main.py", "processes", tmp_path / "met", **pipes) as running:
        workers = set(json.loads(running.stdout.readline()))
        running.kill()
        end = time.monotonic() + PATIENCE
        while any(psutil.pid_exists(worker) for worker in workers):
            assert time.monotonic() < end
            time.sleep(0.1)


def test_settings_that_exclude_one_another() -> None:
    with pytest.raises(RecipeError, match=r"engine\.address: the engine processes has no address"):
        open_engine(name="processes", address="tcp://somewhere:1")
    with pytest.raises(RecipeError, match=r"engine\.workers: found 2, but the engine local"):
        open_engine(name="local", workers=2)
    assert isinstance(open_engine(name="local"), Engine)
    assert open_engine(name="auto", workers=4).workers == 1  # run of a recipe at once
    assert open_engine(name="processes", workers=4).workers == 4


def test_work_that_turns_out_to_be_long_goes_to_workers() -> None:
    def processes(patience: float) -> list[int]:
        with Engine(Processes(2), patience) as engine:
            return [process for process, _ in engine.map(own_id, range(6))]

    own = os.getpid()
    assert set(processes(1e9)) == {own}
    first, *others = processes(1e-9)
    assert first == own
    assert own not in others
    with Engine(Processes(2), 1e-9) as engine:
        assert len(list(engine.map(own_id, range(3)))) == 3
        assert own not in {process for process, _ in engine.map(own_id, range(2))}  # there are workers now
    with Engine(Processes(2), 1e9) as engine:
        engine.expect_long()
        assert own not in {process for process, _ in engine.map(own_id, range(2))}


def test_a_client_that_does_not_start_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = pytest.importorskip("distributed", reason="rerank[dask] is not installed")

    def client(*_: object, **__: object) -> None:
        raise AssertionError  # as distributed does on a busy machine

    monkeypatch.setattr(distributed, "Client", client)
    with socket.create_server(("127.0.0.1", 0)) as busy:
        address = f"127.0.0.1:{busy.getsockname()[1]}"
        with pytest.raises(RunError, match=rf"^{address}: no Dask scheduler .* \(its client did not start in time"):
            open_engine(name="dask", address=address)


@pytest.mark.parametrize("address", ["nowhere", "127.0.0.1:1"])
def test_an_address_where_nothing_answers(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At once, and without a client of Dask, some of which never end."""
    distributed = pytest.importorskip("distributed", reason="rerank[dask] is not installed")
    monkeypatch.delattr(distributed, "Client")
    with pytest.raises(RunError, match=rf"^{address}: no Dask scheduler with workers answers \(.*correct --address"):
        open_engine(name="dask", address=address)


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(RecipeError, match=r"engine\.name: .* install rerank\[dask\]"):
        open_engine(name="dask")


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine of 64 GB, with control groups in a folder, and without any other limit."""
    monkeypatch.setattr(machine, "GROUPS", tmp_path)
    monkeypatch.setattr(machine, "OWN_GROUP", tmp_path / "own")
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(total=64 * 10**9, available=50 * 10**9))
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    return tmp_path


def put(place: Path, text: str) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(f"{text}\n")


def test_without_limits_it_is_the_machine(groups: Path) -> None:
    assert machine.memory_limit() == 64 * 10**9
    put(groups / "own", "0::/")
    put(groups / "memory.max", "max")
    assert machine.memory_limit() == 64 * 10**9


def test_the_least_of_the_groups_around_counts(groups: Path) -> None:
    put(groups / "own", "0::/slice/box/inner")
    put(groups / "slice/memory.max", "3000")
    put(groups / "slice/box/memory.max", "max")
    put(groups / "slice/box/inner/memory.max", "5000")
    put(groups / "slice/other/memory.max", "7")
    assert machine.memory_limit() == 3000


@pytest.mark.usefixtures("groups")
def test_the_address_space(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (12345, 99999))
    assert machine.memory_limit() == 12345


def test_what_needs_more_is_refused(groups: Path) -> None:
    put(groups / "own", "0::/")
    put(groups / "memory.max", str(4 * 10**9 + psutil.Process().memory_info().rss))
    with pytest.raises(RecipeError, match=r"^a\.b: work takes 4\.2 GB, and this process may have [34]\.\d GB more; no"):
        machine.require(4.2e9, "work", "no", "a.b")
    machine.require(1e9, "work", "no", "a.b")


if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Part(Checked):
    kind: ClassVar[str] = "part"
    rate: Annotated[float, Range(above=0)] = 1.0
    share: Annotated[float, Range(0, below=1)] = 0.5
    top: Annotated[int, Range(1)] = 1
    n: Annotated[int, Range(1, 8)] = 2
    draws: Annotated[int, Range(high=1_000_000)] = 1
    update: Literal["always", "mistakes"] = "always"
    theta: Annotated[float, Range(0.05)] | None = None
    weight: Annotated[float, Range(0)] | Literal["auto"] = "auto"
    normalized: bool = False
    label: str = ""
    plain: float = 0.0
    other: Any = None


@pytest.mark.parametrize(
    "fitting",
    [
        {},
        {"rate": 5e-324, "share": 0, "top": 2**31 - 1, "n": 8, "draws": -(2**31) + 1, "update": "mistakes"},
        {"rate": 1, "theta": 0.05, "weight": 0, "normalized": True, "label": "x", "plain": -1.7e308, "other": object()},
    ],
)
def test_values_that_fit(fitting: dict[str, Any]) -> None:
    part = Part(**fitting)
    assert {name: getattr(part, name) for name in fitting} == fitting


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("rate", 0.0, "a finite number above 0"),
        ("rate", math.nan, "a finite number above 0"),
        ("rate", 10**400, "a finite number above 0"),
        ("rate", "1", "a finite number above 0"),
        ("share", 1, "a finite number from 0 and below 1"),
        ("top", 1.0, "a whole number from 1"),
        ("top", 2**31, "a whole number from 1, at most 2,147,483,647"),
        ("n", 9, "a whole number from 1 to 8"),
        ("draws", 1_000_001, "a whole number at most 1,000,000"),
        ("update", "never", "one of always, mistakes"),
        ("theta", 0.04, "a finite number from 0.05 or null"),
        ("weight", "car", "a finite number from 0 or auto"),
        ("normalized", 1, "true or false"),
        ("label", 1, "a string"),
        ("plain", math.inf, "a finite number"),
    ],
)
def test_what_does_not_fit_is_refused(name: str, value: Any, expected: str) -> None:
    with pytest.raises(RecipeError) as caught:
        Part(**{name: value})
    assert str(caught.value) == f"{name}: found {value!r}; expected {expected}"


def test_parts_of_parts_are_checked_and_compare_what_they_will() -> None:
    @dataclass(frozen=True)
    class Pair(Part):
        most: Annotated[int, Range(0)] = 9

        def __post_init__(self) -> None:
            super().__post_init__()
            if self.most < self.n:
                raise RecipeError(f"found {self.most}; expected at least n, {self.n}", key="most")

    assert Pair(n=8, most=8).most == 8
    with pytest.raises(RecipeError, match="most: found 7; expected at least n, 8"):
        Pair(n=8, most=7)
    with pytest.raises(RecipeError, match="n: found 'x'; expected a whole number"):
        Pair(n="x")  # type: ignore[arg-type]


def test_annotations_that_only_type_checkers_can_read_are_named() -> None:
    @dataclass(frozen=True)
    class Loose(Checked):
        path: "PurePath"  # noqa: F821

    with pytest.raises(RecipeError, match=r"annotations of .*\.Loose cannot be read: name 'PurePath' is not defined"):
        Loose(path="")  # type: ignore[arg-type]
