"""Faults of disks and processes, and code of one's own that was edited, in commands."""

import os
import random
import re
import shlex
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import faults
import numpy as np
import pytest
import small
import small_classes
import yaml

from rerank.storage.files import read_array

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
SEED = 5
RUNS = [{"name": "voted", "set": {"learner": {"name": "vrda"}}}, {"name": "plain"}]


class Whole(NamedTuple):
    """A recipe, what an uninterrupted run of it leaves, how many steps that takes, and which is the last that makes
    something."""

    recipe: Path
    artefacts: dict[str, Any]
    steps: int
    made: int


def uninterrupted(place: Path, settings: dict[str, Any]) -> Whole:
    recipe = place / "recipe.yaml"
    recipe.write_text(yaml.safe_dump(settings))
    (place / "shared").mkdir()
    ended = faults.rerank("run", recipe, "-o", place / "shared" / "out", below=place / "shared")
    assert ended.code == 0, ended.err
    return Whole(recipe, faults.artefacts(place / "shared" / "out"), ended.steps, ended.made)


@pytest.fixture(scope="module")
def lists(small_data: Path, small_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    """A recipe of two runs over lists; its kernels are compiled here, by ``small_run``."""
    assert small_run.exists()
    training = {"epochs": 3, "checkpoint": 0}
    settings = small.settings(small_data, runs=RUNS, training=training)
    return uninterrupted(tmp_path_factory.mktemp("lists"), settings)


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    """A recipe of classification."""
    place = tmp_path_factory.mktemp("classes")
    (place / "data").mkdir()
    return uninterrupted(place, small_classes.settings(small_classes.write_set(place / "data")))


def steps(among: int, count: int, seed: int = SEED) -> list[int]:
    """So many of the first steps, spread over them."""
    rng = random.Random(seed)
    size = among / count
    return [1 + int(size * (k + rng.random())) for k in range(count)]


def finish(whole: Whole, place: Path) -> None:
    """Resume to the end and compare."""
    ended = faults.rerank("run", whole.recipe, "-o", place / "out", "--resume", below=place)
    assert ended.code == 0, ended.err
    assert faults.artefacts(place / "out") == whole.artefacts


@pytest.mark.parametrize("kind", ["lists", "classes"])
def test_killed_at_a_step_and_again(kind, request, tmp_path):
    whole = request.getfixturevalue(kind)
    rng = random.Random(SEED)
    for step in steps(whole.steps, 2 if kind == "lists" else 1):
        place = tmp_path / str(step)
        place.mkdir()
        command = ["run", whole.recipe, "-o", place / "out"]
        assert faults.rerank(*command, below=place, fault=faults.kill_at(step)).code == -signal.SIGKILL
        again = faults.rerank(*command, "--resume", below=place, fault=faults.kill_at(1 + rng.randrange(40)))
        assert again.code in (0, -signal.SIGKILL), again.err
        finish(whole, place)


@pytest.mark.parametrize("kind", ["lists", "classes"])
def test_a_finished_run_is_not_repeated(kind, request, tmp_path):
    whole = request.getfixturevalue(kind)
    finish(whole, tmp_path)
    before = small.files_of(tmp_path / "out")
    ended = faults.rerank("run", whole.recipe, "-o", tmp_path / "out", "--resume", below=tmp_path)
    assert ended.code == 0
    assert "already finished; run it without" in ended.err
    after = small.files_of(tmp_path / "out")
    assert {name for name in after if after[name] != before[name]} == {"log.txt"}
    os.utime(tmp_path / "out" / "metrics.json", (0, 0))
    ended = faults.rerank("run", whole.recipe, "-o", tmp_path / "out", "--resume", below=tmp_path)
    assert re.search(r"WARNING \S+: already finished, but \S+ is newer; run it without", ended.err)


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_signals(lists, tmp_path, sent):
    (step,) = steps(lists.steps, 1, seed=sent)
    fault = faults.signal_at(step, sent)
    ended = faults.rerank("run", lists.recipe, "-o", tmp_path / "out", below=tmp_path, fault=fault)
    assert ended.code == 128 + sent, ended.err
    assert "Traceback" not in ended.err
    assert ended.err.count("error:") == 1
    assert not faults.partial(tmp_path)
    *_, said = ended.err.strip().splitlines()
    name, *command = shlex.split(said)
    assert name == "rerank"
    ended = faults.rerank(*command, below=tmp_path)
    assert ended.code == 0, ended.err
    assert faults.artefacts(tmp_path / "out") == lists.artefacts


@pytest.mark.parametrize("kind", ["lists", "classes"])
def test_a_disk_that_is_full_from_a_step_on(kind, request, tmp_path):
    whole = request.getfixturevalue(kind)
    (step,) = steps(whole.made, 1, seed=1)
    ended = faults.rerank("run", whole.recipe, "-o", tmp_path / "out", below=tmp_path, fault=faults.full_from(step))
    failed_with(ended, 1, "No space left on device")
    assert not faults.partial(tmp_path)
    finish(whole, tmp_path)


def test_files_that_may_not_grow(lists, tmp_path):
    ended = faults.rerank("run", lists.recipe, "-o", tmp_path / "out", below=tmp_path, largest=60_000)
    failed_with(ended, 1, "cannot write")
    assert not faults.partial(tmp_path)
    finish(lists, tmp_path)


def failed_with(ended: faults.Ended, code: int, *parts: str) -> None:
    assert ended.code == code, ended.err
    assert "Traceback" not in ended.err
    assert ended.err.count("error:") == 1, ended.err
    assert all(part in ended.err for part in parts), ended.err


def test_two_runs_that_share_a_cache(lists, tmp_path):
    ended: dict[str, faults.Ended] = {}

    def run(name: str) -> None:
        (tmp_path / name).mkdir()
        ended[name] = faults.rerank("run", lists.recipe, "-o", tmp_path / "out" / name, below=tmp_path / name)

    threads = [threading.Thread(target=run, args=(name,)) for name in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name in ("a", "b"):
        assert ended[name].code == 0, ended[name].err
        assert faults.artefacts(tmp_path / "out" / name) == lists.artefacts
    assert not faults.partial(tmp_path)


TEMPLATE = """
from dataclasses import dataclass
import numpy as np
from rerank.kernels.compile import kernel
from rerank.features.forest import Forest
from rerank.features.forest import INSIDE, Places
from rerank.features.sink import Sink, begin, emit, put
from rerank.features.template import Template
from leaf_own import chosen

@kernel
def _fire(f: Forest, places: Places, sink: Sink, ids: np.ndarray, seeds: np.ndarray, options: np.ndarray) -> None:
    for p in range(places.node.shape[0]):
        i = places.node[p]
        if f.word[i] < 0:
            for v in range(ids.shape[0]):
                emit(sink, put(sink, begin(sink, ids[v], seeds[v]), f.symbol[f.label[chosen(i)]]), places, p)

@dataclass(frozen=True)
class Label(Template):
    scope = INSIDE
    fire = staticmethod(_fire)
"""
LEAF = "from rerank.kernels.compile import kernel\n@kernel\ndef chosen(i):\n    return i + {}\n"
LEARNER = """
from dataclasses import dataclass
from typing import ClassVar
from rerank.learn.rules.additive import Perceptron
from rate_own import RATE

@dataclass(frozen=True)
class Mine(Perceptron):
    base_rate: float = RATE
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that modules are imported from, in children only: this process never does.

    Python's bytecode is not kept: it would be taken for that of a module edited within the same second.
    """
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    return tmp_path


def run(command: str, folder: Path, name: str, *options: str, **how: object) -> faults.Ended:
    place = folder / name
    place.mkdir(exist_ok=True)
    return faults.rerank(command, folder / "own.yaml", "-o", place / "out", *options, below=place, **how)  # type: ignore[arg-type]


def kill_at(folder: Path, result: str) -> Callable[[str, int], None]:
    """Kill the run "edited" once a result is complete."""

    def kill(_event: str, _number: int) -> None:
        if list((folder / "edited").glob(f"out/.runs/{result}")):
            os.kill(os.getpid(), signal.SIGKILL)

    return kill


def columns(folder: Path, name: str) -> set[str]:
    """The columns of all training splits in the cache, as their hashes."""
    found = (folder / name / ".cache").glob("train-*/table/table_hashes.npy")
    return {read_array(path).tobytes().hex() for path in found}


def test_a_template_whose_leaf_was_edited_is_extracted_anew(small_data: Path, small_run: Path, folder: Path) -> None:
    assert small_run.exists()  # the other kernels are compiled there
    recipe = small.settings(small_data, features={"templates": ["tpl_own:Label"], "min_lists": 1})
    (folder / "own.yaml").write_text(yaml.safe_dump(recipe))
    (folder / "tpl_own.py").write_text(TEMPLATE)
    found = []
    for step in (0, 0, 1):
        (folder / "leaf_own.py").write_text(LEAF.format(step))
        ended = run("run", folder, "edited", "--until", "extract")
        assert ended.code == 0, ended.err
        found.append(columns(folder, "edited"))
    assert found[0] == found[1]
    assert len(found[2]) == 2  # other columns, beside those of before
    assert run("run", folder, "fresh", "--until", "extract").code == 0
    assert columns(folder, "fresh") < found[2]


def learner_recipe(folder: Path, small_data: Path, **changes: object) -> None:
    training = {"epochs": 3, "checkpoint": 0, "vote": False}
    learner = {"name": "learner_own:Mine", "base": 1.0}
    recipe = small.settings(small_data, learner=learner, training=training, **changes)
    (folder / "own.yaml").write_text(yaml.safe_dump(recipe))
    (folder / "learner_own.py").write_text(LEARNER)
    (folder / "rate_own.py").write_text("RATE = 0.0\n")


def weights(folder: Path, name: str) -> np.ndarray:
    return read_array(folder / name / "out" / "model" / "average.npy")


def test_a_run_of_code_that_was_edited_is_trained_again(small_data: Path, small_run: Path, folder: Path) -> None:
    assert small_run.exists()
    learner_recipe(folder, small_data)
    assert run("run", folder, "edited", "--until", "train").code == 0
    (folder / "rate_own.py").write_text("RATE = 0.25\n")
    ended = run("run", folder, "edited", "--resume")
    assert ended.code == 0, ended.err
    assert "0000.npz is of other data, settings or code: its work is done again" in ended.err
    assert run("run", folder, "fresh").code == 0
    assert np.array_equal(weights(folder, "edited"), weights(folder, "fresh"))
    ended = run("run", folder, "edited", "--resume")
    assert "already finished; run it without" in ended.err
    (folder / "rate_own.py").write_text("RATE = 0.0\n")
    ended = run("run", folder, "edited", "--resume")
    assert "already finished, by a program or a module of yours that has changed since" in ended.err


def test_results_of_classification_of_code_that_was_edited(folder: Path) -> None:
    settings = small_classes.settings(small_classes.write_set(folder), learner={"name": "learner_own:Mine"})
    (folder / "own.yaml").write_text(yaml.safe_dump(settings | {"runs": [{"name": "a"}, {"name": "b"}]}))
    (folder / "learner_own.py").write_text(LEARNER)
    (folder / "rate_own.py").write_text("RATE = 0.0\n")

    ended = run("run", folder, "edited", fault=kill_at(folder, "*.npz"))
    assert ended.code == -signal.SIGKILL, ended.err
    (folder / "rate_own.py").write_text("RATE = 0.25\n")

    def look(_event: str, _number: int) -> None:
        """The results are made again, under another key."""
        if len(list((folder / "edited").glob("out/.runs/*.npz"))) == 3:
            (folder / "seen").touch()

    ended = run("run", folder, "edited", "--resume", fault=look)
    assert ended.code == 0, ended.err
    assert (folder / "seen").exists()
