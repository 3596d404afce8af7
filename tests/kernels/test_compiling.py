"""Kernels that are compiled on first use have a progress of their own, and slow no other one down."""

import gc
import logging
from functools import partial
from typing import Any

import numba
import numpy as np
import pytest

from rerank.base.progress import Compilation, counting
from rerank.kernels import leaves  # which tells of what numba compiles from then on
from rerank.kernels.compile import kernel, machine_code

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


def _total(values: np.ndarray, more: float) -> float:
    return float(values.sum() + more)


total: Any = kernel(_total)


def test_machine_code_is_of_the_arguments_types() -> None:
    for kind in (np.int32, np.float64):
        values = np.arange(4).astype(kind)
        assert machine_code(total, values, 0.5)(values + values, 1.5) == 13.5
    assert machine_code(_total, values, 0.5) is _total
