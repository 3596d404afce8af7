"""What a process may take: the least of the limits that hold for it."""

import resource
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from rerank.base import usage
from rerank.base.errors import RecipeError


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine of 64 GB, with control groups in a folder, and without any other limit."""
    monkeypatch.setattr(usage, "GROUPS", tmp_path)
    monkeypatch.setattr(usage, "OWN", tmp_path / "own")
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(total=64 * 10**9, available=50 * 10**9))
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    return tmp_path


def put(place: Path, text: str) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(f"{text}\n")


def test_without_limits_it_is_the_machine(groups: Path) -> None:
    assert usage.allowed() == 64 * 10**9
    put(groups / "own", "0::/")
    put(groups / "memory.max", "max")
    assert usage.allowed() == 64 * 10**9


def test_the_least_of_the_groups_around_counts(groups: Path) -> None:
    put(groups / "own", "0::/slice/box/inner")
    put(groups / "slice/memory.max", "3000")
    put(groups / "slice/box/memory.max", "max")
    put(groups / "slice/box/inner/memory.max", "5000")
    put(groups / "slice/other/memory.max", "7")
    assert usage.allowed() == 3000


def test_groups_of_version_1(groups: Path) -> None:
    put(groups / "own", "4:memory:/docker/abc\n1:cpu:/docker/abc\n0::/")
    put(groups / "memory/memory.limit_in_bytes", "9223372036854771712")
    assert usage.allowed() == 64 * 10**9
    put(groups / "memory/memory.limit_in_bytes", "9000")  # in a container, which does not see the path to itself
    assert usage.allowed() == 9000
    put(groups / "memory/docker/abc/memory.limit_in_bytes", "4000")
    assert usage.allowed() == 4000


@pytest.mark.usefixtures("groups")
def test_the_address_space(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (12345, 99999))
    assert usage.allowed() == 12345


def test_what_needs_more_is_refused(groups: Path) -> None:
    put(groups / "own", "0::/")
    put(groups / "memory.max", str(4 * 10**9 + psutil.Process().memory_info().rss))
    with pytest.raises(RecipeError, match=r"^a\.b: work takes 4\.2 GB, and this process may have [34]\.\d GB more; no"):
        usage.require(4.2e9, "work", "no", "a.b")
    usage.require(1e9, "work", "no", "a.b")
