"""Lists in parts on disk: what is read, trained and measured part by part is what the whole corpus gives."""

import json
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import bits, in_parts, random_corpus, targets
from variants import FAMILIES, LEARNERS

from rerank.base.errors import DataError
from rerank.contrib.classification.results import Classification
from rerank.data.corpus import DTYPES, Corpus
from rerank.learn.base import Learner, State, learners
from rerank.learn.bounds import bounds, list_margins
from rerank.learn.log import UpdateLog
from rerank.learn.pairs import Oracle
from rerank.learn.replay import in_memory
from rerank.learn.rules.perceptron import Perceptron
from rerank.learn.rules.rda import VotedRDA
from rerank.learn.train import ListProblem, Training, epoch_order, part_order, train
from rerank.learn.voting.voting import vote
from rerank.metrics.oracle import oracles, with_corpus_gains
from rerank.storage.files import seal

CORPUS = replace(random_corpus(6, lists=30), about={"from": "test"}, trusted=True)
CUTS = (0, 7, 8, 8, 30)  # a part of one list, and one of none


def same(a: Corpus, b: Corpus) -> bool:
    """Whether they have the same lists; a copy in another process has them too."""
    again = pickle.loads(pickle.dumps(a))
    return all(
        (one.width, one.free, one.about) == (b.width, b.free, b.about)
        and all(np.array_equal(getattr(one, name), getattr(b, name)) for name in DTYPES)
        and not any(getattr(one, name).flags.writeable for name in DTYPES)
        for one in (a, again)
    )


@pytest.fixture(scope="module")
def mapped(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return in_parts(tmp_path_factory.mktemp("parts") / "corpus", CORPUS, CUTS)


def test_the_parts_together_are_the_corpus(mapped: Corpus, tmp_path: Path) -> None:
    assert mapped.cuts.tolist() == list(CUTS)
    assert same(mapped, CORPUS)
    assert len(pickle.dumps(mapped)) < 1000  # its path
    for number, part in enumerate(mapped.parts()):
        assert same(part, CORPUS.slice(*CUTS[number : number + 2]))
        assert (mapped.in_part(number, targets(CORPUS)) == targets(part)).all()
    mapped.save(tmp_path / "again")
    assert Corpus.load(tmp_path / "again").cuts.tolist() == list(CUTS)


CHANGES: dict[str, Callable[[Corpus, np.ndarray], Corpus]] = {
    "slice": lambda corpus, chosen: corpus.slice(int(chosen[0]), int(chosen[-1]) + 1),
    "take": lambda corpus, chosen: corpus.take(chosen),
    "take in another order": lambda corpus, chosen: corpus.take(chosen[::-1], {"about": "others"}),
    "take every second": lambda corpus, chosen: corpus.take(chosen).take(np.arange(0, chosen.size, 2)),
    "keep columns": lambda corpus, chosen: corpus.keep_columns(np.isin(np.arange(corpus.width), chosen)),
    "a share": lambda corpus, chosen: corpus.shared(0.5, int(chosen[0])),
}


@pytest.mark.parametrize("name", CHANGES)
@given(chosen=st.sets(st.integers(0, 29), min_size=1))
def test_what_is_made_of_it_is_what_is_made_in_memory(mapped: Corpus, name: str, chosen: set[int]) -> None:
    lists = np.array(sorted(chosen))
    found, folder = CHANGES[name](mapped, lists), mapped.__dict__["_place"].parent
    assert same(found, CHANGES[name](CORPUS, lists))
    assert (found.cuts[0], found.cuts[-1]) == (0, found.list_count)
    assert [path.name for path in folder.iterdir()] == ["corpus"]  # what is mapped has no name


@given(chosen=st.sets(st.integers(0, CORPUS.candidate_count - 1), min_size=1))
def test_candidates_alone_keep_their_rows(mapped: Corpus, chosen: set[int]) -> None:
    candidates = np.array(sorted(chosen))
    lists = np.unique(np.searchsorted(CORPUS.lists, candidates, side="right") - 1)
    found = mapped.only(lists, candidates)
    assert found.list_count == lists.size
    assert found.gain.tolist() == CORPUS.gain[candidates].tolist()
    assert found.weight.tolist() == CORPUS.weight[lists].tolist()
    for y, origin in enumerate(candidates):
        for name in ("columns", "values"):
            row = getattr(found, name)[found.rows[y] : found.rows[y + 1]]
            assert row.tolist() == getattr(CORPUS, name)[CORPUS.rows[origin] : CORPUS.rows[origin + 1]].tolist()
        owner = np.searchsorted(found.lists, y, side="right") - 1
        assert CORPUS.lists[lists[owner]] <= origin < CORPUS.lists[lists[owner] + 1]


def test_gains_of_the_corpus_score() -> None:
    corpus = random_corpus(4)
    wrong = np.random.default_rng(4).integers(0, 2, corpus.candidate_count).astype(float)
    corpus = replace(corpus, stats=wrong[:, None], reference=np.ones((30, 1)))
    around, lists = targets(corpus), np.repeat(np.arange(30), np.diff(corpus.lists))
    mixed = with_corpus_gains(corpus, Classification(), around, 0.25)
    np.testing.assert_allclose(mixed.gain, 0.75 * corpus.gain + 0.25 * (wrong[around][lists] - wrong), atol=1e-12)


def fit(learner: Learner, lists: Corpus) -> Training:
    return train(learner, ListProblem(lists, oracles(lists), 5), epochs=3, keep_log=True)


def by_hand(learner: Learner) -> tuple[State, UpdateLog]:
    """Three epochs over the lists, in the orders that are documented."""
    state, log = learner.init(CORPUS.width, CORPUS.candidate_count), UpdateLog()
    for epoch in range(3):
        orders = [
            CUTS[part] + epoch_order(CUTS[part + 1] - CUTS[part], 5, epoch, shuffle=True, part=part)
            for part in part_order(4, 5, epoch, shuffle=True).tolist()
        ]
        learner.epoch(CORPUS, targets(CORPUS), np.concatenate(orders), state, log=log, pairs=Oracle().rule(5, epoch))
    return state, log


@pytest.mark.parametrize("name", FAMILIES)
def test_training_visits_part_after_part(name: str, mapped: Corpus, tmp_path: Path) -> None:
    learner = learners.get(name)(**LEARNERS[name].variants[0])
    training, (state, log) = fit(learner, mapped), by_hand(learner)
    assert bits(training.state) == bits(state)
    assert training.log is not None
    for key, array in log.arrays().items():
        np.testing.assert_array_equal(training.log.arrays()[key], array)
    votes = learner.votes(*in_memory(training.log, mapped))  # updates are repeated on the lists that they touched
    np.testing.assert_array_equal(vote(votes, mapped), vote(learner.votes(training.log, CORPUS), CORPUS))
    in_one = in_parts(tmp_path / "one", CORPUS, (0, 30))
    assert bits(fit(learner, in_one).state) == bits(fit(learner, CORPUS).state)


@pytest.mark.parametrize(
    "learner", [VotedRDA(base=0.0, base_rate=0.5), VotedRDA(base=0.0, l1=0.125), Perceptron(base=0.0, base_rate=0.5)]
)
def test_bounds_are_those_of_the_whole(learner: Learner, mapped: Corpus) -> None:
    training = fit(learner, mapped)
    assert training.log is not None
    first, u = training.history[0], training.weights["average"]
    margins = [list_margins(lists, oracles(CORPUS), u, any_ties=False) for lists in (mapped, CORPUS)]
    np.testing.assert_array_equal(*margins)
    log = training.log.head(first["updates"])
    found, expected = (bounds(learner, log, lists, first["mistakes"], u, margins[0]) for lists in (mapped, CORPUS))
    assert found == expected
    assert "bound" in found


@pytest.mark.parametrize("cuts", [[0, 31], [1, 30], [0, 9, 8, 30], [0, "x"], [[0, 30], [0, 30]], "many", None])
def test_cuts_that_are_none_of_these_lists(tmp_path: Path, cuts: Any) -> None:
    in_parts(tmp_path / "corpus", CORPUS, CUTS)
    header = json.loads((tmp_path / "corpus" / "header.json").read_text())
    (tmp_path / "corpus" / "header.json").write_text(json.dumps(header | {"cuts": cuts}))
    seal(tmp_path / "corpus")
    with pytest.raises(DataError, match=r"do not fit together|not a readable corpus.*; remove /entry and run again"):
        Corpus.load(tmp_path / "corpus", "/entry")
