"""What a run says and keeps where training does not beat the base; what weighs the base score without a dev split."""

import json
import random
from pathlib import Path

import numpy as np
import pytest
import small
import yaml
from commands import Command, refused

from rerank.models.model import Model

LOST = "No epoch beat the base on"


def write_noise(root: Path, split: str, lists: int, seed: int, texts: int = 5) -> None:
    """Lists of random words in which the gain is what the base score says: nothing can be learned from the words."""
    draw = random.Random(seed)
    with (root / f"{split}.jsonl").open("w") as out:
        for i in range(lists):
            candidates = []
            for _ in range(texts):
                text, score = " ".join(draw.choices("abcdefgh", k=6)), draw.random()
                candidates.append({"text": text, "score": score, "gain": score})
            out.write(json.dumps({"id": f"{split} {i}", "candidates": candidates}) + "\n")


@pytest.fixture(scope="module")
def noise(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recipe over few such lists."""
    root = tmp_path_factory.mktemp("noise")
    for seed, (split, lists) in enumerate({"train": 30, "dev": 20, "test": 10}.items()):
        write_noise(root, split, lists, seed)
    settings = {
        "task": "ranking",
        "data": {"root": str(root), "nbest": "{root}/{split}.jsonl"},
        "features": {"set": "text", "min_lists": 1},
        "learner": {"name": "vrda", "loss": "hinge", "update": "always"},
        "training": {"epochs": 2},
        "significance": {"samples": 100},
    }  # fmt: skip
    path = root / "noise.yaml"
    path.write_text(yaml.safe_dump(settings))
    return path


def test_noise_leaves_the_base_and_says_so(noise: Path, tmp_path: Path, rerank: Command) -> None:
    done = rerank("run", noise, "-o", tmp_path / "run")
    assert done.code == 0, done
    assert sum("INFO epoch" in line and "(base " in line for line in done.err.splitlines()) == 2
    last = done.out.strip().splitlines()[-1]
    assert last.startswith(f"{LOST} dev (")
    assert last.endswith("the model is the base itself.")
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    base = metrics["training"]["base"]
    assert (base["setting"], base["beaten"], base["kept"]) == ("auto", False, True)
    assert metrics["runs"][0]["dev"] == base["dev"]
    assert metrics["splits"]["test"]["average"] == metrics["splits"]["test"]["base"]
    assert LOST in (tmp_path / "run" / "report.html").read_text()
    for weights in Model.load(tmp_path / "run" / "model").weights.values():
        assert (weights.base, np.count_nonzero(weights.w)) == (1.0, 0)
    for line in small.epoch_lines(tmp_path / "run" / "history.jsonl"):
        assert line["dev_base"] == base["dev"] >= line["dev"]


def test_with_a_number_the_model_stays_and_the_run_warns(noise: Path, tmp_path: Path, rerank: Command) -> None:
    done = rerank("run", "--until", "train", noise, "--set", "learner.base=0.1", "-o", tmp_path / "run")
    assert done.code == 0, done
    assert LOST in done.out.strip().splitlines()[-1]
    assert "base: auto" in done.out
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert metrics["training"]["base"]["kept"] is False
    assert metrics["training"]["base_weight"] == 0.1
    assert metrics["training"]["nonzero_weights"] > 0


def test_without_a_dev_split_training_lists_are_held_out(noise: Path, tmp_path: Path, rerank: Command) -> None:
    done = rerank("run", noise, "--set", "data.dev=null", "-o", tmp_path / "run")
    assert done.code == 0, done
    assert "the last 3 of 30 training lists held out" in done.err
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert metrics["training"]["lists"] == 27
    assert metrics["dev_split"] == "held-out training lists"
    assert metrics["training"]["base"]["kept"] is True
    assert LOST in done.out.strip().splitlines()[-1]
    plain = rerank(
        "run", "--until", "train", noise, "--set", "data.dev=null", "--set", "learner.base=1", "-o", tmp_path / "all"
    )
    assert "held out" not in plain.err
    assert json.loads((tmp_path / "all" / "metrics.json").read_text())["training"]["lists"] == 30


def test_one_list_cannot_be_held_out(noise: Path, tmp_path: Path, rerank: Command) -> None:
    write_noise(tmp_path, "train", 1, 1)
    few = ("--set", f"data.root={tmp_path}", "--set", "data.dev=null", "--set", "data.tests=[]")
    refused(rerank("run", "--until", "train", noise, *few, "-o", tmp_path / "run"), "1 training list ", "data.dev")
    refused(rerank("run", "--until", "train", noise, "--set", "learner.base=automatic", "-o", tmp_path / "run"), "auto")


def test_a_missing_dev_file_is_not_made_up_for_by_a_test_file(noise: Path, tmp_path: Path, rerank: Command) -> None:
    for name in ("train", "test", "tost", "ood"):
        (tmp_path / f"{name}.jsonl").write_bytes((noise.parent / "train.jsonl").read_bytes())
    for tests in ("[test]", "[]", "[test, ood, tost]"):
        refuse = ("--set", f"data.root={tmp_path}", "--set", f"data.tests={tests}", "--set", "data.dev=tast")
        done = rerank("run", "--until", "train", noise, *refuse, "-o", tmp_path / "run")
        refused(done, "tast.jsonl", "no such file", "`data.dev: null` trains without a dev split")
        assert "/test.jsonl" not in done.err
        assert ("/tost.jsonl" in done.err) == (tests != "[test, ood, tost]")
    missing = ("--set", f"data.root={tmp_path}", "--set", "data.tests=[tests]", "--set", "data.dev=null")
    refused(
        rerank("run", "--until", "train", noise, *missing, "-o", tmp_path / "run"),
        "tests.jsonl",
        f"did you mean {tmp_path}/test.jsonl?",
    )
