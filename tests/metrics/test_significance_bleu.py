"""Significance of differences in corpus BLEU: against enumeration, sacrebleu's tests, and scipy."""

import logging
from itertools import product

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.significance import PairedTest

from rerank.metrics.bleu import Bleu
from rerank.metrics.significance import compare
from rerank.metrics.text import Ter

METRIC = Bleu()


@pytest.fixture(autouse=True)
def _quiet(monkeypatch):
    """sacrebleu's seed, and none of its progress."""
    monkeypatch.setenv("SACREBLEU_SEED", "7")
    logging.getLogger("sacrebleu").setLevel(logging.ERROR)


def draw(lists, seed, errors=(0.3, 0.3)):
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
    a, b, references = draw(5, 2, (0.2, 0.5))
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
    a, b, references = draw(60, seed, errors)
    theirs = sacrebleus(a, b, references)
    ours = compare(METRIC, *statistics(METRIC, a, b, references)).p
    assert ours == pytest.approx(theirs, abs=4 * np.sqrt(0.25 / 2000 + 0.25 / 10_000))
