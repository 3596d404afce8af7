"""Kernels that are compiled on first use have a progress of their own, and slow no other one down."""

from __future__ import annotations

import logging

import numba
import pytest
from numba.core import event

from rerank.base.progress import Compilation, counting
from rerank.kernels import compiling


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
def test_compilation_is_shown_and_its_time_is_in_no_rate(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert compiling.event is event
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
