"""TER against sacrebleu on random and real text, the limits of its search, and known cases."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sacrebleu.metrics import TER
from sacrebleu.metrics.lib_ter import BeamEditDistance

from rerank.base.errors import DataError, RecipeError
from rerank.base.registry import build
from rerank.metrics import ter_kernel
from rerank.metrics.base import metrics
from rerank.metrics.ter import Ter
from rerank.metrics.ter_kernel import edits, ter_space

SENTENCES = st.lists(st.sampled_from("abcde"), max_size=12).map(" ".join)
MARKED = st.text("aB1 .,&-'\u3000\u4e00()", max_size=20)
OPTIONS = st.fixed_dictionaries(
    {key: st.booleans() for key in ("normalized", "no_punct", "asian_support", "case_sensitive")}
)


def rows(metric, texts, references):
    return metric.stats([text.encode() for text in texts], [text.encode() for text in references])


def count(text, reference):
    """Our edits and sacrebleu's."""
    words = [np.array([hash(word) % (1 << 62) for word in words], np.uint64) for words in (text, reference)]
    ours = edits(*words, ter_space(*map(len, words)))
    theirs = TER(case_sensitive=True).sentence_score(" ".join(map(str, text)), [" ".join(map(str, reference))])
    return ours, theirs.num_edits


def changed(random, words, alphabet):
    """A text with a few edits and shifts, as a system's differs from its reference."""
    words = list(words)
    for _ in range(random.integers(0, 6)):
        place, kind = random.integers(0, len(words) + 1), random.integers(4)
        if kind == 0:
            words.insert(place, random.integers(alphabet))
        elif kind == 1:
            del words[place : place + random.choice([1, 1, 4])]
        elif kind == 2 and place < len(words):
            words[place] = random.integers(alphabet)
        else:
            block = words[place : place + random.integers(1, 13)]
            del words[place : place + len(block)]
            to = random.integers(0, len(words) + 1)
            words[to:to] = block
    return words


@pytest.mark.parametrize("alphabet", [1, 2, 5, 30])
def test_unrelated_sentences(alphabet):
    random = np.random.default_rng(alphabet)
    for longest in np.tile([3, 8, 15, 30], 5 if alphabet == 1 else 10):
        text, reference = (random.integers(alphabet, size=random.integers(longest + 1)).tolist() for _ in range(2))
        ours, theirs = count(text, reference)
        assert ours == theirs, (text, reference)


@pytest.mark.parametrize("alphabet", [2, 10, 100])
def test_sentences_that_differ_in_a_few_places(alphabet):
    random = np.random.default_rng(alphabet)
    for _ in range(50):
        reference = random.integers(alphabet, size=random.integers(1, 31)).tolist()
        text = changed(random, reference, alphabet)
        ours, theirs = count(text, reference)
        assert ours == theirs, (text, reference)


@pytest.mark.parametrize(("n", "m"), [(0, 60), (2, 160), (60, 3), (90, 0), (70, 60), (60, 110)])
def test_long_texts_leave_the_beam(n, m):
    random = np.random.default_rng(n)
    ours, theirs = count(random.integers(100, size=n).tolist(), random.integers(100, size=m).tolist())
    assert ours == theirs


@pytest.mark.parametrize("extra", [23, 24, 25, 26, 27])
def test_the_beam_is_as_wide_as_sacrebleus(extra):
    common, other = list(range(60)), list(range(60, 60 + extra))
    for text, reference in ((other + common, common + other[::-1]), (common + other, other[::-1] + common)):
        table, n = np.empty((100, 100), np.int32), len(text)
        words = [np.array(words, np.uint64) for words in (text, reference)]
        ours = ter_kernel.extend_distances(table, words[0], n, words[1], 0, ter_kernel.FAR)
        assert ours == BeamEditDistance(reference)(text)[0]
        assert ours in (2 * extra, 60 + extra)  # shifted by the extra words, or all substituted


def test_blocks_and_their_limits():
    words = list(range(100))
    assert count(words[10:20] + words[:10], words[:20]) == (1, 1)
    assert count(words[11:22] + words[:11], words[:22]) == (2, 2)  # 11 words move in two blocks
    far = [90, *words[:90]]
    assert count(far, words[:91]) == (2, 2)  # 90 words away: deleted and inserted
    assert count([50, *words[:50]], words[:51]) == (1, 1)
    assert count([51, *words[:51]], words[:52]) == (2, 2)


def test_the_search_ends_after_so_many_shifts():
    random, ended = np.random.default_rng(4), 0
    for _ in range(6):
        text, reference = (random.integers(2, size=random.integers(25, 40)).tolist() for _ in range(2))
        ours, theirs = count(text, reference)
        assert ours == theirs
        arrays = [np.array(words, np.uint64) for words in (text, reference)]
        free = unlimited(*arrays)
        ended += free != ours
    assert ended > 0  # the limit matters in some


def unlimited(text, reference):
    """Edits by the same steps, in Python and without the limit on the shifts that are tried."""
    space, n, shifts = ter_space(text.size, reference.size), text.size, 0
    space.words[:n] = text
    while True:
        distance = ter_kernel.extend_distances(space.table, space.words, n, reference, 0, ter_kernel.FAR)
        ter_kernel.align_words(space, n, reference)
        gain, _ = ter_kernel.best_shift(space, n, reference, -(1 << 40))
        if gain <= 0:
            return shifts + distance
        space.words[:n] = space.best[:n]
        shifts += 1


@settings(max_examples=200, deadline=None)
@given(st.lists(SENTENCES, min_size=1, max_size=4), st.lists(SENTENCES, min_size=1, max_size=3))
def test_sentences_with_several_references(texts, references):
    metric, peer = Ter(), TER()
    reference, stats = rows(metric, texts, references)
    assert stats.shape == (len(texts), 1)
    scores, gains = metric.scores(stats, reference), metric.gain(stats, reference)
    for text, row, score, gain in zip(texts, stats, scores, gains, strict=True):
        expected = peer.sentence_score(text, references)
        assert row[0] + reference[0] == expected.num_edits
        assert reference[1] == expected.ref_length
        assert score == pytest.approx(expected.score, abs=1e-9)
        assert gain == pytest.approx(1 - expected.score / 100)


@settings(max_examples=200, deadline=None)
@given(MARKED, MARKED, OPTIONS)
@example("1", "..1", {"normalized": True})
def test_settings_are_sacrebleus(text, reference, options):
    metric = Ter(**options)
    row, stats = rows(metric, [text], [reference])
    expected = TER(**options).sentence_score(text, [reference])
    assert metric.scores(stats, row).tolist() == [pytest.approx(expected.score, abs=1e-9)]


def test_bytes_that_are_not_utf8_are_words():
    reference, stats = Ter().stats([b"\xff \xc3\x89", b"\xfe"], [b"\xff \xc3\xa9"])
    assert Ter().gain(stats, reference).tolist() == [1, 0]


def test_signatures():
    peer = TER()
    peer.corpus_score(["a b"], [["a b"]])
    assert Ter().corpus_signature([("a b",)]) == str(peer.get_signature())
    assert Ter().corpus_signature([("a",), ("a", "b")]).startswith("nrefs:var|")
    seen = [Ter(), Ter(normalized=True), Ter(no_punct=True), Ter(asian_support=True), Ter(case_sensitive=True)]
    assert len({metric.signature for metric in seen}) == len(seen)


def test_errors():
    with pytest.raises(DataError, match="a text of 8,193 words for a reference of 8,200; TER takes"):
        Ter().stats([b"a", b"a " * 8193], [b"b", b"a " * 8200])
    with pytest.raises(RecipeError, match="has no setting 'normalised'; did you mean normalized"):
        build(metrics, {"name": "ter", "normalised": True}, "metric")
