"""What is installed: a wheel and a source archive that lack nothing, and work in a fresh environment elsewhere."""

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

import pytest
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
