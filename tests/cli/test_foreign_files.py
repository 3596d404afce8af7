"""What a run did not write it does not touch, whatever it is called, and whatever a recipe says."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import small
import small_classes
import yaml
from commands import Command, refused

from rerank.storage.outputs import HEAD, NOTE

# What a run writes or removes at the top of its output directory, as files of somebody else's.
NAMES = [
    "recipe.yaml", "metrics.json", "history.jsonl", "report.html", "log.txt", ".rerank.lock", NOTE,
    "model/model.json", "model/notes.txt", "predictions/test.nbest.gz", "predictions/notes.txt", ".runs/0000/run.json",
]  # fmt: skip


def recipe_at(place: Path, settings: dict[str, Any]) -> Path:
    path = place / "of-the-user.yaml"
    path.write_text(yaml.safe_dump(settings))
    return path


@pytest.fixture(params=["lists", "classes"])
def recipe(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if request.param == "lists":
        return recipe_at(tmp_path, small.settings(request.getfixturevalue("small_data")))
    (tmp_path / "data").mkdir()
    return recipe_at(tmp_path, small_classes.settings(small_classes.write_set(tmp_path / "data")))


@pytest.mark.parametrize(("name", "until"), [*((name, "test") for name in [*NAMES, "all"]), ("all", "train")])
def test_a_directory_of_somebody_elses_is_left_as_it_is(
    rerank: Command, recipe: Path, tmp_path: Path, name: str, until: str
) -> None:
    out = tmp_path / "out"
    for each in NAMES if name == "all" else [name]:
        (out / each).parent.mkdir(parents=True, exist_ok=True)
        (out / each).write_text("mine")
    before = small.files_of(out)
    for options in ([], ["--resume"]):
        of_classes = "classification" in recipe.read_text() and until == "train"
        said = "leaves results and no model" if of_classes else str(out)
        refused(rerank("run", "--until", until, recipe, "-o", out, *options), said)
        assert small.files_of(out) == before


def finished(rerank: Command, recipe: Path, out: Path) -> None:
    assert rerank("run", recipe, "-o", out).code == 0
    assert (out / NOTE).read_text().startswith(HEAD)


def test_files_beside_those_of_a_run(rerank: Command, recipe: Path, small_run: Path, tmp_path: Path) -> None:
    """In a run's own directory: what is in the way is named before anything is removed, all else survives."""
    assert small_run.exists()
    out = tmp_path / "out"
    finished(rerank, recipe, out)
    kept = ["notes.txt", "predictions/notes.txt", "predictions/.x.0123456789abcdef.partial", "figures/mine.svg"]
    kept += [".x.01234567.partial", "mine/metrics.json", "metrics.mine.npz", ".runs/0007/run.json", ".runs/notes.txt"]
    for name in kept:
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_text("mine")
    finished(rerank, recipe, out)
    for name in kept:
        assert (out / name).read_text() == "mine", name
    if "classification" in recipe.read_text():  # a run of examples leaves no folder that is all its own
        return
    (out / "model" / "notes.txt").write_text("mine")
    before = small.files_of(out)
    refused(rerank("run", recipe, "-o", out), "model/notes.txt", "this was not written by a run; move it")
    assert small.files_of(out) == before


def test_predictions_of_a_split_that_somebody_else_has_written(
    rerank: Command, small_data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    recipe = recipe_at(tmp_path, small.settings(small_data))
    (out / "predictions").mkdir(parents=True)
    (out / NOTE).write_text(f"{HEAD}\nlog.txt\n")
    (out / "predictions" / "test.nbest.gz").write_text("mine")
    refused(rerank("run", recipe, "-o", out), "'predictions/test.nbest.gz', which was not written by a run")
    assert (out / "predictions" / "test.nbest.gz").read_text() == "mine"


@pytest.mark.parametrize(
    ("split", "until"), [("absolute", "test"), ("up", "train"), ("below", "extract"), ("empty", "test")]
)
def test_a_split_that_is_a_path(rerank: Command, small_data: Path, tmp_path: Path, split: str, until: str) -> None:
    data = tmp_path / "data"
    shutil.copytree(small_data, data)
    name = {"absolute": str(data / "test"), "up": "../data/test", "below": "data/test", "empty": ""}[split]
    recipe = recipe_at(tmp_path, small.settings(data))
    before = small.files_of(tmp_path)
    for key in ("tests", "dev", "train"):
        ended = rerank("run", "--until", until, recipe, "--set", f"data.{key}={name!r}", "-o", tmp_path / "out")
        refused(ended, f"data.{key}", "the name of a split")
        assert small.files_of(tmp_path) == before


def test_a_recipe_named_after_a_place_elsewhere(
    rerank: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    for name in ("../../up", str(tmp_path / "abs")):
        settings = small_classes.settings(small_classes.write_set(tmp_path / "data")) | {"name": name}
        assert rerank("run", recipe_at(tmp_path, settings)).code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "of-the-user.yaml", "work"]
    assert len(list((tmp_path / "work" / "runs").iterdir())) == 2


def test_names_of_sets_and_runs(rerank: Command, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    root = small_classes.write_set(tmp_path / "data")
    source = {"path": "{root}/marked.svm.gz", "folds": "{root}/marked.folds.txt"}
    settings = small_classes.settings(
        root,
        data={"sets": {"../up": source, "a b": source, "a/b": source, "..": source}},
        runs=[{"name": "/tmp/x"}, {"name": "../y"}],
    )
    before = {path.name for path in tmp_path.iterdir()}
    ended = rerank("run", recipe_at(tmp_path, settings), "-o", tmp_path / "out")
    assert ended.code == 0, ended.err
    assert {path.name for path in tmp_path.iterdir()} == before | {"out", "of-the-user.yaml"}
    assert len(list((tmp_path / "out" / "predictions").iterdir())) == 4


def test_a_run_never_writes_over_what_it_reads(
    rerank: Command, small_run: Path, small_data: Path, tmp_path: Path
) -> None:
    """Predictions and the model of a run before, as input of the next one into the same directory."""
    out = tmp_path / "out"
    shutil.copytree(small_run, out)
    before = small.files_of(out)
    for changes, named in (
        ({"data": {"nbest": f"{out}/predictions/test.nbest.gz"}}, "predictions/test.nbest.gz"),
        ({"training": {"start": str(out / "model"), "epochs": 1}}, "model/model.json"),
        ({"metric": {"prm": str(out / "report.html")}}, "report.html"),
    ):
        recipe = recipe_at(tmp_path, small.settings(small_data, **changes))
        refused(rerank("run", recipe, "-o", out), named)
        assert small.files_of(out) == before


def test_commands_never_write_over_what_they_read(
    rerank: Command, small_run: Path, small_data: Path, tmp_path: Path
) -> None:
    model, lists = tmp_path / "model", tmp_path / "test.nbest.gz"
    shutil.copytree(small_run / "model", model)
    shutil.copy(small_data / "test.nbest.gz", lists)
    (tmp_path / "link").symlink_to(lists)
    before = small.files_of(tmp_path)
    for arguments in (
        ("rank", model, lists, "-o", lists),
        ("rank", model, lists, "-o", tmp_path / "link"),
        ("rank", model, lists, "-o", tmp_path / "model" / ".." / "test.nbest.gz"),
        ("rank", model, lists, "-o", model / "average.npy"),
        ("export", model, "-o", model / "model.json"),
        ("import", lists, "--like", model, "-o", model),
    ):
        ended = rerank(*arguments)
        assert ended.code == 2, ended
        assert small.files_of(tmp_path) == before
