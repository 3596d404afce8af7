"""What the keys of objects of any shape are, and how a user overrules it."""

import json
from pathlib import Path
from typing import Any

import pytest

import rerank
from rerank.base.errors import DataError, RecipeError
from rerank.readers.base import ScoreColumns, make_reader
from rerank.readers.lists import Lists

Rows = list[dict[str, Any]]


def flat(**more: list[Any]) -> Rows:
    """Rows of two lists of two candidates, each with what ``more`` has for it."""
    rows = [{"qid": f"q{k // 2}", "question": f"{k // 2}?", "response": f"{k}"} for k in range(4)]
    return [row | {key: values[k] for key, values in more.items()} for k, row in enumerate(rows)]


def nested(key: str, text: str, **more: list[Any]) -> Rows:
    return [{key: [{text: f"{k}"} | {name: values[k] for name, values in more.items()} for k in pair]}
            for pair in ((0, 1), (2, 3))]  # fmt: skip


# What they are: rows, the columns besides the score, the first list's scores, what is not used, and the keys that could
# be the gain.
SHAPES: dict[str, tuple[Any, tuple[str, ...], list[list[float]], set[str], tuple[str, ...]]] = {
    "rows, passed beside a reward": (
        flat(reward=[0.5, 1.5, 2, 3], passed=[True, False, True, True]), ("reward", "gain"), [[0.5, 1], [1.5, 0]],
        set(), ()),
    "rows, a reward alone": (flat(reward=[0.5, 1.5, 2, 3]), ("reward",), [[0.5], [1.5]], set(), ()),
    "lists of objects": (
        nested("samples", "response", reward_score=[1, 2, 3, 4], is_correct=[True, False, False, True]),
        ("reward_score", "gain"), [[1, 1], [2, 0]], set(), ()),
    "two gains": (
        nested("samples", "response", passed=[1, 0, 1, 1], correct=[1, 1, 1, 0]), (), [[], []], {"passed", "correct"},
        ("passed", "correct")),
    "verdicts": (nested("samples", "code", status=["pass", "fail", "pass", "pass"]), ("gain",), [[1], [0]], set(), ()),
    "numbers written as texts": (
        nested("candidates", "text", lm=["-1.5", "-2", "1e1", "0"], conf=["53%", "1%", "2%", "3 %"]), ("lm", "conf"),
        [[-1.5, 53], [-2, 1]], set(), ()),
    "numbers in lists": (
        nested("candidates", "text", conf=[[0.5], [0.25], [1], [2]]), ("conf",), [[0.5], [0.25]], set(), ()),
    "another gain": (
        nested("candidates", "text", gain=[1, 0, 1, 0], acc=[1, 1, 0, 0]), ("gain",), [[1], [0]], {"acc"}, ()),
    "ids": (nested("candidates", "text", page_id=[7, 8, 9, 10], docno=["1", "2", "3", "4"]), (), [[], []],
            {"page_id", "docno"}, ()),
    "lists along": (
        [{"prompt": "?", "completions": ["a", "b"], "rewards": [1.5, 2], "labels": [0, 1]}] * 2, ("rewards", "gain"),
        [[1.5, 0], [2, 1]], set(), ()),
    "the right one": (
        [{"candidates": ["a", "b"], "cand_probs": [0.25, 0.75], "gold": "b"},
         {"candidates": ["a", "b", "c"], "cand_probs": [1, 0, 0], "gold": "a"}],
        ("cand_probs", "gain"), [[0.25, 0], [0.75, 1]], set(), ()),
    "its place": ([{"mention": f"{k}", "candidates": [["a", 0.5], ["b", 0.25]], "gold": k} for k in (1, 0)],
                  ("gain",), [[0], [1]], set(), ()),
    "the first one, which a program has chosen": (
        [{"candidates": ["a", "b"], "best": "a"}] * 3, (), [[], []], {"best"}, ()),
    "by their ids": ({"date": "today", "eval": {"a": [{"solution": "x"}, {"solution": "y"}], "b": [{"solution": "z"}]}},
                     (), [[], []], set(), ()),
    "tokens": ([{"hypotheses": [["it", "rains"], ["it"]], "scores": [-1, -2]}] * 2, (), [[], []], set(), ()),
    "a key that is null, and one that is no list": (
        [{"candidates": "none", "nbest": ["a", "b"], "note": None}] * 2, (), [[], []], {"candidates", "note"}, ()),
    "steps, none of an empty text": (
        [{"candidates": [{"text": "a b", "conf": [0.5, 0.25]}, {"text": "", "conf": []}]}] * 2,
        ("conf:min", "conf:mean", "conf:last", "conf:prod"), [[0.25, 0.375, 0.25, 0.125]], set(), ()),
    "a response that is opened, whose model is another": (
        [{"model": "x", "answer": {"model": "y", "outputs": ["a", "b"]}}] * 2, (), [[], []], {"model", "answer.model"},
        ()),
    "candidates beside one another": (
        [{"prompt": "?", "response_1": "a", "response_2": "b", "response_3": None, "lm 1": 1, "lm 2": "2", "page_7": 3,
          "page_8": 4}] * 2, ("lm",), [[1], [2]], {"page_7", "page_8"}, ()),
    "arrays on lines": ([[{"generated_text": "a", "p": 1}, {"generated_text": "b", "p": 2}]] * 2, ("p",), [[1], [2]],
                        set(), ()),
}  # fmt: skip


def found(path: Path, rows: Any, **options: Any) -> list[Lists]:
    every = rows if isinstance(rows, list) else [rows]
    path.write_text("".join(json.dumps(row) + "\n" for row in every))
    return list(make_reader({"name": "jsonl", **options}, "").read(path))


@pytest.mark.parametrize("name", SHAPES)
def test_shapes(name: str, tmp_path: Path) -> None:
    rows, columns, scores, unused, gains = SHAPES[name]
    first, second, *_ = found(tmp_path / "lists", rows)
    assert first.problem is None
    assert second.problem is None
    assert first.names == ("score", *columns) == second.names
    assert first.scores[:, 1:].tolist() == scores
    assert set(first.roles.unused) == unused
    assert first.roles.gains == gains
    if first.roles.group:
        return
    names = tuple(name for name in first.names if name != "gain")  # that a model has learned from
    again = next(iter(make_reader("jsonl", "").knowing(ScoreColumns(names, "score")).read(tmp_path / "lists")))
    assert again.problem is None
    assert [again.scores[:, again.names.index(name)].tolist() for name in names] == [
        first.scores[:, first.names.index(name)].tolist() for name in names
    ]


@pytest.mark.parametrize("bad", [0, 3])
def test_one_bad_row_decides_nothing(bad: int, tmp_path: Path) -> None:
    rows = [{"audio_filepath": f"{k // 3}.wav", "text": "it rains", "pred_text": f"it {k}"} for k in range(9)]
    rows[bad]["pred"] = rows[bad].pop("pred_text")
    lists = found(tmp_path / "lists", [{"no": "list"}, *rows])
    assert [(one.problem.reason, one.line) for one in lists if one.problem is not None] == [("text", 1)]
    sizes = {one.id: (len(one), len(one.bad)) for one in lists if one.problem is None}
    assert sizes == {f"{k}.wav": (2, 1) if k == bad // 3 else (3, 0) for k in range(3)}


def test_roles_that_are_named(tmp_path: Path) -> None:
    rows = nested(
        "takes", "words", reward=[1, 2, 3, 4], passed=[1, 0, 0, 1], other=["x", "y", "x", "y"], junk=[1, 2, 3, 4]
    )
    roles = {
        "takes": "candidates",
        "words": "text",
        "reward": "gain",
        "passed": "column",
        "other": "label",
        "junk": "unused",
    }
    first, _ = found(tmp_path / "lists", rows, roles=roles)
    assert first.problem is None
    assert (first.names, first.scores.tolist()) == (("score", "gain", "passed"), [[0, 1, 1], [0, 2, 0]])
    assert first.sparse is not None
    assert first.sparse.names == [b"other=x", b"other=y"]
    with pytest.raises(RecipeError, match="found 'sum' as the role of 'x'; expected one of candidates, text, "):
        found(tmp_path / "lists", rows, roles={"x": "sum"})


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"a": ["x", "y"], "b": ["x", "z"]}] * 2, "'a' or 'b' could be the candidates; say which, as --roles a=cand"),
        (
            [{"text": f"{k}", "a": f"a{k // 2}", "b": f"b{k // 3}"} for k in range(6)],
            "'a' or 'b' could tell the lists; say",
        ),
    ],
)
def test_two_readings_are_named(rows: Rows, message: str, tmp_path: Path) -> None:
    (tmp_path / "lists").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(DataError, match=message):
        list(rerank.read(tmp_path / "lists"))


def test_a_right_answer_that_is_a_program_is_refused(tmp_path: Path) -> None:
    item = {"problem": "?", "completions": ["def f(): 1"], "answer": "def f():\n    return 1"}
    (bad,) = found(tmp_path / "lists", [item])
    assert bad.problem is not None
    assert "'answer' is a program, which no text equals; run it, and add its verdicts" in bad.problem.message
