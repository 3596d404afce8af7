"""Kernels that are compiled on first use have a progress of their own, and slow no other one down."""

import gc
import logging
import os
import subprocess
import sys
from functools import partial

import numba
import pytest

from rerank.base.progress import Compilation, counting
from rerank.kernels import leaves  # which tells of what numba compiles from then on
from rerank.kernels.compile import kernel
from rerank.pool import THREADS

compiled = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")


@compiled
def test_compilation_is_shown_and_its_time_is_in_no_rate(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Compilation, "_said", float("-inf"))
    before = Compilation.kernels, Compilation.seconds

    @numba.njit
    def leaf(x: float) -> float:
        return x + 1.0

    @numba.njit
    def outer(x: float) -> float:
        return 2.0 * leaf(x)

    with caplog.at_level(logging.INFO, "rerank"), counting("work") as count:
        outer(1.0)
        count.advance()
        taken = Compilation.seconds - before[1]
        assert Compilation.kernels == before[0] + 1  # with what it calls
        assert taken > 0
        assert count.rate == pytest.approx(1 / count.seconds, rel=0.5)
        outer(2.0)
        assert Compilation.kernels == before[0] + 1
    first, last = (record.getMessage() for record in caplog.records)
    assert first.startswith("compiling kernels (first run)")
    assert f"after {taken:.1f} s of compiling kernels" in last


def test_the_collector_waits_while_kernels_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gc, "isenabled", lambda: True)
    switched = list[str]()
    for name in ("disable", "enable"):
        monkeypatch.setattr(gc, name, partial(switched.append, name))
    listener = leaves._Compiling()
    for call in (listener.on_start, listener.on_start, listener.on_end):
        call(None)
    assert switched == ["disable"]
    listener.on_end(None)
    assert switched == ["disable", "enable"]


@kernel
def ratio(x: float, y: float) -> float:
    return x / y


@kernel
def twice(x: float) -> float:
    return float(ratio(x, 0.5))


@compiled
def test_a_kernel_that_kernels_call_is_part_of_them_alone() -> None:
    assert twice(3.0) == 6.0
    assert not ratio.compiled.signatures  # type: ignore[attr-defined]
    assert ratio(1.0, 0.0) == float("inf")
    assert len(ratio.compiled.signatures) == 1  # type: ignore[attr-defined]


@pytest.mark.parametrize(("given", "expected"), [("1", 1), ("3", 3), ("many", None)])
def test_threads_are_as_many_as_numba_is_to_have(given, expected):
    """Workers are told to have one; what is no number is numba's to warn of."""
    command = [sys.executable, "-c", "from rerank.kernels.compile import thread_count; print(thread_count())"]
    others = {name: value for name, value in os.environ.items() if name != "NUMBA_NUM_THREADS"}
    found, own = (
        int(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
        for environment in (others | {"NUMBA_NUM_THREADS": given}, others)
    )
    assert found == (expected or own)
    assert THREADS["NUMBA_NUM_THREADS"] == "1"
