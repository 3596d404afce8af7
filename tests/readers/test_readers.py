"""What all readers share, roles of keys, and a format of one's own."""

import ast
import json
import re
from pathlib import Path
from typing import Any

import nltk
import numpy as np
import pytest
from formats import OWN
from outcomes import good, read_lists, written
from pages import text_of

import rerank
import rerank.readers
from rerank.base.errors import DataError, RecipeError
from rerank.base.registry import Registry, new_table
from rerank.features.text import view
from rerank.readers.problems import Problem
from rerank.readers.reader import Lists, ScoreColumns, SkipCount, excerpt, make_reader, readers
from rerank.readers.trees.charniak import CharniakReader

TEXTS = [b"(S (NN a) (-NONE- *) (VB b\xe9))", b"( (S (NP (NN a)) (VB c) ) )"]


def nbest(texts: list[bytes] | None = None) -> Lists:
    texts = TEXTS if texts is None else texts
    count = len(texts)
    scores = np.arange(2.0 * count).reshape(count, 2)
    return Lists.one("x", "file", 10, texts, range(12, 12 + 2 * count, 2), scores, column=1, of_trees=True)


def test_candidates_are_a_sequence_made_on_demand() -> None:
    candidates = nbest().candidates
    assert len(candidates) == 2
    assert [candidate.index for candidate in candidates] == [0, 1]
    assert candidates[-1].text == "( (S (NP (NN a)) (VB c) ) )"
    assert [candidate.index for candidate in candidates[::-1]] == [1, 0]
    with pytest.raises(IndexError):
        candidates[2]
    assert list(nbest([]).candidates) == []


def test_a_candidate_has_text_scores_words_and_tree() -> None:
    first, second = nbest().candidates
    assert first.text.encode("utf-8", "surrogateescape") == TEXTS[0]
    assert first.tokens == ["a", "b\udce9"]
    assert first.scores.tolist() == [0, 1]
    assert nbest().base.tolist() == [1, 3]
    assert second.tokens == ["a", "c"]
    tree = nltk.Tree("", [nltk.Tree("S", [nltk.Tree("NP", [nltk.Tree("NN", ["a"])]), nltk.Tree("VB", ["c"])])])
    assert second.tree == tree


def test_errors_of_a_candidates_tree_say_where() -> None:
    deep = b"(X " * 1000 + b"(NN a)" + b")" * 1000
    bad = nbest([b"(NN a)", b"(S (NN a)", deep]).candidates
    assert bad[0].tree == nltk.Tree("NN", ["a"])
    with pytest.raises(DataError, match=r"^file:14: list x: the tree is not closed"):
        _ = bad[1].tree
    with pytest.raises(DataError, match=r"^file:16: list x: a tree of more than 500 levels"):
        _ = bad[2].tree
    assert bad[2].tokens == ["a"]


def test_skip_count_under_error_and_skip() -> None:
    bad = Problem("score", "found 'high'; expected a number", 3, path="file", list_id="x")
    with pytest.raises(DataError) as caught:
        SkipCount().bad(bad)
    assert str(caught.value) == (
        "file:3: list x: found 'high'; expected a number; fix or remove the list, "
        "or leave out such lists with --on-bad-list skip (in a recipe: data.on_bad_list: skip); if most "
        "are like it, check that the file is the one you mean"
    )
    count = SkipCount("skip")
    count.good(nbest().replace(duplicates=1))
    count.bad(bad)
    count.bad(bad)
    assert (count.lists, count.candidates, count.duplicates, count.skipped) == (1, 2, 1, 2)
    assert str(count) == (
        "1 list, 2 candidates, 1 of them duplicates\n"
        "skipped 2 lists (score); the first: file:3: list x: found 'high'; expected a number"
    )
    with pytest.raises(RecipeError, match="on_bad_list: found 'ignore'; expected 'error' or 'skip'"):
        SkipCount("ignore")  # type: ignore[arg-type]


def test_every_reason_is_in_the_table() -> None:
    """Reasons are the literals with which the package makes bad lists; fields of derivations are some too."""
    place = {"Problem": 0, "_fault": 0, "number_of": 2}
    named = set(view._FORMS)
    for source in Path(rerank.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in place:
                reason = node.args[place[node.func.id] :][:1]
                parts = [
                    part for at in reason for part in ([at.body, at.orelse] if isinstance(at, ast.IfExp) else [at])
                ]
                named |= {part.value for part in parts if isinstance(part, ast.Constant)}
    _, _, table = text_of("docs/formats.md").partition("## Lists that cannot be used")
    rows = re.findall(r"bad (?:list|candidate): ((?:`[^`]+`(?:, )?)+)", table)
    assert named == {reason for row in rows for reason in re.findall("`([^`]+)`", row)}


def test_excerpts_fit_on_a_line() -> None:
    assert excerpt(b"a\nb\xff") == "'a\\nb\ufffd'"
    assert excerpt(b"x" * 1000) == "'" + "x" * 40 + "'..."


# The registry


def test_unknown_names_get_all_that_there_are() -> None:
    with pytest.raises(RecipeError, match="found 'openai', a form of JSON; expected jsonl, which reads it"):
        make_reader("openai", "reader")
    with pytest.raises(RecipeError, match=r"unknown reader 'xyz'; known: .*berkeley, charniak"):
        readers.get("xyz")


def test_names_are_taken_once_and_listed_sorted(monkeypatch: pytest.MonkeyPatch) -> None:
    parts, add = new_table()
    add("part", "b", int)
    add("part", "a", "builtins:str")
    with pytest.raises(ValueError, match="part 'a' is registered twice"):
        add("part", "a", int)
    monkeypatch.setattr("rerank.base.registry.own_parts", lambda: parts)
    registry: Registry[type] = Registry("part")
    assert registry.names() == ["a", "b"]
    assert list(registry) == [("a", str), ("b", int)]
    assert "a" in registry
    assert "c" not in registry


def test_parts_by_import_path() -> None:
    assert readers.get("rerank.readers.trees.charniak:CharniakReader") is CharniakReader
    with pytest.raises(RecipeError, match=r"cannot import reader 'rerank.nowhere:X': ModuleNotFoundError: No mod"):
        readers.get("rerank.nowhere:X")
    with pytest.raises(RecipeError, match=r"cannot import reader 'rerank.readers.reader:Nothing'"):
        readers.get("rerank.readers.reader:Nothing")


LISTS = b"a\t-1.5\t-3\tit rains\na\t-2\t-4\tit rain\na\t-2.5\t-5\tit rains\nb\nc\t-1\t-1\tyes\n"


def test_its_columns_costs_and_empty_lists(tmp_path: Path) -> None:
    (tmp_path / "lists").write_bytes(LISTS)
    reader = make_reader(OWN)
    first, *others = map(good, reader.read(str(tmp_path / "lists")))
    assert [(one.id, one.texts, one.line) for one in others] == [("b", [], 4), ("c", [b"yes"], 5)]
    assert (first.names, first.scores.tolist()) == (("score", "lm"), [[-1.5, -3], [-2, -4], [-2.5, -5]])
    assert b"".join(written(reader, one) for one in (first, *others)) == LISTS
    assert written(reader, first, [1], np.array([0.5, 2.0, 0.0])) == b"a\t2.0\t-4\tit rain\n"
    first, *_ = read_lists(make_reader({"name": OWN, "scores": "cost"}), tmp_path / "lists")
    assert first.base.tolist() == [1.5, 2.0, 2.5]
    known = make_reader(OWN).for_columns(ScoreColumns(("score", "lm", "tm"), "score"))
    with pytest.raises(DataError, match="candidate 1 does not have the number 'tm', as all of the training lists do"):
        list(read_lists(known, tmp_path / "lists"))


@pytest.mark.parametrize("graded", [(0,), (1,), (0, 1), ()])
def test_gains_that_some_lists_have_are_not_looked_at_in_use(graded: tuple[int, ...], tmp_path: Path) -> None:
    lists = [
        {"candidates": [{"text": text, "lm": k, **({"gain": k} if i in graded else {})} for k, text in enumerate("ab")]}
        for i in range(3)
    ]
    (tmp_path / "lists").write_text("".join(json.dumps(one) + "\n" for one in lists))
    used = make_reader("jsonl").for_columns(ScoreColumns(("score", "lm"), "score"), live=True)
    assert [good(one).names for one in used.read(str(tmp_path / "lists"))] == [("score", "lm")] * 3


Rows = list[dict[str, Any]]


# Shapes that JSON may have, a line each: the columns of its lists besides the score, the first list's scores, what is
# not used, and the keys that could be the gain.
SHAPES: dict[str, dict[str, Any]] = {
    one["shape"]: {"columns": [], "scores": [[], []], "unused": [], "gains": []} | one
    for one in map(json.loads, Path(__file__).with_name("shapes.jsonl").read_text(encoding="utf-8").splitlines())
}


def found(path: Path, rows: Any, **options: Any) -> list[Lists]:
    every = rows if isinstance(rows, list) else [rows]
    path.write_text("".join(json.dumps(row) + "\n" for row in every))
    return list(make_reader({"name": "jsonl", **options}, "").read(path))


@pytest.mark.parametrize("name", SHAPES)
def test_shapes(name: str, tmp_path: Path) -> None:
    shape = SHAPES[name]
    first, second, *_ = found(tmp_path / "lists", shape["items"])
    assert first.names == ("score", *shape["columns"]) == second.names
    assert first.scores[:, 1:].tolist() == shape["scores"]
    assert sorted(first.roles.unused_keys) == shape["unused"]
    assert [*first.roles.gains] == shape["gains"]
    if first.roles.group:
        return
    names = tuple(name for name in first.names if name != "gain")  # that a model has learned from
    again = next(iter(make_reader("jsonl", "").for_columns(ScoreColumns(names, "score")).read(tmp_path / "lists")))
    assert [again.scores[:, again.names.index(name)].tolist() for name in names] == [
        first.scores[:, first.names.index(name)].tolist() for name in names
    ]


def test_candidates_beside_one_another_whose_text_is_named(tmp_path: Path) -> None:
    row = {"prompt": "?", "poem 1": "a", "poem 2": "b", "passed 1": True, "passed 2": False}
    assert found(tmp_path / "lists", [row])[0].problem is not None
    for one in (row, {**row, "answer": "a", "solution": "b"}):
        (first,) = found(tmp_path / "lists", [one], roles={"poem": "text", "answer": "unused"})
        assert (first.texts, first.scores[:, 1].tolist()) == ([b"a", b"b"], [1, 0])
    named = {"prompt": "?", "poem_A": "a", "poem_B": "b", "liked": "B"}
    (first,) = found(tmp_path / "lists", [named], roles={"poem": "text", "liked": "truth"})
    assert first.scores[:, 1].tolist() == [0, 1]


def test_a_score_beside_the_base_is_a_column(tmp_path: Path) -> None:
    for first, second in (("lm", "score"), ("score", "lm")):
        rows = [{"text": f"{k}", first: k, second: -k, "gain": k} for k in range(2)]
        for items in ([{"samples": rows}], [{"candidates": rows}]):
            (one,) = found(tmp_path / "lists", items, roles={"lm": "base"})
            numbers = dict(zip(one.names, one.scores.T.tolist(), strict=True))
            lm = [row["lm"] for row in rows]
            assert numbers == {"score": lm, "other_score": [-value for value in lm], "gain": [0, 1]}


def test_columns_of_rows_that_an_id_tells_apart(tmp_path: Path) -> None:
    names, data = ["qid", "response", "Score"], [["a", "x", 1], ["a", "y", 2], ["b", "z", 3], ["b", "u", 4]]
    split = {"columns": names, "index": [0, 1, 2, 3], "data": data}
    for item in (split, dict(zip(names, map(list, zip(*data, strict=True)), strict=True))):
        first, second = found(tmp_path / "lists", item)
        assert (first.texts, second.texts) == ([b"x", b"y"], [b"z", b"u"])
        assert (first.base.tolist(), second.base.tolist()) == ([1, 2], [3, 4])


def test_lists_in_columns_by_index(tmp_path: Path) -> None:
    item = {"question": ["p?", "q?"], "samples": [["1", "2"], ["3", "4"]], "correct": [[True, False], [False, True]]}
    first, second = found(tmp_path / "lists", {key: dict(zip("01", rows, strict=True)) for key, rows in item.items()})
    assert (first.texts, first.scores[:, 1].tolist()) == ([b"1", b"2"], [1, 0])
    assert (second.texts, second.scores[:, 1].tolist()) == ([b"3", b"4"], [0, 1])


def test_a_schema_holds_no_lists(tmp_path: Path) -> None:
    schema = {"fields": [{"name": "k"}, {"name": "v"}], "primaryKey": ["k"]}
    assert found(tmp_path / "lists", {"schema": schema, "data": [{"k": 1, "v": 2}]})[0].problem is not None


def test_candidates_under_names_that_a_role_says_are_some(tmp_path: Path) -> None:
    row = {"prompt": "?", "tree": {"0.1": {"text": "a", "lm": 1}, "0.2": {"text": "b", "lm": 2}}}
    assert found(tmp_path / "lists", [row])[0].problem is not None
    (first,) = found(tmp_path / "lists", [row], roles={"tree": "candidates"})
    assert (first.texts, first.scores[:, 1].tolist()) == ([b"a", b"b"], [1, 2])


def test_thoughts_are_no_part_of_an_answer(tmp_path: Path) -> None:
    parts = [{"text": "so", "thought": True}, {"text": "4"}]
    (first,) = found(tmp_path / "lists", {"candidates": [{"content": {"parts": parts}}, {"content": {"parts": ["5"]}}]})
    assert first.texts == [b"4", b"5"]


def test_merged_cells_need_their_values(tmp_path: Path) -> None:
    (tmp_path / "lists.csv").write_text("question,answer,correct\np,a,1\n,b,0\nq,c,0\n,d,1\n")
    bad, *_ = make_reader("table", "").read(tmp_path / "lists.csv")
    assert "merged cells" in bad.problem.message


def test_numbers_in_objects_are_doubted_until_their_path_is_named(tmp_path: Path) -> None:
    inner = [
        {"prompt": f"{i}", "responses": [{"response": f"{k} {i}", "judge": {"n": 2, "lm": k}} for k in range(2)]}
        for i in range(3)
    ]
    beside = [{"prompt": f"{i}", "responses": ["a", "b"], "judge": [{"lm": 0}, {"lm": 1}]} for i in range(3)]
    for items, path in ((inner, "judge.lm"), (beside, "judge.lm")):
        assert found(tmp_path / "lists", items)[0].roles.doubtful == (path,)
        first, *_ = found(tmp_path / "lists", items, roles={path: "column"})
        assert (first.names, first.scores[:, 1].tolist()) == (("score", path), [0, 1])
        assert first.roles.doubtful == ()
        problem = found(tmp_path / "lists", items, roles={"judge": "column"})[0].problem
        assert f"--roles {path}=column" in problem.message


def test_lists_that_are_no_column_are_said(tmp_path: Path) -> None:
    items = [{"prompt": f"{i}", "samples": [{"text": f"{k}", "tests": [k, 1]} for k in range(2)]} for i in range(3)]
    problem = found(tmp_path / "lists", items, roles={"tests": "column"})[0].problem
    assert "found a list under 'tests'; expected numbers in a column" in str(problem)


def test_numbers_with_marks_or_a_unit_are_doubted(tmp_path: Path) -> None:
    marked = {"lm": "1.0{}0,5", "votes": "{},000", "nll": "−{}.5", "cost": "${}.25", "latency": "{} ms"}
    others = {"day": "1{}.02.2024", "version": "1.2.{}", "tests": "{}/5", "note": "{} of them"}
    texts = {"response": "{}", **marked, **others}
    rows = [{"prompt": f"{i}", **{key: t.format(k) for key, t in texts.items()}} for i in range(3) for k in "12"]
    first, *_ = found(tmp_path / "lists", rows)
    assert (first.names, [*first.roles.doubtful]) == (("score",), [*marked])
    problem = found(tmp_path / "lists", rows, roles={"votes": "column"})[0].problem
    assert "found \"1,000\" under 'votes'; expected numbers in a column" in str(problem)


def test_questions_of_a_file_are_no_candidates(tmp_path: Path) -> None:
    questions = [
        {"id": f"{i}", "body": f"b {i}", "documents": [f"d{i}"], "snippets": [{"text": f"t {i}"}, {"text": "t"}]}
        for i in range(3)
    ]
    assert "'documents' or 'snippets'" in str(found(tmp_path / "lists", {"questions": questions})[0].problem)
    every = found(tmp_path / "lists", {"questions": questions}, roles={"snippets": "candidates"})
    assert [one.texts for one in every] == [[b"t 0", b"t"], [b"t 1", b"t"], [b"t 2", b"t"]]


def test_a_text_that_numpy_has_written_is_no_list(tmp_path: Path) -> None:
    rows = [{"prompt": f"{i}", "samples": "['a'\n 'b']"} for i in range(3)]  # for Python, 'ab'
    problem = found(tmp_path / "lists", rows, roles={"samples": "candidates"})[0].problem
    assert "under 'samples', expected a list" in str(problem)


def test_numbers_of_an_object_whose_others_are_named_are_not_lost_in_silence(tmp_path: Path) -> None:
    items = [
        {
            "prompt": f"{i}",
            "responses": [{"response": f"{k} {i}", "judge": {"n": 2, "a": k, "b": -k}} for k in range(2)],
        }
        for i in range(3)
    ]
    first, *_ = found(tmp_path / "lists", items, roles={"judge.a": "column"})
    assert (first.roles.unused_keys, first.roles.doubtful) == (
        {"judge.n": "numbers, 6 of 6", "judge.b": "numbers, 6 of 6"},
        ("judge.b",),
    )
    first, *_ = found(tmp_path / "lists", items, roles={"judge.a": "column", "judge.b": "unused"})
    assert (sorted(first.roles.unused_keys), first.roles.doubtful) == (["judge.b", "judge.n"], ())


def test_keys_with_dots_and_unused_answers(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    rows = [{"in.q": f"{i}", "out.text": f"{k}", "ok.0": k, "n": i + k} for i in range(3) for k in range(2)]
    first, *_ = found(tmp_path / "lists", rows, roles={"in.q": "group", "out.text": "text", "ok.0": "gain"})
    assert (first.texts, sorted(first.names), first.roles.unused_keys) == ([b"0", b"1"], ["gain", "n", "score"], {})
    assert caplog.text == ""
    own = {"candidates": [{"text": "a", "answer": [1]}, {"text": "b", "answer": [2]}]}
    (first,) = found(tmp_path / "lists", [own], roles={"answer": "unused"})
    assert (first.problem, first.answers) == (None, None)


def test_what_is_said_of_an_answer_is_no_candidate_and_two_ids_are_not_one(tmp_path: Path) -> None:
    said = [{"name": "Correctness", "score": 0.5}, {"name": "Style", "score": 0.25}]
    rows = [
        {"input": f"{i}", "actual_output": f"{i} {k}", "success": k == 0, "metrics": said}
        for i in range(3)
        for k in range(2)
    ]
    assert "--roles" in found(tmp_path / "lists", rows)[0].problem.message
    rows = [{"doc_id": d, "sent_id": n, "hyp": f"{d}{n}{k}"} for d in range(3) for n in range(3) for k in range(2)]
    assert "'doc_id' alone or with 'sent_id'" in found(tmp_path / "lists", rows)[0].problem.message
    assert len(found(tmp_path / "lists", rows, roles={"doc_id": "group"})) == 3


def test_numbers_at_places_are_what_the_user_says(tmp_path: Path) -> None:
    rows = [{"nbest": [["x", -1.5, "5,290"], ["y", -2.5, "1,300"]], "id": name} for name in "ab"]
    (first, _) = found(
        tmp_path / "lists", [{**row, "nbest": [["x", 1, 2], ["y", 3, 4]]} for row in rows], roles={"2": "base"}
    )
    assert (first.names, first.scores.tolist()) == (("score", "1"), [[2, 1], [4, 3]])
    problem = found(tmp_path / "lists", rows, roles={"2": "column"})[0].problem
    assert problem is not None
    assert "found \"5,290\" under '2'; expected numbers in a column" in str(problem)


def test_two_values_that_are_equal_by_chance_are_no_list(tmp_path: Path) -> None:
    rows = [{"text": f"{k}", "words": [f"w{max(k, 1)}"]} for k in range(6)]
    assert found(tmp_path / "lists", rows)[0].problem is not None


@pytest.mark.parametrize("bad", [0, 3])
def test_one_bad_row_decides_nothing(bad: int, tmp_path: Path) -> None:
    rows = [{"audio_filepath": f"{k // 3}.wav", "text": "it rains", "pred_text": f"it {k}"} for k in range(9)]
    rows[bad]["pred"] = rows[bad].pop("pred_text")
    lists = found(tmp_path / "lists", [{"no": "list"}, *rows])
    assert [(one.problem.reason, one.line) for one in lists if one.problem is not None] == [("text", 1)]
    sizes = {one.id: (len(one), len(one.bad)) for one in lists if one.problem is None}
    assert sizes == {f"{k}.wav": (2, 1) if k == bad // 3 else (3, 0) for k in range(3)}


def test_roles_of_columns(tmp_path: Path) -> None:
    item = {"query": ["p", "q"], "takes": [["a", "b"], ["c", "d"]], "scores": [[1, 0], [0, 1]]}
    first, second = found(tmp_path / "lists", [item], roles={"takes": "candidates", "scores": "gain"})
    assert [one.scores[:, 1].tolist() for one in (first, second)] == [[1, 0], [0, 1]]
    item = {"query": ["p", "p", "q"], "takes": ["a", "b", "c"], "notes": ["x", "y", "z"]}
    first, second = found(tmp_path / "lists", [item], roles={"takes": "text"})
    assert (first.texts, second.texts) == ([b"a", b"b"], [b"c"])


def test_roles_that_are_named(tmp_path: Path) -> None:
    takes = [
        {"words": f"{k}", "reward": k, "passed": int(k in (1, 4)), "other": "yx"[k % 2], "junk": k} for k in range(1, 5)
    ]
    rows = [{"takes": takes[:2]}, {"takes": takes[2:]}]
    roles = {
        "takes": "candidates",
        "words": "text",
        "reward": "gain",
        "passed": "column",
        "other": "label",
        "junk": "unused",
    }
    first, _ = found(tmp_path / "lists", rows, roles=roles)
    assert (first.names, first.scores.tolist()) == (("score", "gain", "passed"), [[0, 1, 1], [0, 2, 0]])
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
        (
            [
                {"qid": f"{k}", "response": t, "judge": j, "lm": k}
                for j in "abc"
                for k in range(600)
                for t in "xy"
                if (j, t) != ("c", "y")
            ],
            "each text stands in several rows of its list, one for each 'judge'; if these are judgements",
        ),
    ],
)
def test_two_readings_are_named(rows: Rows, message: str, tmp_path: Path) -> None:
    (tmp_path / "lists").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(DataError, match=message):
        list(rerank.read(tmp_path / "lists"))


@pytest.mark.parametrize(
    "rows",
    [
        # https://huggingface.co/datasets/bavard/personachat_truecased and rajpurkar/squad
        [{"train": [{"personality": ["I run.", f"{k}"], "utterances": [{"history": ["a"]}]} for k in range(3)]}],
        [
            {"context": f"{k}", "question": "?", "answers": {"text": ["x", f"{k}"], "answer_start": [1, 2]}}
            for k in (1, 2)
        ],
        [{"question": f"{k}", "answers": ["x", f"{k}"], "prediction": "x"} for k in range(3)],
        [{"dialogue": [f"{k}?"], "better": "x", "worse": "y"} for k in range(3)],
    ],
)
def test_no_candidates(rows: Rows, tmp_path: Path) -> None:
    assert all(one.problem is not None for one in found(tmp_path / "lists", rows))


def test_a_right_answer_that_is_a_program_is_refused(tmp_path: Path) -> None:
    item = {"problem": "?", "completions": ["def f(): 1"], "answer": "def f():\n    return 1"}
    (bad,) = found(tmp_path / "lists", [item])
    assert "'answer' is a program, which no text equals; run it, and add its verdicts" in bad.problem.message
