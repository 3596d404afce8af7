"""Lists are read again once, block by block, by all workers, who leave the bytes of one process."""

import json
import os
import random
import signal
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small
import small_rankings
import small_texts

from rerank.base.errors import DataError
from rerank.extraction import blocks
from rerank.extraction.content import Content
from rerank.pool import Engine, Processes
from rerank.readers import inputs
from rerank.recipes.recipe import ListRecipe
from rerank.runs import experiment
from rerank.runs.corpora import Data, Visitor, visit_lists

KINDS = ["trees", "texts", "lines", "one file"]


def in_blocks(monkeypatch: pytest.MonkeyPatch, lists: int = 8) -> None:
    """Blocks of so many lists, and stretches of the smallest files."""
    monkeypatch.setattr(inputs, "MIN_SPLIT_BYTES", 0)
    monkeypatch.setattr(blocks, "BLOCK_LISTS", lists)


def write_lines(root: Path, *, answers: bool = False) -> None:
    """Splits in JSON lines, in which some lists lack their reference, are damaged, or have the id of another."""
    draw, root = random.Random(1), root
    for split in ("train", "dev", "test"):
        lines = []
        for i in range(60):
            words = [draw.choice(["a", "b", "c", "d", "e"]) for _ in range(6)]
            several = [" ".join(draw.choice(words) for _ in range(6)) for _ in range(5)]
            candidates = [{"text": text, "score": draw.random(), "lm": draw.random()} for text in several]
            if answers:
                candidates = [each | {"answer": draw.choice("123"), "gain": draw.random()} for each in candidates]
            name = 3 if i == 50 else i
            lines.append({"id": f"{split}-{name}", "candidates": candidates, "reference": " ".join(words)})
        if split == "test":
            lines[0] = {"id": "test-0", "candidates": [{"score": 1.0}]}
            lines[20]["candidates"] = []
            if not answers:
                del lines[31]["reference"]
        (root / f"{split}.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def recipe_of(kind: str, small_data: Path, root: Path) -> ListRecipe:
    root.mkdir()
    if kind == "trees":
        return small.recipe(small_data, training={"epochs": 1}, examples=2)
    if kind == "texts":
        small_texts.write_task(root)
        return small_texts.recipe(root, training={"epochs": 1}, examples=2)
    write_lines(root, answers=kind == "one file")
    data = {"nbest": "{root}/{split}.jsonl", "references": None, "sources": None, "on_bad_list": "skip",
            "reader": {"name": "jsonl"}}  # fmt: skip
    if kind == "lines":
        features = {"set": None, "templates": ["Dense", "BaseScore"], "min_lists": 1}
        return small_texts.recipe(root, data=data, features=features, training={"epochs": 1}, examples=2)
    how = {"decode": {"kinds": ["mbr"]}, "metrics": ["ter"], "training": {"epochs": 1}, "examples": 2}
    return small_rankings.recipe(
        root, data=data | {"reader": {"name": "jsonl", "base": "score"}, "dev": None, "tests": []}, **how
    )


def left(recipe: ListRecipe, directory: Path, engine: Engine) -> dict[str, Any]:
    """What a run leaves, without times."""
    metrics = experiment.run(recipe, directory / "runs" / "one", engine=engine)
    files = small.files_of(directory / "runs" / "one" / "predictions") if recipe.data.tests else {}
    page = (directory / "runs" / "one" / "report.html").read_text()
    return {"metrics": small.without_clock(metrics), "lists": page.count(" · "), **files}


@pytest.fixture(scope="module")
def workers() -> Iterator[Engine]:
    with Engine(Processes(2)) as engine:
        yield engine


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_and_workers_change_nothing(
    kind: str, workers: Engine, small_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = recipe_of(kind, small_data, tmp_path / "data")
    expected = left(recipe, tmp_path / "whole", Engine())
    in_blocks(monkeypatch)
    if kind == "lines":
        assert left(recipe, tmp_path / "blocks", Engine()) == expected
    assert left(recipe, tmp_path / "workers", workers) == expected


def gains(candidates: Sequence[Any]) -> np.ndarray:
    """Equal texts gain; every process notes that it was here, and is killed over one list, once."""
    place = Path(os.environ["RERANK_TEST_PLACE"])
    (place / f"process-{os.getpid()}").touch()
    mark = place / "killed"
    if os.getpid() != int(os.environ["RERANK_TEST_PARENT"]) and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    texts = [candidate.text for candidate in candidates]
    return np.array([[float(one == other) for other in texts] for one in texts])


def test_workers_decode_and_a_killed_one_is_replaced(
    small_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("PLACE", tmp_path), ("PARENT", os.getpid())):
        monkeypatch.setenv(f"RERANK_TEST_{name}", str(value))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    recipe = recipe_of("texts", small_data, tmp_path / "data")
    recipe = recipe.change({"decode.gains": "test_rereading:gains", "decode.use": "mbr"})
    expected = left(recipe, tmp_path / "one", Engine())
    in_blocks(monkeypatch, 4)
    for path in tmp_path.glob("process-*"):
        path.unlink()
    with Engine(Processes(2)) as engine:
        assert left(recipe, tmp_path / "two", engine) == expected
    assert (tmp_path / "killed").exists()
    seen = {int(path.name.rpartition("-")[2]) for path in tmp_path.glob("process-*")}
    assert os.getpid() not in seen
    assert len(seen) > 2  # two, and the one in place of the killed one


@pytest.mark.parametrize("kind", [*KINDS[:3], "one file"])
def test_a_test_split_is_read_once_more(
    kind: str, small_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For decoding, predictions, figures of texts and the page; lists that are cross-validated to tune the run, to tune
    all folds, to measure these, and for figures of texts."""
    recipe, read, own = recipe_of(kind, small_data, tmp_path / "data"), list[str](), Content.read_stretches

    def read_stretches(self: Content[Any], data: Any, split: str, *how: Any, again: bool = False) -> Any:
        if again:
            read.append(split)
        return own(self, data, split, *how, again=again)

    monkeypatch.setattr(Content, "read_stretches", read_stretches)
    metrics = experiment.run(recipe, tmp_path / "run")
    if kind == "one file":
        assert metrics["folds"] == 5
        assert read == ["train"] * 4
        return
    assert read == ["dev", *recipe.data.tests]
    assert [*metrics["signatures"]] == ["test"]
    assert bool(metrics["signatures"]["test"]) == (kind != "trees")


def test_a_list_that_is_not_found_again_is_an_error(tmp_path: Path) -> None:
    """Not one that decodes to nothing."""
    recipe = recipe_of("lines", tmp_path, tmp_path / "data")
    data = Data.load(recipe, None, ("test",))
    test, ids = data.others["test"], list[str]()
    note = lambda place, number, name: ids.append(f"{place} {number} {name}")  # noqa: E731
    see = Visitor(test, note, lambda again: again.nbest.id)
    assert visit_lists(data, "test", [see]) == 60
    assert ids[:3] == ["1 0 test-1", "2 1 test-2", "3 2 test-3"]
    assert len(ids) == test.corpus.list_count == 57
    for changed in (
        replace(test, ids=["test-1", "gone", *test.ids[2:]]),
        replace(test, ids=[*test.ids[:-1], "gone"], indices=np.append(test.indices[:-1], 60)),
    ):
        with pytest.raises(DataError, match="the list gone of test is not found when lists are read again"):
            visit_lists(data, "test", [see._replace(lists=changed)])
