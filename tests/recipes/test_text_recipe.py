"""Recipes over texts: what a task brings, which files a split has, and what is refused."""

from pathlib import Path
from typing import Any

import pytest

from rerank.base.errors import ModelError, RecipeError
from rerank.extraction.kinds import content_of, metric_of
from rerank.features.template import SETS
from rerank.metrics.text import TextMetric
from rerank.models.model import Model, recipe_of
from rerank.recipes.loading import load_recipe
from rerank.recipes.recipe import METRICS, TASKS, TextRecipe
from rerank.runs.combination import make_mert


def recipe(**settings: Any) -> TextRecipe:
    return TextRecipe.model_validate({"name": "texts", **settings})


def load(tmp_path: Path, text: str, *overrides: str) -> TextRecipe:
    path = tmp_path / "texts.yaml"
    path.write_text(text)
    found = load_recipe(path, list(overrides))
    assert isinstance(found, TextRecipe)
    return found


@pytest.mark.parametrize("task", METRICS)
def test_a_task_brings_metric_and_templates(task: str, tmp_path: Path) -> None:
    found = load(tmp_path, f"task: {task}")
    assert (found.task, found.metric["name"], found.features.set) == (
        task,
        METRICS[task],
        TASKS[task]["features"]["set"],
    )
    assert isinstance(metric_of(found), TextMetric)
    every = SETS["text" if found.features.set == "auto" else found.features.set or ""]
    every = [*every, *TASKS[task]["features"].get("templates", [])]
    assert content_of(found).names == content_of(recipe(task=task, features={"set": None, "templates": every})).names


@pytest.mark.parametrize("task", METRICS)
def test_what_a_recipe_says_comes_first(task: str) -> None:
    found = recipe(
        task=task, metric={"name": "chrf"}, features={"set": None, "templates": ["TargetNGram"], "min_lists": 3}
    )
    assert (found.metric["name"], found.features.set, found.features.min_lists) == ("chrf", None, 3)
    options = recipe(task="translation", metric={"smoothing": "exp"})
    assert options.metric == {"name": "bleu", "smoothing": "exp"}


@pytest.mark.parametrize("task", METRICS)
def test_the_base_score_alone_has_no_templates_of_the_task(task: str) -> None:
    assert content_of(recipe(task=task, features="base")).names == []
    assert recipe(task=task, features={"set": "base", "templates": ["Copy"]}).features.templates == ("Copy",)


def test_a_resolved_recipe_is_itself(tmp_path: Path) -> None:
    first = load(tmp_path, "task: speech\nmert: {split: dev, settings: {restarts: 3}}\ndata: {references: [a, b]}")
    assert load(tmp_path, first.as_yaml()) == first


def test_files_of_a_split() -> None:
    data = recipe(data={"root": "lists", "references": "{root}/{split}.ref"}).data
    assert data.files("dev") == {
        "nbest": ["lists/dev.nbest.gz"],
        "sources": ["lists/dev.src.gz"],
        "references": ["lists/dev.ref"],
    }
    own: dict[str, Any] = {"sources": None, "references": None, "nbest": "{split}.a,{split}.b"}
    assert recipe(data=own).data.files("test") == {"nbest": ["test.a,test.b"]}
    own["reader"] = {"name": "merged", "of": {"name": "moses"}}
    assert recipe(data=own).data.files("test") == {"nbest": ["test.a", "test.b"]}
    several = recipe(data={"references": ["{split}.0", "{split}.1"]}).data
    assert several.files("x")["references"] == ["x.0", "x.1"]


def test_files_of_a_command_are_taken_literally() -> None:
    data = recipe().data.of_files("a{split}.gz", "b{root}.gz", None)
    assert data.files("any") == {"nbest": ["a{split}.gz"], "references": ["b{root}.gz"]}
    assert recipe().data.of_files("a", "b", "c{0}").files("")["sources"] == ["c{0}"]


def test_the_split_of_mert_is_read_and_its_predictor_is_the_recipes() -> None:
    assert recipe().splits == ("train", "dev", "test")
    assert recipe(mert={}).splits == ("train", "dev", "test", "tune")
    assert recipe(mert={"split": "dev"}).splits == ("train", "dev", "test")
    assert (recipe().predictor, recipe(mert={}).predictor) == ("average", "mert")
    assert recipe(training={"predictor": "last"}).predictor == "last"


def test_mert_has_the_recipes_seed_unless_it_has_its_own() -> None:
    assert make_mert(recipe(seed=7, mert={})).seed == 7
    assert make_mert(recipe(seed=7, mert={"settings": {"seed": 3, "patience": 2}})).seed == 3


@pytest.mark.parametrize(("settings", "message"), [
    ({"metric": {"name": "parseval"}}, "does not measure texts"),
    ({"features": {"set": "cj2005"}}, "looks at trees"),
    ({"features": {"set": None}}, "no template"),
    ({"features": {"set": "dtpm"}}, "dptm"),
])  # fmt: skip
def test_parts_of_trees_are_not_for_texts(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        content_of(recipe(**settings))


def test_models_know_their_task() -> None:
    def model(settings: dict[str, Any]) -> Model:
        return Model(settings, {}, None, {}, {}, {})  # type: ignore[arg-type]

    assert isinstance(recipe_of(model(recipe(task="speech").model_dump(mode="json"))), TextRecipe)
    with pytest.raises(ModelError, match="classification"):
        recipe_of(model({"task": "classification"}))


@pytest.mark.parametrize("nbest", ["{root}/{split}.jsonl", "{split}.json", "{root}/{split}.jsonl.gz"])
def test_files_of_json_are_read_as_such_and_hold_what_no_other_file_is_named_for(nbest: str) -> None:
    data = recipe(task="ranking", data={"nbest": nbest, "reader": {"base": "rm"}, "answer": "boxed"}).data
    assert data.reader == {"answer": "boxed", "name": "jsonl", "base": "rm"}
    assert (data.sources, data.references) == (None, None)
    assert recipe(data=data.model_dump(mode="json")).data == data
    data = recipe(data={"nbest": nbest, "sources": "s", "references": "r"}).data
    assert (data.reader, data.sources, data.references) == ({"name": "jsonl"}, "s", ("r",))
    data = recipe(data={"nbest": nbest, "reader": "kaldi", "answer": "boxed"}).data
    assert (data.reader, data.sources) == ({"name": "kaldi"}, "{root}/{split}.src.gz")


def test_other_files_are_those_of_moses() -> None:
    for nbest in ({}, {"nbest": "{split}.jsonl/list"}, {"nbest": "{split}.json5"}):
        assert recipe(data=nbest).data.reader == {"name": "moses"}
