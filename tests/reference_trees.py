"""Slow and obvious twins of the tree kernels, and random trees to compare them on."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import nltk
from hypothesis import strategies as st

LABELS = ["S1", "S", "NP", "VP", "NP-SBJ", "PRT|ADVP", "-NONE-", "."]
WORDS = ["It", "rained", "*T*-1", "naïve", "\\/", "-LRB-", "日本", "1,000"]


@st.composite
def tree_over(
    draw: st.DrawFn,
    words: Sequence[str],
    root: str | None = None,
    labels: Sequence[str] = LABELS,
    tags: Sequence[str] = LABELS,
    *,
    traces: bool = False,
) -> nltk.Tree:
    """A random tree over ``words``, with unary chains: every word has a preterminal of its own."""
    if len(words) == 1 and draw(st.booleans()):
        return nltk.Tree(draw(st.sampled_from(tags)), [words[0]])
    label = draw(st.sampled_from(labels)) if root is None else root
    cuts = draw(st.sets(st.integers(1, len(words) - 1), max_size=4)) if len(words) > 1 else set()
    bounds = pairwise([0, *sorted(cuts), len(words)])
    children = [draw(tree_over(words[a:b], None, labels, tags, traces=traces)) for a, b in bounds]
    if traces and draw(st.integers(0, 3)) == 0:
        trace = nltk.Tree("-NONE-", ["*"])
        held = trace if draw(st.booleans()) else nltk.Tree(draw(st.sampled_from(labels)), [trace])
        children.insert(draw(st.integers(0, len(children))), held)
    return nltk.Tree(label, children)


def trees(most: int = 12) -> st.SearchStrategy[nltk.Tree]:
    """Random well-formed trees of at most so many words."""
    return st.lists(st.sampled_from(WORDS), min_size=1, max_size=most).flatmap(tree_over)


def spaces() -> st.SearchStrategy[list[str]]:
    """White space of up to 3 characters, line breaks of both kinds included, for several places."""
    one = st.text(st.sampled_from(" \n\t"), max_size=3).map(lambda s: s.replace("\n", "\r\n"))
    return st.lists(one, min_size=1, max_size=12)


def printed(tree: nltk.Tree, gaps: Iterator[str]) -> str:
    """``tree`` in brackets with white space wherever it is free."""
    parts = ["(", next(gaps), tree.label()]
    for child in tree:
        parts += [next(gaps) or " ", child] if isinstance(child, str) else [next(gaps), printed(child, gaps)]
    return "".join([*parts, next(gaps), ")"])


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
