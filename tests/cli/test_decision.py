"""What a model hands out: its decision, its decoding, and its weights in other formats."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import small
import small_texts
from commands import Command, refused

import rerank as library
from rerank.base.errors import ModelError
from rerank.metrics.evaluation import evaluate
from rerank.models.model import Model
from rerank.runs import experiment
from rerank.runs.decoding import _choose_kind
from rerank.runs.report.results import headline

DECIDED = {  # by name: how a recipe comes to it
    "average": {"decode": {"use": "best"}},
    "last": {"training": {"predictor": "last"}, "decode": {"kinds": []}},
    "mbr": {"decode": {"use": "mbr"}},
    "fuse": {"decode": {"use": "fuse"}},
}


def run_of(name: str, small_data: Path, workspace: Path) -> Path:
    """The output of a run that came to a decision."""
    changes, place = DECIDED[name], workspace / f"decided {name}"
    if not place.exists():
        training = {"epochs": 1, "vote": False, **changes.get("training", {})}
        experiment.run(small.recipe(small_data, **changes | {"training": training}), place)
    return place


@pytest.fixture(scope="module", params=DECIDED)
def decided(request: pytest.FixtureRequest, small_data: Path, workspace: Path) -> tuple[str, Path]:
    """A decision, and the output of a run that came to it."""
    return request.param, run_of(request.param, small_data, workspace)


def test_the_headline_is_of_what_the_model_hands_out(
    decided: tuple[str, Path], small_data: Path, rerank: Command, tmp_path: Path
) -> None:
    name, place = decided
    metrics, lists = json.loads((place / "metrics.json").read_text()), small_data / "test.nbest.gz"
    said, f1 = headline(metrics), metrics["splits"]["test"][name]["f1"]
    assert f"reaches F {100 * f1:.2f} with its {name} predictor" in said["sentence"]
    test = metrics["significance"]["test"][f"{name}_vs_base"]
    assert said["tiles"][2][1].lstrip("+−") == f"{100 * abs(test['difference']):.2f}"
    assert metrics["decision"] == json.loads((place / "model" / "model.json").read_text())["about"]["decision"]
    assert metrics["decision"]["predictor"] == metrics["predictor"] == name

    done = rerank("rank", place / "model", lists)
    answers = done.out.splitlines()
    assert f"by the predictor {name}" in done.err
    assert evaluate(small.golds_of(small_data / "test.gold.gz"), answers).scores()["f1"] == pytest.approx(f1, abs=1e-12)
    assert rerank("rank", place / "model", lists).out.splitlines() == answers
    objects = [json.loads(line) for line in rerank("rank", place / "model", lists, "--json").out.splitlines()]
    assert [each["text"] for each in objects] == answers
    assert {each["predictor"] for each in objects} == {name}
    assert all(each["candidates"][0]["place"] == each["place"] for each in objects if each["place"])
    assert (None in [each["place"] for each in objects]) == (name == "fuse")
    rerank("rank", place / "model", lists, "--n-best", 100, "-o", tmp_path / "ranked")
    again, written = (
        [[each.text for each in nbest.candidates] for nbest in library.read(path, "charniak")]
        for path in (tmp_path / "ranked", place / "predictions" / "test.nbest.gz")
    )
    assert again == written
    if name != "fuse":
        assert [texts[0].strip() for texts in written] == answers

    model = library.load(place / "model")
    assert model.predictor == name
    rankings = list(model.rank_many(lists))
    assert [each.text for each in rankings] == answers
    for each in rankings:
        assert each.place is None or each.best.text == each.candidates[0].text
    assert [each.place for each in rankings] == [each["place"] and each["place"] - 1 for each in objects]
    found = library.evaluate(model, library.read(lists, "charniak", references=small_data / "test.gold.gz"))
    assert (found.score, found.predictor) == (pytest.approx(f1, abs=1e-12), name)
    assert f"by the predictor {name}" in str(found)


def test_a_service_answers_by_it(decided: tuple[str, Path]) -> None:
    pytest.importorskip("uvicorn")
    from rerank.contrib.serve.app import answer

    name, place = decided
    model = library.load(place / "model")
    texts = ["(S1 (S (A (X 0) (X 1)) (X 2)))", "(S1 (S (X 0) (A (X 1) (X 2))))", "(S1 (S (B (X 0) (X 1)) (X 2)))"]
    candidates = [{"tree": text, "score": 0.0} for text in texts]
    found = json.loads(answer(model, json.dumps({"candidates": candidates, "decode": True}).encode())[0])
    assert found["predictor"] == name
    assert (found["place"] is None) == (name == "fuse")
    assert "decoded" not in json.loads(answer(model, json.dumps({"candidates": candidates}).encode())[0])
    expected = model.decode(candidates)
    assert found["decoded"] == {"text": expected.text, "place": found["place"]}
    assert found["best"] == {"tree": expected.text, **({} if name == "fuse" else {"score": 0.0})}
    assert found["place"] == expected.place


def test_comparisons_are_of_it_and_name_it(decided: tuple[str, Path], small_run: Path, rerank: Command) -> None:
    name, place = decided
    other, (own, theirs) = json.loads((small_run / "metrics.json").read_text()), (place, small_run)
    found = json.loads(rerank("compare", own, theirs, "--json").out)["splits"]["test"]
    assert found["predictors"] == [name, other["predictor"]]
    scores = [json.loads((run / "metrics.json").read_text())["splits"]["test"] for run in (own, theirs)]
    assert [found["a"], found["b"]] == [scores[0][name]["f1"], scores[1][other["predictor"]]["f1"]]
    asked = json.loads(rerank("compare", own, theirs, "--predictor", "average", "--json").out)["splits"]["test"]
    assert (asked["predictors"], asked["a"]) == (["average", "average"], scores[0]["average"]["f1"])


def test_weights_that_are_shown_are_those_that_rank(decided: tuple[str, Path], rerank: Command) -> None:
    name, place = decided
    ranked_by = "last" if name == "last" else "average"
    weights = Model.load(place / "model").weights[ranked_by]
    exported = rerank("export", place / "model")
    assert exported.out.splitlines()[0] == f"base {weights.base!r}"
    assert f"weights of the predictor {ranked_by}" in exported.err
    assert (f"the model decodes lists by {name}" in exported.err) == (name in ("mbr", "fuse"))
    assert json.loads(rerank("inspect", place / "model", "--json").out)["predictor"] == ranked_by
    told = json.loads(library.load(place / "model").to_json())
    assert (told["predictor"], told["ranked_by"], told["base"]) == (name, ranked_by, weights.base)


def test_another_predictor_is_asked_for(small_data: Path, workspace: Path, rerank: Command) -> None:
    place = run_of("fuse", small_data, workspace)
    lists, metrics = small_data / "test.nbest.gz", json.loads((place / "metrics.json").read_text())
    golds = small.golds_of(small_data / "test.gold.gz")
    for name in ("last", "average", "mbr"):
        answers = rerank("rank", place / "model", lists, "--predictor", name).out.splitlines()
        expected = metrics["splits"]["test"][name]["f1"]
        assert evaluate(golds, answers).scores()["f1"] == pytest.approx(expected, abs=1e-12)
        assert [each.text for each in library.load(place / "model", name).rank_many(lists)] == answers
    assert "trees that it fuses" in rerank("rank", place / "model", lists, "--n-best", 1).err
    with pytest.raises(ModelError, match="no predictor 'learned'; expected last, average, voted, base, mbr, fuse"):
        library.load(place / "model", "learned")


def test_a_decision_that_a_model_cannot_keep_is_refused(small_run: Path, tmp_path: Path) -> None:
    model = Model.load(small_run / "model")
    model.about["decision"] = {"predictor": "learned", "ranked_by": "average"}
    model.save(tmp_path / "model")
    with pytest.raises(ModelError, match="its decision is learned, with the scores of average; it has"):
        Model.load(tmp_path / "model")


def test_what_mert_has_tuned_is_the_decision(tmp_path: Path, texts_data: Path, rerank: Command) -> None:
    changes: dict[str, Any] = {"mert": {"split": "tune", "settings": {"restarts": 1}}, "decode": {"kinds": []}}
    experiment.run(small_texts.recipe(texts_data, training={"epochs": 1, "vote": False}, **changes), tmp_path / "run")
    model, lists, sources = tmp_path / "run" / "model", texts_data / "test.nbest.gz", texts_data / "test.src.gz"
    weights = Model.load(model).weights
    assert weights["mert"].base != weights["average"].base
    done = rerank("rank", model, lists, "--sources", sources)
    assert "by the predictor mert" in done.err
    assert done.out == rerank("rank", model, lists, "--sources", sources, "--predictor", "mert").out
    assert rerank("export", model).out.splitlines()[0] == f"base {weights['mert'].base!r}"


def test_of_equal_ways_the_simplest_is_taken(small_data: Path) -> None:
    recipe = small.recipe(small_data)
    from rerank.extraction.kinds import metric_of

    metric = metric_of(recipe)
    for best, mbr, fuse, used in (
        (0.8, 0.8 + 1e-13, 0.8, ""), (0.8, 0.81, 0.81, "mbr"), (0.8, 0.8, 0.82, "fuse"), (0.8, 0.7, 0.7, ""),
    ):  # fmt: skip
        assert _choose_kind(recipe, {"fuse": fuse, "mbr": mbr}, best, metric) == used


TREES = """3\ta
0
(S1 (S (A (X 0) (X 1)) (X 2)))
0
(S1 (S (X 0) (A (X 1) (X 2))))
0
(S1 (S (B (X 0) (X 1)) (X 2)))

2\tb
0
(())
-1
(S1 (S (X 0)))

"""
TEXTS = "0 ||| a b c d ||| lm=1 ||| -1\n0 ||| a b c e ||| lm=1 ||| -1.1\n0 ||| x y z w ||| lm=1 ||| -0.9\n"


def test_base_scores_are_decoded_without_a_model(rerank: Command, tmp_path: Path) -> None:
    (tmp_path / "lists").write_text(TREES)
    result = rerank("rank", "base", tmp_path / "lists")
    assert (result.code, result.out) == (0, "(S1 (S (X 0) (X 1) (X 2)))\n(S1 (S (X 0)))\n")
    assert "1 candidate without a vote: other words than the best has" in result.err
    assert "--predictor base takes the best by base score; this decodes, with settings that nothing tuned" in result.err
    objects = [json.loads(line) for line in rerank("rank", "base", tmp_path / "lists", "--json").out.splitlines()]
    assert [(each["id"], each["place"]) for each in objects] == [("a", None), ("b", 2)]  # that of b is a candidate
    assert objects[0]["probabilities"] == pytest.approx([1 / 3] * 3)
    brackets = [(each["label"], each["candidates"]) for each in objects[0]["brackets"]]
    assert brackets == [("S", [1, 2, 3]), ("A", [1]), ("B", [3]), ("A", [2])]
    told = rerank("rank", "base", tmp_path / "lists", "--predictor", "mbr", "--json")
    mbr = json.loads(told.out.splitlines()[0])
    assert "nothing tuned" not in told.err
    assert (mbr["place"], len(mbr["expected_gains"])) == (1, 3)


def test_texts_are_decoded_by_expected_gain(rerank: Command, tmp_path: Path) -> None:
    (tmp_path / "lists").write_text(TEXTS)
    for metric in ("bleu", "chrf", "wer"):
        result = rerank(
            "rank", "base", tmp_path / "lists", "--metric", metric, "--reader", "moses", "--decode", "{sharpness: 0.1}"
        )
        assert (result.code, result.out) == (0, "a b c d\n"), metric
    assert (
        rerank("rank", "base", tmp_path / "lists", "--metric", "bleu", "--reader", "moses", "--predictor", "base").out
        == "x y z w\n"
    )


def test_what_cannot_be_decoded_is_refused(rerank: Command, tmp_path: Path) -> None:
    (tmp_path / "trees").write_text(TREES)
    (tmp_path / "texts").write_text(TEXTS)
    refused(rerank("rank", "base", tmp_path / "trees", "--decode", "{threshold: 0.3}"), "threshold: found 0.3")
    refused(rerank("rank", "base", tmp_path / "trees", "--decode", "{sharpness: 0.0}"), "--decode: sharpness: found 0")
    refused(
        rerank("rank", "base", tmp_path / "trees", "--decode", "{"),
        "--decode: the value of --decode ",
        "not valid YAML",
    )
    texts = ("rank", "base", tmp_path / "texts", "--metric", "bleu", "--reader", "moses")
    refused(rerank(*texts, "--predictor", "fuse"), "only trees can be fused; use mbr for texts")
    refused(rerank(*texts, "--predictor", "mbr", "--decode", "{gains: nowhere:gains}"), "cannot import gain function")


def test_how_to_decode_needs_a_way_to(rerank: Command, small_run: Path, small_data: Path) -> None:
    """Where the model takes the best candidate, no sharpness changes anything."""
    lists, model = small_data / "test.nbest.gz", small_run / "model"
    refused(rerank("rank", model, lists, "--predictor", "average", "--decode", "{sharpness: 2}"), "--predictor")
    assert rerank("rank", model, lists, "--predictor", "mbr", "--decode", "{sharpness: 2}").code == 0
    refused(rerank("rank", model, lists, "--metric", "bleu"), "a model has its own metric")


def test_a_model_decodes_as_it_was_tuned(rerank: Command, small_data: Path, workspace: Path, tmp_path: Path) -> None:
    model, lists = run_of("fuse", small_data, workspace) / "model", small_data / "test.nbest.gz"
    output = tmp_path / "out.gz"
    assert rerank("rank", model, lists, "--output", output).code == 0
    answers = small.lines_of(output)
    sharp = rerank("rank", model, lists, "--decode", "{sharpness: 1.0e+6}").out.splitlines()
    for text, ranking in zip(sharp, library.load(model, "average").rank_many(lists), strict=True):
        if len(ranking) < 2 or ranking.scores[0] > ranking.scores[1] + 1e-4:  # one candidate has all the probability
            assert text.replace(" ", "") == ranking.best.text.replace(" ", "")
    name = next(library.read(lists, "charniak").__iter__()).id
    shown = rerank("explain", model, lists, "--list", name).out
    assert "decoded by fuse: " in shown
    assert answers[0] in shown.replace("\n", " ")
    explained = json.loads(rerank("explain", model, lists, "--list", name, "--json").out)
    assert explained["decoded"]["text"] == answers[0]
    assert all(each["candidates"] for each in explained["brackets"])


def test_out_and_in_again(small_run: Path, tmp_path: Path, rerank: Command) -> None:
    model, file = small_run / "model", tmp_path / "weights.txt.gz"
    assert rerank("export", model, "-o", file).code == 0
    done = rerank("import", file, "--like", model, "-o", tmp_path / "again")
    assert done.code == 0, done.err
    old, new = Model.load(model), Model.load(tmp_path / "again")
    for name in ("last", "average"):
        assert new.weights[name].w.tobytes() == old.weights["average"].w.tobytes()
        assert new.weights[name].base == old.weights["average"].base
    assert (new.state, new.votes) == ({}, {})
    assert new.settings == old.settings
    assert new.about["imported"]["file"] == str(file)
    again = rerank("export", tmp_path / "again")
    assert again.out.encode() == gzip.decompress(file.read_bytes())
    refused = rerank("import", file, "--like", model, "-o", tmp_path / "again")
    assert refused.code == 2
    assert "already exists" in refused.err


def test_errors_of_export(small_run: Path, tmp_path: Path, rerank: Command) -> None:
    model = small_run / "model"
    for arguments, message in [
        (("--predictor", "voted"), "no weights of 'voted'; it has last, average"),
        (("--format", "moses", "-o", tmp_path / "w.gz"), "Moses does not read compressed weights"),
    ]:
        done = rerank("export", model, *arguments)
        assert done.code == 2
        assert message in done.err.replace("\n", " ")
    assert not (tmp_path / "w.gz").exists()


def test_provenance(small_run: Path, tmp_path: Path, rerank: Command) -> None:
    model = small_run / "model"
    about = Model.load(model).about
    done = rerank("inspect", model, "--provenance")
    assert done.code == 0, done.err
    for known in (about["training_data"], about["date"], about["version"], *about["files"]["nbest"]):
        assert known in done.out
    for line in ("learner: ", "seed: ", "measure: f1", "templates:"):
        assert line in done.out
    rerank("export", model, "-o", tmp_path / "w")
    rerank("import", tmp_path / "w", "--like", model, "-o", tmp_path / "again")
    shown = rerank("inspect", tmp_path / "again", "--provenance").out
    assert str(tmp_path / "w") in shown
    assert "measure: f1" not in shown
