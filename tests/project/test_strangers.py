"""A stranger's package, installed beside: a reader, a learner, a metric, a template, a command and a task, which one
entry point makes known wherever the program's own are."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

MODULE = '''
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from rerank.cli.application import show
from rerank.cli.application import command
from rerank.features.text.words import TargetNGram
from rerank.learn.losses import PairLoss
from rerank.learn.pairs import Oracle
from rerank.learn.rules.perceptron import Perceptron
from rerank.metrics.wer import Wer
from rerank.readers.texts.jsonl import JsonlReader
from rerank.recipes.recipe import TaskRecipe
from rerank.recipes.settings import Section
from rerank.recipes.loading import Task
from rerank.runs.experiment import Kind, code_of


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


@dataclass(frozen=True)
class StrangeWords(TargetNGram):
    """The words of strangers."""


class Loss(PairLoss):
    """The loss of strangers."""

    @staticmethod
    def of(m: float) -> tuple[float, float]:
        return max(0.0, 2.0 - m), 3.0


class Pairs(Oracle):
    """The pairs of strangers."""


@command("greet")
def greet() -> None:
    """Greet."""
    show("hello from a stranger", greeting="hello")


class Passes(Section):
    """Nothing is trained."""

    curve: tuple[float, ...] = ()


class CountRecipe(TaskRecipe):
    """A file whose lines are counted."""

    task: Literal["counting"] = "counting"
    metric: dict[str, Any] = {"name": "lines"}
    file: str
    learner: dict[str, Any] = {}
    training: Passes = Passes()
    common: ClassVar[tuple[str, ...]] = ()
    refusal: ClassVar[str] = ""


class CountKind(Kind):
    """Count the lines."""

    def check(self):
        self.singles, self.files, self.size, self.predictions = [], [self.recipe.file], {}, []
        self.code = code_of(self.recipe, ())

    def extract(self):
        self.lines = Path(self.recipe.file).read_text().count("\\n")
        return {"lines": self.lines}

    def counts(self):
        return {}

    def train(self, work):
        return {}

    def model(self):
        return None

    def evaluate(self):
        return self.head(1, "lines") | {"corpora": {}, "splits": {}, "runs": [], "lines": self.lines}

    def predict(self):
        pass

    def curve(self):
        return {}

    def sections(self, metrics):
        return []


def new(files):
    return ["lines to count", "task: counting", f"file: {files.quoted(files.train)}"] if all(
        path.endswith(".lines") for path in files.paths) else []


COUNTING = Task("stranger:CountRecipe", "stranger:CountKind", "lines", new="stranger:new", tries=("rerank greet",))


def register(add):
    add("reader", "strange-reader", Reader)
    add("reader", "moses", Reader)
    add("learner", "strange-learner", "stranger:Learner")
    add("loss", "strange-loss", "stranger:Loss")
    add("pair source", "strange-pairs", "stranger:Pairs")
    add("metric", "strange-metric", "stranger:Metric")
    add("template", "StrangeWords", "stranger:StrangeWords")
    add("command", "greet", "stranger")
    add("task", "counting", COUNTING)
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


def called(site: Path, *words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    code = f"import sys; sys.path.insert(0, {str(site)!r}); from rerank.cli.application import main; main()"
    root = Path(__file__).parents[2]
    code = f"import sys; sys.path.insert(0, {str(root)!r}); {code}"
    command = [sys.executable, "-c", code, *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd or root)


def test_parts_are_listed(site: Path) -> None:
    listed = called(site, "list", "--all").stdout
    names = ("strange-reader", "strange-learner", "strange-loss", "strange-pairs", "strange-metric", "StrangeWords")
    for name in names:
        assert name in listed


def test_a_loss_is_learned_from(site: Path) -> None:
    code = f"import sys; sys.path.insert(0, {str(site)!r}); from rerank.learn.learned import learned; "
    code += "from rerank.learn.rules.sgd import SGD; print(learned(SGD(loss='strange-loss', eta=1.0), {'a': 1.0}))"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "{'a': 3.0}\n"


def test_commands_are_called(site: Path) -> None:
    assert called(site, "greet").stdout == "hello from a stranger\n"


def test_lists_are_read_learned_from_and_measured(site: Path, tmp_path: Path) -> None:
    line = {"id": 0, "references": ["a b"], "candidates": [{"text": "a c", "score": 2}, {"text": "a b", "score": 1}]}
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(line | {"id": k}) + "\n" for k in range(20)))
    recipe = {
        "name": "strange", "task": "speech", "metric": "strange-metric", "learner": "strange-learner",
        "data": {"nbest": str(tmp_path / "{split}.jsonl"), "reader": "strange-reader", "references": None,
                 "sources": None, "dev": None, "tests": []},
        "features": {"set": None, "templates": ["StrangeWords"], "min_lists": 1}, "training": {"epochs": 2},
    }  # fmt: skip
    (tmp_path / "x.yaml").write_text(json.dumps(recipe))
    done = called(site, "run", "x.yaml", "--until", "train", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    about = json.loads((tmp_path / "runs" / "strange" / "model" / "model.json").read_text())
    assert about["about"]["learner"] == "strange-learner"


def test_a_task_has_recipes_of_its_own(site: Path, tmp_path: Path) -> None:
    (tmp_path / "poem.lines").write_text("one\ntwo\n")
    made = called(site, "new", "poem.lines", "--output", "poem.yaml", "--json", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    assert json.loads(made.stdout)["next"] == ["rerank run poem.yaml", "rerank greet"]
    done = called(site, "run", "poem.yaml", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "runs" / "poem" / "metrics.json").read_text())["lines"] == 2
    assert "<h1>poem</h1>" in (tmp_path / "runs" / "poem" / "report.html").read_text()


def test_they_are_advised(site: Path, tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text("task: speech\nmetric: strange-metrik\n")
    found = called(site, "run", str(tmp_path / "x.yaml"))
    assert found.returncode == 2
    assert "did you mean strange-metric" in found.stderr


def test_what_cannot_be_used_is_said(site: Path) -> None:
    said = called(site, "list", "readers").stderr
    assert "cannot use the parts of missing_module:register" in said
    assert "the reader moses of stranger:register is not used: this name is taken" in said
