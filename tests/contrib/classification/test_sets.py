"""Sets of examples: files, noise in training labels only, folds and held-out parts, generators beside a slow twin."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small_classes
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_svmlight_file

from rerank.base.errors import DataError, RecipeError
from rerank.contrib.classification.fitting import divisions_of, hold_out
from rerank.contrib.classification.sets import (
    Ellipse,
    ExampleSet,
    Sets,
    Winnow,
    Zipf,
    draw_folds,
    read_folds,
    read_svmlight,
)
from rerank.data.labelled import Labelled


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


def test_train_and_test_files_share_classes_and_columns(tmp_path: Path) -> None:
    (tmp_path / "train").write_text("1 1:2 2:4\n-1 1:1\n")
    (tmp_path / "test").write_text("-1 1:1 2:8 9:1\n")
    found = loaded(tmp_path, sets={}, train=str(tmp_path / "train"), test=str(tmp_path / "test"), bias=1)
    assert found.test is not None
    assert found.splits == 1
    assert found.examples.width == found.test.width == 3
    assert found.examples.classes == found.test.classes == ("-1", "1")
    assert found.examples.values.tolist() == [2.0, 4.0, 1.0, 1.0, 1.0]
    assert found.test.values.tolist() == [1.0, 8.0, 1.0]
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


labels = st.lists(st.integers(0, 3), min_size=2, max_size=60).map(np.array)


@given(labels, st.integers(2, 12), st.integers(0, 5))
def test_folds_share_out_every_class(label: np.ndarray, count: int, seed: int) -> None:
    if label.size < count:
        with pytest.raises(DataError):
            draw_folds(label, count, seed)
        return
    folds = draw_folds(label, count, seed)
    sizes = np.bincount(folds, minlength=count)
    assert sizes.size == count
    assert np.ptp(sizes) <= 1
    for each in np.unique(label):
        assert np.ptp(np.bincount(folds[label == each], minlength=count)) <= 1
    assert np.array_equal(folds, draw_folds(label, count, seed))


@given(labels, st.floats(0.05, 0.95), st.integers(0, 5))
def test_held_out_divides_the_examples(label: np.ndarray, share: float, seed: int) -> None:
    first, second = hold_out(label, share, seed)
    assert first.size
    assert second.size
    assert np.array_equal(np.sort(np.concatenate([first, second])), np.arange(label.size))
    if label.size >= 40:
        assert abs(second.size - share * label.size) <= 4  # half an example a class, and rounding
    assert np.array_equal(second, hold_out(label, share, seed)[1])


@pytest.mark.parametrize(("examples", "folds", "count"), [(20, 5, 5), (3, 5, 3), (2, 2, 2)])
def test_tuning_judges_every_example_once(examples: int, folds: int, count: int) -> None:
    found = divisions_of(np.arange(examples) % 2, None, folds, 1)
    assert len(found) == count
    assert sorted(np.concatenate([judges for _, judges in found]).tolist()) == list(range(examples))
    for trains, judges in found:
        assert sorted([*trains.tolist(), *judges.tolist()]) == list(range(examples))


G, MASK = 0x9E3779B97F4A7C15, (1 << 64) - 1


def mix(z: int) -> int:
    z &= MASK
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return z ^ z >> 31


def stream(seed: int) -> Iterator[int]:
    while True:
        seed = seed + G & MASK
        yield mix(seed)


def unit(h: int) -> float:
    return (h >> 11) * 2.0**-53


def naive_winnow(d: int, seed: int, n: int) -> tuple[list[list[int]], list[int]]:
    drawn, features, labels = stream(seed), [], []
    while len(labels) < n:
        words = [next(drawn) for _ in range(math.ceil(d / 64))]
        x = [words[j // 64] >> j % 64 & 1 for j in range(d)]
        m = sum(x[:5]) - x[5] - 2
        if abs(m) < 1:
            continue
        labels.append(int((m > 0) != (unit(next(drawn)) < 0.05)))
        features.append([j for j in range(d) if x[j]])
    return features, labels


def features_of(examples: Labelled, first: int, last: int) -> list[list[int]]:
    return [examples.columns[examples.rows[i] : examples.rows[i + 1]].tolist() for i in range(first, last)]


@pytest.mark.parametrize(("d", "seed"), [(6, 6), (64, 3), (65, 2**64 - 1), (500, 500)])
def test_winnow_is_its_definition(d: int, seed: int) -> None:
    features, labels = naive_winnow(d, seed, 2000)
    train, test = Winnow(d).draw(seed)
    assert features_of(train, 0, 1000) == features[:1000]
    assert features_of(test, 0, 1000) == features[1000:]
    assert [*train.label, *test.label] == labels
    assert train.width == test.width == d
    assert train.classes == ("-1", "1")
    assert (train.values == 1).all()
    assert train.values[0] == 1


def naive_zipf(i: int) -> tuple[list[int], int, bool]:
    """(ids, label, whether it is flipped) of example i."""
    ids: list[int] = []
    for j in range(160):
        h = mix(2012 + (i * 256 + j + 1) * G)
        e = h % 20
        name = 2**e + (h >> 32 & 2**e - 1)
        if name not in ids and len(ids) < 80:
            ids.append(name)
    total = sum((mix(77 + name * G) >> 40) - 8388608 for name in ids)
    flipped = unit(mix(2012 + (i * 256 + 256) * G)) < 0.05
    return sorted(ids), int((total > -14506303) != flipped), flipped


def test_zipf_is_its_definition() -> None:
    train, test = Zipf(150, 50).draw(1)
    expected = [naive_zipf(i) for i in range(200)]
    ids = [*features_of(train, 0, 150), *features_of(test, 0, 50)]
    assert [[j + 1 for j in row] for row in ids] == [row for row, _, _ in expected]
    assert [*train.label, *test.label] == [label for _, label, _ in expected]


def test_zipf_has_the_counts_of_its_definition() -> None:
    """Over several blocks; the bytes of its text, "+1 1:1 2:1 ..." and a line feed, are computed, not written."""
    train, test = Zipf(30_000, 3_000).draw(1)
    assert (train.size, test.size) == (30_000, 3_000)
    assert (int(train.label.sum()), int(test.label.sum())) == (15_072, 1_503)
    digits = sum(np.count_nonzero(train.columns + 1 >= 10**power) for power in range(7))
    assert digits + 3 * train.nonzeros + 3 * train.size == 16_477_327  # " :1" a feature, "+1" and "\n" an example
    assert train.width == 2**20 - 1


def test_ellipse_is_a_turned_gaussian() -> None:
    train, test = Ellipse(5000, 20_000, 0.1).draw(1)
    X = test.values.reshape(-1, 20).astype(float)
    short, long = (X[:, 0] + X[:, 1]) / np.sqrt(2), (X[:, 1] - X[:, 0]) / np.sqrt(2)
    assert np.array_equal(test.label == 1, short > 0)
    assert short.std() == pytest.approx(1, rel=0.03)
    assert long.std() == pytest.approx(10, rel=0.03)
    assert abs(np.corrcoef(short, long)[0, 1]) < 0.03
    assert X[:, 2:].std(axis=0) == pytest.approx(np.full(18, 2.0), rel=0.03)
    x = train.values.reshape(-1, 20)
    assert np.mean((train.label == 1) != (x[:, 0] + x[:, 1] > 0)) == pytest.approx(0.1, abs=0.015)
    clean, _ = Ellipse(5000, 20_000, 0.0).draw(1)
    assert np.array_equal(clean.values, train.values)
    assert np.array_equal(clean.label == 1, x[:, 0] + x[:, 1] > 0)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("svmlight") / "file.svm"


def read(place: Path, text: bytes) -> Labelled:
    place.write_bytes(text)
    return read_svmlight(place)


def fails(place: Path, text: bytes) -> str:
    with pytest.raises(DataError) as caught:
        read(place, text)
    return str(caught.value).removeprefix(str(place))


@pytest.mark.parametrize("lowest", [0, 1])
@pytest.mark.parametrize("grouped", [False, True])
def test_files_are_what_scikit_learn_reads(place: Path, lowest: int, grouped: bool) -> None:
    rng, lines = np.random.default_rng(lowest), ["# a: comment, é", ""]
    for i in range(200):
        ids = np.sort(rng.choice(np.arange(lowest, 60), rng.integers(0, 9), replace=False))
        values = [f"{value:{rng.choice(['.3e', '.17g', '+.2f', '.0f'])}}" for value in rng.normal(0, 100, ids.size)]
        pairs = [f"{j}:{value}" for j, value in zip(ids, values, strict=True)]
        label = rng.choice(["+1", "-1", "1.0", "0.5", "3e0"])
        tokens = [label, *[f"qid:{i // 7}"] * grouped, *pairs]
        lines.append(rng.choice([" ", "  ", "\t"]).join(tokens) + rng.choice(["", " ", "\r", " # end 1:1", "#"]))
    place.write_text("\n".join([*lines, f"1 {'qid:1 ' * grouped}{lowest}:1 59:1"]), newline="")
    x, y, *group = load_svmlight_file(str(place), dtype=np.float32, query_id=grouped)
    found = read_svmlight(place)
    assert [float(found.classes[c]) for c in found.label] == y.tolist()
    assert found.group.tolist() == [number for numbers in group for number in numbers]
    assert (found.width, found.rows.tolist(), found.columns.tolist()) == (
        x.shape[1], x.indptr.tolist(), x.indices.tolist(),
    )  # fmt: skip
    assert np.array_equal(found.values, x.data)


def test_labels_may_be_words_and_ids_in_any_order(place: Path) -> None:
    found = read(place, "größer 3:2 1:1\r\n\v\nspam\n".encode())
    assert [found.classes[c] for c in found.label] == ["größer", "spam"]
    assert (found.rows.tolist(), found.columns.tolist(), found.values.tolist()) == ([0, 2, 2], [0, 2], [1, 2])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", ": no examples; expected"),
        (b"# only\n\n", ": no examples"),
        (b"1 1:1\n1 1:1 1:2\n", ":2: found id 1 twice"),
        (b"1 1:1\n\n1,2 1:1\n", ":3: found label '1,2'; expected a finite number or a word without commas"),
        (b" 1:1 2:1\n", ":1: found '1:1'; expected LABEL ID:VALUE"),
        (b"1 1:nan\n", ":1: found '1:nan'; expected LABEL ID:VALUE ..., with whole numbers as ids"),
        (b"1 1:1e39\n", ":1: found 1:1e+39; expected ids up to 2,147,483,646 and values of at most 3.403e+38"),
        (b"1 1:1_0\n", ":1: found '1:1_0'"),
        (b"1 qid:x 1:1\n", ":1: found 'qid:x'"),
        (b"1 qid:1 1:1\n1 1:1\n", ":2: found an example with a qid beside one without"),
        (b"1 1:1\n1 qid:1 1:1\n", ":2: found an example with a qid beside one without"),
        (b"1 2147483647:1\n", ":1: found 2147483647:1; expected ids up to 2,147,483,646"),
        (b"nan 1:1\n", ":1: found label 'nan'"),
        (b"1e999 1:1\n", ":1: found label '1e999'"),
        (b"\xff 1:1\n", ":1: found label '\ufffd'"),
        (b"1 \x1b[31m\xff:1\n", ":1: found '\\x1b[31m\ufffd:1'"),
    ],
)
def test_errors_say_where_and_what(place, text: bytes, message: str) -> None:
    assert fails(place, text).startswith(message)


def test_values_are_rounded_to_the_nearest_double_and_then_to_single_precision(place) -> None:
    numbers = "1.00000005960464477539062500000000001", "7.006492321624085e-46", "1e-400", "16777217"
    found = read(place, "".join(f"1 3:{number}\n" for number in numbers).encode())
    assert found.values.tolist() == [float(np.float32(float(number))) for number in numbers]


def test_columns_begin_at_0_or_1(place) -> None:
    assert read(place, b"1 1:1 4:1\n").columns.tolist() == [0, 3]
    assert read(place, b"1 1:1 4:1\n2 0:1\n").columns.tolist() == [1, 4, 0]
    assert read(place, b"1\n-1\n").width == 0


def test_a_file_of_several_megabytes(place) -> None:
    rng = np.random.default_rng(0)
    ids, numbers = rng.permutation(70_000), rng.random(70_000).astype(np.float32)
    row = " ".join(f"{j}:{v}" for j, v in zip(ids, numbers, strict=True))
    found = read(place, f"0 {row}\n{''.join(f'{i}.5 7:1{chr(10)}' for i in range(3000))}".encode())
    assert found.columns[:70_000].tolist() == list(range(70_000))
    assert np.array_equal(found.values[:70_000], numbers[np.argsort(ids)])
    assert [found.classes[c] for c in found.label] == ["0", *(f"{i}.5" for i in range(3000))]


# Folds


def test_folds(tmp_path: Path) -> None:
    path = tmp_path / "folds.txt"
    path.write_text("0\n2\r\n1")
    assert read_folds(path, 3).tolist() == [0, 2, 1]
    for text, n, message in [
        ("0\nx\n", 2, ":2: found 'x'; expected the number of a fold"),
        ("0\n\n1\n", 2, ":2: found ''"),
        ("0\n-1\n", 2, ":2: found '-1'"),
        ("0\n1\n", 3, ": found 2 fold numbers for 3 examples"),
        ("0\n1\n", 1, ": found 2 fold numbers for 1 examples"),
    ]:
        path.write_text(text)
        with pytest.raises(DataError) as caught:
            read_folds(path, n)
        assert str(caught.value).removeprefix(str(path)).startswith(message)
