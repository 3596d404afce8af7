"""Checks of what lists were taken for: that they find what is amiss, are lifted by a role, and silent elsewhere."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import rerank
from rerank.extraction.list_checks import doubts_of_lists

DATA = Path(__file__).parents[2] / "data"


def lists(path: Path, references: list[str], texts: list[list[str]], **more: Any) -> Any:
    rows = [{"reference": right, "candidates": [{"text": text, **more} for text in few]}
            for right, few in zip(references, texts, strict=True)]  # fmt: skip
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return rerank.read(path)


@pytest.mark.parametrize(
    ("reference", "text", "said"),
    [
        ("utt1 it rains here", "it rains here", "without the first token of each reference (an id?)"),
        ("it rains here db", "it rains here", "without the last token of each reference (an id, or the name of"),
        ("It Rains here", "it rains here", "without capitals"),
        ("d\u00e9j\u00e0 vu la", "de\u0301ja\u0300 vu la", "in Unicode's form NFKC"),
        ("it rains, here.", "it rains here", "without punctuation marks"),
        ("it rains here", "\u2581it \u2581rain s \u2581here", "with word pieces joined"),
        ("it rains here", "it rain@@ s here", "with word pieces joined"),
        ("it rains here", "it rain ##s here", "with word pieces joined"),
        ("select a from b", "select b from a", "The references are code, which words do not measure"),
        ("(w / want-01 :ARG0 (b / boy))", "(b / boy)", "The references are graphs in brackets"),
        ("tuesday", "monday", "The references have one token each"),
    ],
)
def test_references(reference: str, text: str, said: str, tmp_path: Path) -> None:
    found = lists(tmp_path / "lists.jsonl", [reference] * 3, [[text, text]] * 3)
    assert any(said in line for line in doubts_of_lists(found.first_items()))
    assert doubts_of_lists(found.first_items(), roles={"reference": "reference"}) == []


def test_numbers_that_are_not_used(tmp_path: Path) -> None:
    rows = [{"candidates": [{"text": "a", "gain": 1, "acc": k} for k in (0, 1)]}] * 2
    (tmp_path / "lists.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (line,) = doubts_of_lists(rerank.read(tmp_path / "lists.jsonl").first_items())
    assert line.startswith("Numbers that differ within lists are not used: 'acc' (numbers, 4 of 4). Say what they are")
    assert not doubts_of_lists(rerank.read(tmp_path / "lists.jsonl", roles="acc=unused").first_items())


def test_columns_that_are_the_gain_again(tmp_path: Path) -> None:
    def graded(count: int, graded: bool) -> Any:
        """Lists with a gain, four columns made of it, and two that only go with it."""
        rows = list[Any]()
        for i in range(count):
            gains = [(i + 1) * k for k in range(4)] if graded else [(i + k) % 3 == 0 for k in range(4)]
            rows.append([
                {"text": f"{k}", "gain": gain, "reward": 2 * gain - 1, "iou": gain or k / 9, "loss": -3 * gain,
                 "verifier": 2 * gain + (i + k) / 99, "length": k % 3} for k, gain in enumerate(gains)
            ])  # fmt: skip
        (tmp_path / "lists").write_text("".join(f'{{"candidates": {json.dumps(row)}}}\n' for row in rows))
        return rerank.read(tmp_path / "lists").first_items()

    def told(lists: Any, **roles: str) -> list[str]:
        return [line.split("'")[1] for line in doubts_of_lists(lists, roles=roles) if "as their gain does" in line]

    assert told(graded(19, False)) == []
    assert told(graded(20, False)) == ["iou", "loss", "reward"]
    assert told(graded(20, False), reward="column", iou="unused", loss="base") == ["iou"]
    assert told(graded(20, True)) == ["iou", "loss", "reward", "verifier"]  # whose grades are as different as it is


@pytest.mark.parametrize(("count", "scored", "said"), [(20, False, 1), (19, False, 0), (20, True, 0)])
def test_candidates_whose_order_is_that_of_gains(count: int, scored: bool, said: int, tmp_path: Path) -> None:
    row = [{"text": f"{k}", "gain": int(k == 0), **({"score": k % 2} if scored else {})} for k in range(3)]
    (tmp_path / "lists").write_text(f'{{"candidates": {json.dumps(row)}}}\n' * count)
    found = doubts_of_lists(rerank.read(tmp_path / "lists").first_items())
    assert [line.startswith("The first candidate alone is the best of all lists") for line in found] == [True] * said


@pytest.mark.parametrize("name", ["asr/dev", "asr/test", "llm/dev", "llm/test", "sums/train"])
def test_they_are_silent_on_lists_that_come_with_the_program(name: str) -> None:
    found = rerank.read(DATA / f"{name}.jsonl.gz").first_items()
    assert doubts_of_lists(found) == []


def test_an_account(tmp_path: Path, rerank: Any) -> None:
    rows = [{"qid": f"{i}", "samples": [{"response": f"{i + k}", "reward": k, "passed": k == 1, "model": "m"} for k in
             range(3)]} for i in range(12)]  # fmt: skip
    path = tmp_path / "lists.jsonl.gz"
    path.write_bytes(gzip.compress("".join(f"{json.dumps(row)}\n" for row in rows).encode()))
    assert rerank("look", path).out.splitlines() == [
        f"{path}: jsonl, 12 lists of 3 candidates", 'candidates: samples.response: "0"',
        "base score: none; all are 0, and the first candidate is the base's choice",
        "what is right: gain (passed), 12 of 36 candidates are right", "columns: reward",
        "not used: model (texts, 36 of 36)",
    ]  # fmt: skip
    found = json.loads(rerank("vote", path, "--samples", "10", "--folds", "2", "--json").out)
    assert found["account"]["right"] == "gain (passed), 12 of 36 candidates are right"
    assert found["account"]["measure"] == "mean gain, of the key 'passed'"
    (tmp_path / "bad").write_text('{"candidates": ["a", 1]}\n{"candidates": ["b"]}\n')
    assert "skipped 1 candidate (text)" in rerank("look", tmp_path / "bad").err
    (tmp_path / "texts").write_text('{"id": "a", "candidates": ["a"]}\n')
    refused = rerank("evaluate", tmp_path / "texts", tmp_path / "texts", "--metric", "bleu")
    assert (refused.code, "lists are no sentences" in refused.err) == (2, True)


def test_a_run_has_its_account_and_its_model_the_roles(tmp_path: Path, rerank: Any) -> None:
    rows = [{"qid": f"{i}", "samples": [{"response": f"a {i + k}", "reward": k, "lm": -k} for k in range(3)]}
            for i in range(12)]  # fmt: skip
    text, path = "".join(f"{json.dumps(row)}\n" for row in rows), tmp_path / "lists.jsonl"
    path.write_text(text)
    lists = f"nbest: {path}, train: lists, dev: null, tests: [lists]"
    recipe = tmp_path / "recipe.yaml"
    command = "run", recipe, "-o", tmp_path / "run"
    recipe.write_text(f"name: r\ntask: ranking\nlearner: perceptron\nfeatures: {{set: dense}}\ndata: {{{lists}}}")
    refused = rerank(*command)
    assert (refused.code, "say which key it is: --roles reward=gain (data.roles)" in refused.err) == (2, True)
    path.write_text(text.replace("reward", "am"))
    assert "say which key it is: --roles KEY=gain (data.roles)" in rerank(*command).err
    path.write_text(text)
    recipe.write_text(recipe.read_text()[:-1] + ", roles: {reward: gain}}")
    told = rerank(*command, "--json")
    assert "what is right: gain (reward), from 0 to 2" in told.err
    assert json.loads(told.out)["metrics"]["account"]["right"] == "gain (reward), from 0 to 2"
    assert "<dt>right</dt><dd>gain (reward), from 0 to 2</dd>" in (tmp_path / "run" / "report.html").read_text()
    model = tmp_path / "run" / "model"
    settings = json.loads((model / "model.json").read_text())["settings"]["data"]
    roles = {"samples": "candidates", "response": "text", "qid": "id", "reward": "gain", "lm": "column"}
    assert settings["roles"] == settings["reader"]["roles"] == roles
    assert "is missing" not in rerank("rank", model, path).err
    path.write_text(text.replace("response", "other"))
    assert "'response' is missing, the text in training" in rerank("rank", model, path).err
    assert rerank("look", path, "--roles", "typo=text").err.count("'typo' is missing") == 1
