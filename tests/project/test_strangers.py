"""A stranger's package, installed beside: a reader, a learner, a metric, a template, a command and a task, which one
entry point makes known wherever the program's own are."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from commands import Result

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


RECIPE = {
    "name": "strange", "task": "speech", "metric": "strange-metric", "learner": "strange-learner",
    "data": {"nbest": "{split}.jsonl", "reader": "strange-reader", "references": None, "sources": None, "dev": None,
             "tests": []},
    "features": {"set": None, "templates": ["StrangeWords"], "min_lists": 1},
    "training": {"epochs": 2, "pairs": "strange-pairs"},
}  # fmt: skip
CALLS = {
    "readers": "list readers",
    "all": "list --all",
    "greet": "greet",
    "train": "run strange.yaml --until train",
    "new": "new poem.lines --output poem.yaml --json",
    "count": "run poem.yaml --json",
    "wrong": "run wrong.yaml",
}
PROGRAM = """
import contextlib, io, json, sys
root, site, *calls = sys.argv[1:]
sys.path[:0] = [root, site]
from rerank.cli.application import main
from rerank.learn.learned import learned
from rerank.learn.rules.sgd import SGD
ended = []
for words in calls:
    sys.argv[:] = ["rerank", *words.split()]
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        try:
            main()
        except SystemExit as error:
            ended.append([error.code or 0, out.getvalue(), err.getvalue()])
print(json.dumps([ended, learned(SGD(loss="strange-loss", eta=1.0), {"a": 1.0})]))
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where commands are called: with a package as pip leaves it in ``site``, and files to work on."""
    place = tmp_path_factory.mktemp("strangers")
    about = place / "site" / "stranger-1.0.dist-info"
    about.mkdir(parents=True)
    (place / "site" / "stranger.py").write_text(MODULE)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: stranger\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(POINTS)
    line = {"references": ["a b"], "candidates": [{"text": "a c", "score": 2}, {"text": "a b", "score": 1}]}
    (place / "train.jsonl").write_text("".join(json.dumps(line | {"id": k}) + "\n" for k in range(20)))
    (place / "strange.yaml").write_text(json.dumps(RECIPE))
    (place / "poem.lines").write_text("one\ntwo\n")
    (place / "wrong.yaml").write_text("task: speech\nmetric: strange-metrik\n")
    return place


@pytest.fixture(scope="module")
def ended(place: Path) -> tuple[dict[str, Result], dict[str, float]]:
    """How each of ``CALLS`` ended, in one process; and what the stranger's loss learns."""
    command = [sys.executable, "-c", PROGRAM, Path(__file__).parents[2], place / "site", *CALLS.values()]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=place)
    results, weights = json.loads(done.stdout)
    return {name: Result(*result) for name, result in zip(CALLS, results, strict=True)}, weights


def test_parts_are_listed_and_their_commands_called(ended: Any) -> None:
    listed = ended[0]["all"].out
    for part in ("reader", "learner", "loss", "pairs", "metric"):
        assert f"strange-{part}" in listed
    assert "StrangeWords" in listed
    assert ended[0]["greet"] == (0, "hello from a stranger\n", "")


def test_lists_are_read_learned_from_and_measured(ended: Any, place: Path) -> None:
    assert ended[0]["train"].code == 0, ended[0]["train"]
    about = json.loads((place / "runs" / "strange" / "model" / "model.json").read_text())
    assert about["about"]["learner"] == "strange-learner"
    assert ended[1] == {"a": 3.0}


def test_a_task_has_recipes_of_its_own(ended: Any, place: Path) -> None:
    assert json.loads(ended[0]["new"].out)["next"] == ["rerank run poem.yaml", "rerank greet"]
    assert ended[0]["count"].code == 0, ended[0]["count"]
    assert json.loads((place / "runs" / "poem" / "metrics.json").read_text())["lines"] == 2
    assert "<h1>poem</h1>" in (place / "runs" / "poem" / "report.html").read_text()


def test_what_is_wrong_is_said_and_advised(ended: Any) -> None:
    said = ended[0]["readers"].err
    assert "cannot use the parts of missing_module:register" in said
    assert "the reader moses of stranger:register is not used: this name is taken" in said
    assert ended[0]["wrong"].code == 2
    assert "did you mean strange-metric" in ended[0]["wrong"].err
