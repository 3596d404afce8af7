"""A model at work on candidates in memory: what it takes, what it gives, and what it says about bad ones."""

import json
import pickle
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nltk
import numpy as np
import pytest
import small_rankings
import small_texts

import rerank
from rerank.models.model import Model
from rerank.models.scorer import Scorer
from rerank.readers.memory.nbest import InputError
from rerank.readers.reader import SkipCount
from rerank.runs import experiment
from rerank.storage.streams import open_stream

RIGHT = "(S1 (S (NP (DT the) (NN cat)) (VP (VBZ sleeps)) (. .)))"
WRONG = "(S1 (S (NP (DT the) (NN cat) (NNS sleeps)) (. .)))"


@pytest.fixture(scope="module")
def models(small_run: Path, texts_data: Path, workspace: Path) -> dict[str, Path]:
    """A model of parses, one of translations with phrase pairs, one of the columns of samples alone."""
    experiment.run(small_texts.recipe(texts_data), workspace / "given-texts", tests=False)
    experiment.run(small_rankings.recipe(texts_data), workspace / "given-samples", tests=False)
    found = {"parses": small_run, "texts": workspace / "given-texts", "samples": workspace / "given-samples"}
    return {name: place / "model" for name, place in found.items()} | {"root": texts_data}


def as_dict(candidate: rerank.Candidate) -> dict[str, Any]:
    """A candidate of a file as a user would give it."""
    numbers = {"score": candidate.score, "columns": candidate.columns, "features": candidate.features}
    derivation = {"segmentation": candidate.segmentation, "alignment": candidate.alignment}
    return {"text": candidate.text, **numbers, **derivation, "own": object()}


def files(models: dict[str, Path], small_data: Path, kind: str) -> tuple[Path, Path | None]:
    """Lists that a model can rank, and their sources."""
    if kind == "parses":
        return small_data / "test.nbest.gz", None
    root = models["root"]
    return (root / "test.nbest.gz", root / "test.src.gz") if kind == "texts" else (root / "test.jsonl.gz", None)


@pytest.mark.parametrize("kind", ["parses", "texts", "samples"])
def test_candidates_in_memory_rank_like_those_of_files(models: dict[str, Path], small_data: Path, kind: str) -> None:
    model = rerank.load(models[kind])
    path, sources = files(models, small_data, kind)
    scorer = Scorer(Model.load(models[kind]), model.predictor)
    expected = scorer.rank(scorer.read(scorer.reader, str(path), SkipCount(), sources))
    found = list(model.rank_many(path, sources=sources))
    for ranking, ranked in zip(found, expected, strict=True):
        assert np.array_equal(ranking.order, ranked.order)
        assert np.array_equal(ranking.scores, ranked.scores[ranked.order])
        given = [as_dict(each) for each in ranked.nbest.candidates]
        if not given:
            continue
        assert (given[0]["segmentation"] is not None) == (kind == "texts")
        again = model.rank(given, getattr(ranked.nbest.candidates[0], "source", None))
        assert np.array_equal(again.order, ranked.order)
        assert np.array_equal(again.scores, ranking.scores)
        assert again.text == ranking.text
        assert again.best is given[again.place] if again.place is not None else again.best.text == again.text
        assert again.candidates == [given[y] for y in ranked.order]
        assert again.explain() == ranking.explain()
    assert len(found) >= 20


@pytest.mark.parametrize(
    "form",
    [
        lambda text: (text, -1.0),
        lambda text: {"text": text, "score": -1.0},
        lambda text: {"tree": nltk.Tree.fromstring(text), "score": -1},
        lambda text: {"tree": text, "score": np.float32(-1.0)},
        lambda text: rerank.Candidate(text, -1.0),
        lambda text: rerank.Candidate(tree=nltk.Tree.fromstring(text), score=-1.0),
    ],
)
def test_every_form_of_a_candidate_says_the_same(small_run: Path, form: Callable[[str], Any]) -> None:
    model, given = rerank.load(small_run / "model"), [form(WRONG), form(RIGHT)]
    expected = model.rank([(WRONG, -1.0), (RIGHT, -1.0)])
    found = model.rank(iter(given))
    assert found.scores.tolist() == expected.scores.tolist()
    assert model.best(given) is given[expected.place]


def test_candidates_have_base_scores_where_the_training_lists_had(small_run: Path) -> None:
    model = rerank.load(small_run / "model")
    for given in ([WRONG, RIGHT], [nltk.Tree.fromstring(WRONG), nltk.Tree.fromstring(RIGHT)]):
        with pytest.raises(rerank.RerankError, match="candidate 1: found no number as 'score'"):
            model.rank(given)
    lists = [rerank.NBest(str(i), ["a b", "b"], gains=[0, 1]) for i in range(4)]
    without = rerank.fit(lists, features="text", epochs=1, learner={"name": "perceptron", "base": 1})
    assert without.rank(["c", "b"]).scores.tolist() == without.rank([("c", 0.0), ("b", 0.0)]).scores.tolist()


def test_sources_reach_the_features(models: dict[str, Path]) -> None:
    model = rerank.load(models["texts"])
    columns = dict.fromkeys(json.loads(model.to_json())["columns"][1:], 0.0)
    given = [{"text": text, "score": 0.0, "columns": columns} for text in ("good1 good2", "bad1 bad2")]
    named = rerank.NBest("a", given, source="quell1 quell2")
    assert model.rank(named).id == "a"
    assert model.rank(given, "quell1 quell2").scores.tolist() == model.rank(named).scores.tolist()
    (one,) = model.rank_many([named])
    assert one.order.tolist() == model.rank(named).order.tolist()


SAMPLE = {"text": "a", "score": 1.0, "columns": {"reward": 1, "length": 1}}
BAD = [
    ("parses", [(RIGHT, 0.0), 3], "candidate 2: found int; expected a text"),
    ("parses", [{"txet": RIGHT}], "candidate 1: expected either 'text' or 'tree'"),
    ("parses", [{"texts": RIGHT}], "found the key 'texts'; did you mean 'text'?"),
    ("parses", [(RIGHT, 0.0), RIGHT], "candidate 2: found no number as 'score'"),
    ("parses", [(RIGHT, float("nan"))], "candidate 1: found NaN; expected 'score' of candidate 1 as a finite"),
    ("parses", [(RIGHT, "low")], "candidate 1: found \"low\"; expected 'score' of candidate 1"),
    ("parses", [(RIGHT, 0.0), ("(S1 (NN never closed)", 0.0)], "candidate 2: "),
    ("parses", [(RIGHT, 0.0), ("(S1 (NN other))", 0.0)], "have different words"),
    ("parses", [{"tree": None}], "candidate 1: found None as its tree; expected a string"),
    ("samples", [{"text": None}], "candidate 1: found None as its text; expected a string"),
    ("samples", [(None, 1.0)], "candidate 1: found tuple; expected a text"),
    ("samples", 5, "found int; expected "),
    ("parses", RIGHT, "found str; expected several candidates"),
    ("samples", [{"text": "a", "score": 1.0}], "candidate 1: found no number as 'reward'"),
    ("samples", ["a", "b"], "candidate 1: found no number as 'logprob'"),
    (
        "samples",
        [{**SAMPLE, "columns": {"reward": "x", "length": 1}}],
        "found \"x\"; expected column 'reward' of candidate 1 as a number",
    ),
    ("samples", [{**SAMPLE, "text": 5}], "found 5; expected candidate 1 as a string"),
    ("samples", [{"text": "a", "columns": 5}], "candidate 1: found 5 as 'columns' of candidate 1; expected an object"),
    ("samples", [{**SAMPLE, "features": {"x": None}}], "found null; expected feature 'x' of candidate 1 as a number"),
    ("samples", [SAMPLE, {**SAMPLE, "score": float("nan")}], "candidate 2: found NaN; expected column 'logprob' of"),
    ("samples", [SAMPLE, {**SAMPLE, "score": -np.inf}], "candidate 2: found -Infinity; expected column 'logprob' of"),
    ("samples", [{**SAMPLE, "score": 10**400}], "as a finite number"),
    ("samples", [{**SAMPLE, "columns": {"reward": 1e39, "length": 1}}], "not finite or exceeds"),
    (
        "samples",
        [{**SAMPLE, "columns": {"logprob": 2.0, "reward": 1, "length": 1}}],
        "candidate 1: found the score 1.0, and another, 2.0, among its columns as 'logprob'; give one",
    ),
]


@pytest.mark.parametrize(("kind", "given", "message"), BAD)
def test_bad_candidates_are_named(models: dict[str, Path], kind: str, given: Any, message: str) -> None:
    model = rerank.load(models[kind])
    with pytest.raises(rerank.RerankError) as caught:
        model.rank(given)
    assert message in str(caught.value)
    if isinstance(given, list) and isinstance(given[0], dict) and None in given[0].values():
        assert isinstance(caught.value, InputError)
        assert caught.value.field == f"candidates[0].{next(iter(given[0]))}"
    if not isinstance(given, str):
        with pytest.raises(rerank.RerankError, match=r"^list seven: "):
            list(model.rank_many([rerank.NBest("seven", given)]))


def test_places_and_lists_that_are_not_there(small_run: Path) -> None:
    model = rerank.load(small_run / "model")
    with pytest.raises(rerank.RerankError, match="no source"):
        model.rank([RIGHT], source="the cat sleeps .")
    ranking = model.rank([(WRONG, -1.0), (RIGHT, -1.0)])
    assert ranking.explain(0, -1) == ranking.explain()
    with pytest.raises(rerank.RerankError, match="found the place 5; expected one from 0 to 1"):
        ranking.explain(0, 5)
    for name in ("format", "sources"):
        with pytest.raises(rerank.RerankError, match=f"{name}: found 'x', which is for files, and lists in memory"):
            list(model.rank_many([[RIGHT]], **{name: "x"}))
    with pytest.raises(rerank.RerankError, match="found NBest; expected lists"):
        list(model.rank_many(rerank.NBest("a", [RIGHT])))  # type: ignore[arg-type]


def test_derivations_are_checked(models: dict[str, Path]) -> None:
    model = rerank.load(models["texts"])
    columns = dict.fromkeys(json.loads(model.to_json())["columns"][1:], 0.0)
    good = {"text": "good1 bad2", "score": 0.0, "columns": columns, "segmentation": "0=0 1=1"}
    assert len(model.rank([good, {**good, "segmentation": None}], "quell1 quell2")) == 2
    assert len(model.rank([good])) == 1  # without a source there are no phrases
    for bad in ("0=0 7=1", "nonsense", 5):
        with pytest.raises(rerank.RerankError, match=r"(candidate 2: )|(segmentation of candidate 2)"):
            model.rank([good, {**good, "segmentation": bad}], "quell1 quell2")


def test_a_list_without_candidates_has_no_best(small_run: Path) -> None:
    numbers = [{"text": "a", "score": 0.0, "columns": {"lm": 1.0}}, {"text": "b", "score": 0.0, "columns": {"lm": 0.0}}]
    dense = rerank.fit([rerank.NBest(str(i), numbers, gains=[1.0, 0.0]) for i in range(6)], features="dense", epochs=1)
    for model in (rerank.load(small_run / "model"), dense):
        ranking = model.rank([])
        assert (len(ranking), ranking.candidates, ranking.explain()) == (0, [], [])
        with pytest.raises(rerank.RerankError, match="no candidates"):
            _ = ranking.best


@pytest.mark.parametrize("predictor", ["last", "voted"])
def test_lists_are_ranked_while_they_are_asked_for(small_run: Path, small_data: Path, predictor: str) -> None:
    model = rerank.load(small_run / "model", predictor)
    expected = list(model.rank_many(small_data / "test.nbest.gz"))
    given, asked = [[each.candidates[i] for i in np.argsort(each.order)] for each in expected] * 3, 0

    def ask() -> Iterator[list[rerank.Candidate]]:
        nonlocal asked
        for each in given:
            asked += 1
            yield each

    found = model.rank_many(ask())
    first = next(found)
    assert asked == (64 if predictor == "voted" else 1)
    for one, other in zip([first, *found], expected * 3, strict=True):
        assert one.order.tolist() == other.order.tolist()
        assert one.scores.tolist() == other.scores.tolist()


def test_standard_input_is_a_file(
    small_run: Path, small_data: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    model = rerank.load(small_run / "model")
    with open_stream(small_data / "test.nbest.gz") as stream:
        (tmp_path / "lists").write_bytes(b"".join(iter(lambda: stream.read(1 << 20), b"")))
    with (tmp_path / "lists").open() as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        found = [each.id for each in model.rank_many(sys.stdin)]
    assert found == [each.id for each in model.rank_many(small_data / "test.nbest.gz")]


def test_a_saved_or_pickled_model_ranks_alike(small_run: Path, tmp_path: Path) -> None:
    model = rerank.load(small_run / "model", "last")
    model.save(tmp_path / "copy")
    for other in (rerank.load(tmp_path / "copy", "last"), pickle.loads(pickle.dumps(model))):
        given = [(RIGHT, 0.5), (WRONG, 0.0)]
        assert other.rank(given).scores.tolist() == model.rank(given).scores.tolist()


def test_weights_as_json_score_the_columns_of_samples(models: dict[str, Path]) -> None:
    model = rerank.load(models["samples"])
    told = json.loads(model.to_json())
    base, *columns = told["columns"]
    assert (base, sorted(columns)) == ("logprob", ["length", "reward"])
    for ranking in model.rank_many(models["root"] / "test.jsonl.gz"):
        for candidate, score in zip(ranking.candidates, ranking.scores, strict=True):
            parts = [told["weights"].get(f"Dense|{name}", 0.0) * candidate.columns[name] for name in columns]
            own = told["base"] * candidate.score + sum(parts)
            spread = 1e-6 * (abs(told["base"] * candidate.score) + sum(map(abs, parts)))
            assert abs(own - score) <= spread + 1e-6 * abs(score) or len(ranking) == 1
