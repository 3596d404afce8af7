"""Recipes over texts: what a task brings and what is refused; what a run leaves, MERT, pairs and gains, settings."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small
import small_texts

from rerank.base.errors import ModelError, RecipeError
from rerank.extraction.kinds import content_of, metric_of
from rerank.features.table import FeatureTable
from rerank.features.template import SETS
from rerank.learn.learner import Weights
from rerank.learn.scoring import best, scores
from rerank.metrics.metric import chosen_rows
from rerank.metrics.text import TextMetric
from rerank.models.model import Model, recipe_of
from rerank.models.scorer import Scorer
from rerank.readers.moses import Moses
from rerank.readers.reader import SkipCount
from rerank.recipes.loading import load_recipe
from rerank.recipes.recipe import METRICS, TASKS, TextRecipe
from rerank.runs import experiment
from rerank.runs.combination import make_mert
from rerank.runs.corpora import Data

MERT = {"mert": {"split": "tune", "settings": {"restarts": 2}}}


def standard_weights(weights: Weights, table: FeatureTable) -> Weights:
    """Those of standardised dense columns."""
    w = weights.w.copy()
    w[: table.free] /= table.scale
    return weights._replace(w=w)


@pytest.fixture(scope="module")
def tuned(texts_data: Path, workspace: Path) -> Path:
    """The output of a run with MERT; tests do not change it."""
    experiment.run(small_texts.recipe(texts_data, metrics=["ter"], **MERT), workspace / "texts" / "tuned")
    return workspace / "texts" / "tuned"


def run(root: Path, workspace: Path, name: str, **changes: Any) -> dict[str, Any]:
    return experiment.run(small_texts.recipe(root, **changes), workspace / "texts" / name)


def corpora(root: Path, workspace: Path, *splits: str, **changes: Any) -> Data:
    return Data.load(small_texts.recipe(root, **changes), workspace / "texts" / "any", splits)


def test_predictions_are_the_lists_in_the_order_of_the_tuned_model(tuned: Path, texts_data: Path) -> None:
    old = {nbest.id: nbest for nbest in Moses().read(str(texts_data / "test.nbest.gz"))}
    model = Scorer(Model.load(tuned / "model"))
    assert (model.predictor, model.ranked_by) == ("mbr", "mert")
    for nbest in Moses().read(str(tuned / "predictions" / "test.nbest.gz")):
        given = old[nbest.id]
        assert sorted(nbest.texts) == sorted(given.texts)
        assert list(nbest.base[1:]) == sorted(nbest.base[1:], reverse=True)
    opened = list(model.read(Moses(), str(texts_data / "test.nbest.gz"), SkipCount(), texts_data / "test.src.gz"))
    assert len(opened) == small_texts.SIZES["test"]


def test_mert_scores_what_it_says(tuned: Path, texts_data: Path, workspace: Path) -> None:
    about = json.loads((tuned / "metrics.json").read_text())["training"]["mert"]
    loaded, model = corpora(texts_data, workspace, "tune", "dev"), Model.load(tuned / "model")
    metric = metric_of(small_texts.recipe(texts_data))
    for split, key, predictor in (("tune", "score", "mert"), ("dev", "dev", "mert"), ("tune", "start", "average")):
        corpus = loaded.others[split].corpus
        chosen = best(corpus, scores(corpus, standard_weights(model.weights[predictor], model.table)))
        value = metric.scores(chosen_rows(corpus.stats, chosen).sum(axis=0), corpus.reference.sum(axis=0))
        assert about[key] == pytest.approx(float(value), abs=1e-9), (split, key)
    assert about["score"] >= about["start"]
    assert list(about["weights"])[:2] == ["base", "sparse"] == list(about["start_weights"])[:2]
    assert about["weights"]["base"] == model.weights["mert"].base
    assert list(about["weights"])[2:] == [model.table.name(j) for j in range(2)]
    assert sorted(about["weights"])[:2] == ["Dense|LM0", "Dense|TM0_0"]  # TM0_1 is the same for all of a list
    assert list(about["weights"].values())[2:] == pytest.approx(model.weights["mert"].w[:2].tolist())


@pytest.mark.parametrize("predictor", ["last", "average", "mert"])
def test_scores_of_files_are_those_of_corpora(tuned: Path, texts_data: Path, workspace: Path, predictor: str) -> None:
    """Dense columns are standardised in corpora, and their weights folded back in models."""
    corpus = corpora(texts_data, workspace, "test").others["test"].corpus
    model = Model.load(tuned / "model")
    trained = scores(corpus, standard_weights(model.weights[predictor], model.table))
    scorer = Scorer(model, predictor)
    lists = scorer.read(Moses(), str(texts_data / "test.nbest.gz"), SkipCount(), texts_data / "test.src.gz")
    for i, opened in enumerate(lists):
        own = trained[corpus.lists[i] : corpus.lists[i + 1]]
        if own.size:
            assert np.ptp(next(scorer.rank([opened])).scores - own) < 1e-4 * max(1.0, np.abs(own).max())


def test_where_lower_is_better(texts_data: Path, workspace: Path) -> None:
    """Dev scores are the measure itself, and the run with the lowest is chosen."""
    runs = [{"name": "none", "set": {"learner": {"name": "perceptron", "base": 100.0}}}, {"name": "trained"}]
    found = run(texts_data, workspace, "wer", metric={"name": "wer"}, runs=runs)
    assert found["measure"] == "wer"
    assert found["chosen"]["name"] == "trained"
    none, trained = (entry["dev"] for entry in found["runs"])
    assert 0 < trained < none
    assert all(line["dev"] > 0 for line in small.epoch_lines(workspace / "texts" / "wer" / "history.jsonl"))
    assert set(found["signatures"]["test"]) == {"bleu", "chrf", "wer"}
    lead = (workspace / "texts" / "wer" / "report.html").read_text().partition('class="lead">')[2]
    assert lead.startswith("On test, trained (seed 1), the best of 2 runs on dev, reaches WER")


def test_mert_where_lower_is_better(texts_data: Path, workspace: Path) -> None:
    found = run(texts_data, workspace, "tuned-wer", metric={"name": "wer"}, **MERT)
    about = found["training"]["mert"]
    assert 0 < about["score"] <= about["start"]
    assert found["runs"][0]["dev"] == about["dev"] > 0


def test_mert_tunes_an_ensemble_that_keeps_few_columns(texts_data: Path, workspace: Path) -> None:
    training = {"epochs": 1, "vote": False, "ensemble": {"seeds": 2, "keep": 20}}
    about = run(texts_data, workspace, "tuned-ensemble", training=training, **MERT)["training"]["mert"]
    assert about["score"] >= about["start"]
    model = Model.load(workspace / "texts" / "tuned-ensemble" / "model")
    assert 0 < np.count_nonzero(model.weights["mert"].w[model.table.free :]) <= 20


def test_a_gain_that_lists_hold_needs_no_references(texts_data: Path, workspace: Path) -> None:
    found = run(
        texts_data,
        workspace,
        "gain",
        task="ranking",
        metric={"column": "LM0"},
        data={"references": None},
        features={"set": "text"},
    )
    base, trained = (found["splits"]["test"][name]["gain"] for name in ("base", "average"))
    assert trained > base
    assert found["signatures"]["test"] == {}
    names = {line for line in small_texts.lines_of(texts_data / "test.nbest.gz") if "LM0=" in line}
    assert names
    model = Model.load(workspace / "texts" / "gain" / "model")
    assert not any("LM0" in model.table.name(j) for j in range(model.table.width))


def test_gains_of_the_corpus(texts_data: Path, workspace: Path) -> None:
    learner = {"name": "vrda", "loss": "bayes", "eta": 0.01}  # it looks at the gains of all candidates
    found = run(texts_data, workspace, "share", oracle={"corpus_share": 0.25}, learner=learner)
    plain = run(texts_data, workspace, "sentence", oracle={"corpus_share": 0}, learner=learner)
    assert found["splits"]["test"]["average"]["bleu"] > found["splits"]["test"]["base"]["bleu"] + 5
    weights = [Model.load(workspace / "texts" / name / "model").weights["average"].w for name in ("share", "sentence")]
    assert not np.array_equal(*weights)
    assert found["splits"]["test"]["oracle"] == plain["splits"]["test"]["oracle"]  # what is reported does not change


def test_pair_sources(texts_data: Path, workspace: Path) -> None:
    found = set()
    for pairs in ({"name": "oracle"}, {"name": "hope-fear", "tilt": 20.0}, {"name": "sampled", "draws": 20}):
        systems = run(texts_data, workspace, pairs["name"], training={"pairs": pairs}, learner={"name": "pa"})["splits"]
        assert systems["test"]["average"]["bleu"] > systems["test"]["base"]["bleu"] + 5
        found.add(Model.load(workspace / "texts" / pairs["name"] / "model").weights["average"].w.tobytes())
    assert len(found) == 3


def test_hashed_columns(texts_data: Path, workspace: Path) -> None:
    found = run(texts_data, workspace, "hashed", features={"hash_bits": 10}, **MERT)
    assert found["features"]["columns"] == 1 << 10
    assert found["splits"]["test"]["average"]["bleu"] > found["splits"]["test"]["base"]["bleu"]
    assert list(found["training"]["mert"]["weights"]) == ["base", "sparse"]


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
