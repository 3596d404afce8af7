"""Where compiled kernels are kept: nobody else can write there, what is not used goes, and no stale code runs."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numba
import pytest

from rerank.kernels import directory as kernels
from rerank.kernels.directory import KEPT, NAME

STATE = "0123456789abcdef"
ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The directory that NUMBA_CACHE_DIR names; the shared temporary one is beside it."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(kernels.config, "CACHE_DIR", str(tmp_path / "home"))
    monkeypatch.setattr(kernels.tempfile, "tempdir", str(tmp_path / "tmp"))
    kernels.state_directory.cache_clear()
    yield tmp_path / "home"
    kernels.state_directory.cache_clear()


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


def test_only_the_user_may_look_into_it(home: Path) -> None:
    before = os.umask(0o002)
    try:
        directory = kernels.state_directory(STATE)
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
    monkeypatch.setattr(kernels.log, "propagate", True)
    (home / NAME).mkdir(parents=True)
    SPOILT[how](home / NAME)
    shared = home.parent / "tmp" / f"{NAME}-{os.geteuid()}"
    assert kernels.state_directory(STATE) == str(shared / STATE)
    assert mode(shared) == 0o700
    kernels.state_directory.cache_clear()
    shared.chmod(0o777)
    assert kernels.state_directory(STATE) is None
    assert "kept for this process only" in caplog.text
    assert str(shared) in caplog.text


def test_the_states_that_were_used_last_stay(home: Path) -> None:
    place = home / NAME
    place.mkdir(parents=True, mode=0o700)
    states = [place / f"{k:016x}" for k in range(KEPT + 3)]
    for k, path in enumerate(states):
        path.mkdir(mode=0o700)
        (path / "index.nbi").write_bytes(b".")
        os.utime(path, (k, k))
    (place / "mine").mkdir()
    kernels.state_directory(STATE)
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
    for pattern, damage in (("*.nbi", 5), ("*.nbi", None), ("*.nbc", 0), ("*.nbc", -40)):
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
    directory = Path(str(kernels.state_directory(STATE)))
    files = [numba.core.caching.IndexDataCacheFile(str(directory), "f-1.py311", "stamp") for _ in "ab"]
    for number, file in enumerate(files):
        kernels.seal(SimpleNamespace(_cache=SimpleNamespace(_cache_file=file)))
        file._load_index = dict
        file.save(f"types {number}", "code")
    assert len(list(directory.glob("*.nbc"))) == 2
