"""Where compiled kernels are kept: nobody else can write there, what is not used goes, and no stale code runs."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from rerank.kernels import cache as kernel_cache
from rerank.kernels.cache import DAY, FILES, NAME, SUMS, USED, state_directory

STATE = "0123456789abcdef"
ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


def forget() -> None:
    """As in a process that has just begun."""
    for function in (kernel_cache._place, kernel_cache._own, state_directory):
        function.cache_clear()
    for lock in kernel_cache._locks:
        lock.close()
    kernel_cache._locks.clear()
    kernel_cache._known.clear()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The directory that NUMBA_CACHE_DIR names; the shared temporary one is beside it."""
    held, known = list(kernel_cache._locks), dict(kernel_cache._known)
    kernel_cache._locks.clear()
    (tmp_path / "tmp").mkdir()
    (tmp_path / "tmp").chmod(0o1777)
    monkeypatch.setattr(kernel_cache.config, "CACHE_DIR", str(tmp_path / "home"))
    monkeypatch.setattr(kernel_cache.tempfile, "gettempdir", lambda: str(tmp_path / "tmp"))
    monkeypatch.setattr(kernel_cache.tempfile, "tempdir", str(tmp_path / "tmp"))
    forget()
    yield tmp_path / "home"
    forget()
    kernel_cache._locks.extend(held)
    kernel_cache._known.update(known)


def mode(path: Path | str) -> int:
    return Path(path).stat().st_mode & 0o7777


def test_only_the_user_may_look_into_it(home: Path) -> None:
    before = os.umask(0o002)
    try:
        found = state_directory(STATE)
    finally:
        os.umask(before)
    assert found == str(home / NAME / STATE)
    assert mode(found) == mode(home / NAME) == 0o700


def shared(home: Path) -> Path:
    """The directory in the shared temporary folder."""
    return home.parent / "tmp" / f"{NAME}-{os.geteuid()}"


SPOILT = {
    "writable by others": lambda place: place.chmod(0o777),
    "writable by a group": lambda place: place.chmod(0o770),
    "a parent writable by others": lambda place: place.parent.chmod(0o777),
    "a link": lambda place: (place.rename(place.with_name("else")), place.symlink_to(place.with_name("else"))),
    "a file": lambda place: (place.rmdir(), place.write_text("")),
}


@pytest.mark.parametrize("how", list(SPOILT))
def test_a_place_that_others_can_write_is_not_used(home: Path, how: str) -> None:
    (home / NAME).mkdir(parents=True)
    SPOILT[how](home / NAME)
    assert state_directory(STATE) == str(shared(home) / STATE)
    assert mode(shared(home)) == 0o700


@pytest.mark.skipif(not ROOT, reason="gives a directory to another user")
@pytest.mark.parametrize("whose", ["the usual one", "the one around it"])
def test_a_place_of_another_user_is_not_used(home: Path, whose: str) -> None:
    (home / NAME).mkdir(parents=True)
    os.chown(home / NAME if whose == "the usual one" else home, 12345, -1)
    assert state_directory(STATE) == str(shared(home) / STATE)


@pytest.mark.parametrize("how", ["a link", "writable by others", "of another user"])
def test_a_shared_place_that_is_not_the_users_own_is_left_alone(
    home: Path, how: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_cache.log, "propagate", True)
    home.write_text("no directory")
    planted = home.parent / "planted"
    planted.mkdir(mode=0o700)
    (planted / STATE).mkdir(mode=0o700)
    if how == "a link":
        shared(home).symlink_to(planted)
    else:
        planted.rename(shared(home))
        if how == "of another user":
            if not ROOT:
                pytest.skip("gives a directory to another user")
            os.chown(shared(home), 12345, -1)
        else:
            shared(home).chmod(0o777)
    found = Path(state_directory(STATE))
    assert found.parent.parent == home.parent / "tmp"
    assert found.parent != shared(home)
    assert mode(found.parent) == 0o700
    assert "kept for this process only" in caplog.text
    assert str(shared(home)) in caplog.text


def test_a_state_that_is_open_to_others_is_not_used(home: Path) -> None:
    (home / NAME / STATE).mkdir(parents=True)
    (home / NAME / STATE).chmod(0o755)
    assert not Path(state_directory(STATE)).is_relative_to(home)


def test_a_private_place_goes_with_its_process(tmp_path: Path) -> None:
    program = (
        "import os, sys\nfrom rerank.kernels import cache as kernel_cache\n"
        "kernel_cache._candidates = lambda: []\n"
        f"path = kernel_cache.state_directory({STATE!r})\n"
        "assert os.path.isdir(path)\n"
        "child = os.fork()\n"
        "if not child: sys.exit()\n"  # a copy of it leaves the directory
        "os.waitpid(child, 0)\n"
        "assert os.path.isdir(path)\n"
        "print(path)"
    )
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True)
    assert Path(ended.stdout.strip()).is_relative_to(tmp_path)
    assert list(tmp_path.iterdir()) == []


def used_before(place: Path, state: str, days: float) -> Path:
    """A state that was used so many days ago."""
    (place / state).mkdir(parents=True, mode=0o700)
    (place / state / "index.nbi").write_text("x")
    (place / state / USED).touch()
    then = time.time() - days * DAY
    os.utime(place / state / USED, (then, then))
    return place / state


def test_what_nobody_uses_goes(home: Path) -> None:
    place = home / NAME
    place.mkdir(parents=True, mode=0o700)
    late = [used_before(place, f"{k:016x}", 2 + k / 100) for k in range(12)]
    old = used_before(place, "e" * 16, 31)
    foreign = place / ("f" * 16)
    foreign.mkdir()
    (foreign / "mine.txt").write_text("")
    own = used_before(place, "mine", 99)
    held = used_before(place, "d" * 16, 40)
    hold = "import sys; from rerank.storage.locks import lock; from pathlib import Path\n"
    hold += "held = lock(Path(sys.argv[1]), shared=True); print(flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", hold, str(held / USED)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        state_directory(STATE)
        other.communicate(b"", timeout=60)
    kept = {path.name for path in place.iterdir()}
    assert not old.exists()
    assert kept == {STATE, "mine", "f" * 16, "d" * 16, *(path.name for path in late[:7])}
    assert (own / "index.nbi").exists()
    forget()
    state_directory(STATE)  # there already: nothing is looked at
    assert held.exists()
    state_directory("a" * 16)
    assert not held.exists()


@pytest.mark.usefixtures("home")
def test_a_state_that_is_removed_meanwhile_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    lock, removed = kernel_cache.lock, list[Path]()

    def slow(path: Path, **how: bool) -> IO[str] | None:
        """Another process removes the directory before it is locked."""
        if not removed:
            removed.append(path)
            kernel_cache.remove(path.parent)
        return lock(path, **how)

    monkeypatch.setattr(kernel_cache, "lock", slow)
    assert (Path(state_directory(STATE)) / USED).exists()
    assert removed


ROOT_MODULE = (
    "from rerank.kernels.compile import kernel\nfrom between_k import leaf\n@kernel\ndef root(x: float) -> float:\n"
)
ROOT_MODULE += "    return leaf(x) + 1.0\nprint(root(10.0))\n"
LEAF = "from rerank.kernels.compile import kernel\nfrom factor_k import FACTOR\n@kernel\ndef leaf(x: float) -> float:\n"
LEAF += "    return x * FACTOR\n"


def test_a_kernel_of_a_users_module_follows_what_it_calls(tmp_path: Path) -> None:
    """The modules are edited between two processes, a kernel's file never."""
    texts = {
        "user_k": ROOT_MODULE,
        "between_k": "from leaf_k import leaf\n",
        "leaf_k": LEAF,
        "factor_k": "FACTOR = 2.0\n",
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.py").write_text(text)
    # Bytecode would be taken for that of a module edited within the same second.
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}

    def run() -> float:
        command = [sys.executable, "user_k.py"]
        ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
        return float(ended.stdout)

    assert run() == 21.0
    (tmp_path / "factor_k.py").write_text("FACTOR = 3.0\n")
    assert run() == 31.0
    states = set((tmp_path / "cache" / NAME).iterdir())
    assert run() == 31.0
    assert set((tmp_path / "cache" / NAME).iterdir()) == states  # compiled once
    (tmp_path / "leaf_k.py").write_text(LEAF.replace("x * FACTOR", "x - FACTOR"))
    assert run() == 8.0


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip(path: Path) -> None:
    """Three bits, in the middle of machine code."""
    data = bytearray(path.read_bytes())
    for place in (len(data) // 3, len(data) // 2, 2 * len(data) // 3):
        data[place] ^= 16
    path.write_bytes(data)


DAMAGES = {
    "short indexes": ("*.nbi", cut),
    "short code": ("*.nbc", cut),
    "flipped bits": ("*.nbc", flip),
    "short checksums": (SUMS, cut),
}


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A module with a kernel that calls another, and the cache that running it has left."""
    place = tmp_path_factory.mktemp("compiled")
    texts = {
        "user_k": ROOT_MODULE,
        "between_k": "from leaf_k import leaf\n",
        "leaf_k": LEAF,
        "factor_k": "FACTOR = 2.0\n",
    }
    for name, text in texts.items():
        (place / f"{name}.py").write_text(text)
    run_in(place)
    assert len(kernels_in(place)) == 4
    return place


def run_in(place: Path) -> None:
    """Run the module, which must not notice any damage."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(place / "cache")}
    command = [sys.executable, "user_k.py"]
    ended = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (0, "21.0\n"), ended.stderr


def kernels_in(place: Path) -> dict[Path, int]:
    """The files of kernels, and when they were written."""
    return {path: path.stat().st_mtime_ns for path in (place / "cache").rglob(FILES)}


@pytest.mark.parametrize("damage", list(DAMAGES))
def test_damaged_kernels_are_compiled_again(compiled: Path, damage: str) -> None:
    pattern, spoil = DAMAGES[damage]
    before = kernels_in(compiled)
    for path in list((compiled / "cache").rglob(pattern)):
        spoil(path)
    spoilt = kernels_in(compiled)
    run_in(compiled)
    mended = kernels_in(compiled)
    assert mended.keys() == before.keys()
    assert mended != spoilt
    run_in(compiled)
    assert kernels_in(compiled) == mended


def test_a_kernel_that_was_typed_in() -> None:
    program = "from rerank.kernels.compile import kernel\n@kernel\ndef f(x):\n    return 2 * x\nprint(f(4))"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout == "8\n"
