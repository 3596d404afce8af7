"""Weights for Moses: with them, a scorer that knows nothing else chooses what the model chooses."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import small_texts

import rerank
from rerank.models.weights import moses_lines, named_weights

FEATURES = {"set": None, "templates": ["BaseScore", "Dense", "PhrasePair"], "min_lists": 2}


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lists of translations, without the one that is empty."""
    root = tmp_path_factory.mktemp("moses")
    small_texts.write_task(root)
    return root


def lists_of(task: Path, split: str) -> list[rerank.NBest]:
    files = {"references": task / f"{split}.ref.gz", "sources": task / f"{split}.src.gz"}
    found = rerank.read(task / f"{split}.nbest.gz", "moses", on_bad_list="skip", **files)
    return [nbest for nbest in found if len(nbest)]


def chosen(lines: list[str], nbest: rerank.NBest) -> str:
    """The best candidate by the weights of a file as Moses reads it, in ten lines."""
    base = float(lines[0].split("the base score's, ")[1].split(",")[0])
    dense = {line.split()[1].rstrip("="): list(map(float, line.split()[2:])) for line in lines[2:] if line[0] == "#"}
    sparse = {line.split()[0]: float(line.split()[1]) for line in lines if line[0] != "#"}
    source = str(nbest.source).split()

    def score(candidate: rerank.Candidate) -> tuple[float, float]:
        total = base * (candidate.score or 0.0)
        for name, weights in dense.items():
            keys = [name] if len(weights) == 1 else [f"{name}_{k}" for k in range(len(weights))]
            total += sum(weight * candidate.columns[key] for key, weight in zip(keys, weights, strict=True))
        words = zip(source, candidate.tokens, strict=True)
        return total + sum(sparse.get(f"pp_{f}~{e}", 0.0) for f, e in words), candidate.score or 0.0

    return max(nbest.candidates, key=score).text


@pytest.mark.parametrize("name", ["maxent", "rda", "arow"])
def test_exported_weights_choose_what_the_model_chooses(task: Path, name: str) -> None:
    train, dev, test = (lists_of(task, split) for split in ("train", "dev", "test"))
    for base in (1, "auto"):
        learner: dict[str, Any] = {"name": name, "base": base}
        recipe = {"task": "translation", "decode": {"kinds": []}}
        fitted = rerank.fit(train, dev, recipe=recipe, features=FEATURES, learner=learner, epochs=2)
        for predictor in ("last", "average"):
            model = rerank.Reranker(fitted.model, predictor)
            lines = list(moses_lines(model.model.table, model.model.weights[predictor], Counter[str]()))
            assert [chosen(lines, nbest) for nbest in test] == [model.best(nbest).text for nbest in test], base


def test_the_base_score_has_one_weight(task: Path) -> None:
    lists = lists_of(task, "train")
    model = rerank.fit(lists, recipe={"task": "translation"}, features=FEATURES, epochs=2).model
    j = model.table.base_column
    assert j is not None
    for weights in model.weights.values():
        assert weights.w[j] == 0.0
        assert "BaseScore|" not in named_weights(model.table, weights)
