"""The wheel, and packages that add to the program without a change to it."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest
from commands import Result
from packaging.requirements import Requirement
from pages import PAGES, ROOT, text_of

from rerank import __version__

ABOUT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
NAME = ABOUT["name"]
SMALL = ("--set", "data.train=dev", "--set", "training.epochs=2")


def done(*command: str | Path, cwd: Path, **environment: str) -> str:
    """What a command that must succeed prints."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "COV_"))}
    result = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=clean | environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the wheel and the source archive of this checkout."""
    pytest.importorskip("hatchling", reason="hatchling, which builds wheels, is not installed: make install-dev")
    place = tmp_path_factory.mktemp("built")
    done(sys.executable, "-m", "hatchling", "build", "-d", place, cwd=ROOT)
    return place


def wheel_of(built: Path) -> Path:
    (wheel,) = built.glob("*.whl")
    return wheel


def test_the_wheel_brings_the_package_the_recipes_and_the_lists(built: Path) -> None:
    with zipfile.ZipFile(wheel_of(built)) as wheel:
        found = {name: wheel.read(name) for name in wheel.namelist() if ".dist-info/" not in name}
        (about,) = (wheel.read(name).decode() for name in wheel.namelist() if name.endswith("METADATA"))
    expected = {f"rerank/shipped/recipes/{path.relative_to(ROOT / 'recipes')}": path for path in _files("recipes")}
    for folder in ("quickstart", "asr", "llm", "search", "sums"):
        expected |= {f"rerank/shipped/{path.relative_to(ROOT)}": path for path in _files(f"data/{folder}")}
    expected |= {str(path.relative_to(ROOT)): path for path in _files("rerank")}
    assert found == {name: path.read_bytes() for name, path in expected.items()}
    assert f"\nName: {NAME}\nVersion: {__version__}\n" in about
    assert f"badge/version-{__version__}-blue" in about  # of the README, which it ends in


def _files(folder: str) -> list[Path]:
    return [path for path in (ROOT / folder).rglob("*") if path.is_file() and path.suffix != ".pyc"]


def test_the_source_archive_holds_every_file_of_the_repository(built: Path) -> None:
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("which files belong to the repository only git knows, and this is no git checkout")
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as files:
        found = {name.partition("/")[2] for name in files.getnames()}
    assert set(done("git", "ls-files", cwd=ROOT).splitlines()) - found == set()


IMPORTS = """
import importlib, json, pathlib, rerank
missing = {}
for file in pathlib.Path(rerank.__file__).parent.rglob("*.py"):
    name = ".".join(file.relative_to(pathlib.Path(rerank.__file__).parents[1]).with_suffix("").parts)
    try:
        importlib.import_module(name.removesuffix(".__init__"))
    except ImportError as error:
        missing[name] = str(error)
print(json.dumps([rerank.__file__, rerank.__version__, missing]))
"""


def test_it_works_where_only_the_wheel_is_and_what_it_asks_for(built: Path, tmp_path: Path) -> None:
    """The package as installed, away from the checkout; what it depends on is of this environment, nothing else."""
    with zipfile.ZipFile(wheel_of(built)) as wheel:
        wheel.extractall(tmp_path / "installed")
    for path in required():
        (tmp_path / "installed" / path.name).symlink_to(path)
    here = {"PYTHONPATH": str(tmp_path / "installed"), "NUMBA_DISABLE_JIT": "1"}
    call = (sys.executable, "-S", "-m", "rerank")  # without the packages of this environment
    file, version, missing = json.loads(done(sys.executable, "-S", "-c", IMPORTS, cwd=tmp_path, **here))
    assert (file, version) == (str(tmp_path / "installed" / "rerank" / "__init__.py"), __version__)
    extras = "rerank.contrib.sklearn", "rerank.contrib.serve.", "rerank.contrib.structures.sequence_tagger"
    assert {name for name in missing if not name.startswith(extras)} == set()
    assert "  quickstart  " in done(*call, "list", "recipes", cwd=tmp_path, **here)
    asked = ("--set", "data.train=dev", "--set", "data.tests=[]", "--set", "features=dense")
    found = done(*call, "run", "llm", "--until", "extract", *asked, cwd=tmp_path, **here).splitlines()
    assert any(re.search(r"dev\W+100\W+800", line) for line in found)


def required() -> set[Path]:
    """What the dependencies of the package, and theirs, have installed: files and folders."""
    waiting, names, found = [Requirement(each) for each in ABOUT["dependencies"]], set[str](), set[Path]()
    while waiting:
        asked = waiting.pop()
        if asked.name in names or (asked.marker and not asked.marker.evaluate({"extra": ""})):
            continue
        names.add(asked.name)
        installed = distribution(asked.name)
        waiting += map(Requirement, installed.requires or [])
        found |= {Path(str(installed.locate_file(file.parts[0]))) for file in installed.files or []}
    return {path for path in found if path.name not in ("..", "__pycache__")}


@pytest.mark.wheel
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("version", ["3.11", "3.13"])
def test_a_recipe_runs_in_a_fresh_environment(built: Path, tmp_path: Path, version: str) -> None:
    """The one with the fewest kernels: that the package and what it asks for work together is the question."""
    if version == ".".join(map(str, sys.version_info[:2])):
        pytest.skip("all tests run by this Python, and the test above knows of no other package")
    done(_interpreter(version), "-m", "venv", tmp_path / "fresh", cwd=tmp_path)  # with a pip that it can run
    binaries = tmp_path / "fresh" / "bin"
    asked = subprocess.run(
        [binaries / "python", "-m", "pip", "install", "--quiet", "--no-compile", wheel_of(built)],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if asked.returncode and re.search("No matching distribution|Temporary failure|Failed to establish", asked.stderr):
        pytest.skip(f"the package index cannot be reached, or lacks what Python {version} needs: {asked.stderr[-300:]}")
    assert asked.returncode == 0, asked.stderr
    done(binaries / "rerank", "run", "llm", *SMALL, cwd=tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "kernels"))
    metrics = json.loads((tmp_path / "runs" / "llm" / "metrics.json").read_text(encoding="utf-8"))
    test = metrics["splits"]["test"]
    assert metrics["version"] == __version__
    assert test["base"]["gain"] < test["average"]["gain"] < test["oracle"]["gain"]


def _interpreter(version: str) -> str:
    """Python of this version, from the path or from pyenv."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    places = [shutil.which(f"python{version}"), *sorted(map(str, pyenv.glob(f"{version}.*/bin/python{version}")))]
    for place in filter(None, places):
        if subprocess.run([place, "-c", "import venv, ensurepip"], capture_output=True, check=False).returncode == 0:
            return place
    pytest.skip(f"no Python {version} on the path or in {pyenv}")


def test_nobody_is_told_to_install_the_package_of_a_stranger() -> None:
    sources = {
        str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in (ROOT / "rerank").rglob("*.py")
    }
    texts = sources | {str(page): text_of(page) for page in PAGES} | {"Makefile": text_of("Makefile")}
    asked = {
        (place, *found)
        for place, text in texts.items()
        for found in re.findall(r"pip install [^\n`]*?\b(rerank[\w-]*)(\[\w+\])?", text)
    }
    assert {name for _, name, _ in asked} == {NAME}
    assert {extra.strip("[]") for *_, extra in asked if extra} <= set(ABOUT["optional-dependencies"])


def test_all_has_every_extra() -> None:
    extras = ABOUT["optional-dependencies"]
    (everything,) = extras["all"]
    assert set(re.findall(r"\w+", everything.partition("[")[2])) == set(extras) - {"all", "dev", "docs"}


MODULE = '''
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from rerank.cli.application import show
from rerank.cli.application import command
from rerank.features.text.words import TargetNGram
from rerank.readers.texts.jsonl import JsonlReader
from rerank.recipes.recipe import TaskRecipe
from rerank.recipes.settings import Section
from rerank.recipes.loading import Task
from rerank.runs.experiment import Kind, code_of


@dataclass(frozen=True)
class Reader(JsonlReader):
    """Lists of strangers."""


@dataclass(frozen=True)
class StrangeWords(TargetNGram):
    """The words of strangers."""


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

    def make_model(self):
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
    return ["lines to count", "task: counting", f"file: {files.quote(files.train)}"] if all(
        path.endswith(".lines") for path in files.paths) else []


COUNTING = Task("stranger:CountRecipe", "stranger:CountKind", "lines", new="stranger:new", tries=("rerank greet",))


def register(add):
    add("reader", "strange-reader", Reader)
    add("reader", "moses", Reader)
    add("learner", "strange-learner", "mylearner:Harmonic")
    add("loss", "strange-loss", "mylosses:SquaredHinge")
    add("pair source", "strange-pairs", "mylosses:FarBehind")
    add("metric", "strange-metric", "mymetric:Exact")
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
sys.path[:0] = [root, site, f"{root}/docs/examples"]  # some parts are those of the pages
from rerank.cli.application import main
from rerank.learn.train import weights_after
from rerank.learn.rules.additive import SGD
ended = []
for words in calls:
    sys.argv[:] = ["rerank", *words.split()]
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        try:
            main()
        except SystemExit as error:
            ended.append([error.code or 0, out.getvalue(), err.getvalue()])
print(json.dumps([ended, weights_after(SGD(loss="strange-loss", eta=1.0), {"a": 1.0})]))
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
    assert ended[1] == {"a": 2.0}


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
