"""The documentation is true: links, settings, names, commands, snippets, notebooks; and the site is built of it."""

import dataclasses
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import site_tables
import small
from browser import BROWSER, needs_browser
from pages import FENCE, PAGES, ROOT, fences, files, text_of
from pydantic import BaseModel
from reference_labels import DOG
from reference_texts import EIN_MANN, extracted
from rendered_features import names_of, parsed
from site_meanings import options
from site_tables import expanded
from typer.main import get_command

import rerank
from rerank.cli.application import UsageError, app, load_commands
from rerank.contrib.classification.recipe import ClassificationRecipe
from rerank.data.symbols import SymbolTable
from rerank.features.extract import Extractor
from rerank.features.template import SETS, make_template, templates
from rerank.learn.learner import learners
from rerank.metrics.metric import metrics
from rerank.parts import LOSSES
from rerank.readers import reader as reader_module
from rerank.recipes.loading import load_recipe
from rerank.recipes.recipe import Recipe, TextRecipe
from rerank.runs import experiment
from rerank.runs.experiment import stage_lines

load_commands()


def all_fences(language: str) -> Iterator[Any]:
    """Every block of a language in all pages."""
    for page in PAGES:
        for number, body in enumerate(fences(page, language), start=1):
            yield pytest.param(body, id=f"{page}#{number}")


def anchors(page: Path) -> set[str]:
    """What headings can be linked as: lower case, punctuation gone, spaces as hyphens."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", text_of(page)), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


# Links


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_links_lead_somewhere(page: Path) -> None:
    prose = re.sub(r"`[^`\n]*`", "", FENCE.sub("", text_of(page)))
    for link in re.findall(r"\[[^\]]*\]\(([^)\s]+)\)", prose):
        if re.match(r"[a-z]+:", link):
            continue
        target, _, anchor = link.partition("#")
        path = (ROOT / page).parent / target if target else ROOT / page
        assert path.exists(), f"{page}: {link}"
        assert not anchor or anchor in anchors(path), f"{page}: {link}: no such heading"


# Everything that has a name is in its page


def keys(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """The dotted keys of a settings class."""
    for name, entry in model.model_fields.items():
        sections = [part for part in (entry.annotation, *get_args(entry.annotation)) if isinstance(part, type)]
        inner = next((part for part in sections if issubclass(part, BaseModel)), None)
        if inner is None:
            yield prefix + name
        else:
            yield from keys(inner, f"{prefix}{name}.")


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_pages_have_an_end_in_sight(page: Path) -> None:
    """At most 1,500 words besides code and tables, but for the two pages of figures."""
    text = re.sub(r"<!--.*?-->", "", FENCE.sub("", text_of(page)))
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("|") and not line.startswith("    ")]
    assert page.stem in ("results", "papers", "CHANGELOG") or len(" ".join(lines).split()) <= 1500
    assert page.name != "README.md" or page.parent != ROOT or len(page.read_text(encoding="utf-8").split()) <= 500


@cache
def site_text(pages: str) -> str:
    """Pages as the site has them."""
    return expanded("".join(map(text_of, pages.split())), site=True)


SETTINGS = [  # pages of tasks leave out what recipes.md says with the same words
    *(("docs/recipes.md", key) for key in dict.fromkeys([*keys(Recipe), *keys(TextRecipe)])),
    *(
        ("docs/classification.md docs/recipes.md", key)
        for key in keys(ClassificationRecipe)
        if not key.startswith("data.sets.")
    ),
]


def test_every_setting_is_described() -> None:
    assert len(SETTINGS) > 100
    for page, key in SETTINGS:
        text = site_text(page)
        assert re.search(rf"^\| (`[\w.]+`, )*`{re.escape(key)}`[ ,]", text, re.MULTILINE), f"{page}: {key}"


LEARNERS = "docs/learners.md docs/update-rules.md"
FORMATS = "docs/formats.md docs/formats-trees.md docs/formats-texts.md docs/formats-json.md docs/retrieval.md"
PARTS = [
    *(("docs/features.md", name, cls) for name, cls in templates),
    *((LEARNERS, name, cls) for name, cls in learners),
    *((FORMATS, name, cls) for name, cls in reader_module.readers),
    *(("docs/metrics.md docs/retrieval.md docs/tagging.md", name, cls) for name, cls in metrics),
]


@pytest.mark.parametrize(("page", "name", "cls"), PARTS, ids=lambda value: value if isinstance(value, str) else "")
def test_every_part_is_described_with_its_options(page: str, name: str, cls: type) -> None:
    text = site_text(page)
    assert re.search(rf"`{name}`|^###? (.* )?{name}\b", text, re.MULTILINE | re.IGNORECASE) or f"name: {name}" in text
    for option in dataclasses.fields(cls):
        assert re.search(rf"`{option.name}(=\w+)?`", text), option.name


DESCRIBED = [
    *(("docs/learners.md", f"| `{loss}` |") for loss in LOSSES),
    *(("docs/features.md", f"* `{name}` ({len(specs)}): ") for name, specs in SETS.items()),
    *(
        ("docs/formats.md", f"bad {what}: `{reason}`")
        for what, reason in re.findall(r'bad (list|candidate) "([\w ]+)"', reader_module.__doc__ or "")
    ),
]


@pytest.mark.parametrize(("page", "said"), DESCRIBED)
def test_losses_sets_and_reasons_for_bad_lists_are_described(page: str, said: str) -> None:
    assert said in text_of(page)


# Example names are what the templates give

LISTS = (
    "(S1 (S (NP (DT The) (NN woman)) (VP (VBD ate) (NP (DT the) (NN soup)) (PP (IN with) "
    "(NP (NP (DT a) (NN spoon)) (CC and) (NP (DT a) (JJ small) (NN fork))))) (. .)))",
    "(S1 (S (NP (DT The) (NN man)) (VP (VBD said) (SBAR (IN that) (S (NP (NNS dogs)) (VP (VBP bark))))) (. .)))",
    "(S1 (S (NP (DT The) (NN woman)) (VP (VBD ate) (NP (DT the) (NN soup))) (. .)))",
)
EXAMPLES = (ROOT / "docs" / "site" / "features.txt").read_text(encoding="utf-8").splitlines()


def test_every_template_has_an_example() -> None:
    assert {make_template(example.partition("|")[0]).kind for example in EXAMPLES} == set(templates.names())


@pytest.mark.parametrize("example", EXAMPLES)
def test_example_names_are_real(example: str) -> None:
    template = make_template(example.partition("|")[0])
    if template.content != "trees":
        lists = [*extracted([template.name], EIN_MANN), *extracted([template.name], DOG)]
        assert example in {name for features in lists for name in features}
        return
    extractor = Extractor([template], SymbolTable(), centred=False)
    found = set()
    for tree in LISTS:
        trees = parsed([tree, "(X (Y z))"], extractor.symbols)
        found |= set(names_of(extractor.features(trees, np.array([-0.75, 0.0])), extractor))
    assert {name.rstrip() for name in found} >= {example}


# Commands


def commands() -> Iterator[tuple[str, list[str]]]:
    """Every call of the program in a block of shell lines, and where it is."""
    for page in PAGES:
        for line in "".join(fences(page, "sh")).replace(" \\\n", " ").splitlines():
            for call in re.split(r" \| ", line.partition("   #")[0]):
                if call.startswith("rerank "):
                    yield f"{page}: {call}", shlex.split(call)[1:]


def test_code_has_80_columns() -> None:
    blocks = (block for page in PAGES if "docs" in page.parts for kind in ("sh", "python", "py", "yaml")
              for block in fences(page, kind))  # fmt: skip
    long = [line for block in blocks for line in block.splitlines() if len(line) > 80]
    assert long == []


def test_commands_and_their_options_exist() -> None:
    for place, arguments in commands():
        found: Any = get_command(app)
        while hasattr(found, "commands"):
            name, *arguments = arguments
            assert name in found.commands, place
            found = found.commands[name]
        try:
            found.make_context(name, arguments, help_option_names=["-h", "--help"])
        except UsageError as error:
            raise AssertionError(place) from error


# Recipes, results and snippets


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory like a checkout after ``make quickstart``, the model trained on the few lists of dev."""
    directory = tmp_path_factory.mktemp("docs")
    for name in ("data", "recipes"):
        (directory / name).symlink_to(ROOT / name)
    for page in PAGES:
        for name, body in files(page):
            (directory / name).write_text(body, encoding="utf-8")
    small = ["data.train=dev", "training.epochs=2", "features.min_lists=2", "examples=1"]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(directory)
        experiment.run(load_recipe("recipes/quickstart.yaml", small), Path("runs/quickstart"))
    return directory


@pytest.fixture
def few_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first of the lists that come with the program, in place of all."""
    whole = rerank.example
    monkeypatch.setattr(rerank, "example", lambda *names: list(whole(*names))[:80])


@pytest.mark.usefixtures("few_examples")
@pytest.mark.parametrize("page", ["README.md", "docs/python.md", "docs/serving.md"])
def test_snippets_run(page: str, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks marked ``python`` run one after the other; fragments would be marked ``py``."""
    monkeypatch.chdir(workspace)
    monkeypatch.syspath_prepend(workspace)
    names: dict[str, Any] = {"__name__": page}
    bodies = fences(page, "python")
    assert bodies
    for number, body in enumerate(bodies, start=1):
        exec(compile(body, f"{page}#{number}", "exec"), names)


CHECK = """
import sys
from rerank.contrib.classification.recipe import ClassificationRecipe
from rerank.extraction.kinds import content_of
from rerank.storage.streams import Inputs
from rerank.runs.experiment import check
from rerank.recipes.loading import load_recipe
from rerank.contrib.structures.recipe import TaggingRecipe
from rerank.recipes.recipe import TextRecipe
for path in sys.argv[1:]:
    recipe = load_recipe(path, ["data.root=data/quickstart"])
    if isinstance(recipe, ClassificationRecipe):
        recipe.data.named_sets("one"), recipe.expand()  # the files are the reader's own
    elif isinstance(recipe, TaggingRecipe):
        recipe.expand()
    elif isinstance(recipe, TextRecipe):
        content_of(recipe), recipe.expand()
    else:
        check(recipe, Inputs())
"""
EXTEND = """
from rerank.extraction.extraction import extract_training
from rerank.recipes.recipe import Recipe

features = {"set": None, "templates": ["mytemplates:Nesting(k=3)"], "user": {"nouns": "myfeatures:noun_runs"}}
data = {"root": "data/quickstart", "train": "dev"}
extracted, table = extract_training(Recipe.model_validate({"name": "own", "data": data, "features": features}))
names = {table.name(column) for column in range(table.width)}
assert {"nouns|longest", "nouns|NP 2", "Nesting(k=3)|NP 2"} <= names, names
"""


def in_workspace(workspace: Path, code: str, *arguments: str) -> None:
    """Run ``code`` in a process of its own: the modules of the pages change tables of the program."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(workspace)])}
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, cwd=workspace, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_every_file_of_the_examples_is_on_a_page() -> None:
    shown = {name for page in PAGES for name, _ in files(page)}
    assert {path.name for path in (ROOT / "docs" / "examples").glob("*.py")} <= shown


def test_recipes_in_the_pages_are_valid(workspace: Path) -> None:
    paths = []
    for number, entry in enumerate(all_fences("yaml")):
        path = workspace / f"recipe{number}.yaml"
        path.write_text(entry.values[0], encoding="utf-8")
        paths.append(path.name)
    assert len(paths) > 5
    in_workspace(workspace, CHECK, *paths)


OWN_LEARNER = """
from pathlib import Path
from rerank.recipes.loading import load_recipe
from rerank.runs import experiment

small = ["data.train=dev", "training.epochs=2", "features.min_lists=2", "examples=0", "runs=[]", "training.vote=true"]
learner = "learner={name: 'mylearner:Harmonic', decay: 0.5}"
metrics = experiment.run(load_recipe("recipes/quickstart.yaml", [*small, learner]), Path("runs/own"))
test = metrics["splits"]["test"]
assert test["average"]["f1"] > test["base"]["f1"], test
assert "voted" in test, test

import numpy as np
from myclassifier import HarmonicClassifier

X = np.random.default_rng(1).normal(size=(50, 3))
model = HarmonicClassifier(decay=0.5, random_state=1).fit(X, X[:, 0] > X[:, 1])
assert model.score(X, X[:, 0] > X[:, 1]) > 0.9
"""


OWN_METRIC = """
import json
from rerank.runs.report.results import headline, results_table
from rerank.runs.report.table import plain_text

small = ["data.train=dev", "data.dev=null", "significance.samples=100", "training.epochs=2"]
for metric in ("mymetric:Exact",):
    metrics = experiment.run(load_recipe("asr", [*small, f"metric={metric}"]), Path("runs/metric"))
    assert metrics["measure"] == "exact" and metrics["metric"] == "exact|lower:False", metrics["metric"]
    assert json.loads(Path("runs/metric/metrics.json").read_text())["own_measure"]["heading"] == "exact"
    assert "reaches exact " in headline(metrics)["sentence"]
    base = metrics["splits"]["test"]["base"]["exact"]
    table = plain_text(results_table(metrics, "test").rich())
    page = Path("runs/metric/report.html").read_text()
    assert 0 < base < 1 and f"{100 * base:.2f}" in table and " exact " in table, table
    assert '<th scope="col" class="n">exact</th>' in page and "reaches exact " in page and "Base exact" in page
"""


def test_parts_of_ones_own_work_as_described(workspace: Path) -> None:
    in_workspace(workspace, EXTEND + OWN_LEARNER + OWN_METRIC)


def test_what_a_run_leaves_is_described(workspace: Path) -> None:
    text, results = text_of("docs/run-files.md"), workspace / "runs" / "quickstart"
    for path in results.iterdir():
        assert f"`{path.name}" in text, path.name
    found = json.loads((results / "metrics.json").read_text(encoding="utf-8"))
    epoch, stages = small.epoch_lines(results / "history.jsonl")[0], stage_lines(results / "history.jsonl")
    for key in {key for line in stages for key in line}:
        assert f"`{key}`" in text_of("docs/operation.md"), key
    assert {line["stage"] for line in stages} == set(found["stages"])
    corpus = found["corpora"]["test"]
    described: list[dict[str, Any]] = [epoch, found["training"], found["splits"]["test"], found["runs"][0]]
    described += [found["splits"]["test"]["base"], found["significance"]["test"], found["features"]]
    for key in {key for mapping in described for key in mapping} | set(corpus) | set(corpus["statistics"]):
        assert f"`{key}`" in text or key == "signature", key
    for key in found:
        assert re.search(rf"^\* `.*{key}[.`]", text, re.MULTILINE), key


def test_files_of_models_are_described(workspace: Path) -> None:
    text = text_of("docs/operation.md") + text_of("docs/models.md")
    for path in (workspace / "runs" / "quickstart" / "model").iterdir():
        general = re.sub(r"^state_\w+", "state_*", path.name)
        assert f"`{general}`" in text, path.name


def test_figures_are_drawn_from_the_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "docs")
    import draw_results

    for name, drawn in draw_results.figures().items():
        assert (ROOT / "docs" / name).read_text(encoding="utf-8") == drawn, f"run docs/draw_results.py: {name}"
    tables = text_of("docs/results.md").partition("\n## Reranking GUM")[2] + text_of("docs/structures.md")
    for task, (first, other, own, *_) in draw_results.table("At a glance").items():
        assert not task or {other, own} <= set(re.findall(r"\d*\.\d+", tables)), task
        assert not task or first == "86.22" or first in tables, task  # of tags: of no table


TOOLS = ("material", "mkdocstrings", "mkdocs_jupyter", "latex2mathml")


@pytest.mark.parametrize("page", [page for page in PAGES if page.parts[0] == "docs"], ids=str)
def test_tables_in_pages_are_what_the_code_says(page: Path) -> None:
    assert site_tables.expanded(text_of(page)) == text_of(page), "run python docs/site/site_tables.py"


@pytest.mark.parametrize("kind", list(site_tables.REGISTRIES))
def test_every_option_of_a_part_has_a_meaning(kind: str) -> None:
    for name, part in site_tables.REGISTRIES[kind]:
        for option in options(part, site_tables.known()):
            assert option.values, (name, option)
            assert option.meaning or kind == "template", (name, option)  # templates say it in their sentence


@pytest.mark.parametrize("page", ["docs/recipes.md", "docs/classification.md"])
def test_every_setting_has_values_and_a_meaning(page: str) -> None:
    rows = [row for row in site_tables.expanded(text_of(page), site=True).splitlines() if row.startswith("| `")]
    assert len(rows) > 20
    for row in rows:
        assert all(cell.strip() for number, cell in enumerate(row.split(" | ")) if number != 2), row


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built without a warning."""
    if not all(map(find_spec, TOOLS)):
        pytest.skip("mkdocs is not installed: pip install -e '.[docs]'")
    place = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(place)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "RUN_NOTEBOOKS": "false"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr, done.stderr
    return place


def test_the_site_has_its_pages_and_an_index_of_words(site: Path) -> None:
    assert "voted" in (site / "search" / "search_index.json").read_text(encoding="utf-8")
    assert "training.epochs" in (site / "recipes" / "index.html").read_text(encoding="utf-8")
    interface = (site / "api" / "index.html").read_text(encoding="utf-8")
    assert all(f'id="rerank.{name}"' in interface for name in listed())


def listed() -> list[str]:
    """The names on the page of the Python API."""
    return re.findall(r"^ +- (\w+)$", text_of("docs/api.md"), re.MULTILINE)


def test_every_public_name_is_on_the_page_of_the_interface() -> None:
    assert {*listed(), "Tagger", "tagger", "__version__"} == set(rerank.__all__)  # taggers have a page of their own


@needs_browser
@pytest.mark.parametrize("page", ["index", "start/index", "best-of-n/index", "results/index", "learners/index"])
def test_pages_open_in_a_browser(site: Path, page: str) -> None:
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=10000", "--dump-dom"]
    address = (site / f"{page}.html").as_uri()
    seen = subprocess.run([str(BROWSER), *flags, address], capture_output=True, timeout=300, check=True).stdout.decode()
    assert "<h1" in seen.partition("<article")[2]


NOTEBOOKS = ROOT / "docs" / "notebooks"


def cells(name: str) -> list[str]:
    """The code of a notebook, cell by cell."""
    held = json.loads((NOTEBOOKS / f"{name}.ipynb").read_text(encoding="utf-8"))
    return ["".join(cell["source"]) for cell in held["cells"] if cell["cell_type"] == "code"]


@pytest.mark.usefixtures("few_examples")
@pytest.mark.parametrize(
    ("name", "measure", "better"), [("parses", "f1", 1), ("transcripts", "wer", -1), ("best-of-n", "gain", 1)]
)
def test_notebooks_run(name: str, measure: str, better: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": name}
    for number, code in enumerate(cells(name), start=1):
        fewer = code.replace("[50, 100, 200, 400]", "[50]")  # a point of a curve is drawn as others are
        exec(compile(fewer, f"{name}.ipynb#{number}", "exec"), names)
    scores = {choice: report[measure] for choice, report in names["result"].scores.items()}
    assert better * (scores["choice"] - scores["base"]) > 0, scores


def test_all_notebooks_are_tried_and_kept_without_output() -> None:
    paths = list(NOTEBOOKS.glob("*.ipynb"))
    assert {path.stem for path in paths} == {"parses", "transcripts", "best-of-n"}
    for path in paths:
        held = json.loads(path.read_text(encoding="utf-8"))
        assert all(not cell["outputs"] for cell in held["cells"] if cell["cell_type"] == "code"), path
