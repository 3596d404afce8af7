"""Kernels: how they are compiled, where machine code is kept, and which sources it is of."""

import gc
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numba
import pytest
import small

from rerank.base.progress import Compilation, counting
from rerank.extraction import extraction
from rerank.kernels import leaves, sources
from rerank.kernels.compile import kernel
from rerank.kernels.leaves import MAX_STATES, NAME
from rerank.kernels.sources import module_digest, user_digest
from rerank.pool import THREADS
from rerank.recipes.recipe import Recipe, TextRecipe

compiled = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")


@compiled
def test_compilation_is_shown_and_in_no_rate(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Compilation, "_last_line", float("-inf"))
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


@pytest.mark.parametrize("frozen", [False, True])
def test_what_a_compiler_leaves_is_old_unless_a_program_has_frozen_objects(frozen: bool) -> None:
    listener = leaves._Compiling()
    gc.enable()
    gc.unfreeze()  # whatever other tests have left
    if frozen:
        gc.freeze()
    before = gc.get_freeze_count()
    try:
        listener.on_start(None)
        made = [[]]
        listener.on_end(None)
        assert any(made is held for held in gc.get_objects(generation=2)) != frozen
        assert gc.get_freeze_count() == before
    finally:
        gc.unfreeze()


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


@pytest.mark.parametrize(("given", "expected"), [("3", 3), ("many", None)])
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


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that modules are imported from."""
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def write(folder: Path, **texts: str) -> None:
    """Modules by name, ``__`` for a dot, with the packages around them."""
    for name, text in texts.items():
        path = folder.joinpath(*name.split("__")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        for package in path.parents[: len(path.relative_to(folder).parts) - 1]:
            (package / "__init__.py").touch()


IMPORTS = {
    "import": "import helper_a",
    "from": "from helper_a import f",
    "in a function": "def g():\n    from helper_a import f\n",
    "through another": "import between_a",
    "under a condition": "try:\n    import helper_a as h\nexcept ImportError:\n    h = None\n",
    "a package": "import pack_a.deep.leaf",
    "from a package": "from pack_a.deep import leaf",
    "relative": "from pack_a.near import x",
    "the package itself": "from pack_a import deep",
}


@pytest.mark.parametrize("how", list(IMPORTS))
def test_an_edit_of_what_a_module_imports_changes_its_digest(folder: Path, how: str) -> None:
    write(folder, helper_a="f = 1", between_a="import helper_a", other_a="")
    write(folder, pack_a__deep__leaf="f = 1", pack_a__near="from .deep.leaf import f\nfrom . import deep\nx = 1")
    write(folder, mine_a=IMPORTS[how])
    edited = dict.fromkeys(("a package", "from a package", "relative"), "pack_a/deep/leaf.py")
    edited["the package itself"] = "pack_a/deep/__init__.py"
    before = user_digest({"learner": {"name": "mine_a:Learner"}})
    assert before == module_digest("mine_a", folder / "mine_a.py")
    (folder / "other_a.py").write_text("not = imported")
    assert user_digest({"learner": {"name": "mine_a:Learner"}}) == before
    (folder / edited.get(how, "helper_a.py")).write_text("f = 22")
    assert user_digest({"learner": {"name": "mine_a:Learner"}}) != before


def test_cycles_broken_sources_and_libraries(folder: Path) -> None:
    write(
        folder,
        one_b="import two_b, numpy, rerank.data.corpus, missing_b\n",
        two_b="import one_b, broken_b",
        broken_b="def (",
    )
    before = user_digest("one_b:x")
    (folder / "broken_b.py").write_text("def ((")
    assert user_digest("one_b:x") != before


def test_what_a_borrowed_environment_has_is_a_library(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    borrowed = folder / "other" / "lib" / "site-packages"
    monkeypatch.syspath_prepend(borrowed)
    write(borrowed, large_f="f = 1")
    write(folder, mine_f="import large_f")
    before = user_digest("mine_f:x")
    (borrowed / "large_f.py").write_text("f = 2")
    assert user_digest("mine_f:x") == before


def test_where_the_folder_lies_does_not_count(folder: Path) -> None:
    for name in ("here", "there"):
        (folder / name).mkdir()
        write(folder / name, mine_c="import helper_c", helper_c="f = 1")
    here, there = (module_digest("mine_c", folder / name / "mine_c.py") for name in ("here", "there"))
    assert here == there


def test_a_rule_that_is_run_by_its_file_has_kernels_of_its_own() -> None:
    """What is kept names the module, which other programs have under another name."""
    file = str(sources.PACKAGE / "learn/rules/gaussian.py")
    own, others = (sources.kernel_state({module: file}) for module in ("rerank.learn.rules.gaussian", "gaussian"))
    assert own == sources.kernel_state({"rerank.learn.learner": str(sources.PACKAGE / "learn/learner.py")}) != others


def test_what_names_no_module_counts_as_nothing() -> None:
    nothing = user_digest()
    assert (
        user_digest({"a": ["x", 1, None, {"no:such": "C:/data", "sys:path": 2}], "b": "::"}, "missing_d:f") == nothing
    )


def test_a_part_of_an_entry_point(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(folder, mine_e="f = 1")
    monkeypatch.setattr(sources, "installed_parts", lambda: {"learner": {"own": "mine_e:Own"}})
    before = user_digest({"learner": {"name": "own"}})
    write(folder, mine_e="f = 22")
    assert user_digest({"learner": {"name": "own"}}) != before


OWN = """
from dataclasses import dataclass
from {module} import {base}
import helper_{{kind}}
@dataclass(frozen=True)
class Mine({base}):
    pass
"""
READER = OWN.format(module="rerank.readers.trees.charniak", base="CharniakReader")
METRIC = OWN.format(module="rerank.metrics.wer", base="Wer")
PARTS = {
    "reader": (READER, {"data": {"reader": {"name": "mine_reader:Mine"}}}),
    "metric": (METRIC, {"metric": {"name": "mine_metric:Mine"}}),
    "template": ("import helper_{kind}\n", {"features": {"templates": ["mine_template:Mine(k=2)"]}}),
    "options": ("import helper_{kind}\n", {"features": {"templates": [{"mine_options:Mine": {"k": 2}}]}}),
    "user": ("import helper_{kind}\n", {"features": {"user": {"own": "mine_user:f"}}}),
}


@pytest.mark.parametrize("kind", list(PARTS))
def test_every_kind_of_own_part_is_in_the_key_of_a_corpus(small_data: Path, folder: Path, kind: str) -> None:
    text, changes = PARTS[kind]
    write(folder, **{f"mine_{kind}": text.format(kind=kind), f"helper_{kind}": "f = 1"})
    recipe: Recipe | TextRecipe = small.recipe(small_data, **({} if kind == "metric" else changes))
    if kind == "metric":
        texts = {"nbest": str(small_data / "{split}.nbest.gz"), "references": None, "sources": None}
        recipe = TextRecipe.model_validate({"name": "x", "task": "speech", "data": texts} | changes)
    before = extraction._settings_key(recipe, "train", None)
    assert extraction._settings_key(recipe, "train", None) == before
    (folder / f"helper_{kind}.py").write_text("f = 22")
    assert extraction._settings_key(recipe, "train", None) != before


STATE = "0123456789abcdef"
ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The directory that NUMBA_CACHE_DIR names; the shared temporary one is beside it."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(leaves.config, "CACHE_DIR", str(tmp_path / "home"))
    monkeypatch.setattr(leaves.tempfile, "tempdir", str(tmp_path / "tmp"))
    leaves.state_directory.cache_clear()
    yield tmp_path / "home"
    leaves.state_directory.cache_clear()


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


def test_only_the_user_may_look_into_it(home: Path) -> None:
    before = os.umask(0o002)
    try:
        directory = leaves.state_directory(STATE)
    finally:
        os.umask(before)
    assert directory == str(home / NAME / STATE)
    assert mode(home / NAME / STATE) == mode(home / NAME) == 0o700


SPOILT = {
    "writable by a group": lambda place: place.chmod(0o770),
    "of another user": lambda place: os.chown(place, 12345, -1),
    "a link": lambda place: (place.rename(place.with_name("else")), place.symlink_to(place.with_name("else"))),
    "a file": lambda place: (place.rmdir(), place.write_text("")),
}


@pytest.mark.parametrize("how", list(SPOILT))
def test_a_place_that_others_can_write_is_not_used(
    home: Path, how: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    if how == "of another user" and not ROOT:
        pytest.skip("gives a directory to another user")
    monkeypatch.setattr(leaves.log, "propagate", True)
    (home / NAME).mkdir(parents=True)
    SPOILT[how](home / NAME)
    shared = home.parent / "tmp" / f"{NAME}-{os.geteuid()}"
    assert leaves.state_directory(STATE) == str(shared / STATE)
    assert mode(shared) == 0o700
    leaves.state_directory.cache_clear()
    shared.chmod(0o777)
    assert leaves.state_directory(STATE) is None
    assert "kept for this process only" in caplog.text
    assert str(shared) in caplog.text


def test_the_states_that_were_used_last_stay(home: Path) -> None:
    place = home / NAME
    place.mkdir(parents=True, mode=0o700)
    states = [place / f"{k:016x}" for k in range(MAX_STATES + 3)]
    for k, path in enumerate(states):
        path.mkdir(mode=0o700)
        (path / "index.nbi").write_bytes(b".")
        os.utime(path, (k, k))
    (place / "mine").mkdir()
    leaves.state_directory(STATE)
    assert set(place.iterdir()) == {place / STATE, place / "mine", *states[4:]}


ROOT_MODULE = (
    "from rerank.kernels.compile import kernel\nfrom between_k import leaf\n@kernel\ndef root(x: float) -> float:\n"
    "    return leaf(x) + 1.0\nprint(root(10.0))\n"
)
LEAF = "from rerank.kernels.compile import kernel\nfrom factor_k import FACTOR\n@kernel\ndef leaf(x: float) -> float:\n"
LEAF += "    return x * FACTOR\n"


@pytest.fixture
def user(tmp_path: Path) -> Path:
    """A folder with a user's module, whose kernel calls one of another module."""
    texts = {
        "user_k": ROOT_MODULE,
        "between_k": "from leaf_k import leaf\n",
        "leaf_k": LEAF,
        "factor_k": "FACTOR = 2.0\n",
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.py").write_text(text)
    return tmp_path


def run_in(folder: Path) -> float:
    # Bytecode would be taken for that of a module edited within the same second.
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "user_k.py"]
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return float(ended.stdout)


def kept_in(folder: Path) -> dict[Path, int]:
    """The files of kernels, and when they were written."""
    return {path: path.stat().st_mtime_ns for path in (folder / "cache").rglob("*.nb[ic]")}


def test_a_kernel_of_a_users_module_follows_what_it_calls(user: Path) -> None:
    """The modules are edited between two processes, a kernel's file never."""
    assert run_in(user) == 21.0
    (user / "factor_k.py").write_text("FACTOR = 3.0\n")
    assert run_in(user) == 31.0
    before = kept_in(user)
    assert run_in(user) == 31.0
    assert kept_in(user) == before  # compiled once
    (user / "leaf_k.py").write_text(LEAF.replace("x * FACTOR", "x - FACTOR"))
    assert run_in(user) == 8.0


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
def test_damaged_kernels_are_compiled_again(user: Path) -> None:
    run_in(user)
    before = kept_in(user)
    assert len(before) == 2
    for pattern, damage in (("*.nbi", 5), ("*.nbc", None)):
        for path in (user / "cache").rglob(pattern):
            content = bytearray(path.read_bytes())
            if damage is not None:
                content[damage] ^= 4
            path.write_bytes(content if damage is not None else content[: len(content) // 2])
        spoilt = kept_in(user)
        assert run_in(user) == 21.0
        mended = kept_in(user)
        assert mended.keys() == before.keys()
        assert mended != spoilt
    assert run_in(user) == 21.0
    assert kept_in(user) == mended


def test_a_kernel_that_was_typed_in() -> None:
    program = "from rerank.kernels.compile import kernel\n@kernel\ndef f(x):\n    return 2 * x\nprint(f(4))"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout == "8\n"


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
@pytest.mark.usefixtures("home")
def test_processes_that_compile_at_once_do_not_run_each_others_code() -> None:
    """Both have found an empty index; the code of the second does not take the place of the first one's."""
    directory = Path(str(leaves.state_directory(STATE)))
    files = [numba.core.caching.IndexDataCacheFile(str(directory), "f-1.py311", "stamp") for _ in "ab"]
    for number, file in enumerate(files):
        leaves.seal(SimpleNamespace(_cache=SimpleNamespace(_cache_file=file)))
        file._load_index = dict
        file.save(f"types {number}", "code")
    assert len(list(directory.glob("*.nbc"))) == 2
