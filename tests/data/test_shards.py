"""Lists in parts: what is read, trained and measured part by part is what the whole corpus gives."""

import json
import pickle
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import bits, random_corpus, targets, write_shards
from variants import FAMILIES, LEARNERS

from rerank.base.errors import DataError
from rerank.contrib.classification.results import Classification
from rerank.data.corpus import Corpus
from rerank.data.shards import Shards, first_candidates, gathered, parts, section, selected, whole
from rerank.learn.base import Learner, State, Weights, learners
from rerank.learn.bounds import bounds, list_margins
from rerank.learn.log import UpdateLog
from rerank.learn.pairs import Oracle
from rerank.learn.replay import in_memory
from rerank.learn.rules.perceptron import Perceptron
from rerank.learn.rules.rda import VotedRDA
from rerank.learn.scoring import best, choices, scores
from rerank.learn.train import ListProblem, Training, epoch_order, part_order, train
from rerank.learn.voting.voting import vote
from rerank.metrics.oracle import ListStatistics, corpus_oracle, oracles, statistics_of, with_corpus_gains
from rerank.models.predictions import corpus_score
from rerank.storage.files import seal

CORPUS = random_corpus(6, lists=30)
FIELDS = ("lists", "rows", "columns", "values", "base", "gain", "stats", "reference", "weight")
CUTS = (0, 7, 8, 8, 30)  # a part of one list, and one of none


def same(a: Corpus, b: Corpus) -> bool:
    return (a.width, a.free) == (b.width, b.free) and all(
        np.array_equal(getattr(a, name), getattr(b, name)) for name in FIELDS
    )


def written(directory: Path, corpus: Corpus = CORPUS, cuts: tuple[int, ...] = CUTS) -> Shards:
    directory.mkdir()
    write_shards(directory, [corpus.slice(a, b) for a, b in pairwise(cuts)], {"from": "test"})
    return Shards.load(directory)


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Shards:
    return written(tmp_path_factory.mktemp("shards") / "corpus")


def test_the_parts_together_are_the_corpus(shards: Shards) -> None:
    assert (shards.count, shards.about) == (4, {"from": "test"})
    assert (shards.list_count, shards.candidate_count) == (CORPUS.list_count, CORPUS.candidate_count)
    assert shards.nonzeros == CORPUS.nonzeros
    assert same(whole(shards), CORPUS)
    assert first_candidates(shards).tolist() == CORPUS.lists[:-1].tolist()
    assert same(pickle.loads(pickle.dumps(shards)).part(3), shards.part(3))


@given(ends=st.tuples(st.integers(0, 30), st.integers(0, 30)))
def test_sections_are_slices(shards: Shards, ends: tuple[int, int]) -> None:
    first, last = sorted(ends)
    piece = section(shards, first, last)
    assert piece.list_count == last - first
    if first < last:
        assert same(whole(piece), CORPUS.slice(first, last))
        inner = section(piece, 0, (last - first) // 2)
        if inner.list_count:
            assert same(whole(inner), CORPUS.slice(first, first + inner.list_count))


@given(
    chosen=st.sets(st.integers(0, 29), min_size=2),
    ends=st.tuples(st.floats(0, 1), st.floats(0, 1)),
)
def test_chosen_lists(shards: Shards, chosen: set[int], ends: tuple[float, float]) -> None:
    """Lists that are taken, and taken and divided again, are what a corpus in memory takes."""
    lists = np.array(sorted(chosen))
    found = shards.take(lists)
    assert same(whole(found), CORPUS.take(lists))
    expected = CORPUS.take(lists)
    assert (found.list_count, found.candidate_count) == (expected.list_count, expected.candidate_count)
    assert [entry.nonzeros for entry in found.parts] == [found.part(k).nonzeros for k in range(found.count)]
    starts = [(entry.lists_before, entry.candidates_before) for entry in found.parts]
    assert starts == [(place.lists, place.candidates) for place, _ in parts(found)]
    first, last = sorted(round(end * lists.size) for end in ends)
    if first < last:
        piece = section(found, first, last)
        assert same(whole(piece), expected.slice(first, last))
        assert [(e.lists_before, e.candidates_before) for e in piece.parts[:1]] == [(first, expected.lists[first])]
        assert same(whole(piece.take(np.arange(0, last - first, 2))), CORPUS.take(lists[first:last:2]))


def test_kept_columns(shards: Shards) -> None:
    keep = np.arange(CORPUS.width) % 3 > 0
    assert same(whole(shards.keep_columns(keep)), CORPUS.keep_columns(keep))


@given(chosen=st.sets(st.integers(0, CORPUS.candidate_count - 1), min_size=1))
def test_gathered_candidates_keep_their_rows(shards: Shards, chosen: set[int]) -> None:
    candidates = np.array(sorted(chosen))
    lists = np.unique(np.searchsorted(CORPUS.lists, candidates, side="right") - 1)
    found = gathered(shards, lists, candidates)
    assert found.list_count == lists.size
    assert found.gain.tolist() == CORPUS.gain[candidates].tolist()
    assert found.weight.tolist() == CORPUS.weight[lists].tolist()
    for y, origin in enumerate(candidates):
        for name in ("columns", "values"):
            row = getattr(found, name)[found.rows[y] : found.rows[y + 1]]
            assert row.tolist() == getattr(CORPUS, name)[CORPUS.rows[origin] : CORPUS.rows[origin + 1]].tolist()
        owner = np.searchsorted(found.lists, y, side="right") - 1
        assert CORPUS.lists[lists[owner]] <= origin < CORPUS.lists[lists[owner] + 1]


def labelled(seed: int) -> Corpus:
    """A corpus with statistics of the classification error."""
    corpus = random_corpus(seed)
    stats = np.random.default_rng(seed).integers(0, 2, (corpus.candidate_count, 1)).astype(float)
    arrays = {name: getattr(corpus, name) for name in FIELDS}
    return Corpus(**arrays | {"stats": stats, "reference": np.ones((30, 1))}, width=corpus.width)


def test_measures(tmp_path: Path) -> None:
    corpus, metric = labelled(3), Classification()
    split = written(tmp_path / "corpus", corpus)
    weights = Weights(np.random.default_rng(1).normal(size=corpus.width), 0.5)
    chosen = best(corpus, scores(corpus, weights))
    assert choices(split, weights).tolist() == chosen.tolist()
    assert corpus_score(split, weights, metric) == corpus_score(corpus, weights, metric)
    assert oracles(split).tolist() == targets(corpus).tolist()
    np.testing.assert_array_equal(statistics_of(split, chosen), corpus.stats[chosen])
    assert ListStatistics.of(split, metric) == ListStatistics.of(corpus, metric)
    assert corpus_score(corpus, weights, metric) > 0
    climbed = corpus_oracle(split, metric)
    assert metric.scores(statistics_of(split, climbed).sum(axis=0), np.array([30.0])) == metric.scores(
        corpus.stats[corpus_oracle(corpus, metric)].sum(axis=0), np.array([30.0])
    )


def test_gains_of_the_corpus_score(tmp_path: Path) -> None:
    corpus, metric = labelled(4), Classification()
    split, around = written(tmp_path / "corpus", corpus), targets(corpus)
    expected = with_corpus_gains(corpus, metric, around, 0.25).gain
    wrong, lists = corpus.stats[:, 0], np.repeat(np.arange(30), np.diff(corpus.lists))
    np.testing.assert_allclose(expected, 0.75 * corpus.gain + 0.25 * (wrong[around][lists] - wrong), atol=1e-12)
    mixed = with_corpus_gains(split, metric, around, 0.25)
    np.testing.assert_array_equal(whole(mixed).gain, expected)
    np.testing.assert_array_equal(whole(section(mixed, 5, 20)).gain, expected[corpus.lists[5] : corpus.lists[20]])


def fit(learner: Learner, lists: Any) -> Training:
    return train(learner, ListProblem(lists, oracles(lists), 5), epochs=3, keep_log=True)


def by_hand(learner: Learner, shuffle: bool = True) -> tuple[State, UpdateLog]:
    """Three epochs over the slices, in the orders that are documented."""
    state, log = learner.init(CORPUS.width, CORPUS.candidate_count), UpdateLog()
    for epoch in range(3):
        for index in part_order(4, 5, epoch, shuffle):
            first, last = CUTS[index], CUTS[index + 1]
            piece = CORPUS.slice(first, last)
            order = epoch_order(last - first, 5, epoch, shuffle, int(index))
            a, b = int(CORPUS.lists[first]), int(CORPUS.lists[last])
            log.count_from(first, a)
            rule = Oracle().rule(5, epoch, int(index))
            learner.epoch(piece, targets(piece), order, learner.view_of(state, a, b), log=log, pairs=rule)
    return state, log


@pytest.mark.parametrize("name", FAMILIES)
def test_training_visits_part_after_part(name: str, shards: Shards, tmp_path: Path) -> None:
    learner = learners.get(name)(**LEARNERS[name].variants[0])
    training, (state, log) = fit(learner, shards), by_hand(learner)
    assert bits(training.state) == bits(state)
    assert training.log is not None
    for key, array in log.arrays().items():
        np.testing.assert_array_equal(training.log.arrays()[key], array)
    in_one = written(tmp_path / "one", cuts=(0, 30))
    assert bits(fit(learner, in_one).state) == bits(fit(learner, CORPUS).state)


@pytest.mark.parametrize("name", FAMILIES)
def test_updates_are_repeated_on_what_they_touched(name: str, shards: Shards) -> None:
    learner = learners.get(name)(**LEARNERS[name].variants[0])
    log = fit(learner, shards).log
    assert log is not None
    expected = vote(learner.votes(log, CORPUS), CORPUS)
    votes = learner.votes(*in_memory(log, shards))
    found = [vote(votes, part) for _, part in parts(shards)]
    np.testing.assert_array_equal(np.concatenate(found), expected)
    assert selected(shards, lambda part: best(part, vote(votes, part))).tolist() == best(CORPUS, expected).tolist()


@pytest.mark.parametrize(
    "learner", [VotedRDA(base=0.0, base_rate=0.5), VotedRDA(base=0.0, l1=0.125), Perceptron(base=0.0, base_rate=0.5)]
)
def test_bounds_are_those_of_the_whole(learner: Learner, shards: Shards) -> None:
    training = fit(learner, shards)
    assert training.log is not None
    first, u = training.history[0], training.weights["average"]
    margins = [list_margins(lists, oracles(CORPUS), u, any_ties=False) for lists in (shards, CORPUS)]
    np.testing.assert_array_equal(*margins)
    log = training.log.head(first["updates"])
    found, expected = (bounds(learner, log, lists, first["mistakes"], u, margins[0]) for lists in (shards, CORPUS))
    assert found == expected
    assert "bound" in found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not a readable corpus"),
        ("[]", "not a readable corpus"),
        ('{"version": 99}', "format version 99"),
        ('{"version": 1, "parts": [[-1, 2, 3]], "width": 1, "free": 0, "about": {}}', "negative size"),
        ('{"version": 1, "parts": [[1, 1e999, 3]], "width": 1, "free": 0, "about": {}}', "not a readable corpus"),
        ('{"version": 1, "parts": [[1, 2]], "width": 1, "free": 0, "about": {}}', "not a readable corpus"),
    ],
)
def test_damaged_headers(tmp_path: Path, text: str, message: str) -> None:
    written(tmp_path / "corpus")
    (tmp_path / "corpus" / "shards.json").write_text(text)
    with pytest.raises(DataError, match=r"shards.json: its checksum is"):
        Shards.load(tmp_path / "corpus")
    seal(tmp_path / "corpus")
    with pytest.raises(DataError, match=message):
        Shards.load(tmp_path / "corpus")


@pytest.mark.parametrize("change", [{"width": 5}, {"parts": [[7, 42, 3]]}, {"parts": [[9, 42, 126]]}])
def test_parts_that_the_header_does_not_know(tmp_path: Path, change: dict[str, Any]) -> None:
    written(tmp_path / "corpus")
    header = json.loads((tmp_path / "corpus" / "shards.json").read_text())
    (tmp_path / "corpus" / "shards.json").write_text(json.dumps(header | change))
    seal(tmp_path / "corpus")
    with pytest.raises(DataError, match="not the part that the header knows"):
        Shards.load(tmp_path / "corpus").part(0)


def test_every_part_is_looked_at_when_it_is_opened(tmp_path: Path) -> None:
    """A value that has become another one, in a part that is not the first; the message says what to remove."""
    shards = written(tmp_path / "corpus")
    path = tmp_path / "corpus" / "00003" / "values.npy"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    assert same(shards.part(1), CORPUS.slice(7, 8))
    with pytest.raises(DataError, match=r"values.npy: its checksum is .*; remove /entry and run again") as caught:
        whole(Shards.load(tmp_path / "corpus", "/entry"))
    assert str(path.parent) in str(caught.value)
