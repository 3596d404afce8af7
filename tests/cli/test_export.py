"""Weights out of a model and back into one, and where a model comes from."""

import gzip
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import small_texts
from commands import Command

from rerank.models.model import Model
from rerank.models.weights import moses_lines
from rerank.runs import experiment


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory, workspace: Path) -> Path:
    """The model of a run over translations."""
    root = tmp_path_factory.mktemp("texts")
    small_texts.write_task(root)
    experiment.run(small_texts.recipe(root), workspace / "export")
    return workspace / "export" / "model"


def test_out_and_in_again(small_run: Path, tmp_path: Path, rerank: Command) -> None:
    model, file = small_run / "model", tmp_path / "weights.txt.gz"
    assert rerank("export", model, "-o", file).code == 0
    done = rerank("import", file, "--like", model, "-o", tmp_path / "again")
    assert done.code == 0, done.err
    old, new = Model.load(model), Model.load(tmp_path / "again")
    for name in ("last", "average"):
        assert new.weights[name].w.tobytes() == old.weights["average"].w.tobytes()
        assert new.weights[name].base == old.weights["average"].base
    assert (new.state, new.votes) == ({}, {})
    assert new.settings == old.settings
    assert new.about["imported"]["file"] == str(file)
    again = rerank("export", tmp_path / "again")
    assert again.out.encode() == gzip.decompress(file.read_bytes())
    refused = rerank("import", file, "--like", model, "-o", tmp_path / "again")
    assert refused.code == 2
    assert "already exists" in refused.err


def test_the_strongest_by_name(small_run: Path, rerank: Command) -> None:
    model = small_run / "model"
    w = np.sort(np.abs(Model.load(model).weights["last"].w))[::-1]
    rows = [line.split(" ") for line in rerank("export", model, "--predictor", "last", "--top", 5).out.splitlines()]
    assert rows[0][0] == "base"
    assert [abs(float(weight)) for _, weight in rows[1:]] == w[:5].tolist()


def test_errors_of_import_name_the_line(small_run: Path, tmp_path: Path, rerank: Command) -> None:
    (tmp_path / "w").write_text("base 1\nRule|NP 3\n")
    done = rerank("import", tmp_path / "w", "--like", small_run / "model", "-o", tmp_path / "m")
    assert done.code == 2
    assert f"{tmp_path / 'w'}:2: the model has no feature 'Rule|NP'" in done.err.replace("\n", "")
    assert not (tmp_path / "m").exists()


def test_errors_of_export(small_run: Path, tmp_path: Path, rerank: Command) -> None:
    model = small_run / "model"
    for arguments, message in [
        (("--predictor", "voted"), "no weights of 'voted'; it has last, average"),
        (("--format", "moses", "-o", tmp_path / "w.gz"), "Moses does not read compressed weights"),
    ]:
        done = rerank("export", model, *arguments)
        assert done.code == 2
        assert message in done.err.replace("\n", " ")
    assert not (tmp_path / "w.gz").exists()


def test_weights_for_moses(texts: Path, rerank: Command) -> None:
    model, done = Model.load(texts), rerank("export", texts, "--format", "moses")
    assert done.out.splitlines() == list(moses_lines(model.table, model.weights["average"], Counter()))
    assert len(done.out.splitlines()) > 10, done.err


def test_provenance(small_run: Path, tmp_path: Path, rerank: Command) -> None:
    model = small_run / "model"
    about = Model.load(model).about
    done = rerank("inspect", model, "--provenance")
    assert done.code == 0, done.err
    for known in (about["training_data"], about["date"], about["version"], *about["files"]["nbest"]):
        assert known in done.out
    for line in ("learner: ", "seed: ", "measure: f1", "templates:"):
        assert line in done.out
    rerank("export", model, "-o", tmp_path / "w")
    rerank("import", tmp_path / "w", "--like", model, "-o", tmp_path / "again")
    shown = rerank("inspect", tmp_path / "again", "--provenance").out
    assert str(tmp_path / "w") in shown
    assert "measure: f1" not in shown
