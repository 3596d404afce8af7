"""In a run every list is extracted once, whatever is cached, and files must stay as they are."""

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import small
import small_texts

from rerank.base.errors import DataError
from rerank.extraction.content import Content
from rerank.extraction.texts import TextContent
from rerank.extraction.trees import TreeContent
from rerank.features.sink import ListFeatures
from rerank.models.model import Model
from rerank.models.scorer import Ranked, Scorer
from rerank.readers.base import Lists, SkipCount
from rerank.readers.inputs import Inputs
from rerank.readers.streams import open_stream
from rerank.recipes.recipe import AUTO, ListRecipe
from rerank.runs import experiment


def recipe_of(kind: str, small_data: Path, folder: Path) -> ListRecipe:
    if kind == "trees":
        return small.recipe(small_data, training={"epochs": 1}, examples=2)
    folder.mkdir()
    small_texts.write_task(folder)
    features = {"features": {"set": AUTO, "min_lists": 1}} if kind == "texts, their set unknown" else {}
    return small_texts.recipe(folder, training={"epochs": 1}, examples=2, **features)


@pytest.mark.parametrize("kind", ["trees", "texts"])
def test_a_list_is_extracted_once_and_predicted_from_its_corpus(
    kind: str, small_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe, seen = recipe_of(kind, small_data, tmp_path / "data"), Counter[tuple[str, str]]()
    recipe = recipe.model_copy(update={"examples": 0})
    for content in (TreeContent, TextContent):

        def extract(self: Content[Any], nbest: Lists, found: Any, own: Any = content.extract) -> ListFeatures:
            seen[nbest.path, nbest.id] += 1
            return own(self, nbest, found)  # type: ignore[no-any-return]

        monkeypatch.setattr(content, "extract", extract)
    experiment.run(recipe, tmp_path / "runs" / "one")
    lists = sum(
        part["lists"] for part in json.loads((tmp_path / "runs/one/metrics.json").read_text())["corpora"].values()
    )
    assert len(seen) == lists
    assert set(seen.values()) == {1}
    seen.clear()
    experiment.run(recipe, tmp_path / "runs" / "two")
    assert not seen
    model, data = Scorer(Model.load(tmp_path / "runs/one/model")), recipe.data
    sources = data.files("test").get("sources", [None])[0]
    expected = list(model.rank(model.read(model.reader, data.files("test")["nbest"][0], SkipCount(), sources)))
    written = [*model.reader.read(str(tmp_path / "runs/one/predictions/test.nbest.gz"))]
    expected = [ranked for ranked in expected if isinstance(ranked, Ranked) and len(ranked.nbest)]
    written = [nbest for nbest in written if nbest.problem is None and len(nbest)]
    assert len(expected) == len(written) > 5
    for ranked, nbest in zip(expected, written, strict=True):  # scores of lists can be compared: nothing is subtracted
        assert isinstance(ranked, Ranked)
        assert nbest.base == pytest.approx(ranked.scores[ranked.order], rel=1e-6, abs=1e-6)
        assert nbest.texts == [ranked.nbest.texts[y] for y in ranked.order]


@pytest.mark.parametrize("kind", ["trees", "texts"])
def test_a_test_split_is_read_once_more_for_predictions_and_figures_of_texts(
    kind: str, small_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = recipe_of(kind, small_data, tmp_path / "data").changed({"decode.kinds": []})
    read, own = list[str](), Content.read_again

    def read_again(self: Content[Any], data: Any, split: str, *lists: Any) -> Any:
        read.append(split)
        return own(self, data, split, *lists)

    monkeypatch.setattr(Content, "read_again", read_again)
    metrics = experiment.run(recipe, tmp_path / "run")
    assert read == [*recipe.data.tests]
    assert [*metrics["signatures"]] == read
    assert bool(metrics["signatures"]["test"]) == (kind == "texts")


def test_a_digest_is_taken_as_the_file_streams_and_compared(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"\xef\xbb\xbfline\n")
    with Inputs() as inputs:
        with open_stream(path) as stream:
            assert stream.read(10) == b"line\n"
            assert stream.read(10) == b""
        path.write_text("other\n")
        assert inputs.digest(str(path)) == hashlib.sha256(b"\xef\xbb\xbfline\n").hexdigest()
        with open_stream(path) as stream:
            assert stream.read(10) == b"other\n"
            with pytest.raises(DataError, match="has changed since"):
                stream.read(10)
