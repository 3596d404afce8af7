"""What is kept of lists beside their features: against plain numpy, and whatever way they are cut."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rerank.extraction.sample import (
    MEASURES,
    ListSample,
    ListSampler,
    digest,
    measure_columns,
    sample,
    shared,
    values_of,
)
from rerank.readers.lists import Lists

NUMBERS = st.floats(-1e6, 1e6).map(lambda value: round(value, 3))


def text_list(number: int, scores: np.ndarray, names: tuple[str, ...] = ("lm", "score")) -> Lists:
    texts = [f"text {number} {y}".encode() for y in range(len(scores))]
    lines = range(1, len(texts) + 1)
    return Lists.one(str(number), "", 0, texts, lines, scores, column=names.index("score"), names=names)


def twin(values: np.ndarray) -> np.ndarray:
    """The measures by numpy."""
    spread = np.where(values.min(axis=0) == values.max(axis=0), 0.0, values.std(axis=0))
    apart = values - values.mean(axis=0)
    products = (apart * apart[:, :1]).mean(axis=0)
    both = spread * spread[0]
    agreement = np.divide(products, both, out=np.zeros(both.size), where=(both > 0) & (np.arange(both.size) > 0))
    return np.column_stack([values.mean(axis=0), spread, agreement, values.min(axis=0), values.max(axis=0)])


@given(arrays(np.float64, st.tuples(st.integers(1, 9), st.integers(1, 4)), elements=NUMBERS))
def test_measures_equal_those_of_numpy(values: np.ndarray) -> None:
    found = measure_columns(values)
    assert found == pytest.approx(twin(values), rel=1e-6, abs=1e-6)
    assert np.array_equal(measure_columns(np.stack([values, values[::-1]]))[0], found)


def test_what_is_constant_is_so_exactly_and_numbers_of_any_size_give_finite_measures() -> None:
    assert measure_columns(np.full((7, 2), 0.1))[:, :3].tolist() == [[0.1, 0.0, 0.0]] * 2
    assert np.isfinite(measure_columns(np.array([[1e308, -1e308], [-1e308, 1e300]]))).all()


def test_columns_are_found_by_name_the_base_score_first() -> None:
    nbest = text_list(0, np.array([[1.0, 2.0], [3.0, 4.0]]))
    assert values_of(nbest, ("score", "lm")).tolist() == [[2.0, 1.0], [4.0, 3.0]]
    assert values_of(nbest, ("anything",)).tolist() == [[2.0], [4.0]]


def digest_of(nbest: Lists, columns: tuple[str, ...]) -> int:
    return digest(nbest.source, nbest.texts, values_of(nbest, columns).tobytes())


def test_a_digest_depends_on_texts_scores_and_source_alone() -> None:
    nbest = text_list(0, np.array([[1.0, 2.0], [3.0, 4.0]]))
    found = digest_of(nbest, ("score",))
    for same in (nbest.replace(id="other", path="other", line=3), nbest.replace(texts=[b" text 0 0\n", b"text 0 1"])):
        assert digest_of(same, ("score",)) == found
    others = (
        nbest.replace(source=b"a"),
        nbest.replace(texts=nbest.texts[::-1]),
        nbest.replace(scores=nbest.scores + 1),
    )
    for other in others:
        assert digest_of(other, ("score",)) != found


@given(st.lists(st.integers(0, 30), max_size=40), st.integers(1, 40), st.integers(1, 12))
def test_parts_give_the_sample_of_the_whole(numbers: list[int], cut: int, most: int) -> None:
    every = [text_list(number, np.array([[1.0, number], [2.0, -number]])) for number in numbers]

    def of(lists: list[Lists]) -> ListSample:
        found = ListSampler(("score", "lm"))
        for nbest in lists:
            found.add(nbest)
        return found.finish()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rerank.extraction.sample.SAMPLE_SIZE", most)
        whole = sample([of(every)])
        parts = sample([of(every[first : first + cut]) for first in range(0, max(len(every), 1), cut)])
        assert all(map(np.array_equal, whole, parts))
        assert whole.digests.size == min(most, len(numbers))
        assert np.all(np.diff(whole.digests.astype(object)) >= 0)


def test_lists_with_fewer_than_two_candidates_are_left_out() -> None:
    found = ListSampler(("score", "lm"))
    found.add(text_list(0, np.zeros((1, 2))))
    found.add(text_list(0, np.zeros((0, 2))))
    assert [array.shape for array in found.finish()] == [(0,), (0, 2, MEASURES), (0, 2)]


def test_shared_lists_are_counted_in_samples_too(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    both, left, right = (np.unique(rng.integers(0, 1 << 63, size, np.uint64)) for size in (300, 700, 900))
    first, second = np.sort(np.concatenate([both, left])), np.sort(np.concatenate([both, right]))
    assert shared(first, second) == (both.size, second.size)
    assert shared(first, np.zeros(0, np.uint64)) == (0, 0)
    monkeypatch.setattr("rerank.extraction.sample.SAMPLE_SIZE", 400)
    same, looked_at = shared(first[:400], second[:400])
    assert looked_at > 300
    assert same / looked_at == pytest.approx(both.size / second.size, abs=0.07)
