"""Sockeye's JSON lines: with and without n-best lists, costs and log probabilities."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import outcomes
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from outcomes import problem_of

from rerank.contrib.formats.translation import SockeyeReader
from rerank.readers.lists import Lists

NESTED = {
    "score": 0.3, "scores": [[0.3], [0.9]], "sentence_id": 1, "translation": "a b", "translations": ["a b", "a c"],
}  # fmt: skip
PLAIN = {"score": 1.5, "scores": [1.5, 2.5], "sentence_id": 2, "translation": "d", "translations": ["d", "e"]}
SINGLE = {"score": 0.7, "sentence_id": 3, "translation": "f"}
FACTORS = {
    "factor1": "x", "score": 0.3, "scores": [[0.3, 1], [0.9, 2]], "sentence_id": "s", "translation": "a",
    "translations": ["a", "b"], "translations_factors": [{"factor1": "x"}, {"factor1": "y"}],
}  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sockeye") / "lists.json"


def read(place: Path, *items: Any, **options: Any) -> list[Any]:
    place.write_text("".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in items))
    return list(SockeyeReader(**options).read(place))


def written(nbest: Lists, *args: Any, **options: Any) -> Any:
    return json.loads(outcomes.written(SockeyeReader(**options), nbest, *args))


def test_scores_are_costs_and_the_base_score_is_their_negative(place: Path) -> None:
    nested, plain, single, factors = read(place, NESTED, PLAIN, SINGLE, FACTORS)
    assert (nested.id, nested.texts, nested.base.tolist()) == ("1", [b"a b", b"a c"], [-0.3, -0.9])
    assert (plain.id, plain.texts, plain.base.tolist()) == ("2", [b"d", b"e"], [-1.5, -2.5])
    assert (single.id, single.texts, single.base.tolist(), single.line) == ("3", [b"f"], [-0.7], 3)
    assert nested.names == plain.names == single.names == ("score",)
    assert (factors.names, factors.scores.tolist()) == (("score", "factor1"), [[-0.3, -1.0], [-0.9, -2.0]])
    (found,) = read(place, NESTED, scores="logprob")
    assert found.base.tolist() == [0.3, 0.9]


def test_no_translation_is_a_list_without_candidates(place: Path) -> None:
    line = '{"score": -Infinity, "sentence_id": 4, "translation": ""}'
    (found,) = read(place, line)
    assert (len(found), found.scores.shape, found.names) == (0, (0, 1), ("score",))
    assert written(found) == json.loads(line)
    (empty,) = read(place, {"score": 1.0, "translation": ""})
    assert empty.texts == [b""]


@pytest.mark.parametrize("item", [NESTED, PLAIN, SINGLE, FACTORS], ids=str)
def test_lists_are_written_as_they_were_read(place: Path, item: dict[str, Any]) -> None:
    (found,) = read(place, item)
    assert written(found) == item
    assert list(written(found)) == list(item)


def test_new_scores_and_order(place: Path) -> None:
    nested, plain, single, factors = read(place, NESTED, PLAIN, SINGLE, FACTORS)
    assert written(nested, [1, 0], np.array([-2.0, 3.0])) == {
        "score": -3.0, "scores": [[-3.0], [2.0]], "sentence_id": 1, "translation": "a c",
        "translations": ["a c", "a b"],
    }  # fmt: skip
    assert written(plain, [1]) == {**PLAIN, "score": 2.5, "scores": [2.5], "translation": "e", "translations": ["e"]}
    assert written(single, [0], np.array([4.0])) == {**SINGLE, "score": -4.0}
    assert written(single, None, np.array([4.0]), scores="logprob") == {**SINGLE, "score": 4.0}
    again = written(factors, [1, 0], np.array([0.0, 1.0]))
    assert (again["factor1"], again["scores"]) == ("y", [[-1.0, 2], [0.0, 1]])
    assert again["translations_factors"] == [{"factor1": "y"}, {"factor1": "x"}]


BAD = {
    "no json": ("json", "{", "JSON"),
    "no translation": ("text", {"score": 1}, "no 'translation'"),
    "no score": ("score", {"translation": "a"}, "no 'score'"),
    "no scores": ("columns", {"translations": ["a"]}, "found null under 'scores'; expected one for each of 1"),
    "another number of scores": ("columns", {"translations": ["a"], "scores": [1, 2]}, "found 2 entries"),
    "translation a number": ("text", {"translations": [1], "scores": [1]}, "found 1; expected translation 1"),
    "score a text": ("score", {"translation": "a", "score": "x"}, 'found "x"'),
    "a score without numbers": ("score", {"translations": ["a"], "scores": [[]]}, "translation 1 has no score"),
    "ragged": ("columns", {"translations": ["a", "b"], "scores": [[1], [1, 2]]}, "translation 2 has 2 scores"),
    "infinite": ("infinite score", '{"sentence_id": 2, "translation": "a", "score": Infinity}', "found Infinity"),
    "factors": ("columns", {"translations": ["a"], "scores": [1], "translations_factors": [7]}, "expected objects"),
    "id": ("id", {"sentence_id": [], "translation": "a", "score": 1}, "'sentence_id'"),
    "id twice": ("duplicate id", {**PLAIN, "sentence_id": 1}, "line 1"),
}


@pytest.mark.parametrize("what", BAD)
def test_what_is_bad_has_its_reason(place: Path, what: str) -> None:
    reason, item, part = BAD[what]
    if isinstance(item, dict):
        item = {"sentence_id": 2, **item}
    _, found, after = read(place, NESTED, item, SINGLE)
    problem = problem_of(found)
    assert (problem.reason, problem.line) == (reason, 2)
    assert part in problem.message
    assert after.texts == [b"f"]


TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)
COST = st.floats(-1e9, 1e9)


@settings(max_examples=100, deadline=None)
@given(rows=st.lists(st.tuples(TEXT, COST), min_size=2, max_size=5), nested=st.booleans(), data=st.data())
def test_writing_and_reading_again(place: Path, rows: list[tuple[str, float]], nested: bool, data: Any) -> None:
    texts, costs = [text for text, _ in rows], [cost for _, cost in rows]
    item = {
        "sentence_id": 5, "translation": texts[0], "score": costs[0], "translations": texts,
        "scores": [[cost] for cost in costs] if nested else costs,
    }  # fmt: skip
    (found,) = read(place, item)
    assert found.texts == [text.encode().strip() for text in texts]
    assert found.base.tolist() == [-cost for cost in costs]
    order = data.draw(st.permutations(range(len(rows))))
    new = np.array(data.draw(st.lists(COST, min_size=len(rows), max_size=len(rows))))
    (again,) = read(place, written(found, order, new))
    assert again.texts == [found.texts[i] for i in order]
    assert again.base.tolist() == [new[i] for i in order]
