"""Iterative parameter mixing: the same as by hand, on every engine, with interruptions and shards."""

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from strategies import bits, random_corpus, targets

from rerank.base.errors import RecipeError
from rerank.base.registry import build
from rerank.data.corpus import Corpus
from rerank.data.shards import Shards, write_shards
from rerank.engines.base import Engine, LocalEngine
from rerank.engines.settings import EngineSettings, open_engine
from rerank.learn.base import Weights, learners
from rerank.learn.mixing.combining import combine
from rerank.learn.mixing.mixing import Learned, Mixing, SectionEpoch, learn, train_mixed
from rerank.learn.predictor import REST, State, fresh
from rerank.learn.rules.arow import AROW
from rerank.learn.rules.perceptron import Perceptron
from rerank.learn.rules.rda import RDA
from rerank.learn.shard_states import ShardStates
from rerank.learn.trainer import Training, epoch_order, train

CORPUS = random_corpus(4, lists=31)
ORACLE = targets(CORPUS)


def mixed(learner: Any, mixing: Mixing, lists: Any = CORPUS, **options: Any) -> Training:
    return train_mixed(learner, lists, ORACLE, **({"mixing": mixing, "epochs": 3, "seed": 5} | options))


def same(one: Training, other: Training) -> None:
    """The same states, predictors and history but for times."""
    assert bits(one.state) == bits(other.state)
    for name, weights in one.weights.items():
        assert weights.w.tobytes() == other.weights[name].w.tobytes()
        assert weights.base == other.weights[name].base
    for lines in (one.history, other.history):
        for line in lines:
            line.pop("seconds", None)
            line.pop("nonzeros_per_second", None)
    assert one.history == other.history
    assert (one.samples, one.mistakes, one.epoch) == (other.samples, other.mistakes, other.epoch)


def written(directory: Path, cuts: tuple[int, ...]) -> Shards:
    directory.mkdir()
    write_shards(directory, [CORPUS.slice(a, b) for a, b in pairwise(cuts)], {})
    return Shards.load(directory)


@pytest.mark.parametrize("name", ["perceptron", "vrda", "arow", "ftrl"])
def test_one_section_is_plain_training(name: str) -> None:
    learner = build(learners, {"name": name}, "learner")
    same(mixed(learner, Mixing(1)), train(learner, CORPUS, ORACLE, epochs=3, seed=5))


@pytest.mark.parametrize("every", ["epoch", "once"])
@pytest.mark.parametrize("learner", [Perceptron(base_rate=0.5), RDA(l1=0.01), AROW()], ids=lambda each: each.name)
def test_rounds_by_hand(learner: Any, every: Any) -> None:
    """Three sections of 10, 10 and 11 lists, epoch after epoch, each from the combined state or from its own."""
    found = mixed(learner, Mixing(3, every=every))
    pieces = [CORPUS.slice(0, 10), CORPUS.slice(10, 20), CORPUS.slice(20, 31)]
    seeds = [int(np.random.SeedSequence([5, number]).generate_state(1)[0]) for number in range(3)]
    fresh = learner.init(CORPUS.width)
    states, start, common = [fresh] * 3, None, None
    for epoch in range(3):
        ends = []
        for piece, seed, before in zip(pieces, seeds, states, strict=True):
            state = type(before)(*(np.array(array) for array in before))
            learner.epoch(piece, targets(piece), epoch_order(piece.list_count, seed, epoch, True), state)
            ends.append(state)
        common = combine(learner, ends, start=start)
        states = ends if every == "once" else [common] * 3
        start = common if every == "epoch" else None
    assert bits(found.state) == bits(common)
    assert found.history[-1]["updates"] > 0
    assert found.samples[-1] == 3 * CORPUS.list_count
    assert found.log is None


@pytest.fixture(scope="module")
def processes() -> Iterator[Engine]:
    """Two processes; one is killed in the last of their tests."""
    with open_engine(EngineSettings(name="processes", workers=2)) as engine:
        yield engine


@pytest.mark.parametrize("name", ["local", "processes"])
def test_the_same_bits_on_every_engine(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Dask mixes in tests/cli/test_dask.py."""
    plain = {learner.name: mixed(learner, Mixing(4, keep=8)) for learner in (RDA(l1=0.01), AROW())}
    shards = written(tmp_path / "corpus", (0, 9, 9, 20, 31))
    over_shards = mixed(AROW(), Mixing(4), shards)
    engine = LocalEngine() if name == "local" else request.getfixturevalue(name)
    for learner in (RDA(l1=0.01), AROW()):
        found = mixed(learner, Mixing(4, keep=8), engine=engine, workspace=tmp_path / "work")
        same(found, plain[learner.name])
    same(mixed(AROW(), Mixing(4), shards, engine=engine), over_shards)
    assert not (tmp_path / "work").exists()


def test_sections_do_not_depend_on_the_shards(tmp_path: Path) -> None:
    """Without shuffling, lists are visited in order, however they are divided on disk."""
    shards = written(tmp_path / "corpus", (0, 3, 17, 17, 31))
    one, other = (mixed(AROW(), Mixing(3), lists, shuffle=False) for lists in (CORPUS, shards))
    assert bits(one.state) == bits(other.state)


@dataclass
class Killing(Engine):
    """Worker processes, of which the one that gets the first section of the second epoch is killed halfway, once."""

    inner: Engine
    mark: Path
    name = "processes"
    workers = 2

    def map(self, function: Any, tasks: Any) -> Any:
        assert function is learn
        return self.inner.map(killed_once, [(task, self.mark) for task in tasks])


def killed_once(task: tuple[SectionEpoch, Path]) -> Learned:
    section, mark = task
    if section.epoch == 1 and section.first == 0 and not mark.exists():
        mark.touch()
        learn(section)
        os.kill(os.getpid(), signal.SIGKILL)
    return learn(section)


def test_a_killed_worker_changes_nothing(processes: Engine, tmp_path: Path) -> None:
    plain, killing = mixed(RDA(l1=0.01), Mixing(3)), Killing(processes, tmp_path / "mark")
    found = mixed(RDA(l1=0.01), Mixing(3), engine=killing, workspace=tmp_path / "work")
    assert (tmp_path / "mark").exists()
    same(found, plain)


def test_the_best_epoch_and_patience() -> None:
    scores = iter([0.5, 0.7, 0.6, 0.7, 0.9])
    found = mixed(Perceptron(), Mixing(2), epochs=5, patience=2, evaluate_dev=lambda _: next(scores))
    assert [line["dev"] for line in found.history] == [0.5, 0.7, 0.6, 0.7]
    assert found.epoch == 2
    assert bits(found.state) == bits(mixed(Perceptron(), Mixing(2), epochs=2).state)


def test_going_on_from_a_model() -> None:
    """Three epochs are two and one more, whoever trains them; what was known counts once."""
    first = mixed(AROW(), Mixing(3), epochs=2)
    found = mixed(AROW(), Mixing(3), epochs=1, warm=(first.state, 2))
    assert bits(found.state) == bits(mixed(AROW(), Mixing(3)).state)


def test_more_sections_than_lists_and_joint_selection() -> None:
    few = CORPUS.slice(0, 3)
    found = train_mixed(Perceptron(), few, targets(few), mixing=Mixing(50, keep=2), epochs=2, seed=1)
    assert isinstance(found.weights["last"], Weights)
    assert 0 < np.count_nonzero(found.weights["last"].w) <= 2
    assert found.samples[-1] == 6


@pytest.mark.parametrize("name", ["perceptron", "rda", "arow", "ftrl", "arda", "sop", "tg", "uwin", "nherd"])
def test_columns_that_no_section_touches_stay_what_they_are(name: str) -> None:
    """Forty columns more, of which nothing is known or (from a model) something: the same, beside them."""
    learner = build(learners, {"name": name}, "learner")
    wide = Corpus(**{**CORPUS.__dict__, "width": CORPUS.width + 40})
    known = learner.init(wide.width)
    everything = random_corpus(9, lists=8, width=wide.width)
    learner.epoch(everything, targets(everything), np.arange(8), known)
    found = mixed(learner, Mixing(3), wide, warm=(known, 1)).weights
    for predictor in ("last", "average"):
        assert np.isfinite(found[predictor].w).all()
    if name not in ("rda", "arda", "tg", "uwin"):  # whose weights change with every update
        np.testing.assert_array_equal(found["last"].w[CORPUS.width :], learner.last(known).w[CORPUS.width :])
    plain = mixed(learner, Mixing(3)).weights["last"].w
    np.testing.assert_allclose(mixed(learner, Mixing(3), wide).weights["last"].w, np.append(plain, np.zeros(40)))


@dataclass(frozen=True)
class Counting(Perceptron):
    """The perceptron, counting its passes in a number that no rule of mixing knows."""

    name: ClassVar[str] = "counting"

    def init(self, columns: int, candidates: int = 0) -> State:  # noqa: ARG002
        return fresh(columns, rest=1)

    def finish(self, state: State, sums: Any) -> None:  # noqa: ARG002
        state.numbers[REST] += 1


@dataclass(frozen=True)
class Combining(Counting):
    """The same, with a say in what becomes of the passes of sections."""

    def combined(self, shards: ShardStates, rule: str) -> State:
        state = super().combined(shards, rule)
        state.numbers[REST] = shards.summed(lambda end: end.numbers[REST])
        return state


def test_a_state_that_no_rule_knows_is_refused_before_training() -> None:
    corpus = random_corpus(1)
    assert train(Counting(), corpus, targets(corpus), epochs=2, seed=1).state.numbers[REST] == 2
    message = r"counting keeps a state of its own \(init\), .* or give Counting a method combined"
    with pytest.raises(RecipeError, match=message):
        train_mixed(Counting(), corpus, targets(corpus), mixing=Mixing(shards=3), epochs=2, seed=1)


def test_a_learner_says_how_its_states_are_combined() -> None:
    corpus = random_corpus(1)
    mixed = train_mixed(Combining(), corpus, targets(corpus), mixing=Mixing(shards=3), epochs=2, seed=1)
    plain = train_mixed(Perceptron(), corpus, targets(corpus), mixing=Mixing(shards=3), epochs=2, seed=1)
    assert mixed.state.numbers[REST] == 3 * 2
    np.testing.assert_array_equal(mixed.weights["average"].w, plain.weights["average"].w)
