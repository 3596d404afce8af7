"""Runs of nouns: how a reranker may learn to like or dislike them."""

from collections import Counter

from rerank.readers.reader import Candidate


def noun_runs(candidate: Candidate) -> dict[str, float]:
    """Every phrase with two or more nouns in a row, and the longest such run of the tree."""
    found: Counter[str] = Counter()
    for phrase in candidate.tree.subtrees(lambda tree: tree.height() > 2):
        run = longest = 0
        for child in phrase:
            run = run + 1 if child.label().startswith("NN") else 0
            longest = max(longest, run)
        found["longest"] = max(found["longest"], longest)
        if longest >= 2:
            found[f"{phrase.label()} {longest}"] += 1
    return found
