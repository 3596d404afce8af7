"""Answers from whole lists: expected gains by their formula, limits, user's gains, what is refused."""

from pathlib import Path
from typing import Any

import nltk
import numpy as np
import pytest
import reference_decoding as reference
import small
from hypothesis import given
from hypothesis import strategies as st

import rerank
from rerank.base.errors import DataError, ModelError, RecipeError
from rerank.models.decoding import Decoded, base_model, best_expected, decode, probabilities
from rerank.models.model import Model
from rerank.models.provenance import Decoding
from rerank.models.reranker import Reranker
from rerank.models.scorer import Scorer
from rerank.readers.given.nbest import list_given
from rerank.recipes.loading import read_settings
from rerank.recipes.recipe import ListRecipe

TREES = ["(S1 (S (A (X 0) (X 1)) (X 2)))", "(S1 (S (X 0) (A (X 1) (X 2))))", "(S1 (S (B (X 0) (X 1)) (X 2)))"]
scores_of = st.lists(st.integers(-4, 4), min_size=2, max_size=6)


def scorer(metric: str, **features: Any) -> Scorer:
    """What scores lists by their base scores."""
    task = {"parseval": "parse", "gain": "ranking"}.get(metric, "translation")
    settings = {"name": "none", "task": task, "metric": {"name": metric}, "features": {"set": "base", **features}}
    recipe = read_settings(settings)
    assert isinstance(recipe, ListRecipe)
    return Scorer(base_model(recipe))


def answer(metric: str, texts: list[str], scores: list[float], gains: Any = None, **how: Any) -> Decoded:
    own, candidates = scorer(metric), zip(texts, map(float, scores), strict=True)
    nbest = list_given(candidates, own.content.columns, texts=metric != "parseval", name="one")
    settings = {"kind": "mbr", "sharpness": 1.0, **how}
    return own.answer(own.open(nbest), Decoding.model_validate(settings), gains)  # type: ignore[arg-type]


@given(scores_of, st.sampled_from([0.25, 1.0, 3.0]), st.data())
def test_the_answer_with_most_probability_wins(scores: list[int], sharpness: float, data: st.DataObject) -> None:
    N, own = len(scores), scorer("gain")
    answers = data.draw(st.lists(st.sampled_from(["", "4", "5", "6"]), min_size=N, max_size=N))
    given = [{"text": str(y), "score": float(scores[y]), "answer": answers[y]} for y in range(N)]
    opened = own.open(list_given(given, own.content.columns, texts=True, name="one"))
    p = reference.softmax(np.array(scores, float), sharpness)
    shares = {a: sum(p[y] for y in range(N) if answers[y] == a) for a in answers if a}
    votes = [shares.get(a, 0.0) for a in answers] if shares else list(p)
    place = min(range(N), key=lambda y: (-round(votes[y], 10), -scores[y], y))
    first, second = sorted([*(shares or dict(enumerate(p))).values(), 0.0], reverse=True)[:2]
    for margin, below, expected in (
        (max(0.0, first - second - 1e-9), "abstain", place),
        (min(1.0, first - second + 1e-9), "abstain", None),
        (min(1.0, first - second + 1e-9), "base", int(np.argmax(scores))),
    ):
        how = Decoding.model_validate({"kind": "mbr", "sharpness": sharpness, "margin": margin, "below": below})
        found = own.answer(opened, how)  # type: ignore[arg-type]
        assert found.place == (expected if margin < 1 - 1e-8 else found.place)
        assert found.text == ("" if found.place is None else str(found.place))
        assert (dict(found.answers), found.margin) == (pytest.approx(shares), pytest.approx(first - second))


@given(scores_of, st.sampled_from([0.25, 1.0, 3.0]))
def test_probabilities_are_a_softmax(scores: list[int], sharpness: float) -> None:
    found = probabilities(np.array(scores, float), np.array([1.0, sharpness]), 2.0)
    for row, a in zip(found, (1.0, sharpness), strict=True):
        np.testing.assert_allclose(row, reference.softmax(np.array(scores) / 2.0, a), rtol=1e-12)


@pytest.mark.parametrize("metric", ["bleu", "chrf", "wer"])
@given(scores=scores_of)
def test_the_expected_gain_is_that_of_the_formula(metric: str, scores: list[int]) -> None:
    texts = ["a b c d", "a b", "a b c", "d c b a", "a", "b c d"][: len(scores)]
    found = answer(metric, texts, scores, sharpness=0.7, deviation=2.0)  # type: ignore[arg-type]
    gains = scorer(metric).content.metric.pairwise([text.encode() for text in texts])  # type: ignore[attr-defined]
    expected = reference.expected(gains, reference.softmax(np.array(scores) / 2.0, 0.7))
    assert found.expected is not None
    np.testing.assert_allclose(found.expected, expected, rtol=1e-10)
    assert expected[found.place or 0] == pytest.approx(max(expected))


@given(st.permutations(range(5)))
def test_sharp_probabilities_leave_the_best_candidate(scores: list[int]) -> None:
    trees = (TREES * 2)[: len(scores)]
    best = scores.index(4)
    for kind in ("mbr", "fuse"):
        found = answer("parseval", trees, scores, kind=kind, sharpness=1e4)  # type: ignore[arg-type]
        assert found.place is not None
        assert (trees[found.place], scores[found.place]) == (trees[best], 4)
        assert nltk.Tree.fromstring(found.text) == nltk.Tree.fromstring(trees[best])


def test_of_equal_expected_gains_the_best_score_is_taken_then_the_first() -> None:
    expected = np.array([[0.5, 0.5 + 1e-14, 0.5, 0.1], [0.2, 0.1, 0.3, 0.3]])
    assert best_expected(expected, np.array([1.0, 2.0, 2.0, 9.0])).tolist() == [1, 3]


def test_a_fused_tree_says_who_voted_for_what() -> None:
    found = answer("parseval", [*TREES, "(())"], [0.0, 0.0, 0.0, 0.0], kind="fuse")
    assert (found.text, found.place, found.left_out) == ("(S1 (S (X 0) (X 1) (X 2)))", None, 1)
    assert [(vote.label, vote.candidates) for vote in found.votes] == [
        ("S", [0, 1, 2]), ("A", [0]), ("B", [2]), ("A", [1]),
    ]  # fmt: skip
    assert found.probabilities.tolist() == pytest.approx([1 / 3, 1 / 3, 1 / 3, 0])
    failed = answer("parseval", ["(())", "(())"], [0.0, 1.0], kind="fuse")
    assert (failed.place, failed.left_out) == (1, 2)


def test_trees_without_brackets_are_fused() -> None:
    found = answer("parseval", ["(S1 (X 0))", "(S1 (Y 0))", "(S1 (Y 0))"], [0.1, 0.0, 0.0], kind="fuse")
    assert (found.text, found.place, list(found.votes)) == ("(S1 (Y 0))", 1, [])


def test_gains_of_a_user_take_the_place_of_the_metric() -> None:
    gains = [[1, 0, 0], [0.6, 1, 0.6], [0, 0, 1]]
    assert answer("bleu", ["a", "b", "c"], [0.0, -0.1, 0.0], gains).text == "b"

    def first_letter(candidates: Any) -> list[list[float]]:
        return [[float(a.text[0] == b.text[0]) for b in candidates] for a in candidates]

    assert answer("bleu", ["a", "b1", "b2"], [0.5, 0.1, 0.0], first_letter).text == "b1"
    for wrong in ([[1.0]], [[1, 2, 3]] * 2, [[np.nan] * 3] * 3, lambda _: 1 / 0):
        with pytest.raises(RecipeError, match=r"decode\.gains"):
            answer("bleu", ["a", "b", "c"], [0.0, 0.0, 0.0], wrong)


def test_only_the_best_candidates_are_compared() -> None:
    texts, scores = ["a b c", "x y", "x y", "x y", "a b"], [3.0, 0.0, 0.0, 0.0, 2.0]
    assert answer("bleu", texts, scores, sharpness=0.01).text == "x y"
    found = answer("bleu", texts, scores, sharpness=0.01, most=2)
    assert found.place in (0, 4)
    assert found.expected[1:4].tolist() == [0, 0, 0]


def test_what_cannot_be_decoded() -> None:
    with pytest.raises(RecipeError, match="only trees can be fused"):
        answer("bleu", ["a", "b"], [0.0, 0.0], kind="fuse")
    own = scorer("bleu")
    with pytest.raises(DataError, match="no candidates"):
        decode(
            Decoding(kind="mbr", sharpness=1.0), own.content, list_given([], texts=True, name="x"), None, np.zeros(0)
        )


@pytest.fixture(scope="module")
def fusing(small_data: Path, workspace: Path) -> Path:
    """The model of a run that fuses trees."""
    from rerank.runs import experiment

    recipe = small.recipe(small_data, training={"epochs": 1, "vote": False}, decode={"use": "fuse"})
    experiment.run(recipe, workspace / "fusing")
    return workspace / "fusing"


def test_a_model_decodes_as_it_was_tuned(fusing: Path, small_data: Path, tmp_path: Path) -> None:
    model = rerank.load(fusing / "model")
    tuned = model.model.about["decodings"]["fuse"]
    lists = list(rerank.read(small_data / "test.nbest.gz", format="charniak"))
    answers = [model.decode(nbest) for nbest in lists]
    lines = small.lines_of(fusing / "predictions" / "test.decoded.gz")
    assert [each.text for each in answers] == lines
    model.save(tmp_path / "again")
    again = rerank.load(tmp_path / "again")
    assert again.model.about["decodings"]["fuse"] == tuned
    assert again.decode(lists[0]).text == lines[0]
    mbr = model.decode(lists[0], how="mbr")
    assert mbr.place is not None
    assert model.decode(lists[0], how="best").text == model.best(lists[0]).text


def test_a_model_that_was_not_tuned_says_so(fusing: Path) -> None:
    model = rerank.load(fusing / "model", predictor="last")
    assert model.decode([(TREES[0], 1.0)]).place == 0
    with pytest.raises(ModelError, match="tuned for the scores of the predictor 'average'"):
        model.decode([(TREES[0], 1.0)], how="fuse")
    about = {key: value for key, value in model.model.about.items() if key not in ("decodings", "decision")}
    plain = Reranker(Model(model.model.settings, about, model.model.table, model.model.weights))
    assert plain.decode([(TREES[0], 1.0)]).place == 0
    with pytest.raises(ModelError, match="was not tuned to decode by 'fuse'; it has best"):
        plain.decode([(TREES[0], 1.0)], how="fuse")
