"""What all readers share: candidates on demand, the policy for bad lists, the registry, the errors."""

import ast
import re
from pathlib import Path

import nltk
import numpy as np
import pytest
from pages import text_of

import rerank.readers
from rerank.base.errors import DataError, RecipeError
from rerank.base.registry import Registry, collected
from rerank.features.text import view
from rerank.readers.base import Lists, SkipCount, excerpt, make_reader, readers
from rerank.readers.problems import Problem
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
    count.good(nbest().changed(duplicates=1))
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
    parts, add = collected()
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
    with pytest.raises(RecipeError, match=r"cannot import reader 'rerank.readers.base:Nothing'"):
        readers.get("rerank.readers.base:Nothing")
