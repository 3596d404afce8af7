"""Damaged models and recipes: an answer, or an error of theirs."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer.main
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import command, files_below, placed, refused
from small_models import LEARNERS, sealed, trained, use
from small_pairs import KINDS, files_of, recipe_of
from strategies_damage import ONE_IN_TEN, VALUES, Draw, Files, damaged, damaged_files

import rerank
from rerank.base.errors import RunError
from rerank.base.registry import build
from rerank.cli.application import app
from rerank.data.corpus import Corpus
from rerank.learn.learner import learners
from rerank.learn.train import ListProblem, train
from rerank.metrics.metric import oracles
from rerank.models.model import Model, check_state
from rerank.models.scorer import Scorer
from rerank.readers.reader import SkipCount, readers
from rerank.recipes.loading import load_recipe
from rerank.runs import experiment
from rerank.runs.compared import compare_runs
from rerank.storage.files import seal
from rerank.storage.streams import Inputs

WIDEST = 1 << 24  # columns; a learner needs memory for all of them, and has a message where there is not enough


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Files]]:
    """What a run leaves, by kind."""
    found: dict[str, list[Files]] = {name: [] for name in CHECKS}
    for kind, features in (("parses", {"min_lists": 1}), ("texts", {"hash_bits": 8})):
        root = tmp_path_factory.mktemp(kind)
        for name, data in files_of(kind).items():
            (root / name).write_bytes(data)
        learner = {"name": "vrda", "base": 1.0}  # few lists, and no others to weigh it on
        data = {"dev": None, "tests": ["test"]}
        experiment.run(recipe_of(kind, root, data, features=features, learner=learner), root / "run")
        model = files_below(root / "run/model", "model")
        found["model"].append({**model, **files_of(kind)})
        found["corpus"] += [files_below(path.parent, "corpus") for path in sorted(root.rglob("header.json"))]
        kept = [root / "run/metrics.json", root / "run/recipe.yaml", *root.glob("run/predictions/*.npz")]
        results = {str(path.relative_to(root / "run")): path.read_bytes() for path in kept}
        found["runs"].append({f"{side}/{name}": data for side in "ab" for name, data in results.items()})
    words = [[("The", "DT"), ("dog", "NN")], [("Dogs", "NNS"), ("bark", "VBP")]]
    rerank.tagger(words, words, epochs=2).save(root / "tagger")
    found["tagger"].append(files_below(root / "tagger", "model"))
    for spec in LEARNERS:
        trained(spec).save(root / spec["name"])
        found["learner"].append(files_below(root / spec["name"], "model"))
    return found


def check_model(place: Path, draw: Draw) -> None:
    """Good lists are ranked by it."""
    model = Model.load(place / "model")
    scorer = Scorer(model, draw(["average", "last", "voted"]))
    opened = list(scorer.read(scorer.reader, str(place / "lists"), SkipCount("error")))
    for ranked in scorer.rank(opened):
        assert np.isfinite(ranked.scores).all()
        assert sorted(ranked.order.tolist()) == list(range(len(ranked.nbest)))
    if len(opened[0].nbest) > 1:
        scorer.explain(opened[0], 0, 1)


def check_learner(place: Path, _: Draw) -> None:
    """Its votes are counted, and training goes on."""
    model = Model.load(place / "model")
    check_state(model, str(place / "model"))
    use(model)


def check_tagger(place: Path, _: Draw) -> None:
    """Words are tagged by it."""
    tagger = rerank.Tagger.load(place / "model")
    token = ["a"] * tagger.width
    assert set(tagger.tag([token, token])) <= {*tagger.labels}
    assert np.isfinite([tagging.score for tagging in tagger.nbest([token], 2)]).all()


def check_corpus(place: Path, draw: Draw) -> None:
    """A learner can pass over it."""
    corpus = Corpus.load(place / "corpus", mmap=draw([True, False]))
    learner = build(learners, {"name": draw(["perceptron", "vrda", "arow", "pa"])}, "learner")
    best = oracles(corpus)
    assert ((best >= 0) & (best < corpus.candidate_count))[np.diff(corpus.lists) > 0].all()
    if corpus.width <= WIDEST:
        try:
            train(learner, ListProblem(corpus, best, 1), epochs=1)
        except RunError as error:  # numbers so large that what is learnt from them is none
            if "left the range of floating-point numbers" not in str(error):
                raise
    if corpus.list_count:
        corpus.take([0, corpus.list_count - 1]).slice(0, 1)


def check_runs(place: Path, draw: Draw) -> None:
    test = draw(["approximate_randomization", "paired_bootstrap", "paired_t", "mcnemar"])
    compare_runs(place / "a", place / "b", draw(["average", "base", "oracle", "voted"]), test=test, samples=100, seed=1)


CHECKS: dict[str, Callable[[Path, Draw], None]] = {
    "model": check_model, "learner": check_learner, "tagger": check_tagger, "corpus": check_corpus,
    "runs": check_runs,
}  # fmt: skip
FIXED = ("lists", "gold", "sources", "references")


def sign(place: Path) -> None:
    """Let digests fit the files, as somebody would who means harm: what is damaged is noticed by what looks into it."""
    if (place / "corpus").exists():
        seal(place / "corpus")
    sealed(place / "model")


@pytest.mark.parametrize("name", CHECKS)
@settings(max_examples=120)
@given(data=st.data())
def test_damaged(made: dict[str, list[Files]], name: str, data: st.DataObject) -> None:
    files = data.draw(st.sampled_from(made[name]).flatmap(lambda files: damaged_files(files, FIXED)))
    with placed(files) as place, refused(place):
        if not data.draw(ONE_IN_TEN):
            sign(place)
        CHECKS[name](place, lambda values: data.draw(st.sampled_from(values)))


@pytest.mark.parametrize("name", CHECKS)
def test_whole(made: dict[str, list[Files]], name: str) -> None:
    assert made[name]
    for files in made[name]:
        with placed(files) as place:
            sign(place)
            CHECKS[name](place, lambda values: values[0])


NUMBERS = ("1", "2", "3", "0", "-1", "1e999", str(10**30), "a", "", "\x1b[2J")
PLACES = ("model", "lists", "gold", "references", "a/metrics.json", "a", "b", "nowhere", "")
OWN = {  # of arguments and options: the values that are likely
    "model": ("model",), "like": ("model",), "nbest": ("lists",), "run_a": ("a",), "run_b": ("b",),
    "reference": ("gold", "references"), "list_id": ("0", "wsj-1", "a"),
    "predictor": ("last", "average", "voted", "base"), "reader": readers.names(), "on_bad_list": ("skip", "error"),
    "metric": ("parseval", "gain", "bleu", "wer"), "form": ("lines", "tab", "id", "moses"), "sort": ("name",),
    "option": ("tokenize=13a", "lowercase=maybe", "beta", "=", "order={"), "test_": ("mcnemar", "paired_t"),
    "punctuation": ("reference", "own", "evalb"),
}  # fmt: skip
COMMANDS = ("compare", "evaluate", "explain", "export", "import", "inspect", "oracle", "rank", "tag", "vote")


@st.composite
def command_lines(draw: st.DrawFn) -> list[str]:
    """A command with all its arguments and some of its options; {place} is the directory."""
    name = draw(st.sampled_from(COMMANDS))
    found: Any = typer.main.get_command(app)
    for part in name.split():
        found = found.commands[part]
    words = name.split()
    for each in found.params:
        option = each.opts[0].startswith("--")
        if option and not each.required and draw(st.integers(0, 3)):
            continue
        words += [each.opts[0]] if option else []
        if each.name in ("output", "save"):
            words.append("{place}/out")
        elif not (option and each.is_flag):
            value = draw(
                st.sampled_from(OWN[each.name] if each.name in OWN and not draw(ONE_IN_TEN) else PLACES + NUMBERS)
            )
            words.append(f"{{place}}/{value}" if value in PLACES else value)
    return words


@settings(max_examples=200)
@given(data=st.data())
def test_commands(made: dict[str, list[Files]], data: st.DataObject) -> None:
    models, lists, runs = (data.draw(st.sampled_from(made[name])) for name in ("model", "model", "runs"))
    model = {name: content for name, content in models.items() if name.startswith("model/")}
    if data.draw(ONE_IN_TEN):
        model = made["tagger"][0]
    with placed({name: content for name, content in lists.items() if name in FIXED} | model | runs) as place:
        code, _ = command(*(word.replace("{place}", str(place)) for word in data.draw(command_lines())))
        assert code == 0 or not (place / "out").exists()


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
