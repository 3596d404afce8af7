"""Commands and the service tell of score columns that are unlike those of training, and of references that are."""

import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import small
from commands import Command, refused

import rerank as library

SHIPPED = Path(__file__).parents[2] / "data" / "asr"


def lines_of(split: str) -> list[dict[str, Any]]:
    return [*map(json.loads, small.lines_of(SHIPPED / f"{split}.jsonl.gz"))]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of transcripts, and lists for it: with another sign in a column, without the base score."""
    root = tmp_path_factory.mktemp("drift")
    train = library.read(SHIPPED / "train.jsonl.gz", "jsonl")
    library.fit(train, metric="wer", features="dense", epochs=1).save(root / "model")
    lines = lines_of("test")
    written: dict[str, list[str]] = {"test": [], "turned": [], "unscored": []}
    for line in lines:
        written["test"].append(json.dumps(line))
        for one in line["candidates"]:
            one["features"]["lm"] *= -1
        written["turned"].append(json.dumps(line))
        for one in line["candidates"]:
            del one["score"]
        written["unscored"].append(json.dumps(line))
    for name, texts in written.items():
        (root / f"{name}.jsonl").write_text("\n".join(texts))
    lines = lines_of("train")
    shifted = [
        {**line, "reference": next["reference"]} for line, next in zip(lines, lines[1:] + lines[:1], strict=True)
    ]
    (root / "shifted.jsonl").write_text("\n".join(map(json.dumps, shifted)))
    return root


@pytest.mark.parametrize("predictor", ["average", "mbr"])
def test_lists_unlike_those_of_training_are_ranked_with_a_warning(place: Path, predictor: str, rerank: Command) -> None:
    options = "rank", place / "model", "--predictor", predictor
    done = rerank(*options, place / "test.jsonl")
    assert done.code == 0
    assert "unlike" not in done.err
    done = rerank(*options, place / "turned.jsonl")
    assert done.code == 0
    assert done.err.count("unlike that of the training lists") == 1
    assert "the score column 'lm'" in done.err.replace("\n", " ")


def test_lists_without_the_base_score_are_refused(place: Path, rerank: Command) -> None:
    done = rerank("rank", place / "model", place / "unscored.jsonl")
    refused(done, "found no base score; expected 'score', as in the training lists")


def test_columns_that_only_the_header_knows_are_left_out(place: Path) -> None:
    known = library.load(place / "model").model
    columns = {"nothing": known.about["columns"]["lm"], **known.about["columns"]}
    model = library.Reranker(replace(known, about={**known.about, "columns": columns}))
    assert len(list(model.rank_many(place / "test.jsonl"))) == 150
    assert model.drift().names == ("score", "acoustic", "lm")


def test_oracle_doubts_references_of_other_lists(place: Path, rerank: Command) -> None:
    done = rerank("oracle", SHIPPED / "train.jsonl.gz", "--reader", "jsonl", "--metric", "wer")
    assert done.code == 0
    assert "off by a line" not in done.err
    done = rerank("oracle", place / "shifted.jsonl", "--reader", "jsonl", "--metric", "wer")
    assert done.code == 0
    assert "long candidates do not go with long references" in done.err.replace("\n", " ")


def test_the_service_measures_columns_and_names_those_that_are_unknown(
    place: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("starlette")
    from rerank.contrib.serve.connections import Measures
    from rerank.contrib.serve.requests import answer

    monkeypatch.setattr(logging.getLogger("rerank"), "propagate", True)
    monkeypatch.setattr(logging.getLogger("rerank"), "handlers", [])
    model = library.load(place / "model")
    drift = model.drift()
    measures = Measures(drift)
    for line in (place / "turned.jsonl").read_text().splitlines():
        candidates = [
            {"text": one["text"], "score": one["score"], "columns": {**one["features"], "other": 1.0}}
            for one in json.loads(line)["candidates"]
        ]
        answer(model, json.dumps({"candidates": candidates}).encode(), drift=drift)

    def value(column: str, lists: str) -> float:
        labels = {"column": column, "measure": "mean", "lists": lists}
        found = measures.registry.get_sample_value("rerank_column", labels)
        assert found is not None
        return found

    assert value("lm", "requests") * value("lm", "training") < 0
    assert value("acoustic", "requests") * value("acoustic", "training") > 0
    assert [message.partition(";")[0].partition(" is unlike")[0] for message in caplog.messages] == [
        "score columns that the model does not know: 'other'",
        "the score column 'lm'",
    ]
    with pytest.raises(library.RerankError, match="candidate 1: found no number as") as caught:
        answer(
            model,
            json.dumps({"candidates": [{"text": "a", "columns": {"lm": 0, "acoustic": 0}}]}).encode(),
            drift=drift,
        )
    assert caught.value.field == "candidates[0].score"  # type: ignore[attr-defined]
