"""A run over sockeye's lists, some of which are bad: what is left out is counted, and the output stays aligned."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import small_texts

from rerank.readers.base import read_lists
from rerank.readers.texts.sockeye import SockeyeReader
from rerank.recipes.text_recipe import TextRecipe
from rerank.runs import pipeline

SPLITS = {"train": 30, "dev": 10, "test": 10}
WHOLLY, PARTLY = (0, 9), 4  # lists of the test split


def write_split(root: Path, split: str, size: int) -> None:
    """Lists of four candidates, the best of which is the reference."""
    rng = np.random.default_rng(len(split))
    lists, references = [], []
    for i in range(size):
        words = [f"w{n}" for n in rng.integers(0, 20, 6)]
        texts = [" ".join([*words[k:], *(["x"] * k)]) for k in range(4)]
        scores: list[Any] = rng.random(4).round(3).tolist()
        if split == "test" and i in WHOLLY:
            scores = "none"  # type: ignore[assignment]
        elif split == "test" and i == PARTLY:
            scores[2] = float("nan")
        references.append(" ".join(words))
        lists.append(json.dumps({"sentence_id": i + 1, "translations": texts, "scores": scores}))
    small_texts.write_lines(root / f"{split}.nbest.gz", lists)
    small_texts.write_lines(root / f"{split}.ref.gz", references)


def test_a_run_over_bad_lists_ends_with_aligned_predictions(tmp_path: Path) -> None:
    for split, size in SPLITS.items():
        write_split(tmp_path, split, size)
    recipe = TextRecipe.model_validate(
        {
            "name": "bad-lists",
            "task": "translation",
            "data": {
                "root": str(tmp_path), "reader": {"name": "sockeye"}, "sources": None, "on_bad_list": "skip"
            },
            "features": {"set": None, "templates": ["Dense", "TargetNGram"], "min_lists": 1},
            "learner": {"name": "perceptron"},
            "training": {"epochs": 2},
            "significance": {"samples": 100},
            "examples": 0,
        }
    )  # fmt: skip
    metrics = pipeline.run(recipe, tmp_path / "runs" / "one")
    found = metrics["corpora"]["test"]
    assert found["lists"] == SPLITS["test"] - len(WHOLLY)
    assert (found["skipped"], found["skipped_candidates"]) == ({"columns": 2}, {"infinite score": 1})
    written = list(read_lists(SockeyeReader(), tmp_path / "runs" / "one" / "predictions" / "test.nbest.gz"))
    assert [len(nbest) for nbest in written] == [0, 4, 4, 4, 3, 4, 4, 4, 4, 0]
    assert [nbest.id for nbest in written[1:-1]] == [str(i + 1) for i in range(1, 9)]
    page = (tmp_path / "runs" / "one" / "report.html").read_text()
    assert "candidates left out" in page
