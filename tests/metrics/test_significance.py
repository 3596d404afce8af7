"""Significance tests: against enumeration, scipy and sacrebleu, and what must hold for any metric."""

import logging
from itertools import product

import numpy as np
import pytest
from problems import Errors, Ratio
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.significance import PairedTest
from scipy import stats as distributions

from rerank.base.errors import DataError, RecipeError
from rerank.metrics import significance
from rerank.metrics.ngrams import Bleu
from rerank.metrics.significance import begin, compare, resampled_sums
from rerank.metrics.text import Ter

TESTS = ["approximate_randomization", "paired_bootstrap", "paired_t", "mcnemar"]


def draw(lists: int, seed: int, lift: float = 0.0):
    """A's and B's rows and the reference of random lists on which A is right ``lift`` more often."""
    random = np.random.default_rng(seed)
    reference = random.integers(1, 10, (lists, 1)).astype(float)
    a, b = (np.floor(random.random((lists, 1)) ** (1 / (1 + extra)) * (reference + 1)) for extra in (lift, 0.0))
    return a, b, reference


@pytest.mark.parametrize("test", TESTS)
def test_identical_systems_have_p_one(test):
    a, _, reference = draw(30, 0)
    result = compare(Ratio(), a, a, reference, test=test, samples=200)
    assert (result.difference, result.p, result.low, result.high) == (0.0, 1.0, 0.0, 0.0)


@pytest.mark.parametrize("test", TESTS)
def test_the_same_seed_gives_the_same_bits_turned_where_systems_are_exchanged(test):
    a, b, reference = draw(60, 2, 0.2)
    there, again = (compare(Ratio(), a, b, reference, test=test, samples=500, seed=7) for _ in range(2))
    assert there == again
    back = compare(Ratio(), b, a, reference, test=test, samples=500, seed=7)
    assert back.p == there.p
    assert [back.difference, back.low, back.high] == pytest.approx([-there.difference, -there.high, -there.low])


@pytest.mark.parametrize("seed", range(4))
def test_approximate_randomization_is_near_the_exact_permutation_test(seed):
    a, b, reference = draw(9, seed, 0.5)
    metric, total = Ratio(), reference.sum(axis=0)
    observed = abs((a.sum() - b.sum()) / total[0])
    hits = 0
    for swaps in product([False, True], repeat=9):
        mine, theirs = np.where(np.array(swaps)[:, None], b, a), np.where(np.array(swaps)[:, None], a, b)
        hits += abs((mine.sum() - theirs.sum()) / total[0]) >= observed - 1e-12
    result = compare(metric, a, b, reference, samples=20_000, seed=seed)
    assert result.p == pytest.approx(hits / 2**9, abs=0.015)
    assert result.difference == pytest.approx((a.sum() - b.sum()) / total[0])


@pytest.mark.parametrize(("scale", "offset"), [(1.0, 1e4), (1.0, -1e6), (1e25, 0.0), (1e-12, 0.0), (-1.0, 0.0)])
def test_p_is_the_same_in_other_units(scale, offset):
    for seed in range(12):
        gains = np.random.default_rng(seed).random((2, 6, 1)).round(2)
        reference, found = np.ones((6, 1)), []
        for a, b in (gains, scale * (gains + offset)):
            for test in TESTS[:2]:
                found.append(compare(Ratio(), a, b, reference, test=test, samples=500).p)
        assert found[:2] == pytest.approx(found[2:], abs=1e-12)


def test_p_counts_the_observation_as_a_sample():
    reference = np.ones((200, 1))
    result = compare(Ratio(), reference, 0 * reference, reference, samples=99)
    assert result.p == 1 / 100


@pytest.mark.parametrize("test", TESTS)
def test_the_interval_leaves_out_zero_just_where_p_is_below_its_level(test):
    """At the p that was found, and at the nearest ones to either side of it."""
    for seed in range(60):
        metric = (Ratio, Errors)[seed % 2]()
        rows = draw(40, seed, 0.2 * (seed % 5))
        p = compare(metric, *rows, test=test, samples=199).p
        for level in (0.05, p, p - 1e-9, p + 1e-9):
            if 0 < level < 1:
                found = compare(metric, *rows, test=test, samples=199, confidence=1 - level)
                if abs(p - level) > 1e-10:  # 1 - (1 - level) is not level
                    assert (found.low > 0 or found.high < 0) == (found.p < level), (seed, level)
                assert found.low <= found.difference <= found.high


@pytest.mark.parametrize("test", TESTS[:2])
def test_no_difference_is_found_in_noise_more_often_than_promised(test):
    found = [compare(Ratio(), *draw(40, seed), test=test, samples=400).p <= 0.1 for seed in range(200)]
    assert np.mean(found) < 0.17  # 0.1 expected; more than 3 standard errors would be 0.164


def test_paired_t_is_scipys():
    a, b, reference = draw(40, 4, 0.3)
    expected = distributions.ttest_rel((a / reference)[:, 0], (b / reference)[:, 0])
    result = compare(Ratio(), a, b, reference, test="paired_t")
    interval = expected.confidence_interval(0.95)
    assert result.p == pytest.approx(expected.pvalue)
    assert [result.low, result.high] == pytest.approx([interval.low, interval.high])
    assert result.difference == pytest.approx((a / reference - b / reference).mean())


def test_t_without_spread():
    ones = np.ones((5, 1))
    assert compare(Ratio(), ones, 0 * ones, ones, test="paired_t").p == 0.0
    assert compare(Ratio(), ones[:1], 0 * ones[:1], ones[:1], test="paired_t").p == 1.0


def test_where_lower_is_better_the_difference_stays_that_of_the_scores():
    a, b, reference = np.zeros((20, 1)), np.ones((20, 1)), np.ones((20, 1))
    assert compare(Errors(), a, b, reference, samples=50).difference == -1.0
    assert compare(Errors(), a, b, reference, test="paired_t").difference == 1.0
    assert compare(Errors(), a, b, reference, test="mcnemar").difference == 1.0


def test_errors():
    a, b, reference = draw(5, 0)
    with pytest.raises(DataError, match=r"statistics of shapes \(5, 1\) and \(4, 1\)"):
        compare(Ratio(), a, b[:4], reference)
    with pytest.raises(DataError, match="at least one"):
        compare(Ratio(), a[:0], b[:0], reference[:0])
    with pytest.raises(RecipeError, match="test: found 'sign', expected one of approximate_randomization"):
        compare(Ratio(), a, b, reference, test="sign")


@pytest.mark.parametrize("test", ["approximate_randomization", "paired_bootstrap"])
def test_samples_are_the_same_in_many_calls(test, monkeypatch):
    """Between two calls signals are heeded."""
    random = np.random.default_rng(5)
    a, b, reference = random.random((70, 2)), random.random((70, 2)), np.ones((70, 1))
    expected = compare(Ratio(), a, b, reference, test=test, samples=500)
    looks: list[int] = []
    monkeypatch.setattr(significance, "MAX_DRAWS", 7 * 70)
    monkeypatch.setattr(significance, "check", lambda: looks.append(1))
    assert compare(Ratio(), a, b, reference, test=test, samples=500) == expected
    assert len(looks) >= 500 // 7


def test_swaps_are_fair_and_independent_coins():
    sums = np.zeros((4000, 130))  # more than one word of random bits
    resampled_sums(np.eye(130), True, begin(3), sums)
    assert set(np.unique(sums)) == {0.0, 1.0}
    assert sums.mean(axis=0) == pytest.approx(np.full(130, 0.5), abs=0.04)
    correlations = np.corrcoef(sums.T) - np.eye(130)
    assert np.abs(correlations).max() < 0.09


METRIC = Bleu()


@pytest.fixture(autouse=True)
def _quiet(monkeypatch):
    """sacrebleu's seed, and none of its progress."""
    monkeypatch.setenv("SACREBLEU_SEED", "7")
    logging.getLogger("sacrebleu").setLevel(logging.ERROR)


def texts_of(lists, seed, errors=(0.3, 0.3)):
    """Two systems' texts and the references: every word is wrong with the system's share of errors."""
    random = np.random.default_rng(seed)

    def system(words, share):
        return " ".join(
            map(str, np.where(random.random(words.size) < share, random.integers(40, size=words.size), words))
        )

    references = [random.integers(40, size=random.integers(4, 16)) for _ in range(lists)]
    a, b = ([system(words, share) for words in references] for share in errors)
    return a, b, [" ".join(map(str, words)) for words in references]


def statistics(metric, a, b, references):
    rows = [metric.stats([x.encode(), y.encode()], [r.encode()]) for x, y, r in zip(a, b, references, strict=True)]
    return (*(np.stack([stats[k] for _, stats in rows]) for k in range(2)), np.stack([row for row, _ in rows]))


def score(metric, texts, references):
    return next(iter(metric.corpus(texts, [(reference,) for reference in references]).values()))


def sacrebleus(a, b, references):
    """p of sacrebleu's approximate randomization, A being its baseline."""
    scorers = {"BLEU": BLEU(tokenize="none", force=True)}
    _, results = PairedTest([("a", a), ("b", b)], scorers, [references], test_type="ar", n_samples=2000)()
    return results["BLEU"][1].p_value


@pytest.mark.parametrize("metric", [METRIC, Ter()], ids=lambda metric: metric.name)
def test_paired_bootstrap_is_near_all_resamples(metric):
    a, b, references = texts_of(5, 2, (0.2, 0.5))
    rows_a, rows_b, reference = statistics(metric, a, b, references)
    differences = []
    for drawn in product(range(5), repeat=5):
        texts = [references[i] for i in drawn]
        differences.append(score_of(metric, rows_a, reference, drawn) - score_of(metric, rows_b, reference, drawn))
        if len(differences) % 500 == 1:  # the sums are what the texts themselves give
            expected = score(metric, [a[i] for i in drawn], texts) - score(metric, [b[i] for i in drawn], texts)
            assert differences[-1] == pytest.approx(expected, abs=1e-9)
    observed = score(metric, a, references) - score(metric, b, references)
    reached = np.abs(differences - np.mean(differences)) >= abs(observed)
    result = compare(metric, rows_a, rows_b, reference, test="paired_bootstrap", samples=20_000)
    assert result.difference == pytest.approx(observed, abs=1e-9)
    assert result.p == pytest.approx(reached.mean(), abs=0.02)  # the samples' mean is not exact either
    width = np.percentile(np.abs(differences - np.mean(differences)), 95)
    assert [result.low, result.high] == pytest.approx([observed - width, observed + width], abs=1.5)


def score_of(metric, rows, reference, drawn):
    return float(metric.scores(rows[list(drawn)].sum(axis=0), reference[list(drawn)].sum(axis=0)))


@pytest.mark.parametrize(("seed", "errors"), [(1, (0.3, 0.34)), (3, (0.3, 0.34)), (4, (0.3, 0.36)), (7, (0.3, 0.38))])
def test_approximate_randomization_agrees_with_sacrebleu(seed, errors):
    a, b, references = texts_of(60, seed, errors)
    theirs = sacrebleus(a, b, references)
    ours = compare(METRIC, *statistics(METRIC, a, b, references)).p
    assert ours == pytest.approx(theirs, abs=4 * np.sqrt(0.25 / 2000 + 0.25 / 10_000))
