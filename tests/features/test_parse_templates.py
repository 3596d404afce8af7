"""Parse templates: local trees, base scores and the named sets; features and values written out by hand."""

import math
from collections import Counter

import numpy as np
import pytest
from rendered_features import PRICE, SAID, extracted, fired, once

from rerank.features.sets import SETS
from rerank.features.template import make_template

# Rule


def test_rule_outside_of_the_root_clause() -> None:
    assert fired("Rule(root=True)", SAID) == once(
        "S1 | → S",
        "S | → NP VP .",
        "NP | → PRP",
        "VP | → VBD SBAR",
        "SBAR nested | → IN S",
        "S nested | → NP VP",
        "NP nested | → PRP",
        "VP nested | → MD VP",
        "VP nested | → VB",
    )
    # The first clause is the root clause wherever it stands.
    assert fired("Rule(root=True)", "(NP (NN a) (SBAR (S (VP (VB b)))))") == once(
        "NP | → NN SBAR", "SBAR | → S", "S nested | → VP", "VP nested | → VB"
    )


def test_rule_in_a_coordination() -> None:
    # All marks together, in their order; a grandchild of a coordination is in none.
    tree = "(S (VP (VB a)) (CC or) (S (NP (NP (NN b)))))"
    assert fired("Rule(ancestors=1, root=True, conj=True)", tree) == once(
        "S | → VP CC S",
        "VP ^ S conj | → VB",
        "S ^ S nested conj | → NP",
        "NP ^ S nested | → NP",
        "NP ^ NP nested | → NN",
    )


@pytest.mark.parametrize(
    ("tree", "joined"),
    [
        ("(NP (NP (NN a)) (CC and) (NP (NN b)))", True),
        ("(NP (NP (NN a)) (CONJP (RB as) (RB well) (IN as)) (NP (NN b)))", True),
        ("(NP (NP (NN a)) (, ,) (CC and) (, ,) (NP (NN b)))", True),
        ("(NP (CC both) (NP (NN a)) (CC and) (NP (NN b)))", True),
        ("(NP (CC and) (NP (NN a)) (NP (NN b)))", False),  # nothing before the conjunction
        ("(NP (, ,) (CC and) (NP (NN a)))", False),  # punctuation is no conjunct
        ("(NP (NP (NN a)) (CC and) (. .))", False),
        ("(NP (NP (NN a)) (, ,) (NP (NN b)))", False),
    ],
)
def test_what_a_coordination_is(tree: str, joined: bool) -> None:
    names = fired("Rule(conj=True)", tree)
    assert (names.get("NP conj | → NN", 0) > 0) == joined
    assert (names.get("NP | → NN", 0) > 0) == (not joined)


# NGram


def test_the_tag_of_a_dollar_sign_is_no_end() -> None:
    assert fired("NGram", PRICE) == once(
        "NP | (end) QP <", "NP | QP NN *", "NP | NN (end) *", "QP | (end) $ <", "QP | $ CD *", "QP | CD (end) *"
    )
    assert fired("Edges(lp=1)", PRICE) == once("NP | (end) |", "QP | (end) |")
    assert fired("Edges(ls=1)", PRICE) == once("NP | $ |", "QP | $ |")
    assert fired("WordEdges(ls=1)", PRICE) == once("NP | $ |", "QP | $ |")


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
