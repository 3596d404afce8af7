"""Texts as content: pairs of files, columns that are no features, references, candidates, and the final figures."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sacrebleu
import small_texts

from rerank.base.errors import DataError, RecipeError
from rerank.extraction.kinds import with_set
from rerank.extraction.texts import TextContent, final_metrics, without_columns
from rerank.metrics.gain import Gain
from rerank.metrics.ngrams import Bleu
from rerank.metrics.wer import Match, Wer
from rerank.models.model import Model
from rerank.readers.base import SkipCount
from rerank.readers.lists import ListCandidate, Lists
from rerank.recipes.loading import load_recipe
from rerank.recipes.recipe import TextRecipe
from rerank.runs import experiment

LINES = [
    {"id": "a", "source": "x y", "references": ["one two", "one\nthree"], "candidates": [
        {"text": "one four", "score": -1.0, "gain": 0.5}, {"text": "one two", "score": -2.0, "gain": 1.0}]},
    {"id": "b", "source": "z", "references": ["five"], "candidates": []},
    {"id": "c", "source": "z", "references": ["six seven"], "candidates": [
        {"text": "six", "score": 0.0, "gain": 0.25}, {"text": "seven six", "score": -1.0, "gain": 0.0}]},
]  # fmt: skip


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "test.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in LINES))
    return tmp_path


def recipe(root: Path, **settings: Any) -> TextRecipe:
    files = {"root": str(root), "nbest": "{root}/{split}.jsonl", "sources": None, "references": None}
    own = {"data": {**files, "reader": {"name": "jsonl"}}, "features": {"set": "text", "min_lists": 1}}
    return TextRecipe.model_validate({"name": "texts", **own, **settings})


def text_list(**changes: Any) -> Lists:
    settings: dict[str, Any] = {
        "id": "1", "path": "f", "line": 1, "texts": [b"a  b", b"caf\xc3\xa9 \xff"], "lines": [1, 2],
        "scores": np.array([[1.0, -2.0], [0.5, -3.0]]), "column": 1, "names": ("lm", "score"), "source": b"s t",
    }  # fmt: skip
    return Lists.one(**{**settings, **changes})


def test_candidates_of_texts() -> None:
    first, second = text_list().candidates
    assert isinstance(first, ListCandidate)
    assert (first.tokens, first.source, first.text) == (["a", "b"], "s t", "a  b")
    assert second.tokens == ["café", "\udcff"]
    assert second.named_scores == {"lm": 0.5, "score": -3.0}
    assert second.scores.tolist() == [0.5, -3.0]
    assert [each.index for each in text_list().candidates[::-1]] == [1, 0]
    assert text_list(source=None).candidates[0].source is None
    with pytest.raises(DataError):
        _ = first.tree


def test_a_column_that_is_the_gain_is_no_feature() -> None:
    kept = without_columns(text_list(), ["lm", "am"])
    assert (kept.names, kept.column, kept.base.tolist()) == (("score",), 0, [-2.0, -3.0])
    assert without_columns(text_list(), ["other"]).names == ("lm", "score")
    with pytest.raises(RecipeError, match="base score"):
        without_columns(text_list(), ["score"])


def test_pairs_hold_sources_and_references(data: Path) -> None:
    settings = recipe(data)
    pairs = list(TextContent(settings).pairs(settings.data, "test", SkipCount()))
    assert [pair.nbest.id for pair in pairs] == ["a", "b", "c"]
    assert pairs[0].gold == (b"one two", b"one\nthree")
    assert TextContent(settings).gold_text(pairs[0]) == "one two\none three"
    assert [pair.nbest.source for pair in pairs] == [b"x y", b"z", b"z"]  # type: ignore[attr-defined]


def test_derivations_of_lists_without_a_source_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "test.nbest").write_text("0 ||| one two ||| lm= -1 ||| -1 ||| 0=0 1=1\n")
    (tmp_path / "test.ref").write_text("one two\n")
    files = {
        "root": str(tmp_path),
        "nbest": "{root}/{split}.nbest",
        "references": "{root}/{split}.ref",
        "sources": None,
    }
    settings = recipe(tmp_path, data={**files, "reader": {"name": "moses"}})
    (pair,) = TextContent(settings).pairs(settings.data, "test", SkipCount())
    assert pair.content.spans.shape == (0, 4)


def again(content: TextContent, settings: TextRecipe) -> Iterator[tuple[int, Lists]]:
    """The test lists, read again."""
    usable = [pair.nbest for pair in content.pairs(settings.data, "test", SkipCount("skip"))]
    return content.read_again(settings.data, "test", [nbest.id for nbest in usable], np.array([*map(len, usable)]))


def test_final_figures_are_sacrebleus(data: Path) -> None:
    settings = recipe(data, metrics=["ter"])
    content = TextContent(settings)
    chosen = {"base": np.array([0, -1, 0]), "same": np.array([0, -1, 0]), "best": np.array([1, -1, 1])}
    found = content.describe("test", again(content, settings), chosen)
    references = [["one two", "five", "six seven"], ["one\nthree", None, None]]
    texts = {"base": ["one four", "", "six"], "best": ["one two", "", "seven six"]}
    scorers: dict[str, Any] = {
        "bleu": sacrebleu.BLEU(tokenize="none", force=True),
        "chrf": sacrebleu.CHRF(),
        "ter": sacrebleu.TER(),
    }
    for key, scorer in scorers.items():
        for name, hypotheses in texts.items():
            assert found.reports[name][key] == scorer.corpus_score(hypotheses, references).score
        assert found.signatures[key] == str(scorer.get_signature())
    assert found.reports["same"] == found.reports["base"]
    assert found.reports["same"] is not found.reports["base"]


def test_sacrebleu_sees_all_texts_where_its_counts_are_others(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content, chosen = TextContent(settings := recipe(data)), {"base": np.array([0, -1, 0])}
    found = content.describe("test", again(content, settings), chosen)
    monkeypatch.setattr(Bleu, "counts", lambda *_: [1] * 10)
    assert content.describe("test", again(content, settings), chosen) == found


def test_figures_are_of_the_lists_that_the_corpus_has(tmp_path: Path) -> None:
    """A list with a broken derivation is left out of both."""
    (tmp_path / "test.jsonl").write_text(
        '{"source": "x", "reference": "no", "candidates": [{"text": "a b", "score": 1, "segmentation": "0=5"}]}\n'
        '{"source": "x", "reference": "yes", "candidates": [{"text": "yes", "score": 1, "segmentation": "0=0"}]}\n'
    )
    settings = recipe(tmp_path, features={"set": "dptm"})
    content, count = TextContent(settings), SkipCount("skip")
    assert len(list(content.pairs(settings.data, "test", count))) == 1
    assert dict(count.reasons) == {"segmentation": 1}
    found = content.describe("test", again(content, settings), {"base": np.array([0])})
    assert found.reports["base"]["chrf"] == 100.0


def test_what_final_figures_are_of() -> None:
    lowered = Bleu(lowercase=True)
    assert [each.name for each in final_metrics("translation", lowered)] == ["bleu", "chrf"]
    assert final_metrics("translation", lowered)[0] is lowered
    assert [each.name for each in final_metrics("translation", Wer())] == ["bleu", "chrf", "wer"]
    assert [each.name for each in final_metrics("translation", Gain(), ("ter",))] == ["bleu", "chrf", "ter"]
    assert final_metrics("speech", wer := Wer()) == [wer]
    assert final_metrics("ranking", Gain()) == final_metrics("ranking", Match()) == []


def test_gains_need_no_references(data: Path) -> None:
    lines = [{key: value for key, value in line.items() if key != "references"} for line in LINES]
    (data / "test.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    settings = recipe(data, task="ranking")
    content = TextContent(settings)
    pairs = list(content.pairs(settings.data, "test", SkipCount()))
    assert content.stats(*pairs[0])[1].tolist() == [[0.5], [1.0]]
    bleu = recipe(data)
    with pytest.raises(DataError, match="no references"):
        list(TextContent(bleu).pairs(bleu.data, "test", SkipCount()))


def test_without_a_source_there_are_no_phrases(data: Path) -> None:
    content = TextContent(recipe(data, features={"set": "dptm"}))
    nbest = text_list(source=None, segmentation=[b"0=0 1=1", b"0=0 1=1"])
    features = content.features(*content.open(nbest))  # type: ignore[arg-type]
    assert {content.names[number] for number in features.template} == {"Dense"}


@pytest.fixture(scope="module")
def derivations(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The made-up task: dev and test have derivations, the lists of train have lost theirs."""
    root = tmp_path_factory.mktemp("sets")
    small_texts.write_task(root)
    lines = small_texts.lines_of(root / "train.nbest.gz")
    small_texts.write_lines(root / "train.nbest.gz", [line.rpartition(" ||| ")[0] for line in lines])
    return root


AUTO = {"set": "auto", "min_lists": 1}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, "text"),
        ({"train": "dev"}, "translation"),
        ({"train": ["train", "dev"]}, "text"),
        ({"train": "dev", "sources": None}, "text"),
        ({"train": "missing"}, "text"),
    ],
)
def test_derivations_decide(derivations: Path, settings: dict[str, object], expected: str) -> None:
    recipe = small_texts.recipe(derivations, features=AUTO, data=settings)
    assert with_set(recipe).features.model_dump() == {**recipe.features.model_dump(), "set": expected}


@pytest.mark.parametrize("given", ["dense", "translation", None])
def test_a_set_that_is_named_stays(derivations: Path, given: str | None) -> None:
    recipe = small_texts.recipe(derivations, features={"set": given, "templates": ["Length"]})
    assert with_set(recipe) is recipe


def test_a_run_and_its_model_have_the_set_that_was_found(derivations: Path, workspace: Path) -> None:
    directory = workspace / "texts" / "set-found"
    recipe = small_texts.recipe(derivations, features=AUTO, training={"epochs": 1, "vote": False})
    experiment.run(recipe, directory)
    assert Model.load(directory / "model").settings["features"]["set"] == "text"
    assert load_recipe(directory / "recipe.yaml") == with_set(recipe)
