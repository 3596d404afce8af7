"""What a model holds, against plain counts over its columns."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small
import small_texts

import rerank
from rerank.learn.base import Weights
from rerank.models.model import Model
from rerank.models.weights import find_features, moses_lines, named_weights, shares
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


FEATURES = {"set": None, "templates": ["BaseScore", "Dense", "PhrasePair"], "min_lists": 2}


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lists of translations, without the one that is empty."""
    root = tmp_path_factory.mktemp("moses")
    small_texts.write_task(root)
    return root


def lists_of(task: Path, split: str) -> list[rerank.NBest]:
    files = {"references": task / f"{split}.ref.gz", "sources": task / f"{split}.src.gz"}
    found = rerank.read(task / f"{split}.nbest.gz", "moses", on_bad_list="skip", **files)
    return [nbest for nbest in found if len(nbest)]


def chosen(lines: list[str], nbest: rerank.NBest) -> str:
    """The best candidate by the weights of a file as Moses reads it, in ten lines."""
    base = float(lines[0].split("the base score's, ")[1].split(",")[0])
    dense = {line.split()[1].rstrip("="): list(map(float, line.split()[2:])) for line in lines[2:] if line[0] == "#"}
    sparse = {line.split()[0]: float(line.split()[1]) for line in lines if line[0] != "#"}
    source = str(nbest.source).split()

    def score(candidate: rerank.Candidate) -> tuple[float, float]:
        total = base * (candidate.score or 0.0)
        for name, weights in dense.items():
            keys = [name] if len(weights) == 1 else [f"{name}_{k}" for k in range(len(weights))]
            total += sum(weight * candidate.columns[key] for key, weight in zip(keys, weights, strict=True))
        words = zip(source, candidate.tokens, strict=True)
        return total + sum(sparse.get(f"pp_{f}~{e}", 0.0) for f, e in words), candidate.score or 0.0

    return max(nbest.candidates, key=score).text


@pytest.mark.parametrize("name", ["maxent", "rda", "arow"])
def test_exported_weights_choose_what_the_model_chooses(task: Path, name: str) -> None:
    train, dev, test = (lists_of(task, split) for split in ("train", "dev", "test"))
    for base in (1, "auto"):
        learner: dict[str, Any] = {"name": name, "base": base}
        recipe = {"task": "translation", "decode": {"kinds": []}}
        fitted = rerank.fit(train, dev, recipe=recipe, features=FEATURES, learner=learner, epochs=2)
        for predictor in ("last", "average"):
            model = rerank.Reranker(fitted.model, predictor)
            lines = list(moses_lines(model.model.table, model.model.weights[predictor], Counter[str]()))
            assert [chosen(lines, nbest) for nbest in test] == [model.best(nbest).text for nbest in test], base


def test_the_base_score_has_one_weight(task: Path) -> None:
    lists = lists_of(task, "train")
    model = rerank.fit(lists, recipe={"task": "translation"}, features=FEATURES, epochs=2).model
    j = model.table.base_column
    assert j is not None
    for weights in model.weights.values():
        assert weights.w[j] == 0.0
        assert "BaseScore|" not in named_weights(model.table, weights)
