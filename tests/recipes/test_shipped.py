"""Recipes that come with the program, those of papers among them: each comes to its end, by any engine."""

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pages
import pytest
import small
import small_classes
import small_texts
from pairs import read_pairs

from rerank.base.errors import DataError
from rerank.contrib.classification.kind import check_parts
from rerank.contrib.classification.recipe import ClassificationRecipe
from rerank.contrib.structures.recipe import TaggingRecipe
from rerank.data.symbols import SymbolTable
from rerank.pool import Engine, open_engine
from rerank.readers.trees.charniak import CharniakReader
from rerank.recipes.loading import about_recipe, find_recipe, load_recipe, shipped_recipes
from rerank.recipes.recipe import ListRecipe, TaskRecipe
from rerank.runs import experiment
from rerank.runs.experiment import check
from rerank.storage.streams import Inputs

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


SCRIPT = Path(__file__).parents[2] / "recipes" / "jackknife.py"
FLAT = "(S1 (S (NP (PRP I))\n  (VP (VBD saw) (NP (DT a) (NN man)) (PP (IN with) (NP (NNS dogs))))))"
NESTED = "(S1 (S (NP (PRP I))\n  (VP (VBD saw) (NP (NP (DT a) (NN boat)) (PP (IN with) (NP (NNS dogs)))))))"
PLAIN = "(S1 (S (NP (PRP I))\n  (VP (VBD saw) (NP (DT a) (NN boat)))))"
TREES = FLAT, PLAIN, NESTED, PLAIN.replace("boat", "man")


def jackknife(*words: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, str(SCRIPT), *words], capture_output=True, check=False)


@pytest.fixture
def folds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two folds of two sentences each, with the lists that a parser makes of them."""
    monkeypatch.chdir(tmp_path)
    Path("parse_with_nltk.py").write_text(dict(pages.files("docs/making-lists/parses.md"))["parse_with_nltk.py"])
    Path("treebank.mrg").write_text("\n".join(TREES))
    assert jackknife("split", "2", "folds", "treebank.mrg").returncode == 0
    (loop,) = (body for body in pages.fences("docs/jackknifing.md", "sh") if "for fold in" in body)
    done = subprocess.run(["sh", "-c", loop.replace("python ", f"{shlex.quote(sys.executable)} ")], check=False)
    assert done.returncode == 0
    return tmp_path / "folds"


def test_lists_come_back_in_the_order_of_the_treebank_and_exchanged_files_are_refused(folds: Path) -> None:
    golds, trained = ([(folds / f"0{k}" / name).read_text() for k in (0, 1)] for name in ("gold.mrg", "train.mrg"))
    assert golds == trained[::-1]
    assert [line for text in golds for line in text.splitlines()] == [" ".join(tree.split()) for tree in TREES]
    assert (folds / "01" / "sentences.txt").read_text() == "I saw a boat with dogs\nI saw a man\n"
    done = jackknife("join", "folds", "folds/00/lists", "folds/01/lists")
    assert done.returncode == 0, done.stderr
    Path("joined").write_bytes(done.stdout)
    pairs = list(read_pairs(CharniakReader(), "joined", "treebank.mrg", SymbolTable()))
    assert [nbest.id for nbest, *_ in pairs] == ["0", "1", "2", "3"]
    assert [nbest.texts[0].count(b"(PP") for nbest, *_ in pairs] == [1, 0, 1, 0]
    assert [nbest.texts[0].count(b"(NP (NP") for nbest, *_ in pairs] == [1, 0, 0, 0]  # what the other fold has taught
    done = jackknife("join", "folds", "folds/01/lists", "folds/00/lists")
    assert done.returncode == 1
    assert b"folds/01/lists:1: not the list of its sentence, 'I saw a man with dogs'" in done.stderr


Recipes = Callable[[str], TaskRecipe]
Results = Callable[[str], dict[str, Any]]
ONE_EACH = ["quickstart", "translation", "asr", "llm", "papers/arow-figure2"]  # of every kind of data
LISTS = 16  # of a split of lists in JSON lines
# What would take time, and says nothing about engines.
TUNED = ("figure5", "figures3-4", "table2", "table3", "table4", "table5")
OF_SECTIONS = (  # the recipe has a hundred
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
    "papers/cw-figure6": ["data.sets=[digits_09]", *OF_SECTIONS],
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
