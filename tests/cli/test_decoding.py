"""Decoding on the command line: with a model and without, as lines and as objects, and what is refused."""

import json
from pathlib import Path

import pytest
import small
from commands import Command, refused

import rerank as library
from rerank.runs import experiment

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
    objects = [json.loads(line) for line in rerank("rank", "base", tmp_path / "lists", "--json").out.splitlines()]
    assert [(each["id"], each["place"]) for each in objects] == [("a", None), ("b", 2)]  # that of b is a candidate
    assert objects[0]["probabilities"] == pytest.approx([1 / 3] * 3)
    brackets = [(each["label"], each["candidates"]) for each in objects[0]["brackets"]]
    assert brackets == [("S", [1, 2, 3]), ("A", [1]), ("B", [3]), ("A", [2])]
    mbr = json.loads(rerank("rank", "base", tmp_path / "lists", "--predictor", "mbr", "--json").out.splitlines()[0])
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
    refused(
        rerank("rank", "base", tmp_path / "trees", "--decode", "{threshold: 0.3}"),
        "--decode: threshold: found 0.3",
        "0.5",
    )
    refused(
        rerank("rank", "base", tmp_path / "trees", "--decode", "{sharpness: 0.0}"),
        "--decode: sharpness: found 0",
        "expected a finite number above 0",
    )
    texts = ("rank", "base", tmp_path / "texts", "--metric", "bleu", "--reader", "moses")
    refused(rerank(*texts, "--predictor", "fuse"), "only trees can be fused; use mbr for texts")
    refused(
        rerank(*texts, "--predictor", "mbr", "--decode", "{gains: nowhere:gains}"),
        "cannot import gain function 'nowhere:gains'",
    )


def test_how_to_decode_needs_a_way_to(rerank: Command, small_run: Path, small_data: Path) -> None:
    """Where the model takes the best candidate, no sharpness changes anything."""
    lists, model = small_data / "test.nbest.gz", small_run / "model"
    refused(
        rerank("rank", model, lists, "--predictor", "average", "--decode", "{sharpness: 2}"),
        "--decode: ",
        "--predictor",
    )
    assert rerank("rank", model, lists, "--predictor", "mbr", "--decode", "{sharpness: 2}").code == 0
    refused(rerank("rank", model, lists, "--metric", "bleu"), "a model has its own metric")


def test_a_model_decodes_as_it_was_tuned(rerank: Command, small_data: Path, workspace: Path, tmp_path: Path) -> None:
    recipe = small.recipe(small_data, training={"epochs": 1, "vote": False}, decode={"use": "fuse"})
    experiment.run(recipe, workspace / "fused by command")
    model, lists, output = workspace / "fused by command" / "model", small_data / "test.nbest.gz", tmp_path / "out.gz"
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
