"""Parse templates of base scores and the named sets of templates: features and values written out by hand."""

import math
from collections import Counter

import numpy as np
import pytest
from rendered_features import extracted, once

from rerank.features.template import SETS, make_template

# Base scores


def scored(spec: str, *base: float) -> list[dict[str, float]]:
    found = extracted([spec], [f"(X{i} (NN a))" for i in range(len(base))], base)
    return [{name.partition("|")[2]: value for name, value in one.items()} for one in found]


def test_base_scores() -> None:
    assert scored("LogP", -10, -12.5, -11) == [{"": -10}, {"": -12.5}, {"": -11}]
    assert scored("LogCondP", -10, -12.5, -11) == [{}, {"": -2.5}, {"": -1}]
    total = -10 + math.log(1 + math.exp(-2.5) + math.exp(-1))
    assert scored("LogCondP(norm=sum)", -10, -12.5, -11) == [
        {"": pytest.approx(b - total, rel=1e-6)} for b in (-10, -12.5, -11)
    ]
    # Sums of exponentials neither overflow nor vanish.
    assert scored("LogCondP(norm=sum)", 1000, -1000) == [{}, {"": -2000}]


def test_binned_base_scores() -> None:
    assert scored("LogCondP(bin=5)", -10, -12.5, -11.2, -100) == [once("0"), once("5"), once("2"), once("64")]
    assert scored("LogCondP(bin=10)", -10, -12.5, -11.2, -100) == [once("0"), once("2"), once("1"), once("64")]
    total = math.log(1 + math.exp(-2))  # log-sum relative to the best: 0.127
    assert total < 0.2
    assert scored("LogCondP(bin=5)", -10, -1.79e308) == [once("0"), once("64")]
    largest = float(np.finfo(np.float32).max)
    assert scored("LogCondP", -10, -1.79e308) == [{}, {"": -largest}]
    assert scored("LogCondP(norm=sum, bin=1)", -1, -3) == [once("1"), once("21")]


# Sets


def test_a_single_word_has_few_features() -> None:
    expected = ["Word|a NN", "Word(k=2)|a NN", "WProj|a NN | NN", "WProj(k=2)|a NN | NN"]
    trees = ["(NN a)", "(ZZ (Z a))", "(ZZ (ZZ (Z a)))"]
    found = extracted(SETS["extended"], trees, [0, 0, 0])[0]
    assert found == once(
        *expected, "HeadTree|NN", "HeadTree(heads=semantic)|NN", "HeadTree(words=all, heads=semantic)|NN / a"
    )


def test_the_papers_set() -> None:
    templates = [make_template(spec) for spec in SETS["cj2005"]]
    assert Counter(template.kind for template in templates) == {
        "RightBranch": 1,
        "Heavy": 1,
        "CoPar": 1,
        "CoLenPar": 1,
        "Word": 2,
        "WProj": 1,
        "Rule": 7,
        "NGram": 5,
        "NGramTree": 3,
        "HeadTree": 3,
        "Heads": 4,
        "Edges": 30,
        "WordEdges": 30,
        "Dense": 1,  # what the papers' lists do not have
    }
    assert set(SETS["cj2005"]) < set(SETS["extended"])
