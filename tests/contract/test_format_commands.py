"""Lists of every format go through the commands: a run, its model applied to them, and what the lists hold."""

import json
from pathlib import Path
from typing import Any

import formats
import pytest
import small_lists
import yaml
from commands import Command

from rerank.readers.base import make_reader, read_lists
from rerank.recipes.loading import load_recipe
from rerank.recipes.recipe import TextRecipe

TREES = [name for name, form in formats.FORMATS.items() if form.trees]
TEXTS = [name for name, form in small_lists.FORMATS.items() if ":" not in form.reader["name"] and not form.trees]
SETTINGS: dict[str, Any] = {
    "learner": {"name": "perceptron", "base": 1.0},
    "training": {"epochs": 1},
    "significance": {"samples": 100},
    "examples": 0,
}


def use(rerank: Command, root: Path, lists: str, gold: str, reader: dict[str, Any], more: dict[str, Any]) -> str:
    """Run a recipe over lists, rank them by its model, read what was written, and ask for their oracle."""
    data = {"nbest": lists, "reader": reader, "dev": None, "tests": ["test"], **more.pop("data")}
    (root / "recipe.json").write_text(json.dumps({"name": "formats", **SETTINGS, **more, "data": data}))
    shown, metric = (
        yaml.safe_dump(reader, default_flow_style=True, width=1000).strip(),
        more.get("metric", {"name": "parseval"})["name"],
    )
    for line in (
        ["run", root / "recipe.json", "-o", root / "run"],
        ["rank", root / "run/model", lists, "-o", root / "best"],
        ["rank", root / "run/model", lists, "-o", root / "ranked", "--n-best", 2],
        ["oracle", lists, gold, "--reader", shown, "--metric", metric],
    ):
        ended = rerank(*line)
        assert ended.code == 0, (line, ended.err)
    return ended.out


@pytest.mark.parametrize("name", TREES)
def test_trees(name: str, tmp_path: Path, rerank: Command) -> None:
    form, count = formats.FORMATS[name], formats.LISTS
    lists = [[form.candidate(i, k) for k in range(formats.CANDIDATES)] for i in range(count)]
    form.put(tmp_path / "lists", b"".join(form.whole(i, candidates) for i, candidates in enumerate(lists)))
    golds = [f"(S (NN a{i}) (VP1 (VB b)))\n" for i in range(count)]
    (tmp_path / "gold").write_text("".join(golds))
    reader = formats.Case(name.split()[0], name).spec
    more = {"task": "parse", "features": {"set": "minimal", "min_lists": 1}, "data": {"gold": str(tmp_path / "gold")}}
    shown = use(rerank, tmp_path, str(tmp_path / "lists"), str(tmp_path / "gold"), reader, more)
    assert f"candidates {count * formats.CANDIDATES}" in shown
    assert len((tmp_path / "best").read_text().splitlines()) == count
    assert [len(nbest) for nbest in read_lists(make_reader(reader), tmp_path / "ranked")] == [2] * count
    assert rerank("evaluate", tmp_path / "gold", tmp_path / "best").code == 0


@pytest.mark.parametrize("name", TEXTS)
def test_texts(name: str, tmp_path: Path, rerank: Command) -> None:
    form, count = small_lists.FORMATS[name], small_lists.LISTS
    lists, reader = form.write(tmp_path, small_lists.complete()), dict(form.reader)
    named = name in ("kaldi", "espnet")  # their lists have ids, which references have too, in any order
    words = [f"utt{i} w{i} b\n" if named else f"w{i} b\n" for i in range(count)]
    (tmp_path / "references").write_text("".join(words[::-1] if named else words))
    references = str(tmp_path / "references")
    more = {
        "task": "speech", "metric": {"name": "wer"}, "data": {"references": [references], "sources": None},
        "features": {"set": None, "templates": ["Dense", "TargetNGram"], "min_lists": 1},
    }  # fmt: skip
    assert f"candidates {3 * count}" in use(rerank, tmp_path, lists, references, reader, more)
    assert len((tmp_path / "best").read_text().splitlines()) == count
    kind = reader["name"] if reader["name"] in ("moses", "jsonl", "fairseq", "sockeye") else ""
    written = {"merged": "moses", "joined": "moses", "kaldi": "jsonl", "espnet": "jsonl", "table": "jsonl"}
    again = reader if not kind and name not in written else {"name": kind or written[name]}
    assert [len(nbest) for nbest in read_lists(make_reader(again), tmp_path / "ranked")] == [2] * count
    assert rerank("evaluate", references, tmp_path / "best", "--metric", "wer").code == 0
    recipe = load_recipe(tmp_path / "recipe.json")
    assert isinstance(recipe, TextRecipe)
    assert all(Path(path).is_file() for path in recipe.data.files("test")["nbest"])
