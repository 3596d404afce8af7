"""Data sets with pairs of what was chosen and rejected, and with parallel lists."""

import gzip
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from outcomes import good, written

from rerank.base.errors import DataError, RecipeError
from rerank.extraction.content.base import make_reader
from rerank.readers.base import read_lists
from rerank.readers.lists import Lists

USER, FOUR, FIVE = (
    {"role": role, "content": text} for role, text in (("user", "2+2?"), ("assistant", "4"), ("assistant", "5"))
)
PARALLEL = {
    "id": 7, "prompt": "2+2?", "responses": ["4", "5", "22"], "scores": [-0.5, -0.75, -3], "gains": [1, 0, 0],
    "models": ["a", "b", "c"], "tags": ["x", "y"], "reference": ["4", "four"],
}  # fmt: skip


def read(root: Path, name: str, *items: dict[str, Any], **options: Any) -> list[Lists]:
    (root / "lists").write_text("".join(json.dumps(item) + "\n" for item in items))
    found = list(make_reader({"name": name, **options}).read(root / "lists"))
    return [one for one in found if isinstance(one, Lists)]


def column(nbest: Lists, name: str) -> list[float]:
    return [float(value) for value in nbest.scores[:, nbest.names.index(name)]]


@pytest.mark.parametrize(
    ("item", "source"),
    [
        ({"prompt": "2+2?", "chosen": "4", "rejected": "5"}, b"2+2?"),
        ({"prompt": [USER], "chosen": [FOUR], "rejected": [FIVE]}, b"2+2?"),
        ({"chosen": [USER, FOUR], "rejected": [USER, FIVE]}, b"2+2?"),
        ({"prompt": "2+2?", "chosen": [USER, FOUR], "rejected": [USER, FIVE]}, b"2+2?"),
        ({"prompt": [USER, FIVE, USER], "chosen": "4", "rejected": "5"}, b"2+2?\n5\n2+2?"),
        ({"chosen": "4", "rejected": "5"}, None),
    ],
)
def test_pairs(item: dict[str, Any], source: bytes | None, tmp_path: Path) -> None:
    one = good(*read(tmp_path, "preferences", item))
    assert (one.texts, column(one, "gain"), one.source) == ([b"4", b"5"], [1.0, 0.0], source)
    assert one.base.tolist() == [0.0, 0.0]


def test_the_place_of_a_candidate_does_not_tell_whether_it_was_chosen(tmp_path: Path) -> None:
    """With equal base scores the first candidate is the base system's choice."""
    items = [{"chosen": "4", "rejected": "5"}, {"chosen": "5", "rejected": "4"}]
    one, two = map(good, read(tmp_path, "preferences", *items))
    assert (one.texts, two.texts) == ([b"4", b"5"], [b"4", b"5"])
    assert (column(one, "gain"), column(two, "gain")) == ([1.0, 0.0], [0.0, 1.0])


def test_keys_are_options_and_numbers_become_columns(tmp_path: Path) -> None:
    item = {"prompt_id": "p", "question": "2+2?", "winner": "4", "losers": ["5", "22"], "s": 4.5, "t": [1, 2.5]}
    options = {"prompt": "question", "chosen": "winner", "rejected": "losers", "id": "prompt_id"}
    one = good(*read(tmp_path, "preferences", item, **options, numbers={"gain": ["s", "t"], "lm": ["s", "t"]}))
    assert (one.id, one.texts, one.source) == ("p", [b"22", b"4", b"5"], b"2+2?")
    assert column(one, "gain") == column(one, "lm") == [2.5, 4.5, 1.0]


@pytest.mark.parametrize(
    ("name", "item", "reason", "message"),
    [
        ("preferences", {"chosen": "4"}, "text", "there is no 'rejected'; the reader's options chosen and rejected"),
        ("preferences", {"chosen": 4, "rejected": 5}, "text", "expected 'chosen' or 'rejected' as a string"),
        ("preferences", {"chosen": [{"a": 1}], "rejected": [{"a": 1}]}, "text", "expected messages with a role"),
        (
            "preferences",
            {"chosen": [USER, FOUR], "rejected": [USER, FOUR, USER, FIVE]},
            "text",
            "the answers come after different messages",
        ),
        ("parallel", {"response": []}, "text", "found null under 'responses'; expected a list of texts; the reader's"),
        ("parallel", {"responses": ["a"], "scores": [1, 2]}, "columns", "found 2 entries under 'scores'"),
        ("parallel", {"responses": [1]}, "text", "expected text 1 as a string"),
        ("parallel", {"responses": ["a"], "scores": ["b"]}, "score", "expected entry 1 of 'scores' as a number"),
    ],
)
def test_faults(name: str, item: dict[str, Any], reason: str, message: str, tmp_path: Path) -> None:
    (bad,) = read(tmp_path, name, item)
    assert (bad.problem.reason, bad.line) == (reason, 1)
    assert message in bad.problem.message


@pytest.mark.parametrize("name", ["openai", "preferences", "parallel", "jsonl"])
def test_an_object_that_is_spread_over_lines_is_told_how_to_become_one_line(name: str, tmp_path: Path) -> None:
    (tmp_path / "lists").write_text(json.dumps({"a": 1}, indent=1))
    first, *_ = make_reader({"name": name}).read(tmp_path / "lists")
    assert "jq -c ." in first.problem.message


@pytest.mark.parametrize("indent", [None, 1])
def test_an_array_is_read_like_lines(indent: int | None, tmp_path: Path) -> None:
    items = [PARALLEL, PARALLEL | {"id": 8, "responses": ["\udce9"] * 3}, PARALLEL | {"id": 9}]
    text = json.dumps(items, indent=indent, ensure_ascii=False).encode("utf-8", "surrogateescape")
    (tmp_path / "lists").write_bytes(b"\n \n" + text)
    found = list(make_reader("parallel").read(tmp_path / "lists"))
    assert [one.line for one in found] == ([3, 3, 3] if indent is None else [4, 36, 68])
    assert good(found[0]).texts == good(found[2]).texts == [b"4", b"5", b"22"]
    assert good(found[1]).texts == [b"\xe9"] * 3
    (tmp_path / "lists").write_bytes(gzip.compress(b" [ ]\n"))
    assert not list(make_reader("parallel").read(tmp_path / "lists"))


def test_a_line_of_any_length_may_hold_an_array(tmp_path: Path) -> None:
    (tmp_path / "lists").write_text(json.dumps([{"responses": ["a" * 1000] * 100}] * 200))
    assert sum(map(len, make_reader("parallel").read(tmp_path / "lists"))) == 20_000


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ('[{"responses": ["a"]},\n {"responses": ', 2, "found the end of the file; expected a JSON array of objects"),
        ('[{"responses": ["a"]}\n\n{', 3, "found '{'; expected a comma and the next object, or the end of the array"),
        ('[{"responses": ["a"]}]\n[{}]', 2, "found '[{}]'; expected nothing after the array, or objects on lines"),
        ("[" * 100_000, 1, "expected objects without thousands of digits or levels"),
    ],
)
def test_a_damaged_array_is_an_error_whatever_is_skipped(text: str, line: int, message: str, tmp_path: Path) -> None:
    (tmp_path / "lists").write_text(text)
    with pytest.raises(DataError) as caught:
        list(read_lists(make_reader("parallel"), tmp_path / "lists", "skip"))
    assert caught.value.line == line
    assert message in caught.value.message


def test_what_is_no_object_in_an_array_is_a_bad_list(tmp_path: Path) -> None:
    (tmp_path / "lists").write_text('[7,\n{"responses": ["a"], "responses": []}, {"responses": [NaN]}]')
    one, two, three = make_reader("parallel").read(tmp_path / "lists")
    assert [(bad.problem.reason, bad.line) for bad in (one, two, three)] == [("json", 1), ("json", 2), ("text", 2)]


def test_numbers_that_are_asked_for_must_be_there(tmp_path: Path) -> None:
    (bad,) = read(tmp_path, "parallel", {"responses": ["a"]}, numbers={"score": "logps"})
    assert "found null under 'logps' for the column 'score'" in bad.problem.message
    pair, options = {"chosen": "a", "rejected": ["b"], "s": 1, "t": [1, 2]}, {"numbers": {"lm": ["s", "t"]}}
    (bad,) = read(tmp_path, "preferences", pair, **options)
    assert "found 2 numbers under 't'; expected one for each text under 'rejected'" in bad.problem.message


@pytest.mark.parametrize(
    ("name", "numbers"),
    [("preferences", "gain"), ("preferences", {"gain": ["a"]}), ("preferences", {"gain": ["a", 1]}),
     ("preferences", {"gain": "ab"}), ("parallel", "gain"), ("parallel", {"gain": ["a"]}), ("parallel", {"": "a"})],
)  # fmt: skip
def test_other_options_are_refused(name: str, numbers: Any) -> None:
    with pytest.raises(RecipeError, match=r"data\.reader\.numbers: found .*; expected the names of columns"):
        make_reader({"name": name, "numbers": numbers})


def test_parallel_lists(tmp_path: Path) -> None:
    one = good(*read(tmp_path, "parallel", PARALLEL))
    assert (one.id, one.source, one.references) == ("7", b"2+2?", (b"4", b"four"))
    assert (one.texts, one.base.tolist()) == ([b"4", b"5", b"22"], [-0.5, -0.75, -3.0])
    assert column(one, "gain") == [1.0, 0.0, 0.0]
    chats = {"q": [USER], "answers": [[USER, FOUR], [USER, FIVE]], "r": [0.5, 1], "ref": "4"}
    options = {"prompt": "q", "texts": "answers", "reference": "ref", "numbers": {"gain": "r"}}
    one = good(*read(tmp_path, "parallel", chats, **options))
    assert (one.texts, one.source, one.references) == ([b"4", b"5"], b"2+2?", (b"4",))
    assert (column(one, "gain"), one.base.tolist()) == ([0.5, 1.0], [0.0, 0.0])


def test_parallel_lists_are_written_in_their_order(tmp_path: Path) -> None:
    reader, one, out = make_reader({"name": "parallel"}), good(*read(tmp_path, "parallel", PARALLEL)), io.BytesIO()
    reader.write(out, one)
    assert json.loads(out.getvalue()) == PARALLEL
    expected = PARALLEL | {
        "responses": ["22", "4"], "scores": [1.5, 0.5], "base_scores": [-3.0, -0.5], "gains": [0, 1],
        "models": ["c", "a"],
    }  # fmt: skip
    assert json.loads(written(reader, one, [2, 0], np.array([0.5, 1.0, 1.5]))) == expected
    again = good(*read(tmp_path, "parallel", expected))
    assert (again.base.tolist(), column(again, "base_score")) == ([1.5, 0.5], [-3.0, -0.5])


def test_what_a_user_may_name_twice_is_no_traceback(tmp_path: Path) -> None:
    one = good(*read(tmp_path, "parallel", {"prompt": ["a", "b"]}, texts="prompt", prompt="x"))
    assert one.texts == [b"a", b"b"]
    (bad,) = read(tmp_path, "parallel", {"prompt": ["a", "b"]}, texts="prompt")
    assert "expected 'prompt' as a string" in bad.problem.message
