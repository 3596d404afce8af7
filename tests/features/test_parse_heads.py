"""Parse templates over heads and coordinations: features and values written out by hand."""

import pytest
from rendered_features import CHASES, RUN, fired, once

# Heads


def test_chains_of_three_heads() -> None:
    assert fired("Heads(n=3)", CHASES) == once("DT < NN < VBZ", "CC < NNS < VBZ", "JJ < NNS < VBZ")
    assert fired("Heads(n=3)", RUN) == once("NN < IN < VBP", "DT < NN < IN")
    assert fired("Heads(n=3, governor=word, dependent=word, heads=semantic)", RUN) == once(
        "IN / in < NN / park < VBP / run", "DT / the < NN / park < VBP / run"
    )
    # Each chain has the governor's governor once, however far down the heads lie.
    assert fired("Heads(n=3)", "(VP (VB a) (NP (NP (NN b)) (PP (IN of) (NP (NP (NN c)) (SBAR (WDT d))))))") == once(
        "IN < NN < VB", "NN < IN < NN", "WDT < NN < IN"
    )


def test_heads_through_coordinations_in_coordinations() -> None:
    tree = "(S (NP (NP (NP (NN a)) (CC and) (NP (NN b))) (, ,) (CC or) (NP (JJ x) (NN c))) (VP (VB d)))"
    assert fired("Heads", tree) == {"NN < VB": 3, "CC < NN": 2, ", < NN": 1, "JJ < NN": 1}
    assert fired("Heads(n=3)", tree) == {"CC < NN < VB": 2, ", < NN < VB": 1, "JJ < NN < VB": 1}
    # A conjunct that is not the head depends on no other conjunct.
    assert fired("Heads", "(NP (NP (NN a)) (CC and) (NP (NNS b)))") == {"CC < NN": 1}


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        (CHASES, {"NN VBZ": 1}),
        (
            "(S (NP (NN today)) (NP (NNS cats)) (ADVP (RB often)) (VP (VBP run)) (NP (NN x)) (VP (VB y)))",
            {"NNS VBP": 1},
        ),
        ("(SQ (VBZ is) (NP (PRP it)) (VP (VBG raining)))", {"PRP VBG": 1}),
        ("(S (PP (IN in) (NP (NN x))) (VP (VBZ is)))", {}),
        ("(FRAG (NP (NN x)) (VP (VBZ is)))", {}),
        # The subject's head is the semantic one, the verb's the syntactic one.
        ("(S (NP (NP (NNS dogs)) (PP (IN of) (NP (NN x)))) (VP (MD will) (VP (VB run))))", {"NNS MD": 1}),
        ("(S (NP (NNP Art) (POS 's)) (VP (MD will) (VP (VB run))))", {"NNP MD": 1}),
    ],
)
def test_agreement_of_subject_and_verb(tree: str, expected: dict[str, float]) -> None:
    assert fired("SubjVerbAgr", tree) == expected


# Coordinations


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        (CHASES, once("1 same", "2 different", "3 different", "4 different")),
        (
            "(NP (NP (DT a) (NN b)) (CC and) (NP (DT c) (NN d)))",
            once("1 same", "2 same", "3 same", "4 same"),  # words do not matter
        ),
        ("(UCP (NP (NN a)) (CC and) (VP (VB b)))", once("1 different", "2 different", "3 different", "4 different")),
        # A branch ends in one conjunct and goes on in the other.
        ("(X (Y (Z (A a))) (CC or) (Y (Z b)))", once("1 same", "2 same", "3 different", "4 different")),
        # The same labels in the same order, at other levels.
        (
            "(X (Y (Z (A a)) (B b)) (CC or) (Y (Z (A c) (B d))))",
            once("1 same", "2 different", "3 different", "4 different"),
        ),
        ("(NP (CC and) (NP (NN a)))", {}),
    ],
)
def test_parallel_conjuncts(tree: str, expected: dict[str, float]) -> None:
    assert fired("CoPar", tree) == expected
