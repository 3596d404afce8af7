"""Damaged recipes and odd values of --set: a recipe that is the same once resolved, or a message about a setting."""

import json
from functools import cache
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import command, placed, refused
from small_pairs import KINDS, files_of, recipe_of
from strategies_damage import VALUES, Files, damaged

from rerank.readers.inputs import Inputs
from rerank.recipes.loading import load_recipe
from rerank.runs import experiment

RECIPES = Path(__file__).parents[2] / "recipes"
EVERY = {  # what the recipes of the repository leave out
    "seeds": [1, 2], "examples": 0, "grid": {"learner.eta": [0.1, 1]}, "oracle": {"ties": "any"},
    "data": {"tests": ["test"], "reader": {"name": "charniak", "score": 0, "duplicates": "drop"}},
    "features": {"set": "minimal", "hash_bits": 12, "heads": {"syntactic": {"NML": ["> NN NNS", "> *"]}}},
    "metric": {"name": "parseval"}, "significance": {"test": "paired_t", "samples": 500},
    "training": {"epochs": 2, "patience": 1, "vote": True, "select": {"learner": {"name": "pa"}, "keep": 0.5}},
}  # fmt: skip
KEYS = ("data", "data.root", "data.reader", "learner", "learner.name", "learner.eta", "features.set", "training.vote",
        "seed", "seeds", "grid", "metric", "task", "a.b.c", "", ".", "a\0b")  # fmt: skip
SET = st.builds(
    "{}={}".format,
    st.sampled_from(KEYS) | st.text(max_size=5),
    VALUES.map(json.dumps) | VALUES.map(str) | st.text(max_size=9),
)
SETS = st.lists(SET, max_size=2)


@cache
def recipes() -> list[bytes]:
    found = [path.read_bytes() for path in sorted(RECIPES.rglob("*.yaml"))]
    return [*found, json.dumps(EVERY).encode()]


DAMAGED = st.deferred(lambda: st.sampled_from(recipes())).flatmap(lambda data: damaged(data, ".yaml") | st.just(data))


@settings(max_examples=300)
@given(DAMAGED, SETS)
def test_loading(data: bytes, overrides: list[str]) -> None:
    with placed({"recipe.yaml": data}) as place, refused(""):  # lists may be anywhere
        recipe = load_recipe(place / "recipe.yaml", overrides)
        (place / "resolved.yaml").write_text(recipe.as_yaml(), encoding="utf-8")
        assert load_recipe(place / "resolved.yaml").as_yaml() == recipe.as_yaml()
        with Inputs() as inputs:
            experiment.check(recipe, inputs)


@st.composite
def runs(draw: st.DrawFn) -> tuple[Files, bytes]:
    """Lists, and a damaged recipe over them."""
    kind = draw(st.sampled_from(list(KINDS)))
    recipe = recipe_of(kind, Path("{place}"), **draw(st.sampled_from(KINDS[kind])))
    return files_of(kind), draw(damaged(recipe.as_yaml().encode(), ".yaml"))


@settings(max_examples=50)
@given(runs(), SETS)
def test_extracting(given: tuple[Files, bytes], overrides: list[str]) -> None:
    files, recipe = given
    with placed(files) as place:
        (place / "recipe.yaml").write_bytes(recipe.replace(b"{place}", str(place).encode()))
        options = [f"--set={text}" for text in overrides]
        command("run", place / "recipe.yaml", "--until", "extract", "--output", place / "run", *options)
