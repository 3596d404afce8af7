"""Parses with scores of other models, and of several parsers: runs, and the commands that apply their models."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small
import small_parsers
from commands import Command, refused
from small_parsers import JOINED, MERGED

from rerank.models.model import Model
from rerank.readers.base import Lists
from rerank.readers.trees.charniak import CharniakReader
from rerank.runs import experiment

COLUMNS = {"joined": {"Dense|quality"}, "merged": {"Dense|score_2", "Dense|system_1", "Dense|system_2"}}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("parsers")
    small_parsers.write_task(root)
    return root


def recipe(root: Path, lists: dict[str, Any], **changes: Any) -> Any:
    templates = {"set": None, "templates": [*small.TEMPLATES, "Dense"]}
    return small.recipe(root, **{"data": lists, "features": templates, **changes})


@pytest.fixture(scope="module")
def runs(data: Path, workspace: Path) -> dict[str, Path]:
    """The outputs of runs over both."""
    found = {name: workspace / "parsers" / name for name in COLUMNS}
    for name, lists in (("joined", JOINED), ("merged", MERGED)):
        experiment.run(recipe(data, lists), found[name])
    return found


def files_of(lists: dict[str, Any], root: Path, split: str = "test") -> str:
    return str(lists["nbest"].format(root=root, split=split))


def read(path: Path) -> list[Lists]:
    return [nbest for nbest in CharniakReader().read(path) if nbest.problem is None]


@pytest.mark.parametrize("name", COLUMNS)
def test_a_good_second_score_is_used_and_is_a_free_column(name: str, runs: dict[str, Path]) -> None:
    metrics, model = small.results(runs[name]), Model.load(runs[name] / "model")
    table = model.table
    assert {table.name(j) for j in range(table.free)} == COLUMNS[name] == set(metrics["logistic"]["weights"]) - {"base"}
    assert np.all(np.abs(table.scale - 1.0) > 0.01)  # standardised
    best = "Dense|quality" if name == "joined" else "Dense|score_2"
    (column,) = (j for j in range(table.width) if table.name(j) == best)
    assert model.weights["average"].w[column] > 0
    test = metrics["splits"]["test"]
    oracle, base = metrics["corpora"]["test"]["statistics"]["oracle"]["f1"], test["base"]["f1"]
    if name == "joined":  # merged, the second score is the base score of the second parser: the base chooses by it
        assert test["average"]["f1"] - base > 0.5 * (oracle - base)


@pytest.mark.parametrize(("name", "lists"), [("joined", JOINED), ("merged", MERGED)])
def test_the_model_ranks_other_lists_as_the_run_did(
    name: str, lists: dict[str, Any], data: Path, runs: dict[str, Path], tmp_path: Path, rerank: Command
) -> None:
    done = rerank("rank", runs[name] / "model", files_of(lists, data), "--n-best", 100, "-o", tmp_path / "ranked")
    assert done.code == 0, done
    predicted = read(runs[name] / "predictions" / "test.nbest.gz")
    for own, other in zip(read(tmp_path / "ranked"), predicted, strict=True):  # in another order where scores are equal
        assert (own.texts[0], sorted(own.texts)) == (other.texts[0], sorted(other.texts))
        np.testing.assert_allclose(own.base, other.base, rtol=1e-6)
    assert predicted[0].scores.shape[1] == 2  # the new score and the base score: what is joined is not written
    shown = rerank("inspect", runs[name] / "model").out
    assert all(column.partition("|")[2] in shown for column in COLUMNS[name])
    first = next(iter(predicted)).id
    explained = rerank("explain", runs[name] / "model", files_of(lists, data), "--list", first)
    assert explained.code == 0, explained
    measured = rerank("oracle", files_of(lists, data), data / "test.gold.gz", "--reader", json.dumps(lists["reader"]))
    assert measured.code == 0, measured
    with_gold = rerank(
        "explain", runs[name] / "model", files_of(lists, data), "--list", first, "--gold", data / "test.gold.gz"
    )
    assert with_gold.code == 0, with_gold


def test_what_does_not_fit_is_refused(data: Path, runs: dict[str, Path], tmp_path: Path, rerank: Command) -> None:
    lists, scores = data / "test.nbest.gz", tmp_path / "test.scores"
    rows = (data / "test.scores").read_text().splitlines(keepends=True)
    model = runs["joined"] / "model"

    def with_scores(text: str) -> tuple[object, ...]:
        scores.write_text(text)
        return "rank", model, f"{lists},{scores}", "-o", tmp_path / "out"

    refused(rerank("rank", model, f"{lists},{tmp_path / 'tost.scores'}"), "tost.scores", "no such file")
    refused(rerank("rank", model, lists), "names 1 files; expected 2: the lists and, behind a comma, the scores")
    refused(rerank("rank", model, lists, "--reader", "charniak"), "list", "no score column 'quality'", "training")
    refused(rerank(*with_scores("".join(rows[:-1]))), f"{scores}:{len(rows) - 1}", "lines of scores for at least")
    refused(rerank(*with_scores("".join([*rows, "1\n"]))), f"{scores}:{len(rows) + 1}", "at least")
    refused(
        rerank(*with_scores("".join(["# lm\n", *rows[1:]]))),
        "found no score column 'quality'",
        "expected score, quality",
    )
    refused(rerank(*with_scores("".join([*rows[:5], "1 2\n", *rows[6:]]))), f"{scores}:6", "found 2 numbers")
    refused(rerank(*with_scores("".join([*rows[:5], "1e39\n", *rows[6:]]))), "exceeds 3.4e+38")
    refused(rerank("rank", runs["merged"] / "model", files_of(MERGED, data).replace(".second", ".first")), "not match")
    assert not (tmp_path / "out").exists()


def test_sources_in_small_shards_are_counted(data: Path, workspace: Path) -> None:
    place = workspace / "parsers" / "sources"
    experiment.run(recipe(data, JOINED | {"shard_size": 0.3, "train": ["train", "dev"]}), place)
    found = small.results(place)
    assert found["corpora"]["train,dev"]["sources"] == {
        source: {"lists": small.SIZES[source], "candidates": found["corpora"]["train,dev"]["candidates"] - other}
        for source, other in _others(data).items()
    }
    page = (place / "report.html").read_text()
    assert "of which train" in page
    assert "of which dev" in page


def _others(data: Path) -> dict[str, int]:
    """By source, how many candidates the other has."""
    sizes = [gzip.decompress((data / f"{split}.nbest.gz").read_bytes()).count(b"(S1 ") for split in ("train", "dev")]
    return {"train": sizes[1], "dev": sizes[0]}


def test_held_out_lists_name_their_source(data: Path, workspace: Path, tmp_path: Path, rerank: Command) -> None:
    (tmp_path / "recipe.yaml").write_text(recipe(data, JOINED | {"train": ["train", "dev"]}).as_yaml())
    done = rerank(
        "run",
        "--until",
        "train",
        tmp_path / "recipe.yaml",
        "--set",
        "data.dev=null",
        "-o",
        workspace / "parsers" / "held",
    )
    assert done.code == 0, done
    total = small.SIZES["train"] + small.SIZES["dev"]
    assert f"the last {total // 10} of {total} training lists held out" in done.err
