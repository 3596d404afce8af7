"""The recipes of papers: they are valid, in full and quick, and their numbers belong to runs and figures."""

import re
from pathlib import Path

import pytest

from rerank.recipes.example_recipe import ClassificationRecipe
from rerank.recipes.loading import load_recipe
from rerank.recipes.recipe import ListRecipe
from rerank.runs.examples.steps import check_parts
from rerank.runs.report.list_figures import check_figures

ROOT = Path(__file__).parents[2]
PAPERS = sorted((ROOT / "recipes" / "papers").glob("*.yaml"))


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("path", PAPERS, ids=lambda path: path.stem)
def test_recipes_of_papers_are_valid(path: Path, quick: bool) -> None:
    recipe = load_recipe(path, quick=quick)
    assert recipe.name == path.stem
    if isinstance(recipe, ClassificationRecipe):
        check_parts(recipe)
    else:
        assert isinstance(recipe, ListRecipe)
        check_figures(recipe)


@pytest.mark.parametrize("path", PAPERS, ids=lambda path: path.stem)
def test_the_numbers_of_a_paper_belong_to_runs(path: Path) -> None:
    recipe = load_recipe(path)
    if isinstance(recipe, ClassificationRecipe):
        reported = recipe.reported
        sets, runs = set(recipe.data.named_sets(recipe.name)), {spec.run for spec in recipe.expand()}
        for values in (reported.values, reported.seconds) if reported else ():
            assert set(values) <= sets
            assert all(set(row) <= runs for row in values.values())
        for noise, row in reported.ranks.items() if reported else ():
            assert float(noise) in recipe.data.noise
            assert set(row) == runs
        return
    assert isinstance(recipe, ListRecipe)
    assert recipe.reported is not None
    runs = {run.name for run, _ in recipe.points()}
    single = {single.name for single in recipe.expand()}
    assert single & set(recipe.reported.rows), "none of ours stands beside a number"
    for name, row in recipe.reported.rows.items():
        assert name == "base" or name in single or re.sub(r" l1=\S+$", "", name) in runs
        for key in row:
            split, _, _ = key.rpartition(".")
            assert split in ("", *recipe.data.tests)


def test_make_runs_every_recipe_of_a_paper() -> None:
    text = (ROOT / "Makefile").read_text().replace("\\\n", " ")
    named = [name for line in re.findall(r"^\w+_PAPERS = (.*)$", text, re.MULTILINE) for name in line.split()]
    assert sorted(named) == [path.stem for path in PAPERS]


def test_no_recipe_of_a_paper_names_a_place() -> None:
    """Every one of them is run with ``data.root``."""
    for path in PAPERS:
        recipe = load_recipe(path, ["data.root=elsewhere"])
        sets = recipe.data.named_sets(recipe.name).values() if isinstance(recipe, ClassificationRecipe) else ()
        paths = [each.path for each in sets if each.path is not None]
        paths += [recipe.data.nbest] if isinstance(recipe, ListRecipe) else []
        assert all(each.startswith("{root}/") for each in paths), path.name
