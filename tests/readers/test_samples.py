"""Scores of steps, reasons to end and labels of samples, in all formats of JSON that have them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from outcomes import good

from rerank.base.errors import DataError, RecipeError
from rerank.readers.base import ScoreColumns, make_reader
from rerank.readers.given.nbest import GivenError, list_given

PRM = ("prm:min", "prm:mean", "prm:last", "prm:prod")
STEPS, VALUES = [[0.5, 0.25, 1], [0.75]], [[0.25, 1.75 / 3, 1.0, 0.125], [0.75, 0.75, 0.75, 0.75]]
SHAPES: dict[str, Any] = {
    "jsonl": lambda key, one: {
        "candidates": [{"text": text, key: value} for text, value in zip("ab", one, strict=True)]
    },
    "openai": lambda key, one: {"choices": [{"text": text, key: value} for text, value in zip("ab", one, strict=True)]},
    "parallel": lambda key, one: {"responses": ["a", "b"], key: one},
}


def read(root: Path, name: str, *items: Any, **options: Any) -> list[Any]:
    (root / "lists").write_text("".join(json.dumps(item) + "\n" for item in items))
    roles = {} if name == "jsonl" else {"roles": {"prm": "column"}}
    return list(make_reader({"name": "jsonl", **roles, **options}).read(root / "lists"))


@pytest.mark.parametrize("name", SHAPES)
def test_scores_of_steps_are_columns(name: str, tmp_path: Path) -> None:
    item = SHAPES[name]("prm", STEPS)
    one = good(*read(tmp_path, name, item))
    assert one.names == ("score", *PRM)
    np.testing.assert_array_equal(one.scores[:, 1:], VALUES)
    one = good(*read(tmp_path, name, item, steps=["last", "min"]))
    assert (one.names, one.scores[0].tolist()) == (("score", "prm:last", "prm:min"), [0.0, 1.0, 0.25])


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize(
    ("value", "found"), [([], "an empty list"), (0.5, "0.5"), ([0.5, "x"], '"x"; expected a score under')]
)
def test_what_is_no_list_of_scores_beside_some_is_bad(name: str, value: Any, found: str, tmp_path: Path) -> None:
    one = good(*read(tmp_path, name, SHAPES[name]("prm", [[0.5], value])))
    (bad,) = one.bad
    assert (bad.reason, bad.place) == ("columns", 1)
    assert f"found {found}" in bad.message


def test_lists_of_whole_numbers_are_ids_of_tokens_and_products_have_a_largest(tmp_path: Path) -> None:
    numbers = {"ids": [1, 2], "lm": [-9.5] * 401, "x": [1e300] * 2, "y": [1e300, 1e300, 0]}
    one = good(*read(tmp_path, "jsonl", {"candidates": [{"text": "a", **numbers}]}, steps=["prod"]))
    assert one.names == ("score", "lm:prod", "x:prod", "y:prod")
    largest = float(np.finfo(np.float32).max)
    assert one.scores.tolist() == [[0.0, -largest, largest, 0.0]]


@pytest.mark.parametrize(
    ("reason", "cut"), [("length", 1.0), ("incomplete", 1.0), ("stop", 0.0), (None, 0.0), (7, 0.0)]
)
def test_a_reason_to_end_is_a_column(reason: Any, cut: float, tmp_path: Path) -> None:
    for name in ("jsonl", "openai"):
        one = good(*read(tmp_path, name, SHAPES[name]("finish_reason", [reason, "stop"])))
        assert (one.names, one.scores[:, 1].tolist()) == (("score", "finish_length"), [cut, 0.0])


@pytest.mark.parametrize("name", SHAPES)
def test_texts_are_sparse_features_where_they_are_asked_for(name: str, tmp_path: Path) -> None:
    items = SHAPES[name]("model", ["x", "y"]), SHAPES[name]("model", ["x", None])
    assert all(one.sparse is None for one in read(tmp_path, name, *items))
    one, two = (good(found) for found in read(tmp_path, name, *items, labels=["model", "system"]))
    assert (one.names, one.sparse.names, one.sparse.values.tolist()) == (("score",), [b"model=x", b"model=y"], [1, 1])
    assert (two.sparse.names, two.sparse.first.tolist()) == ([b"model=x"], [0, 1, 1])


@pytest.mark.parametrize("options", [{"steps": ["max"]}, {"steps": "min"}, {"labels": "model"}, {"labels": [""]}])
def test_other_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(RecipeError, match=f"data.reader.{min(options)}: found .*; expected"):
        make_reader({"name": "jsonl", **options})


def test_candidates_in_memory_have_what_lines_have(tmp_path: Path) -> None:
    entries: list[dict[str, Any]] = [
        {"text": "a", "prm": [0.5, 0.25, 1], "finish_reason": "length"},
        {"text": "b", "prm": [0.75], "finish_reason": {"type": "stop"}, "ids": [1]},
    ]
    one = good(*read(tmp_path, "jsonl", {"candidates": entries}))
    given = list_given(entries, texts=True, name="0")
    assert set(given.names) == set(one.names)
    assert given.scores[:, [given.names.index(name) for name in one.names]].tolist() == one.scores.tolist()
    with pytest.raises(DataError, match="found NaN; expected a score under 'prm' of candidate 1 as a finite number"):
        list_given([{"text": "a", "prm": [0.5, float("nan")]}], texts=True, name="0")


COLUMNS = ScoreColumns(("score", "length", "reward"), "score")
NAMED = ScoreColumns(("logprob", "reward"), "logprob")


@pytest.mark.parametrize(
    ("columns", "rows"),
    [
        (COLUMNS, [{"text": f" {y}", "score": y, "columns": {"reward": -0.5, "length": 2}} for y in range(3)]),
        (
            COLUMNS,
            [
                {"text": "a", "score": 1.0, "reward": 0.25, "length": 2},
                {"text": "a", **dict.fromkeys(COLUMNS.names, 1)},
            ],
        ),
        (
            NAMED,
            [
                {"text": "a", "score": 1.0, "columns": {"reward": 2}},
                {"text": "", "score": 3, "columns": {"reward": 1e300}},
            ],
        ),
        (NAMED, [{"text": "a", "logprob": -1.0, "reward": 2}]),
    ],
)
def test_candidates_that_are_alike_are_the_list_that_others_are(columns: ScoreColumns, rows: list[Any]) -> None:
    """A tuple of them is looked at candidate by candidate."""
    alike, one_by_one = (vars(list_given(each, columns, texts=True, name="0")) for each in (rows, tuple(rows)))
    given = ("scores", "first", "lines", "sides")
    assert {key: value for key, value in alike.items() if key not in given} == {
        key: value for key, value in one_by_one.items() if key not in given
    }
    for key in ("scores", "first", "lines"):
        assert np.array_equal(alike[key], one_by_one[key])
    for wrong in ("7", True, None, float("inf")):
        messages = list[str]()
        for each in ([*rows, {**rows[0], list(rows[0])[1]: wrong}], (*rows, {**rows[0], list(rows[0])[1]: wrong})):
            with pytest.raises(GivenError) as raised:
                list_given(each, columns, texts=True, name="0")
            messages.append(str(raised.value))
        assert messages[0] == messages[1]
