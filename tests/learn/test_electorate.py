"""An electorate holds exactly the lists that it was made from."""

import numpy as np
from hypothesis import given, settings
from strategies import WIDTH, corpora, random_corpus

from rerank.data.corpus import Corpus
from rerank.learn.voting.electorate import Electorate, assemble

ALL = np.arange(WIDTH, dtype=np.int32)


def dense(corpus: Corpus) -> np.ndarray:
    """float64 [N, D]."""
    out = np.zeros((corpus.candidate_count, corpus.width))
    for y in range(corpus.candidate_count):
        for p in range(corpus.rows[y], corpus.rows[y + 1]):
            out[y, corpus.columns[p]] = corpus.values[p]
    return out


def rebuilt(seats: Electorate, columns: int) -> np.ndarray:
    """float64 [N, D], by place, from patterns and differences."""
    out = np.zeros((seats.candidate.size, columns))
    for i in range(seats.lists.size - 1):
        p0, p1 = seats.patterns[i], seats.patterns[i + 1]
        values = np.zeros((seats.lists[i + 1] - seats.lists[i], p1 - p0))
        for y in range(values.shape[0]):
            at = seats.lists[i] + y
            assert seats.like[at] < y
            whole = seats.whole[i]
            if seats.like[at] >= 0:
                values[y, :whole] = values[seats.like[at], :whole]
            edges = slice(seats.edges[at], seats.edges[at + 1])
            assert np.all(np.diff(seats.pattern[edges]) > 0)
            values[y, seats.pattern[edges]] += seats.value[edges]
        for p in range(p0, p1):
            assert seats.largest[p] == np.abs(values[:, p - p0]).max(initial=0.0)
            members = seats.column[seats.members[p] : seats.members[p + 1]]
            real = values[:, p - p0] != np.rint(values[:, p - p0])
            assert not real.any() if p - p0 < seats.whole[i] else real.any() and members.size == 1
            out[seats.lists[i] : seats.lists[i + 1], members] = values[:, [p - p0]]
    return out


@settings(max_examples=80)
@given(corpora())
def test_holds_every_value(corpus: Corpus) -> None:
    seats = assemble(corpus, ALL[: corpus.width], 0, corpus.list_count)
    np.testing.assert_array_equal(rebuilt(seats, corpus.width), dense(corpus)[seats.candidate])


@settings(max_examples=40)
@given(corpora())
def test_places_follow_the_tie_rule(corpus: Corpus) -> None:
    seats = assemble(corpus, ALL[: corpus.width], 0, corpus.list_count)
    for i in range(corpus.list_count):
        a, b = corpus.lists[i], corpus.lists[i + 1]
        expected = sorted(range(a, b), key=lambda y: (-corpus.base[y], y))
        assert seats.candidate[a:b].tolist() == expected
        assert seats.base[a:b].tolist() == [corpus.base[y] for y in expected]


@settings(max_examples=40)
@given(corpora())
def test_columns_without_a_name_are_left_out(corpus: Corpus) -> None:
    name = np.where(ALL[: corpus.width] % 2 == 0, ALL[: corpus.width] // 2, -1).astype(np.int32)
    seats = assemble(corpus, name, 0, corpus.list_count)
    kept = dense(corpus)[:, ::2]
    np.testing.assert_array_equal(rebuilt(seats, kept.shape[1]), kept[seats.candidate])


def test_patterns_are_shared_and_parts_join() -> None:
    corpus = random_corpus(4, lists=30, width=WIDTH)
    whole = assemble(corpus, ALL[: corpus.width], 0, corpus.list_count)
    half = corpus.list_count // 2
    parts = [assemble(corpus, ALL[: corpus.width], *part) for part in ((0, half), (half, corpus.list_count))]
    joined = np.concatenate([rebuilt(part, corpus.width) for part in parts])
    np.testing.assert_array_equal(joined, rebuilt(whole, corpus.width))
    np.testing.assert_array_equal(np.concatenate([part.candidate for part in parts]), whole.candidate)
    for i in range(corpus.list_count):
        a, b = corpus.lists[i], corpus.lists[i + 1]
        block = dense(corpus)[a:b]
        used = block[:, (block != 0).any(axis=0)]
        real = (used != np.rint(used)).any(axis=0)
        assert whole.whole[i] == np.unique(used[:, ~real], axis=1).shape[1]
        assert whole.patterns[i + 1] - whole.patterns[i] == whole.whole[i] + np.count_nonzero(real)
