"""Templates of label sequences against their slow twins."""

import numpy as np
import pytest
from reference_labels import DOG
from reference_texts import Lines, One, expected, extracted

from rerank.contrib.structures.metrics import is_labelled
from rerank.features.template import SETS

SPECS = ["LabelNGram", "LabelNGram(words=last)", "SpanNGram(n=1)", *SETS["labels"]]


@pytest.mark.parametrize("seed", range(4))
def test_templates_equal_their_twins(seed: int) -> None:
    random = np.random.default_rng(seed)
    for labels in (["O", "B-X", "I-X", "B-Y"], ["DT", "NN"]):
        for _ in range(10):
            words = random.choice(["a", "b/c", "/"], random.integers(1, 7))
            drawn = random.choice(labels, (3, words.size))
            ones = [
                One([f"{w}/{tag}" for w, tag in zip(words, row, strict=True)], base=-y) for y, row in enumerate(drawn)
            ]
            for spec in SPECS:
                assert extracted([spec], Lines([], ones)) == expected(spec, Lines([], ones)), spec


def test_texts_without_labels_give_nothing() -> None:
    plain = Lines([], [One(["and/or", "it"], base=-1.0), One(["so", "it"], base=-2.0)])
    assert extracted(SPECS, plain) == [{}, {}]
    assert not is_labelled([])
    assert not is_labelled([b"/ a/"])


def test_the_set_looks_at_labels_and_spans() -> None:
    first = extracted(SETS["labels"], DOG)[0]
    assert first["SpanNGram|NP barks </s>"] == first["LabelSpan(see=length)|NP 2"] == 1
    assert first["LabelNGram(n=3)|<s> B-NP I-NP"] == 1
