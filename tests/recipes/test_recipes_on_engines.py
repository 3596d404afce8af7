"""Every recipe that comes with the program, on little data; worker processes leave the bytes of one."""

import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import small
import small_classes
import small_texts

from rerank.contrib.classification.recipe import ClassificationRecipe
from rerank.pool import Engine, open_engine
from rerank.recipes.loading import load_recipe, shipped_recipes
from rerank.recipes.recipe import TaskRecipe
from rerank.runs import experiment

Recipes = Callable[[str], TaskRecipe]
Results = Callable[[str], dict[str, Any]]
NAMES = sorted(shipped_recipes())
ONE_EACH = ["quickstart", "translation", "asr", "llm", "classification", "papers/arow-figure2"]  # of every kind of data
LISTS = 16  # of a split of lists in JSON lines
# What would take time, and says nothing about engines.
TUNED = ("figure5", "figures3-4", "table2", "table3", "table4", "table5")
SECTIONS = (  # the recipe has a hundred
    "runs=[{name: KL, set: {learner: {name: cw}, training.sections: {count: 2, rule: kl}}}, "
    "{name: alone, set: {learner: {name: pa}, training.sections: {count: 2, rule: alone}}}]",
    "grid={training.sections.count: [2, 3]}",
)
ONE_RUN = "runs=[{name: perceptron, set: {learner: {name: perceptron}}}]"  # views of rows are types of their own
SMALL = {f"papers/cw-{name}": ["data.sets=[sentiment_kitchen, news_comp]"] for name in TUNED} | {
    "classification": ["data.path='{root}/digits_09.svm.gz'"],
    "learners": ["data.sets=[digits_09]", "data.noise=0.1"],
    "learners-fixed": ["data.sets=[news_comp]"],
    "tuning": ["data.sets=[news_comp]"],
    "papers/arow-figure2": ["data.generator.train=300", "data.generator.test=200"],
    "papers/arow-table1": ["data.sets=[digits_34, digits_78]", "data.noise=[0, 0.3]"],
    "papers/cw-figure6": ["data.sets=[digits_09]", *SECTIONS],
    "papers/cw-figure7": ["data.generator.train=2000", "data.generator.test=200", ONE_RUN],
    "papers/winnow-figure1": ["data.sets.d500.generator.dimension=20", "data.sets.d5000.generator.dimension=30"],
    "papers/winnow-table1": ["data.sets.d500.generator.dimension=20", "data.sets.d5000.generator.dimension=30"],
}


def parses(root: Path) -> None:
    small.write_slices(root, {"train": 24, "dev": 8, "test": 8})


def texts(root: Path) -> None:
    """With the two test splits of the recipes."""
    small_texts.write_task(root)
    for path in root.glob("test.*"):
        for year in ("2016", "2017"):
            (root / f"test_{year}{path.name.removeprefix('test')}").write_bytes(path.read_bytes())


def json_lines(name: str) -> Callable[[Path], None]:
    def write(root: Path) -> None:
        for path in (small.QUICKSTART.parent / name).glob("*.gz"):
            small_texts.write_lines(root / path.name, small_texts.lines_of(path)[:LISTS])

    return write


def examples(root: Path) -> None:
    """All sets that recipes name."""
    for name in NAMES:
        recipe = load_recipe(name)
        for each in recipe.data.sets if isinstance(recipe, ClassificationRecipe) else ():
            small_classes.write_set(root, each)


WRITERS = {
    "parse": parses, "translation": texts, "speech": json_lines("asr"), "ranking": json_lines("llm"),
    "classification": examples, "tagging": parses,
}  # fmt: skip


@pytest.fixture(scope="module")
def small_recipe(tmp_path_factory: pytest.TempPathFactory) -> Recipes:
    """A recipe by its name, over little data, with one epoch of every run."""

    @cache
    def root_of(task: str) -> Path:
        root = tmp_path_factory.mktemp(task)
        WRITERS[task](root)
        return root

    def made(name: str) -> TaskRecipe:
        plain = load_recipe(name)
        changes = [f"data.root={root_of(plain.task)}", *SMALL.get(name, []), "training.epochs=1"]
        if len(plain.run_seeds) > 2:
            changes += ["seeds=[1, 2]"]
        if not isinstance(plain, ClassificationRecipe):
            changes += ["significance.samples=100"]
        elif plain.tune is not None:
            changes += ["tune.epochs=2"]
        return load_recipe(name, changes)

    return made


@pytest.fixture(scope="module")
def alone(small_recipe: Recipes, tmp_path_factory: pytest.TempPathFactory) -> Results:
    """What one process leaves of a recipe."""

    @cache
    def left(name: str) -> dict[str, Any]:
        return carried_out(small_recipe(name), tmp_path_factory.mktemp("alone"), None)

    return left


def carried_out(recipe: TaskRecipe, directory: Path, engine: Engine | None) -> dict[str, Any]:
    """The files of a run, without times and the digests of files with times."""
    experiment.run(recipe, directory / "run", engine=engine)
    files = small.files_of(directory / "run")
    timed = {"log.txt", "history.jsonl", "report.html", "metrics.json", "model/model.json"} & set(files)
    kept: dict[str, Any] = {name: data for name, data in files.items() if name not in timed}
    for name in timed:
        if name.endswith(".json"):
            kept[name] = small.without_clock(json.loads(files[name]))
    if "model/model.json" in kept:
        del kept["model/model.json"]["digest"], kept["model/model.json"]["about"]["date"]
    return kept


@pytest.fixture(scope="module")
def processes() -> Iterator[Engine]:
    with open_engine("processes", 2) as engine:
        yield engine


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ONE_EACH])
def test_every_recipe_comes_to_its_end(name: str, alone: Results) -> None:
    assert "metrics.json" in alone(name)


@pytest.mark.parametrize("name", ONE_EACH)
def test_many_leave_what_one_does(
    name: str, small_recipe: Recipes, alone: Results, processes: Engine, tmp_path: Path
) -> None:
    expected = alone(name)  # before, so that this process alone compiles kernels
    assert carried_out(small_recipe(name), tmp_path, processes) == expected
