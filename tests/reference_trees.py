"""Slow and obvious twins of the tree kernels, and random trees to compare them on."""

import nltk
from hypothesis import strategies as st

LABELS = ["S1", "S", "NP", "VP", "NP-SBJ", "PRT|ADVP", "-NONE-", "."]
WORDS = ["It", "rained", "*T*-1", "naïve", "\\/", "-LRB-", "日本", "1,000"]


def trees(max_leaves: int = 12) -> st.SearchStrategy[nltk.Tree]:
    """Random well-formed trees: every word has a preterminal of its own."""
    leaves = st.builds(lambda tag, word: nltk.Tree(tag, [word]), st.sampled_from(LABELS), st.sampled_from(WORDS))
    return st.recursive(
        leaves,
        lambda below: st.builds(nltk.Tree, st.sampled_from(LABELS), st.lists(below, min_size=1, max_size=4)),
        max_leaves=max_leaves,
    )


def spaces(least: int) -> st.SearchStrategy[str]:
    """White space of at least ``least`` characters, line breaks of both kinds included."""
    return st.text(st.sampled_from([" ", "\n", "\t"]), min_size=least, max_size=3).map(
        lambda s: s.replace("\n", "\r\n")
    )


@st.composite
def printed(draw: st.DrawFn, tree: nltk.Tree) -> str:
    """``tree`` in brackets with random white space wherever it is free."""
    parts = ["(", draw(spaces(0)), tree.label()]
    for child in tree:
        if isinstance(child, str):
            parts += [draw(spaces(1)), child]
        else:
            parts += [draw(spaces(0)), draw(printed(child))]
    return "".join([*parts, draw(spaces(0)), ")"])


def naive_split(text: str) -> list[tuple[str, int]]:
    """(text, line) of every balanced bracketing in ``text``, by counting brackets character by character."""
    found, depth, begin = [], 0, 0
    for i, character in enumerate(text):
        if character == "(":
            if depth == 0:
                begin = i
            depth += 1
        elif character == ")":
            depth -= 1
            if depth == 0:
                found.append((text[begin : i + 1], text[:begin].count("\n") + 1))
    return found


def words_of(tree: nltk.Tree) -> list[str]:
    """The words of a tree without those of traces."""
    return [str(word) for word, tag in tree.pos() if tag != "-NONE-"]
