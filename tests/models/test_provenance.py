"""A model's own settings make nobody import anything: what they name by import path is refused unless it is trusted."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small
import small_texts
from commands import Command, refused
from programs import program

import rerank as library
from rerank.base.errors import ModelError, RerankError
from rerank.base.registry import Registry
from rerank.features.table import HashedTable
from rerank.learn.base import Weights
from rerank.learn.base_weight import make_learner
from rerank.models.decoding import gain_functions
from rerank.models.model import Model
from rerank.models.provenance import require_trusted
from rerank.models.scorer import Scorer

DECODING: dict[str, Any] = {"kind": "mbr", "sharpness": 1.0, "deviation": 1.0, "threshold": 0.5, "most": 9}
MORE: dict[str, Any] = {
    "features": {"set": "dense", "templates": ["Given", {"Copy": {}}], "user": {"x": "plain"}, "hash_bits": 4},
    "training": {"select": {"learner": {"name": "perceptron"}}, "ensemble": {"learners": [{"name": "perceptron"}]}},
    "decode": {"gains": "plain"},
}
READER = {"name": "merged", "of": ["moses", {"name": "joined", "of": "{name: moses}"}]}


def saved(place: Path, changes: dict[str, Any], about: dict[str, Any] | None = None) -> Path:
    """A model of texts, of 16 hashed columns, with these settings of its recipe."""
    settings = small_texts.recipe(place).changed({"features": {"set": "dense", "hash_bits": 4}}).model_dump(mode="json")
    for key, value in changes.items():
        *parents, last = key.split(".")
        node = settings
        for parent in parents:
            node = node[parent]
        node[last] = value
    weights = {name: Weights(np.zeros(16), 1.0) for name in ("last", "average")}
    Model(settings, about or {}, HashedTable.of(4, ("Dense",), {}), weights).save(place / "model")
    return place / "model"


@pytest.fixture
def trap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that modules are found in, with one that leaves a file when it is imported."""
    (tmp_path / "trap.py").write_text("open('sprung', 'w').close()\ndef f(*given): return {}\nclass C: ...\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    sys.modules.pop("trap", None)


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("features.user", {"x": "trap:f"}, "features.user.x: trap:f"),
        ("features.user", {"x": "code:interact"}, "features.user.x: code:interact"),
        ("features.templates", ["trap:C(k=3)"], "features.templates: trap:C"),
        ("features.templates", [{"trap:C": {"k": 3}}], "features.templates: trap:C"),
        ("metric", {"name": "trap:C"}, "metric: trap:C"),
        ("data.reader", {"name": "trap:C"}, "data.reader: trap:C"),
        ("data.reader", {"name": "joined", "of": "trap:C"}, "data.reader: trap:C"),
        ("data.reader", {"name": "merged", "of": ["moses", "{name: 'trap : C'}"]}, "data.reader: trap : C"),
        ("learner", {"name": "trap:C"}, "learner: trap:C"),
        ("training.select", {"learner": {"name": "trap:C"}}, "learner: trap:C"),
        ("training.ensemble", {"seeds": 2, "learners": [{"name": "trap:C"}]}, "learner: trap:C"),
        ("decode.gains", "trap:f", "decode.gains: trap:f"),
    ],
)
def test_code_that_a_model_names_is_refused(trap: Path, rerank: Command, key: str, value: Any, said: str) -> None:
    model = saved(trap, {key: value})
    with pytest.raises(ModelError, match=r"names code by import path .* allow it with --trust, in Python with trust="):
        library.load(model)
    with pytest.raises(ModelError):
        library.load(model, trust=["tra", "trap.more"])
    small_texts.write_lines(trap / "lists", ["0 ||| a b ||| LM0= -1 ||| -1"])
    for words in (
        ["rank", model, "lists"], ["serve", model, "--port", 0],
        ["explain", model, "lists", "--list", 0],
    ):  # fmt: skip
        refused(rerank(*words), f"{model}: names code by import path ({said})")
    for words in (["inspect", model], ["inspect", model, "--provenance"], ["export", model]):
        assert rerank(*words).code == 0
    assert not (trap / "sprung").exists()


def test_what_a_model_was_tuned_with_is_refused(trap: Path) -> None:
    about = {"decodings": {"mbr": {**DECODING, "gains": "trap:f"}}, "decode": "mbr"}
    with pytest.raises(ModelError, match=r"decode\.gains: trap:f"):
        library.load(saved(trap, {}, about))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("runs", [{"name": "a", "set": {"learner.name": "trap:C"}}]),
        ("grid", {"learner.name": ["trap:C"]}),
        ("engine", {"name": "dask", "address": "tcp://127.0.0.1:1"}),
    ],
)
def test_a_model_is_of_a_single_run(trap: Path, key: str, value: Any) -> None:
    with pytest.raises(ModelError, match=f"its settings have {key}; expected those of a single run"):
        library.load(saved(trap, {key: value}), trust=True)


def test_code_that_is_trusted_is_called(trap: Path, rerank: Command) -> None:
    model = saved(trap, {"features.user": {"x": "trap:f"}})
    small_texts.write_lines(trap / "lists", ["0 ||| a b ||| LM0= -1 ||| -1"])
    for trust in (True, "trap", ["other", "trap"]):
        assert library.load(model, trust=trust).best([{"text": "a", "columns": {"LM0": 1}}])["text"] == "a"
    assert (trap / "sprung").exists()
    assert rerank("rank", model, "lists", "--trust").out == "a b\n"


def leaves(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """All texts in nested settings, keys of mappings too, with their places."""
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        if isinstance(key, str):
            yield (*place, key), None
        if isinstance(inner, str):
            yield (*place, key), inner
        yield from leaves(inner, (*place, key))


def poisoned(settings: dict[str, Any], place: tuple[Any, ...], own: str | None) -> dict[str, Any]:
    """Settings with ``trap:C`` in place of a text or, if ``own`` is None, of a key."""
    found = deepcopy(settings)
    node = found
    for key in place[:-1]:
        node = node[key]
    if own is None:
        node["trap:C"] = node.pop(place[-1])
    else:
        node[place[-1]] = "{name: 'trap:C'}" if own.startswith("{") else "trap:C"
    return found


@pytest.mark.parametrize("kind", ["texts", "parses"])
def test_no_text_in_the_settings_gets_past(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each by turns is an import path: it is refused, or nothing that a model does imports it."""
    asked: list[str] = []

    plain_load = Registry._load

    def load(self: Registry[Any], name: str, place: Any) -> Any:
        if not isinstance(place, str) or place.startswith("rerank."):
            return plain_load(self, name, place)
        asked.append(place)
        raise RerankError("a trap")

    def spec(plain: Callable[..., Any]) -> Callable[..., Any]:
        return lambda self, name: (lambda *_: {}) if name == "plain" else plain(self, name)

    monkeypatch.setattr(Registry, "get", spec(Registry.get))
    monkeypatch.setattr(Registry, "_load", load)
    made = small_texts.recipe(tmp_path) if kind == "texts" else small.recipe(tmp_path)
    more = MORE if kind == "texts" else {**MORE, "features": {**MORE["features"], "templates": ["Rule", {"Heavy": {}}]}}
    settings = made.changed({**more, "data.reader": READER}).model_dump(mode="json")
    weights = {name: Weights(np.zeros(16), 1.0) for name in ("last", "average")}
    model = Model(settings, {}, HashedTable.of(4, ("Dense",), {}), weights)
    outcomes: dict[bool, int] = {True: 0, False: 0}
    for place, own in leaves(settings):
        changed = poisoned(settings, place, own)
        try:
            require_trusted(changed, {}, False, "")
        except RerankError as error:
            outcomes["by import path (" in str(error)] += 1
            continue
        scorer = Scorer(replace(model, settings=changed))
        for use in (
            lambda s: s.content, lambda s: s.reader, lambda s: gain_functions.get(s.recipe.decode.gains),
            lambda s: [make_learner(each.recipe.learner) for each in s.recipe.expand()],
        ):  # fmt: skip
            with suppress(RerankError):
                use(scorer)
        assert not asked, (place, own)
    assert min(outcomes.values()) > 8, outcomes


def test_a_directory_with_modules_is_not_looked_into(small_run: Path, tmp_path: Path) -> None:
    """Not even for a package that is not installed."""
    missing = next((name for name in ("gcsfs", "s3fs", "huggingface_hub") if find_spec(name) is None), None)
    if missing is None:
        pytest.skip("all packages for URLs are installed")
    (tmp_path / f"{missing}.py").write_text("open('sprung', 'w').close()")
    scheme = {"gcsfs": "gs", "s3fs": "s3", "huggingface_hub": "hf"}[missing]
    words = ["-P", "-m", "rerank", "rank", small_run / "model", f"{scheme}://bucket/lists", "--reader", "charniak"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with program(sys.executable, *words, cwd=tmp_path, env=environment, stderr=-1) as running:
        _, said = running.communicate()
    assert running.returncode == 2, said
    assert not (tmp_path / "sprung").exists()
