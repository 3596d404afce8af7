"""Recipes over texts carried out: what a run leaves, MERT, pairs and gains, votes, users' templates, other settings."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small
import small_texts

from rerank.extraction.kinds import metric_of
from rerank.features.table import FeatureTable
from rerank.learn.learner import Weights
from rerank.learn.scoring import best, scores
from rerank.metrics.metric import chosen_rows
from rerank.models.model import Model
from rerank.models.scorer import Scorer
from rerank.readers.moses import Moses
from rerank.readers.reader import SkipCount
from rerank.runs import experiment
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
