"""A model at work: scores, ranks, skipped lists, and the reasons for a choice."""

import io
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import small

import rerank
from rerank.base.errors import ModelError
from rerank.contrib.formats.berkeley import BerkeleyReader
from rerank.data.corpus import Corpus
from rerank.learn.scoring import scores
from rerank.learn.voting.votes import Votes
from rerank.learn.voting.voting import vote
from rerank.models.model import Model
from rerank.models.scorer import Opened, Ranked, Scorer, rank, write_ranked
from rerank.readers.base import Lists, Problem, SkipCount, read_lists
from rerank.readers.texts.jsonl import JsonlReader
from rerank.readers.trees.charniak import CharniakReader
from rerank.recipes.loading import load_recipe
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


def opened(scorer: Scorer, found: Ranked | Problem) -> Opened:
    assert isinstance(found, Ranked)
    again = scorer.open(found.nbest)
    assert isinstance(again, Opened)
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
        assert isinstance(found, Ranked)
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
        assert isinstance(found, Ranked)
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


BAD = Problem("score", "no score", 3, path="file", list_id="bad")


def listed(form: str, name: str = "good") -> Ranked:
    nbest = Lists.one(
        name, "file", 1, [b"(S1 (NN x))", b"(S1 (VB x))"], [3, 5], np.array([[-1.0], [-2.0]]), form=form, of_trees=True
    )
    return Ranked(nbest, np.array([1, 0]), np.array([0.25, 0.5]))


def test_bad_lists_are_written_as_empty_ones(tmp_path):
    out = io.BytesIO()
    write_ranked(out, CharniakReader(), iter([BAD, listed("header"), BAD.at("last", "file", 3)]), 1)
    assert out.getvalue() == b"0\tbad\n\n1\tgood\n0.5\t-2.0\n(S1 (VB x))\n\n0\tlast\n\n"
    (tmp_path / "out").write_bytes(out.getvalue())
    read = [found for found in CharniakReader().read(tmp_path / "out") if found.problem is None]
    assert [(found.id, len(found)) for found in read] == [("bad", 0), ("good", 1), ("last", 0)]


def test_bad_lists_take_the_form_of_the_others(tmp_path):
    out = io.BytesIO()
    write_ranked(out, BerkeleyReader(), iter([BAD, listed("groups"), BAD]))
    (tmp_path / "out").write_bytes(out.getvalue())
    found = list(BerkeleyReader().read(tmp_path / "out"))
    assert [len(each) for each in found if each.problem is None] == [0, 2, 0]
    only = io.BytesIO()
    write_ranked(only, CharniakReader(), iter([BAD]))
    assert only.getvalue() == b"0\tbad\n\n"


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
        assert isinstance(opened, Opened)
        assert opened.content is None
        plain = scorer._score(opened)
        compiled = scorer._score(opened._replace(content=scorer.content._view(opened.nbest)))
        assert np.array_equal(plain.scores, compiled.scores)
        assert plain.unknown == compiled.unknown


def test_lists_of_columns_are_ranked_without_compiled_code(columns_alone: Path) -> None:
    """numba takes longer to load than all the rest."""
    code = f"""import sys, rerank
numbers = {{name: 0.0 for name in rerank.load({str(columns_alone)!r}).columns}}
model = rerank.load({str(columns_alone)!r})
model.rank([{{"text": "a", "columns": numbers | {{name: 1.0}}}} for name in numbers])
print("numba" in sys.modules)"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
