"""``rerank.fit``: the course of a recipe over lists that a program holds."""

import dataclasses
import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import nltk
import numpy as np
import pytest
import small
import small_rankings
import small_texts
import user_template

import rerank
from rerank.learn.rules.dual_averaging import VotedRDA
from rerank.models.model import Model
from rerank.recipes.loading import load_recipe
from rerank.recipes.recipe import ListRecipe
from rerank.runs import experiment


class Task:
    """A recipe over files, the model that it makes, and its lists as ``rerank.read`` gives them."""

    def __init__(self, recipe: ListRecipe, place: Path, root: Path) -> None:
        self.metrics = experiment.run(recipe, place)
        self.model, self.place, self.recipe, self.root = Model.load(place / "model"), place, recipe, root

    def read(self, split: str) -> Any:
        """The lists of a split."""
        files = self.recipe.data.files(split)
        reader = dict(self.recipe.data.reader)
        right, sources = files.get("gold") or files.get("references"), files.get("sources", [None])[0]
        return rerank.read(files["nbest"][0], reader, references=right, sources=sources)

    def settings(self) -> dict[str, Any]:
        """What the recipe says, except for where its files are."""
        return self.recipe.model_dump(mode="json", exclude={"data"})


@pytest.fixture(scope="module")
def tasks(small_data: Path, texts_data: Path, workspace: Path) -> dict[str, Task]:
    """One of parses, one of translations, one of samples."""
    return {
        "parse": Task(small.recipe(small_data), workspace / "fit-parse", small_data),
        "translation": Task(small_texts.recipe(texts_data), workspace / "fit-translation", texts_data),
        "ranking": Task(small_rankings.recipe(texts_data), workspace / "fit-ranking", texts_data),
    }


def assert_same(found: rerank.Reranker, expected: Model) -> None:
    """The same features, weights, state and votes, to the bit."""
    model = found.model
    assert model.table.width == expected.table.width > 0
    assert np.array_equal(model.table.hashes, expected.table.hashes)
    assert np.array_equal(model.table.scale, expected.table.scale)
    for name, weights in expected.weights.items():
        assert np.array_equal(model.weights[name].w, weights.w), name
        assert model.weights[name].base == weights.base
        assert np.count_nonzero(weights.w)
    for kind in ("state", "votes"):
        own, other = getattr(model, kind), getattr(expected, kind)
        assert own.keys() == other.keys()
        assert all(np.array_equal(own[name], other[name]) for name in own)


@pytest.mark.parametrize("task", ["parse", "translation", "ranking"])
def test_lists_that_were_read_give_the_weights_of_the_recipe(tasks: dict[str, Task], task: str) -> None:
    own = tasks[task]
    found = rerank.fit(own.read("train"), own.read("dev"), recipe=own.settings())
    assert_same(found, own.model)
    assert found.recipe.model_dump(exclude={"data", "name"}) == own.recipe.model_dump(exclude={"data", "name"})
    assert found.recipe.data.reader == own.recipe.data.reader


@pytest.mark.parametrize("task", ["parse", "translation", "ranking"])
def test_lists_in_memory_give_the_weights_of_the_recipe(tasks: dict[str, Task], task: str) -> None:
    own = tasks[task]

    def made(split: str) -> Iterator[rerank.NBest]:
        for nbest in own.read(split):
            given: list[Any] = [
                {
                    "text": each.text, "score": each.score, "columns": dict(each.columns), "features": each.features,
                    "segmentation": each.segmentation, "alignment": each.alignment,
                }
                for each in nbest.candidates
            ]  # fmt: skip
            if task == "parse":
                given = [(each["text"], each["score"]) for each in given]
            yield rerank.NBest(nbest.id, given, nbest.source, nbest.references, nbest.gains)

    settings = own.settings()
    found = rerank.fit(made("train"), list(made("dev")), recipe=settings)
    if task != "parse":  # the base score has another name
        expected = own.model.weights["average"]
        assert np.array_equal(np.sort(found.model.weights["average"].w), np.sort(expected.w))
        assert found.model.weights["average"].base == expected.base
    else:
        assert_same(found, own.model)


def test_a_recipe_comes_from_a_model_and_makes_it_again(tasks: dict[str, Task], tmp_path: Path) -> None:
    own = tasks["translation"]
    found = rerank.fit(own.read("train"), own.read("dev"), recipe=own.settings())
    recipe = found.recipe.change({"data.root": str(own.root), "data.tests": ["test"]})
    (tmp_path / "again.yaml").write_text(recipe.as_yaml())
    again = load_recipe(tmp_path / "again.yaml")
    experiment.run(again, tmp_path / "again", tests=False)
    assert_same(found, Model.load(tmp_path / "again" / "model"))
    assert_same(rerank.fit(own.read("train"), own.read("dev"), recipe=tmp_path / "again.yaml"), own.model)
    assert_same(rerank.fit(own.read("train"), own.read("dev"), recipe=found.recipe), own.model)


def test_engines_and_mert_are_those_of_recipes(tasks: dict[str, Task], tmp_path: Path) -> None:
    own = tasks["translation"]
    mert = {"split": "dev", "settings": {"restarts": 1}}
    changes = {"training.epochs": 1, "training.vote": False, "mert": mert}
    recipe = own.recipe.change(changes)
    experiment.run(recipe, tmp_path / "run", tests=False)
    settings = recipe.model_dump(mode="json", exclude={"data"}) | {"engine": {"name": "processes", "workers": 2}}
    found = rerank.fit(own.read("train"), list(own.read("dev")), recipe=settings)
    assert found.predictor == "mert"
    assert_same(found, Model.load(tmp_path / "run" / "model"))


def test_training_goes_on_from_a_model(tasks: dict[str, Task], tmp_path: Path) -> None:
    own = tasks["ranking"]
    lists, dev, recipe = own.read("train"), own.read("dev"), dict(own.settings())
    recipe["training"] = {**recipe.get("training", {}), "vote": False, "patience": None}
    how: dict[str, Any] = {"learner": {"name": "perceptron", "base": 1}, "recipe": recipe}
    first, whole = (rerank.fit(lists, **how, epochs=epochs) for epochs in (1, 2))
    first.save(tmp_path / "first")
    for start in (first, tmp_path / "first"):
        more = rerank.fit(lists, start=start)
        assert_same(more, whole.model)
        assert more.recipe.training.start is None
    assert more.model.about["start"] == json.loads((tmp_path / "first" / "model.json").read_text())["digest"]
    other = rerank.fit(dev, start=first)  # its lists are others, its features those of the model
    assert np.array_equal(other.model.table.hashes, first.model.table.hashes)
    with pytest.raises(rerank.RerankError, match=r"settings of features: .*set"):
        rerank.fit(lists, start=first, features="base")
    with pytest.raises(rerank.RerankError, match="another learner"):
        rerank.fit(lists, start=first, learner="vrda")


def test_an_optimum_is_drawn_to_that_of_a_model(tasks: dict[str, Task]) -> None:
    lists, others = tasks["ranking"].read("train"), tasks["ranking"].read("test")
    far, near = ({"name": "maxent", "l2": l2, "base": "auto"} for l2 in (1e9, 1e-6))
    start, other = (rerank.fit(given, features="dense", learner=near) for given in (lists, others))
    weights = [model.model.weights["last"] for model in (start, other)]
    for learner, expected in ((far, weights[0]), (near, weights[1])):
        found = rerank.fit(others, features="dense", learner=learner, start=start).model
        assert found.weights["last"].w == pytest.approx(expected.w, rel=1e-3)
        assert found.weights["last"].base == pytest.approx(expected.base, rel=1e-3)


def seen(event: rerank.TrainingEvent) -> None:
    """What a recipe tells of its epochs."""
    raise ValueError(f"epoch {event.epoch} of {event.run}")


class PrunedError(Exception):
    """What the library of a user raises."""


def test_whoever_watches_hears_of_every_epoch(tasks: dict[str, Task]) -> None:
    lists, dev, events = tasks["ranking"].read("train"), tasks["ranking"].read("dev"), list[rerank.TrainingEvent]()
    how: dict[str, Any] = {"learner": "arow", "features": "dense", "epochs": 3}
    model = rerank.fit(lists, dev, **how, callback=events.append).model
    assert [event.epoch for event in events] == [1, 2, 3]
    kept = max(events, key=lambda event: event.dev or 0.0)
    assert kept.dev == model.about["dev"]["score"]
    assert kept.weights.w.shape == model.weights["average"].w.shape
    assert kept.history["mistakes"] > 0
    assert rerank.fit(lists, dev, features="dense", callback=events.append)
    assert len(events) == 4  # an optimum is one epoch


def test_whoever_watches_changes_nothing(tasks: dict[str, Task]) -> None:
    lists, dev, seen = tasks["ranking"].read("train"), tasks["ranking"].read("dev"), list[np.ndarray]()

    def spoil(event: rerank.TrainingEvent) -> None:
        seen.append(event.weights.w.copy())
        cast(dict[str, Any], event.history).clear()
        with pytest.raises(ValueError, match="read-only"):
            event.weights.w[:] = 0.0

    how: dict[str, Any] = {"learner": "arow", "features": "dense", "epochs": 3}
    plain, watched = (rerank.fit(lists, dev, **how, callback=each).model for each in (None, spoil))
    assert np.array_equal(plain.weights["average"].w, watched.weights["average"].w)
    assert len({w.tobytes() for w in seen}) == 3

    def prune(event: rerank.TrainingEvent) -> None:
        raise PrunedError(event.epoch)

    with pytest.raises(PrunedError):
        rerank.fit(lists, dev, **how, callback=prune)


def test_what_no_training_starts_from_is_refused(tasks: dict[str, Task]) -> None:
    lists = tasks["ranking"].read("train")
    one = rerank.fit(lists, features="dense")
    with pytest.raises(rerank.RerankError, match="dev: found the same iterator as lists"):
        rerank.fit(given := iter([GOOD]), given)
    for wrong, message in (
        ({"start": 7}, "start: found int; expected a model"),
        ({"callback": 7}, "callback: found int; expected a function"),
        ({"start": one, "recipe": {"training": {"start": "nowhere"}}}, "training.start: found a second model"),
        ({"answer": 7}, "data.answer: found '7'; expected boxed"),
    ):
        with pytest.raises(rerank.RerankError, match=message):
            rerank.fit(lists, **wrong)


@rerank.feature
def words(candidate: rerank.Candidate, nbest: rerank.NBest) -> dict[str, float]:
    """How many words a candidate has more than the list's first."""
    assert nbest.gains is None
    assert nbest.references == ()
    first = nbest.candidates[0]
    return {"more": float(len(candidate.tokens) - len(first.tokens)), "scored": float(candidate.score or 0.0)}


def test_features_of_ones_own(tmp_path: Path) -> None:
    given = [("a b c", -0.5), ("a b", -1.0), ("d", -2.0)]
    lists = [rerank.NBest(str(i), given, gains=[0.0, 1.0, 0.0]) for i in range(30)]
    model = rerank.fit(lists, features=[words, "Dense"], epochs=3)
    assert model.recipe.task == "ranking"
    assert model.best([("a b c", -0.5), ("a b", -0.5)]) == ("a b", -0.5)
    names = json.loads(model.to_json())["weights"]
    assert any(name.startswith("words|") for name in names)
    model.save(tmp_path / "own")
    with pytest.raises(rerank.RerankError, match=rf"features\.user\.words: {__name__}:words"):
        rerank.load(tmp_path / "own")
    assert rerank.load(tmp_path / "own", trust=[__name__]).best(given) == model.best(given)
    plain = rerank.fit(lists, features=["Dense", user_template.count_words], epochs=2)
    assert plain.recipe.features.user == {"count_words": "user_template:count_words"}


def test_learners_by_name_class_and_path() -> None:
    lists = [rerank.NBest(str(i), [("a", 1.0), ("b", 0.5)], gains=[0.0, 1.0]) for i in range(30)]
    features = {"set": "text", "min_lists": 1}
    models = [
        rerank.fit(lists, features=features, learner=learner, epochs=2)
        for learner in ("vrda", VotedRDA, {"name": "rerank.learn.rules.dual_averaging:VotedRDA"})
    ]
    for each in models[1:]:
        assert np.array_equal(each.model.weights["average"].w, models[0].model.weights["average"].w)
    assert models[1].recipe.learner["name"] == "vrda"


def test_nltk_trees_and_their_gold_trees() -> None:
    right = "(S1 (S (NP (DT the) (NN cat)) (VP (VBZ sleeps)) (. .)))"
    wrong = "(S1 (S (NP (DT the) (NN cat) (NNS sleeps)) (. .)))"
    trees = [nltk.Tree.fromstring(text) for text in (wrong, right)]
    given = [(trees[0], -1.0), {"tree": trees[1], "score": -2.0}]
    lists = [rerank.NBest(str(i), given, references=trees[1]) for i in range(12)]
    model = rerank.fit(lists, features="minimal", epochs=2)
    assert model.recipe.task == "parse"
    assert model.best(given) is given[1]


GOOD = rerank.NBest("a", [("x", 1.0), ("y", 0.0)], gains=[0.0, 1.0])
BAD: list[tuple[Any, dict[str, Any], str]] = [
    ([GOOD], {"learner": "perceptro"}, "learner.name: unknown learner 'perceptro'; did you mean perceptron"),
    ([GOOD], {"features": ["text", "dense"]}, "found the sets text and dense"),
    ([GOOD], {"features": [lambda _: {}]}, "cannot be found again by the model"),
    ([GOOD], {"recipe": {"mert": {"split": "tune"}}}, "the recipe needs a split 'tune'; found only train; MERT can"),
    ([GOOD], {"recipe": {"task": "classification"}}, "which has no lists; `rerank run` runs it"),
    ([rerank.NBest("b", [{"text": "x", "alignment": 5}], gains=[1])], {}, "candidate 1: found 5; expected 'alignment'"),
    ([GOOD], {"recipe": {"training": None}, "epochs": 0}, "training.epochs"),
    (None, {}, "found NoneType; expected lists"),
    (GOOD, {}, "found NBest; expected lists"),
    (
        [rerank.NBest("b", [{"text": "x", "columns": {"gain": 1.0}}], gains=[0.0])],
        {},
        "list b: candidate 1: the column 'gain' does not hold the gains of the list; rename it",
    ),
    ([], {}, "no list with candidates"),
    ([["x", "y"]], {}, "expected rerank.NBest"),
    ([rerank.NBest("b", ["x", "y"], gains=[1.0])], {}, "list b: found 1 gains for 2 candidates"),
    ([{"candidates": ["x", "y"], "gains": [1, None]}], {}, "list 0: candidate 2 does not have the number 'gain'"),
    ([rerank.NBest("b", ["x", "y"])], {"metric": "gain"}, "list b"),
    ([rerank.NBest("b", ["x", "y"])], {"metric": "bleu"}, "list b: no references"),
    ([rerank.NBest("b", ["(S1 (NN x))"])], {}, "list b: "),
    ([rerank.NBest("b", ["(S1 (NN x))", "(S1 (NN x)"], references="(S1 (NN x))")], {}, "list b: candidate 2: "),
    (
        [GOOD, rerank.NBest("b", [{"text": "x", "score": 1.0, "columns": {"z": 1.0}}], gains=[1.0])],
        {},
        "list b: a candidate has the column 'z'",
    ),
]


@pytest.mark.parametrize(("lists", "settings", "message"), BAD, ids=[message for *_, message in BAD])
def test_mistakes_are_named(lists: Any, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(rerank.RerankError) as caught:
        rerank.fit(lists, **settings)
    assert message in str(caught.value)
    assert "/tmp" not in str(caught.value)


def test_gains_are_numbers_of_any_library() -> None:
    with pytest.raises(rerank.RerankError, match="found None as the id; expected a name or a whole number"):
        rerank.NBest(None, ["x"])  # type: ignore[arg-type]
    for gains in (np.array([0.0, 1.0]), (gain for gain in (0, 1)), [np.float32(0), True], [Decimal(0), 1]):
        assert rerank.NBest("a", ["x", "y"], gains=gains).gains == (0.0, 1.0)
    lists = [rerank.NBest("a", ["(a) x", "(b) y"], gains=np.array([0.0, 1.0]))]
    assert rerank.evaluate([1], lists, samples=1).score == 1.0
    for wrong, told in (("a", "found 'a'"), (None, "found None"), ("1", "found '1'"), (10**400, "found 1000")):
        with pytest.raises(rerank.RerankError, match=f"list a: {told}.* as the gain of candidate 2; expected a finite"):
            rerank.NBest("a", ["x", "y"], gains=[0.0, wrong])
    assert rerank.NBest(7, ["x"]).id == rerank.NBest(np.int64(7), ["x"]).id == "7"  # type: ignore[arg-type]
    for field in ("candidates", "references", "gains"):
        with pytest.raises(rerank.RerankError, match=f"list a: found float; expected {field}, in a list"):
            rerank.NBest(**{"id": "a", "candidates": ["x"], field: 1.0})
    for one in ("ab", b"ab", {"text": "ab"}):
        with pytest.raises(rerank.RerankError, match=f"list a: found {type(one).__name__}; expected candidates, in a"):
            rerank.NBest("a", one)


def test_what_only_files_have_is_refused_elsewhere() -> None:
    pairs = [{"prompt": "p", "chosen": "a", "rejected": "b"}]
    for name in ("references", "sources"):
        with pytest.raises(rerank.RerankError, match=f"{name}: found 'x', which is for files, and dicts"):
            rerank.read(pairs, **{name: "x"})


def test_numbers_are_the_same_however_they_are_written() -> None:
    """In training and in use; an id is no number."""
    plain = [{"text": text, "rm": float(k), "ok": k % 2} for k, text in enumerate(("3", "4", "5"))]
    other = [{**one, "rm": str(one["rm"]), "ok": bool(one["ok"]), "id": "7"} for one in plain]
    models = list[rerank.Reranker]()
    for candidates in (plain, other):
        lists = [rerank.NBest(f"{i}", candidates[i % 2 :], gains=[0, 1, 0][i % 2 :]) for i in range(20)]
        models.append(rerank.fit(lists, features="dense"))
    assert models[0].to_json() == models[1].to_json()
    assert models[0].columns == ("score", "rm", "ok")
    scores = [model.rank(given).scores.tolist() for model in models for given in (plain, other)]
    assert scores == scores[:1] * 4


def test_a_column_that_no_list_varies_teaches_nothing() -> None:
    """Means over answers of equal numbers are these numbers, to the bit."""
    lists = [
        {"id": f"{i}", "candidates": [
            {"text": f"{i} {k}", "answer": "yes" if k < 3 + i % 7 else "no", "temperature": 0.1, "reward": (i * k) % 5,
             "gain": float(k % 2)} for k in range(8)
        ]} for i in range(20)
    ]  # fmt: skip
    weights = json.loads(rerank.fit(lists, features="dense").to_json())["weights"]
    assert abs(weights.get("Dense|temperature", 0.0)) < 1.0


def test_gains_of_lists_that_were_read_are_not_given_twice() -> None:
    (one,) = rerank.read([{"candidates": [{"text": "a", "gain": 1}, {"text": "b", "gain": 0}]}], "jsonl")
    assert rerank.evaluate([0], [dataclasses.replace(one, gains=one.gains)], samples=1).score == 1.0
    with pytest.raises(rerank.RerankError, match="the column 'gain' does not hold the gains of the list"):
        rerank.evaluate([0], [dataclasses.replace(one, gains=[0.0, 1.0])], samples=1)


def test_the_files_of_lists_are_named_in_errors(tmp_path: Path) -> None:
    (tmp_path / "lists.jsonl").write_text('{"candidates": ["a", 5], "gain": 1}\n')
    for lists in (rerank.read(tmp_path / "lists.jsonl", "jsonl"), list):
        with pytest.raises(rerank.RerankError, match=r"lists\.jsonl:1"):
            rerank.fit(lists if lists is not list else list(rerank.read(tmp_path / "lists.jsonl", "jsonl")))


# Reading


# Evaluating


@pytest.mark.parametrize("task", ["parse", "translation", "ranking"])
def test_a_model_is_worth_what_its_run_says(tasks: dict[str, Task], task: str) -> None:
    own = tasks[task]
    expected = own.metrics
    found = rerank.evaluate(rerank.load(own.place / "model"), own.read("test"), samples=200)
    primary = found.metric.primary
    by = expected["predictor"]
    splits, tested = expected["splits"]["test"], expected["significance"]["test"][f"{by}_vs_base"]
    for name, other in {"base": "base", "oracle": "oracle", "choice": by}.items():
        assert found.scores[name][primary] == pytest.approx(splits[other][primary], abs=1e-12)
        low, high = found.results.interval(name)
        assert low <= found.scores[name][primary] <= high
    assert (found.p, found.against_base.difference) == pytest.approx((tested["p"], tested["difference"]))
    assert found.metric.signature in str(found)
    assert found.metric.text(found.score) in str(found)


def test_choices_are_places_or_candidates() -> None:
    lists = [rerank.NBest(str(i), [("a", 1.0), ("b", 0.0)], gains=[0.0, 1.0]) for i in range(10)]
    for choices in ([1] * 10, ["b"] * 10, [("b", 0.0)] * 10):
        found = rerank.evaluate(choices, lists, samples=100)
        assert (found.score, found.scores["base"]["gain"]) == (1.0, 0.0)
        assert found.p < 0.05
    references = [dataclasses.replace(each, gains=None, references=["b"]) for each in lists]
    assert rerank.evaluate([1] * 10, references, "wer", samples=100).score == 0.0
    for choices, message in (
        ([1] * 9, "list 9: no choice"),
        ([1] * 11, "more choices"),
        ([2] * 10, "list 0: found the choice 2"),
        (["c"] * 10, "list 0: the choice 'c' is not among"),
    ):
        with pytest.raises(rerank.RerankError, match=message):
            rerank.evaluate(choices, lists, samples=100)
    for key, value in (("samples", 0), ("samples", -1), ("seed", -1)):
        with pytest.raises(rerank.RerankError, match=f"{key}: found {value}"):
            rerank.evaluate([1] * 10, lists, **{key: value})  # type: ignore[arg-type]
    with pytest.raises(rerank.RerankError, match="found int; expected a model, or a choice for every list"):
        rerank.evaluate(3, lists)  # type: ignore[arg-type]
    with pytest.raises(rerank.RerankError, match="no list"):
        rerank.evaluate([], [])


def test_metrics_of_an_order_are_those_of_rankings_and_their_grades_no_features() -> None:
    lists = [{"candidates": [{"text": f"{y}", "x": y % 3, "gain": y % 2} for y in range(4)]} for _ in range(12)]
    made = [rerank.fit(lists, **settings).model for settings in ({}, {"metric": "ndcg@3"})]
    assert made[0].settings["task"] == made[1].settings["task"] == "ranking"
    assert made[0].table.about == made[1].table.about


def test_nothing_is_written(tasks: dict[str, Task], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In memory: neither blocks nor corpora, models or runs."""
    monkeypatch.setenv("TMPDIR", str(tmp_path / "none"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "none"))
    monkeypatch.chdir(tmp_path)
    first = rerank.fit(tasks["ranking"].read("train"), features="dense")
    rerank.fit(tasks["ranking"].read("train"), start=first)
    assert not any(tmp_path.iterdir())
