"""Parse templates over words, spans and fragments: features and values written out by hand."""

import math

import pytest
from rendered_features import CHASES, RUN, SAID, extracted, fired, once

# Word, WProj


# Shapes of trees


@pytest.mark.parametrize(
    ("tree", "on", "off"),
    [
        (CHASES, 5, 2),  # past the full stop
        (SAID, 7, 2),
        (RUN, 5, 1),
        ("(S (NP (NN a)) (NP (NN b)) (. ?) ('' ''))", 2, 1),
        ("(A (B (B (B (NN a)))) (: --))", 4, 0),
        ("(X (. .) (Y (. !)))", 1, 1),  # nothing but punctuation: the first word
        ("(NN a)", 0, 0),
    ],
)
def test_right_branch(tree: str, on: int, off: int) -> None:
    expected = {"on": float(on), "off": float(off)}
    assert fired("RightBranch", tree) == {name: value for name, value in expected.items() if value}


def test_branch_lengths() -> None:
    left = math.log(4) + math.log(2) + math.log(2) + math.log(2) + math.log(1)
    assert fired("LeftBranchLength", RUN) == {"": pytest.approx(left)}
    assert fired("RightBranchLength", RUN) == {"": pytest.approx(math.log(2) + math.log(6))}
    assert fired("LeftBranchLength", "(A (B (C (NN a))))") == {"": pytest.approx(math.log(4))}
    assert fired("LeftBranchLength", "(NN a)") == fired("RightBranchLength", "(NN a)") == {}


# Spans


def test_heavy() -> None:
    assert fired("Heavy", CHASES) == once(
        "S1 len=5+ len=0 (end)",
        "S len=5+ len=0 (end)",
        "NP len=2 len=5+ free",
        "VP len=5+ len=1 .",
        "NP len=4 len=1 .",
        "NP len=1 len=4 CC",
        "NP len=2 len=1 .",
    )
    assert fired("Heavy", "(S (NP (A a) (B b) (C c)) (, ,) (VP (V d) (W (W e))))") == once(
        "S len=5+ len=0 (end)", "NP len=4 len=4 ,", "VP len=2 len=0 (end)", "W len=1 len=0 (end)"
    )


def test_heavy_where_traces_make_candidates_longer() -> None:
    # The words beside NP are the same in both; the end of the sentence is not as near.
    short = "(S (NP (NN a)) (VP (VB b) (VB c) (VB d)))"
    long = "(S (NP (NN a)) (VP (VB b) (VB c) (VB d) (-NONE- *) (-NONE- *)))"
    assert extracted(["Heavy"], [short, long]) == [
        once("Heavy|S len=4 len=0 (end)", "Heavy|NP len=1 len=4 free", "Heavy|VP len=4 len=0 (end)"),
        once("Heavy|S len=5+ len=0 (end)", "Heavy|NP len=1 len=5+ free", "Heavy|VP len=5+ len=0 (end)"),
    ]


# Fragments


def test_ngram_trees() -> None:
    assert fired("NGramTree", CHASES) == once(
        "NP ( DT NN",
        "S ( NP ( NN ) VP ( VBZ",
        "VP ( VBZ NP ( NP ( NNS",
        "NP ( NP ( NNS ) CC",
        "NP ( CC NP ( JJ",
        "NP ( JJ NNS",
        "S ( VP ( NP ( NP ( NNS ) ) ) .",
    )
    assert fired("NGramTree(words=all)", RUN) == once(
        "S ( NP ( NNS / dogs ) VP ( VBP / run",
        "VP ( VBP / run PP ( IN / in",
        "PP ( IN / in NP ( DT / the",
        "NP ( DT / the NN / park",
    )
    assert fired("NGramTree(n=3, words=function)", CHASES) == once(
        "S ( NP ( DT / the NN ) VP ( VBZ",
        "S ( NP ( NN ) VP ( VBZ NP ( NP ( NNS",
        "VP ( VBZ NP ( NP ( NNS ) CC / and",
        "NP ( NP ( NNS ) CC / and NP ( JJ",
        "NP ( CC / and NP ( JJ NNS",
        "S ( VP ( NP ( NP ( JJ NNS ) ) ) .",
    )


def test_ngram_trees_begin_at_the_smallest_node() -> None:
    assert fired("NGramTree", "(S1 (S (S (A a) (B (B b)))))") == once("S ( A B ( B")
    assert fired("NGramTree", "(X (NN a))") == {}
