"""Columns whose numbers are large beside what tells candidates apart, wherever numbers become float32."""

import json
import logging
import warnings
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from reference import dense
from scipy import sparse

import rerank
from rerank.contrib.sklearn import ListRanker
from rerank.contrib.sklearn.matrix import lists_of
from rerank.data.corpus import remarks_on
from rerank.extraction.extraction import extract_training
from rerank.features.sink import narrow
from rerank.recipes.loading import read_settings
from rerank.recipes.recipe import ListRecipe

SIZE, TRAIN, TEST = 5, 60, 150


class One(NamedTuple):
    """A list: what tells candidates apart (whole 64ths, which any offset here leaves exact), another number, and the
    place of the right candidate."""

    told: np.ndarray
    other: np.ndarray
    right: int


def drawn(seed: int, count: int) -> list[One]:
    rng, found = np.random.default_rng(seed), []
    for _ in range(count):
        right = int(rng.integers(SIZE))
        told = np.round(64 * (rng.normal(size=SIZE) + 2.2 * (np.arange(SIZE) == right))) / 64
        found.append(One(told, np.round(rng.normal(size=SIZE), 2), right))
    return found


LISTS = {"train": drawn(1, TRAIN), "test": drawn(2, TEST)}
GROUP = [SIZE] * TRAIN


def told(offset: float, split: str) -> Iterator[np.ndarray]:
    """The column of every list, whose offset is another in each, and 0 in one of ten."""
    for i, one in enumerate(LISTS[split]):
        yield one.told + offset * (0 if i % 10 == 9 else 1 + i % 7)


def write(root: Path, form: str, offset: float) -> None:
    for split, lists in LISTS.items():
        lines = list[str]()
        for i, (one, column) in enumerate(zip(lists, told(offset, split), strict=True)):
            gain = (np.arange(SIZE) == one.right).astype(int).tolist()
            rows = list(zip(range(SIZE), gain, column.tolist(), one.other.tolist(), strict=True))
            if form == "letor":
                lines += [f"{g} qid:{i} 1:{t!r} 2:{o!r} # docid = {y}" for y, g, t, o in rows]
            else:
                entries = [{"text": str(y), "told": t, "other": o, "gain": g} for y, g, t, o in rows]
                lines.append(json.dumps({"id": str(i), "candidates": entries}))
        (root / f"{split}.{form}").write_text("".join(f"{line}\n" for line in lines))


def share_right(chosen: list[int]) -> float:
    return float(np.mean([place == one.right for place, one in zip(chosen, LISTS["test"], strict=True)]))


@pytest.mark.parametrize("form", ["jsonl", "letor"])
def test_an_offset_changes_no_choice(form: str, tmp_path: Path) -> None:
    chosen = {}
    for offset in (0.0, 1e7, 1e12):
        write(tmp_path, form, offset)
        train, test = (list(rerank.read(tmp_path / f"{split}.{form}", form)) for split in LISTS)
        model = rerank.fit(train, learner="maxent", features=["Dense"], metric="gain")
        chosen[offset] = [int(model.best(one).text) for one in test]
        ranked = model.rank_many(tmp_path / f"test.{form}", format=form)
        assert [int(ranking.best.text) for ranking in ranked] == chosen[offset]
    best = share_right([int(one.told.argmax()) for one in LISTS["test"]])
    assert share_right(chosen[0.0]) > best - 0.05
    assert chosen[1e7] == chosen[1e12] == chosen[0.0]


def stacked(offset: float, split: str = "train") -> np.ndarray:
    other = np.concatenate([one.other for one in LISTS[split]])
    return np.column_stack([np.concatenate(list(told(offset, split))), other, np.full(other.size, 0.1)])


GAIN = np.concatenate([np.arange(SIZE) == one.right for one in LISTS["train"]]).astype(float)


@pytest.mark.parametrize("form", [np.array, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("learner", ["maxent", "arow"])
def test_rankers_of_arrays_choose_alike(form: Any, learner: str) -> None:
    chosen = []
    for offset in (0.0, 1e12):
        ranker = ListRanker(learner=learner, random_state=0).fit(form(stacked(offset)), GAIN, group=GROUP)
        chosen.append(ranker.best(form(stacked(offset, "test")), group=[SIZE] * TEST).tolist())
    assert chosen[0] == chosen[1]


@pytest.mark.parametrize("form", [np.array, sparse.csr_array], ids=["dense", "sparse"])
def test_values_of_arrays_are_relative_to_exact_means_where_float32_would_lose_them(form: Any) -> None:
    X = stacked(1e12)
    X[:SIZE, 1] = 5e6 + np.arange(SIZE)  # close together, but float32 has them all
    before = X.copy()
    found = dense(lists_of(form(X), GAIN, group=GROUP))
    for i in range(TRAIN):
        rows = slice(SIZE * i, SIZE * (i + 1))
        expected = X[rows].copy()
        for j in (0, 2):
            if j == 2 or i % 10 < 9:
                exact = [Fraction(x) for x in X[rows, j]]
                expected[:, j] = [float(x - sum(exact) / SIZE) for x in exact]
        np.testing.assert_allclose(found[rows], expected.astype(np.float32), rtol=1e-6, atol=1e-10)
    np.testing.assert_array_equal(X, before)
    plain = dense(lists_of(form(X), GAIN, group=GROUP, plain=True))
    np.testing.assert_array_equal(plain, X.astype(np.float32))


@pytest.mark.parametrize(
    ("values", "moved"),
    [
        ([1e12 + 0.25, 1e12 + 0.5, 1e12 - 3], True),
        ([-1e12 - 0.25, -1e12 + 0.5, -1e12], True),
        ([-7.125, -7.3, -6.9], False),
        ([16777217.0, 16777219.0, 16777300.0], True),
        ([5e6, 5e6 + 1, 5e6 + 2], False),
        ([1e30, 0.1, 0.2], False),
        ([1e12, 0.0, 1e12], False),
    ],
)
def test_narrow(values: list[float], moved: bool) -> None:
    exact, found, fired = np.array(values), np.zeros(3, np.float32), np.arange(3, dtype=np.int32)
    narrow(exact, fired, -1, True, found)
    mean = sum(map(Fraction, values)) / 3 if moved else 0
    assert found.tolist() == [float(np.float32(float(Fraction(value) - mean))) for value in values]
    narrow(exact, fired, -1, False, found)
    assert found.tolist() == exact.astype(np.float32).tolist()


def recipe(root: Path, **changes: Any) -> ListRecipe:
    data: dict[str, Any] = {"root": str(root), "dev": None, "nbest": "{root}/{split}.jsonl"}
    features = {"set": None, "templates": ["Dense"]}
    made = read_settings({"name": "offset", "task": "ranking", "data": data, "features": features, **changes})
    return made


def test_trees_get_plain_values(tmp_path: Path) -> None:
    write(tmp_path, "jsonl", 1e7)
    extracted, table = extract_training(recipe(tmp_path, learner={"name": "lambdamart"}))
    column = [table.name(j) for j in range(table.width)].index("Dense|told")
    values = dense(extracted.corpus)[:, column] / table.scale[column]
    np.testing.assert_allclose(values[:SIZE], np.full(SIZE, 1e7), rtol=1e-6)


def test_what_is_said_of_columns() -> None:
    low = np.linspace(-2.0, -1.0, 40)
    assert remarks_on("x", low, low + 2) == remarks_on("x", low, low) == remarks_on("x", low * 1e5, low * 1e5 + 1) == []
    (line,) = remarks_on("x", low + 1e9, low + 1e9 + 3)
    assert line.startswith("x varies by 3 in lists, but has the size 1e+09")
    high = low + 2
    high[7] = 1e30
    (line,) = remarks_on("x", low, high)
    assert line.startswith("x varies by 2 in most lists, but has the deviation 1.58e+29")
    (line,) = remarks_on("x", low, low + 2, 1e29)
    assert line.startswith("x varies by 2 in most lists, but has the deviation 1e+29")


def test_fits_say_it(tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging.getLogger("rerank"), "propagate", True)
    monkeypatch.setattr(logging.getLogger("rerank"), "handlers", [])
    caplog.set_level(logging.WARNING, "rerank")
    write(tmp_path, "jsonl", 1e12)
    train = list(rerank.read(tmp_path / "train.jsonl", "jsonl"))
    rerank.fit(train, learner="maxent", features=["Dense"], metric="gain")
    (line,) = {record.getMessage() for record in caplog.records if "but has" in record.getMessage()}
    assert line.startswith("train: the score column 'told' varies by ")
    caplog.clear()
    X = stacked(0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ListRanker().fit(X, GAIN, group=GROUP)
    X[3, 1] = -1e30
    with pytest.warns(UserWarning, match=r"column 1 of X varies by .* in most lists, but has the deviation 1.29e\+29"):
        ListRanker().fit(X, GAIN, group=GROUP)
