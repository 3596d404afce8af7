"""Parse templates over words and spans: features and values written out by hand."""

import pytest
from rendered_features import CHASES, SAID, extracted, fired, once

# Shapes of trees


@pytest.mark.parametrize(
    ("tree", "on", "off"),
    [
        (CHASES, 5, 2),  # past the full stop
        (SAID, 7, 2),
        ("(A (B (B (B (NN a)))) (: --))", 4, 0),
        ("(X (. .) (Y (. !)))", 1, 1),  # nothing but punctuation: the first word
        ("(NN a)", 0, 0),
    ],
)
def test_right_branch(tree: str, on: int, off: int) -> None:
    expected = {"on": float(on), "off": float(off)}
    assert fired("RightBranch", tree) == {name: value for name, value in expected.items() if value}


# Spans


def test_heavy_where_traces_make_candidates_longer() -> None:
    # The words beside NP are the same in both; the end of the sentence is not as near.
    short = "(S (NP (NN a)) (VP (VB b) (VB c) (VB d)))"
    long = "(S (NP (NN a)) (VP (VB b) (VB c) (VB d) (-NONE- *) (-NONE- *)))"
    assert extracted(["Heavy"], [short, long]) == [
        once("Heavy|S len=4 len=0 (end)", "Heavy|NP len=1 len=4 free", "Heavy|VP len=4 len=0 (end)"),
        once("Heavy|S len=5+ len=0 (end)", "Heavy|NP len=1 len=5+ free", "Heavy|VP len=5+ len=0 (end)"),
    ]
