"""Sets: noise in training labels only, the same features on both sides, and errors for what does not fit."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small_classes

from rerank.base.errors import DataError, RecipeError
from rerank.contrib.classification.sets import ExampleSet, Sets


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return small_classes.write_set(tmp_path)


def loaded(root: Path, seed: int = 1, **data: Any) -> ExampleSet:
    sets = Sets(small_classes.recipe(root, data=data))
    (name,) = sets.sources
    return sets.draw(name, seed)


def test_every_example_is_tested_once(root: Path) -> None:
    found = loaded(root)
    parts = [found.split(number, 0.0, 1) for number in range(found.splits)]
    assert found.splits == small_classes.FOLDS
    assert np.array_equal(np.sort(np.concatenate([index for _, _, index in parts])), np.arange(small_classes.SIZE))
    for train, test, index in parts:
        assert train.size + test.size == small_classes.SIZE
        assert np.array_equal(test.label, found.examples.label[index])


def test_noise_is_in_training_labels_only_and_the_same_in_all_folds(root: Path) -> None:
    found = loaded(root)
    clean = found.examples.label
    noisy = found.noisy(0.3, 7).label
    assert 0.15 < np.mean(noisy != clean) < 0.45
    for number in range(found.splits):
        train, test, index = found.split(number, 0.3, 7)
        rest = np.setdiff1d(np.arange(small_classes.SIZE), index)
        assert np.array_equal(test.label, clean[index])
        assert np.array_equal(train.label, noisy[rest])
    assert not np.array_equal(found.noisy(0.3, 8).label, noisy)
    assert np.array_equal(found.noisy(0.0, 8).label, clean)


def test_train_and_test_files_share_classes_columns_and_scale(tmp_path: Path) -> None:
    (tmp_path / "train").write_text("1 1:2 2:4\n-1 1:1\n")
    (tmp_path / "test").write_text("-1 1:1 2:8 9:1\n")
    found = loaded(tmp_path, sets={}, train=str(tmp_path / "train"), test=str(tmp_path / "test"), scale="max", bias=1)
    assert found.test is not None
    assert found.splits == 1
    assert found.examples.width == found.test.width == 3
    assert found.examples.classes == found.test.classes == ("-1", "1")
    assert found.examples.values.tolist() == [1.0, 1.0, 1.0, 0.5, 1.0]
    assert found.test.values.tolist() == [0.5, 2.0, 1.0]
    train, test, _ = found.split(0, 0.0, 1)
    assert test.label.tolist() == [0]
    assert train.size == 2


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"sets": ["absent"]}, DataError, "absent.svm.gz: no such file; the recipe needs"),
        ({"sets": {}, "path": "nowhere.svm"}, DataError, "nowhere.svm"),
        ({"sets": {}, "path": "-"}, RecipeError, "more than once"),
        ({"sets": {}, "generator": {"name": "winow"}}, RecipeError, "data.generator.name: unknown generator 'winow'"),
        ({"sets": {}, "generator": {"name": "winnow", "dimension": 2}}, RecipeError, "data.generator.dimension"),
    ],
)
def test_what_is_not_there_is_said(root: Path, change: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error) as raised:
        loaded(root, **change)
    assert message in str(raised.value)


def test_wrong_fold_numbers(root: Path) -> None:
    folds = root / "marked.folds.txt"
    small_classes.write_folds(folds, size=small_classes.SIZE - 1)
    with pytest.raises(DataError, match=r"marked\.folds\.txt"):
        loaded(root)
    folds.write_text("0\n" * small_classes.SIZE)
    with pytest.raises(DataError, match=r"all examples are in fold 0"):
        loaded(root)


def test_one_class_is_no_classification(root: Path) -> None:
    small_classes.write_examples(root / "marked.svm.gz", classes=("+1",))
    with pytest.raises(DataError, match=r"all labels are '1'; expected at least two classes"):
        loaded(root)


def test_labels_of_three_classes_are_not_flipped(root: Path) -> None:
    small_classes.write_examples(root / "marked.svm.gz", classes=("a", "b", "c"))
    with pytest.raises(RecipeError, match=r"data\.noise: .*has 3"):
        loaded(root).split(0, 0.1, 1)
