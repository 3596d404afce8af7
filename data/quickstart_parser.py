"""The base parser of the quickstart data: an unlexicalised PCFG and its N best trees.

The grammar is read off gold trees whose words are cut off, so that it knows nothing but parts of speech.
`nltk` fills the chart; the N best trees are then read from the chart exactly, bottom up (Huang and Chiang 2005,
"Better k-best parsing"). nltk's probabilistic chart parsers give the same lists, but make an edge for each partial tree
with another probability, which takes too long on long sentences: they are the slow twin in the tests.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from nltk import PCFG, Nonterminal, Production, Tree, induce_pcfg
from nltk.parse.chart import Chart, EdgeI, LeafEdge, LeftCornerChartParser

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
        self.chart_parser = LeftCornerChartParser(grammar)
        self.cost = {(rule.lhs(), rule.rhs()): round(-math.log(rule.prob()) * UNITS) for rule in grammar.productions()}

    def parse(self, tagged: list[tuple[str, str]]) -> list[tuple[float, str]]:
        """Log probability (natural, to four digits) and bracketed text of the best trees of (word, tag) pairs."""
        chart = self.chart_parser.chart_parse([tag for _, tag in tagged])
        done: dict[EdgeI, list[Scored]] = {}
        roots = chart.select(is_complete=True, span=(0, len(tagged)), lhs=self.chart_parser.grammar().start())
        best = self.cut([tree for root in roots for tree in self.trees(root, chart, tagged, done)])
        return [(-cost / UNITS, text) for cost, text in best]

    def trees(
        self, edge: EdgeI, chart: Chart, tagged: list[tuple[str, str]], done: dict[EdgeI, list[Scored]]
    ) -> list[Scored]:
        """The best trees of a complete edge, cheapest first; `done` remembers those of the edges already met."""
        if edge in done:
            return done[edge]
        if isinstance(edge, LeafEdge):
            word, tag = tagged[edge.start()]
            done[edge] = [(0, f"({tag} {word})")]
            return done[edge]
        found: list[Scored] = []
        for children in chart.child_pointer_lists(edge):
            partial = [(self.cost[edge.lhs(), edge.rhs()], f"({edge.lhs()}")]
            for child in children:
                partial = self.joined(partial, self.trees(child, chart, tagged, done))
            found.extend((cost, text + ")") for cost, text in partial)
        done[edge] = self.cut(found)
        return done[edge]

    def joined(self, left: list[Scored], right: list[Scored]) -> list[Scored]:
        """The best sums of one item from each list.

        The pair (i, j), counted from 0, has (i + 1)(j + 1) - 1 pairs before it, so that most pairs need no look.
        """
        pairs = [
            (cost + more, f"{text} {rest}")
            for i, (cost, text) in enumerate(left)
            for more, rest in right[: self.size // (i + 1)]
        ]
        return self.cut(pairs)

    def cut(self, trees: list[Scored]) -> list[Scored]:
        """The cheapest trees, at most as many as a list holds."""
        return sorted(trees)[: self.size]
