"""Engines: order, laziness, errors in their place, workers that die, what workers say."""

import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from engine_tasks import break_down, die, die_once, meet, own_id, square, warn

from rerank.base.errors import DataError, RecipeError, RunError, UnforeseenError
from rerank.engines.processes import PatientEngine
from rerank.engines.settings import Engine, EngineSettings, LocalEngine, open_engine

PACKAGES = {"dask": "distributed", "ray": "ray"}


@pytest.fixture(scope="module", params=["local", "auto", "processes", "dask", "ray"])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    if request.param in PACKAGES:
        pytest.importorskip(PACKAGES[request.param], reason=f"rerank[{request.param}] is not installed")
    if request.param == "auto":
        with PatientEngine(2, patience=0) as impatient:
            yield impatient
        return
    workers = 1 if request.param == "local" else 2
    with open_engine(EngineSettings(name=request.param, workers=workers)) as opened:
        yield opened


def test_results_keep_the_order(engine: Engine) -> None:
    assert list(engine.map(square, [4, 3, 2, 1, 0, 6])) == [16, 9, 4, 1, 0, 36]
    assert list(engine.map(square, [])) == []
    assert list(engine.map(square, [7])) == [49]


def test_tasks_are_drawn_as_they_are_needed(engine: Engine) -> None:
    drawn = []

    def numbers() -> Iterator[int]:
        for number in range(100, 200):
            drawn.append(number)
            yield number

    results = engine.map(square, numbers())
    for taken in range(20):
        assert next(results) == (100 + taken) ** 2
        assert taken + 1 <= len(drawn) <= taken + engine.ahead


def test_an_error_comes_in_its_place(engine: Engine) -> None:
    results = engine.map(square, [4, 5, 6])
    assert next(results) == 16
    with pytest.raises(DataError, match=r"^numbers:5: five$") as caught:
        next(results)
    assert (caught.value.path, caught.value.line) == ("numbers", 5)
    assert list(engine.map(square, [1, 2])) == [1, 4]  # it goes on


@pytest.mark.parametrize("kind", ["KeyError", "MemoryError", "SystemExit", "StrangeError"])
def test_what_nobody_foresaw_keeps_its_traceback(engine: Engine, kind: str) -> None:
    """Whatever a worker meets, exceptions that cannot be pickled too."""
    with pytest.raises((Exception, SystemExit)) as caught:
        list(engine.map(break_down, ["", kind, ""]))
    found = UnforeseenError.of(caught.value)
    assert (caught.value is found) == (engine.name != "local")
    assert ("out of memory" if kind == "MemoryError" else f"unexpected {kind}") in str(found)
    assert "in break_down" in found.traceback
    assert kind in found.traceback.splitlines()[-1]
    assert list(engine.map(square, [1, 2])) == [1, 4]  # it goes on


def test_warnings_are_logged_here_in_order(engine: Engine, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "rerank"):
        assert list(engine.map(warn, range(5))) == [0, 1, 2, 3, 4]
    assert [record.getMessage() for record in caplog.records] == [f"seen {number}" for number in range(5)]


def test_processes_are_several_and_have_one_thread_each(tmp_path: Path) -> None:
    with open_engine(EngineSettings(name="processes", workers=2)) as engine:
        found = set(engine.map(meet, [(tmp_path, number) for number in range(8)]))
        assert {threads for _, threads in found} == {"1"}
        assert len(found) == 2
        assert os.getpid() not in {process for process, _ in found}
    for process, _ in found:
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)


def test_a_dead_worker_is_replaced(engine: Engine, tmp_path: Path) -> None:
    if engine.name in ("local", "auto"):
        pytest.skip("there are no workers")
    tasks = [(tmp_path / "mark", number) for number in range(10)]
    assert list(engine.map(die_once, tasks)) == list(range(10))
    assert (tmp_path / "mark").exists()


def test_workers_that_always_die_are_an_error(engine: Engine) -> None:
    if engine.name in ("local", "auto"):
        pytest.skip("there are no workers")
    with pytest.raises(RunError, match=r"died 3 times .*`--workers`"):
        list(engine.map(die, range(10)))
    assert list(engine.map(square, [1, 2])) == [1, 4]


def test_settings_that_exclude_one_another() -> None:
    with pytest.raises(RecipeError, match=r"engine\.address: the engine processes has no address"):
        open_engine(EngineSettings(name="processes", address="tcp://somewhere:1"))
    with pytest.raises(RecipeError, match=r"engine\.workers: found 2, but the engine local"):
        open_engine(EngineSettings(name="local", workers=2))
    assert isinstance(open_engine(EngineSettings(name="local")), LocalEngine)
    assert isinstance(open_engine(EngineSettings()), PatientEngine)


def test_work_that_turns_out_to_be_long_goes_to_workers() -> None:
    def processes(cores: int, patience: float) -> list[int]:
        with PatientEngine(cores, patience) as engine:
            return [process for process, _ in engine.map(own_id, range(6))]

    own = os.getpid()
    assert set(processes(2, 1e9)) == set(processes(1, 0)) == {own}
    first, *others = processes(2, 1e-9)
    assert first == own
    assert own not in others
    with PatientEngine(2, 1e-9) as engine:
        assert len(list(engine.map(own_id, range(3)))) == 3
        assert own not in {process for process, _ in engine.map(own_id, range(2))}  # there are workers now
    with PatientEngine(2, 1e9) as engine:
        engine.expect_long()
        assert own not in {process for process, _ in engine.map(own_id, range(2))}


def test_a_client_that_does_not_start_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = pytest.importorskip("distributed", reason="rerank[dask] is not installed")

    def client(*_: object, **__: object) -> None:
        raise AssertionError  # as distributed does on a busy machine

    monkeypatch.setattr(distributed, "Client", client)
    with pytest.raises(RunError, match=r"127\.0\.0\.1:1: no Dask scheduler answers \(its client did not start in time"):
        open_engine(EngineSettings(name="dask", address="127.0.0.1:1"))


@pytest.mark.parametrize("name", ["dask", "ray"])
def test_an_address_where_nothing_answers(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(PACKAGES[name], reason=f"rerank[{name}] is not installed")
    with pytest.raises(RecipeError, match=r"engine\.address: found 'nowhere'"):
        open_engine(EngineSettings(name=name, address="nowhere"))
    monkeypatch.setattr(f"rerank.engines.{name}.SECONDS", 1)
    with pytest.raises(RunError, match=r"127\.0\.0\.1:1: no .* answers"):
        open_engine(EngineSettings(name=name, address="127.0.0.1:1"))


@pytest.mark.parametrize("name", ["dask", "ray"])
def test_a_missing_package_names_the_extra(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, PACKAGES[name], None)
    with pytest.raises(RecipeError, match=rf"engine\.name: .* install rerank\[{name}\]"):
        open_engine(EngineSettings(name=name))
