"""From a recipe to artefacts: what a run leaves, that it can be repeated, and odd recipes."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import small

from rerank.base.errors import DataError, ModelError, RecipeError
from rerank.data.corpus import Corpus
from rerank.extraction.content import Content
from rerank.learn.epoch import Votes
from rerank.learn.scoring import best
from rerank.learn.voting import vote
from rerank.metrics.metric import chosen_rows
from rerank.models.model import Model
from rerank.recipes.loading import load_recipe
from rerank.recipes.recipe import Recipe
from rerank.runs import experiment
from rerank.runs.compared import Compared, compare_runs
from rerank.runs.corpora import Data
from rerank.runs.list_kind import ListKind


@pytest.fixture
def data(small_data, tmp_path):
    """Files that a test may change."""
    return shutil.copytree(small_data, tmp_path / "data")


@pytest.fixture(scope="module")
def trained(small_data, workspace):
    """The output of a run up to its model, and its metrics; tests do not change it."""
    return workspace / "trained", experiment.run(small.recipe(small_data), workspace / "trained", tests=False)


def test_what_a_run_leaves(small_run):
    assert sorted(path.name for path in small_run.iterdir()) == [
        ".rerank-run", "history.jsonl", "log.txt", "metrics.json", "model", "predictions", "recipe.yaml", "report.html"
    ]  # fmt: skip
    assert load_recipe(small_run / "recipe.yaml").as_yaml() == (small_run / "recipe.yaml").read_text()
    page = (small_run / "report.html").read_text()
    assert "<html" in page[:200].lower()
    for part in ("Answers compared with base candidates", "Strongest weights"):
        assert part in page


def test_the_page_has_the_lists_that_predictions_were_written_of(small_data, workspace, monkeypatch):
    """No list is read for the page alone."""
    whole = ListKind.report

    def refuse(*_):
        raise AssertionError("a list is read again")

    def report(steps, metrics, seconds):
        monkeypatch.setattr(Content, "read_stretches", refuse)
        whole(steps, metrics, seconds)

    monkeypatch.setattr(ListKind, "report", report)
    recipe = small.recipe(small_data, examples=3)
    experiment.run(recipe, workspace / "page-only")
    page = (workspace / "page-only" / "report.html").read_text()
    assert page.count("<summary>test-") == sum(page.count(f">Now {side}</h2>") for side in ("better", "worse")) * 3 > 0


def test_history_has_a_line_an_epoch(small_run):
    lines = small.epoch_lines(small_run / "history.jsonl")
    assert [(line["run"], line["epoch"]) for line in lines] == [
        (run, epoch) for run in ("RDA", "perceptron") for epoch in (1, 2, 3)
    ]
    metrics = json.loads((small_run / "metrics.json").read_text())
    for run in metrics["runs"]:
        own = [line for line in lines if line["run"] == run["name"]]
        assert [line["mistakes"] for line in own] == run["training"]["mistakes"]
        assert max(line["dev"] for line in own) == run["dev"] == own[run["training"]["epochs"] - 1]["dev"]
        assert [line["epoch"] for line in own if "train" in line] == [run["training"]["epochs"]]
        assert 0 <= own[run["training"]["epochs"] - 1]["train"] <= 1
        assert {line["seed"] for line in own} == {1}


def corpus_of(run: Path, split: str) -> tuple[Recipe, Corpus]:
    recipe = load_recipe(run / "recipe.yaml")
    return recipe, Data.load(recipe, run, (split,)).others[split].corpus


@pytest.mark.parametrize("split", ["train", "dev"])
def test_resume_refuses_other_settings_and_trains_again_on_other_data(data, workspace, split):
    recipe, directory = small.recipe(data), workspace / f"changed {split}"
    experiment.run(recipe, directory, tests=False)
    before = small.files_of(directory)
    for change in ({"training": {"epochs": 3}}, {"seed": 2}):
        with pytest.raises(RecipeError, match="holds a run with other settings"):
            experiment.run(small.recipe(data, **change), directory, resume=True)
    assert small.files_of(directory) == before
    fewer = small.lists_of(data / f"{split}.nbest.gz")[:-20]
    small.write_lists(data / f"{split}.nbest.gz", fewer)
    small.write_golds(data / f"{split}.gold.gz", small.golds_of(data / f"{split}.gold.gz")[: len(fewer)])
    again = experiment.run(recipe, directory, resume=True)
    fresh = experiment.run(recipe, workspace / f"fresh {split}")
    assert small.without_clock(again["runs"]) == small.without_clock(fresh["runs"])


def test_a_damaged_stored_run_is_trained_again(small_data, trained, workspace, caplog):
    directory = shutil.copytree(trained[0], workspace / "damaged")
    file = directory / ".runs" / "0000.npz"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    (directory / "metrics.json").unlink()
    again = experiment.run(small.recipe(small_data), directory, resume=True, tests=False)
    assert "0000.npz cannot be read" in caplog.text
    assert small.without_clock(again["runs"]) == small.without_clock(trained[1]["runs"])


def test_selection_trains_on_fewer_columns(small_data, trained, workspace):
    first = {"learner": {"name": "vrda", "l1": 0.3}}
    chosen = experiment.run(small.recipe(small_data, training={"epochs": 2, "select": first}), workspace / "select")
    limited = small.recipe(small_data, training={"epochs": 2, "select": first | {"keep": 20}})
    few = experiment.run(limited, workspace / "few")
    counts = [each["training"]["nonzero_weights"] for each in (trained[1], chosen, few)]
    assert counts[0] > counts[1] > counts[2]
    assert 0 < counts[2] <= few["training"]["selected_columns"] == 20
    model, corpus = Model.load(workspace / "few" / "model"), corpus_of(workspace / "few", "test")[1]
    voted = best(corpus, vote(Votes(**model.votes), corpus))
    stored = Compared.of_run(workspace / "few", "test")
    assert np.array_equal(chosen_rows(corpus.stats, voted), stored.rows["voted"])
    assert np.count_nonzero(model.weights["average"].w) <= 20


@pytest.mark.parametrize("base", [1, "auto"])
def test_training_goes_on_where_a_model_stopped(small_data, workspace, base):
    options = {"data": {"dev": None}, "learner": {"name": "perceptron", "base": base}, "seed": 4}
    vote = {"vote": True}
    start = experiment.run(small.recipe(small_data, **options, training={"epochs": 2, **vote}), workspace / "start")
    assert start["training"]["epochs"] == 2  # it is the last epoch that the model is of
    warm = {"epochs": 1, "start": str(workspace / "start" / "model"), **vote}
    on = experiment.run(small.recipe(small_data, **options, training=warm), workspace / "on")
    whole = experiment.run(small.recipe(small_data, **options, training={"epochs": 3, **vote}), workspace / "three")
    assert on["training"]["base"] == whole["training"]["base"]
    assert on["training"]["epochs"] == 3
    assert on["splits"]["test"]["average"] == whole["splits"]["test"]["average"]
    models = [Model.load(workspace / name / "model") for name in ("on", "three")]
    assert np.array_equal(models[0].weights["average"].w, models[1].weights["average"].w)
    # The votes of the first epochs are not there: better no voted predictor than one that lacks them.
    assert "voted" in whole["splits"]["test"]
    assert "voted" not in on["splits"]["test"]
    assert not models[0].votes


def test_models_that_training_cannot_start_from(small_data, trained, workspace):
    model = str(trained[0] / "model")
    for change, kind, hint in (
        ({"learner": {"name": "vrda"}, "training": {"start": model}}, DataError, "another learner"),
        ({"features": {"min_lists": 3}, "training": {"start": model}}, DataError, "feature table is another"),
        ({"training": {"start": f"{model}s"}}, ModelError, "no such directory"),
        ({"training": {"start": model, "select": {"learner": {"name": "vrda"}}}}, RecipeError, "leave out"),
    ):
        with pytest.raises(kind, match=hint):
            experiment.run(small.recipe(small_data, **change), workspace / "refused")


def test_free_ties(small_data, trained, workspace):
    free = experiment.run(small.recipe(small_data, oracle={"ties": "any"}), workspace / "any")
    assert free["training"]["mistakes"][0] < trained[1]["training"]["mistakes"][0]


def test_no_dev_split(small_data, workspace):
    runs = [
        {"name": name, "set": {"learner": {"name": "vrda", "base": base}}} for name, base in (("one", 1), ("two", 2))
    ]
    recipe = small.recipe(small_data, data={"dev": None}, runs=runs, training={"epochs": 3, "patience": 1})
    metrics = experiment.run(recipe, workspace / "no dev")
    assert metrics["dev_split"] is None
    assert metrics["training"]["base"]["beaten"] is None
    assert metrics["chosen"]["name"] == "one"  # nothing to choose by: the first
    assert [run["dev"] for run in metrics["runs"]] == [None, None]
    assert metrics["training"]["epochs"] == 3  # and the last epoch


def test_the_training_split_as_a_test(small_data, workspace):
    metrics = experiment.run(small.recipe(small_data, data={"tests": ["train"]}), workspace / "train")
    kept = small.epoch_lines(workspace / "train" / "history.jsonl")[metrics["training"]["epochs"] - 1]
    assert metrics["splits"]["train"]["average"]["f1"] == kept["train"]


def test_no_test_split(small_data, workspace):
    metrics = experiment.run(small.recipe(small_data, data={"tests": []}), workspace / "none")
    assert metrics["splits"]["train"]["base"]["f1"] == metrics["corpora"]["train"]["statistics"]["base"]["f1"]
    assert metrics["splits"]["train"].keys() >= {"average", "voted", "mbr", "fuse"}  # as dev tuned them
    assert (workspace / "none" / "report.html").exists()


def only_first(data: Path, split: str) -> None:
    """Leave the first candidate of every list."""
    shortened = []
    for text in small.lists_of(data / f"{split}.nbest.gz"):
        head, score, tree, *_ = text.split("\n")
        shortened.append(f"1\t{head.split(None, 1)[1]}\n{score}\n{tree}")
    small.write_lists(data / f"{split}.nbest.gz", shortened)


@pytest.mark.parametrize("split", ["train", "test"])
def test_a_split_of_one_candidate_lists(data, workspace, split):
    only_first(data, split)
    recipe = small.recipe(data)
    if split == "train":
        with pytest.raises(RecipeError, match="nothing that varies within any of the 150 training lists"):
            experiment.run(recipe, workspace / f"single {split}")
        recipe = small.recipe(data, features={"set": "base", "templates": []})
    metrics = experiment.run(recipe, workspace / f"single {split}")
    if split == "train":
        assert (metrics["corpora"]["train"]["columns"], metrics["training"]["mistakes"]) == (0, [0, 0])
        assert metrics["splits"]["test"]["average"] == metrics["splits"]["test"]["base"]
    if split == "test":
        reports = metrics["splits"]["test"]
        assert reports["average"] == reports["voted"] == reports["base"] == reports["oracle"]
        assert metrics["significance"]["test"]["average_vs_base"]["p"] == 1.0


def test_comparing_runs(small_run, small_data, workspace):
    experiment.run(small.recipe(small_data, learner={"name": "vrda"}, training={"epochs": 1}), workspace / "weak")
    ((split, own, _),) = compare_runs(
        small_run, small_run, "average", test="approximate_randomization", samples=100, seed=1
    )
    assert (split, own.test_between("A", "B").difference, own.test_between("A", "B").p) == ("test", 0.0, 1.0)
    ((_, found, predictors),) = compare_runs(
        small_run, workspace / "weak", "average", test="paired_bootstrap", samples=100, seed=1
    )
    assert predictors == ("average", "average")
    assert found.test_between("A", "B").difference == pytest.approx(found.score("A") - found.score("B"))
    assert found.score("A") == small.results(small_run)["splits"]["test"]["average"]["f1"]
    assert found.score("B") == small.results(workspace / "weak")["splits"]["test"]["average"]["f1"]


def test_runs_that_cannot_be_compared(small_run, small_data, data, workspace):
    small.write_lists(data / "test.nbest.gz", small.lists_of(data / "test.nbest.gz")[:-1])
    small.write_golds(data / "test.gold.gz", small.golds_of(data / "test.gold.gz")[:-1])
    experiment.run(small.recipe(data), workspace / "shorter")
    experiment.run(small.recipe(small_data, data={"tests": ["dev"]}), workspace / "on dev")
    experiment.run(small.recipe(small_data, metric={"punctuation": "own"}), workspace / "measured")
    quiet = {"training": {"epochs": 1, "vote": False}}
    experiment.run(small.recipe(small_data, **quiet), workspace / "no votes")
    for name, predictor, hint in (
        ("shorter", "average", "test lists, but the other run has"),
        ("on dev", "average", "/on dev: the runs share no test split"),
        ("measured", "average", "scored differently"),
        ("no votes", "voted", "no predictor 'voted'.*training.vote: true"),
        ("nowhere", "average", "no results of a run here"),
    ):
        with pytest.raises(DataError, match=hint):
            compare_runs(small_run, workspace / name, predictor, test="approximate_randomization", samples=100, seed=1)


def test_runs_over_other_lists_are_not_compared(small_run, tmp_path):
    shutil.copytree(small_run, tmp_path / "run")
    file = tmp_path / "run" / "predictions" / "test.selections.npz"
    stored = Compared.of_run(tmp_path / "run", "test")
    replace(stored, ids=[f"other {name}" for name in stored.ids]).save(file)
    with pytest.raises(DataError, match=f"the list 'other {stored.ids[0]}' where the other run has "):
        compare_runs(small_run, tmp_path / "run", "average")
    replace(stored, reference=stored.reference + 1).save(file)
    with pytest.raises(DataError, match="differ in their references from those of the other run"):
        compare_runs(small_run, tmp_path / "run", "average")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("metrics.json", b"[]", "no results of a run here"),
        ("metrics.json", b'{"splits": 3}', "no results of a run here"),
        ("metrics.json", b"{", "no results of a run here"),
        ("predictions/test.selections.npz", b"", r"selections.npz: damaged"),
        ("predictions/test.selections.npz", b"PK", r"selections.npz: damaged"),
    ],
)
def test_damaged_results(small_run, tmp_path, name, content, message):
    shutil.copytree(small_run, tmp_path / "run")
    (tmp_path / "run" / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        compare_runs(small_run, tmp_path / "run", "average", test="approximate_randomization", samples=100, seed=1)
