"""A model at work: scores, ranks, skipped lists, the reasons for a choice; answers from whole lists."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import nltk
import numpy as np
import pytest
import reference_decoding as reference
import small
from hypothesis import given
from hypothesis import strategies as st
from outcomes import read_lists

import rerank
from rerank.base.errors import DataError, ModelError, RecipeError
from rerank.data.corpus import Corpus
from rerank.extraction.content import Pair
from rerank.features.table import FeatureTable
from rerank.learn.epoch import Votes
from rerank.learn.learner import Weights
from rerank.learn.scoring import scores
from rerank.learn.voting import vote
from rerank.metrics.fusion import probabilities
from rerank.models.decoding import Decoded, best_expected, decode
from rerank.models.model import Model
from rerank.models.provenance import Decoding
from rerank.models.reranker import Reranker
from rerank.models.scorer import Ranked, Scorer, rank
from rerank.readers.memory.nbest import as_list
from rerank.readers.reader import Lists, Problem, SkipCount
from rerank.readers.texts.jsonl import JsonlReader
from rerank.recipes.loading import load_recipe, read_settings
from rerank.runs.corpora import Data

SHIPPED = Path(__file__).parents[2] / "data" / "llm"


@pytest.fixture(scope="module")
def model(small_run: Path) -> Model:
    return Model.load(small_run / "model")


@pytest.fixture(scope="module")
def corpus(small_run: Path) -> Corpus:
    return Data.load(load_recipe(small_run / "recipe.yaml"), small_run, ("test",)).others["test"].corpus


def ranked(scorer: Scorer, path: Path, policy: str = "error") -> list[Ranked | Problem]:
    return list(scorer.rank(scorer.read(scorer.reader, str(path), SkipCount(policy))))  # type: ignore[arg-type]


def opened(scorer: Scorer, found: Ranked | Problem) -> Pair:
    again = scorer.open(found.nbest)
    return again


def test_rank_breaks_ties_by_base_and_index():
    given, base = np.array([1.0, 2.0, 2.0, 1.0, 2.0]), np.array([9.0, 1.0, 3.0, 9.0, 3.0])
    expected = sorted(range(5), key=lambda y: (-given[y], -base[y], y))
    assert list(rank(given, base)) == expected == [2, 4, 1, 0, 3]
    assert rank(np.zeros(0), np.zeros(0)).size == 0


@pytest.mark.parametrize("predictor", ["last", "average"])
def test_scores_are_the_corpus_scores_up_to_a_constant(model, corpus, small_data, predictor):
    scorer = Scorer(model, predictor)
    expected = scores(corpus, model.weights[predictor])
    for i, found in enumerate(ranked(scorer, small_data / "test.nbest.gz")):
        own = expected[corpus.lists[i] : corpus.lists[i + 1]]
        difference = found.scores - own
        assert np.ptp(difference) < 1e-4 * max(1.0, float(np.abs(found.scores).max()))
        assert np.array_equal(found.scores[found.order], np.sort(found.scores)[::-1])


def test_votes_are_those_of_the_corpus(model, corpus, small_data):
    votes = vote(Votes(**model.votes), corpus)
    found = ranked(Scorer(model, "voted"), small_data / "test.nbest.gz")
    assert len(found) == 40
    for i, each in enumerate(found):
        assert np.array_equal(each.scores, votes[corpus.lists[i] : corpus.lists[i + 1]])


def test_votes_of_many_batches_keep_their_lists(model, small_data, tmp_path):
    lists = small.lists_of(small_data / "train.nbest.gz")[:100]
    lists[70] = "1\tbad\nno number\n(S1 (NN x))"
    small.write_lists(tmp_path / "many.gz", lists)
    found = ranked(Scorer(model, "voted"), tmp_path / "many.gz", "skip")
    assert [isinstance(each, Problem) for each in found].index(True) == 70
    ids = [each.id if isinstance(each, Problem) else each.nbest.id for each in found]
    assert ids == [text.split("\n")[0].split("\t")[1] for text in lists]


@pytest.mark.parametrize("predictor", ["last", "average"])
def test_contributions_sum_to_the_difference(model, small_data, predictor):
    scorer, differing = Scorer(model, predictor), 0
    for found in ranked(scorer, small_data / "test.nbest.gz"):
        base = int(rank(found.nbest.base, found.nbest.base)[0])
        winner, last = int(found.order[0]), int(found.order[-1])
        for other in {base, last}:
            parts = scorer.explain(opened(scorer, found), winner, other)
            expected = found.scores[winner] - found.scores[other]
            assert sum(part.amount for part in parts) == pytest.approx(expected, abs=1e-4)
            amounts = [abs(part.amount) for part in parts]
            assert amounts == sorted(amounts, reverse=True)
            assert sum(part.feature == "base score" for part in parts) == 1
            differing += len(parts) > 1
    assert differing > 20


def test_predictors_that_a_model_does_not_have(model):
    with pytest.raises(ModelError, match="no predictor 'best'"):
        Scorer(model, "best")
    with pytest.raises(ModelError, match="keeps no votes"):
        Scorer(replace(model, votes={}), "voted")


@pytest.fixture(scope="module")
def columns_alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of the numbers of samples with answers."""
    place = tmp_path_factory.mktemp("dense") / "model"
    rerank.fit(list(rerank.read(SHIPPED / "train.jsonl.gz"))[:60], features="dense").save(place)
    return place


def test_lists_of_columns_have_the_scores_that_compiled_code_gives(columns_alone: Path) -> None:
    scorer = Scorer(Model.load(columns_alone))
    for nbest in read_lists(JsonlReader(), str(SHIPPED / "dev.jsonl.gz")):
        opened = scorer.open(nbest)
        assert_as_compiled(scorer, opened)


def assert_as_compiled(scorer: Scorer, opened: Pair) -> None:
    plain = scorer._score(opened)
    compiled = scorer._score(opened._replace(content=scorer.content._view(opened.nbest)))
    assert plain.scores.tobytes() == compiled.scores.tobytes()
    assert plain.unknown == compiled.unknown


@pytest.mark.parametrize("learned", [("score", "a", "b", "c"), ("score", "b")])
def test_candidates_in_memory_have_the_scores_that_compiled_code_gives(learned: tuple[str, ...]) -> None:
    """Of columns that vary, do not, are zeros of both signs, or differ by less than a float32 tells apart."""
    rng = np.random.default_rng(len(learned))

    def candidates(size: int, names: tuple[str, ...]) -> list[dict[str, Any]]:
        kinds = [rng.normal(size=size), np.full(size, 0.3), rng.choice([0.0, -0.0], size), 1e9 + rng.random(size)]
        rows = np.column_stack([kinds[k] for k in rng.permutation(4)[: len(names)]]).tolist()
        return [{"text": f"a {y}", **dict(zip(names, row, strict=True))} for y, row in enumerate(rows)]

    lists = [rerank.NBest(str(i), candidates(4, learned), gains=[1.0, 0, 0, 0]) for i in range(40)]
    model = rerank.fit(lists, features="dense", epochs=2)
    for size in (1, 2, 8, 50):
        for _ in range(10):
            given = candidates(size, learned)
            _, opened = model._pair(given, None)
            assert opened.nbest is opened.content
            assert_as_compiled(model._scorer, opened)
            slow, fast = model.rank(tuple(given)), model.rank(given)
            assert fast.scores.tobytes() == slow.scores.tobytes()
            assert fast.as_object() == slow.as_object()
            assert (fast.place, fast.unknown, fast.text) == (slow.place, slow.unknown, slow.text)
            assert fast.nbest.scores.tobytes() == opened.nbest.scores.tobytes()
            assert fast.explain() == slow.explain()


class Cut:
    """A template of a user's own: the first score column, from -5 to 5."""

    seed = 1

    def columns(self, rows: Lists, _: Any) -> dict[tuple[str, ...], np.ndarray]:
        return {("cut",): np.clip(rows.scores[:, 0], -5.0, 5.0)}


def test_features_that_cut_large_numbers_are_no_columns_as_they_stand(columns_alone: Path) -> None:
    scorer = Scorer(Model.load(columns_alone))
    assert scorer._column_weights(("score", "a"), 0) is not None
    scorer.content.extractor.templates.append(Cut())  # type: ignore[attr-defined]
    assert scorer._weigh_columns(("score", "a"), 0) is None


def test_lists_of_columns_are_ranked_without_compiled_code(columns_alone: Path) -> None:
    """numba takes longer to load than all the rest."""
    code = f"""import sys, rerank
numbers = {{name: 0.0 for name in rerank.load({str(columns_alone)!r}).columns}}
model = rerank.load({str(columns_alone)!r})
model.rank([{{"text": "a", "columns": numbers | {{name: 1.0}}}} for name in numbers])
print("numba" in sys.modules)"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


TREES = ["(S1 (S (A (X 0) (X 1)) (X 2)))", "(S1 (S (X 0) (A (X 1) (X 2))))", "(S1 (S (B (X 0) (X 1)) (X 2)))"]
scores_of = st.lists(st.integers(-4, 4), min_size=2, max_size=6)


def scorer(metric: str, **features: Any) -> Scorer:
    """What scores lists by their base scores."""
    task = {"parseval": "parse", "gain": "ranking"}.get(metric, "translation")
    settings = {"name": "none", "task": task, "metric": {"name": metric}, "features": {"set": "base", **features}}
    recipe = read_settings(settings)
    nothing = np.zeros(0, np.uint64)
    table = FeatureTable(nothing, np.zeros(0, np.int32), np.zeros(1, np.int64), nothing, (), {}, {})
    weights = {name: Weights(np.zeros(0), 1.0) for name in ("last", "average")}
    return Scorer(Model(recipe.model_dump(mode="json"), {}, table, weights))


def answer(metric: str, texts: list[str], scores: list[float], gains: Any = None, **how: Any) -> Decoded:
    own, candidates = scorer(metric), zip(texts, map(float, scores), strict=True)
    nbest = as_list(candidates, own.content.columns, texts=metric != "parseval", name="one")
    settings = {"kind": "mbr", "sharpness": 1.0, **how}
    return own.answer(own.open(nbest), Decoding.model_validate(settings), gains)  # type: ignore[arg-type]


@given(scores_of, st.sampled_from([0.25, 1.0, 3.0]), st.data())
def test_the_answer_with_most_probability_wins(scores: list[int], sharpness: float, data: st.DataObject) -> None:
    N, own = len(scores), scorer("gain")
    answers = data.draw(st.lists(st.sampled_from(["", "4", "5", "6"]), min_size=N, max_size=N))
    given = [{"text": str(y), "score": float(scores[y]), "answer": answers[y]} for y in range(N)]
    opened = own.open(as_list(given, own.content.columns, texts=True, name="one"))
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
    np.testing.assert_allclose(found.expected, expected, rtol=1e-10)
    assert expected[found.place or 0] == pytest.approx(max(expected))


@given(st.permutations(range(5)))
def test_sharp_probabilities_leave_the_best_candidate(scores: list[int]) -> None:
    trees = (TREES * 2)[: len(scores)]
    best = scores.index(4)
    for kind in ("mbr", "fuse"):
        found = answer("parseval", trees, scores, kind=kind, sharpness=1e4)  # type: ignore[arg-type]
        assert (trees[found.place], scores[found.place]) == (trees[best], 4)
        assert nltk.Tree.fromstring(found.text) == nltk.Tree.fromstring(trees[best])


def test_of_equal_expected_gains_the_best_score_is_taken_then_the_first() -> None:
    expected = np.array([[0.5, 0.5 + 1e-14, 0.5, 0.1], [0.2, 0.1, 0.3, 0.3]])
    assert best_expected(expected, np.array([1.0, 2.0, 2.0, 9.0])).tolist() == [1, 3]


def test_trees_without_brackets_are_fused() -> None:
    found = answer("parseval", ["(S1 (X 0))", "(S1 (Y 0))", "(S1 (Y 0))"], [0.1, 0.0, 0.0], kind="fuse")
    assert (found.text, found.place, list(found.votes)) == ("(S1 (Y 0))", 1, [])
    failed = answer("parseval", ["(())", "(())"], [0.0, 1.0], kind="fuse")
    assert (failed.place, failed.left_out) == (1, 2)


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
    own = scorer("bleu")
    with pytest.raises(DataError, match="no candidates"):
        decode(Decoding(kind="mbr", sharpness=1.0), own.content, as_list([], texts=True, name="x"), None, np.zeros(0))


@pytest.fixture(scope="module")
def fusing(small_data: Path, workspace: Path) -> Path:
    """The model of a run that fuses trees."""
    from rerank.runs import experiment

    recipe = small.recipe(small_data, training={"epochs": 1, "vote": False}, decode={"use": "fuse"})
    experiment.run(recipe, workspace / "fusing")
    return workspace / "fusing"


def test_a_model_that_was_not_tuned_says_so(fusing: Path) -> None:
    model = rerank.load(fusing / "model", predictor="last")
    assert model.decode([(TREES[0], 1.0)]).place == 0
    with pytest.raises(ModelError, match="tuned for the scores of the predictor 'average'"):
        model.decode([(TREES[0], 1.0)], how="fuse")
    about = {key: value for key, value in model.model.about.items() if key not in ("decodings", "decision")}
    plain = Reranker(Model(model.model.settings, about, model.model.table, model.model.weights))
    assert [plain.decode([(TREES[0], 1.0)], how=how).place for how in (None, "best")] == [0, 0]
    with pytest.raises(ModelError, match="was not tuned to decode by 'fuse'; it has best"):
        plain.decode([(TREES[0], 1.0)], how="fuse")
