"""The base parser of the quickstart data: an unlexicalised PCFG and its N best trees.

The grammar is read off gold trees whose words are cut off, so that it knows nothing but parts of speech. nltk's
probabilistic chart parser finds all trees of a sentence; the N most probable ones make its list.
"""

import math
from collections.abc import Iterable, Iterator

from nltk import PCFG, Nonterminal, Production, Tree, induce_pcfg
from nltk.parse.pchart import InsideChartParser

UNITS = 10_000
"""Costs are whole numbers of 1 / UNITS nats: sums are exact, so ties are ties on every machine."""

Scored = tuple[int, str]
"""Cost and text. Compared as a pair: cheaper first, equal costs by text, so that the N best are one definite list."""


def tags_of(tree: Tree) -> Tree:
    """The tree with each preterminal as a leaf and without words."""
    return Tree(tree.label(), [tags_of(child) if isinstance(child[0], Tree) else child.label() for child in tree])


def rules(tree: Tree) -> list[Production]:
    """The productions of a tree down to its parts of speech."""
    productions: list[Production] = tags_of(tree).productions()
    return productions


def estimate(treebank: Iterable[Tree]) -> PCFG:
    """The PCFG with relative frequencies of a treebank's rules."""
    return induce_pcfg(Nonterminal("S1"), [rule for tree in treebank for rule in rules(tree)])


class NBestParser:
    """Lists the N most probable trees of a tagged sentence."""

    def __init__(self, grammar: PCFG, size: int) -> None:
        self.size = size
        self.chart_parser = InsideChartParser(grammar)
        self.cost = {(rule.lhs(), rule.rhs()): round(-math.log(rule.prob()) * UNITS) for rule in grammar.productions()}

    def parse(self, tagged: list[tuple[str, str]]) -> list[tuple[float, str]]:
        """Log probability (natural, to four digits) and bracketed text of the best trees of (word, tag) pairs."""
        words = [word for word, _ in tagged]
        found: list[Scored] = []
        for tree in self.chart_parser.parse([tag for _, tag in tagged]):
            cost = sum(self.cost[rule.lhs(), rule.rhs()] for rule in tree.productions())
            found.append((cost, with_words(tree, iter(words))))
        return [(-cost / UNITS, text) for cost, text in sorted(found)[: self.size]]


def with_words(tree: Tree, words: Iterator[str]) -> str:
    """The bracketed text of a tree over tags, each tag with its word."""
    children = [with_words(c, words) if isinstance(c, Tree) else f"({c} {next(words)})" for c in tree]
    return f"({tree.label()} {' '.join(children)})"
