"""Lists of documents: LETOR files and TREC runs, whole and block by block, written, and learned from."""

import io
from pathlib import Path

import numpy as np
import pytest

import rerank
from rerank.base.errors import DataError, RecipeError
from rerank.readers.base import SkippedList, lists_of
from rerank.readers.block import ListBlock
from rerank.readers.texts.letor import LetorReader
from rerank.readers.texts.trec import TrecReader
from rerank.recipes.example_recipe import ExampleData, SourceSettings
from rerank.recipes.text_recipe import TextRecipe
from rerank.runs import pipeline
from rerank.runs.examples.sets import load_set

LETOR = b"""# a comment
2 qid:10 1:.5 3:0.1 # docid = a inc = 1
0 qid:10 3:2#docid=b

1 qid:7 1:-1e-3 2:7 # c d
3 qid:7
"""


def letor(tmp_path: Path, text: bytes = LETOR) -> str:
    (tmp_path / "lists.letor").write_bytes(text)
    return str(tmp_path / "lists.letor")


def test_letor_is_read_many_lists_at_once_as_one_by_one(tmp_path: Path) -> None:
    path = letor(tmp_path)
    first, second = LetorReader().read(path)
    assert not isinstance(first, SkippedList)
    assert not isinstance(second, SkippedList)
    assert (first.id, first.texts, first.names) == ("10", [b"a", b"b"], ("score", "1", "2", "3", "gain"))
    assert (second.id, second.texts, list(second.lines)) == ("7", [b"c d", b"6"], [5, 6])
    np.testing.assert_allclose(second.scores, [[0, -1e-3, 7, 0, 1], [0, 0, 0, 0, 3]], rtol=1e-7)
    (block,) = lists_of(LetorReader(), path, blocks=True)
    assert isinstance(block, ListBlock)
    for one, other in zip(block, (first, second), strict=True):
        assert (one.id, one.texts, list(one.lines), one.names) == (
            other.id,
            other.texts,
            list(other.lines),
            other.names,
        )
        np.testing.assert_array_equal(one.scores, other.scores)


def test_sizes_of_lists_may_be_in_a_file_beside(tmp_path: Path) -> None:
    path = letor(tmp_path, b"1 1:2\n0 1:3\n2 1:1\n")
    (bad,) = LetorReader().read(path)
    assert isinstance(bad, SkippedList)
    assert "expected GRADE qid:QUERY" in bad.message
    (tmp_path / "lists.letor.query").write_text("2\n1\n")
    assert [len(one) for one in rerank.read(path)] == [2, 1]
    (block,) = LetorReader().blocks(path)
    assert isinstance(block, ListBlock)
    assert block.lists.tolist() == [0, 2, 3]
    (tmp_path / "lists.letor.query").write_text("2\n2\n")
    with pytest.raises(DataError, match="expected the number of documents of every query, which are 3"):
        list(rerank.read(path))


def test_an_empty_file_has_no_lists(tmp_path: Path) -> None:
    path = letor(tmp_path, b"")
    (tmp_path / "lists.letor.query").write_text("")
    assert list(rerank.read(path)) == []


def test_letor_is_written_in_a_new_order(tmp_path: Path) -> None:
    reader, out = LetorReader(), io.BytesIO()
    for nbest in reader.read(letor(tmp_path)):
        assert not isinstance(nbest, SkippedList)
        reader.write(out, nbest, [1, 0], np.array([1.0, 2.5]))
    again = list(LetorReader().parse(out.getvalue()))
    assert out.getvalue().startswith(
        b"0 qid:10 3:2#docid=b score = 2.5\n2 qid:10 1:.5 3:0.1 # docid = a inc = 1 score = 1.0\n"
    )
    assert not isinstance(again[0], SkippedList)
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
        assert not isinstance(nbest, SkippedList)
        reader.write(out, nbest, [1, 0])
    assert out.getvalue() == b"q1 Q0 b 1 2.5 rerank\nq1 Q0 a 2 1.5 rerank\n"
    (tmp_path / "qrels").write_text("q1 0 b high\n")
    with pytest.raises(DataError, match="expected QUERY 0 DOCUMENT GRADE"):
        list(lists)


def test_runs_are_fused_with_what_one_of_them_lacks(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("q1 Q0 x 1 3.0 a\nq1 Q0 y 2 1.0 a\nq1 Q0 z 3 2.0 a\n")
    (tmp_path / "b").write_text("q1 Q0 y 1 -0.5 b\nq1 Q0 w 2 -1.5 b\nq2 Q0 x 1 0.25 b\n")
    (tmp_path / "qrels").write_text("q1 0 w 2\nq1 0 v 1\n")
    settings = {"name": "trec", "qrels": str(tmp_path / "qrels"), "others": [str(tmp_path / "b")]}
    first, second = rerank.read(tmp_path / "a", settings)
    found = {c.text: {name: c.named_scores[name] for name in c.named_scores} for c in first.candidates}
    near = [1 / (60 + rank) for rank in range(4)]
    assert found == {
        "x": {"score": near[1], "gain": 0.0, "rrf_1": near[1], "minmax_1": 1.0, "rrf_2": 0.0, "minmax_2": 0.0},
        "y": {
            "score": near[3] + near[1],
            "gain": 0.0,
            "rrf_1": near[3],
            "minmax_1": 0.0,
            "rrf_2": near[1],
            "minmax_2": 1.0,
        },
        "z": {"score": near[2], "gain": 0.0, "rrf_1": near[2], "minmax_1": 0.5, "rrf_2": 0.0, "minmax_2": 0.0},
        "w": {"score": near[2], "gain": 2.0, "rrf_1": 0.0, "minmax_1": 0.0, "rrf_2": near[2], "minmax_2": 0.0},
    }
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


def test_a_letor_file_is_ranked_unnamed_and_its_qid_is_not_silently_ignored(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rng = np.random.default_rng(5)
    for split in ("train", "dev"):
        x = np.round(rng.random((30, 4, 2)), 3)
        lines = [f"{int(a > b)} qid:{i} 1:{a} 2:{b} # d{i}-{k}" for i in range(30) for k, (a, b) in enumerate(x[i])]
        (tmp_path / f"{split}.svm").write_text("\n".join(lines) + "\n")
    data = {"root": str(tmp_path), "nbest": "{root}/{split}.svm", "dev": None, "tests": ["dev"]}
    recipe = TextRecipe.model_validate({"name": "letor", "task": "ranking", "data": data, "metric": "ndcg@10"})
    assert recipe.features.set == "dense"
    found = pipeline.run(recipe, tmp_path / "run")["splits"]["dev"]
    assert found["average"]["ndcg@10"] > found["base"]["ndcg@10"] + 0.1
    load_set(ExampleData(), "x", SourceSettings(path=str(tmp_path / "dev.svm")), 1)
    assert "qid is ignored" in caplog.text
