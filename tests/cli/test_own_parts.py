"""A user's own parts between two runs: an edit, there or in what they import, is never overlooked."""

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import faults
import numpy as np
import pytest
import small
import small_classes
import yaml
from commands import Command, refused

from rerank.runs.compared import compare_runs
from rerank.runs.report.results import verdict
from rerank.storage.files import read_array

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

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
from rerank.learn.rules.perceptron import Perceptron
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


def test_a_feature_of_ones_own_is_worth_something_or_not(small_data: Path, workspace: Path, rerank: Command) -> None:
    """The run without it is that of a recipe without it, and is tested against the run with it."""
    own, place = workspace / "own.yaml", workspace / "worth"
    user = {"words": "user_template:count_words"}
    settings = small.settings(small_data, training={"epochs": 1, "vote": False})
    own.write_text(json.dumps(settings | {"features": {**settings["features"], "user": user}}))
    told = rerank("run", own, "-o", place, "--without", "user.words")
    assert told.code == 0, told.err
    less = Path(f"{place}-without-user.words")
    tested = compare_runs(place, less, None, "approximate_randomization", 10_000, 1)[0][1].tested("A", "B")
    assert told.out.splitlines()[-1] == f"user.words on test: {verdict(tested.as_dict())}"
    assert yaml.safe_load((less / "recipe.yaml").read_text())["features"]["user"] == {}
    refused(rerank("run", own, "--without", "words"), "--without: found 'words'; expected one of user.words, Rule")
