"""Ensembles: the sum of their members' weights, one vector, chosen and kept as one model is."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small

import rerank
from rerank.base.errors import RecipeError
from rerank.data.corpus import Corpus
from rerank.extraction.extraction import extract_split, extract_training
from rerank.learn.scoring import choices, scores
from rerank.models.model import Model
from rerank.readers.inputs import Inputs
from rerank.runs import experiment
from rerank.runs.combination import members, train_ensemble
from rerank.runs.training import RunTask, train_run

LEARNERS = [{"name": "perceptron", "base": 0.5}, {"name": "vrda", "base": 2.0}]


def with_ensemble(root: Path, learner: Any = None, **settings: Any) -> Any:
    training = {"epochs": 2, "vote": False, "ensemble": settings}
    return small.recipe(root, training=training, learner=learner or LEARNERS[0])


@pytest.fixture(scope="module")
def corpora(small_data: Path) -> tuple[Corpus, Corpus]:
    recipe = small.recipe(small_data)
    training, table = extract_training(recipe)
    return training.corpus, extract_split(recipe, "dev", table).corpus


def test_weights_are_summed_in_units_of_their_scores(small_data: Path, corpora: tuple[Corpus, Corpus]) -> None:
    train, dev = corpora
    recipe = with_ensemble(small_data, seeds=2, learners=LEARNERS)
    every = members(recipe)
    assert [(each.learner["name"], each.seed) for each in every] == [
        ("perceptron", 1), ("perceptron", 1001), ("vrda", 1), ("vrda", 1001),
    ]  # fmt: skip
    found = train_ensemble(RunTask("all", recipe, train, dev))
    lists = dev
    for kind in ("last", "average"):
        w, base = np.zeros(train.width), 0.0
        for single in every:
            own = train_run(RunTask("one", single, train, dev)).weights[kind]
            own_scores = scores(lists, own)
            apart = [part - part.mean() for part in np.split(own_scores, lists.lists[1:-1])]
            deviation = np.sqrt(np.mean(np.concatenate(apart) ** 2))
            w, base = w + own.w / deviation, base + own.base / deviation
        np.testing.assert_allclose(found.weights[kind].w, w, rtol=1e-9, atol=1e-12)
        assert found.weights[kind].base == pytest.approx(base, rel=1e-9)
    assert len(found.training["ensemble"]["members"]) == 4


def test_an_ensemble_of_one_is_that_one(small_data: Path, corpora: tuple[Corpus, Corpus]) -> None:
    train, dev = corpora
    for learner in (LEARNERS[1], {"name": "perceptron"}):
        alone = train_run(RunTask("one", small.recipe(small_data, training={"epochs": 2}, learner=learner), train, dev))
        found = train_ensemble(RunTask("all", with_ensemble(small_data, learner, seeds=1), train, dev))
        assert choices(dev, found.weights["average"]).tolist() == choices(dev, alone.weights["average"]).tolist()
        assert found.dev_score == pytest.approx(alone.dev_score, abs=1e-12)


def test_all_members_see_the_same_share_of_the_lists(small_data: Path, corpora: tuple[Corpus, Corpus]) -> None:
    train, dev = corpora
    recipe = with_ensemble(small_data, seeds=2)
    found = train_ensemble(RunTask("all", recipe.changed({"training.share": 0.25}), train, dev))
    expected = train_ensemble(RunTask("all", recipe, train.shared(0.25, recipe.seed), dev))
    for kind, weights in expected.weights.items():
        assert found.weights[kind].w.tobytes() == weights.w.tobytes()
    assert found.training["lists"] == expected.training["lists"]


def test_the_strongest_contributions_stay(small_data: Path, corpora: tuple[Corpus, Corpus]) -> None:
    train, dev = corpora
    dense = train_ensemble(RunTask("all", with_ensemble(small_data, seeds=2), train, dev)).weights["average"].w
    found = train_ensemble(RunTask("all", with_ensemble(small_data, seeds=2, keep=25), train, dev))
    corpus = train
    norms = np.sqrt(np.bincount(corpus.columns, weights=np.square(corpus.values, dtype=float), minlength=train.width))
    size = np.abs(dense) * norms
    kept = np.flatnonzero(found.weights["average"].w)
    assert kept.size == 25 == found.training["nonzero_weights"]
    assert size[kept].min() >= np.sort(size)[-25] - 1e-12
    np.testing.assert_array_equal(found.weights["average"].w[kept], dense[kept])


def test_the_model_of_an_ensemble_is_one_vector(small_data: Path, workspace: Path) -> None:
    recipe = with_ensemble(small_data, {"name": "perceptron"}, seeds=2, keep=0.5)
    experiment.run(recipe, workspace / "ensemble")
    metrics = small.results(workspace / "ensemble")
    model = Model.load(workspace / "ensemble" / "model")
    assert np.count_nonzero(model.weights["average"].w) == metrics["training"]["nonzero_weights"]
    assert model.about["dev"]["score"] == metrics["training"]["ensemble"]["dev"] == metrics["runs"][0]["dev"]
    lists = rerank.read(small_data / "test.nbest.gz", format="charniak", references=small_data / "test.gold.gz")
    found = rerank.evaluate(rerank.load(workspace / "ensemble" / "model"), lists)
    assert found.score == pytest.approx(metrics["splits"]["test"][metrics["predictor"]]["f1"], abs=1e-12)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data": {"dev": None}, "learner": {"name": "perceptron", "base": 1}}, r"training\.ensemble: .* name data"),
        ({"training": {"vote": True}}, r"training\.vote: an ensemble has no such training"),
        ({"training": {"ensemble": {"learners": [{"name": "percepton"}]}}}, r"learners\.0\.name: .*did you mean per"),
    ],
)
def test_ensembles_that_cannot_be(small_data: Path, changes: dict[str, Any], message: str) -> None:
    training = {"vote": False, "ensemble": {"seeds": 2}} | changes.pop("training", {})
    with Inputs() as inputs, pytest.raises(RecipeError, match=message):
        experiment.check(small.recipe(small_data, training=training, **changes), inputs)
