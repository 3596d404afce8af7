"""Recipes that come with the program: found by name from anywhere, their lists too, and no other folder named."""

from pathlib import Path

import pytest

from rerank.base.errors import DataError
from rerank.contrib.classification.recipe import ClassificationRecipe
from rerank.contrib.structures.recipe import TaggingRecipe
from rerank.readers.inputs import Inputs
from rerank.recipes.loading import about_recipe, find_recipe, load_recipe, shipped_recipes
from rerank.recipes.recipe import ListRecipe
from rerank.runs.experiment import check

RECIPES = Path(__file__).parents[2] / "recipes"
NAMES = sorted(shipped_recipes())


def test_every_recipe_has_a_name() -> None:
    assert sorted(shipped_recipes().values()) == sorted(RECIPES.rglob("*.yaml"))
    assert {"quickstart", "papers/vrda-table1"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_recipes_are_described_and_name_no_folder_but_that_of_the_shipped_lists(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    recipe = load_recipe(name)
    assert 10 < len(about_recipe(shipped_recipes()[name])) < 400
    if isinstance(recipe, ClassificationRecipe):
        assert recipe.data.root == "."
    elif recipe.data.root == ".":
        with pytest.raises(DataError, match="name the folder of the lists with --set data"):
            check(recipe, Inputs())
    else:
        assert recipe.data.root.startswith("{shipped}/")
        if isinstance(recipe, TaggingRecipe):
            assert check(recipe, Inputs()).files
            return
        assert isinstance(recipe, ListRecipe)
        for split in recipe.splits:
            assert all(Path(path).is_file() for paths in recipe.data.files(split).values() for path in paths)


def test_a_file_comes_before_a_recipe_of_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "parse").mkdir()
    assert find_recipe("parse") == RECIPES / "parse.yaml"  # a folder is no recipe
    (tmp_path / "quickstart").write_text("name: mine")
    assert load_recipe("quickstart").name == "mine"
