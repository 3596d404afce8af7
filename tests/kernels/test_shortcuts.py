"""Kernels compile as numba's own functions do, in less time: leaves are linked, and signatures looked up."""

from pathlib import Path
from typing import Any

import numba
import pytest

from rerank.kernels.compile import OPTIONS, _Called, _compiled, _kept, kernel
from rerank.kernels.shortcuts import ConfigStack, Flags, LeafCompiler, _Options, _remembering, types

compiled = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")


def _ratio(x: float, y: float) -> float:
    return x / y


ratio: Any = kernel(_ratio)


def _twice(x: float) -> float:
    return float(ratio(x, 0.5))


@compiled
def test_leaves_are_machine_code_only_in_their_callers() -> None:
    twice: Any = numba.njit(_twice)  # compiled in every process
    assert twice(3.0) == 6.0
    (leaf,), (caller,) = ratio.called.overloads.values(), twice.overloads.values()
    assert not leaf.library.get_pointer_to_function(leaf.fndesc.llvm_func_name)
    assert caller.library.get_pointer_to_function(caller.fndesc.llvm_cpython_wrapper_name)


def _calling(made: Any) -> Any:
    return numba.njit(lambda x: made(x, 2.0))


@compiled
def test_leaves_are_found_where_they_are_kept(tmp_path: Path) -> None:
    for known in (0, 1):
        options = OPTIONS | {"no_cpython_wrapper": True}
        made: Any = _kept(_Called(_ratio, targetoptions=options, pipeline_class=LeafCompiler), str(tmp_path))
        assert _calling(made)(3.0) == 1.5
        assert sum(made.stats.cache_hits.values()) == known


@compiled
def test_what_is_kept_is_loaded_without_declarations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, again = (_compiled(_ratio, str(tmp_path)) for _ in range(2))
    assert first(3.0, 2.0) == 1.5
    monkeypatch.delattr("numba.core.base.BaseContext.refresh")
    assert again(3.0, 2.0) == 1.5
    with pytest.raises(AttributeError, match="refresh"):
        again(3, 2)


@compiled
def test_functions_that_are_no_kernels_keep_their_own_options() -> None:
    assert ratio(1.0, 0.0) == float("inf")
    with pytest.raises(ZeroDivisionError):
        numba.njit(_ratio)(1.0, 0.0)


def test_signatures_are_looked_up_for_kernels_alone() -> None:
    asked = []
    find = _remembering(lambda _function, _context, args, _kws: asked.append(args) or len(asked))
    function = type("Function", (), {})()
    for options, expected in ((_Options(), [1, 1, 2]), (Flags(), [3, 4, 5])):
        with ConfigStack().enter(options):
            of = [find(function, None, args, {}) for args in ([types.int64], (types.int64,), [types.float64])]
        assert of == expected
