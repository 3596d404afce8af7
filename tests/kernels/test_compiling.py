"""Kernels that are compiled on first use have a progress of their own, and slow no other one down."""

import gc
import logging
from functools import partial
from typing import Any

import numba
import numpy as np
import pytest
from numba.core import event

from rerank.base.progress import Compilation, counting
from rerank.kernels import compiling
from rerank.kernels.compile import kernel, machine_code, type_key


def _plus(x: float, i: int) -> float:
    return x + i


leaf: Any = kernel(_plus)


def _outer(x: float) -> float:
    for i in range(3):
        x = leaf(leaf(x, i), 2)
    return x + 2.0


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


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
def test_kernels_are_called_without_what_takes_pythons_arguments_and_alike_with_constants() -> None:
    assert numba.njit(_outer)(1.0) == 12.0  # compiled in every process
    assert not leaf.signatures
    (found,) = leaf.called.overloads.values()  # 2 and the counter of the loop are of one type
    assert not found.library.get_pointer_to_function(found.fndesc.llvm_cpython_wrapper_name)
    assert leaf(1.0, 3) == 4.0
    assert len(leaf.signatures) == 1


def _twice(i: int) -> int:
    return 2 * i


twice: Any = kernel(_twice)


def _read(small: Any) -> int:
    return int(twice(small[0]) + twice(small.shape[0]))


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
def test_numbers_from_arrays_of_int32_compile_nothing_twice() -> None:
    read: Any = numba.njit(_read)
    assert read(np.array([2**31 - 1], np.int32)) == 2**32
    assert len(twice.called.overloads) == 1


def test_the_collector_waits_while_kernels_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gc, "isenabled", lambda: True)
    switched = list[str]()
    for name in ("disable", "enable"):
        monkeypatch.setattr(gc, name, partial(switched.append, name))
    listener = compiling._Compiling()
    for each in (listener.on_start, listener.on_start, listener.on_end):
        each(None)
    assert switched == ["disable"]
    listener.on_end(None)
    assert switched == ["disable", "enable"]


def _total(values: np.ndarray, more: float) -> float:
    return float(values.sum() + more)


total: Any = kernel(_total)


def test_machine_code_is_of_the_arguments_types() -> None:
    for kind in (np.int32, np.float64):
        values = np.arange(4).astype(kind)
        assert machine_code(total, values, 0.5)(values + values, 1.5) == 13.5
    assert machine_code(_total, values, 0.5) is _total


def test_keys_tell_types_apart() -> None:
    values, fixed = np.arange(4.0), np.arange(4.0)
    fixed.flags.writeable = False
    others = [fixed, values.astype(np.float32), values[::2], values.reshape(2, 2), np.asfortranarray(np.eye(2))]
    assert type_key((values,)) == type_key((values[1:],))
    assert len({type_key((each,)) for each in [values, *others]}) == 6
