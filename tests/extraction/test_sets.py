"""The set of templates of translations, where their recipe names none."""

from pathlib import Path

import pytest
import small_texts

from rerank.extraction.kinds import with_set
from rerank.models.model import Model
from rerank.recipes.loading import load_recipe
from rerank.runs import experiment


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The made-up task: dev and test have derivations, the lists of train have lost theirs."""
    root = tmp_path_factory.mktemp("sets")
    small_texts.write_task(root)
    lines = small_texts.lines_of(root / "train.nbest.gz")
    small_texts.write_lines(root / "train.nbest.gz", [line.rpartition(" ||| ")[0] for line in lines])
    return root


AUTO = {"set": "auto", "min_lists": 1}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, "text"),
        ({"train": "dev"}, "translation"),
        ({"train": ["train", "dev"]}, "text"),
        ({"train": "dev", "sources": None}, "text"),
        ({"train": "missing"}, "text"),
    ],
)
def test_derivations_decide(data: Path, settings: dict[str, object], expected: str) -> None:
    recipe = small_texts.recipe(data, features=AUTO, data=settings)
    assert with_set(recipe).features.model_dump() == {**recipe.features.model_dump(), "set": expected}


@pytest.mark.parametrize("given", ["dense", "translation", None])
def test_a_set_that_is_named_stays(data: Path, given: str | None) -> None:
    recipe = small_texts.recipe(data, features={"set": given, "templates": ["Length"]})
    assert with_set(recipe) is recipe


def test_a_run_and_its_model_have_the_set_that_was_found(data: Path, workspace: Path) -> None:
    directory = workspace / "texts" / "set-found"
    recipe = small_texts.recipe(data, features=AUTO, training={"epochs": 1, "vote": False})
    experiment.run(recipe, directory)
    assert Model.load(directory / "model").settings["features"]["set"] == "text"
    assert load_recipe(directory / "recipe.yaml") == with_set(recipe)
