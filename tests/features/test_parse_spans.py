"""Parse templates over words, spans and fragments: features and values written out by hand."""

import math

import pytest
from rendered_features import CHASES, FLAT, NESTED, RUN, SAID, extracted, fired, once

# Word, WProj


def test_word() -> None:
    assert fired("Word(k=1)", CHASES) == once(
        "the DT", "cat NN", "chases VBZ", "mice NNS", "and CC", "big JJ", "birds NNS", ". ."
    )
    assert fired("Word(k=2)", RUN) == once("dogs NNS ^ NP", "run VBP ^ VP", "in IN ^ PP", "the DT ^ NP", "park NN ^ NP")
    assert fired("Word(k=4)", RUN) == once(
        "dogs NNS ^ NP ^ S ^ S1",
        "run VBP ^ VP ^ S ^ S1",
        "in IN ^ PP ^ VP ^ S",
        "the DT ^ NP ^ PP ^ VP",
        "park NN ^ NP ^ PP ^ VP",
    )
    assert fired("Word", "(X (NN Art) (NN art) (JJ art))") == {"art NN": 2, "art JJ": 1}


def test_projections_of_words() -> None:
    both = ["she PRP | NP ^ S", "said VBD | S1", "it PRP | NP ^ S", ". . | . ^ S"]
    assert fired("WProj", SAID) == once(*both, "that IN | IN ^ SBAR", "will MD | MD ^ VP", "rain VB | SBAR ^ VP")
    assert fired("WProj(heads=syntactic)", SAID) == once(
        *both, "that IN | SBAR ^ VP", "will MD | S ^ SBAR", "rain VB | VP ^ VP"
    )
    assert fired("WProj(k=2)", RUN) == once(
        "dogs NNS | NP ^ S ^ S1",
        "run VBP | S1",
        "in IN | IN ^ PP ^ VP",
        "the DT | DT ^ NP ^ PP",
        "park NN | PP ^ VP ^ S",
    )
    assert fired("WProj(k=0)", RUN) == once(
        "dogs NNS | NP", "run VBP | S1", "in IN | IN", "the DT | DT", "park NN | PP"
    )


def test_projections_in_a_coordination() -> None:
    # The first conjunct's head is that of the coordination; the second's ends below it.
    assert fired("WProj", "(VP (VB see) (NP (NP (NN a)) (CC or) (NP (NN b))))") == once(
        "see VB | VP", "a NN | NP ^ VP", "or CC | CC ^ NP", "b NN | NP ^ NP"
    )


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


def test_neighbours() -> None:
    assert fired("Neighbours", RUN) == once(
        "S1 len=5+ | (end) | (end)",
        "S len=5+ | (end) | (end)",
        "NP len=1 | (end) | VBP",
        "VP len=4 | NNS | (end)",
        "PP len=4 | VBP | (end)",
        "NP len=2 | IN | (end)",
    )
    assert fired("Neighbours(l=2)", RUN) == once(
        "S1 len=5+ | (end) (end) | (end)",
        "S len=5+ | (end) (end) | (end)",
        "NP len=1 | (end) (end) | VBP",
        "VP len=4 | (end) NNS | (end)",
        "PP len=4 | NNS VBP | (end)",
        "NP len=2 | VBP IN | (end)",
    )
    assert fired("Neighbours(l=0, r=2)", "(X (Y (A a)) (B b))") == once(
        "X len=2 | | (end) (end)", "Y len=1 | | B (end)"
    )


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("", ["S1 | |", "S | |", "VP | |", "PP | |", "NP | |"]),
        (
            "binned=True",
            ["S1 len=5+ | |", "S len=5+ | |", "NP len=1 | |", "VP len=4 | |", "PP len=4 | |", "NP len=2 | |"],
        ),
        ("lp=1", ["S1 | (end) |", "S | (end) |", "NP | (end) |", "VP | NNS |", "PP | VBP |", "NP | IN |"]),
        ("ls=1", ["S1 | NNS |", "S | NNS |", "NP | NNS |", "VP | VBP |", "PP | IN |", "NP | DT |"]),
        ("rp=1", ["S1 | | NN", "S | | NN", "NP | | NNS", "VP | | NN", "PP | | NN", "NP | | NN"]),
        ("rs=1", ["S1 | | (end)", "S | | (end)", "NP | | VBP", "VP | | (end)", "PP | | (end)", "NP | | (end)"]),
        (
            "lp=1, rs=1",
            [
                "S1 | (end) | (end)",
                "S | (end) | (end)",
                "NP | (end) | VBP",
                "VP | NNS | (end)",
                "PP | VBP | (end)",
                "NP | IN | (end)",
            ],
        ),
        # Words after the left edge may lie beyond the right one.
        (
            "ls=2",
            ["S1 | NNS VBP |", "S | NNS VBP |", "NP | NNS VBP |", "VP | VBP IN |", "PP | IN DT |", "NP | DT NN |"],
        ),
        ("rp=2", ["S1 | | DT NN", "S | | DT NN", "NP | | (end) NNS", "VP | | DT NN", "PP | | DT NN", "NP | | DT NN"]),
    ],
)
def test_edges(options: str, expected: list[str]) -> None:
    counts = {"NP | |": 2.0} if options == "" else {}
    assert fired(f"Edges({options})", RUN) == once(*expected) | counts


def test_edges_of_words() -> None:
    assert fired("WordEdges(binned=True, lp=1, rs=1)", CHASES) == once(
        "S1 len=5+ | (end) | (end)",
        "S len=5+ | (end) | (end)",
        "NP len=2 | (end) | chases",
        "VP len=5+ | cat | .",
        "NP len=4 | chases | .",
        "NP len=1 | chases | and",
        "NP len=2 | and | .",
    )
    assert fired("WordEdges(lp=2, ls=2, rp=2, rs=2)", "(X (A A) (Y (B B) (C C)))") == once(
        "X | (end) (end) a b | b c (end) (end)", "Y | (end) a b c | b c (end) (end)"
    )


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


def test_ngram_trees_across_several_children() -> None:
    assert fired("NGramTree", FLAT) == once("X ( A B", "X ( B C", "X ( C D")
    assert fired("NGramTree(n=3)", FLAT) == once("X ( A B C", "X ( B C D")
    assert fired("NGramTree(n=3)", NESTED) == once("X ( Y ( A B ) C", "X ( Y ( B ) C Z ( D", "X ( C Z ( D E")
    assert fired("NGramTree(n=4)", NESTED) == once("X ( Y ( A B ) C Z ( D", "X ( Y ( B ) C Z ( D E")
    assert fired("NGramTree(n=5)", NESTED) == once("X ( Y ( A B ) C Z ( D E")
    assert fired("NGramTree(n=6)", NESTED) == {}


def test_ngram_trees_begin_at_the_smallest_node() -> None:
    assert fired("NGramTree", "(S1 (S (S (A a) (B (B b)))))") == once("S ( A B ( B")
    assert fired("NGramTree", "(X (NN a))") == {}


def test_head_trees() -> None:
    assert fired("HeadTree", RUN) == once(
        "NP → * NNS", "S1 → * S → NP * VP → * VBP PP", "PP → * IN NP", "DT", "NP → DT * NN"
    )
    assert fired("HeadTree(heads=semantic)", RUN) == once(
        "NP → * NNS", "S1 → * S → NP * VP → * VBP PP", "IN", "DT", "PP → IN * NP → DT * NN"
    )
    assert fired("HeadTree(heads=semantic, words=all)", RUN) == once(
        "NP → * NNS / dogs",
        "S1 → * S → NP * VP → * VBP PP / run",
        "IN / in",
        "DT / the",
        "PP → IN * NP → DT * NN / park",
    )
    assert fired("HeadTree(words=function)", RUN) == once(
        "NP → * NNS", "S1 → * S → NP * VP → * VBP PP", "PP → * IN NP / in", "DT / the", "NP → DT * NN"
    )
    assert fired("HeadTree(ancestors=1)", RUN) == once(
        "NP ^ S → * NNS",
        "S1 → * S → NP * VP → * VBP PP",
        "PP ^ VP → * IN NP",
        "DT ^ NP",
        "NP ^ PP → DT * NN",
    )
    assert fired("HeadTree", "(X (X (NN a)))") == once("X → * X → * NN")
