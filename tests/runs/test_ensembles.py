"""Ensembles, the line of dense columns, and decoding in a run, tuned on dev by exact scores."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small
import small_rankings
from rich.console import Console

import rerank
from rerank.base.errors import RecipeError
from rerank.data.corpus import Corpus, free_values
from rerank.extraction.extraction import extract_split, extract_training
from rerank.learn import folds
from rerank.learn.scoring import choices, scores
from rerank.metrics.gain import Gain
from rerank.models.model import Model
from rerank.recipes.loading import read_settings
from rerank.runs import experiment, list_kind
from rerank.runs.combination import DENSE_LINE, dense_line, members, train_ensemble
from rerank.runs.compared import Compared, compare_runs
from rerank.runs.corpora import Data
from rerank.runs.decoding import SHARPNESS, THRESHOLDS, check_decoding
from rerank.runs.report.results import results_table
from rerank.runs.report.table import plain_text
from rerank.runs.training import RunTask, train_run
from rerank.storage.streams import Inputs

LEARNERS = [{"name": "perceptron", "base": 0.5}, {"name": "vrda", "base": 2.0}]


def with_ensemble(root: Path, learner: Any = None, **settings: Any) -> Any:
    training = {"epochs": 2, "vote": False, "ensemble": settings}
    return small.recipe(root, training=training, learner=learner or LEARNERS[0])


@pytest.fixture(scope="module")
def corpora(small_data: Path) -> tuple[Corpus, Corpus]:
    recipe = small.recipe(small_data)
    training, table = extract_training(recipe)
    return training.corpus, extract_split(recipe, "dev", table).corpus


def test_weights_are_summed_in_units_of_their_scores(small_data: Path, corpora: tuple[Corpus, Corpus]) -> None:
    train, dev = corpora
    recipe = with_ensemble(small_data, seeds=2)
    every = members(recipe)
    assert [each.seed for each in every] == [1, 1001]
    found = train_ensemble(RunTask("all", recipe, train, dev))
    lists = dev
    for kind in ("last", "average"):
        w, base = np.zeros(train.width), 0.0
        for single in every:
            own = train_run(RunTask("one", single, train, dev)).weights[kind]
            own_scores = scores(lists, own)
            apart = [part - part.mean() for part in np.split(own_scores, lists.lists[1:-1])]
            deviation = np.sqrt(np.mean(np.concatenate(apart) ** 2))
            w, base = w + own.w / deviation, base + own.base / deviation
        np.testing.assert_allclose(found.weights[kind].w, w, rtol=1e-9, atol=1e-12)
        assert found.weights[kind].base == pytest.approx(base, rel=1e-9)
    assert len(found.training["ensemble"]["members"]) == 2


def test_an_ensemble_of_one_is_that_one(small_data: Path, corpora: tuple[Corpus, Corpus]) -> None:
    train, dev = corpora
    for learner in (LEARNERS[1], {"name": "perceptron"}):
        alone = train_run(RunTask("one", small.recipe(small_data, training={"epochs": 2}, learner=learner), train, dev))
        found = train_ensemble(RunTask("all", with_ensemble(small_data, learner, seeds=1), train, dev))
        assert choices(dev, found.weights["average"]).tolist() == choices(dev, alone.weights["average"]).tolist()
        assert found.dev_score == pytest.approx(alone.dev_score, abs=1e-12)


def test_all_members_see_the_same_share_of_the_lists(small_data: Path, corpora: tuple[Corpus, Corpus]) -> None:
    train, dev = corpora
    recipe = with_ensemble(small_data, seeds=2)
    found = train_ensemble(RunTask("all", recipe.change({"training.share": 0.25}), train, dev))
    expected = train_ensemble(RunTask("all", recipe, train.take_share(0.25, recipe.seed), dev))
    for kind, weights in expected.weights.items():
        assert found.weights[kind].w.tobytes() == weights.w.tobytes()
    assert found.training["lists"] == expected.training["lists"]


def test_the_strongest_contributions_stay(small_data: Path, corpora: tuple[Corpus, Corpus]) -> None:
    train, dev = corpora
    dense = train_ensemble(RunTask("all", with_ensemble(small_data, seeds=2), train, dev)).weights["average"].w
    found = train_ensemble(RunTask("all", with_ensemble(small_data, seeds=2, keep=25), train, dev))
    corpus = train
    norms = np.sqrt(np.bincount(corpus.columns, weights=np.square(corpus.values, dtype=float), minlength=train.width))
    size = np.abs(dense) * norms
    kept = np.flatnonzero(found.weights["average"].w)
    assert kept.size == 25 == found.training["nonzero_weights"]
    assert size[kept].min() >= np.sort(size)[-25] - 1e-12
    np.testing.assert_array_equal(found.weights["average"].w[kept], dense[kept])


def test_the_model_of_an_ensemble_is_one_vector(small_data: Path, workspace: Path) -> None:
    recipe = with_ensemble(small_data, {"name": "perceptron"}, seeds=2, keep=0.5)
    experiment.run(recipe, workspace / "ensemble")
    metrics = small.results(workspace / "ensemble")
    model = Model.load(workspace / "ensemble" / "model")
    assert np.count_nonzero(model.weights["average"].w) == metrics["training"]["nonzero_weights"]
    assert model.about["dev"]["score"] == metrics["training"]["ensemble"]["dev"] == metrics["runs"][0]["dev"]
    lists = rerank.read(small_data / "test.nbest.gz", format="charniak", references=small_data / "test.gold.gz")
    found = rerank.evaluate(rerank.load(workspace / "ensemble" / "model"), lists)
    assert found.score == pytest.approx(metrics["splits"]["test"][metrics["predictor"]]["f1"], abs=1e-12)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data": {"dev": None}, "learner": {"name": "perceptron", "base": 1}}, r"training\.ensemble: .* name data"),
        ({"training": {"vote": True}}, r"training\.vote: an ensemble has no such training"),
    ],
)
def test_ensembles_that_cannot_be(small_data: Path, changes: dict[str, Any], message: str) -> None:
    training = {"vote": False, "ensemble": {"seeds": 2}} | changes.pop("training", {})
    with Inputs() as inputs, pytest.raises(RecipeError, match=message):
        experiment.check(small.recipe(small_data, training=training, **changes), inputs)


METRIC = Gain()


def loaded(root: Path, workspace: Path, **changes: object) -> Data:
    return Data.load(small_rankings.recipe(root, **changes), workspace / "rankings" / "any", ("test",))


def test_a_run_shows_the_line(texts_data: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two runs and two seeds: fitted once, shown once, in the table, the report, and what compare takes."""
    fits = []
    monkeypatch.setattr(list_kind, "dense_line", lambda *given: fits.append(1) or dense_line(*given))
    runs = [{"name": "vrda"}, {"name": "perceptron", "set": {"learner": {"name": "perceptron"}}}]
    directory = workspace / "rankings" / "shown"
    found = experiment.run(small_rankings.recipe(texts_data, runs=runs, seeds=[1, 2]), directory)
    assert fits == [1]
    own = found["splits"]["test"]["logistic"]
    assert found["splits"]["test"]["base"]["gain"] < own["gain"] <= found["splits"]["test"]["oracle"]["gain"]
    assert found["significance"]["test"]["logistic_vs_base"]["difference"] > 0
    assert set(found["logistic"]["weights"]) == {"base", "Dense|reward", "Dense|length"}
    assert found["logistic"]["weights"]["Dense|reward"] > 0
    table = plain_text(results_table(found, "test").rich())
    assert table.count("dense columns alone") == 1
    assert "dense columns alone" in (directory / "report.html").read_text()
    stored = Compared.of_run(directory, "test")
    assert stored.rows["logistic"].sum() / stored.reference.sum() == pytest.approx(own["gain"])
    ((_, same, _),) = compare_runs(directory, directory, "logistic", test="paired_bootstrap", samples=100, seed=1)
    assert same.reports()["A"]["gain"] == pytest.approx(own["gain"])
    console = Console(width=80)
    with console.capture() as captured:
        console.print(results_table(found, "test", narrow=True).rich(narrow=True))
    assert "…" not in captured.get()


def test_it_takes_the_last_lists(texts_data: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as are enough: those before them change nothing."""
    monkeypatch.setattr(folds, "MAX_LISTS_FOR_FOLDS", 40)
    for size in (100.0, 0.01):
        data = loaded(texts_data, workspace, data={"shard_size": size})
        line = dense_line(data.training.corpus, data.table, METRIC)
        alone = dense_line(data.training.corpus.slice(80, 120), data.table, METRIC)
        np.testing.assert_array_equal(line[0][DENSE_LINE].w, alone[0][DENSE_LINE].w)
        assert line[1] == alone[1]
        assert line[1]["lists"] == 40


def test_with_text_features_it_sees_only_dense_columns(texts_data: Path, workspace: Path) -> None:
    data = loaded(texts_data, workspace, features={"set": "text", "templates": []})
    found = dense_line(data.training.corpus, data.table, METRIC)
    assert np.count_nonzero(found[0][DENSE_LINE].w) == data.training.corpus.free == 3 < data.training.corpus.width
    part = data.others["test"].corpus
    scores = found[0][DENSE_LINE].base * part.base + free_values(part) @ found[0][DENSE_LINE].w[:3]
    best = [int(a + np.argmax(scores[a:b])) for a, b in zip(part.lists[:-1], part.lists[1:], strict=True)]
    assert choices(part, found[0][DENSE_LINE]).tolist() == best


def test_without_dense_columns_there_is_no_line(tmp_path: Path, workspace: Path, small_run: Path) -> None:
    root = small_rankings.write_task(tmp_path, dense=False)
    words = {"set": None, "templates": ["TargetNGram"]}
    found = experiment.run(small_rankings.recipe(root, features=words), workspace / "rankings" / "none")
    assert found["logistic"] is None
    assert "logistic" not in found["splits"]["test"]
    assert "dense columns alone" not in plain_text(results_table(found, "test").rich())
    assert "logistic" not in json.loads((small_run / "metrics.json").read_text())["splits"]["test"]


def test_results_of_decoding_are_those_of_other_predictors(small_run: Path) -> None:
    metrics = small.results(small_run)
    for run in metrics["runs"]:
        assert {"mbr", "fuse"} <= set(run["splits"]["test"])
        assert {"mbr_vs_base", "fuse_vs_base"} <= set(run["significance"]["test"])
        tuned = run["training"]["decode"]
        scores = {"": tuned["best"], "mbr": tuned["mbr"]["dev"], "fuse": tuned["fuse"]["dev"]}
        assert scores[tuned["use"]] == max(scores.values())
    use = metrics["training"]["decode"]["use"]
    assert metrics["predictor"] == (use or metrics["ranked_by"])
    assert json.loads((small_run / "model" / "model.json").read_text())["about"]["decision"] == metrics["decision"]
    rows = Compared.of_run(small_run, "test").rows
    assert {"mbr", "fuse"} <= set(rows)


def test_the_point_with_the_best_score_on_dev_is_taken(small_data: Path, workspace: Path) -> None:
    """Every point of the grid, decoded by a model that was told to, has a score of at most the one that was tuned."""
    recipe = small.recipe(small_data, training={"epochs": 1, "vote": False})
    experiment.run(recipe, workspace / "tuned")
    tuned = small.results(workspace / "tuned")["training"]["decode"]
    lists = rerank.read(small_data / "dev.nbest.gz", format="charniak", references=small_data / "dev.gold.gz")
    model = rerank.load(workspace / "tuned" / "model")
    for kind in ("mbr", "fuse"):
        best = rerank.evaluate(model, lists, decode=kind).score
        assert best == pytest.approx(tuned[kind]["dev"], abs=1e-12)
        assert tuned[kind]["sharpness"] in SHARPNESS
        for sharpness in SHARPNESS[::9].tolist():
            for threshold in THRESHOLDS[: 1 if kind == "mbr" else None : 4].tolist():
                model.model.about["decodings"][kind] |= {"sharpness": sharpness, "threshold": threshold}
                assert rerank.evaluate(model, lists, decode=kind).score <= best + 1e-12


@pytest.mark.parametrize(
    ("decode", "data", "message"),
    [
        ({"use": "fuse", "kinds": ["mbr"]}, {}, "'fuse' is not among decode.kinds"),
        ({"use": "mbr", "kinds": ["fuse"]}, {}, r"'mbr' is not among decode.kinds \(fuse\); set decode.kinds: \[fuse"),
        ({"gains": "nowhere:gains"}, {}, "cannot import gain function"),
        ({"threshold": 0.4}, {}, "decode.threshold: found 0.4; expected one from 0.5"),
        ({"kinds": ["fuse", "learned"], "threshold": 0.4}, {}, "decode.kinds without fuse"),
    ],
)
def test_decoding_that_cannot_be(small_data: Path, decode: dict[str, Any], data: dict[str, Any], message: str) -> None:
    with Inputs() as inputs, pytest.raises(RecipeError, match=message):
        experiment.check(small.recipe(small_data, decode=decode, data=data), inputs)


def test_what_a_ranking_lacks_is_a_way_to_decode() -> None:
    settings = {"name": "x", "task": "ranking", "data": {"dev": None}, "decode": {"use": "mbr", "sharpness": 1}}
    recipe = read_settings(settings)
    with pytest.raises(RecipeError, match=r"'mbr' is not among decode.kinds \(none\); set decode.kinds: \[mbr\]"):
        check_decoding(recipe)
    check_decoding(recipe.change({"decode.kinds": "mbr"}))


def test_what_is_learned_may_be_kept_below_one_half(small_data: Path) -> None:
    pytest.importorskip("sklearn", reason="scikit-learn fits the trees")
    with Inputs() as inputs:
        experiment.check(small.recipe(small_data, decode={"kinds": ["mbr", "learned"], "threshold": 0.4}), inputs)


def test_without_dev_decoding_is_as_the_recipe_says(small_data: Path, workspace: Path) -> None:
    decode = {"kinds": "fuse", "use": "fuse", "sharpness": 2.0, "threshold": 0.5}
    changes: dict[str, Any] = {
        "data": {"root": str(small_data), "dev": None},
        "learner": {"name": "perceptron", "base": 1},
    }
    experiment.run(
        small.recipe(small_data, decode=decode, training={"epochs": 1}, **changes), workspace / "undeveloped"
    )
    tuned = small.results(workspace / "undeveloped")["training"]["decode"]
    assert (tuned["use"], tuned["fuse"]["sharpness"], tuned["fuse"]["dev"]) == ("fuse", 2.0, None)
    assert np.isfinite(tuned["fuse"]["deviation"])


def answered(lists: int, seed: int) -> list[dict[str, Any]]:
    """Lists whose right answer has more candidates than any other, and no better scores."""
    rng = np.random.default_rng(seed)
    found = []
    for i in range(lists):
        right = rng.random(8) < rng.uniform(0.2, 0.9)
        candidates = [
            {"text": f"so {0 if each else rng.integers(1, 9)}", "score": rng.normal() + 0.1 * each, "gain": float(each)}
            for each in right
        ]
        found.append({"id": i, "candidates": candidates})
    return found


def test_a_margin_is_never_ignored() -> None:
    lists = [
        {"id": i, "candidates": [{"text": "a", "score": 2.0, "gain": 1.0}, {"text": "b", "score": 1.0, "gain": 0.0}]}
        for i in range(30)
    ]
    model = rerank.fit(lists, recipe={"decode": {"margin": 0.1, "below": "base"}})  # nothing beats the base
    assert (model.predictor, model.model.settings["decode"]["margin"]) == ("mbr", 0.1)
    assert model.rank(next(iter(rerank.read(lists)))).margin > 0.1
    with pytest.raises(RecipeError, match=r"decode.margin: found 0.1, but no lists were held out"):
        rerank.fit(lists[:1], features="base", recipe={"decode": {"margin": 0.1}})
    with pytest.raises(RecipeError, match=r"decode.margin: found 0.1, but nothing is decoded by mbr"):
        rerank.fit(lists, recipe={"decode": {"margin": 0.1, "kinds": []}})


def test_answers_are_voted_on_and_may_be_held_back(workspace: Path) -> None:
    train, tests = answered(60, 1), answered(40, 2)
    model = rerank.fit(train, answer="last-number", features="base")  # tuned on lists held out
    assert model.predictor == "mbr"
    assert rerank.evaluate(model, tests).score > rerank.evaluate(model, tests, decode="best").score
    folder = workspace / "answers"
    for split, lists in (("train", train), ("dev", tests[:20]), ("test", tests[20:])):
        folder.mkdir(exist_ok=True)
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lists))
    data = {"root": str(folder), "nbest": "{root}/{split}.jsonl", "answer": "last-number"}
    settings = {"name": "answers", "task": "ranking", "data": data, "decode": {"margin": 0.4}}
    recipe = read_settings({**settings, "features": "base"})
    metrics = experiment.run(recipe, workspace / "run")
    held_back = rerank.load(workspace / "run" / "model")
    rankings = list(held_back.rank_many(folder / "test.jsonl"))
    given = [each for each in rankings if each.place is not None]
    assert [each.margin >= 0.4 for each in rankings] == [each.best is not None for each in rankings]
    assert 0 < len(given) < len(rankings)
    right = sum(each.best.text == "so 0" for each in given) / len(rankings)
    assert metrics["splits"]["test"]["mbr"]["gain"] == pytest.approx(right)
    assert rerank.evaluate(held_back, rerank.read(folder / "test.jsonl", "jsonl")).score == pytest.approx(right)
    votes = [Counter(each["text"] for each in item["candidates"]).most_common() for item in tests[20:]]
    sure = [winners for winners in votes if len(winners) < 2 or winners[0][1] > winners[1][1]]
    least = sum(winners[0][0] == "so 0" for winners in sure) / len(votes)
    systems = metrics["splits"]["test"]
    assert least <= systems["majority vote"]["gain"] <= least + 1 - len(sure) / len(votes)
    assert systems["first"]["gain"] == np.mean([item["candidates"][0]["gain"] for item in tests[20:]])
    best = [max(item["candidates"], key=lambda each: each["score"])["gain"] for item in tests[20:]]
    assert systems["best score"]["gain"] == pytest.approx(np.mean(best))
    assert "best gain" not in systems


@pytest.mark.parametrize(("metric", "dev"), [("gain", None), ("ndcg@2", "dev")])
def test_votes_stand_beside_a_model_that_is_the_base(metric: str, dev: str | None, tmp_path: Path) -> None:
    for split in ("train", "dev", "test"):
        lists = [
            {"id": f"{split}{i}", "candidates": [{"text": "a", "answer": y, "gain": int(y == 0)} for y in (0, 0, 1)]}
            for i in range(20)
        ]
        (tmp_path / f"{split}.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lists))
    data = {"root": str(tmp_path), "nbest": "{root}/{split}.jsonl", "dev": dev}
    recipe = read_settings({"name": "x", "task": "ranking", "data": data, "features": "base", "metric": metric})
    rows = experiment.run(recipe, tmp_path / "run")["splits"]["test"]
    assert ("majority vote" in rows, "mbr" in rows) == (metric == "gain", False)
