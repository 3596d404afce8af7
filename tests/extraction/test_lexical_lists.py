"""The template Lexical from training lists to models: who learns from what, and lists that lack what it needs."""

import json
import shutil
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small
import small_texts
from commands import Command, refused

from rerank.base.errors import DataError, ModelError, RecipeError, RunError
from rerank.data.shards import Lists, whole
from rerank.data.tokens import tokenise
from rerank.extraction.content import content_of
from rerank.extraction.extraction import extract_split, extract_training
from rerank.extraction.lexical import keep_tables, kept_tables, learn
from rerank.features.dense import free_values
from rerank.features.model1 import LexicalTables, same_tables
from rerank.features.table import FeatureTable, load_table, same_columns
from rerank.features.text.lexical import COLUMNS, Lexical, lexical_columns
from rerank.models.model import Model
from rerank.models.reranker import load
from rerank.readers.base import NBestList, SkippedList
from rerank.readers.texts.text_list import TextList
from rerank.recipes.text_recipe import TextRecipe
from rerank.runs import pipeline


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("lexical")
    small_texts.write_task(root)
    return root


def recipe(root: Path, **changes: Any) -> TextRecipe:
    features = {"set": None, "templates": ["Lexical"], "min_lists": 1}
    learner = {"name": "arda", "loss": "bayes", "base": 1}
    made = {"features": features, "learner": learner, "training": {"epochs": 2, "vote": False}}
    return small_texts.recipe(root, **small.extended(made, changes))


@pytest.fixture(scope="module")
def model(data: Path, workspace: Path) -> Path:
    """A model that has learned; tests do not change it."""
    directory = workspace / "texts" / "lexical"
    pipeline.run(recipe(data), directory)
    return directory / "model"


def raw_lists(settings: TextRecipe, split: str = "train") -> list[NBestList | SkippedList]:
    return list(content_of(settings).read(settings.data, split))


def check(lists: Lists, table: FeatureTable, place: int, raw: NBestList | SkippedList, tables: LexicalTables) -> None:
    """The list at a place has the columns that ``tables`` give, as far as they vary."""
    corpus = whole(lists)
    assert isinstance(raw, TextList)
    words = tokenise(raw.texts)
    expected = lexical_columns(tables, tokenise([raw.source or b""]).hashes, words.hashes, words.first)
    found = free_values(corpus)[corpus.lists[place] : corpus.lists[place + 1]] / table.scale
    for j in range(table.free):
        column = expected[:, COLUMNS.index(table.name(j).removeprefix("Lexical|"))]
        varies = np.ptp(column.astype(np.float32)) > 0
        assert np.allclose(found[:, j], column if varies else 0.0, rtol=1e-5)


def test_lists_of_train_get_what_other_parts_have_taught(data: Path) -> None:
    settings = recipe(data, features={"centred": False})
    extracted, table = extract_training(settings)
    assert isinstance(table, FeatureTable)
    assert table.free == len(COLUMNS)
    raws, learned = raw_lists(settings), learn(Lexical(), raw_lists(settings))
    for number, (first, last) in enumerate(pairwise(range(0, 41, 8))):
        others = learn(Lexical(), raws[:first] + raws[last:]).whole
        assert same_tables(learned.parts[number], others)
        assert not same_tables(learned.whole, others)
        for place in range(first, last):
            assert learned.part(place) == number
            check(extracted.corpus, table, place, raws[place], others)
    assert same_tables(table.lexical, learned.whole)
    dev = extract_split(settings, "dev", table).corpus
    for place, raw in enumerate(raw_lists(settings, "dev")):
        check(dev, table, place, raw, learned.whole)


def test_tables_in_a_spool(tmp_path: Path, data: Path) -> None:
    learned = learn(Lexical(), raw_lists(recipe(data)))
    digests = [keep_tables(tmp_path, tables) for tables in (learned.whole, learned.parts[0])]
    assert same_tables(kept_tables(tmp_path, digests[1]), learned.parts[0])
    shutil.rmtree(tmp_path)
    with pytest.raises(RunError, match="the extraction was stopped"):
        kept_tables(tmp_path, digests[1])


@pytest.mark.parametrize("size", [1, 3])
def test_tiny_training_sets(data: Path, tmp_path: Path, size: int) -> None:
    """Parts without lists, and tables of nothing: whatever is known then, there is a model of the dense scores."""
    for ending in ("nbest", "src", "ref"):
        lines = small_texts.lines_of(data / f"train.{ending}.gz")
        small_texts.write_lines(tmp_path / f"train.{ending}.gz", lines[: size * 6 if ending == "nbest" else size])
    extracted, table = extract_training(recipe(tmp_path, features={"set": "dense"}))
    assert (extracted.corpus.list_count, table.lexical is not None) == (size, True)
    assert np.isfinite(whole(extracted.corpus).values).all()


def test_lists_of_training_need_sources_and_references(data: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"train\.nbest\.gz:1: list 0: no source: name the file with data\.sources"):
        extract_training(recipe(data, data={"sources": None}))
    rows = [{"source": "a", "candidates": [{"text": "b", "score": 1, "gain": g} for g in (0, 1)]}] * 2
    (tmp_path / "train.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    files = {"nbest": "{root}/{split}.jsonl", "references": None, "sources": None, "reader": {"name": "jsonl"}}
    with pytest.raises(RecipeError, match="learns from references of training lists"):
        extract_training(recipe(tmp_path, data=files, task="ranking", metric={"name": "gain"}))


def test_empty_texts_and_words_never_seen(model: Path) -> None:
    reranker = load(model)
    columns = dict.fromkeys(reranker.columns[1:], 0.0)
    texts = "", "good1 unheard", "good1"
    candidates = [{"text": text, "score": 0.0, "columns": columns} for text in texts]
    for source in ("", "quell1", "unheard of"):
        ranking = reranker.rank(candidates, source)
        assert np.isfinite(ranking.scores).all()
        assert np.array_equal(ranking.scores, reranker.rank(candidates, f" {source}  ").scores)
    assert reranker.best(candidates, "quell1") is candidates[2]
    with pytest.raises(DataError, match="no source"):
        reranker.rank(candidates)


def test_models_keep_what_they_have_learned(model: Path, data: Path, tmp_path: Path) -> None:
    found = Model.load(model)
    learned = learn(Lexical(), raw_lists(recipe(data)))
    assert same_tables(found.table.lexical, learned.whole)
    found.save(tmp_path / "again")
    assert small.files_of(tmp_path / "again") == small.files_of(model)
    assert not same_columns(found.table, replace(found.table, lexical=None))
    assert any(name.startswith("Lexical|target") for name in map(found.table.name, range(found.table.width)))


def test_damaged_tables_are_refused(model: Path, tmp_path: Path) -> None:
    shutil.copytree(model, tmp_path / "model")
    path = tmp_path / "model" / "table_lexical_forward_word.npy"
    np.save(path, np.load(path) + 1000)
    with pytest.raises(ModelError, match="lexical tables"):
        load_table(tmp_path / "model")


def test_commands_have_the_columns(model: Path, data: Path, rerank: Command) -> None:
    """Lists with sources are ranked by them, in a program as on the command line; without, the first list is named."""
    lists, sources = str(data / "test.nbest.gz"), str(data / "test.src.gz")
    found = rerank("rank", str(model), lists, "--sources", sources)
    ranked = load(model).rank_many(lists, sources=sources)
    assert found.out.splitlines() == [each.best.text if len(each) else "" for each in ranked]
    assert "Lexical|target-rate" in rerank("explain", str(model), lists, "--sources", sources, "--list", "3").out
    refused(rerank("rank", str(model), lists), "test.nbest.gz:1: list 0: no source")
