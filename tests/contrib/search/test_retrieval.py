"""Lists of documents: LETOR files and TREC runs, whole and block by block, written, and learned from."""

import io
import json
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rerank
from rerank import evaluate, fit, read
from rerank.base.errors import DataError, RecipeError
from rerank.contrib.classification.recipe import ExampleData, SourceSettings
from rerank.contrib.classification.sets import load_set
from rerank.contrib.search.fuse import fuse_runs
from rerank.contrib.search.letor import LetorReader
from rerank.contrib.search.trec import TrecReader, read_qrels, read_run
from rerank.readers.detection import format_of
from rerank.readers.lists import one_by_one
from rerank.readers.reader import lists_of, readers
from rerank.recipes.recipe import TextRecipe
from rerank.runs import experiment

LETOR = b"""# a comment
2 qid:10 1:.5 3:0.1 # docid = a inc = 1
0 qid:10 3:2#docid=b

1 qid:7 1:-1e-3 2:7 # c d
3 qid:7
"""


def letor(tmp_path: Path, text: bytes = LETOR) -> str:
    (tmp_path / "lists.letor").write_bytes(text)
    return str(tmp_path / "lists.letor")


def test_letor_is_read(tmp_path: Path) -> None:
    path = letor(tmp_path)
    first, second = LetorReader().read(path)
    assert (first.id, first.texts, first.names) == ("10", [b"a", b"b"], ("score", "1", "2", "3", "gain"))
    assert (second.id, second.texts, list(second.lines)) == ("7", [b"c d", b"6"], [5, 6])
    np.testing.assert_allclose(second.scores, [[0, -1e-3, 7, 0, 1], [0, 0, 0, 0, 3]], rtol=1e-7)


ODD = {  # a line among others, and what becomes of it: the message about it, or its text and columns besides gain
    "numbers in a comment": (b"1 qid:7 2:1 # at 12:30 and 99:1, qid:5", (b"at 12:30 and 99:1, qid:5", {"2": 1})),
    "several marks of comments": (b"1 qid:7 2:1 # a 4:1 # docid = b 5:2", (b"b", {"2": 1})),
    "a comment right behind": (b"1 qid:7 2:1#3:4", (b"3:4", {"2": 1})),
    "zeros ahead": (b"1 qid:007 002:1 # x", (b"x", {"2": 1})),
    "other white space": (b"\t1\x0bqid:7\t2:1 \r", (b"4", {"2": 1})),
    "no features": (b"1 qid:7", (b"4", {})),
    "an id that nothing can hold": (b"1 qid:7 " + b"9" * 5000 + b":1", "found '99999"),
    "an id after zeros": (b"1 qid:7 " + b"0" * 5000 + b"2:1", (b"4", {"2": 1})),
    "no value": (b"1 qid:7 2:NULL # docid = b", "found '2:NULL'; expected LABEL ID:VALUE"),
    "an infinite value": (b"1 qid:7 2:inf", "found '2:inf'; expected"),
    "a value of Python": (b"1 qid:7 2:1_0", "found '2:1_0'; expected"),
    "an id twice": (b"1 qid:7 2:1 77:1 2:3", "found id 2 twice"),
    "a second query": (b"1 qid:7 qid:8 2:1", "found 'qid:8'; expected LABEL ID:VALUE"),
    "a grade in words": (b"high qid:7 2:1 78:1", "found 'high' as the grade; expected GRADE qid:QUERY ID:VALUE"),
    "a grade of Python": (b"1_0 qid:7 2:1", "found '1_0' as the grade"),
    "an infinite grade": (b"1e999 qid:7 2:1", "found '1e999' as the grade"),
    "a NUL byte in a comment": (b"1 qid:7 2:1 # a\0b", "a NUL byte"),
    "bytes that are no text": (b"1 qid:7 2:1 # docid = \xff", "which is not UTF-8"),
    "a score of ours": (b"1 qid:7 2:1 # docid = b score = 2.5", (b"docid", {"2": 1, "score": 2.5})),
}


@pytest.mark.parametrize("what", ODD)
def test_odd_lines_of_letor(tmp_path: Path, what: str) -> None:
    line, expected = ODD[what]
    path = letor(tmp_path, b"0 qid:6 2:3\n\n1 qid:7 1:.5 # a\n" + line + b"\n2 qid:7 2:0.25 # c\n")
    alone = list(one_by_one(lists_of(LetorReader(), path)))
    found = [one for one in alone if one.problem is None]
    assert {nbest.names for nbest in found} == {("score", "1", "2", "gain")}  # and none of a line that is bad
    problems = [problem for one in alone for problem in (one.bad if one.problem is None else [one.problem])]
    if not isinstance(expected, tuple):
        assert [problem.line for problem in problems] == [4]
        assert expected in problems[0].message
        return
    assert (problems, len(found)) == ([], 2)
    if expected[0] != b"docid":
        assert found[1].texts[1] == expected[0]
    values = dict(zip(found[1].names, found[1].scores[1].tolist(), strict=True))
    assert values == {"score": 0, "1": 0, "2": 0, "gain": 1} | expected[1]


def test_faults_in_long_files_leave_the_lines_around_them(tmp_path: Path) -> None:
    """The rest of a line with a fault may be in the next piece of the file."""
    rng, lines = np.random.default_rng(6), list[str]()
    faults = rng.random(4000) < 0.4
    for k, fault in enumerate(faults.tolist()):
        features = [f"{j}:{k + j / 1000}" for j in range(1, 30)]
        features[int(rng.integers(29))] += "NULL" * fault
        lines.append(f"{k % 3} qid:{k // 8} {' '.join(features)} # d{k}")
    found = [one for one in LetorReader().read(letor(tmp_path, "\n".join(lines).encode())) if one.problem is None]
    right = np.flatnonzero(~faults)
    assert [name for one in found for name in one.texts] == [b"d%d" % k for k in right]
    scores = np.concatenate([one.scores for one in found])
    np.testing.assert_array_equal(scores[:, 1:-1], right[:, None] + np.arange(1, 30) / 1000)
    np.testing.assert_array_equal(scores[:, -1], right % 3)
    assert sorted(problem.line or 0 for one in found for problem in one.bad) == (1 + np.flatnonzero(faults)).tolist()


def test_numbers_in_comments_are_no_columns_in_any_command(tmp_path: Path, rerank: Any) -> None:
    """Lists that are read one by one, as for writing them, or as one line is bad, have the columns of a model."""
    lines = [f"{d % 2} qid:{q} 1:{d} # docid = D{d} seen at {d}:30" for q in range(1, 9) for d in range(1, 4)]
    path, bad = letor(tmp_path, "\n".join(lines).encode()), tmp_path / "bad.letor"
    bad.write_text("\n".join([*lines, "x qid:99 1:1 55:1", "1 qid:99 56:NULL"]))
    columns = [fit(list(read(p, on_bad_list="skip")), metric="ndcg@10", features="dense").columns for p in (path, bad)]
    assert columns == [("score", "1"), ("score", "1")]
    fit(list(read(path)), metric="ndcg@10", features="dense").save(tmp_path / "m")
    made = rerank("rank", tmp_path / "m", path, "--reader", "letor")
    assert (made.code, "score column" in made.err) == (0, False), made
    (tmp_path / "long.letor").write_text(f"1 qid:1 1:1\n0 qid:1 {'9' * 5000}:1\n")
    made = rerank("oracle", tmp_path / "long.letor", "--reader", "letor", "--metric", "gain")
    assert (made.code, "long.letor:2: list 1: found '9999" in made.err) == (2, True), made


def test_sizes_of_lists_may_be_in_a_file_beside(tmp_path: Path) -> None:
    path = letor(tmp_path, b"1 1:2 # not a qid:1\n0 1:3\n2 1:1\n")
    (bad,) = LetorReader().read(path)
    assert "expected GRADE qid:QUERY" in bad.problem.message
    (tmp_path / "lists.letor.query").write_text("2\n1\n")
    assert [len(one) for one in rerank.read(path)] == [2, 1]
    (tmp_path / "lists.letor.query").write_text("2\n2\n")
    with pytest.raises(DataError, match="expected the number of documents of every query, which are 3"):
        list(rerank.read(path))


def test_letor_is_written_in_a_new_order(tmp_path: Path) -> None:
    reader, out = LetorReader(), io.BytesIO()
    for nbest in reader.read(letor(tmp_path)):
        reader.write(out, nbest, [1, 0], np.array([1.0, 2.5]))
    again = list(LetorReader().parse(out.getvalue()))
    assert out.getvalue().startswith(
        b"0 qid:10 3:2#docid=b score = 2.5\n2 qid:10 1:.5 3:0.1 # docid = a inc = 1 score = 1.0\n"
    )
    assert again[0].texts == [b"b", b"a"]


def test_relevant_documents_that_a_run_lacks_count(tmp_path: Path) -> None:
    """As trec_eval has it: one of two relevant documents, first in the order of scores."""
    (tmp_path / "run").write_text("q1 Q0 a 1 1.5 bm25\nq1 Q0 b 2 2.5 bm25\n")
    (tmp_path / "qrels").write_text("q1 0 b 1\nq1 0 c 1\nq2 0 a 1\n")
    lists = rerank.read(tmp_path / "run", {"name": "trec", "qrels": str(tmp_path / "qrels")})
    scores = {name: rerank.evaluate([[1.5, 2.5]], lists, name).score for name in ("map", "recall@2", "mrr", "ndcg@2")}
    assert scores == {"map": 0.5, "recall@2": 0.5, "mrr": 1.0, "ndcg@2": pytest.approx(1 / (1 + 1 / np.log2(3)))}
    reader, out = TrecReader(), io.BytesIO()
    for nbest in reader.read(tmp_path / "run"):
        reader.write(out, nbest, [1, 0])
    assert out.getvalue() == b"q1 Q0 b 1 2.5 rerank\nq1 Q0 a 2 1.5 rerank\n"
    (tmp_path / "qrels").write_text("q1 0 b high\n")
    with pytest.raises(DataError, match="expected QUERY 0 DOCUMENT GRADE"):
        list(lists)


def test_a_table_of_six_columns_is_no_run(tmp_path: Path) -> None:
    (tmp_path / "rows").write_text("0  0  q?  yes  0.5  True\n1  0  q?  no   0.25  False\n")
    for nbest in TrecReader().read(tmp_path / "rows"):
        assert "expected QUERY Q0 DOCUMENT RANK SCORE NAME" in str(nbest.problem)
    with pytest.raises(DataError, match="no known form"):
        format_of(str(tmp_path / "rows"), readers)


def test_queries_that_nobody_judged_are_no_part_of_figures(tmp_path: Path, caplog: Any, rerank: Any) -> None:
    """Figures are those of trec_eval, by hand and by itself; one line says how many queries are left out."""
    pytrec_eval = pytest.importorskip("pytrec_eval")
    # Of nine queries three are judged: one has its relevant document first, one second, one has none.
    judged = {"q1": {"a": 1}, "q4": {"b": 1, "a": 0}, "q7": {"a": 0}}
    run = {f"q{i}": {"a": 2.0, "b": 1.0} for i in range(9)}
    rows = [f"{query} Q0 {d} 0 {score} x" for query, found in run.items() for d, score in found.items()]
    (tmp_path / "run").write_text("\n".join(rows) + "\n")
    (tmp_path / "qrels").write_text("".join(f"{q} 0 {d} {g}\n" for q, of in judged.items() for d, g in of.items()))
    spec = {"name": "trec", "qrels": str(tmp_path / "qrels")}
    lists = read(tmp_path / "run", spec)
    given = [[c.score for c in nbest.candidates] for nbest in lists]
    names: dict[str, Any] = {
        "recip_rank": "mrr",
        "ndcg_cut_10": {"name": "ndcg", "k": 10, "form": "linear"},
        "P_10": "precision",
    }
    for name, metric in names.items():
        found = pytrec_eval.RelevanceEvaluator(judged, {name}).evaluate(run)
        expected = np.mean([values[name] for values in found.values()])
        assert evaluate(given, lists, metric).score == pytest.approx(expected, abs=1e-12)
        assert evaluate(given, list(lists), metric).score == pytest.approx(expected, abs=1e-12)
    assert evaluate(given, lists, "mrr").score == (1 + 1 / 2 + 0) / 3
    said = "skipped 6 lists (unjudged); the first: "
    assert said in caplog.text
    for command in ("oracle", "weigh"):
        more = ("--metric", "mrr", "--json", *(("--folds", "3") if command == "weigh" else ()))
        made = rerank(command, tmp_path / "run", "--reader", json.dumps(spec), *more)
        assert (made.code, made.err.count(said), made.err.count("measure: mrr of gain")) == (0, 1, 1), made
        beside = rerank(command, tmp_path / "run", tmp_path / "qrels", *more)  # in place of references
        assert (beside.code, beside.err.count(said), beside.out) == (0, 1, made.out), beside
    assert (
        "what is right: gain, 2 of 6 candidates are right" in rerank("look", tmp_path / "run", tmp_path / "qrels").out
    )
    with pytest.raises(DataError, match=r"found 2 files of what is right; expected one of judgements \(qrels\)"):
        read(tmp_path / "run", "trec", references=[tmp_path / "qrels", tmp_path / "run"])
    assert json.loads(
        rerank("oracle", tmp_path / "run", "--reader", json.dumps(spec), "--metric", "mrr", "--json").out
    )["base"]["mrr"] == pytest.approx(0.5)
    (tmp_path / "qrels").write_text("q99 0 a 1\n")
    made = rerank("weigh", tmp_path / "run", "--reader", json.dumps(spec), "--metric", "mrr")
    assert (made.code, "no usable list in the file; skipped for 'unjudged', first" in made.err) == (2, True), made


def test_a_recipe_learns_from_judged_queries_alone(tmp_path: Path) -> None:
    """A run of judged queries gives the same weights and figures as one that has others besides."""
    rng, found = np.random.default_rng(8), []
    for name, others in (("all", 20), ("judged", 0)):
        rng = np.random.default_rng(8)
        rows, qrels = list[str](), list[str]()
        for i in range(40):
            scores = rng.random(5)
            rows += [f"q{i} Q0 d{y} 0 {scores[y]} x" for y in range(5)]
            qrels += [f"q{i} 0 d{y} {int(rng.random() < scores[y])}" for y in range(5)]
            rows += [f"other{i} Q0 d{y} 0 {y} x" for y in range(5) if i < others]
        (tmp_path / f"{name}.run").write_text("\n".join(rows) + "\n")
        (tmp_path / "qrels").write_text("\n".join(qrels) + "\n")
        reader = {"name": "trec", "qrels": str(tmp_path / "qrels")}
        data = {"root": str(tmp_path), "nbest": f"{{root}}/{name}.run", "reader": reader, "tests": ["test"]}
        settings = {"name": name, "task": "ranking", "data": data, "metric": "ndcg@3", "features": {"set": "dense"}}
        results = experiment.run(TextRecipe.model_validate(settings), tmp_path / name)
        found.append(results["splits"]["test"])
        assert results["corpora"]["train"]["skipped"] == ({"unjudged": others} if others else {})
    assert found[0] == found[1]


def test_a_document_that_a_run_has_twice_makes_a_bad_list(tmp_path: Path, rerank: Any) -> None:
    rows = ["q1 Q0 a 1 9 x", *(f"q1 Q0 a {rank} 8 x" for rank in (2, 3)), "q2 Q0 a 1 1 x"]
    (tmp_path / "run").write_text("\n".join(rows) + "\n")
    (tmp_path / "qrels").write_text("q1 0 a 1\nq2 0 a 1\n")
    spec = {"name": "trec", "qrels": str(tmp_path / "qrels")}
    made = rerank("oracle", tmp_path / "run", "--reader", json.dumps(spec), "--metric", "precision")
    assert (made.code, "run:2: list q1: the document 'a' is there twice" in " ".join(made.err.split())) == (2, True)
    with pytest.raises(DataError, match="run:2: list q1: the document 'a' is there twice"):
        list(read(tmp_path / "run", spec))
    for changes, lists, sizes in (({}, 1, [1]), ({"duplicates": "drop"}, 2, [1, 1])):
        found = read(tmp_path / "run", spec | changes, on_bad_list="skip")
        assert [len(nbest) for nbest in found] == sizes
        assert evaluate([[1.0]] * lists, found, "precision").score == pytest.approx(0.1)


def test_lines_of_a_query_stand_together(tmp_path: Path) -> None:
    """The second part of a query is refused, and not taken for another query."""
    (tmp_path / "apart").write_text("".join(f"q{k % 2} Q0 d{k} 0 {k} x\n" for k in range(4)))
    with pytest.raises(DataError, match="the lines of a query stand together: sort the file by its first column"):
        list(read(tmp_path / "apart", "trec"))


def test_judgements_of_beir_are_read(tmp_path: Path) -> None:
    """Three columns below their header: https://github.com/beir-cellar/beir/wiki/Load-your-custom-dataset"""
    path = tmp_path / "test.tsv"
    path.write_text("query-id\tcorpus-id\tscore\nq1\ta b\t2\nq1\tc\t0\n\nq2\ta b\t1\n")
    assert read_qrels(path) == {b"q1": {b"a b": 2, b"c": 0}, b"q2": {b"a b": 1}}
    for wrong, line in (("q1\ta\tb\t2\n", 2), ("q1\t\t2\n", 2), ("q1\ta\thigh\n", 2)):
        path.write_text("query-id\tcorpus-id\tscore\n" + wrong)
        with pytest.raises(DataError, match=f"test.tsv:{line}: found .*; expected QUERY 0 DOCUMENT GRADE, or QUERY"):
            read_qrels(path)
    path.write_text("q1\ta\t2\n")  # without a header nobody knows what the columns are
    with pytest.raises(DataError, match="below BEIR's header, query-id corpus-id score"):
        read_qrels(path)


def test_runs_are_fused_with_what_one_of_them_lacks(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("q1 Q0 x 1 3.0 a\nq1 Q0 y 2 1.0 a\nq1 Q0 z 3 2.0 a\n")
    (tmp_path / "b").write_text("q1 Q0 y 1 -0.5 b\nq1 Q0 w 2 -1.5 b\nq2 Q0 x 1 0.25 b\n")
    (tmp_path / "qrels").write_text("q1 0 w 2\nq1 0 v 1\nq2 0 x 0\n")
    settings = {"name": "trec", "qrels": str(tmp_path / "qrels"), "others": [str(tmp_path / "b")]}
    first, second = rerank.read(tmp_path / "a", settings)
    found = {c.text: {name: c.named_scores[name] for name in c.named_scores} for c in first.candidates}
    near = [1 / (60 + rank) for rank in range(4)]
    columns = "score", "gain", "rrf_1", "minmax_1", "rrf_2", "minmax_2"
    expected = {
        "x": (near[1], 0, near[1], 1, 0, 0),
        "y": (near[3] + near[1], 0, near[3], 0, near[1], 1),
        "z": (near[2], 0, near[2], 0.5, 0, 0),
        "w": (near[2], 2, 0, 0, near[2], 0),
    }
    assert list(found) == list(expected)
    for document, values in expected.items():
        assert found[document] == pytest.approx(dict(zip(columns, values, strict=True)))
    assert (second.id, [c.text for c in second.candidates]) == ("q2", ["x"])
    with pytest.raises(RecipeError, match="trained on several runs; name those"):
        TrecReader(others=("b",)).of_others()
    assert TrecReader(qrels="qrels").of_others() == TrecReader()
    (tmp_path / "b").write_text("q1 Q0 y 1 high b\n")
    with pytest.raises(DataError, match="b:1: "):
        list(rerank.read(tmp_path / "a", settings))
    (tmp_path / "b").write_text("q1 Q0 y 1 1 b\nq1 Q0 y 2 0 b\n")
    with pytest.raises(DataError, match="b:2: 'y' is there twice"):
        list(rerank.read(tmp_path / "a", settings))


@pytest.mark.parametrize("scores", [[-1.0, -2.0, -1.0], [9.5, 9.0, 7.0]])
def test_runs_of_ms_marco_and_colbert_have_ranks_and_perhaps_scores(scores: list[float], tmp_path: Path) -> None:
    rows = [("1048585", "7187158", 1), ("1048585", "7187157", 2), ("2", "7617404", 1)]
    lines = ["\t".join(map(str, [*row, score][: 3 + (score > 0)])) for row, score in zip(rows, scores, strict=True)]
    (tmp_path / "run.tsv").write_text("\n".join(lines) + "\n")
    first, second = rerank.read(tmp_path / "run.tsv")
    assert (first.id, second.id) == ("1048585", "2")
    assert [one.text for one in first.candidates] == ["7187158", "7187157"]
    assert [one.score for one in [*first.candidates, *second.candidates]] == scores
    (tmp_path / "run.tsv").write_text("1 a 0\n1 b 1\n")
    assert all(one.problem is not None for one in TrecReader().read(tmp_path / "run.tsv"))


def test_runs_in_json_are_those_of_trec(tmp_path: Path) -> None:
    """JSON as ranx and pytrec_eval have it: https://amenra.github.io/ranx/run/"""
    forms = {
        "trec": ("q1 Q0 x 1 -1.0 a\nq1 Q0 y 2 -2.0 a\nq2 Q0 x 1 -1.0 a\n", "q1 0 y 2\nq1 0 v 1\n\nq2 0 x 0\n"),
        "json": ('{"q1": {"x": -1, "y": -2.0},\n "q2": {"x": -1}}', '{"q1": {"y": 2, "v": 1}, "q2": {"x": 0}}'),
    }
    read = []
    for form, (run, judged) in forms.items():
        (tmp_path / f"{form}.run").write_text(run)
        (tmp_path / f"{form}.qrels").write_text(judged)
        one = TrecReader(qrels=str(tmp_path / f"{form}.qrels"))
        fused = replace(one, others=(str(tmp_path / f"{form}.run"),))
        for reader, name in ((one, form), (fused, "trec")):
            lists = [found for found in reader.read(tmp_path / f"{name}.run") if found.problem is None]
            read.append([(found.id, found.texts, found.scores.tolist(), found.missing_grades) for found in lists])
        assert format_of(str(tmp_path / f"{form}.run"), readers) == "trec"
    assert read[0] == [("q1", [b"x", b"y"], [[-1, 0], [-2, 2]], (1.0,)), ("q2", [b"x"], [[-1, 0]], ())]
    assert read[:2] == read[2:]


def test_damaged_json_runs_say_where(tmp_path: Path) -> None:
    run = tmp_path / "run.json"
    for text, message in (
        ('{"q1": {"x": 1},\n"q1": {"y": 1}}', 'run.json:1: the key "q1" appears twice'),
        ('{"q1": {"x": "high"}}', "expected the score of 'x' as a number"),
        ('{"q1": {"x": 1, "x": 2}}', 'the key "x" appears twice'),
        ('{"q1": [1]}', "expected {DOCUMENT: score}"),
        ('{"q1": {"": 1}}', "found a document without a name"),
        ('{"q1": {"x": 1}', "expected a JSON object on one line: Expecting"),
        ('{"q1" {"x": 1}}', "as {QUERY: {DOCUMENT: score}}"),
        ('{"q1": {"x": 1}} {}', "Extra data"),
    ):
        run.write_text(text)
        with pytest.raises(DataError, match=re.escape(message)):
            list(rerank.read(run, "trec"))
    run.write_text('{"q1": {"x": [1]}}')
    with pytest.raises(DataError, match="expected the grade of 'x' as a number"):
        read_qrels(run)


def test_a_query_that_found_nothing_is_a_list_without_candidates(tmp_path: Path) -> None:
    """As in ranx; it counts as such in every metric of an order."""
    (tmp_path / "run.json").write_text('{"q1": {}, "q2": {"x": 1}}')
    (tmp_path / "qrels.json").write_text('{"q1": {"y": 1}, "q2": {"x": 1}, "q3": {}}')
    reader = TrecReader(qrels=str(tmp_path / "qrels.json"))
    first, second = reader.read(tmp_path / "run.json")
    assert (first.id, first.texts, first.missing_grades, second.id) == ("q1", [], (1.0,), "q2")
    lists = rerank.read(tmp_path / "run.json", {"name": "trec", "qrels": str(tmp_path / "qrels.json")})
    assert rerank.evaluate([[], [1.0]], lists, "mrr").score == 0.5
    assert read_run(tmp_path / "run.json") == {b"q2": {b"x": 1.0}}


def test_a_bad_line_of_a_fused_run_leaves_the_others(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("q1 Q0 x 1 3.0 a\nq1 Q0 y 2 high a\n")
    (tmp_path / "b").write_text("q1 Q0 x 1 1.0 b\n")
    (found,) = TrecReader(others=(str(tmp_path / "b"),)).read(tmp_path / "a")
    assert [problem.reason for problem in found.bad] == ["score"]
    assert (found.texts, found.scores[0, 0]) == ([b"x"], 2 / 61)


def test_a_letor_file_is_ranked_and_its_qid_is_not_ignored(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    rng = np.random.default_rng(5)
    for split in ("train", "dev"):
        x = np.round(rng.random((30, 4, 2)), 3)
        lines = [f"{int(a > b)} qid:{i} 1:{a} 2:{b} # d{i}-{k}" for i in range(30) for k, (a, b) in enumerate(x[i])]
        (tmp_path / f"{split}.svm").write_text("\n".join(lines) + "\n")
    data = {"root": str(tmp_path), "nbest": "{root}/{split}.svm", "dev": None, "tests": ["dev"]}
    recipe = TextRecipe.model_validate({"name": "letor", "task": "ranking", "data": data, "metric": "ndcg@10"})
    assert recipe.features.set == "dense"
    found = experiment.run(recipe, tmp_path / "run")["splits"]["dev"]
    assert found["average"]["ndcg@10"] > found["base"]["ndcg@10"] + 0.1
    load_set(ExampleData(), "x", SourceSettings(path=str(tmp_path / "dev.svm")), 1)
    assert "qid is ignored" in caplog.text


def test_more_runs_than_are_shown_by_their_columns_are_fused(tmp_path: Path) -> None:
    random, runs = np.random.default_rng(1), [str(tmp_path / f"run{k}") for k in range(12)]
    (tmp_path / "qrels").write_text("".join(f"{q} 0 d{y} {(q + y) % 3 == 0:d}\n" for q in range(20) for y in range(4)))
    for run in runs:
        lines = (f"{q} Q0 d{y} {y + 1} {random.random()} x\n" for q in range(20) for y in range(4))
        Path(run).write_text("".join(lines))
    assert {"CombSUM", "RRF", *map(os.path.basename, runs)} <= {
        *fuse_runs(runs, str(tmp_path / "qrels"), {"name": "ndcg"}).results.rows
    }
