"""Parts of an installed package are known wherever those of the program are, by one entry point."""

import subprocess
import sys
from pathlib import Path

import pytest

MODULE = '''
from dataclasses import dataclass
from typing import ClassVar

from rerank.cli.answer import show
from rerank.cli.application import command
from rerank.learn.rules.perceptron import Perceptron
from rerank.metrics.wer import Wer
from rerank.readers.texts.jsonl import JsonlReader


@dataclass(frozen=True)
class Reader(JsonlReader):
    """Lists of strangers."""


@dataclass(frozen=True, kw_only=True)
class Learner(Perceptron):
    """The perceptron of strangers."""

    name: ClassVar[str] = "strange-learner"


@dataclass(frozen=True)
class Metric(Wer):
    """The error rate of strangers."""

    name: ClassVar[str] = "strange-metric"


@command("greet")
def greet() -> None:
    """Greet."""
    show("hello from a stranger", greeting="hello")


def register(add):
    add("reader", "strange-reader", Reader)
    add("reader", "moses", Reader)
    add("learner", "strange-learner", "stranger:Learner")
    add("metric", "strange-metric", "stranger:Metric")
    add("command", "greet", "stranger")
'''
POINTS = "[rerank]\nstranger = stranger:register\nbroken = missing_module:register\n"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a package as pip leaves it."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "stranger.py").write_text(MODULE)
    about = folder / "stranger-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: stranger\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(POINTS)
    return folder


def called(site: Path, *words: str) -> subprocess.CompletedProcess[str]:
    code = f"import sys; sys.path.insert(0, {str(site)!r}); from rerank.cli.application import main; main()"
    root = Path(__file__).parents[2]
    return subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False, cwd=root)


def test_parts_are_listed(site: Path) -> None:
    for kind, name in (("readers", "strange-reader"), ("learners", "strange-learner"), ("metrics", "strange-metric")):
        assert name in called(site, "list", kind, *(["--all"] if kind == "learners" else [])).stdout


def test_commands_are_called(site: Path) -> None:
    assert called(site, "greet").stdout == "hello from a stranger\n"


def test_they_are_advised(site: Path, tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text("task: speech\nmetric: strange-metrik\n")
    found = called(site, "run", str(tmp_path / "x.yaml"))
    assert found.returncode == 2
    assert "did you mean strange-metric" in found.stderr


def test_what_cannot_be_used_is_said(site: Path) -> None:
    said = called(site, "list", "readers").stderr
    assert "cannot use the parts of missing_module:register" in said
    assert "the reader moses of stranger:register is not used: this name is taken" in said
