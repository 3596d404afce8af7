"""What a model holds, against plain counts over its columns."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import small

from rerank.learn.base import Weights
from rerank.models.model import Model
from rerank.models.weights import find_features, shares
from rerank.runs import experiment


@pytest.fixture(scope="module")
def model(small_run: Path) -> Model:
    return Model.load(small_run / "model")


def weights_by_template(model: Model) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {name: [] for name in model.table.templates}
    for j in range(model.table.width):
        found[model.table.name(j).partition("|")[0]].append(float(model.weights["average"].w[j]))
    return found


def test_shares(model):
    expected, entries = weights_by_template(model), shares(model, "average", 2)
    assert {entry.template for entry in entries} == set(small.TEMPLATES)
    total = sum(abs(w) for own in expected.values() for w in own)
    for entry in entries:
        own = expected[entry.template]
        assert (entry.columns, entry.nonzero) == (len(own), sum(w != 0 for w in own))
        assert entry.share == pytest.approx(sum(map(abs, own)) / total)
        strongest = sorted((abs(w) for w in own if w), reverse=True)[:2]
        assert [abs(w) for _, w in entry.strongest] == strongest
        assert all(name.startswith(f"{entry.template}|") for name, _ in entry.strongest)
    assert sum(entry.share for entry in entries) == pytest.approx(1.0)
    assert [entry.share for entry in entries] == sorted((entry.share for entry in entries), reverse=True)
    assert all(entry.strongest == [] for entry in shares(model, "average", 0))


def test_shares_of_a_model_without_weights(model):
    nothing = {name: Weights(np.zeros(model.table.width), 1.0) for name in ("last", "average")}
    for entry in shares(replace(model, weights=nothing), "last", 5):
        assert (entry.nonzero, entry.share, entry.strongest) == (0, 0.0, [])


def test_find_features(model):
    found = find_features(model, "average", "NP | → DT NN")
    names = [model.table.name(j) for j in range(model.table.width)]
    assert sorted(name for name, _ in found) == sorted(name for name in names if "NP | → DT NN" in name) != []
    assert all(weight == model.weights["average"].w[names.index(name)] for name, weight in found)
    assert [abs(weight) for _, weight in found] == sorted((abs(weight) for _, weight in found), reverse=True)
    assert find_features(model, "average", "no such text") == []
    assert len(find_features(model, "last", "")) == model.table.width


def test_a_hashed_model_is_one_group(small_data, workspace):
    recipe = small.recipe(small_data, features={"hash_bits": 8})
    experiment.run(recipe, workspace / "hashed")
    model = Model.load(workspace / "hashed" / "model")
    (entry,) = shares(model, "average", 1)
    assert (entry.template, entry.columns, entry.share) == ("hashed", 256, 1.0)
    assert entry.strongest[0][0].startswith("hashed|#")
