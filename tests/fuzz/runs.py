"""Small finished runs of every task, and lists of every format, for commands that are given another's."""

import itertools
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import small
import small_classes
import small_texts

from rerank.models.model import Model
from rerank.models.weights_text import weight_lines
from rerank.runs import pipeline

from . import samples
from .samples import REPOSITORY, Files, head, jsonl, moses, parses

KINDS = ("parse", "translation", "ranking", "speech", "classification")
KEPT = ("metrics.json", "recipe.yaml", "history.jsonl")
VOTED = {"learner": {"name": "vrda"}, "training": {"epochs": 2, "vote": True}}
MERT = {**VOTED, "mert": {"split": "tune", "settings": {"restarts": 1}}}


def directory_files(path: Path, name: str) -> Files:
    """All files below a directory, as below ``name``."""
    return {f"{name}/{file.relative_to(path)}": file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()}


@cache
def run_of(kind: str) -> Files:
    """What a run leaves: its results, its model with all predictors that the task has, its weights as text."""
    with tempfile.TemporaryDirectory() as made:
        root, out = Path(made), Path(made) / "out" / "run"
        if kind == "classification":
            pipeline.run(small_classes.recipe(small_classes.write_set(root), training={"vote": True}), out)
        elif kind == "parse":
            for split in ("train", "dev", "test"):
                for name, content in parses()[0].items():
                    (root / f"{split}.{name}").write_bytes(content)
            data = {"nbest": "{root}/{split}.lists", "gold": "{root}/{split}.gold"}
            pipeline.run(small.recipe(root, data=data, features={"min_lists": 1}, **VOTED), out)
        elif kind == "translation":
            small_texts.write_task(root)
            pipeline.run(small_texts.recipe(root, **MERT), out)
        else:
            pipeline.run(small_texts.recipe(root, **_own_lists(kind, root)), out)
        found = {file: data for file, data in directory_files(out, "run").items() if _wanted(file)}
        model = Model.load(out / "model")
        if "average" in model.weights and kind != "classification":
            lines = weight_lines(model.table, model.weights["average"], top=20)
            found["weights"] = "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")
        return found


def _own_lists(kind: str, root: Path) -> dict[str, Any]:
    """Changes to a recipe of texts: lists that hold all they need."""
    for split in ("train", "dev", "test"):
        name = "asr" if kind == "speech" else "llm"
        (root / f"{split}.jsonl").write_bytes(head(REPOSITORY / f"data/{name}/train.jsonl.gz", 12))
    data = {"nbest": "{root}/{split}.jsonl", "sources": None, "references": None, "reader": {"name": "jsonl"}}
    return {"task": kind, "data": data, "features": {"set": "text", "min_lists": 1}, **VOTED}


def _wanted(file: str) -> bool:
    name = file.removeprefix("run/")
    return name in KEPT or name.startswith("model/") or (name.startswith("predictions/") and name.endswith(".npz"))


@cache
def lists_of_all_formats() -> list[Files]:
    """Lists with the files that may go with them; those that no format of lists describes too."""
    golds = {"gold": parses()[0]["gold"], "sources": moses()[0]["sources"], "references": moses()[0]["references"]}
    lists = [
        parses()[0]["lists"],
        samples.GROUPS,
        moses()[0]["lists"],
        moses()[2]["lists"],
        samples.FAIRSEQ,
        samples.SOCKEYE,
        samples.SVMLIGHT[0],
    ]
    lists += [
        *samples.BARE,
        samples.STANFORD,
        samples.OPENNMT[2],
        samples.KALDI["lists"],
        samples.OPENAI,
        samples.PREFERENCES,
        samples.PARALLEL,
    ]
    lists += [entry["lists"] for entry in jsonl()]
    return [{"lists": data, **golds} for data in [*lists, parses()[0]["gold"], b""]]


@cache
def crossed() -> list[Files]:
    """A run of every kind with lists of every format."""
    return [{**run_of(kind), **lists} for kind, lists in itertools.product(KINDS, lists_of_all_formats())]


@cache
def compared() -> list[Files]:
    """Two runs, of any kinds."""
    return [{**run_of(one), **_as_other(run_of(two))} for one, two in itertools.product(KINDS, KINDS)]


def _as_other(run: Files) -> Files:
    """A run under another name."""
    return {f"other{file.removeprefix('run')}": data for file, data in run.items() if file.startswith("run/")}
