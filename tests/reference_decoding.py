"""Decoding as its formulas say it: posteriors by summing over candidates, gains of every text against every other."""

import math
from collections import Counter, defaultdict

import nltk
import numpy as np

ROOTS = ("", "TOP", "S1", "ROOT")
Span = tuple[str, int, int, int]


def softmax(scores: np.ndarray, sharpness: float) -> np.ndarray:
    """p(y) ∝ exp(a · s(y))."""
    raised = [math.exp(sharpness * (s - max(scores))) for s in scores]
    return np.array([each / sum(raised) for each in raised])


def without_traces(tree: nltk.Tree) -> nltk.Tree | None:
    """The tree without traces, and without nodes that then have no children."""
    if not isinstance(tree[0], nltk.Tree):
        return None if tree.label() == "-NONE-" else tree
    children = [left for child in tree if (left := without_traces(child)) is not None]
    return nltk.Tree(tree.label(), children) if children else None


def spans(tree: nltk.Tree) -> list[Span]:
    """(label, first word, one past the last, how many equal ones are above) of all brackets but a root's, preorder."""
    found: list[Span] = []
    seen: Counter[tuple[str, int, int]] = Counter()

    def walk(node: nltk.Tree, start: int) -> int:
        if not isinstance(node[0], nltk.Tree):
            return start + 1
        end = start + len(node.leaves())
        if node.label() not in ROOTS:
            key = (node.label(), start, end)
            found.append((*key, seen[key]))
            seen[key] += 1
        for child in node:
            start = walk(child, start)
        return end

    walk(tree, 0)
    return found


def crossing(a: tuple, b: tuple) -> bool:
    """Whether two brackets share words, and each has some of its own."""
    return a[1] < b[1] < a[2] < b[2] or b[1] < a[1] < b[2] < a[2]


def posteriors(trees: list[nltk.Tree], p: np.ndarray) -> dict[Span, float]:
    """The probability of every bracket."""
    found: dict[Span, float] = defaultdict(float)
    for tree, weight in zip(trees, p, strict=True):
        for span in spans(tree):
            found[span] += weight
    return found


def fused_spans(trees: list[nltk.Tree], p: np.ndarray, threshold: float) -> Counter[tuple[str, int, int]]:
    """The brackets with a probability above the threshold."""
    kept = (span for span, weight in posteriors(trees, p).items() if weight > threshold + 1e-9)
    return Counter(span[:3] for span in kept)


def fused_tags(trees: list[nltk.Tree], p: np.ndarray) -> list[str]:
    """The tag of every word that is most probable, the first of equal ones."""
    found = []
    for position in range(len(trees[0].leaves())):
        weight: dict[str, float] = defaultdict(float)
        for tree, own in zip(trees, p, strict=True):
            weight[tree.pos()[position][1]] += own
        most = max(weight.values())
        found.append(next(tag for tag, own in weight.items() if own > most - 1e-9))
    return found


def expected(gains: np.ndarray, p: np.ndarray) -> list[float]:
    """Σ_r p(r) · gain(y, r) of every candidate y."""
    return [sum(p[r] * gains[y, r] for r in range(len(p))) for y in range(len(p))]
