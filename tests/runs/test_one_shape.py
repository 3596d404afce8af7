"""One shape of a candidate: the JSON line that trained a model is what everything else takes."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

import rerank
from rerank.contrib.serve.app import answer
from rerank.extraction.kinds import resolve_features
from rerank.recipes.loading import read_settings

TRAINING: dict[str, Any] = {"features": ["Dense", "SameAnswer", "Given"], "metric": "gain", "epochs": 3, "seed": 1}


def line(i: int) -> dict[str, Any]:
    """A list as a JSON line has it; some candidates have a number that the others lack."""
    generator = np.random.default_rng(i)
    candidates: list[dict[str, Any]] = [
        {
            "text": f"{i} is {k}",
            "score": generator.normal(),
            "lm": generator.normal(),
            "answer": str(k % 3) * (k < 3 or i % 2),
            "gain": float(k == i % 3),
        }
        for k in range(4)
    ]
    candidates[i % 3]["right"] = 0.1 * i
    return {"id": i, "source": f"what is {i}", "candidates": candidates}


@pytest.fixture(scope="module")
def lines() -> list[str]:
    return [json.dumps(line(i)) for i in range(20)]


@pytest.fixture(scope="module")
def model(lines: list[str]) -> rerank.Reranker:
    return rerank.fit(map(json.loads, lines), **TRAINING)


def test_a_training_line_goes_everywhere_as_it_is(lines: list[str], model: rerank.Reranker, tmp_path: Path) -> None:
    (tmp_path / "lists.jsonl").write_text("\n".join(lines))
    read = rerank.fit(rerank.read(tmp_path / "lists.jsonl", "jsonl"), **TRAINING)
    assert read.to_json() == model.to_json()
    given = [json.loads(each) for each in lines]
    expected = [(ranking.order.tolist(), ranking.scores.tolist()) for ranking in read.rank_many(given)]
    assert [len(order) for order, _ in expected] == [4] * len(lines)

    def same(rankings: Iterable[rerank.Ranking]) -> bool:
        return [(ranking.order.tolist(), ranking.scores.tolist()) for ranking in rankings] == expected

    assert same(map(model.rank, given))
    assert same(model.rank(each["candidates"], each["source"]) for each in given)
    assert same(model.rank_many(tmp_path / "lists.jsonl", format="jsonl"))
    served = [json.loads(answer(model, each.encode())[0]) for each in lines]
    assert [(each["order"], each["scores"]) for each in served] == expected
    assert [each["id"] for each in served] == [each["id"] for each in given]
    shown = read.rank(given[0])
    assert shown.answers == [tuple(pair) for pair in served[0]["answers"]]
    assert sum(share for _, share in shown.answers) <= sum(shown.probabilities) + 1e-12
    without = [[{key: one[key] for key in one if key != "answer"} for one in each["candidates"]] for each in given]
    assert not same(map(model.rank, without))


def test_a_rule_finds_the_same_answers_in_every_shape(lines: list[str], tmp_path: Path) -> None:
    given = [json.loads(each) for each in lines]
    for each in given:
        for one in each["candidates"]:
            one["text"] = f"so \\boxed{{{one.pop('answer')}}}"
    (tmp_path / "lists.jsonl").write_text("".join(json.dumps(each) + "\n" for each in given))
    rows = [{"id": each["id"], **one} for each in given for one in each["candidates"]]
    table = pandas.DataFrame(rows).drop(columns="right")
    by_file = rerank.fit(rerank.read(tmp_path / "lists.jsonl", "jsonl", answer="boxed"), **TRAINING)
    in_frame = rerank.read(table, group="id", text="text", score="score", gain="gain", columns=["lm"], answer="boxed")
    assert by_file.to_json() == rerank.fit(given, answer="boxed", **TRAINING).to_json()
    assert by_file.recipe.data.answer == rerank.fit(in_frame, **TRAINING).recipe.data.answer == "boxed"
    assert by_file.rank(given[1]).answers == by_file.rank(tuple(given[1]["candidates"])).answers != []
    assert [[one.answer for one in each.candidates] for each in in_frame][1] == ["0", "1", "2", "0"]
    with pytest.raises(rerank.RerankError, match="last-number"):
        rerank.fit(given, answer="number", **TRAINING)


def test_a_model_finds_answers_as_those_of_its_lists_were_found(lines: list[str], tmp_path: Path) -> None:
    given = [[f"so {one['answer']}" for one in json.loads(each)["candidates"]] for each in lines]
    forms = [{"problem": "?", "completions": texts, "answer": texts[i % 3][3:]} for i, texts in enumerate(given)]
    (tmp_path / "forms.jsonl").write_text("".join(json.dumps(each) + "\n" for each in forms))
    model = rerank.fit(rerank.read(tmp_path / "forms.jsonl"), **TRAINING)
    assert (model.recipe.data.answer, model.recipe.data.reader) == ("last-number", {"name": "jsonl", "answer": None})
    (known, *_), bare = model.rank_many(tmp_path / "forms.jsonl"), model.rank(given[0])
    assert (bare.order.tolist(), bare.scores.tolist()) == (known.order.tolist(), known.scores.tolist())
    assert bare.answers == known.answers != []
    assert rerank.fit(forms, **TRAINING).to_json() == model.to_json()
    files = {"root": str(tmp_path), "nbest": "{root}/{split}.jsonl", "train": "forms"}
    recipe = read_settings({"task": "ranking", "name": "r", "data": files})
    expected = recipe.change({"data.answer": "last-number", "data.reader.answer": None})
    assert resolve_features(recipe).data == expected.data
