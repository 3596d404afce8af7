"""What keeps its results under a key is not done again, whatever it is; where they are damaged or of other work it is,
and the end has the same bytes: training by a learner of each family, the search for the weight of the base
score, the runs of a recipe."""

import logging
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small
import small_classes
from strategies import in_parts, random_corpus, targets
from variants import FAMILIES, LEARNERS

from rerank.learn.base_weight import BaseSearch
from rerank.learn.epoch import UpdateLog
from rerank.learn.learner import Weights, learners
from rerank.learn.rules.dual_averaging import VotedRDA
from rerank.learn.train import ListProblem, Training, score_on, train
from rerank.metrics.gain import Gain
from rerank.metrics.metric import oracles
from rerank.runs import experiment
from rerank.storage.outputs import Work

CORPUS = random_corpus(6, lists=30)
TIMES = {"seconds", "nonzeros_per_second"}


class BrokenOffError(KeyboardInterrupt):
    """An interruption."""


@contextmanager
def broken_off(after: int) -> Iterator[list[Path]]:
    """Within the block, work breaks off once so many results are saved (never, if 0); gives their places."""
    saved, save = list[Path](), Work.save

    def save_and_note(result: Work, *arguments: Any) -> None:
        save(result, *arguments)
        saved.append(result.path)
        if len(saved) == after:
            raise BrokenOffError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Work, "save", save_and_note)
        yield saved


def content(training: Training) -> list[Any]:
    """Everything of a training but its times."""
    lines = [{key: value for key, value in line.items() if key not in TIMES} for line in training.history]
    arrays = [*training.state, *(training.log or UpdateLog()).arrays().values()]
    weights = [(name, own.w.tobytes(), own.base) for name, own in training.weights.items()]
    counts = training.epoch, training.skipped
    return [lines, [np.asarray(array).tobytes() for array in arrays], weights, counts]


def dev(weights: Weights) -> float:
    """Any number that depends on the weights."""
    return float(np.abs(weights.w).sum() % 1)


def learning(name: str, place: Path, key: str) -> Any:
    learner = learners.get(name)(**LEARNERS[name].variants[0])
    checkpoint = Work(place / "kept.npz", key)
    lists = in_parts(place.with_name(f"{place.name}-lists"), CORPUS, (0, 7, 8, 8, 30))
    how: Any = {"epochs": 3, "keep_log": True, "observers": [score_on(dev)], "checkpoint": checkpoint}
    return content(train(learner, ListProblem(lists, oracles(lists), 2), **how))


def searching(place: Path, key: str) -> Any:
    corpus = replace(CORPUS, stats=CORPUS.gain[:, None], reference=np.ones((CORPUS.list_count, 1)))
    search, problem = BaseSearch(corpus, Gain()), ListProblem(corpus, targets(corpus), 2)
    checkpoint = Work(place / "kept.npz", key)
    training = train(VotedRDA(base=0.02), problem, epochs=4, observers=[search.observe], checkpoint=checkpoint)
    search.finish(training, "average")
    return content(training)


def running(data: Path, place: Path, _: str) -> Any:
    runs = [{"name": name, "set": {"learner": {"name": name}}} for name in ("perceptron", "pa", "sgd")]
    recipe = small.recipe(data, runs=runs, training={"epochs": 1, "checkpoint": 1e9})
    output = place / "out"
    experiment.run(recipe, output, resume=True)
    return small.results(output), {
        name: zlib.crc32(own) for name, own in small.files_of(output / "model").items() if "npy" in name
    }


def running_examples(_data: Path, place: Path, _: str) -> Any:
    sets = place.parent / "sets"
    sets.mkdir(exist_ok=True)
    for name in "ab":
        small_classes.write_set(sets, name, seed=ord(name))
    runs = [{"name": "perceptron"}, {"name": "pa", "set": {"learner": {"name": "pa"}, "tune.epochs": 2}}]
    recipe = small_classes.recipe(sets, data={"sets": ["a", "b"]}, runs=runs, seeds=[1, 2])
    found = experiment.run(recipe, place / "out", resume=True)
    hardest = (place / "out" / "report.html").read_text().split("Hardest examples of")[1:]
    predicted = small.files_of(place / "out" / "predictions")
    return small_classes.steady(found), predicted, [part.partition("</table>")[0] for part in hardest]


Done = Callable[[Path, str], Any]  # does it, with results below a place, under a key
CHECKPOINTS: dict[str, Done] = {
    **{f"training by {name}": partial(learning, name) for name in FAMILIES},
    "the weight of the base score": searching,
}
RUNNING = {"runs": running, "runs over examples": running_examples}
KINDS = [*CHECKPOINTS, *RUNNING]


@pytest.fixture
def work(request: pytest.FixtureRequest) -> Done:
    """The work of a kind."""
    kind = request.param
    if kind in CHECKPOINTS:
        return CHECKPOINTS[kind]
    return partial(RUNNING[kind], request.getfixturevalue("small_data"))


@pytest.mark.parametrize(("work", "after"), list(zip(KINDS, cycle([1, 2]), strict=False)), indirect=["work"])
def test_what_was_broken_off_is_resumed(work: Done, after: int, tmp_path: Path) -> None:
    with broken_off(0) as whole:
        expected = work(tmp_path / "whole", "key")
    with broken_off(after) as first, pytest.raises(BrokenOffError):
        work(tmp_path / "here", "key")
    with broken_off(0) as rest:
        assert work(tmp_path / "here", "key") == expected
    assert len(first) == after < len(whole)
    assert len(rest) == len(whole) - after


@pytest.mark.parametrize("key", ["key", "other"], ids=["damaged", "of other work"])
@pytest.mark.parametrize("work", ["training by rda", "the weight of the base score"], indirect=True)
def test_damaged_results_and_those_of_other_work_are_not_used(
    work: Done, key: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with broken_off(0) as whole:
        expected = work(tmp_path / "whole", key)
    with broken_off(2) as first, pytest.raises(BrokenOffError):
        work(tmp_path / "here", "key")
    if key == "key":
        damaged = bytearray(first[-1].read_bytes())
        damaged[len(damaged) // 2 :] = bytes(len(damaged) - len(damaged) // 2)
        first[-1].write_bytes(damaged)
    with broken_off(0) as rest, caplog.at_level(logging.WARNING, "rerank"):
        assert work(tmp_path / "here", key) == expected
    assert ("cannot be read" in caplog.text) == (key == "key")
    assert len(rest) == len(whole)


def test_a_result_is_read_as_it_was_written(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    kept = Work(tmp_path / "here.npz", "a")
    assert kept.load() is None
    kept.save({"x": 1}, {"y": np.arange(3), "z": np.asfortranarray(np.eye(2))})
    header, arrays = kept.load() or ({}, {})
    assert (header, arrays["y"].tolist(), arrays["z"].tolist()) == ({"x": 1}, [0, 1, 2], np.eye(2).tolist())
    assert arrays["z"].flags.f_contiguous
    assert Work(tmp_path / "here.npz", "b").load() is None
    assert "cannot be read" not in caplog.text
    (tmp_path / "here.npz").write_bytes(b"PK")
    assert kept.load() is None
    assert "cannot be read" in caplog.text
