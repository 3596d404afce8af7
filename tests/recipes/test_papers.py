"""The recipes of papers: they are valid, in full and quick, and their numbers belong to runs."""

import re
from pathlib import Path

import pytest

from rerank.contrib.classification.recipe import ClassificationRecipe
from rerank.contrib.classification.steps import check_parts
from rerank.recipes.loading import load_recipe
from rerank.recipes.recipe import ListRecipe

ROOT = Path(__file__).parents[2]
PAPERS = sorted((ROOT / "recipes" / "papers").glob("*.yaml"))


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("path", PAPERS, ids=lambda path: path.stem)
def test_recipes_of_papers_are_valid(path: Path, quick: bool) -> None:
    recipe = load_recipe(path, quick=quick)
    assert recipe.name == path.stem
    if isinstance(recipe, ClassificationRecipe):
        check_parts(recipe)


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


PAGE = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
SECTIONS = [text for text in re.split(r"^## ", PAGE, flags=re.MULTILINE) if "\nrerank run " in text]
VERDICTS = {"**holds**", "**does not**", "**cannot be seen here**"}


def rows_of(text: str) -> list[list[list[str]]]:
    """The tables of a text, row by row, cell by cell."""
    tables = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    return [[[cell.strip() for cell in line.strip("|").split(" | ")] for line in t.splitlines()] for t in tables]


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.partition("\n")[0])
def test_every_claim_has_a_verdict(section: str) -> None:
    claims = rows_of(section)[0]
    assert claims[0] == ["the paper", "here", "verdict"]
    assert len(claims) > 2
    for claim, here, verdict in claims[2:]:
        assert claim, here
        assert here, claim
        assert verdict in VERDICTS, claim


def shown(value: float | str) -> set[str]:
    """How a page may write a paper's number: as it is, in per cent, in thousands."""
    if isinstance(value, str):
        return {value}
    counts = {f"{value / 1000:g} K", f"{value / 1000:g}K", f"{value / 1e6:g}M"}
    return {f"{value:g}", f"{value:.1f}", f"{value:.2f}", f"{100 * value:.2f}"} | counts


def reported(section: str) -> tuple[dict[tuple[str, str], set[str]], set[str]]:
    """The numbers of the recipes that a section runs: of examples by row and column, of lists all of them."""
    at_place: dict[tuple[str, str], set[str]] = {}
    anywhere: set[str] = set()
    others = re.findall(r"(?:cw|, )(-table\d|-figure\d)", re.sub(r"recipes/papers/\S+", "", section))
    paths = {
        *re.findall(r"recipes/papers/[\w-]+\.yaml", section),
        *(f"recipes/papers/cw{name}.yaml" for name in others),
    }
    for recipe in (load_recipe(ROOT / path) for path in sorted(paths)):
        if recipe.reported is None:
            continue
        if isinstance(recipe, ListRecipe):
            anywhere |= {
                text for row in recipe.reported.rows.values() for value in row.values() for text in shown(value)
            }
            continue
        for values in (recipe.reported.values, recipe.reported.seconds, recipe.reported.ranks):
            for row, cells in values.items():
                for run, value in cells.items():
                    error = 100 - value if recipe.name == "cw-figures3-4" else value  # the page has accuracies
                    at_place.setdefault((row, run), set()).update(shown(error))
    return at_place, anywhere


def test_the_numbers_of_papers_are_those_of_the_recipes() -> None:
    """Every number behind a slash in a table."""
    count = 0
    for section in SECTIONS:
        at_place, anywhere = reported(section)
        for heading, _, *rows in rows_of(section)[1:]:
            for name, *cells in rows:
                for run, cell in zip(heading[1:], cells, strict=False):
                    found = re.findall(r"^[^/]+ / ([\d.]+(?: K)?)$", cell)
                    if "paper" in run:
                        found = re.findall(r"\d[\d.]*(?: ?[KM])?", cell.rpartition(": ")[2])
                    for number in found:
                        assert number in at_place.get((name, run), set()) | anywhere, (name, run, cell)
                        count += 1
    assert count > 200


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
