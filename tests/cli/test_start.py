"""What commands load at their start; engines that they name."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml
from commands import COMMANDS
from programs import PATIENCE, program
from small import settings, write_slices
from typer.testing import CliRunner

import rerank
from rerank import pool
from rerank.cli.application import app

# Pydantic is loaded by typer itself, for the arguments.
HEAVY = (
    "jinja2", "llvmlite", "matplotlib", "nltk", "numba", "numpy", "sacrebleu", "scipy", "sklearn",
    "uvicorn", "yaml",
)  # fmt: skip
START = """
import io, json, sys
from contextlib import redirect_stdout
from rerank.cli.application import main
shown = {}
for words in json.loads(sys.argv[1]):
    sys.argv[:] = ["rerank", *words]
    with redirect_stdout(io.StringIO()) as out:
        try:
            main()
        except SystemExit as ended:
            assert not ended.code, words
    shown[" ".join(words)] = out.getvalue()
print(json.dumps([shown, [name for name in sys.modules if "." not in name]]))
"""


def test_help_loads_nothing_that_it_does_not_need(tmp_path: Path) -> None:
    calls = [["--help"], ["--version"], *([name, "--help"] for name in COMMANDS)]
    done = subprocess.run(
        [sys.executable, "-c", START, json.dumps(calls)], cwd=tmp_path, env=os.environ | {"COLUMNS": "80"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    shown, loaded = json.loads(done.stdout)
    assert all(name in shown["--help"] for name in COMMANDS)
    places = [shown["--help"].index(f" {group} ─") for group in ("Start", "Look", "Train", "Use", "Serve")]
    assert places == sorted(places)
    assert shown["--help"].index(" run  ") < shown["--help"].index(" new  ") < shown["--help"].index(" vote  ")
    for name in COMMANDS:
        text = shown[f"{name} --help"]
        assert max(map(len, text.splitlines())) <= 80
        assert "Example: " in text, name
        assert f"rerank {name} " in text.partition("Example: ")[2], name
    assert set(HEAVY) & set(loaded) == set()


def test_an_interrupt_while_modules_are_loaded_is_silent(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("import os, signal, time; os.kill(os.getpid(), signal.SIGINT); time.sleep(60)")
    places = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    call = [sys.executable, "-m", "rerank", "--version"]
    done = subprocess.run(call, env=os.environ | {"PYTHONPATH": places}, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, b"", b"")


def test_words_are_completed(tmp_path: Path) -> None:
    asked = {"_RERANK_COMPLETE": "complete_bash", "COMP_WORDS": "rerank ev", "COMP_CWORD": "1"}
    call = "import sys; sys.argv = ['rerank']; from rerank.cli.application import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", call], cwd=tmp_path, env=os.environ | asked, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["evaluate"], done.stderr


RANK = """
import sys
import rerank
assert len(rerank.load(sys.argv[1]).rank([("(S1 (NN a))", 0.0), ("(S1 (NP (NN a)))", 0.0)])) == 2
print(*sys.modules)
"""


def test_a_model_loads_and_ranks_without_what_others_need(small_run: Path) -> None:
    """Neither learners, metrics, formats and templates but its own, nor what training, compiling, a terminal need."""
    rerank.load(small_run / "model").rank([("(S1 (NN a))", 0.0), ("(S1 (NP (NN a)))", 0.0)])  # which may compile
    command = [sys.executable, "-c", RANK, small_run / "model"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert {"rerank.learn.learner", "rerank.features.parse", "rerank.metrics.parseval"} <= loaded
    others = {
        "joblib", "nltk", "psutil", "rerank.features.text", "rerank.learn.rules.gaussian",
        "rerank.learn.train", "rerank.learn.voting", "rerank.metrics.ngrams",
        "rerank.metrics.significance", "rerank.readers.moses", "rerank.contrib.classification.recipe",
        "rich", "sacrebleu", "sklearn", "typer",
    }  # fmt: skip
    assert others & loaded == set()


@pytest.mark.parametrize(
    ("closed", "message"),
    [
        ("0<&-", "error: <stdin>: standard input is closed: redirect it, or name a file"),
        ("1>&-", "error: standard output is closed: redirect it, to a file or /dev/null"),
        ("1>&- 2>&-", ""),
    ],
)
def test_streams_that_are_closed(closed: str, message: str, tmp_path: Path) -> None:
    command = f'exec "$0" -m rerank rank base - {closed}'
    done = subprocess.run(
        ["sh", "-c", command, sys.executable],
        cwd=tmp_path,
        input="no list",
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr.strip().rpartition("\n")[2]) == (2, message)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", [["--version"], ["list", "learners", "--json"]])
def test_a_full_standard_output_is_named(arguments: list[str], tmp_path: Path) -> None:
    with open("/dev/full", "wb") as full:
        command = [sys.executable, "-m", "rerank", *arguments]
        done = subprocess.run(command, cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    message = "error: cannot write standard output, or a file that is no result: No space left on device; "
    assert (done.returncode, done.stderr.strip()) == (1, f"{message}free some space, or redirect it elsewhere")


CHANGES: dict[str, Any] = {"learner": {"name": "arow"}, "training": {"epochs": 2}, "seeds": [1, 2, 3]}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the slices and a recipe of several runs."""
    directory = tmp_path_factory.mktemp("engines")
    write_slices(directory)
    (directory / "recipe.yaml").write_text(yaml.safe_dump(settings(directory, **CHANGES)))
    return directory


def invoke(*arguments: str) -> Any:
    result = CliRunner().invoke(app, [*arguments])
    assert result.exit_code == 0, result.output
    return result


def train(root: Path, name: str, *options: str, recipe: str = "recipe.yaml") -> dict[str, bytes]:
    """Train with a cache of its own; returns the model's arrays and the resolved recipe."""
    output = root / name / "run"
    invoke("run", "--until", "train", str(root / recipe), "-o", str(output), *options)
    found = {path.name: path.read_bytes() for path in (output / "model").glob("*.npy")}
    return found | {"recipe": (output / "recipe.yaml").read_bytes()}


@pytest.fixture(scope="module")
def plain(root: Path) -> dict[str, bytes]:
    return train(root, "plain")


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a running scheduler with a worker, each a program of its own."""
    pytest.importorskip("distributed", reason="rerank[dask] is not installed")
    directory = tmp_path_factory.mktemp("scheduler")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    port_file, log = directory / "scheduler.json", directory / "log"
    with ExitStack() as programs, log.open("w") as out:

        def start(name: str, *options: object) -> subprocess.Popen[bytes]:
            command = (sys.executable, "-m", f"distributed.cli.dask_{name}", "--no-dashboard", *options)
            common: dict[str, Any] = {"env": environment, "cwd": directory, "stdout": out, "stderr": out}
            return programs.enter_context(program(*command, "--scheduler-file", port_file, **common))

        started = start("scheduler", "--host", "127.0.0.1", "--port", "0")
        while not port_file.exists():
            assert started.poll() is None, log.read_text()
            time.sleep(0.1)
        start("worker", "--nthreads", "1", "--no-nanny")
        yield yaml.safe_load(port_file.read_text())["address"]


def test_a_running_scheduler_trains_the_same_model(
    root: Path, plain: dict[str, bytes], scheduler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its address stands in the recipe, and is not kept with the results."""
    monkeypatch.setattr(pool, "CONNECT_SECONDS", PATIENCE)  # its worker has only just been started
    made = settings(root, **CHANGES, engine={"name": "dask", "address": scheduler})
    (root / "cluster.yaml").write_text(yaml.safe_dump(made))
    found = train(root, "address", recipe="cluster.yaml")
    assert found == plain
    assert len(plain) > 3
    assert b"\nengine:" not in found["recipe"]
