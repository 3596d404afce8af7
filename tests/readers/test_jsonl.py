"""Lists in JSON lines: what is read, what is bad, what is written."""

import cProfile
import gzip
import io
import json
import pstats
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import outcomes
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from outcomes import problem_of, read_lists

import rerank
from rerank.base.errors import DataError
from rerank.readers.lists import Lists
from rerank.readers.moses import Moses
from rerank.readers.reader import Problem, SkipCount
from rerank.readers.texts.json_lines import LinePieces
from rerank.readers.texts.jsonl import JsonlReader

DEEP = b"[" * 100_000 + b"]" * 100_000


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("jsonl") / "lists.jsonl"


def read(place: Path, data: bytes | str, **options: Any) -> list[Lists]:
    place.write_bytes(data if isinstance(data, bytes) else data.encode())
    return list(JsonlReader(**options).read(place))  # type: ignore[arg-type]


def one(place: Path, item: Any, **options: Any) -> Lists:
    (found,) = read(place, json.dumps(item), **options)
    assert found.problem is None, found
    return found


def bad(place: Path, data: bytes | str, **options: Any) -> Problem:
    found = read(place, data, **options)[-1]
    return problem_of(found)


def written(nbest: Lists, *args: Any) -> Any:
    text = outcomes.written(JsonlReader(), nbest, *args)
    assert text.count(b"\n") == 1
    return json.loads(text)


FULL = {
    "id": "a",
    "source": "Es regnet .",
    "references": ["It rains .", "It is raining ."],
    "extra": {"kept": [1, None]},
    "candidates": [
        {"text": " It rains . ", "score": -1.5, "features": {"lm": -2, "rare": 1.5}, "segmentation": "0-2=0-2"},
        {"text": "It rain .", "score": -2.0, "features": {"lm": -3.25}, "note": "x"},
    ],
    "last": True,
}


def test_all_that_an_object_can_hold(place: Path) -> None:
    found = one(place, FULL)
    assert (found.id, found.line, list(found.lines), found.path) == ("a", 1, [1, 1], str(place))
    assert found.texts == [b"It rains .", b"It rain ."]
    assert (found.names, found.column) == (("score", "lm"), 0)
    assert found.scores.tolist() == [[-1.5, -2.0], [-2.0, -3.25]]
    assert found.scores.dtype == np.float64
    assert found.sparse.first.tolist() == [0, 1, 1]
    assert (found.sparse.names, found.sparse.values.tolist()) == ([b"rare"], [1.5])
    assert (found.segmentation, found.alignment) == ([b"0-2=0-2", b""], None)
    assert (found.source, found.references) == (b"Es regnet .", (b"It rains .", b"It is raining ."))


VALUES = (
    "1e999",
    "NaN",
    "null",
    '"3"',
    "true",
    "9" * 400,
    "9" * 5000,
    "-0",
    "[1]",
    "{}",
    "1e-999",
    "12345678901234567890",
)
STRINGS = ('"a\\u0000b"', '"  x "', "null", "3", '""', '"\\ud800"', '"a\\nb"', '["a"]', '"# 3:1"', '"\\u00a0x"')
ODD = (
    *(f'{{"text": "a", "score": {value}, "lm": 1}}' for value in VALUES),
    *(f'{{"text": "a", "score": 1, "lm": {value}}}' for value in VALUES),
    *(f'{{"text": {value}, "score": 1, "lm": 1}}' for value in STRINGS),
    *(f'{{"text": "a", "score": 1, "lm": 1, "answer": {value}}}' for value in (*STRINGS, *VALUES)),
    *(f'{{"text": "a", "score": 1, "lm": 1, "note": {value}}}' for value in (*STRINGS, *VALUES)),
    '{"text": "a", "score": 1, "lm": 2, "lm": 3}',
    '{"lm": 2, "text": "a", "score": 1}',
    '{"text": "a", "score": 1, "lm": 2, "features": null}',
    '{"features": {"rare": true, "lm": 2}, "text": "a", "score": 1}',
    '{"text": "a", "score": 1, "features": {"lm": 2, "rare": 1}, "finish_reason": "stop", "x": 1}',
    *(
        f'{{"text": "a", "score": 1, "columns": {{"{key}": 2}}, "features": {{"rare": 1}}}}'
        for key in ("lm", "answer", "rare")
    ),
    *(f'{{"text": "a", "score": 1, "lm": 1, "features": {{"rare": {value}}}}}' for value in VALUES),
)


@pytest.mark.parametrize("odd", ODD, ids=range(len(ODD)))
def test_blocks_of_lists_are_read_as_one_by_one(place: Path, odd: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is odd must come out the same in a draft of sixteen lists as in one of its own."""
    regular = (
        '{"id": "NAME", "candidates": [{"text": "a", "score": 1, "lm": -2.5}, {"text": "b", "score": 0, "lm": 3}]}'
    )
    built = f'{{"id": "NAME", "candidates": [{odd}, {odd.replace("a", "b", 1)}]}}'
    for first in (regular, built):
        every = [each for each in (first, regular, built, regular) for _ in range(4)]
        lines = "\n".join(each.replace("NAME", f"q{k}") for k, each in enumerate(every))
        ways = []
        for most in (16, 1):
            monkeypatch.setattr(JsonlReader, "draft_lists", most)
            ways.append([shown(found) for found in read(place, lines)])
        assert ways[0] == ways[1]


def test_columns_do_not_depend_on_what_is_drafted_together(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A number that all lists but one have under "features", how samples ended, and a label that lists share."""
    every = [
        [{"text": "a", "score": 1, "finish_reason": "stop", "model": "x", "features": {"all": k} if k != 3 else {}}]
        for k in range(12)
    ]
    lines, ways = "\n".join(json.dumps({"candidates": one}) for one in every), []
    for most in (12, 5, 1):
        monkeypatch.setattr(JsonlReader, "draft_lists", most)
        ways.append([shown(found) for found in read(place, lines, labels=("model",))])
    assert ways[0] == ways[1] == ways[2]
    assert [one[2] for one in ways[0] if len(one) > 4] == [("score", "all", "finish_length")] * 11


def shown(found: Lists) -> Any:
    if found.problem is not None:
        return found.id, found.line, found.problem.reason, found.problem.message
    sparse = None if found.sparse is None else (found.sparse.names, found.sparse.values.tolist())
    bad = [(problem.line, problem.message) for problem in found.bad]
    return found.id, found.texts, found.names, found.scores.tolist(), bad, found.answers, found.absent, sparse


def test_the_first_lists_decide_on_the_columns(place: Path) -> None:
    def line(*candidates: dict[str, float]) -> str:
        return json.dumps({"candidates": [{"text": "t", "features": one} for one in candidates]}) + "\n"

    text = line({"a": 1, "b": 2}, {"b": 3, "c": 4}) + line({"b": 5, "a": 6}) + line({"a": 7}) + line()
    first, second, third, empty, *_ = read(place, text + 10 * line({"b": 1}))
    assert first.names == second.names == empty.names == ("score", "b")
    assert [one.names for one in read(place, line({"a": 1}) + 9 * line({"b": 2}))[1:]] == [("score", "b")] * 9
    assert (empty.scores.shape, len(empty)) == ((0, 2), 0)
    assert first.sparse.names == [b"a", b"c"]
    assert (third.problem.reason, third.line) == ("columns", 3)
    assert "'b'" in third.problem.message
    named = read(place, text, dense=["a"])
    assert [[problem.reason for problem in found.bad] for found in named if found.problem is None] == [
        ["columns"], [], [], [],
    ]  # fmt: skip
    assert (named[1].names, named[1].scores.tolist()) == (("score", "a"), [[0.0, 6.0]])


def test_candidates_without_a_base_score_do_not_decide_on_the_columns(place: Path) -> None:
    found = one(
        place, {"candidates": [{"text": "t", "lm": -1, "tm": 2}, "u", {"text": "v", "lm": -2, "tm": 3}]}, base="lm"
    )
    assert (found.names, [problem.reason for problem in found.bad]) == (("lm", "tm"), ["score"])
    again = one(place, written(found), base="lm")
    assert (again.names, again.scores.tolist()) == (found.names, found.scores.tolist())


def test_gains_and_base_scores_are_never_sparse_features(place: Path) -> None:
    text = json.dumps({"candidates": [{"text": "a", "score": 1, "gain": 1}, {"text": "b", "score": 1}]})
    assert bad(place, text).reason == "columns"
    with_gain = one(place, {"candidates": [{"text": "a", "gain": 1, "x": 2}]}, dense=[])
    assert with_gain.names == ("score", "gain")
    assert with_gain.sparse is not None


BAD = {
    # what it is: (reason, line, part of the message)
    "no json": ("json", "{", "expected a JSON object on one line"),
    "no object": ("json", "1", "expected a JSON object, {...}"),
    "an array of no texts": ("text", "[1]", "found 1; expected candidate 1 as a string"),
    "two objects": ("json", '{"candidates": []} {}', "Extra data"),
    "a key twice": ("json", '{"candidates": [], "candidates": []}', 'the key "candidates" appears twice'),
    "a key twice inside": ("json", '{"candidates": [{"text": "a", "text": "b"}]}', 'the key "text" appears twice'),
    "no candidates": ("text", '{"x": 1}', "found null under 'candidates'"),
    "no text": ("text", '{"candidates": ["a", {"score": 1}]}', "candidate 2 has no 'text'"),
    "text no text": ("text", '{"candidates": [{"text": 7}]}', "found 7; expected candidate 1 as a string"),
    "NaN": ("infinite score", '{"candidates": [{"text": "a", "lm": NaN}]}', "found NaN"),
    "overflow": ("infinite score", '{"candidates": [{"text": "a", "lm": 1e999}]}', "finite number"),
    "a large whole number": ("infinite score", '{"candidates": [{"text": "a", "lm": 1' + "0" * 400 + "}]}", "finite"),
    "too many digits": ("json", '{"candidates": [{"text": "a", "lm": 1' + "0" * 5000 + "}]}", "digits"),
    "features a list": ("columns", '{"candidates": [{"text": "a", "features": [1]}]}', "found a list as 'features'"),
    "feature a text": ("columns", '{"candidates": [{"text": "a", "features": {"x": "1"}}]}', "feature 'x' of"),
    "two of a name": ("columns", '{"candidates": [{"text": "a", "x": 1, "features": {"x": 2}}]}', "two numbers"),
    "nul": ("nul", '{"candidates": ["a\\u0000"]}', "NUL"),
    "references a text": ("text", '{"candidates": [], "references": "a"}', "a list of strings"),
    "both references": ("text", '{"candidates": [], "references": ["a"], "reference": "a"}', "expected one of them"),
    "segmentation a list": ("text", '{"candidates": [{"text": "a", "segmentation": []}]}', "found an empty list"),
    "id an object": ("id", '{"id": {}, "candidates": []}', "found an object under 'id'"),
    "id a fraction": ("id", '{"id": 1.5, "candidates": []}', "found 1.5"),
    "deep": ("json", DEEP.decode(), "nested too deeply"),
    "deep inside": ("json", '{"candidates": [], "x": ' + DEEP.decode() + "}", "nested too deeply"),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_what_is_bad_has_its_reason_and_the_lists_around_it_stay(place: Path, what: str) -> None:
    reason, line, part = BAD[what]
    ids = '"id": 0, ' if reason == "id" else "", '"id": 1, ' if reason == "id" else ""
    _, found, _ = read(
        place, "{" + ids[0] + '"candidates": ["x"]}\n\n' + line + "\n{" + ids[1] + '"candidates": ["y"]}\n'
    )
    problem = problem_of(found)
    assert (problem.reason, problem.line, problem.path) == (reason, 3, str(place))
    assert part in problem.message
    assert len(problem.message) < 400
    count = SkipCount("skip")
    kept = [] if found.problem is not None else [[b"a"]]
    assert [nbest.texts for nbest in read_lists(JsonlReader(), place, count=count)] == [[b"x"], *kept, [b"y"]]
    assert dict(count.reasons + count.candidate_reasons) == {reason: 1}
    with pytest.raises(DataError, match=":3"):
        list(read_lists(JsonlReader(), place))


def test_base_scores_that_are_missing(place: Path) -> None:
    found = bad(place, '{"candidates": ["a"]}', base="lm")
    assert (found.reason, found.message.count("'lm'")) == ("score", 1)
    assert "option base" in found.message


def test_either_all_lists_have_base_scores_or_none_has(place: Path) -> None:
    scored, bare, empty = '{"candidates": [{"text": "a", "score": -2}]}', '{"candidates": ["a"]}', '{"candidates": []}'
    for lines, message in {
        (scored, bare): "no candidate has a number 'score', the base score",
        (empty, scored, bare): "no candidate has a number 'score', the base score",
        (bare, scored): "no candidate has a number 'score', the base score",
    }.items():
        found, *good = sorted(read(place, "\n".join(lines) + "\n"), key=lambda one: one.problem is None)
        assert all(one.problem is None for one in good)
        assert message in problem_of(found).message
    mixed = one(place, {"candidates": [{"text": "a", "score": 1}, "b"]})
    assert ([problem.message for problem in mixed.bad], mixed.texts) == (
        ["candidate 2 has no number 'score', the base score"],
        [b"a"],
    )
    for lines in (bare, empty, bare), (scored, bare, bare):
        assert {tuple(found.base) for found in read(place, "\n".join(lines))} <= {(0.0,), ()}


def test_ids(place: Path) -> None:
    def lines(*heads: str) -> str:
        return "".join("{" + head + '"candidates": []}\n' for head in heads)

    named = lines('"id": 7, ', '"id": "x", ', '"id": "7", ', "")
    found = read(place, named)
    assert [one.id for one in found] == ["7", "x", "7", "line-4"]
    twice, none = found[2:]
    assert (twice.problem.reason, twice.line) == ("duplicate id", 3)
    assert "line 1" in twice.problem.message
    assert (none.problem.reason, none.line) == ("id", 4)
    assert "no 'id' here" in none.problem.message
    assert [(one.problem, one.id) for one in read(place, named, ids="ordinal")] == [(None, str(k)) for k in range(4)]
    unlike = read(place, lines("", '"id": null, ', '"id": 1, '))
    assert [one.problem is None for one in unlike] == [True, True, False]


def test_new_scores_take_the_place_of_the_old_ones_which_are_kept(place: Path) -> None:
    found = one(place, FULL)
    again = written(found, [1, 0], np.array([7.0, 8.5]))
    assert list(again) == list(FULL)
    first, second = again["candidates"]
    assert (first["score"], first["base_score"], first["note"]) == (8.5, -2.0, "x")
    assert (second["score"], second["base_score"], second["text"]) == (7.0, -1.5, " It rains . ")
    twice = written(one(place, again), None, np.array([1.0, 2.0]))
    assert [(entry["score"], entry["base_score"]) for entry in twice["candidates"]] == [(1.0, -2.0), (2.0, -1.5)]
    assert one(place, twice).base.tolist() == [1.0, 2.0]


def test_texts_alone_become_objects_when_they_get_scores(place: Path) -> None:
    again = written(one(place, {"candidates": ["a", "b"]}), [1, 0], np.array([1.0, 2.0]))
    assert again["candidates"][0] == {"text": "b", "score": 2.0, "base_score": 0.0}
    named = one(place, {"candidates": [{"text": "a", "lm": -3}]}, base="lm")
    assert written(named, None, np.array([1.0]))["candidates"] == [
        {"text": "a", "lm": -3, "score": 1.0, "base_score": -3.0}
    ]


def test_lists_of_texts_of_other_formats_keep_what_they_have(tmp_path: Path, place: Path) -> None:
    path = tmp_path / "moses"
    lines = [
        b"0 ||| a b ||| LM= -1 BaseScore= 4 w= 1 ||| -3 ||| 0-1=0-1",
        b"0 ||| c ||| LM= -2 BaseScore= 5 ||| -4 ||| 0=0",
    ]
    path.write_bytes(b"\n".join(lines))
    (nbest,) = read_lists(Moses(), path)
    full = nbest.replace(source=b"x y", references=(b"r",))
    item = written(full, [1, 0], np.array([7.0, 8.0]))
    assert (item["source"], item["references"]) == ("x y", ["r"])
    (again,) = read(place, json.dumps(item))
    assert (again.texts, again.segmentation) == ([b"c", b"a b"], [b"0=0", b"0-1=0-1"])
    columns = dict(zip(again.names, again.scores.T.tolist(), strict=True))
    assert columns == {"score": [8.0, 7.0], "base_score": [-4.0, -3.0], "LM": [-2.0, -1.0], "BaseScore": [5.0, 4.0]}
    assert (again.sparse.first.tolist(), again.sparse.names) == ([0, 0, 1], [b"w"])


def test_bytes_that_are_not_utf8_and_half_surrogate_pairs_are_kept(place: Path) -> None:
    (found,) = read(place, b'{"candidates": ["caf\xe9", "\\ud83d"]}')
    assert found.texts == [b"caf\xe9", b"\xed\xa0\xbd"]
    assert found.candidates[0].text == "caf\udce9"
    (again,) = read(place, outcomes.written(JsonlReader(), found))
    assert again.texts == found.texts


def test_lists_that_are_read_together_are_written_as_they_stand(place: Path) -> None:
    lines = [
        {"id": name, "x": [k], "candidates": [{"text": f" {y}: ", "y": y} for y in "ab"]} for k, name in enumerate("pq")
    ]
    place.write_text("\n".join(map(json.dumps, lines)))
    (block,) = JsonlReader().blocks(place)
    assert all(isinstance(found.raw, LinePieces) for found in block.each())  # nothing else is kept of them
    out = io.BytesIO()
    for found in block.each():
        JsonlReader().write(out, found, order=[1, 0])
    assert [json.loads(line) for line in out.getvalue().splitlines()] == [
        {**line, "candidates": line["candidates"][::-1]} for line in lines
    ]


def test_a_value_that_is_too_deep_to_be_written_is_an_error(place: Path) -> None:
    found = one(place, {"candidates": ["a"]})
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    found.raw.head["x"] = value
    with pytest.raises(DataError, match="too deeply"):
        JsonlReader().write(io.BytesIO(), found)
    while value:  # taken apart by hand: the interpreter would do it by recursion
        value = value.pop()


LISTED = {"id": 7, "candidates": ["4", "5", "22"]}


@pytest.mark.parametrize("indent", [None, 1])
def test_an_array_is_read_like_lines(indent: int | None, tmp_path: Path) -> None:
    items = [LISTED, LISTED | {"id": 8, "candidates": ["\udce9"] * 3}, LISTED | {"id": 9}]
    text = json.dumps(items, indent=indent, ensure_ascii=False).encode("utf-8", "surrogateescape")
    (tmp_path / "lists").write_bytes(b"\n \n" + text)
    found = list(JsonlReader().read(tmp_path / "lists"))
    assert [one.line for one in found] == ([3, 3, 3] if indent is None else [4, 12, 20])
    assert found[0].texts == found[2].texts == [b"4", b"5", b"22"]
    assert found[1].texts == [b"\xe9"] * 3
    (tmp_path / "lists").write_bytes(gzip.compress(b" [ ]\n"))
    assert not list(JsonlReader().read(tmp_path / "lists"))


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("count", [1, 3])
def test_objects_that_are_spread_over_lines_are_read(count: int, ends: str, tmp_path: Path) -> None:
    items = [{**LISTED, "id": k} for k in range(count)]
    text = "\n".join(json.dumps(item, indent=2) for item in items).replace("\n", ends)
    (tmp_path / "lists").write_bytes(text.encode())
    found = list(JsonlReader().read(tmp_path / "lists"))
    assert [(one.id, one.line) for one in found] == [(f"{k}", 1 + 8 * k) for k in range(count)]
    assert found[-1].texts == [b"4", b"5", b"22"]
    (tmp_path / "lists").write_text(text[:-9])
    with pytest.raises(DataError, match="expected a JSON array of objects"):
        list(JsonlReader().read(tmp_path / "lists"))
    (tmp_path / "lists").write_text('{"candidates": \n{"candidates": ["a"]}\n')
    one, two = JsonlReader().read(tmp_path / "lists")  # a line that is damaged
    assert (one.problem is not None, two.texts) == (True, [b"a"])


def test_a_line_of_any_length_may_hold_an_array(tmp_path: Path) -> None:
    (tmp_path / "lists").write_text(json.dumps([{"candidates": ["a" * 1000] * 100}] * 200))
    assert sum(map(len, JsonlReader().read(tmp_path / "lists"))) == 20_000


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ('[{"candidates": ["a"]},\n {"candidates": ', 2, "found the end of the file; expected a JSON array of objects"),
        ('[{"candidates": ["a"]}\n\n{', 3, "found '{'; expected a comma and the next object, or the end of the array"),
        ('[{"candidates": ["a"]}]\n[{}]', 2, "found '[{}]'; expected nothing after the array, or objects on lines"),
        ("[" * 100_000, 1, "expected objects without thousands of digits or levels"),
    ],
)
def test_a_damaged_array_is_an_error_whatever_is_skipped(text: str, line: int, message: str, tmp_path: Path) -> None:
    (tmp_path / "lists").write_text(text)
    with pytest.raises(DataError) as caught:
        list(read_lists(JsonlReader(), tmp_path / "lists", "skip"))
    assert caught.value.line == line
    assert message in caught.value.message


def test_what_is_no_object_in_an_array_is_a_bad_list(tmp_path: Path) -> None:
    (tmp_path / "lists").write_text('[7,\n{"candidates": ["a"], "candidates": []}, {"candidates": [NaN]}]')
    one, two, three = JsonlReader().read(tmp_path / "lists")
    assert [(found.problem.reason, found.line) for found in (one, two, three)] == [
        ("json", 1),
        ("json", 2),
        ("text", 2),
    ]


NAMES = st.sampled_from(["lm", "tm", "wp", "ünï"])
NUMBERS = st.one_of(st.integers(-(10**6), 10**6), st.floats(allow_nan=False, allow_infinity=False))
CANDIDATE = st.builds(
    lambda text, score, features, extra: {"text": text, **score, **features, **extra},
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12),
    st.fixed_dictionaries({"score": NUMBERS}),
    st.one_of(st.just({}), st.fixed_dictionaries({"features": st.dictionaries(NAMES, NUMBERS, max_size=3)})),
    st.fixed_dictionaries(
        {}, optional={"note": st.text("ab=-", max_size=4), "segmentation": st.text("ab0=-", max_size=4)}
    ),
)
ITEM = st.fixed_dictionaries(
    {"candidates": st.lists(CANDIDATE, max_size=4)},
    optional={"source": st.text("ab ", max_size=5), "references": st.lists(st.text("ab ", max_size=5), max_size=3)},
)


@settings(max_examples=120, deadline=None)
@given(item=ITEM, data=st.data())
def test_reading_equals_its_twin_and_writing_gives_the_same_back(place: Path, item: dict[str, Any], data: Any) -> None:
    found = one(place, item)
    entries = item["candidates"]
    assert found.texts == [entry["text"].encode().strip() for entry in entries]
    numbers = [{"score": entry["score"], **entry.get("features", {})} for entry in entries]
    dense = [name for name in (numbers[0] if numbers else ["score"]) if all(name in one for one in numbers)]
    assert list(found.names) == dense
    assert found.scores.tolist() == [[float(one[name]) for name in dense] for one in numbers]
    left = [[(k.encode(), float(v)) for k, v in one.items() if k not in dense] for one in numbers]
    if found.sparse is None:
        assert not any(left)
    else:
        bounds = found.sparse.first.tolist()
        pairs = list(zip(found.sparse.names, found.sparse.values.tolist(), strict=True))
        assert [pairs[a:b] for a, b in pairwise(bounds)] == left
    assert found.source == (item["source"].strip().encode() if "source" in item else None)
    assert written(found) == item
    order = data.draw(st.permutations(range(len(found))))
    scores = np.array([float(k) for k in range(len(found))])
    again = one(place, written(found, order, scores))
    assert again.base.tolist() == [float(k) for k in order]
    assert again.texts == [found.texts[k] for k in order]


def test_answers_may_be_numbers() -> None:
    given = [{"text": "a", "gain": 1, "answer": answer} for answer in (42, 42.0, "42", 1e3, None)]
    (nbest,) = rerank.read([{"id": "q", "candidates": given}])
    assert [candidate.answer for candidate in nbest.candidates] == ["42", "42", "42", "1000", None]
    for wrong in (True, float("nan"), float("-inf")):
        with pytest.raises(DataError, match="'answer'"):
            list(rerank.read([{"id": "q", "candidates": [{"text": "a", "gain": 1, "answer": wrong}]}]))


def test_answers_that_are_numbers_are_no_columns(place: Path) -> None:
    answers = [[42, 7], ["x", 42], [None, "42"]]
    lists = [{"candidates": [{"text": "a", "gain": 1, "answer": answer} for answer in both]} for both in answers]
    place.write_text("".join(json.dumps(each) + "\n" for each in lists))
    every = list(read_lists(JsonlReader(), place))
    assert all(each.problem is None and each.names == ("score", "gain") for each in every), every


def sparse(form: str, names: int) -> list[Any]:
    """Lists whose candidates have five numbers each, of many names."""
    own = [[{f"f{(20 * i + y) * (k + 7) % names}": 0.5 * k for k in range(5)} for y in range(20)] for i in range(30)]
    return [
        {"candidates": [{"text": f"t{y}", "score": y, "gain": y % 2} | ({form: one} if form else one)
                        for y, one in enumerate(each)]} for each in own
    ]  # fmt: skip


def rows_of_names(names: int) -> list[Any]:
    return [{"id": i // 20, "text": f"t{i}", "score": i % 20, "gain": i % 2}
            | {f"f{i * (k + 7) % names}": 0.5 * k for k in range(5)} for i in range(600)]  # fmt: skip


def beside_one_another(count: int) -> list[Any]:
    gains = {f"gain_{y}": y % 2 for y in range(1, count)}
    return [{"prompt": f"q{i}"} | {f"response_{y}": f"t{i} {y}" for y in range(1, count)} | gains for i in range(5)]


@pytest.mark.parametrize(("items_of", "more", "most"), [
    (partial(sparse, "features"), 4000, 3), (partial(sparse, ""), 4000, 3), (rows_of_names, 4000, 3),
    (beside_one_another, 400, 12),
])  # fmt: skip
def test_items_are_gone_through_once_however_many_names_there_are(
    items_of: Callable[[int], list[Any]], more: int, most: int, place: Path
) -> None:
    """What tells the roles of keys looked at every candidate, or row, for each name: a minute for 200 lists of 100."""
    calls = []
    for names in (40, more):
        place.write_text("".join(f"{json.dumps(one)}\n" for one in items_of(names)))
        with cProfile.Profile() as profile:
            read = sum(len(one.candidates) for one in rerank.read(place))
        assert read == (600 if more == 4000 else 5 * (names - 1))
        calls.append(pstats.Stats(profile).total_calls)
    assert calls[1] < most * calls[0]
