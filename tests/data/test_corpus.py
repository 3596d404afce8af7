"""Corpora in memory, and in parts on disk."""

import dataclasses
import json
import os
import pickle
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import bits, in_parts, random_corpus, targets
from variants import FAMILIES, LEARNERS

from rerank.base.errors import DataError
from rerank.contrib.classification.results import Classification
from rerank.data.corpus import DTYPES, Corpus, concatenate, save_joined, share_of
from rerank.learn.bounds import bounds, list_margins
from rerank.learn.epoch import UpdateLog, replay_corpus
from rerank.learn.learner import Learner, State, learners
from rerank.learn.pairs import Oracle
from rerank.learn.rules.additive import Perceptron
from rerank.learn.rules.dual_averaging import VotedRDA
from rerank.learn.train import ListProblem, Training, epoch_order, part_order, train
from rerank.learn.voting import vote
from rerank.metrics.metric import oracles, with_corpus_gains
from rerank.storage.files import seal

WIDTH = 7
ARRAYS = {
    "lists": np.int64,
    "rows": np.int64,
    "columns": np.int32,
    "values": np.float32,
    "base": np.float64,
    "gain": np.float64,
    "stats": np.float64,
    "reference": np.float64,
    "weight": np.float64,
}

# A list in plain Python: (weight, reference, candidates); a candidate: (base, gain, stats, {column: value}).
Plain = tuple[float, list[float], list[tuple[float, float, list[float], dict[int, float]]]]

NUMBERS = st.integers(-50, 50).map(float)
CANDIDATES = st.tuples(
    NUMBERS,
    NUMBERS,
    st.lists(NUMBERS, min_size=2, max_size=2),
    st.dictionaries(st.integers(0, WIDTH - 1), st.sampled_from([1.0, -2.0, 0.5]), max_size=4),
)
LISTS = st.lists(
    st.tuples(st.sampled_from([1.0, 2.0]), st.lists(NUMBERS, min_size=1, max_size=1), st.lists(CANDIDATES, max_size=4)),
    max_size=6,
)


def corpus_of(lists: Sequence[Plain], width: int = WIDTH, about: dict[str, Any] | None = None) -> Corpus:
    candidates = [candidate for _, _, of_list in lists for candidate in of_list]
    entries = [entry for *_, features in candidates for entry in sorted(features.items())]
    return Corpus(
        lists=np.concatenate([[0], np.cumsum([len(of_list) for *_, of_list in lists])]),
        rows=np.concatenate([[0], np.cumsum([len(features) for *_, features in candidates])]),
        columns=[column for column, _ in entries],
        values=[value for _, value in entries],
        base=[base for base, *_ in candidates],
        gain=[gain for _, gain, *_ in candidates],
        stats=np.array([stats for *_, stats, _ in candidates]).reshape(len(candidates), 2),
        reference=np.array([reference for _, reference, _ in lists]).reshape(len(lists), 1),
        weight=[weight for weight, *_ in lists],
        width=width,
        about=about or {},
    )


def plain(corpus: Corpus) -> list[Plain]:
    found: list[Plain] = []
    for i in range(corpus.list_count):
        candidates = []
        for y in range(corpus.lists[i], corpus.lists[i + 1]):
            row = slice(corpus.rows[y], corpus.rows[y + 1])
            features = dict(zip(corpus.columns[row].tolist(), corpus.values[row].tolist(), strict=True))
            candidates.append((float(corpus.base[y]), float(corpus.gain[y]), corpus.stats[y].tolist(), features))
        found.append((float(corpus.weight[i]), corpus.reference[i].tolist(), candidates))
    return found


EXAMPLE: list[Plain] = [
    (1.0, [5.0], [(-1.0, 0.5, [1.0, 2.0], {0: 1.0, 3: 2.0}), (-2.0, 0.75, [2.0, 2.0], {})]),
    (2.0, [6.0], []),
    (1.0, [7.0], [(-3.0, 0.25, [0.0, 1.0], {3: -1.0, 6: 0.5})]),
]


def fields(corpus: Corpus) -> dict[str, Any]:
    return {field.name: getattr(corpus, field.name) for field in dataclasses.fields(corpus)}


# Arrays


@given(LISTS)
@settings(max_examples=50, deadline=None)
def test_arrays_hold_what_they_were_made_of(lists: list[Plain]) -> None:
    corpus = corpus_of(lists)
    assert plain(corpus) == lists
    assert corpus.list_count == len(lists)
    assert corpus.candidate_count == sum(len(candidates) for *_, candidates in lists)
    assert corpus.nonzeros == sum(len(features) for *_, of_list in lists for *_, features in of_list)


def test_arrays_have_the_types_of_the_format_and_are_read_only() -> None:
    corpus = corpus_of(EXAMPLE)
    for name, dtype in ARRAYS.items():
        array = getattr(corpus, name)
        assert array.dtype == dtype
        assert array.flags.c_contiguous
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    with pytest.raises(dataclasses.FrozenInstanceError):
        corpus.width = 3  # type: ignore[misc]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"lists": []}, "list offsets of a corpus are damaged"),
        ({"lists": [1, 2, 2, 3]}, "list offsets of a corpus are damaged"),
        ({"lists": [0, -1]}, "list offsets of a corpus are damaged"),
        ({"lists": [0, 2, 2, 4]}, "do not fit together"),
        ({"lists": [0, 4, 2, 3]}, "offsets that decrease"),
        ({"rows": [0, 2, 2]}, "do not fit together"),
        ({"rows": [1, 2, 2, 4]}, "do not fit together"),
        ({"rows": []}, "do not fit together"),
        ({"rows": [0, 2, 1, 4]}, "offsets that decrease"),
        ({"rows": [0, 1 << 40, 2, 4]}, "offsets that decrease or lie outside"),
        ({"values": [1.0, 1.0, 1.0]}, "do not fit together"),
        ({"columns": [[0, 3, 3, 6]], "values": [[1.0, 1.0, 1.0, 1.0]]}, "do not fit together"),
        ({"columns": [0, 3, 3, 7]}, "a column outside of its width"),
        ({"columns": [-1, 3, 3, 6]}, "a column outside of its width"),
        ({"columns": [3, 0, 3, 6]}, "not sorted and unique"),
        ({"columns": [0, 3, 6, 6]}, "not sorted and unique"),
        ({"width": 6}, "a column outside of its width"),
        ({"width": -1, "rows": [0, 0, 0, 0], "columns": [], "values": []}, "do not fit together"),
        ({"base": [0.0, 1.0]}, "do not fit together"),
        ({"gain": [0.0, 1.0, 2.0, 3.0]}, "do not fit together"),
        ({"stats": np.zeros((2, 2))}, "do not fit together"),
        ({"reference": np.zeros((2, 1))}, "do not fit together"),
        ({"weight": [1.0, 1.0]}, "do not fit together"),
    ],
)
def test_arrays_that_kernels_could_not_trust_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        Corpus(**(fields(corpus_of(EXAMPLE)) | changes))


# Parts


@given(LISTS, st.data())
@settings(max_examples=60, deadline=None)
def test_slices_are_views_of_lists_in_a_row(lists: list[Plain], data: st.DataObject) -> None:
    corpus = corpus_of(lists, about={"metric": "F"})
    first = data.draw(st.integers(0, len(lists)))
    last = data.draw(st.integers(first, len(lists)))
    part = corpus.slice(first, last)
    assert plain(part) == lists[first:last]
    assert (part.width, part.about) == (WIDTH, {"metric": "F"})
    for name in ("columns", "values", "base", "stats"):
        array = getattr(part, name)
        assert array.size == 0 or np.shares_memory(array, getattr(corpus, name))


@given(LISTS.filter(bool), st.data())
@settings(max_examples=60, deadline=None)
def test_lists_are_taken_in_the_order_asked_for(lists: list[Plain], data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.integers(0, len(lists) - 1), max_size=8))
    corpus = corpus_of(lists, about={"metric": "F"})
    part = corpus.take(chosen)
    assert plain(part) == [lists[i] for i in chosen]
    assert (part.width, part.about) == (WIDTH, {"metric": "F"})
    assert plain(corpus.slice(0, len(lists)).take(np.array(chosen, np.int32))) == plain(part)
    assert plain(corpus) == lists


@given(LISTS, st.lists(st.booleans(), min_size=WIDTH, max_size=WIDTH))
@settings(max_examples=60, deadline=None)
def test_kept_columns_keep_their_numbers(lists: list[Plain], keep: list[bool]) -> None:
    corpus = corpus_of(lists)
    part = corpus.keep_columns(np.array(keep))
    assert plain(part) == [
        (weight, reference, [(*rest, {c: v for c, v in features.items() if keep[c]}) for *rest, features in candidates])
        for weight, reference, candidates in lists
    ]
    assert part.width == WIDTH
    assert plain(corpus) == lists


@given(st.lists(LISTS, min_size=1, max_size=3))
@settings(max_examples=50, deadline=None)
def test_parts_are_joined_in_their_order(parts: list[list[Plain]]) -> None:
    joined = concatenate([corpus_of(part, about={"part": i}) for i, part in enumerate(parts)])
    assert plain(joined) == [one for part in parts for one in part]
    assert joined.about == {"part": 0}
    total = len(parts[0])
    assert plain(concatenate([joined.slice(0, total), joined.slice(total, joined.list_count)])) == plain(joined)


def test_parts_that_do_not_belong_together_are_not_joined() -> None:
    one = corpus_of(EXAMPLE)
    with pytest.raises(DataError, match=r"corpora with \[7, 9\] columns; use one feature table"):
        concatenate([one, corpus_of(EXAMPLE, width=9)])
    with pytest.raises(DataError, match="different metrics"):
        concatenate([one, dataclasses.replace(one, stats=np.zeros((3, 5)))])
    with pytest.raises(DataError, match="different metrics"):
        concatenate([one, dataclasses.replace(one, reference=np.zeros((3, 2)))])
    with pytest.raises(DataError, match="cannot join"):
        concatenate([])


# Files


@pytest.mark.parametrize("mmap", [True, False])
@pytest.mark.parametrize("lists", [EXAMPLE, EXAMPLE[1:2], []])
def test_what_was_saved_is_loaded(lists: list[Plain], mmap: bool, tmp_path: Path) -> None:
    corpus = corpus_of(lists, about={"metric": "F", "lists": {"skipped": 2}})
    corpus.save(tmp_path / "new" / "corpus")
    loaded = Corpus.load(tmp_path / "new" / "corpus", mmap=mmap)
    assert plain(loaded) == plain(corpus)
    assert (loaded.width, loaded.about) == (corpus.width, corpus.about)
    for name, dtype in ARRAYS.items():
        array = getattr(loaded, name)
        assert array.dtype == dtype
        assert not array.flags.writeable
        if array.size:
            base: Any = array
            while isinstance(base, np.ndarray) and not isinstance(base, np.memmap):
                base = base.base
            assert isinstance(base, np.memmap) == mmap


def test_parts_are_saved_as_one_corpus_in_files_of_numpy(tmp_path: Path) -> None:
    whole = corpus_of([*EXAMPLE, *EXAMPLE])
    pieces = [whole.slice(a, b) for a, b in ((0, 1), (1, 1), (1, whole.list_count))]
    for corpus, parts in ((whole, pieces), (corpus_of([]), [corpus_of([])])):
        save_joined(tmp_path / "corpus", parts)
        for name, dtype in DTYPES.items():
            np.save(tmp_path / "expected.npy", np.asarray(getattr(corpus, name), dtype))
            assert (tmp_path / "corpus" / f"{name}.npy").read_bytes() == (tmp_path / "expected.npy").read_bytes()


def write(name: str, content: bytes) -> Callable[[Path], Any]:
    return lambda directory: (directory / name).write_bytes(content)


def edit(**changes: Any) -> Callable[[Path], Any]:
    def damage(directory: Path) -> None:
        header = json.loads((directory / "header.json").read_text())
        (directory / "header.json").write_text(json.dumps(header | changes))

    return damage


def cut(name: str, size: int) -> Callable[[Path], Any]:
    return lambda directory: os.truncate(directory / name, (directory / name).stat().st_size - size)


DAMAGES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "no directory": (lambda directory: shutil.rmtree(directory), "No such file"),
    "no array": (lambda directory: (directory / "gain.npy").unlink(), "No such file"),
    "another version": (edit(version=2), "format version 2, expected 1"),
    "no JSON": (write("header.json", b'{"width"'), "not a readable corpus"),
    "a list": (write("header.json", b"[1]"), "not a readable corpus"),
    "infinite width": (edit(width=float("inf")), "not a readable corpus"),
    "width that is too small": (edit(width=3), "a column outside of its width"),
    "about nothing": (edit(about=1), "not a readable corpus"),
    "cut array": (cut("values.npy", 4), "not a readable corpus"),
    "another type": (lambda directory: np.save(directory / "values.npy", np.zeros(4)), "its numbers are float64"),
    "another length": (lambda directory: np.save(directory / "base.npy", np.zeros(4)), "do not fit together"),
    "offsets outside": (
        lambda directory: np.save(directory / "rows.npy", np.array([0, 1 << 40, 2, 4])),
        "offsets that decrease or lie outside",
    ),
}


@pytest.mark.parametrize("mmap", [True, False])
@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_files_are_errors_of_the_data(damage: str, mmap: bool, tmp_path: Path) -> None:
    """Also where the checksums are those of the damaged files."""
    corpus_of(EXAMPLE).save(tmp_path / "corpus")
    change, message = DAMAGES[damage]
    change(tmp_path / "corpus")
    with pytest.raises(DataError, match=r"No such file|its checksum is"):
        Corpus.load(tmp_path / "corpus", mmap=mmap)
    if (tmp_path / "corpus").exists():
        seal(tmp_path / "corpus")
    with pytest.raises(DataError, match=message) as caught:
        Corpus.load(tmp_path / "corpus", mmap=mmap)
    assert str(tmp_path / "corpus") in str(caught.value)


@pytest.mark.parametrize("name", ["header.json", *(f"{name}.npy" for name in ARRAYS)])
def test_a_flipped_bit_is_noticed(name: str, tmp_path: Path) -> None:
    corpus_of(EXAMPLE).save(tmp_path / "corpus")
    path = tmp_path / "corpus" / name
    content = path.read_bytes()
    for place in (0, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        with pytest.raises(DataError, match=f"{name}: its checksum is"):
            Corpus.load(tmp_path / "corpus")
    path.write_bytes(content)
    assert plain(Corpus.load(tmp_path / "corpus")) == EXAMPLE


@pytest.mark.parametrize("name", ["values", "base", "gain", "weight"])
def test_files_with_numbers_that_are_not_finite(name: str, tmp_path: Path) -> None:
    corpus = corpus_of(EXAMPLE)
    corpus.save(tmp_path / "c")
    path = tmp_path / "c" / f"{name}.npy"
    array = np.load(path)
    array[-1] = np.nan
    np.save(path, array)
    seal(path.parent)
    with pytest.raises(DataError, match="numbers that are not finite; build it again"):
        Corpus.load(tmp_path / "c")
    assert np.isnan(getattr(Corpus.load(tmp_path / "c", trusted=True), name)).any()


SHARES = st.floats(0.001, 1)


@given(size=st.integers(1, 300), shares=st.tuples(SHARES, SHARES), seed=st.integers(0, 100))
def test_a_smaller_share_is_inside_a_larger_one(size: int, shares: tuple[float, float], seed: int) -> None:
    small, large = (share_of(size, share, seed) for share in sorted(shares))
    for drawn, share in zip((small, large), sorted(shares), strict=True):
        assert drawn.size == max(1, round(share * size))
        assert np.all(np.diff(drawn) > 0)
    assert np.isin(small, large).all()


def test_the_share_of_a_sorted_file_is_like_the_whole() -> None:
    drawn = [share_of(10_000, 0.1, seed) for seed in (1, 2)]
    assert all(abs(int(np.count_nonzero(each < 5_000)) - 500) < 80 for each in drawn)
    assert not np.array_equal(*drawn)


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
    "a share": lambda corpus, chosen: corpus.take_share(0.5, int(chosen[0])),
}


@pytest.mark.parametrize("name", CHANGES)
@given(chosen=st.sets(st.integers(0, 29), min_size=1))
def test_what_is_made_of_it_is_what_is_made_in_memory(mapped: Corpus, name: str, chosen: set[int]) -> None:
    lists = np.array(sorted(chosen))
    found, folder = CHANGES[name](mapped, lists), mapped.__dict__["_path"].parent
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
    for key, array in log.arrays().items():
        np.testing.assert_array_equal(training.log.arrays()[key], array)
    votes = learner.votes(*replay_corpus(training.log, mapped))  # updates are repeated on the lists that they touched
    np.testing.assert_array_equal(vote(votes, mapped), vote(learner.votes(training.log, CORPUS), CORPUS))
    in_one = in_parts(tmp_path / "one", CORPUS, (0, 30))
    assert bits(fit(learner, in_one).state) == bits(fit(learner, CORPUS).state)


@pytest.mark.parametrize(
    "learner", [VotedRDA(base=0.0, base_rate=0.5), VotedRDA(base=0.0, l1=0.125), Perceptron(base=0.0, base_rate=0.5)]
)
def test_bounds_are_those_of_the_whole(learner: Learner, mapped: Corpus) -> None:
    training = fit(learner, mapped)
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
