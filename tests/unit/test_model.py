"""Models on disk: what is saved is loaded, and every damage is one message."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import small

from rerank.errors import ModelError, RunError
from rerank.features.table import HashedTable
from rerank.learn.base import Weights
from rerank.learn.votes import Votes
from rerank.model import Model

CHANGED = "not the one that was saved"


@pytest.fixture
def directory(small_run: Path, tmp_path: Path) -> Path:
    """A copy of a model that a test may damage."""
    shutil.copytree(small_run / "model", tmp_path / "model")
    return tmp_path / "model"


def tiny() -> Model:
    """A model of 16 hashed columns."""
    weights = {name: Weights(np.arange(16.0), 0.5) for name in ("last", "average")}
    return Model({"features": {}}, {"learner": "perceptron"}, HashedTable(4, ("Rule",), {}), weights)


def test_saved_and_loaded(directory, tmp_path):
    model = Model.load(directory)
    model.save(tmp_path / "again")
    again = Model.load(tmp_path / "again")
    assert small.files_of(tmp_path / "again") == small.files_of(directory)
    assert (again.settings, again.about) == (model.settings, model.about)
    for name in ("last", "average"):
        assert np.array_equal(again.weights[name].w, model.weights[name].w)
        assert again.weights[name].base == model.weights[name].base
    assert set(again.state) == set(model.state) != set()
    assert set(again.votes) == set(model.votes) == set(Votes._fields)


def test_no_file_can_run_code(directory):
    for path in directory.iterdir():
        assert path.suffix in (".json", ".npy")
        if path.suffix == ".npy":
            assert not np.load(path, allow_pickle=False).dtype.hasobject


def test_the_learning_state_is_optional(tmp_path):
    tiny().save(tmp_path / "model")
    model = Model.load(tmp_path / "model")
    assert (model.state, model.votes) == ({}, {})
    assert model.table.width == 16


def test_a_failed_save_keeps_the_old_model(tmp_path):
    tiny().save(tmp_path / "model")
    before = small.files_of(tmp_path)
    broken = replace(tiny(), about={"learner": object()})
    with pytest.raises(TypeError):
        broken.save(tmp_path / "model")
    assert small.files_of(tmp_path) == before
    with pytest.raises(RunError, match="cannot write"):
        tiny().save(tmp_path / "model" / "model.json" / "below")


FILES = [
    "model.json", "table.json", "average.npy", "last.npy", "state_w.npy", "state_counts.npy", "table_hashes.npy",
    "table_template.npy", "table_first.npy", "table_symbols.npy", "votes_first.npy", "votes_columns.npy",
    "votes_value.npy", "votes_beta.npy", "votes_survived.npy",
]  # fmt: skip


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("how", ["missing", "empty", "cut short", "one bit", "a directory"])
def test_every_damaged_file_is_one_message(directory, name, how):
    file = directory / name
    if not file.exists() and name.startswith("state_"):
        file = next(iter(sorted(directory.glob("state_*"))))
    content = bytearray(file.read_bytes())
    file.unlink()
    if how == "a directory":
        file.mkdir()
    elif how != "missing":
        content[len(content) // 2] ^= 1
        file.write_bytes({"empty": b"", "cut short": bytes(content[:-20]), "one bit": bytes(content)}[how])
    with pytest.raises(ModelError) as caught:
        Model.load(directory)
    assert str(caught.value).startswith(str(directory))
    assert "\n" not in str(caught.value)
    if how == "missing":
        assert f"{file.name} is missing" in str(caught.value)


def change(directory: Path, sign: bool, **entries: object) -> None:
    """Change entries of model.json; with ``sign`` so that its digest fits."""
    path = directory / "model.json"
    header = json.loads(path.read_text()) | entries
    if sign:
        from rerank.model import _header_digest

        header["digest"] = _header_digest(header)
    path.write_text(json.dumps(header))


def test_a_changed_header_is_refused(directory):
    settings = json.loads((directory / "model.json").read_text())["settings"]
    change(directory, False, settings=settings | {"features": {}})
    with pytest.raises(ModelError, match=CHANGED):
        Model.load(directory)


def test_another_layout_of_the_same_header_is_no_change(directory):
    change(directory, False)
    assert Model.load(directory).about["learner"] in ("vrda", "perceptron")


@pytest.mark.parametrize(
    ("entries", "hint"),
    [
        ({"version": 99}, "format version 99; this program reads 1"),
        ({"files": {"../model/last.npy": ""}}, CHANGED),
        ({"files": {}}, "not a readable"),
        ({"files": []}, "not a readable model"),
        ({"base": {}}, "not a readable model: KeyError"),
        ({"base": {"last": "x", "average": 1}}, "not a readable model: ValueError"),
        ({"settings": 5}, "not a readable model: TypeError"),
    ],
)
def test_headers_of_another_kind(directory, entries, hint):
    change(directory, True, **entries)
    with pytest.raises(ModelError, match=hint):
        Model.load(directory)


@pytest.mark.parametrize("array", [np.zeros(3), np.zeros(16, np.float32), np.zeros((16, 1))])
def test_weights_that_do_not_fit_the_table(tmp_path, array):
    replace(tiny(), weights={"last": Weights(np.zeros(16), 1.0), "average": Weights(array, 1.0)}).save(tmp_path / "m")
    with pytest.raises(ModelError, match="differ in length or type"):
        Model.load(tmp_path / "m")


def test_no_model(tmp_path):
    (tmp_path / "file").write_text("x")
    for path in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(ModelError, match=r"no model here: model.json is missing"):
            Model.load(path)
    with pytest.raises(ModelError, match="not a readable model"):
        Model.load(tmp_path / "file")
