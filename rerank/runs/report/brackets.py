"""The differences between two trees of one sentence as PARSEVAL sees them: brackets that one has and the other
lacks."""

from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from rerank.data.symbols import SymbolTable
from rerank.metrics.parseval import EMPTY_TAG, Parseval, cut_label, equivalents
from rerank.readers.trees.trees import parse_brackets

_DELETED = frozenset(Parseval.delete)  # labels that are not brackets, tags whose words do not count
_EQUAL = equivalents(Parseval.equal_labels)


class Tree(NamedTuple):
    """One tree in preorder, without empty nodes; a preterminal and its word are one node."""

    labels: list[str]
    words: list[str | None]  # None for nonterminals
    parents: list[int]  # -1 for the root

    @property
    def leaves(self) -> list[int]:
        """The preterminals, from left to right."""
        return [node for node, word in enumerate(self.words) if word is not None]

    @property
    def children(self) -> list[list[int]]:
        """The children of every node, from left to right."""
        children: list[list[int]] = [[] for _ in self.labels]
        for node, parent in enumerate(self.parents):
            if parent >= 0:
                children[parent].append(node)
        return children

    def spans(self) -> list[tuple[int, int]]:
        """First leaf and one past the last leaf of every node."""
        first, last = [len(self.labels)] * len(self.labels), [0] * len(self.labels)
        for position, leaf in enumerate(self.leaves):
            node = leaf
            while node >= 0:
                first[node], last[node] = min(first[node], position), position + 1
                node = self.parents[node]
        return list(zip(first, last, strict=True))


class Bracket(NamedTuple):
    """A labelled span over the words that count."""

    label: str
    start: int
    end: int


def read_trees(texts: Sequence[str], list_id: str | None = None) -> list[Tree]:
    """Bracketed trees, one per text, for drawing. Empty nodes (-NONE-) are removed, with ancestors left empty."""
    symbols = SymbolTable()
    raw = [text.encode("utf-8", "surrogateescape") for text in texts]
    trees = parse_brackets(raw, symbols, path="the report's examples", list_id=list_id)
    read = []
    for first, last in zip(trees.first[:-1].tolist(), trees.first[1:].tolist(), strict=True):
        labels = [symbols.text(label) for label in trees.label[first:last].tolist()]
        words = [symbols.text(word) if word >= 0 else None for word in trees.word[first:last].tolist()]
        parents = [max(parent - first, -1) for parent in trees.parent[first:last].tolist()]
        read.append(_without_empty(Tree(labels, words, parents)))
    return read


def _without_empty(tree: Tree) -> Tree:
    """``tree`` without -NONE- and nodes above nothing else; unchanged if nothing would be left."""
    kept: set[int] = set()
    for leaf in tree.leaves:
        node = leaf if tree.labels[leaf] != EMPTY_TAG else -1
        while node >= 0 and node not in kept:
            kept.add(node)
            node = tree.parents[node]
    if not kept:
        return tree
    number = {node: new for new, node in enumerate(sorted(kept))}
    return Tree(
        [tree.labels[node] for node in number],
        [tree.words[node] for node in number],
        [number.get(tree.parents[node], -1) for node in number],
    )


def counted_brackets(tree: Tree, words: Sequence[bool]) -> dict[int, Bracket]:
    """Node → bracket, for the nodes that PARSEVAL counts with its default settings.

    These are all nonterminals except roots (TOP, S1, ROOT, unlabelled) and those without a word that counts. Function
    tags are cut; ADVP and PRT are the same. ``words``: which words count.
    """
    before = [0, *accumulate(words)]  # counted words to the left of every position
    brackets = {}
    for node, (first, last) in enumerate(tree.spans()):
        label = cut_label(tree.labels[node])
        if tree.words[node] is None and label not in _DELETED and before[last] > before[first]:
            brackets[node] = Bracket(_EQUAL.get(label, label), before[first], before[last])
    return brackets


def differences(gold: Tree, tree: Tree) -> tuple[frozenset[int], frozenset[int]]:
    """(nodes of ``gold`` that ``tree`` misses, nodes of ``tree`` that are not in ``gold``).

    Brackets are matched one to one; among equal brackets in one tree the upper ones are matched first. Words whose gold
    tag is punctuation do not count; where the trees have different numbers of words, each tree's own tags decide.
    """
    by_gold, by_tree = ([side.labels[leaf] not in _DELETED for leaf in side.leaves] for side in (gold, tree))
    in_gold = counted_brackets(gold, by_gold)
    in_tree = counted_brackets(tree, by_gold if len(by_tree) == len(by_gold) else by_tree)
    return _unmatched(in_gold, in_tree), _unmatched(in_tree, in_gold)


def _unmatched(brackets: dict[int, Bracket], others: dict[int, Bracket]) -> frozenset[int]:
    left = Counter(others.values())
    unmatched = set()
    for node, bracket in brackets.items():
        if left[bracket]:
            left[bracket] -= 1
        else:
            unmatched.add(node)
    return frozenset(unmatched)
