"""Spans and labels: what conlleval prints, and what counting as it does gives."""

from itertools import pairwise

import numpy as np
import pytest

from rerank.base.errors import DataError
from rerank.contrib.structures.metrics import SpanScore, TagAccuracy, counts_of, spans_of
from rerank.metrics.significance import compare

# The example in the documentation of conlleval's port to Python (https://github.com/kaniblu/conlleval), its right and
# guessed labels, and what it prints.
RIGHT = (
    "B-NP I-NP I-NP B-NP I-NP I-NP B-VP B-NP B-VP B-NP I-NP I-NP B-VP B-NP I-NP B-PP B-NP I-NP B-VP I-VP B-NP I-NP "
    "B-PP B-NP B-NP I-NP I-NP O"
)
GUESSED = (
    "I-NP I-NP I-NP B-NP I-NP I-NP B-VP B-NP B-VP B-NP I-NP I-NP B-VP B-NP I-NP B-PP I-NP I-NP B-PP I-VP I-NP I-NP "
    "B-PP I-NP B-NP I-NP I-NP O"
)


def test_the_published_example() -> None:
    right, guessed = RIGHT.split(), GUESSED.split()
    reference, rows = SpanScore().rows([guessed], right)
    assert (reference.tolist(), rows.tolist()) == ([15], [[14, 16]])
    found = {name: round(100 * value, 2) for name, value in SpanScore().report(rows[0], reference).items()}
    assert found == {"precision": 87.5, "recall": 93.33, "f1": 90.32}
    assert counts_of([guessed], [right], spans=True) == {"NP": [9, 9, 9], "PP": [2, 3, 2], "VP": [3, 4, 4]}
    reference, rows = TagAccuracy().rows([guessed], right)
    assert round(100 * float(TagAccuracy().scores(rows[0], reference)), 2) == 82.14


def conlleval(labels: list[str]) -> set[tuple[int, int, str]]:
    """Spans as conlleval finds them: every pair of adjacent labels may end one and begin another."""
    spans, first = set[tuple[int, int, str]](), 0
    before, kind_before = "O", ""
    for place, label in enumerate([*labels, "O"]):
        tag, _, kind = label.partition("-")
        ends = (before, tag) in {("B", "B"), ("B", "O"), ("I", "B"), ("I", "O"), ("E", "E"), ("E", "I"), ("E", "O")}
        starts = (before, tag) in {("B", "B"), ("I", "B"), ("O", "B"), ("O", "I"), ("E", "E"), ("E", "I"), ("O", "E")}
        ends |= before != "O" and kind_before != kind
        starts |= tag != "O" and kind_before != kind
        if ends:
            spans.add((first, place, kind_before))
        if starts:
            first = place
        before, kind_before = tag, kind
    return spans


@pytest.mark.parametrize("seed", range(3))
def test_spans_are_conlleval_s(seed: int) -> None:
    random = np.random.default_rng(seed)
    labels = ["O", "B-X", "I-X", "B-Y", "I-Y", "E-X", "E-Y"]
    for _ in range(500):
        drawn = [str(label) for label in random.choice(labels, random.integers(0, 9))]
        if any(a[0] == "E" and b[0] == "B" for a, b in pairwise(drawn)):
            continue  # it lets a span that has ended go on
        assert set(spans_of(drawn)) == conlleval(drawn), drawn


def test_rows_add_up_for_significance() -> None:
    right = [["B-X", "I-X", "O"], ["O", "B-Y"], ["B-X"]] * 20
    a = [labels if k % 3 else ["B-X", "O", "O"] for k, labels in enumerate(right)]
    rows = [SpanScore().rows([labels, gold], gold) for labels, gold in zip(a, right, strict=True)]
    stats, reference = np.stack([row for _, row in rows]), np.stack([row for row, _ in rows])
    found = compare(SpanScore(), stats[:, 0], stats[:, 1], reference, samples=1000)
    assert found.difference == pytest.approx(2 * 40 / 120 - 1)
    assert found.p < 0.01


def test_texts_are_words_with_labels() -> None:
    metric = SpanScore()
    reference, rows = metric.stats([b"a/b/B-X c/O", b"a/b/O c/O"], [b"a/b/B-X c/O"])
    assert (reference.tolist(), rows.tolist()) == ([1], [[1, 1], [0, 0]])
    assert metric.gain(np.zeros(2), np.zeros(1)) == 1.0
    assert counts_of([["A", "B"]], [["A", "A"]], spans=False) == {"A": [1, 1, 2], "B": [0, 1, 0]}
    assert TagAccuracy().stats([rb"a/N\/A b/c/X"], [rb"a/N\/A b/c/Y"])[1].tolist() == [[1]]
    for texts, message in (([b"a/O"], "found 1 labels for 2 words"), ([b"a b/O"], "expected a word, a slash")):
        with pytest.raises(DataError, match=message):
            metric.stats(texts, [b"a/b/B-X c/O"])
    for label, message in (("NN", "I-NP$"), ("B_X", "write B-X for it"), ("X-I", "write I-X"), ("s-x", "write S-x")):
        with pytest.raises(DataError, match=f"found the label '{label}'.*{message}"):
            metric.stats([f"a/{label}".encode()], [b"a/O"])
