"""Score columns compared with those of training: what is alike is not called unlike, and what is not, is soon."""

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from rerank.extraction.seen import AGREEMENT, MEAN, SPREAD, SeenLists, SeenSample
from rerank.models.drift import ALPHA, COMPARED, ColumnSeen, Drift, columns_seen
from rerank.readers.base import read_lists
from rerank.readers.lists import Lists
from rerank.readers.texts.jsonl import JsonlReader

SHIPPED = Path(__file__).parents[2] / "data"
COLUMNS = "score", "acoustic", "lm"


def lists_of(split: str) -> list[Lists]:
    return list(read_lists(JsonlReader(), str(SHIPPED / "asr" / f"{split}.jsonl.gz")))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def train() -> SeenSample:
    """The transcripts of the training split."""
    found = SeenLists(COLUMNS)
    for nbest in lists_of("train"):
        found.add(nbest)
    return found.finish()


@pytest.fixture(scope="module")
def known(train: SeenSample) -> dict[str, Any]:
    return columns_seen(COLUMNS, COLUMNS, train)


def changed(nbest: Lists, how: str) -> Lists:
    """A list with another sign of the language model, or with two columns exchanged."""
    scores, at = nbest.scores.copy(), {name: nbest.names.index(name) for name in COLUMNS}
    if how == "sign":
        scores[:, at["lm"]] *= -1
    else:
        scores[:, [at["lm"], at["acoustic"]]] = scores[:, [at["acoustic"], at["lm"]]]
    return nbest.changed(scores=scores)


def drift_of(known: dict[str, Any], lists: list[Lists]) -> Drift:
    found = Drift(known)
    for nbest in lists:
        found.see(nbest)
    return found


def test_what_is_kept_is_what_the_lists_are_like(train: SeenSample, known: dict[str, Any]) -> None:
    assert list(known) == list(COLUMNS)
    own, values = known["lm"], train.measures[:, 2]
    for name, measure in zip(COMPARED, (MEAN, SPREAD, AGREEMENT), strict=True):
        assert own[name] == pytest.approx(values[:, measure].mean())
        for cut, below in zip(own["cuts"][measure], own["below"][measure], strict=True):
            assert below == np.count_nonzero(values[:, measure] <= cut)
    assert own["lists"] == train.digests.size
    assert own["least"] <= own["mean"] <= own["greatest"]


def test_a_drift_that_has_seen_the_training_lists_says_what_is_known_of_them(
    train: SeenSample, known: dict[str, Any]
) -> None:
    whole, parts = Drift(known), drift_of(known, lists_of("train"))
    whole.take(*train.measures)
    for name, own in known.items():
        for found in (whole.of(name), parts.of(name)):
            assert found == pytest.approx({key: own[key] for key in found})
    assert whole.unlike() == parts.unlike() == {}


def test_parts_of_the_training_lists_are_never_called_unlike_them(train: SeenSample) -> None:
    """200 halves, each with four looks at more and more of the other: ``ALPHA`` allows a fiftieth of an alarm."""
    rng, alarms = np.random.default_rng(0), 0
    for _ in range(200):
        order = rng.permutation(train.digests.size)
        half = len(order) // 2
        found = Drift(columns_seen(COLUMNS, COLUMNS, SeenSample(*(array[order[:half]] for array in train))))
        for first, last in ((half, half + 1), (half + 1, half + 3), (half + 3, half + 40), (half + 40, None)):
            found.take(*train.measures[order[first:last]])
            alarms += bool(found.unlike())
    assert ALPHA * 200 < 0.05
    assert alarms == 0


@pytest.mark.parametrize(("how", "columns"), [("sign", {"lm"}), ("exchanged", {"lm", "acoustic"})])
def test_another_sign_and_exchanged_columns_are_seen_from_a_few_dozen_lists(
    known: dict[str, Any], how: str, columns: set[str]
) -> None:
    lists = [changed(nbest, how) for nbest in lists_of("test")]
    assert drift_of(known, lists[:3]).unlike() == {}
    assert set(drift_of(known, lists[:40]).unlike()) == columns
    assert drift_of(known, lists_of("test")).unlike() == {}


def test_less_than_all_values_and_more_than_none_are_seen(known: dict[str, Any]) -> None:
    zeros = [nbest.changed(scores=np.zeros_like(nbest.scores)) for nbest in lists_of("test")]
    assert set(drift_of(known, zeros).unlike()) == set(COLUMNS)
    constant = {"score": ColumnSeen.of(np.zeros((200, 5))).model_dump()}
    for sign in (-1.0, 1.0):
        found = Drift(constant)
        found.take(*np.full((60, 1, 5), 0.001 * sign))
        assert "mean" in found.unlike()["score"]


def test_a_column_is_warned_of_once(
    known: dict[str, Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(logging.getLogger("rerank"), "propagate", True)
    monkeypatch.setattr(logging.getLogger("rerank"), "handlers", [])
    found = Drift(known)
    for nbest in lists_of("test"):
        found.watch(changed(nbest, "sign"))
    for _ in found.through(lists_of("dev")):
        pass
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "the score column 'lm' is unlike that of the training lists: mean " in caplog.text


def test_models_that_know_nothing_of_their_columns_say_nothing() -> None:
    found = drift_of({}, lists_of("dev"))
    assert (found.lists, found.unlike(), found.warnings()) == (0, {}, [])


def test_damaged_columns_are_refused(known: dict[str, Any]) -> None:
    for change in ({"cuts": known["lm"]["cuts"][:2]}, {"below": [[1], [1], [1]]}, {"lists": 0}, {"mean": float("nan")}):
        with pytest.raises(ValidationError):
            ColumnSeen.model_validate({**known["lm"], **change})
